"""Ids of files and ids of records: which record a file means, asked of the database many at once and by bound values.

A file that tells numbers from texts (JSON) means a number by a number and a text by a text, letter for letter. Any other file has
texts only; there `7` may be the record '7', the record 7 or, of that form, a UUID, and what exists decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from surrealdb import RecordID

from surrecall._database import Database

# how the engine prints an int: no sign but minus, no leading zero
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_BLANKS = " \t\r\n\f\v"
_BATCH = 500
_THERE = "SELECT VALUE id FROM $ids"


@dataclass(frozen=True)
class Name:
    """An id as a file has it; `typed` when the file tells numbers from texts."""

    value: str | int
    typed: bool = False

    def __str__(self) -> str:
        return str(self.value)

    @property
    def shown(self) -> str:
        """How a message writes it: a text in quotes, a number bare."""
        return repr(self.value)


def of_json(value: Any) -> Name | None:
    """The id that a value of a JSON file is; None for what can be none: an empty text, a fraction, more than 64 bits."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return None
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        return None
    return Name(value, typed=True)


def key(record: RecordID) -> Any:
    """The id of a record as a key of a dict; an array or object, which can be none, by what it prints."""
    return record.id if isinstance(record.id, str | int | UUID) else (type(record.id).__name__, repr(record.id))


def new(table: str, name: Name) -> RecordID:
    """The id of a row that is to be made."""
    return RecordID(table, name.value)


def meanings(value: str) -> list[str | int | UUID]:
    """The ids that print as a text."""
    found: list[str | int | UUID] = [value]
    if _INTEGER.fullmatch(value) and _SMALLEST <= int(value) <= _LARGEST:
        found.append(int(value))
    if _UUID.fullmatch(value):
        found.append(UUID(value))
    return found


def resolve(database: Database, table: str, names: Iterable[Name]) -> dict[Name, list[RecordID]]:
    """The records of a table that each name can mean: one as a rule, none, or several where the name is ambiguous.

    Blanks around a text are taken for part of the id when a record has them, and else for the file's own.
    """
    wanted = list(dict.fromkeys(names))
    candidates = {name: [*_candidates(name), *_candidates(_stripped(name))] for name in wanted}
    ids = list(dict.fromkeys(value for values in candidates.values() for value in values))
    there: dict[Any, RecordID] = {}
    for start in range(0, len(ids), _BATCH):
        batch = [RecordID(table, value) for value in ids[start : start + _BATCH]]
        there |= {record.id: record for record in database.value(_THERE, ids=batch)}
    return dict(_matched(candidates, there))


def among(names: Iterable[Name], there: Iterable[Any]) -> dict[Name, list[Any]]:
    """As resolve, against ids that are at hand and not in a database."""
    known = {value: value for value in there}
    return dict(_matched({name: [*_candidates(name), *_candidates(_stripped(name))] for name in names}, known))


def _matched(candidates: Mapping[Name, list[Any]], there: Mapping[Any, Any]) -> Iterator[tuple[Name, list[Any]]]:
    for name in candidates:
        found = [there[value] for value in _candidates(name) if value in there]
        yield name, found or [there[value] for value in _candidates(_stripped(name)) if value in there]


def _candidates(name: Name) -> list[str | int | UUID]:
    if isinstance(name.value, int):
        return [name.value]
    found = meanings(name.value)
    # JSON has no word for a UUID, so there a text may mean one
    return [value for value in found if not isinstance(value, int)] if name.typed else found


def _stripped(name: Name) -> Name:
    if name.typed or isinstance(name.value, int):
        return name
    return Name(name.value.strip(_BLANKS) or name.value)
