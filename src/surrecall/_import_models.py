"""The models of imported vectors: what is recorded of them, checked before an import and put back when it fails."""

from __future__ import annotations

from typing import Any

from surrealdb import RecordID

from surrecall import _quoting
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import UsageError

_ROW = "RETURN (SELECT * FROM ONLY $id)"
_PUT_BACK = "IF $row = NONE { DELETE $id } ELSE { UPSERT $id CONTENT $row RETURN NONE }"
_HELD = "RETURN count(SELECT VALUE id FROM type::table($table) WHERE ({vector} ?? []) != [])"
_REQUIRE = "fn::require_model($table, $field, $made)"
_CLAIM = "fn::claim_embeddings($table, $field, $made, NONE)"
_SETTLE = "fn::settle_embeddings($table, $field, $dimension)"


class Record:
    """What is recorded of the vectors of a field, as it was when this was made."""

    def __init__(self, database: Database, table: str, field: str) -> None:
        self._database, self._table, self._field = database, table, field
        self._id = RecordID(database.table("embedding_model"), [table, field])
        known = database.table("embedding_model") in database.value("INFO FOR DB")["tables"]
        self.row: dict[str, Any] | None = database.value(_ROW, id=self._id) if known else None

    @property
    def model(self) -> str | None:
        """The recorded model; that of a replacement that is under way, where there is one."""
        row = self.row or {}
        found: str | None = (row.get("next") or row).get("model")
        return found

    def put_back(self) -> None:
        """Make it again what it was."""
        row = None if self.row is None else {key: value for key, value in self.row.items() if key != "id"}
        self._database.run(_PUT_BACK, id=self._id, row=row)

    def settle(self, dimension: int) -> None:
        """Bring it in line with the models of the questions."""
        self._database.run(_SETTLE, table=self._table, field=self._field, dimension=dimension)


class DocumentModel:
    """The model of imported vectors of documents, None where nobody names it."""

    def __init__(self, database: Database, corpus: Corpus, model: str | None, vectors_there: int) -> None:
        """Raises UsageError when the field holds vectors of another model, or unknown ones beside `vectors_there` of the file."""
        self._database, self._corpus, self._model = database, corpus, model
        self._record = Record(database, corpus.table, corpus.vector or "")
        if model is None:
            return
        if self._record.row is not None:
            self._require()
        elif self._others(vectors_there):
            raise UsageError(
                f"{corpus.table}.{corpus.vector} holds vectors whose model is not recorded, beside those of the file",
                f"import without --model; surrecall embed --same-model --model {model} states that they all are of it",
            )

    @property
    def taken_for(self) -> str | None:
        """The recorded model that vectors without one are taken for."""
        return None if self._model else self._record.model

    def claim(self) -> None:
        """Record it."""
        if self._model is not None:
            self._database.run(_CLAIM, **self._variables())

    def put_back(self) -> None:
        """Make what is recorded again what it was."""
        if self._model is not None:
            self._record.put_back()

    def _require(self) -> None:
        try:
            self._database.run(_REQUIRE, **self._variables())
        except UsageError as error:
            raise UsageError(
                error.message, "give vectors of that model; or import without vectors, and surrecall embed fills them"
            ) from error

    def _variables(self) -> dict[str, Any]:
        row = self._record.row or {}
        row = row.get("next") or row
        # the same model keeps what is put before its texts
        prefix = row["prefix"] if row and row.get("model") == self._model else ""
        made = {"role": "document", "model": self._model, "dimension": self._corpus.dimension, "prefix": prefix, "how": None}
        return {"table": self._corpus.table, "field": self._corpus.vector, "made": made}

    def _others(self, vectors_there: int) -> bool:
        if self._corpus.vector is None or self._corpus.table not in self._database.value("INFO FOR DB")["tables"]:
            return False
        vector = _quoting.path(self._corpus.vector)
        found = self._database.value(_HELD.format(vector=vector), table=self._corpus.table)
        return bool(found > vectors_there)
