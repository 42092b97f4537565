"""surrecall init"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from surrecall import _adopt, _files, _init, _inventory, _render, _schema
from surrecall._cli._app import Context, Json, command
from surrecall._corpus import Corpus
from surrecall._errors import UsageError
from surrecall._settings import Settings


@command("init")
def init(
    context: Context,
    table: Annotated[str | None, typer.Option("--table", help="Table of the documents.")] = None,
    dimension: Annotated[int | None, typer.Option("--dimension", help="Numbers in a vector; none: no vector search.")] = None,
    field: Annotated[
        list[str] | None, typer.Option("--field", help="Field that BM25 searches, may be given more than once; else content.")
    ] = None,
    vector: Annotated[str | None, typer.Option("--vector", help="Field that holds the vector; else embedding.")] = None,
    distance: Annotated[str, typer.Option("--distance", help="COSINE, EUCLIDEAN, MANHATTAN or CHEBYSHEV.")] = "COSINE",
    analyzer: Annotated[str | None, typer.Option("--analyzer", help="Name of the analyzer; else TABLE_text.")] = None,
    pool: Annotated[int, typer.Option("--pool", help="Candidates that a search looks at, the largest k.")] = 100,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Look into the database, and write the files for what is there.")
    ] = False,
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="When a labelled document is deleted: reject, unset, none; none with --adopt."),
    ] = None,
    parent: Annotated[str | None, typer.Option("--parent", help="Field that says which text a piece is of, for chunks.")] = None,
    position: Annotated[str | None, typer.Option("--position", help="Field that counts the pieces of a text.")] = None,
    chunks: Annotated[
        list[str] | None, typer.Option("--chunks", help="Tables of chunks, parted by commas, which surrecall chunk fills.")
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", help="question=golden_question: another name for a table or fn:: of ours.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show everything, write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
    as_json: Json = False,
) -> None:
    """Write surrecall.toml and surql/corpus for a table of your own into this folder.

    With --adopt the table, its fields, indexes, analyzer, dimension and distance are read from the database that --url names, and
    with them the functions that search it. Nothing in the database is changed; surrecall apply, or the first import, adds what is
    surrecall's.

    Example: surrecall init --table paper --field abstract --vector embedding --dimension 384 --distance COSINE

    Example: surrecall init --adopt --url ws://127.0.0.1:8000 --user root --dry-run
    """
    names = _adopt.renames(rename or [])
    found: _adopt.Adopted | None = None
    address: Settings | None = None
    if adopt:
        _refuse_with_adopt({"--dimension": dimension, "--analyzer": analyzer})
        wishes = _adopt.Wishes(table, field or (), vector, pool, reference or "none", names)
        with context.open(any_corpus=True) as database:
            address = database.settings
            found = _adopt.adopt(database, wishes, _ask)
        corpus, extra = found.corpus, found.extra
    else:
        corpus, extra = _own(table, field, vector, dimension, distance, analyzer, pool, reference or "reject", names), []
    corpus = replace(corpus, parent=parent, position=position)
    tables = list(dict.fromkeys(name.strip() for value in chunks or [] for name in value.split(",") if name.strip()))
    files = _init.files(context.folder, corpus, extra, address, tables)
    written = [] if dry_run else _init.init(context.folder, corpus, extra=extra, address=address, force=force, chunks=tables)
    shown = [path.relative_to(context.folder).as_posix() for path in (written or files)]
    if as_json:
        _render.print_json(context.out, {"files": shown, "written": not dry_run, "adopted": found} if adopt or dry_run else shown)
        return
    if found:
        _show_found(context, found)
    if dry_run:
        _show_plan(context, corpus, files)
        return
    context.out.print(f"wrote {len(shown)} files: surrecall.toml, and {len(shown) - 1} in surql/corpus")
    context.out.print(f"next: {_next(corpus)}", soft_wrap=True, markup=False, highlight=False)


def _own(
    table: str | None,
    fields: list[str] | None,
    vector: str | None,
    dimension: int | None,
    distance: str,
    analyzer: str | None,
    pool: int,
    reference: str,
    names: Sequence[tuple[str, str]],
) -> Corpus:
    if table is None:
        raise UsageError("no table is named", "--table paper for a new one; --adopt finds what a database has already")
    if dimension is None and vector is not None:
        raise UsageError(
            f"--vector {vector} without --dimension", "give the numbers in a vector; without both there is no vector search"
        )
    return Corpus(
        table=table,
        text=fields or ["content"],
        vector=(vector or "embedding") if dimension is not None else None,
        dimension=dimension or 0,
        distance=distance,
        analyzer=analyzer,
        pool=pool,
        reference=reference,
        names=dict(names),
    )


def _refuse_with_adopt(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} with --adopt", "the index that is there says it; leave it out")


def _ask(what: str, names: Sequence[str]) -> str:
    """One of several, by asking where somebody can answer."""
    if not _somebody_can_answer():
        raise UsageError(f"there are several to choose from: {', '.join(names)}", f"name one with --{what}")
    for number, name in enumerate(names, 1):
        typer.echo(f"{number}  {name}", err=True)
    while True:
        answer: str = typer.prompt(f"Which {what}, 1 to {len(names)}", type=str, err=True).strip()
        if answer in names:
            return answer
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]


def _somebody_can_answer() -> bool:
    return sys.stdin.isatty()


def _show_found(context: Context, found: _adopt.Adopted) -> None:
    corpus = found.corpus
    lines = [f"table {corpus.table}, {_render.counted(found.rows, 'row')}"]
    lines += [f"full-text index {index.name} over {index.field}, analyzer {index.analyzer}" for index in corpus.words]
    if corpus.vector is not None:
        aside = f" of {corpus.vector_table}" if corpus.vector_table else ""
        lines.append(f"vector index {corpus.nearest} over {corpus.vector}{aside}, {corpus.dimension} numbers, {corpus.distance}")
    lines += [
        f"{own.name} is no retriever: {own.refused}; surrecall retriever add takes it by hand"
        if own.retriever is None
        else f"{own.name} searches it: retriever {own.retriever.name}"
        for own in found.own
    ]
    for line in lines:
        context.out.print(Text(f"found {line}"), soft_wrap=True)


def _show_plan(context: Context, corpus: Corpus, files: dict[Path, str]) -> None:
    """What would be written here, and what surrecall apply would then define."""
    for path in files:
        there = ", over what is there (--force)" if path.exists() else ""
        context.out.print(f"would write {path.relative_to(context.folder).as_posix()}{there}", soft_wrap=True, highlight=False)
    sources = [*_files.core(corpus.names), *(_files.SourceFile(f"corpus/{path.name}", text) for path, text in files.items())]
    with _schema.scratch([file for file in sources if file.name.endswith(".surql")]) as reference:
        ours = [definition for definition in _inventory.functions_and_tables(reference).values() if definition.is_ours]
    tables = ", ".join(definition.name for definition in ours if definition.kind == "table")
    functions = ", ".join(definition.label for definition in ours if definition.kind == "function")
    context.out.print(f"surrecall apply would define the tables {tables}", soft_wrap=True, highlight=False)
    context.out.print(f"and the functions {functions}", soft_wrap=True, highlight=False)
    if corpus.adopted:
        context.out.print(
            f"and nothing on {corpus.table}; surrecall remove takes all of it out again", soft_wrap=True, markup=False
        )


def _next(corpus: Corpus) -> str:
    if corpus.adopted:
        questions = corpus.names.get("question", "question")
        return f"surrecall import questions FILE (or surrecall apply, and CREATE {questions}), then surrecall evaluate"
    return "surrecall import collection DIR, or surrecall apply and documents of your own"
