"""surrecall import documents"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _document_file, _import_documents, _render, _tabular
from surrecall._cli._app import Context, Json, command, corpus_of, import_app, print_counts, progress_bar
from surrecall._cli._documents import File, Form, IdColumn, Ids, PrependTitle, TextColumn, TitleColumn, VectorColumn, Vectors
from surrecall._cli._floors import show_floors
from surrecall._cli._pending import take_up


@command("documents", group=import_app)
def import_documents(
    context: Context,
    file: File,
    form: Form = None,
    vectors: Vectors = None,
    ids: Ids = None,
    model: Annotated[str | None, typer.Option("--model", help="Model that made the vectors; recorded with them.")] = None,
    vector_column: VectorColumn = None,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    prepend_title: PrependTitle = False,
    guard: Annotated[
        bool, typer.Option("--guard", help="All in one transaction, refused when a floor would break; ends with 1 then.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and store nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Add documents to the corpus table: id, text, and a title and a vector where they have them.

    Other columns are left out, and named. In JSON the number 7 and the text "7" are two ids; in CSV and TSV an id is a text,
    kept letter for letter. What is wrong is named by file and line, and then nothing is imported. A second import of the same
    file changes nothing.

    With --guard the floors are measured before anything is stored, and a file that breaks one leaves nothing; at most 500
    documents.

    Example: surrecall import documents docs.jsonl --vectors docs.npy --ids docs.ids.txt
    """
    corpus = corpus_of(context)
    options = _import_documents.Options(
        path=file,
        form=_tabular.format_of(file, form, _document_file.FORMATS),
        names=_document_file.Names(id_column, text_column, title_column, vector_column),
        vectors=vectors,
        ids=ids,
        model=model,
        prepend_title=prepend_title,
        dry_run=dry_run,
        guard=guard,
    )
    with context.open(create=not dry_run, trial=dry_run) as database, progress_bar(context, "importing") as advance:
        imported = _import_documents.import_documents(database, context.folder, corpus, options, advance)
        if not dry_run:
            take_up(context, database, advance)
    if as_json:
        _render.print_json(context.out, imported)
        return
    did = "would import" if dry_run else "imported"
    documents = _render.counted(imported.documents, "document")
    context.out.print(f"{did} {documents}, {imported.vectors} with a vector", highlight=False)
    print_counts(
        context,
        {
            "documents were there already": imported.documents_there,
            "of them had no vector, and were given one": imported.vectors_filled,
        },
    )
    if imported.guarded is not None:
        show_floors(context, imported.guarded["floors"])
    if imported.columns_left_out:
        shown, more = imported.columns_left_out[:10], len(imported.columns_left_out) - 10
        line = f"columns left out: {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")
        context.out.print(_render.printable(line), markup=False, highlight=False, soft_wrap=True)
    if imported.model_taken_for:
        context.warn(f"without --model the vectors are taken for those of {imported.model_taken_for}, which is recorded")
    if imported.guarded is not None and imported.guarded.get("note"):
        context.warn(imported.guarded["note"])
    if imported.titles_left_out:
        context.warn(f"{imported.titles_left_out} titles were left out: {corpus.table} has no field title")
    if imported.empty:
        context.warn(f"{imported.empty} documents have no text, so BM25 can't find them")
    if corpus.vector is not None and imported.vectors < imported.documents:
        without = _render.counted(imported.documents - imported.vectors, "document")
        context.warn(f"no vector for {without}, so vector search can't find them")
