"""Rows of a table in id order, a page at a time: no answer of unbounded size, and no query that takes long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from surrealdb import BoundExcluded, Range, RecordID, Table

from surrecall._database import Database

_FIRST, _LARGEST = 50, 500
# what an answer should not be larger than, by much, in characters
_ROOM = 4_000_000


def pages(
    database: Database, table: str, statement: str, size: str | None = None, **variables: Any
) -> Iterator[list[dict[str, Any]]]:
    """Pages of rows in the order of their ids, as the engine sorts them.

    `statement` is a SELECT that gives `id`, of `$rows`, which it reads up to `$limit`: `SELECT id, text FROM $rows LIMIT $limit`.
    `size` names a text field whose length decides how many rows the next page has.
    """
    rows: Any = Table(table)
    limit = _FIRST
    while True:
        page: list[dict[str, Any]] = database.value(statement, rows=rows, limit=limit, **variables)
        if page:
            yield page
        if len(page) < limit:
            return
        rows = RecordID(table, Range(BoundExcluded(page[-1]["id"].id), None))
        taken = sum(len(str(row[size])) for row in page) if size else 0
        limit = max(1, min(_LARGEST, _ROOM * len(page) // taken)) if taken else _LARGEST
