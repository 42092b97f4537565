"""Which question a command is about, and the vector of one that is not in the golden set."""

from __future__ import annotations

import json

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._errors import UsageError

# a question is named by its id, with or without its table, or by its text; anything else is free text
_FIND = """
SELECT VALUE id FROM question WHERE <string> id = $asked OR <string> record::id(id) = $asked OR text = $asked ORDER BY id LIMIT 1
"""


def find_question(database: Database, asked: str) -> RecordID | None:
    """The question of the golden set that has this id, with or without its table, or this text."""
    found: list[RecordID] = database.value(_FIND, asked=asked)
    return found[0] if found else None


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
