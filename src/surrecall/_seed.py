"""The demo data of the help centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from surrecall import _files
from surrecall._errors import DataError, SchemaError, SurrecallError

if TYPE_CHECKING:
    from surrecall._database import Database

_COUNT = "RETURN { articles: count(SELECT VALUE id FROM article), questions: count(SELECT VALUE id FROM question) }"


@dataclass(frozen=True)
class Seeded:
    """Rows that are there now, and whether this call put them there."""

    articles: int
    questions: int
    added: bool


def seed(database: Database) -> Seeded:
    """Load the ten articles and eight questions in one transaction; leaves tables that hold rows alone."""
    try:
        there = database.value(_COUNT)
    except SurrecallError as error:
        raise SchemaError(f"the help centre's tables are not there: {error.message}", "surrecall apply") from error
    if there["articles"] or there["questions"]:
        return Seeded(there["articles"], there["questions"], added=False)
    texts = [_files.seed(name).text for name in ("articles", "questions")]
    try:
        database.run("BEGIN;\n" + "\n".join(texts) + "\nCOMMIT;")
    except SurrecallError as error:
        raise DataError(
            f"the demo data does not fit these tables, nothing was stored: {error.message}",
            "seed belongs to the help centre; use another database (--db) for the demo",
        ) from error
    counted = database.value(_COUNT)
    return Seeded(counted["articles"], counted["questions"], added=True)
