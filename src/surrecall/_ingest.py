"""Writing a collection into a database: documents in batches, questions and labels in one transaction after them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from surrealdb import RecordID

from surrecall import _fields, _files, _import_models, _labels, _quoting, _schema, _writer
from surrecall._collection import Collection, Document, Question
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DatabaseError, DataError, SchemaError, SurrecallError, UsageError
from surrecall._retry import retried

# where indexes are there already a large transaction is slow out of proportion
_BATCH_WITHOUT_INDEXES, _BATCH_WITH_INDEXES = 500, 50

# Rows that are there already must have the same content. FOR, not a closure: each call of a closure copies all that it can see,
# here the whole batch.
_SAME_DOCUMENTS = """
FOR $row IN $rows {{
  LET $there = (SELECT * FROM ONLY $row.id);
  IF {different} {{
    THROW 'document ' + <string> $row.id + ' is there with another content';
  }};
}};
"""
_SAME_QUESTIONS = """
FOR $row IN $rows {
  LET $there = (SELECT text, set, relevant, judged FROM ONLY $row.id);
  IF $there.text != $row.text OR $there.set != $row.set OR fn::labels_of($there) != fn::labels_of($row) {
    THROW 'question ' + <string> $row.id + ' is there with another text, set or labels';
  };
};
"""
_ANY = "RETURN (SELECT VALUE id FROM type::table($table) LIMIT 1).len() > 0"
_THERE = "SELECT VALUE id FROM $ids"
_FINISHED = "UPDATE import_log SET finished = time::now() WHERE id = $log OR (source = $source AND finished = NONE) RETURN NONE"
# a row at a time: each has values of its own
_FILL = "BEGIN; FOR $row IN $rows { UPDATE $row.id MERGE $row.values RETURN NONE }; COMMIT;"
_GUARDED = """
BEGIN;
INSERT INTO {table} $rows RETURN NONE;
FOR $row IN $filled {{ UPDATE $row.id MERGE $row.values RETURN NONE }};
RETURN fn::guard();
COMMIT;
"""
_PUT_BACK = """
FOR $row IN $rows {
  LET $there = (SELECT * FROM ONLY $row.id);
  LET $wrote = $row.wrote;
  IF $wrote.keys().all(|$key| $there[$key] = $wrote[$key]) { UPDATE $row.id MERGE $row.old RETURN NONE };
};
"""
_ADD_QUESTIONS = "BEGIN; INSERT INTO question $rows RETURN NONE; COMMIT;"

# a row on trial that could be stored, and what definitions of fields, indexes and events say of one that can't
_TAKEN = "surrecall: taken"
_REFUSED = re.compile(r"for field `|Found field |already contains|Error while processing event|no such field exists")

# labels or answers a statement: about five seconds of work
_SHARD = 5_000

# a build that has not moved for as long will not
_STALLED = 60.0

Progress = Callable[[int, int], None]
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class Imported:
    """What an import did: rows added, and rows that were there already with the same content."""

    documents: int
    questions: int
    labels: int
    documents_there: int
    questions_there: int
    unlabelled: int
    repeated_labels: int


def ingest(
    database: Database,
    project: Path,
    corpus: Corpus,
    collection: Collection,
    source: str,
    question_set: str,
    progress: Progress = lambda _done, _all: None,
    *,
    model: str | None = None,
    dry_run: bool = False,
) -> Imported:
    """Load a collection; a second time changes nothing. `dry_run` only says what would be added.

    `model` is recorded as the one that made its vectors.

    Raises DataError when a vector has another dimension than the corpus, or an id is there with another content; then, as
    after any failure, what this call added is taken out again.
    """
    _check_dimension(corpus, collection)
    documents = [_document_row(corpus, document) for document in collection.documents]
    questions = [_question_row(corpus, question, question_set, database.table("question")) for question in collection.questions]
    # the definitions must be there before rows can be compared with what is; a trial leaves them as they are
    indexed = True if dry_run else prepare(database, project, corpus)
    new_documents = _new(database, documents, _same_documents(corpus))
    new_questions = _new(database, questions, _SAME_QUESTIONS)
    if model is not None and collection.documents[0].vector is None:
        raise UsageError("--model names the model of vectors, and the collection has none", "leave --model out")
    document_model = _import_models.DocumentModel(database, corpus, model, len(documents) - len(new_documents))
    question_models = None if model is None else _import_models.Record(database, database.table("question"), "embedding")
    for row in new_questions if model is not None else []:
        row |= {"embedding_model": model} if "embedding" in row else {}

    def undo() -> None:
        document_model.put_back()
        if question_models is not None:
            question_models.put_back()

    if not dry_run:
        with logged(database, source, len(new_documents), len(new_questions), undo) as added:
            add_documents(database, project, corpus, new_documents, added, indexed=indexed, progress=progress)
            add_questions(database, new_questions, added)
            document_model.claim()
            if question_models is not None:
                question_models.settle(corpus.dimension)
    return Imported(
        documents=len(new_documents),
        questions=len(new_questions),
        labels=sum(len(row.get("judged") or row["relevant"]) for row in new_questions),
        documents_there=len(documents) - len(new_documents),
        questions_there=len(questions) - len(new_questions),
        unlabelled=collection.unlabelled,
        repeated_labels=collection.repeated_labels,
    )


@contextmanager
def logged(
    database: Database, source: str, documents: int, questions: int, undo: Callable[[], None] = lambda: None
) -> Iterator[list[RecordID]]:
    """An import that is named by check until it came to an end; gives the list that notes what it adds.

    After a failure what the list names is taken out again, and `undo` is called. When nothing is to be changed, only an earlier
    import of the source that was cut off is marked as whole.
    """
    log: RecordID | None = None
    added: list[RecordID] = []
    try:
        if documents or questions:
            row = {"source": source, "documents": documents, "questions": questions}
            begun = database.value("RETURN CREATE ONLY import_log CONTENT $row", row=row)
            if begun is None:
                raise _writer.refused("import")
            log = begun["id"]
        yield added
        # this import is whole, and with it any earlier one of the same source that was cut off
        database.run(_FINISHED, log=log, source=source)
    except BaseException:
        _take_out(database, added, log, undo)
        raise


def add_documents(
    database: Database,
    project: Path,
    corpus: Corpus,
    rows: list[dict[str, Any]],
    added: list[RecordID],
    *,
    indexed: bool,
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Insert rows of the corpus table, and define its indexes over them where `indexed` says that they are not there."""
    insert = f"INSERT INTO {_quoting.identifier(corpus.table)} $rows RETURN NONE"
    for batch in batches(rows, _BATCH_WITH_INDEXES if indexed else _BATCH_WITHOUT_INDEXES):
        try:
            database.run(insert, rows=batch)
        except DatabaseError as error:
            raise _refused_row(database, corpus, batch) or error from error
        # noted when they are there: of a batch that was refused nothing is, and rows of these ids are somebody else's
        added += [row["id"] for row in batch]
        progress(len(added), len(rows))
    if not indexed:
        _build_indexes(database, project, corpus)


def add_guarded(database: Database, corpus: Corpus, rows: list[dict[str, Any]], fillings: Sequence[Filling]) -> dict[str, Any]:
    """Insert rows and fill others in one transaction that fn::guard judges; what it measured.

    Raises GuardError when a floor would break; then nothing is stored.
    """
    statement = _GUARDED.format(table=_quoting.identifier(corpus.table))
    filled = [{"id": row.id, "values": row.values} for row in fillings]
    try:
        # two that overlap meet on the lock row
        results = retried(lambda: database.run(statement, rows=rows, filled=filled))
    except DatabaseError as error:
        raise _refused_row(database, corpus, rows) or error from error
    return next(row for row in results if isinstance(row, dict) and "floors" in row)


class RefusedRow(DataError):
    """A row that the table refuses; `id` is its own."""

    def __init__(self, record: RecordID, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.id = record


def _refused_row(database: Database, corpus: Corpus, batch: Sequence[dict[str, Any]]) -> RefusedRow | None:
    """The first row that the table's own definitions refuse, of a batch that was refused; nothing is stored."""
    attempt = f"BEGIN; INSERT INTO {_quoting.identifier(corpus.table)} $rows RETURN NONE; THROW '{_TAKEN}'; COMMIT;"
    for row in batch:
        try:
            database.run(attempt, rows=[row])
        except SurrecallError as error:
            if error.statement is not None and _REFUSED.search(error.message):
                return RefusedRow(
                    row["id"],
                    f"the table {corpus.table} refuses the document {row['id'].id!r}: {error.message}",
                    f"an import writes {', '.join(key for key in row if key != 'id')} and no more: give that field a DEFAULT or "
                    "an option<…> type, or write the documents as your application does, then surrecall import questions",
                )
            if error.message != _TAKEN:
                return None
    return None


def add_questions(
    database: Database,
    rows: list[dict[str, Any]],
    added: list[RecordID],
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Insert rows of the golden set, whole batches or none of them."""
    for batch in shards(rows, lambda row: len(row.get("judged") or row["relevant"])):
        database.run(_ADD_QUESTIONS, rows=batch)
        added += [row["id"] for row in batch]
        progress(min(len(added), len(rows)), len(rows))


@dataclass(frozen=True)
class Filling:
    """Values for fields of a row that is there and has none."""

    id: RecordID
    values: dict[str, Any]


def put_back(database: Database, written: Sequence[Filling], before: Sequence[Filling]) -> None:
    """Set fields back to what they were, of the rows that still hold what was written; another writer's values stay."""
    rows = [{"id": new.id, "wrote": new.values, "old": old.values} for new, old in zip(written, before, strict=True)]
    for batch in batches(rows, _BATCH_WITH_INDEXES):
        database.run(_PUT_BACK, rows=batch)


def fill(database: Database, fillings: Sequence[Filling]) -> None:
    """Set fields of rows that are there."""
    for batch in batches(fillings, _BATCH_WITH_INDEXES):
        database.run(_FILL, rows=[{"id": row.id, "values": row.values} for row in batch])


def empty(database: Database, fillings: Sequence[Filling]) -> Callable[[], None]:
    """What takes the values out again: for logged, when the import fails."""
    return lambda: fill(database, [Filling(row.id, _emptied(row.values)) for row in fillings])


def _emptied(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _emptied(value) if isinstance(value, dict) else None for key, value in values.items()}


def prepare(database: Database, project: Path, corpus: Corpus, *, keep_indexes: bool = False) -> bool:
    """Apply the project; whether its indexes stay while rows go in.

    They are left out, and taken away, where the table is empty, and where one of them is not ready: a build that was cut off
    never goes on by itself. Those of an adopted table are its owner's and stay in any case, as with `keep_indexes`.
    """
    if corpus.adopted or keep_indexes:
        _schema.apply(database, project)
        return True
    filled = corpus.table in database.value("INFO FOR DB")["tables"] and database.value(_ANY, table=corpus.table)
    _schema.apply(database, project, leave_out=corpus.indexes)
    if filled and all(state == "ready" for state, _ in _building(database, corpus)):
        return True
    for index in corpus.indexes:
        database.run_as_written(f"REMOVE INDEX IF EXISTS {_quoting.identifier(index)} ON {_quoting.identifier(corpus.table)}")
    return False


def _build_indexes(database: Database, project: Path, corpus: Corpus) -> None:
    """Define the indexes over the rows that are there, in the background, and wait: no query may take longer than 30 s."""
    for file in _files.load(project):
        if Path(file.name).stem in corpus.indexes:
            database.run_as_written(file.text.rstrip().removesuffix(";") + " CONCURRENTLY;")
    moved, seen = time.monotonic(), _building(database, corpus)
    while any(state != "ready" for state, _ in seen):
        time.sleep(0.05)
        now = _building(database, corpus)
        if now != seen:
            moved, seen = time.monotonic(), now
        if any(state == "error" for state, _ in now) or time.monotonic() - moved > _STALLED:
            raise SchemaError(
                f"the indexes of {corpus.table} could not be built: {', '.join(f'{state} {count}' for state, count in now)}",
                "look for a full disk or a fault in the server's log, then import again",
            )


def _building(database: Database, corpus: Corpus) -> list[tuple[str, str]]:
    """State and progress of each index."""
    defined = database.run_as_written(f"INFO FOR TABLE {_quoting.identifier(corpus.table)}")[-1]["indexes"]
    found = []
    for index in corpus.indexes:
        if index not in defined:
            found.append(("missing", ""))
            continue
        info = database.run_as_written(f"INFO FOR INDEX {_quoting.identifier(index)} ON {_quoting.identifier(corpus.table)}")[-1]
        building = info.get("building", {})
        found.append((str(building.get("status", "ready")), str(building)))
    return found


def _check_dimension(corpus: Corpus, collection: Collection) -> None:
    for kind, rows in (("document", collection.documents), ("question", collection.questions)):
        require_dimension(corpus, kind, [row.vector for row in rows])


def require_dimension(corpus: Corpus, kind: str, vectors: Iterable[list[float] | None]) -> None:
    """Raise DataError unless vectors, where there are some, are as long as those of the corpus."""
    for found in vectors:
        if found is not None and (corpus.vector is None or (kind == "document" and corpus.vector_table)):
            raise DataError(
                f"the {kind}s have vectors, and surql/corpus knows no field of {corpus.table} for them",
                "move the vectors away to import without; nothing was imported",
            )
        if found is not None and len(found) != corpus.dimension:
            raise DataError(
                f"the {kind} vectors have {len(found)} numbers, {corpus.table}.{corpus.vector} takes {corpus.dimension}",
                f"surrecall init with --dimension {len(found)} --force, or embed with another model; nothing was imported",
            )


def _document_row(corpus: Corpus, document: Document) -> dict[str, Any]:
    row: dict[str, Any] = {"id": RecordID(corpus.table, document.id)}
    _fields.place(row, corpus.body, document.text)
    if document.title is not None and corpus.title is not None:
        _fields.place(row, corpus.title, document.title)
    if document.vector is not None and corpus.vector is not None:
        _fields.place(row, corpus.vector, document.vector)
    return row


def _same_documents(corpus: Corpus) -> str:
    """The statement that compares rows with what is there; only names of fields are put into it."""
    unequal = [
        f"$there.{name} != $row.{name}" for name in dict.fromkeys([corpus.body, *([corpus.title] if corpus.title else [])])
    ]
    if corpus.vector is not None and not corpus.vector_table:
        unequal.append(f"($row.{corpus.vector} != NONE AND $there.{corpus.vector} != $row.{corpus.vector})")
    return _SAME_DOCUMENTS.format(different=" OR ".join(unequal))


def _question_row(corpus: Corpus, question: Question, question_set: str, table: str) -> dict[str, Any]:
    labels = [(RecordID(corpus.table, name), _whole(grade)) for name, grade in question.labels.items()]
    row: dict[str, Any] = {
        "id": RecordID(table, question.id),
        "text": question.text,
        "set": question_set,
        "source": "imported",
        **_labels.labels_of(labels),
    }
    return row | ({"embedding": question.vector} if question.vector is not None else {})


def _whole(grade: float) -> float | int:
    return int(grade) if grade == int(grade) else grade


def _new(database: Database, rows: list[dict[str, Any]], same: str) -> list[dict[str, Any]]:
    """The rows that are not there yet. Raises DataError when one is there with another content."""
    there: set[str] = set()
    for batch in batches([row["id"] for row in rows], _BATCH_WITHOUT_INDEXES):
        there |= {found.id for found in database.value(_THERE, ids=batch)}
    try:
        for batch in batches([row for row in rows if row["id"].id in there], _BATCH_WITH_INDEXES):
            database.run(same, rows=batch)
    except DatabaseError as error:
        if error.statement is None:
            raise
        raise DataError(error.message, "nothing was imported; use another database (--db), or remove what is there") from error
    return [row for row in rows if row["id"].id not in there]


def _take_out(database: Database, added: Sequence[RecordID], log: RecordID | None, undo: Callable[[], None]) -> None:
    """Undo a failed import, questions first: a labelled document can't be deleted."""
    try:
        undo()
        for batch in batches(list(reversed(added)), _BATCH_WITH_INDEXES):
            database.run("FOR $id IN $ids { DELETE $id };", ids=batch)
        if log is not None:
            database.run("DELETE $log", log=log)
    except SurrecallError:
        # the database went away; check names the import, and importing the same files again finishes it
        return


def shards(rows: Iterable[_Row], weight: Callable[[_Row], int]) -> Iterator[list[_Row]]:
    """Rows in lists of as many as a statement should take, by the labels or documents of each: the client waits 30 s."""
    shard: list[_Row] = []
    size = 0
    for row in rows:
        shard.append(row)
        size += 1 + weight(row)
        if size >= _SHARD or len(shard) >= _BATCH_WITHOUT_INDEXES:
            yield shard
            shard, size = [], 0
    if shard:
        yield shard


def batches(rows: Sequence[Any], size: int) -> Iterator[list[Any]]:
    """Lists of at most `size` rows."""
    for start in range(0, len(rows), size):
        yield list(rows[start : start + size])
