"""What figures stand on, slices and curves, driven so that no statement takes longer than a client waits.

Everything is worked out in the database from stored answers; here it is passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from surrealdb import RecordID

from surrecall._database import Database

_ROW = "RETURN fn::stored_evaluation($evaluation, $set, $retrievers)"
_PART = "RETURN fn::resolution_part($evaluation, $retriever, $k)"
_END = "RETURN fn::resolution_end($evaluation, $parts)"
_SLICES = "RETURN fn::slices($evaluation, $retriever, $options)"
_VERDICTS = "RETURN fn::slice_verdicts($rows, $metric)"
_CURVE = """
LET $curve = fn::curve($evaluation, $retriever);
RETURN { curve: $curve, gain: fn::reranker_gain($curve, $prompt_k, $pool_k) };
"""
_ALARMS = "RETURN fn::label_alarms($sets)"

Progress = Callable[[int, int], None]


def evaluation_of(
    database: Database, evaluation: RecordID | None, question_set: str | None, retrievers: Sequence[str] | None
) -> dict[str, Any]:
    """The row of the evaluation to read, the newest complete one by default. Raises UsageError naming what there is."""
    given: dict[str, Any] = {"evaluation": evaluation, "set": question_set, "retrievers": list(retrievers or []) or None}
    row: dict[str, Any] = database.value(_ROW, **given)
    return row


def alarms(database: Database, question_sets: Sequence[str | None]) -> list[str]:
    """What whoever shows figures of some golden sets has to say: labels that an audit found wrong."""
    found: list[str] = database.value(_ALARMS, sets=list(question_sets))
    return found


def retrievers_of(row: dict[str, Any]) -> list[str]:
    """The retrievers of an evaluation, in its order."""
    return list(dict.fromkeys(call["retriever"] for call in row["calls"]))


def resolution(
    database: Database, evaluation: RecordID, retrievers: Sequence[str], k: int | None = None
) -> dict[str, Any] | None:
    """What fn::resolution_end gives; None where no question has a score."""
    parts = [database.value(_PART, evaluation=evaluation, retriever=name, k=k) for name in retrievers]
    parts = [part for part in parts if part["questions"]]
    if not parts:
        return None
    told: dict[str, Any] = database.value(_END, evaluation=evaluation, parts=parts)
    return told


def slices(database: Database, evaluation: RecordID, retrievers: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    """The rows of fn::slices of an evaluation, with what fn::slice_verdicts says of them; options as fn::slices takes them."""
    rows = [row for name in retrievers for row in slice_rows(database, evaluation, name, options)]
    return verdicts(database, rows, options.get("metric"))


def slice_rows(database: Database, evaluation: RecordID, retriever: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of fn::slices of one retriever."""
    rows: list[dict[str, Any]] = database.value(_SLICES, evaluation=evaluation, retriever=retriever, options=options)
    return rows


def verdicts(database: Database, rows: list[dict[str, Any]], metric: str | None = None) -> dict[str, Any]:
    """{rows, sentences, steps, warnings}: rows of fn::slices, judged by a metric, else recall, and what they hide."""
    told: dict[str, Any] = database.value(_VERDICTS, rows=rows, metric=metric)
    return {"rows": rows} | told


def curves(
    database: Database,
    row: dict[str, Any],
    retrievers: Sequence[str],
    prompt_k: int | None,
    pool_k: int | None,
    progress: Progress = lambda _done, _all: None,
) -> list[dict[str, Any]]:
    """{curve: as fn::curve, gain: as fn::reranker_gain} of each retriever."""
    told = []
    for name in retrievers:
        told.append(database.value(_CURVE, evaluation=row["id"], retriever=name, prompt_k=prompt_k, pool_k=pool_k))
        progress(len(told), len(retrievers))
    return told
