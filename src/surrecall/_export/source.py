"""What there is to take out: the corpus table of a project and its golden sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _files, _quoting
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._settings import ProjectFile

_COUNT = "RETURN (SELECT count() FROM type::table($table) GROUP ALL)[0].count ?? 0"
_SETS = "SELECT VALUE set FROM question GROUP BY set ORDER BY set"
# what a SELECT takes of a document, by bound paths
PLAIN = "id, type::field($title) AS title, type::field($text) AS text"
VECTOR = "IF $vector != NONE { type::field($vector) } AS vector"
_OF_IDS = f"SELECT {PLAIN}, {VECTOR} FROM $ids"  # noqa: S608 - of constants
# a condition on questions: those of a set, or of all
IN_SET = "($set = NONE OR set = $set)"


Progress = Callable[[int, int], None]


def silent(_done: int, _all: int) -> None:
    """Progress that nobody is told of."""


@dataclass(frozen=True)
class Source:
    """The corpus table: its name, and the paths of the field with the text and of the field with the vector, if it has one."""

    table: str
    text: str
    vector: str | None
    vector_table: str | None = None
    title: str = "title"

    @property
    def tables(self) -> list[str]:
        """The corpus table, and the one that holds its vectors where that is another."""
        return [self.table, *([self.vector_table] if self.vector_table else [])]

    @property
    def fields(self) -> dict[str, Any]:
        """Variables for statements that read them by type::field."""
        return {"text": _quoting.path(self.text), "title": self.title, "vector": self.vector and _quoting.path(self.vector)}


# the files that are in force in a folder that has none of its own
HELP_CENTRE = Source("article", "content", "embedding")


def of_project(project: ProjectFile, folder: Path) -> Source:
    """The corpus of a project; that of the help centre in a folder without one. Raises UsageError when it is not known."""
    if project.corpus is not None:
        corpus = project.corpus
        # vectors in a table of their own are no field of the document
        apart = corpus.vector_table
        return Source(corpus.table, corpus.body, None if apart else corpus.vector, apart, corpus.title or "title")
    if _files.corpus_folder(folder) == _files.packaged("surql") / "corpus":
        return HELP_CENTRE
    raise UsageError(
        "surrecall.toml of this folder has no [corpus], so the table is not known",
        "surrecall init --table … --field … --vector … --dimension …",
    )


def count(database: Database, table: str) -> int:
    """The rows of a table."""
    found: int = database.value(_COUNT, table=table)
    return found


def require_set(database: Database, wanted: str | None) -> None:
    """Raise UsageError when a golden set is not there, DataError when there is no question at all."""
    there: list[str] = database.value(_SETS)
    if not there:
        raise DataError("there is no question to export", "surrecall seed, or surrecall import questions")
    if wanted is not None and wanted not in there:
        raise UsageError(f"no golden set named {wanted}; there are: {', '.join(there)}", "surrecall questions lists them")


def documents(database: Database, source: Source, ids: Sequence[RecordID]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The documents that are there of these, by key."""
    rows = database.value(_OF_IDS, ids=list(ids), **source.fields)
    return {key(row["id"]): row for row in rows}


def key(record: RecordID) -> tuple[str, str, str]:
    """What to look a record up by: 7 and '7' are two, and an id may be a list or an object."""
    return record.table_name, type(record.id).__name__, str(record.id)


def whole(grade: Any) -> Any:
    """A grade as files have it: 2 and not 2.0."""
    if not isinstance(grade, int | float | Decimal):
        raise DataError(f"{grade!r} stands where a grade belongs", "surrecall check lists such labels; mend them first")
    return int(grade) if grade == int(grade) else float(grade)


def numbers(vector: Sequence[Any]) -> list[float]:
    """A vector as files have it: 1.0 and not 1."""
    return [float(number) for number in vector]
