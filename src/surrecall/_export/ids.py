"""Record ids as files hold them: typed in JSON, text elsewhere, and refused where they would come back as others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from surrealdb import RecordID

from surrecall import _ids
from surrecall._database import Database
from surrecall._errors import DataError
from surrecall._render import record_text

_BATCH = 500
_THERE = "SELECT VALUE id FROM $ids"
BYTE_ORDER_MARK = "\ufeff"

_T = TypeVar("_T")


def typed(record: RecordID) -> str | int:
    """An id as JSON holds it: a number bare, a string letter for letter, a UUID as its text."""
    if not isinstance(record, RecordID):
        raise DataError(f"{record!r} stands where a record belongs", "surrecall check lists such labels; mend them first")
    key = record.id
    if isinstance(key, UUID):
        return str(key)
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise DataError(
            f"{record_text(record)} has an id of several parts, which this form can't hold", "surrecall snapshot holds it"
        )
    if key == "":
        raise DataError(f"{record_text(record)} has an empty id, which this form can't hold", "surrecall snapshot holds it")
    return key


def text(record: RecordID) -> str:
    """An id as text."""
    return str(typed(record))


class Twins:
    """Refuses ids that as text would mean two records that are there, 7 and '7' for example; asks once for each.

    `what` names the form of the file.
    """

    def __init__(self, database: Database, what: str) -> None:
        self._database, self._what = database, what
        self._asked: set[tuple[str, Any]] = set()

    def refuse(self, records: Iterable[RecordID]) -> None:
        """Raise DataError when one of these has a twin."""
        twins = {(record.table_name, twin): record for record in records for twin in _twins(record)}
        unasked = [key for key in twins if key not in self._asked]
        self._asked.update(unasked)
        for batch in batches(unasked, _BATCH):
            for found in self._database.value(_THERE, ids=[RecordID(table, twin) for table, twin in batch]):
                record = twins[found.table_name, found.id]
                raise DataError(
                    f"{record_text(record)} and {record_text(found)} are two records, and one id in {self._what}",
                    "--format jsonl tells them apart",
                )


def trec(record: RecordID, what: str) -> str:
    """An id as a field of a TREC file. Raises DataError when it is empty or holds white space."""
    key = text(record)
    if not key or any(letter.isspace() or letter in ("\0", BYTE_ORDER_MARK) for letter in key):
        raise DataError(f"{record_text(record)}: {what} can't hold an id that is empty or has white space", "--format jsonl can")
    return key


def cell(record: RecordID, what: str) -> str:
    """An id as a cell of a table. Raises DataError when it is blank, which is how a table says that there is none."""
    key = text(record)
    if not key.strip():
        raise DataError(f"{record_text(record)}: {what} can't hold an id that is empty or blank", "give that record another id")
    return key


def batches(rows: Iterable[_T], size: int) -> Iterator[Sequence[_T]]:
    """Rows in lists of at most `size`."""
    remaining = iter(rows)
    while batch := list(islice(remaining, size)):
        yield batch


def _twins(record: RecordID) -> list[Any]:
    """The other ids that print like this one."""
    text(record)
    return _ids.meanings(record.id)[1:] if isinstance(record.id, str) else [str(record.id)]
