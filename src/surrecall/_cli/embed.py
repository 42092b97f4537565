"""surrecall embed"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from surrecall import _embed, _render
from surrecall._cli._app import Context, Json, command, progress_bar
from surrecall._embedders import Kind
from surrecall._errors import UsageError


@command("embed")
def embed(
    context: Context,
    embedder: Annotated[
        Kind | None, typer.Option("--embedder", "-e", help="What makes the vectors; else what made those that are there.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Name of the model; recorded with the vectors.")] = None,
    endpoint: Annotated[
        str | None,
        typer.Option("--endpoint", help="openai: its address; else OPENAI_BASE_URL, else as recorded, else OpenAI's own."),
    ] = None,
    key_env: Annotated[
        str, typer.Option("--key-env", help="openai: environment variable that holds the key.")
    ] = "OPENAI_API_KEY",
    dimensions: Annotated[
        bool | None,
        typer.Option("--dimensions", help="Ask for vectors of the corpus's dimension, of models that can be shortened."),
    ] = None,
    prefix_query: Annotated[
        str | None, typer.Option("--prefix-query", help="Put before each question, as 'query: ' for E5.")
    ] = None,
    prefix_document: Annotated[
        str | None, typer.Option("--prefix-document", help="Put before each document, as 'passage: ' for E5.")
    ] = None,
    max_chars: Annotated[int | None, typer.Option("--max-chars", min=1, help="Cut longer texts there, and say how many.")] = None,
    questions_only: Annotated[bool, typer.Option("--questions-only", help="Leave the documents alone.")] = False,
    documents_only: Annotated[bool, typer.Option("--documents-only", help="Leave the questions alone.")] = False,
    table: Annotated[str | None, typer.Option("--table", help="Only the rows of this table, for example of chunks.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Only the questions of this golden set.")] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Replace every vector of the questions and of your documents, not only fill what lacks one."),
    ] = False,
    same_model: Annotated[
        bool, typer.Option("--same-model", help="State that vectors whose model is not recorded are of this one.")
    ] = False,
    batch: Annotated[int, typer.Option("--batch", min=1, max=2048, help="Texts a request.")] = 64,
    timeout: Annotated[float, typer.Option("--timeout", min=0.001, help="openai: seconds for one request.")] = 120.0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the vectors of your own table are replaced.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what there is to embed, and store nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Fill the vectors of questions, documents and chunks that lack one, and record which model made them.

    Embedders: openai (any endpoint that speaks POST /embeddings), sentence-transformers (an extra), hashing (built in, no
    model, for demos and tests). Vectors of two models are never mixed. Cut off, it keeps what is stored; the next call goes on.
    Called again without options it takes the recorded embedder and model.

    Example: surrecall embed --embedder openai --model text-embedding-3-small
    """
    if questions_only and documents_only:
        raise UsageError("--questions-only and --documents-only leave nothing", "give one of them, or none")
    if table is not None and (questions_only or documents_only):
        raise UsageError("--table names what to fill, and so does --questions-only or --documents-only", "give one of them")
    if every and question_set is not None:
        raise UsageError("--all replaces the vectors of every question, and --set names some", "leave one of them out")
    if every and same_model and not questions_only:
        raise UsageError("--all replaces the vectors that --same-model would keep", "leave one of them out")
    asked = _embed.Asked(
        embedder=embedder,
        model=model,
        endpoint=endpoint,
        dimensions=dimensions,
        max_chars=max_chars,
        prefixes={"question": prefix_query, "document": prefix_document},
        roles=("question",) if questions_only else ("document",) if documents_only else ("question", "document"),
        table=table,
        question_set=question_set,
        every=every,
        same_model=same_model,
        key_name=key_env,
        batch=batch,
        timeout=timeout,
    )
    with context.open() as database, progress_bar(context, "embedding") as advance:
        where = _embed.places(context.project.corpus, context.folder, database, asked.roles, table)
        if every and not questions_only and not dry_run and not yes:
            _confirm(context, table)
        done = _embed.count(database, where, asked) if dry_run else _embed.embed(database, where, asked, advance)
    if as_json:
        _render.print_json(context.out, done)
    else:
        _print(context, done, dry_run=dry_run)
    for filled in done.filled:
        if filled.cut:
            cut = _render.counted(filled.cut, filled.role)
            context.warn(f"{cut} cut at --max-chars: what is beyond is not in the vector")
        if filled.without_text:
            context.warn(f"{_render.counted(filled.without_text, filled.role)} without text, and so without a vector")


def _confirm(context: Context, table: str | None) -> None:
    """Ask before an adopted table loses the vectors that its owner's application searches."""
    corpus = context.project.corpus
    if corpus is None or not corpus.adopted or table not in (None, corpus.table):
        return
    question = f"Replace the vectors of {corpus.table}, which is a table of yours, for good?"
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody is there to answer", "--yes replaces them, --questions-only leaves them alone")
    typer.confirm(question, abort=True, err=True)


def _print(context: Context, done: _embed.Embedded, *, dry_run: bool) -> None:
    by = f" with {done.model}" if done.model else ""
    if dry_run:
        what = ", ".join(f"{filled.asked} of {_render.counted(filled.rows, filled.role)}" for filled in done.filled)
        line = f"to embed{by}: {what}; nothing was stored"
    elif any(filled.asked for filled in done.filled):
        what = " and ".join(_render.counted(filled.embedded, filled.role) for filled in done.filled)
        line = f"embedded {what}{by}, {_render.counted(done.dimension, 'number')} each"
    else:
        what = " and ".join(_render.counted(filled.rows, filled.role) for filled in done.filled)
        line = f"nothing to embed: {what} have their vectors"
    context.out.print(line, soft_wrap=True, markup=False, highlight=False)
