"""Asking why labels were missed. Ranks, verdicts and counts are the database's; here the work is cut into pieces."""

from __future__ import annotations

from typing import Any

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._shards import Progress, Shards, joined

_LAST = "RETURN (SELECT position, record::id(id) AS name FROM retriever ORDER BY position DESC LIMIT 1)[0].name"
_DIAGNOSE = "RETURN fn::diagnose($retriever, $question, $options)"
_MISSED = "RETURN fn::missed_questions($evaluation, $retriever, $k, NONE)"
_WHY = "RETURN fn::misses_of($retriever, $missed, $options)"
_SUMMARY = "RETURN fn::misses_summary($counted, $rows)"
_DEPTH_NOTE = "RETURN fn::depth_note(math::max([$k, $depth ?? fn::corpus_pool()]))"
_NOTE = "RETURN fn::note_miss($question, $kind, $note)"
# a diagnosis asks every list of a question, and looks at every vector
_FIRST = 2


def last_retriever(database: Database) -> str:
    """The name of the retriever that stands last in the registry."""
    return str(database.value(_LAST))


def diagnose(
    database: Database, retriever: str, question: RecordID | dict[str, Any], k: int, depth: int | None = None
) -> dict[str, Any]:
    """What fn::diagnose gives for one question of the golden set, or one made of a text and a vector."""
    options = {"k": k} | ({} if depth is None else {"depth": depth})
    told: dict[str, Any] = database.value(_DIAGNOSE, retriever=retriever, question=question, options=options)
    return told


def misses(
    database: Database, evaluation: RecordID, retriever: str, k: int, depth: int | None, progress: Progress
) -> dict[str, Any]:
    """Every label that a retriever missed in a stored evaluation, and why: `rows` and `summary`, as the database gives them."""
    counted = database.value(_MISSED, evaluation=evaluation, retriever=retriever, k=k)
    missed = counted["missed"]
    options: dict[str, Any] = {"k": k, "words": False, "rel": counted["rel"]} | ({} if depth is None else {"depth": depth})

    def work(start: int, end: int) -> Any:
        return database.value(_WHY, retriever=retriever, missed=missed[start:end], options=options)

    rows = joined(Shards(len(missed), progress).run(len(missed), work, _FIRST))
    summary = database.value(_SUMMARY, counted=counted, rows=rows)
    return {"summary": summary, "rows": rows, "note": database.value(_DEPTH_NOTE, depth=depth, k=k)}


def note(database: Database, question: RecordID, kind: str, text: str | None) -> dict[str, Any]:
    """Keep a reader's verdict on a question. Raises UsageError for an unknown kind or question."""
    row: dict[str, Any] = database.value(_NOTE, question=question, kind=kind, note=text)
    return row
