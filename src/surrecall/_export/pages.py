"""Rows of a table in id order, a page at a time: no answer of unbounded size, and no query that takes long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from surrealdb import BoundExcluded, Range, RecordID, Table

from surrecall._database import Database

# A range of ids gives rows in their order. Inside a closure it is read up to LIMIT; outside, on the other executor, to its end,
# so that each page would cost as much as all that are left.
_PAGE = "RETURN [$rows].map(|$from| (SELECT {fields} FROM $from WHERE {where} LIMIT $limit))[0]"
_FIRST, _LARGEST = 50, 500
# what an answer should not be larger than, by much, in characters
_ROOM = 4_000_000


def pages(
    database: Database, table: str, fields: str, where: str = "true", *, size: str | None = None, **variables: Any
) -> Iterator[list[dict[str, Any]]]:
    """Pages of rows in the order of their ids, as the engine sorts them.

    `fields` is what a SELECT takes, `id` among it; `size` names a text of it whose length decides how many rows come next.
    """
    rows: Any = Table(table)
    limit, statement = _FIRST, _PAGE.format(fields=fields, where=where)
    while True:
        page: list[dict[str, Any]] = database.value(statement, rows=rows, limit=limit, **variables)
        if page:
            yield page
        if len(page) < limit:
            return
        rows = RecordID(table, Range(BoundExcluded(page[-1]["id"].id), None))
        taken = sum(len(str(row[size])) for row in page) if size else 0
        limit = max(1, min(_LARGEST, _ROOM * len(page) // taken)) if taken else _LARGEST
