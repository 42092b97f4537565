"""Fields of rows by their path, `meta.body` for the field body of the object meta, parts quoted where SurrealQL quotes them."""

from __future__ import annotations

from typing import Any

from surrecall._quoting import parts


def place(row: dict[str, Any], path: str, value: Any) -> None:
    """Set a field, making the objects on the way."""
    *above, last = parts(path)
    for name in above:
        row = row.setdefault(name, {})
    row[last] = value


def pick(row: Any, path: str) -> Any:
    """The value of a field; None where it or an object on the way is missing."""
    for name in parts(path):
        row = row.get(name) if isinstance(row, dict) else None
    return row
