"""surrecall import labels"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surrecall import _import_labels, _label_file, _render
from surrecall._cli._app import Context, Json, command, corpus_of, import_app, print_counts, progress_bar
from surrecall._errors import UsageError


@command("labels", group=import_app)
def import_labels(
    context: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Labels: TREC or BEIR qrels, .csv or .jsonl.")],
    form: Annotated[str | None, typer.Option("--format", help="trec, tsv, csv, jsonl or beir; else told from the file.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Change labels that are there with another grade.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and store nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Add labels (qrels) to questions that are there.

    A line is query-id, corpus-id, score, with a header or without, or TREC's four fields: question, 0, document, grade. Relevant
    from grade 1. Questions and documents must be there; an id means the one that prints so.

    A label that is there with another grade is refused, with both grades, unless --replace is given. No label is ever taken away.
    What is wrong is named by file and line, and then nothing is changed. A second import of the same file changes nothing.

    Example: surrecall import labels qrels.tsv
    """
    if form is not None and form not in _label_file.FORMATS:
        raise UsageError(f"--format {form!r} is none of labels", f"one of {', '.join(_label_file.FORMATS)}")
    corpus = corpus_of(context)
    with context.open() as database, progress_bar(context, "importing") as advance:
        imported = _import_labels.import_labels(database, corpus, file, form, replace=replace, dry_run=dry_run, progress=advance)
    if as_json:
        _render.print_json(context.out, imported)
        return
    did = "would import" if dry_run else "imported"
    labels, questions = _render.counted(imported.labels, "label"), _render.counted(imported.questions, "question")
    context.out.print(f"{did} {labels}, for {questions}", highlight=False)
    print_counts(
        context,
        {
            "labels with another grade than before": imported.replaced,
            "labels were there already": imported.labels_there,
            "labels were given twice": imported.repeated_labels,
            "questions have a relevant document now, and had none": imported.now_answerable,
            "questions have no relevant document any more, and are in no mean": imported.no_longer_answerable,
        },
    )
