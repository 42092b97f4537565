"""What would change if some documents were added, replaced or deleted: tried in a transaction that is undone.

Everything is measured and compared in the database; rows of the file go in, and the report comes out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from surrealdb import RecordID

from surrecall import _document_file, _evaluation, _fields, _ids, _import_documents, _ingest
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DataError, SchemaError, SurrecallError, UsageError
from surrecall._faults import Faults

_THERE = "SELECT * FROM $ids"
# how the report is known among errors; what it carries are bytes, so that no text of a document is read as SurrealQL
_CARRIED = "surrecall what if "
_ONE_STATEMENT = f"""
BEGIN;
LET $told = fn::whatif_told($changes, $options, $metric);
THROW '{_CARRIED}' + encoding::base64::encode(encoding::cbor::encode($told));
COMMIT;
"""
_DECODED = "RETURN encoding::cbor::decode($carried)"
_MARKED = re.compile(re.escape(_CARRIED) + r"([A-Za-z0-9+/=]*)")
# as the engine says that a REFERENCE … ON DELETE REJECT forbids it, and what ends a trial that went through
_FORBIDDEN = re.compile(r"Cannot delete .* as it is referenced by .* with an ON DELETE REJECT clause")
_TAKEN = "surrecall: taken"
_TRIAL = "fn::whatif_trial($changes)"
_APPLY = "fn::whatif_apply($changes)"
_BATCH = 50
# documents a transaction, as with import documents --guard
_MOST = 500

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to try: `documents` names the file and how it is read; no retrievers means all."""

    documents: _import_documents.Options
    cutoffs: Sequence[int]
    retrievers: Sequence[str] | None = None
    question_set: str = "default"
    metric: str = "recall"

    @property
    def asked(self) -> dict[str, Any]:
        """The options of fn::whatif_begin."""
        asked: dict[str, Any] = {"k": list(self.cutoffs), "set": self.question_set}
        return asked | ({"retrievers": list(self.retrievers)} if self.retrievers else {})


@dataclass(frozen=True)
class WhatIf:
    """What would change. Nothing is stored.

    `forbidden` are deletes that a label forbids: {document, reason, questions: [{question, text}]}; they are in no figure.
    `stale_vectors` documents would get another text and keep the vector of the old one. `report` is what fn::whatif_end gives.
    """

    added: int
    replaced: int
    unchanged: int
    deleted: int
    forbidden: list[dict[str, Any]]
    without_vector: int
    stale_vectors: int
    titles_left_out: int
    columns_left_out: list[str]
    report: dict[str, Any]


@dataclass
class _Plan:
    """The changes of a file, and what is to be said of them."""

    changes: list[dict[str, Any]]
    lines: dict[Any, int]
    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    without_vector: int = 0
    stale_vectors: int = 0
    titles_left_out: int = 0

    @property
    def deletes(self) -> list[dict[str, Any]]:
        return [change for change in self.changes if change.get("delete")]


def whatif(database: Database, corpus: Corpus, options: Options, progress: Progress = lambda _done, _all: None) -> WhatIf:
    """Try the changes of a file and say what they do.

    Raises DataError with file, line and content of what is wrong, as an import does.
    """
    faults = Faults("tried")
    left_out: dict[str, None] = {}
    given = options.documents
    entries = _document_file.read(
        given.path, given.form, given.names, corpus.body, faults, left_out, deletes=True, pieces=corpus.pieces
    )
    faults.raise_if_any("mend these lines, then try again")
    if not entries:
        raise DataError(f"{given.path} holds no document", "one row a document: id, title, text; or id and delete, which is true")
    plan = _planned(database, corpus, given, entries, faults)
    if len(plan.changes) > _MOST:
        raise UsageError(
            f"{len(plan.changes)} changes are more than the {_MOST} that one transaction takes", "try the file in parts"
        )
    forbidden = _forbidden(database, plan.deletes)
    kept_ones = [row["document"] for row in forbidden]
    changes = [change for change in plan.changes if change["id"] not in kept_ones]
    try:
        report = (
            _held_open(database, options, changes, progress)
            if database.holds_transactions
            else _at_once(database, options, changes)
        )
    except SurrecallError as error:
        raise _refused(database, given, plan) or error from error
    return WhatIf(
        added=plan.added,
        replaced=plan.replaced,
        unchanged=plan.unchanged,
        deleted=len(plan.deletes) - len(forbidden),
        forbidden=forbidden,
        without_vector=plan.without_vector,
        stale_vectors=plan.stale_vectors,
        titles_left_out=plan.titles_left_out,
        columns_left_out=list(left_out),
        report=report,
    )


def _planned(
    database: Database,
    corpus: Corpus,
    given: _import_documents.Options,
    entries: list[_document_file.Entry],
    faults: Faults,
) -> _Plan:
    """What the entries change of what is there."""
    vectors = _import_documents.read_vectors(given, corpus, [entry for entry in entries if not entry.delete])
    titled = _import_documents.takes_title(database, corpus, database.value("INFO FOR DB")["tables"])
    known = _ids.resolve(database, corpus.table, [entry.name for entry in entries])
    plan = _Plan([], {})
    for batch in _ingest.batches(entries, _BATCH):
        ids = [record for entry in batch for record in known[entry.name]]
        there = {_ids.key(row["id"]): row for row in database.value(_THERE, ids=ids)}
        for entry in batch:
            found = known[entry.name]
            if entry.delete and len(found) == 1:
                plan.changes.append({"id": found[0], "delete": True})
                continue
            if entry.delete and not found:
                faults.add(given.path, entry.line, f"there is no document {entry.name.shown} to delete", entry.content)
                continue
            row = _import_documents.row_of(corpus, given, entry, found, titled, None if entry.delete else vectors, faults)
            plan.titles_left_out += entry.title is not None and not titled
            plan.lines[_ids.key(row["id"])] = entry.line
            _place(plan, corpus, row, there.get(_ids.key(row["id"])))
    faults.raise_if_any("mend these lines, then try again")
    return plan


def _place(plan: _Plan, corpus: Corpus, row: dict[str, Any], other: dict[str, Any] | None) -> None:
    """Put a row among the changes, where it is one; `other` is the document that is there."""
    fields = [corpus.body, *([corpus.title] if corpus.title else []), *([corpus.vector] if corpus.vector else [])]
    given = [field for field in fields if _fields.pick(row, field) is not None]
    if other is not None and all(_fields.pick(row, field) == _fields.pick(other, field) for field in given):
        plan.unchanged += 1
        return
    plan.changes.append({"id": row["id"], "values": {key: value for key, value in row.items() if key != "id"}})
    plan.added += other is None
    plan.replaced += other is not None
    if corpus.vector is None or corpus.vector_table or corpus.vector in given:
        return
    held = other is not None and _fields.pick(other, corpus.vector) is not None
    plan.without_vector += not held
    plan.stale_vectors += held and _fields.pick(row, corpus.body) != _fields.pick(other, corpus.body)


def _forbidden(database: Database, deletes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The deletes that a reference forbids, one by one, and the questions that want the document."""
    if not deletes or _trial(database, deletes) is None:
        return []
    found = []
    for change in deletes:
        error = _trial(database, [change])
        if error is not None and not _FORBIDDEN.search(error.message):
            raise error
        if error is not None:
            questions = database.value("RETURN fn::labelled_with($document)", document=change["id"])
            found.append({"document": change["id"], "reason": error.message, "questions": questions})
    return found


def _trial(database: Database, changes: list[dict[str, Any]]) -> SurrecallError | None:
    """What the database says against some changes; None when it takes them. They are undone."""
    try:
        database.run(_TRIAL, changes=changes)
    except SurrecallError as error:
        if error.statement is None:
            raise
        return None if error.message == _TAKEN else error
    raise AssertionError("unreachable")


def _refused(database: Database, given: _import_documents.Options, plan: _Plan) -> DataError | None:
    """The first row that the table refuses, by its line; None when it takes them all, and something else is wrong."""
    written = [change for change in plan.changes if not change.get("delete")]
    try:
        if isinstance(_trial(database, written), SchemaError | None):
            return None
        for change in written:
            error = _trial(database, [change])
            if error is not None:
                record: RecordID = change["id"]
                place = f"{given.path}:{plan.lines[_ids.key(record)]}"
                return DataError(
                    f"{place}: the document {record.id!r} is refused: {error.message}", "mend this line, then try again"
                )
    except SurrecallError:
        # the database is gone, which the first error says
        return None
    return None


def _held_open(database: Database, options: Options, changes: list[dict[str, Any]], progress: Progress) -> dict[str, Any]:
    """Over a transaction that stays open, in shards."""
    with database.undone() as inside:
        before = inside.value("RETURN fn::whatif_begin($options)", options=options.asked)
        asked = inside.value("RETURN fn::whatif_asked($before, $metric)", before=before["id"], metric=options.metric)
        _evaluation.answer_all(inside, before, lambda done, total: progress(done, 2 * total))
        for batch in _ingest.batches(changes, _BATCH):
            inside.run(_APPLY, changes=batch)
        after = inside.value("RETURN fn::whatif_begin($options)", options=options.asked)
        _evaluation.answer_all(inside, after, lambda done, total: progress(total + done, 2 * total))
        states = {"before": before["id"], "after": after["id"]}
        rows = [inside.value("RETURN fn::whatif_row($before, $after, $asked)", asked=one, **states) for one in asked]
        report: dict[str, Any] = inside.value("RETURN fn::whatif_end($before, $after, $rows)", rows=rows, **states)
        return report


def _at_once(database: Database, options: Options, changes: list[dict[str, Any]]) -> dict[str, Any]:
    """In one statement, whose error carries the report."""
    try:
        database.run(_ONE_STATEMENT, changes=changes, options=options.asked, metric=options.metric)
    except SurrecallError as error:
        carried = _MARKED.fullmatch(error.message)
        if carried is None:
            raise
        data = base64.b64decode(carried[1] + "=" * (-len(carried[1]) % 4))
        report: dict[str, Any] = database.value(_DECODED, carried=data)
        return report
    raise AssertionError("unreachable")
