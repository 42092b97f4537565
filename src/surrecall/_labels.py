"""Labels as a question keeps them: plain or graded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrealdb import RecordID

from surrecall import _ids

Grades = Sequence[tuple[RecordID, float | int]]


def labels_of(grades: Grades) -> dict[str, Any]:
    """Plain labels where every grade is 1, else graded ones; no answer where none is 1 or more."""
    if all(grade == 1 for _, grade in grades):
        return {"relevant": [document for document, _ in grades], "answerable": True}
    return judged_of(grades)


def judged_of(grades: Grades) -> dict[str, Any]:
    """Labels that stay graded, whatever their grades."""
    relevant = [document for document, grade in grades if grade >= 1]
    judged = [{"document": document, "grade": grade} for document, grade in grades]
    return {"judged": judged, "relevant": relevant, "answerable": bool(relevant)}


def merged(row: dict[str, Any], grades: Grades) -> dict[str, Any]:
    """The labels of a question that is there as they are to be; graded ones stay graded."""
    return {"judged": None, **(judged_of(grades) if row.get("judged") else labels_of(grades))}


def graded(row: dict[str, Any]) -> dict[Any, tuple[RecordID, float | int]]:
    """The labels of a question by the key of their document (_ids.key); a plain one has the grade 1."""
    judged = row.get("judged") or [{"document": document, "grade": 1} for document in row["relevant"]]
    return {_ids.key(label["document"]): (label["document"], label["grade"]) for label in judged}
