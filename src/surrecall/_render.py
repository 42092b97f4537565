"""Tables for a terminal and JSON for a pipe."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text
from surrealdb import Duration, RecordID

_BARE = re.compile(r"[A-Za-z0-9_]+")
# a result is an object, whose keys the engine sorts; tables read better in this order
_NAMES = ("retriever", "floor")
TOOK = ("median", "95th")
# what the first k cost in a prompt, an estimate
TOKENS = "tokens"
_FIRST = (
    "rank",
    "seq",
    "at",
    "text",
    "title",
    "question",
    "retriever",
    "k",
    "floor",
    "bm25",
    "vector",
    "hybrid",
    "recall",
    "questions",
)


def jsonable(value: Any) -> Any:
    """A value of the database as plain JSON types; record ids in SurrealQL's notation, times in ISO 8601."""
    if is_dataclass(value) and not isinstance(value, type):
        return jsonable(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [jsonable(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, RecordID):
        return record_text(value)
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        # a retriever's own score may be NaN, which JSON has no word for
        return None
    return value


def record_text(record: RecordID) -> str:
    """A record id in SurrealQL's notation: bare where the engine prints it bare."""
    if isinstance(record.id, str) and _BARE.fullmatch(record.id) and not record.id.isdigit():
        return f"{record.table_name}:{record.id}"
    return str(record)


def print_json(console: Console, value: Any) -> None:
    """Print one JSON document, never wrapped and never coloured."""
    console.file.write(json.dumps(jsonable(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def cell(value: Any) -> str:
    """One value as it stands in a table: three places for fractions, ids without their table, times to the second."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, RecordID):
        return printable(record_text(value).partition(":")[2])
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {cell(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(cell(item) for item in value)
    return printable(str(value))


def printable(text: str) -> str:
    """Text without control characters: no document or question may move the cursor or colour the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def counted(number: int, noun: str) -> str:
    """`1 question`, `2 questions`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None, title: str | None = None) -> Table:
    """Rows as a table; columns that are empty in every row are left out."""
    keys = list(columns) if columns else _ordered(rows)
    shown = [key for key in keys if any(row.get(key) is not None for row in rows)]
    grid = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for key in shown:
        values = [row[key] for row in rows if row.get(key) is not None]
        numeric = all(isinstance(value, int | float) for value in values)
        # what names a row, an id and a time are no use in pieces
        whole = numeric or key in _NAMES or all(isinstance(value, datetime | RecordID) for value in values)
        # a figure that is cut is another figure
        least = max(cell_len(text) for text in (key, *(cell(value) for value in values))) if whole else None
        grid.add_column(Text(key), justify="right" if numeric else "left", no_wrap=whole, overflow="fold", min_width=least)
    for row in rows:
        grid.add_row(*(Text(cell(row.get(key))) for key in shown))
    return grid


def took(row: Mapping[str, Any] | None) -> dict[str, float]:
    """The cells of TOOK from {median, p95} of fn::latency; blank where no time is known."""
    names = dict(zip(TOOK, ("median", "p95"), strict=True))
    return {name: row[key] for name, key in names.items() if row and row.get(key) is not None}


def tokens(value: float | None) -> dict[str, int]:
    """The cell of TOKENS; blank where the texts are not known."""
    return {} if value is None else {TOKENS: round(value)}


def result(value: Any) -> Table | Text:
    """Whatever a statement gave, as a table where it has rows or names, as text elsewhere."""
    if isinstance(value, Mapping):
        lists = all(isinstance(item, list) for item in value.values())
        if lists and value:
            return table(_side_by_side(value))
        return table([value])
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return table(value)
    return Text(cell(value))


def _side_by_side(lists: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    longest = max(len(items) for items in lists.values())
    return [
        {"rank": index + 1} | {key: items[index] if index < len(items) else None for key, items in lists.items()}
        for index in range(longest)
    ]


def _ordered(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return [key for key in _FIRST if key in keys] + [key for key in keys if key not in _FIRST]


def difference(compared: dict[str, Any]) -> dict[str, Any]:
    """The columns of a paired comparison: the difference, its interval, and on how many questions which side was better."""
    return {
        "difference": compared["difference"],
        "95% from": compared["interval"]["low"],
        "to": compared["interval"]["high"],
        "wins": compared["wins"],
        "ties": compared["ties"],
        "losses": compared["losses"],
    }
