"""Rows that hold texts and vectors: read in pages, written in small transactions. The corpus is a table of the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from surrealdb import RecordID

from surrecall import _quoting
from surrecall._database import Database
from surrecall._errors import DataError, SurrecallError
from surrecall._render import record_text
from surrecall._retry import retried

# rows looked at by one statement, whether they lack a vector or not: each answers long before a client gives up on it
_PAGE = 1000
# a full-text index makes large transactions slow out of proportion
_STORED_AT_ONCE = 32


@dataclass(frozen=True)
class Place:
    """A field that holds vectors of `dimension` numbers, made from the fields `texts` and `title`; all may be paths.

    `role` is 'question' or 'document'; `table` is the name that the table has in this database.
    """

    role: str
    table: str
    texts: tuple[str, ...]
    vector: str
    dimension: int
    title: str = "title"
    # what a row is called, where that is not its role
    noun: str | None = None

    @property
    def label(self) -> str:
        """How messages name it, for example `paper.embedding`."""
        return f"{self.table}.{self.vector}"


@dataclass(frozen=True)
class Count:
    """How many rows there are, how many of them have no vector, and how many have one of an unknown model."""

    rows: int
    lacking: int
    unknown: int


@dataclass(frozen=True)
class Row:
    """One row as it was read: `texts` in the order of the place's; `has_vector` says whether it has one already."""

    id: RecordID
    texts: list[Any]
    title: Any
    has_vector: bool

    @property
    def whole(self) -> str:
        """What is embedded: the title where there is one that does not open the text already, and the text."""
        title = self.title.strip() if isinstance(self.title, str) else ""
        text = "\n".join(part for part in _strings(self.texts) if part.strip())
        return text if not title or text.lstrip().startswith(title) else f"{title}\n{text}".rstrip()


def _strings(value: Any) -> Iterator[str]:
    """The texts of a field, which may be a list of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


class Rows:
    """The rows of a place; of a golden set alone, where one is given."""

    def __init__(self, database: Database, place: Place, question_set: str | None = None) -> None:
        self._database = database
        self._place = place
        self._set = question_set
        self._texts = f"[{', '.join(map(_quoting.path, place.texts))}]"
        self._vector, self._title = _quoting.path(place.vector), place.title
        self._lacking = f"({self._vector} ?? []) = []"

    def count(self) -> Count:
        """Count, page by page."""
        rows = lacking = unknown = 0
        for page in self._scan(every=True, after=None):
            rows += page["rows"]
            lacking += page["lacking"]
            unknown += page["unknown"]
        return Count(rows, lacking, unknown)

    def pages(self, *, every: bool, after: RecordID | None = None) -> Iterator[list[RecordID]]:
        """Ids of the rows that lack a vector, or of every row, after one of them; in id order."""
        for page in self._scan(every=every, after=after):
            if page["ids"]:
                yield page["ids"]

    def read(self, ids: Sequence[RecordID], *, every: bool) -> list[Row]:
        """The rows of these ids that are still there, and still lack a vector unless `every`."""
        fields = f"id, {self._texts} AS texts, {self._title} AS title, !({self._lacking}) AS has_vector"
        statement = f"SELECT {fields} FROM $ids WHERE $every OR {self._lacking}"
        return [Row(**row) for row in self._database.value(statement, ids=list(ids), every=every)]

    def store(
        self, rows: Sequence[Row], vectors: Sequence[Sequence[float]], made: dict[str, Any], *, every: bool
    ) -> list[RecordID]:
        """Store vectors and note their model, some rows a transaction; the ids of the rows that took them.

        A row that is gone, has got a vector meanwhile or has another text now is left alone. Raises DataError naming a row
        that refuses its vector.
        """
        stored: list[RecordID] = []
        for start in range(0, len(rows), _STORED_AT_ONCE):
            some = slice(start, start + _STORED_AT_ONCE)
            stored += self._store(rows[some], vectors[some], made, every=every)
        return stored

    def _store(
        self, rows: Sequence[Row], vectors: Sequence[Sequence[float]], made: dict[str, Any], *, every: bool
    ) -> list[RecordID]:
        named = ", embedding_model = $made.model" if self._place.role == "question" else ""
        free = "" if every else f" AND {self._lacking}"
        updates, variables = [], dict[str, Any]()
        for number, (row, vector) in enumerate(zip(rows, vectors, strict=True)):
            updates.append(
                f"LET $done{number} = (UPDATE $id{number} SET {self._vector} = $vector{number}{named} "
                f"WHERE {self._texts} = $texts{number} AND {self._title} = $title{number}{free} RETURN VALUE id);"
            )
            variables |= {f"id{number}": row.id, f"texts{number}": row.texts, f"title{number}": row.title}
            variables[f"vector{number}"] = list(vector)
        together = ", ".join(f"$done{number}" for number in range(len(rows)))
        statements = "\n".join(
            [
                "BEGIN;",
                *updates,
                f"LET $done = array::flatten([{together}]);",
                "LET $noted = fn::note_embeddings($table, $field, object::extend($made, { embedded: $done.len() }));",
                "SELECT VALUE id FROM $done;",
                "COMMIT;",
            ]
        )
        variables |= {"table": self._place.table, "field": self._place.vector, "made": made}
        try:
            return list(retried(lambda: self._database.run(statements, **variables)[-2]))
        except SurrecallError as error:
            # statement 0 is BEGIN, then one a row
            if error.statement is None or not 1 <= error.statement <= len(rows):
                raise
            row = rows[error.statement - 1]
            raise DataError(f"{record_text(row.id)} refuses its vector: {error.message}", error.hint) from error

    def _scan(self, *, every: bool, after: RecordID | None) -> Iterator[dict[str, Any]]:
        """Pages over the whole table, in id order: how many rows of each sort, and the ids asked for."""
        of_questions = ", set, embedding_model" if self._place.role == "question" else ""
        unknown = "$page[WHERE !lacking AND embedding_model = NONE].len()" if of_questions else "$page[WHERE !lacking].len()"
        while True:
            # a range of ids is read from its beginning, a condition on the id from the table's
            source = "type::table($table)" if after is None else "type::record($table, $after>..)"
            page = self._database.value(
                f"LET $all = (SELECT id, {self._lacking} AS lacking{of_questions} FROM {source} LIMIT $size);"
                "LET $page = $all[WHERE $set = NONE OR set = $set];"
                "RETURN { last: array::last($all).id, rows: $page.len(), lacking: $page[WHERE lacking].len(),"
                f" unknown: {unknown}, ids: $page[WHERE $every OR lacking].id }};",
                table=self._place.table,
                after=None if after is None else after.id,
                size=_PAGE,
                set=self._set,
                every=every,
            )
            if page["last"] is None:
                return
            after = page["last"]
            yield page
