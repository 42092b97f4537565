"""surrecall import questions"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from surrecall import _anchors, _import_questions, _question_file, _render, _tabular
from surrecall._cli._app import Context, Json, command, corpus_of, import_app, print_counts, progress_bar


@command("questions", group=import_app)
def import_questions(
    context: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Questions: .jsonl, .json, .csv or .tsv.")],
    form: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, jsonl, json or quepid; else that of the extension.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Their labels, where FILE has none: TREC or BEIR qrels, .csv, .jsonl.")
    ] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set of the questions that name none.")] = "default",
    vectors: Annotated[Path | None, typer.Option("--vectors", help="Vectors of the questions, an .npy file.")] = None,
    ids: Annotated[Path | None, typer.Option("--ids", help="Ids of its rows, one a line; else the .ids.txt beside it.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Model that made the vectors.")] = None,
    id_column: Annotated[str | None, typer.Option("--id", help="Column with the ids; else id or qid.")] = None,
    text_column: Annotated[str | None, typer.Option("--text", help="Column with the texts; else text, question, query.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Change questions that are there with another content.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and store nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Add questions with their labels, grades, anchors, kinds and tags to the golden set.

    Columns of CSV and TSV: id, text, relevant, grades, anchors, answerable, set, kind, tags, split, source, note; lists are
    parted by |. JSON rows have the same names, and judged: [{"document", "grade"}]. The documents must be there. In JSON the
    number 7 and the text "7" are two ids; in CSV and TSV an id is a text, and means what is there. A question without an id gets
    one of its first words and the hash of its text, the same one each time.

    A question needs a label, or answerable false; BEIR's queries.jsonl has none, so give its qrels with --labels. Of a Quepid
    export (query, docid, rating) each rating is a grade, 0 means judged and not relevant, and an empty one is no label.

    A question that is there with another content is refused, unless --replace is given: then the fields that the file gives
    (text, set, kind, tags, split, source, note, anchors, answerable, vectors with their model) are replaced, its labels added,
    and their grades changed. No label is ever taken away, and an empty cell leaves what is there. A question whose text changes
    loses the vector of the old one.

    What is wrong is named by file and line, and then nothing is imported. A second import of the same file changes nothing.

    Example: surrecall import questions queries.jsonl --labels qrels.tsv
    """
    corpus = corpus_of(context)
    options = _import_questions.Options(
        path=file,
        form=_tabular.format_of(file, form, _question_file.FORMATS),
        labels=labels,
        question_set=question_set,
        vectors=vectors,
        ids=ids,
        model=model,
        names=_question_file.Names(id_column, text_column),
        replace=replace,
        dry_run=dry_run,
    )
    with context.open() as database, progress_bar(context, "importing") as advance:
        imported = _import_questions.import_questions(database, context.folder, corpus, options, advance)
        if imported.anchors and not dry_run:
            _anchors.place_all(database)
    if as_json:
        _render.print_json(context.out, imported)
        return
    did = "would import" if dry_run else "imported"
    questions, found = _render.counted(imported.questions, "question"), _render.counted(imported.labels, "label")
    context.out.print(f"{did} {questions}, {found}", highlight=False)
    if imported.replaced:
        did = "would replace" if dry_run else "replaced"
        context.out.print(f"{did} {_render.counted(imported.replaced, 'question')}", highlight=False)
    print_counts(
        context,
        {
            "labels were added to them": imported.labels_added,
            "labels have another grade than before": imported.labels_replaced,
            "questions were there already": imported.questions_there - imported.replaced,
            "of them had no vector, and were given one": imported.vectors_filled,
            "vectors that were there have their model stated now": imported.models_stated,
            "questions have no label and were left out": imported.unlabelled,
            "labels were given twice": imported.repeated_labels,
        },
    )
    if imported.vectors_outdated:
        context.warn(
            f"{_render.counted(imported.vectors_outdated, 'question')} with another text: the vector of the old one was taken "
            "out; surrecall embed --questions-only makes new ones"
        )
    _say_anchors(context, imported.anchors or {})
    if imported.below_one:
        context.warn(
            f"no label reaches grade 1 for {_render.counted(imported.below_one, 'question')}, first "
            f"{imported.first_below_one!r}, so it is in no mean"
        )


def _say_anchors(context: Context, told: dict[str, Any]) -> None:
    if told.get("unclear"):
        context.warn(
            f"{told['unclear']} of {_render.counted(told['anchors'], 'anchor')} do not stand in their document exactly once, and "
            f"are not scored; first {told['first']}; surrecall anchors lists them"
        )
    if told.get("unusual"):
        context.warn(
            f"{told['unusual']} of {_render.counted(told['anchors'], 'anchor')} have fewer than 6 words or more than 20: a short "
            "phrase stands in many places, a long one is cut by most splitters"
        )
