"""Labels: TREC qrels, the BEIR form, JSON Lines and CSV."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._errors import DataError
from surrecall._export import ids, source
from surrecall._export.output import Lines
from surrecall._export.pages import pages
from surrecall._render import record_text

_LABELS = "id, fn::labels_of({ judged: judged, relevant: relevant }) AS labels"
COLUMNS = ("question", "document", "grade")
_BEIR_COLUMNS = ("query-id", "corpus-id", "score")


class Form(StrEnum):
    """The forms of a file of labels."""

    TREC = "trec"
    BEIR = "beir"
    JSONL = "jsonl"
    CSV = "csv"


@dataclass(frozen=True)
class Label:
    """One label: a question, a document, a grade."""

    question: RecordID
    document: RecordID
    grade: Any


@dataclass(frozen=True)
class Exported:
    """What was written; `unlabelled` questions have no label, so no line."""

    questions: int
    labels: int
    unlabelled: int


def export(database: Database, form: Form, lines: Lines, question_set: str | None = None) -> Exported:
    """Write the labels of a set, or of all. Raises DataError naming what the form can't hold."""
    source.require_set(database, question_set)
    questions, found = of_set(database, question_set)
    if not found:
        raise DataError("no question has a label, so there is nothing to export", "surrecall import labels")
    write(database, form, lines, found)
    labelled = len({source.key(label.question) for label in found})
    return Exported(labelled, len(found), questions - labelled)


def of_set(database: Database, question_set: str | None) -> tuple[int, list[Label]]:
    """The number of questions of a set, or of all, and their labels, in id order."""
    rows = [row for page in pages(database, database.table("question"), _LABELS, source.IN_SET, set=question_set) for row in page]
    return len(rows), [Label(row["id"], label["document"], label["grade"]) for row in rows for label in row["labels"]]


def write(database: Database, form: Form, lines: Lines, labels: list[Label]) -> None:
    """Write labels in their order, or by the text of the question's id where ids are text."""
    if form is Form.JSONL:
        for label in labels:
            grade = source.whole(label.grade)
            lines.json({"question": ids.typed(label.question), "document": ids.typed(label.document), "grade": grade})
        return
    what = {Form.TREC: "TREC qrels", Form.BEIR: "the BEIR form", Form.CSV: "CSV"}[form]
    ids.Twins(database, what).refuse(record for label in labels for record in (label.question, label.document))
    # stable: the labels of a question stay in their order
    ordered = sorted(labels, key=lambda label: ids.text(label.question))
    if form is Form.TREC:
        for label in ordered:
            question, document = ids.trec(label.question, what), ids.trec(label.document, what)
            lines.write(f"{question} 0 {document} {_integer(label, what)}\n")
        return
    columns = _BEIR_COLUMNS if form is Form.BEIR else COLUMNS
    write_row = lines.table(columns, "\t" if form is Form.BEIR else ",")
    for label in ordered:
        grade = _integer(label, what) if form is Form.BEIR else source.whole(label.grade)
        write_row(dict(zip(columns, (ids.cell(label.question, what), ids.cell(label.document, what), str(grade)), strict=True)))


def _integer(label: Label, what: str) -> int:
    grade = source.whole(label.grade)
    if not isinstance(grade, int):
        raise DataError(
            f"{record_text(label.question)} grades {record_text(label.document)} {grade}; {what} hold whole numbers only",
            "--format jsonl or csv holds fractions",
        )
    return grade
