"""surrecall chunk"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _anchors, _chunk, _embed, _render
from surrecall._cli._app import LARGEST, Context, Json, command, progress_bar
from surrecall._corpus import Corpus
from surrecall._errors import UsageError


@command("chunk")
def chunk(
    context: Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table of the documents.")],
    into: Annotated[str, typer.Option("--into", help="Table of the chunks; made where it is not there.")],
    max_chars: Annotated[
        int | None,
        typer.Option("--max-chars", min=1, max=LARGEST, help="Characters of a chunk at most; else as before, else 800."),
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option("--overlap", min=0, max=LARGEST, help="Characters shared with the chunk before, at most; else 0."),
    ] = None,
    markdown: Annotated[
        bool | None, typer.Option("--markdown/--plain", help="What the texts are; else those with a heading are Markdown.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Cut a table anew that was cut in another way.")] = False,
    embed: Annotated[bool, typer.Option("--embed", help="Then embed the chunks by the recorded model.")] = False,
    as_json: Json = False,
) -> None:
    """Cut the documents into chunks, in a table of their own with indexes and retrievers.

    Cuts at headings, paragraphs, sentences and words, the largest that fit. Each chunk is a part of its document letter for
    letter, linked to it, with its place. Called again it cuts what is new or changed, and takes out the chunks of documents
    that are gone; what is unchanged stays, with its vectors. Cut off by Ctrl-C, the next call goes on.

    The first time, definitions and retrievers are written into surql/corpus, yours to edit: TABLE_bm25, TABLE_vector,
    TABLE_hybrid give chunks, and with the ending _doc the documents that these lead to, each at its best chunk.

    Example: surrecall chunk page --into chunk_small --max-chars 400 --overlap 50
    """
    corpus = _corpus(context, table)
    form = None if markdown is None else _chunk.Form.MARKDOWN if markdown else _chunk.Form.PLAIN
    asked = _chunk.Asked(into, max_chars, overlap, form, replace)
    embedded: _embed.Embedded | None = None
    what = "cutting and embedding" if embed else "cutting"
    with context.open(create=True) as database, progress_bar(context, what) as advance:

        def fill() -> None:
            nonlocal embedded
            if embed:
                where = _embed.places(corpus, context.folder, database, ("document",), into)
                embedded = _embed.embed(database, where, _embed.Asked(roles=("document",), table=into), advance)

        done = _chunk.chunk(database, context.folder, corpus, asked, advance, fill)
        _anchors.place_all(database)
    if as_json:
        _render.print_json(context.out, {"chunked": done, "embedded": embedded})
    else:
        _print(context, done, embedded)
    others = [name for name in corpus.texts if name not in (corpus.body, corpus.title)]
    if others:
        context.warn(f"chunks are of {corpus.body}; {', '.join(others)} is searched in documents alone")
    if done.added and not embed and corpus.vector is not None:
        context.warn(
            f"{_render.counted(done.added, 'chunk')} without a vector: {into}_vector and {into}_hybrid fail until "
            f"surrecall embed --table {into} fills them"
        )
    if done.without_text:
        context.warn(f"{_render.counted(done.without_text, 'document')} without text, and so without a chunk")


def _corpus(context: Context, table: str) -> Corpus:
    """The corpus of the project, which is the table to cut."""
    corpus = context.project.corpus
    if corpus is None:
        step = "surrecall init --table … --field … --vector … --dimension …"
        if table == "article" and not (context.folder / "surql").is_dir():
            # the help centre's files are part of the package, and a chunk table needs files of its own
            step = "for the help centre: surrecall init --table article --dimension 4 --analyzer help"
        raise UsageError("surrecall.toml of this folder has no [corpus], so there is no place for the chunks' definitions", step)
    if table != corpus.table:
        raise UsageError(f"this project evaluates {corpus.table}, not {table}", f"surrecall chunk {corpus.table} …")
    return corpus


def _print(context: Context, done: _chunk.Chunked, embedded: _embed.Embedded | None) -> None:
    lines = []
    if done.files:
        lines.append(f"wrote {_render.counted(len(done.files), 'file')} into surql/corpus")
    if done.retrievers:
        lines.append(f"added the retrievers {', '.join(done.retrievers)}")
    if done.cut or done.removed:
        gone = f", {done.removed} taken out" if done.removed else ""
        lines.append(f"cut {_render.counted(done.cut, 'document')} into {_render.counted(done.added, 'chunk')}{gone}")
    else:
        lines.append("nothing to cut: no document has changed")
    lines.append(
        f"{done.into}: {_render.counted(done.chunks, 'chunk')} of {_render.counted(done.documents, 'document')}, "
        f"at most {done.max_chars} characters, overlap {done.overlap}"
    )
    if embedded is not None:
        lines.append(f"embedded {_render.counted(embedded.filled[0].embedded, 'chunk')} with {embedded.model}")
    for line in lines:
        context.out.print(line, soft_wrap=True, markup=False, highlight=False)
