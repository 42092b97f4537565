"""Fields of rows by their path, `meta.body` for the field body of the object meta, parts quoted where SurrealQL quotes them."""

from __future__ import annotations

import re
from typing import Any

_PART = re.compile(r"`((?:[^`\\]|\\.)*)`|⟨((?:[^⟩\\]|\\.)*)⟩|([^.`⟨]+)")


def parts(path: str) -> list[str]:
    """The names on the way to a field, without quotes."""
    return [re.sub(r"\\(.)", r"\1", match[1] or match[2] or match[3] or "") for match in _PART.finditer(path)]


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
