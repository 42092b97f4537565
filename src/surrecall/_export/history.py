"""The history, eval_run, row by row at full precision: CSV and JSON Lines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from surrecall._database import Database
from surrecall._errors import DataError
from surrecall._export.output import Lines
from surrecall._render import record_text

# times as the engine prints them, which has all nine places
_RUNS = """
SELECT *, <string> at AS at, <string> record::id(id) AS id, evaluation AS evaluation FROM eval_run
WHERE seq > $after ORDER BY seq LIMIT $limit
"""
_FIELDS = "RETURN object::keys((INFO FOR TABLE eval_run).fields)"
_PAGE = 500
# these first; then what else the table has, the metrics of tomorrow too
_FIRST = ("seq", "at", "retriever", "k", "set", "questions", "recall", "precision", "p", "hit", "rr", "ap", "ndcg", "judged")
_LAST = ("empty", "errors", "repeats", "evaluation", "note", "previous", "hash")


class Form(StrEnum):
    """The forms of a file of runs."""

    CSV = "csv"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Exported:
    """What was written."""

    runs: int


def export(database: Database, form: Form, lines: Lines) -> Exported:
    """Write every run, oldest first. Raises DataError when there is none."""
    fields = {name for name in database.value(_FIELDS) if "." not in name and "[" not in name}
    columns = [name for name in _FIRST if name in fields]
    columns += sorted(fields.difference(_FIRST, _LAST)) + [name for name in _LAST if name in fields]
    write_row = lines.table(columns) if form is Form.CSV else None
    runs = after = 0
    while page := database.value(_RUNS, after=after, limit=_PAGE):
        for row in page:
            values = {name: _plain(row[name]) for name in columns if row.get(name) is not None}
            if write_row is None:
                lines.json(values)
            else:
                write_row({name: value if isinstance(value, str) else repr(value) for name, value in values.items()})
        runs, after = runs + len(page), page[-1]["seq"]
    if not runs:
        raise DataError("the history is empty", "surrecall evaluate appends to it")
    return Exported(runs)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else record_text(value)
