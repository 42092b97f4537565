"""surrecall whatif"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from surrecall import _document_file, _import_documents, _render, _resolution, _tabular, _whatif
from surrecall._cli._app import Context, Json, command, corpus_of, cutoffs, print_counts, progress_bar
from surrecall._cli._documents import File, Form, IdColumn, Ids, PrependTitle, TextColumn, TitleColumn, VectorColumn, Vectors
from surrecall._cli._floors import show_floors
from surrecall._cli._resolution import warn_all

# more would push the figures out of sight
_SHOWN = 20


@command("whatif")
def whatif(
    context: Context,
    file: File,
    form: Form = None,
    vectors: Vectors = None,
    ids: Ids = None,
    vector_column: VectorColumn = None,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    prepend_title: PrependTitle = False,
    k: Annotated[list[str] | None, typer.Option("-k", "--k", help="Cutoffs: 1,3,5; else those of surrecall.toml.")] = None,
    retriever: Annotated[
        list[str] | None, typer.Option("-r", "--retriever", help="Only this one; may be given more than once.")
    ] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    metric: Annotated[str, typer.Option("--metric", "-m", help="Any metric of fn::score.")] = "recall",
    as_json: Json = False,
) -> None:
    """Say what some documents would change, question by question, and store nothing.

    A row is a document to add, or to put in the place of the one with its id, of which fields that the file does not have are
    kept. A row whose field delete is true says that the document goes; it needs its id only.

    Both states are measured here and now, in a transaction that is undone: the golden set without the change and with it. A
    delete that a label forbids is named, with the questions, and left out. Floors are judged as the guard would.

    Example: surrecall whatif docs.csv -k 3
    """
    corpus = corpus_of(context)
    documents = _import_documents.Options(
        path=file,
        form=_tabular.format_of(file, form, _document_file.FORMATS),
        names=_document_file.Names(id_column, text_column, title_column, vector_column),
        vectors=vectors,
        ids=ids,
        prepend_title=prepend_title,
    )
    options = _whatif.Options(
        documents=documents,
        cutoffs=cutoffs(k, context.project.cutoffs),
        retrievers=retriever,
        question_set=question_set,
        metric=metric,
    )
    with context.open() as database, progress_bar(context, "trying") as advance:
        told = _whatif.whatif(database, corpus, options, advance)
        alarms = _resolution.alarms(database, [question_set])
    if as_json:
        _render.print_json(context.out, told)
    else:
        _show(context, told, metric)
    _warn(context, told, corpus.table)
    warn_all(context, {"warnings": alarms})


def _show(context: Context, told: _whatif.WhatIf, metric: str) -> None:
    rows = told.report["rows"]
    counted = [row | {"fixed": len(row["fixed"]), "broke": len(row["broke"])} for row in rows]
    means = ("retriever", "k", "questions", "before", "after", "difference", "fixed", "broke")
    context.show(_render.table(counted, means, title=metric))
    for what in ("fixed", "broke"):
        found = [{"retriever": row["retriever"], "k": row["k"], **one} for row in rows for one in row[what]]
        if found:
            context.out.print()
            columns = ("retriever", "k", "question", "text", "before", "after")
            context.show(_render.table(found[:_SHOWN], columns, title=what))
            if len(found) > _SHOWN:
                _say(context, f"the first {_SHOWN} of {len(found)}; --json has all")
    show_floors(context, told.report["floors"])
    if told.forbidden:
        context.out.print()
        kept = [
            {"document": row["document"], "is a label of": [one["text"] for one in row["questions"]]} for row in told.forbidden
        ]
        context.show(_render.table(kept, title="can't be deleted, and left out"))
    context.out.print()
    documents = told.report["documents"]
    counts = {"add": told.added, "replace": told.replaced, "delete": told.deleted}
    does = ", ".join(f"{what} {_render.counted(count, 'document')}" for what, count in counts.items() if count)
    _say(context, f"it would {does or 'change nothing'}")
    print_counts(context, {"documents are there as in the file": told.unchanged})
    _say(context, f"{documents['before']} documents now, {documents['after']} with the change; nothing is stored")


def _warn(context: Context, told: _whatif.WhatIf, table: str) -> None:
    left_out = max((row["left_out"] for row in told.report["rows"]), default=0)
    failed: dict[str, Any] = {}
    for error in told.report["errors"]:
        failed.setdefault(error["retriever"], error["message"])
    lines = [f"{name} failed on a question, which is in no figure: {message}" for name, message in failed.items()]
    if left_out:
        lines.append(f"{_render.counted(left_out, 'question')} left out: the retriever failed, or a delete takes a label")
    if told.stale_vectors:
        lines.append(f"{told.stale_vectors} documents would keep the vector of their old text; give --vectors")
    if told.without_vector:
        lines.append(f"{told.without_vector} documents have no vector, so vector search can't find them")
    if told.titles_left_out:
        lines.append(f"{told.titles_left_out} titles were left out: {table} has no field for them")
    if told.columns_left_out:
        lines.append(f"columns left out: {', '.join(told.columns_left_out[:10])}")
    for line in lines:
        context.warn(line)


def _say(context: Context, line: str) -> None:
    context.out.print(_render.printable(line), markup=False, highlight=False, soft_wrap=True)
