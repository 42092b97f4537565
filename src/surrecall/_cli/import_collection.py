"""surrecall import collection"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surrecall import _collection, _ingest, _render
from surrecall._cli._app import Context, Json, command, corpus_of, import_app, print_counts, progress_bar
from surrecall._cli._pending import take_up


@command("collection", group=import_app)
def import_collection(
    context: Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with documents, questions and labels.")],
    question_set: Annotated[str, typer.Option("--set", help="Golden set that the questions go to.")] = "default",
    model: Annotated[str | None, typer.Option("--model", help="Model that made the vectors; recorded with them.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be imported, and store nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Load a collection in the BEIR form: docs.jsonl or corpus.jsonl, queries.jsonl, qrels.tsv or qrels/test.tsv.

    Vectors are taken from docs*.npy with docs.ids.txt, and queries*.npy with queries.ids.txt, in the folder or in embeddings/.
    Everything is read and checked first; what is wrong is named by file and line, and then nothing is imported. A second
    import of the same files changes nothing.

    Example: surrecall import collection ./scifact
    """
    corpus = corpus_of(context)
    collection = _collection.read(folder)
    source = str(folder.resolve())
    with context.open(create=not dry_run, trial=dry_run) as database, progress_bar(context, "importing") as advance:
        imported = _ingest.ingest(
            database, context.folder, corpus, collection, source, question_set, advance, model=model, dry_run=dry_run
        )
        if not dry_run:
            take_up(context, database, advance)
    if as_json:
        _render.print_json(context.out, imported)
        return
    did = "would import" if dry_run else "imported"
    what = f"{imported.documents} documents, {imported.questions} questions, {imported.labels} labels"
    context.out.print(f"{did} {what}", highlight=False)
    if collection.documents[0].vector is None:
        context.warn("the collection has no vectors, so vector and hybrid search fail; evaluate -r bm25 works")
    print_counts(
        context,
        {
            "documents were there already": imported.documents_there,
            "questions were there already": imported.questions_there,
            "questions have no label and were left out": imported.unlabelled,
            "labels were given twice": imported.repeated_labels,
        },
    )
