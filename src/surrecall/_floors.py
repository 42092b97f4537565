"""The compiler of the floors: corpus/floors.toml in, corpus/floors.surql out."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from surrecall import _names, _quoting
from surrecall._errors import UsageError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]{0,127}")
_SOURCE = "floors.toml"
_LIMITS = ("minimum", "pin", "drop")
_BY = ("kind", "tag", "source", "split")
# what the database puts where an entry is missing; a row that is there would get no DEFAULT
_DEFAULTS: dict[str, Any] = {"metric": "recall", "set": "default", "tolerance": 0.02, "baseline": "last"}
_EXAMPLE = 'for example: [hybrid-recall-5] with retriever = "hybrid", k = 5 and minimum = 0.9'


@dataclass(frozen=True)
class Known:
    """What a floor may name: the retrievers of the project, its metrics, and the largest k that is evaluated."""

    retrievers: Sequence[str]
    metrics: Sequence[str]
    deepest: int


@dataclass(frozen=True)
class Floor:
    """One floor: its name, and its entries as they stand in the file."""

    name: str
    entries: Mapping[str, Any]


def parse(text: str, known: Known, source: str = _SOURCE) -> list[Floor]:
    """Read the floors, in file order. Raises UsageError naming the floor and the entry."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} can't be read: {error}", "mend the line it names") from error
    return [_floor(name, entries, known, source) for name, entries in tables.items()]


def compile_rows(floors: Sequence[Floor], names: _names.Names | None = None) -> str:
    """The text of floors.surql: the rows of eval_floor that come from the file, and no others of these."""
    ids = [_record(floor.name) for floor in floors]
    # what somebody wrote into the database by hand stays
    gone = f"DELETE eval_floor WHERE file = true AND id NOT IN [{', '.join(ids)}];"
    rows = [
        f"UPSERT {record} CONTENT {{\n"
        + "".join(f"  {key}: {_value(value)},\n" for key, value in (_DEFAULTS | dict(floor.entries)).items())
        + "  file: true,\n};"
        for record, floor in zip(ids, floors, strict=True)
    ]
    head = "-- The floors. Generated from floors.toml; change that file, and surrecall apply makes this one anew."
    return "\n".join([_names.rename("\n".join([head, gone]), names or {}), *(_renamed(row, names or {}) for row in rows)]) + "\n"


def entry(floor: Floor) -> str:
    """A floor as it stands in floors.toml."""
    head = f"[{json.dumps(floor.name)}]" if re.search(r"[.+]", floor.name) else f"[{floor.name}]"
    return "\n".join([head, *(f"{key} = {_toml(value)}" for key, value in floor.entries.items())])


def _floor(name: str, entries: object, known: Known, source: str) -> Floor:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{source}: {name!r} can't be the name of a floor", "letters, digits, _ + . - after a first letter, at most 128"
        )
    if not isinstance(entries, dict):
        raise UsageError(f"{source}: {name} is no table", f"write [{name}] on a line of its own")
    for key, value in entries.items():
        if key not in _ENTRIES:
            raise UsageError(f"{source}: [{name}] has {key!r}; it takes {', '.join(_ENTRIES)}", "rename or remove it")
        fits, wanted = _ENTRIES[key]
        if not fits(value):
            raise UsageError(f"{source}: [{name}] {key} is {value!r}", f"{wanted} belongs there")
    for key in ("retriever", "k"):
        if key not in entries:
            raise UsageError(f"{source}: [{name}] has no {key}", _EXAMPLE)
    if not any(limit in entries for limit in _LIMITS):
        raise UsageError(f"{source}: [{name}] asks for nothing: none of {', '.join(_LIMITS)}", _EXAMPLE)
    for key, without in (("tolerance", "pin"), ("baseline", "drop"), ("by", "class"), ("class", "by")):
        if key in entries and without not in entries:
            raise UsageError(f"{source}: [{name}] has {key}, and no {without}", f"add {without}, or remove {key}")
    _require(entries["retriever"], known.retrievers, f"{source}: [{name}] names the retriever")
    _require(entries.get("metric", _DEFAULTS["metric"]), known.metrics, f"{source}: [{name}] names the metric")
    if entries["k"] > known.deepest:
        raise UsageError(
            f"{source}: [{name}] k is {entries['k']}, beyond {known.deepest}, the largest that is evaluated",
            f"write {entries['k']} into k of {_names.PROJECT_FILE}",
        )
    return Floor(name, entries)


def _require(name: str, there: Sequence[str], what: str) -> None:
    if name not in there:
        near = difflib.get_close_matches(name, there, 1)
        raise UsageError(
            f"{what} {name!r}, which there is not; there are: {', '.join(there)}", f"did you mean {near[0]}?" if near else None
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_cutoff(value: object) -> bool:
    return type(value) is int and value > 0


_SHARE = (_is_share, "a number from 0 to 1")
_TEXT = (_is_text, "a text")
_ENTRIES: dict[str, tuple[Callable[[object], bool], str]] = {
    "retriever": _TEXT,
    "metric": _TEXT,
    "k": (_is_cutoff, "a whole number of 1 or more"),
    "minimum": _SHARE,
    "pin": _SHARE,
    "tolerance": _SHARE,
    "drop": _SHARE,
    "baseline": _TEXT,
    "set": _TEXT,
    "by": (lambda value: value in _BY, f"one of {', '.join(_BY)}"),
    "class": (lambda value: isinstance(value, str), "a text"),
    "note": (lambda value: isinstance(value, str), "a text"),
}


def _record(name: str) -> str:
    return f"type::record('eval_floor', {_quoting.text(name)})"


def _renamed(row: str, names: _names.Names) -> str:
    """A row under another name of its table; what the user wrote, a note for example, is no place for names."""
    head, brace, body = row.partition(" CONTENT {")
    return _names.rename(head, names) + brace + body


def _value(value: object) -> str:
    """A value as SurrealQL."""
    # a small number would be written with an exponent
    return _quoting.text(value) if isinstance(value, str) else format(Decimal(repr(value)), "f")


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _value(value)
