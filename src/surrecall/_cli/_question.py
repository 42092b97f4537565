"""Which question a command is about, and the vector of one that is not in the golden set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._errors import DataError, SurrecallError, UsageError

# a question is named by its id, with or without its table, or by its text; anything else is free text
_FIND = """
SELECT VALUE id FROM question WHERE <string> id = $asked OR <string> record::id(id) = $asked OR text = $asked ORDER BY id LIMIT 1
"""


def find_question(database: Database, asked: str) -> RecordID | None:
    """The question of the golden set that has this id, with or without its table, or this text."""
    found: list[RecordID] = database.value(_FIND, asked=asked)
    return found[0] if found else None


@contextmanager
def as_free_text(asked: str, retriever: str, *, without_vector: bool) -> Iterator[None]:
    """Where a retriever refuses a free text without a vector, say that it is no question of the golden set either."""
    try:
        yield
    except SurrecallError as error:
        if not without_vector or error.statement is None or isinstance(error, UsageError):
            raise
        raise DataError(
            f"no question has the id or text {asked!r}, and free text has no vector for {retriever} ({error.message})",
            "surrecall questions lists the golden set; or give --vector",
        ) from error


def vector_of(text: str | None) -> list[float] | None:
    """A vector as it is given on the command line. Raises UsageError when it is no list of numbers."""
    if text is None:
        return None
    try:
        numbers = json.loads(text)
    except json.JSONDecodeError:
        numbers = None
    if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
        raise UsageError(f"--vector is no list of numbers: {text[:40]!r}", "for example: --vector '[0.1, 0.9, 0.25, 0]'")
    return [float(number) for number in numbers]
