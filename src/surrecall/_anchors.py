"""Driving what is done with anchors in parts. Where they stand is found in the database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from surrecall import _writer
from surrecall._database import Database
from surrecall._errors import UsageError
from surrecall._retry import retried

_PLACE = "RETURN fn::place_anchors($set, $retrievers, $after, $count)"
_TWINS = "RETURN fn::note_twins($after, $count)"
_REPORT = "RETURN fn::anchor_report($table, $questions)"
_ANCHORED = "SELECT VALUE id FROM question WHERE set = $set AND type::is_array(anchors) AND anchors.len() > 0 ORDER BY id"
_TABLES = "SELECT VALUE record::id(id) FROM chunking ORDER BY id"
_ADD = "RETURN fn::chunking_add($table, $fields)"
_REMOVE = "RETURN fn::chunking_remove($table)"
_LIST = "RETURN fn::chunkings()"
_SETS = "RETURN (SELECT set FROM question WHERE type::is_array(anchors) AND anchors.len() > 0 GROUP BY set ORDER BY set).set"
_RETRIEVERS = "RETURN (SELECT id FROM retriever ORDER BY id).map(|$row| record::id($row.id))"
# documents are read anew for each part, so the first is small and the next as large as a few seconds allow
_FIRST, _LARGEST, _SECONDS = 100, 5000, 6.0
_QUESTIONS, _DOCUMENTS = 150, 200


def place(database: Database, question_set: str, retrievers: Sequence[str]) -> None:
    """Look the anchors of a golden set up in the tables of chunks that these retrievers return."""
    asked = {"set": question_set, "retrievers": list(retrievers)}
    after, count = None, _FIRST
    while True:
        began = time.monotonic()
        part = retried(partial(database.value, _PLACE, after=after, count=count, **asked))
        after = part.get("last")
        if after is None:
            return
        fitting = int(count * _SECONDS / max(time.monotonic() - began, 1e-3))
        count = max(1, min(_LARGEST, fitting, count * 8))


def place_all(database: Database) -> None:
    """Look the anchors of every golden set up in every table of chunks, so that the next evaluation finds it done."""
    retrievers = database.value(_RETRIEVERS)
    for question_set in database.value(_SETS):
        place(database, question_set, retrievers)


def note_twins(database: Database) -> None:
    """Look through the corpus for phrases of anchors that stand in other documents too, and note them."""
    after = None
    while True:
        part = retried(partial(database.value, _TWINS, after=after, count=_DOCUMENTS))
        after = part.get("last")
        if after is None:
            return


def tables(database: Database) -> list[str]:
    """The registered tables of chunks."""
    found: list[str] = database.value(_TABLES)
    return found


def report(database: Database, question_set: str, table: str | None) -> list[dict[str, Any]]:
    """Rows of fn::anchor_report over a golden set. Raises UsageError for a table that is not registered."""
    if table is not None and table not in (there := tables(database)):
        others = f"; there are: {', '.join(there)}" if there else ""
        raise UsageError(f"{table} is no registered table of chunks", f"surrecall chunking add {table}{others}")
    questions = database.value(_ANCHORED, set=question_set)
    parts = [questions[start : start + _QUESTIONS] for start in range(0, len(questions), _QUESTIONS)]
    return [row for part in parts for row in database.value(_REPORT, table=table, questions=part)]


def add_chunking(database: Database, table: str, fields: dict[str, str]) -> dict[str, Any]:
    """Register a table of chunks; its row."""
    _writer.require_writer(database, "chunking")
    row: dict[str, Any] = database.value(_ADD, table=table, fields=fields)
    return row


def remove_chunking(database: Database, table: str) -> None:
    """Take a table of chunks out of the registry."""
    _writer.require_writer(database, "change")
    database.run(_REMOVE, table=table)


def chunkings(database: Database) -> list[dict[str, Any]]:
    """The registered tables of chunks."""
    rows: list[dict[str, Any]] = database.value(_LIST)
    return rows
