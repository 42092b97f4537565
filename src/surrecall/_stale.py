"""Labels whose document changed since they were labelled: found, confirmed, and changed by hand. The database says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from surrealdb import RecordID

from surrecall import _ids, _writer
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._render import record_text
from surrecall._retry import retried

_QUESTIONS = "SELECT VALUE id FROM question WHERE $set = NONE OR set = $set ORDER BY id"
_SCAN = "RETURN fn::label_scan($questions)"
_FORGET = "RETURN fn::forget_labels()"
_STALE = "RETURN fn::labels_stale($options)"
_CONFIRM = "RETURN fn::label_confirm($confirmed)"
_EDIT = "RETURN fn::label_edit($edit)"
# a question by its id, with or without its table, or by its text
_FIND = """
SELECT VALUE id FROM question WHERE <string> id = $asked OR <string> record::id(id) = $asked OR text = $asked ORDER BY id LIMIT 2
"""
# a document that is gone is known by the label alone
_LABELLED = """
LET $labels = fn::labels_of($question);
RETURN (SELECT VALUE document FROM $labels WHERE <string> document = $asked OR <string> record::id(document) = $asked);
"""
_MARKED = """
LET $documents = (SELECT VALUE record::id(id)[0] FROM label_seen WHERE since != NONE).distinct();
RETURN $documents.filter(|$id| <string> $id = $asked OR <string> record::id($id) = $asked);
"""
_BATCH = 500


@dataclass(frozen=True)
class Confirmed:
    """What was confirmed, and what could not be, since the document is gone: rows of fn::labels_stale."""

    confirmed: list[dict[str, Any]]
    gone: list[dict[str, Any]]


def scan(database: Database, question_set: str | None = None) -> None:
    """Compare the labelled documents of a golden set, or of all, with what they said when they were labelled, and note it."""
    questions = database.value(_QUESTIONS, set=question_set)
    for start in range(0, len(questions), _BATCH):
        batch = questions[start : start + _BATCH]
        # a writer of documents marks labels too
        retried(partial(database.run, _SCAN, questions=batch))


def forget(database: Database) -> None:
    """Take out what is kept of labels that are none any more."""
    retried(lambda: database.run(_FORGET))


def stale(database: Database, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of fn::labels_stale as of now."""
    scan(database, options.get("set"))
    found: list[dict[str, Any]] = database.value(_STALE, options=options)
    return found


def confirm(database: Database, rows: Sequence[dict[str, Any]], who: str, why: str | None) -> Confirmed:
    """Say of stale labels that they hold; a row of label_change each. Raises DatabaseError for a user who may not write."""
    _writer.require_writer(database, "confirmation")
    done = Confirmed([], [row for row in rows if row["gone"]])
    for row in rows:
        if not row["gone"]:
            label = {"question": row["question"], "document": row["document"], "who": who, "why": why}
            retried(partial(database.run, _CONFIRM, confirmed=label))
            done.confirmed.append(row)
    return done


def relabel(database: Database, table: str, asked: tuple[str, str], grade: float | None, who: str, why: str | None) -> Any:
    """Give a document a grade for a question, or with None take the label away; its row of label_change, None when it was so.

    `asked` are question and document as they were given. Raises UsageError for a question and DataError for a document that is
    not there, DatabaseError for a user who may not write.
    """
    _writer.require_writer(database, "label")
    found = question(database, asked[0])
    labelled = database.value(_LABELLED, question=found, asked=asked[1])
    document = labelled[0] if labelled else _document(database, table, asked[1])
    if grade is None and not labelled:
        raise DataError(f"{record_text(document)} is no label of {record_text(found)}", "surrecall questions lists its labels")
    edit = {"question": found, "document": document, "grade": grade, "who": who, "why": why}
    return retried(lambda: database.value(_EDIT, edit=edit))


def question(database: Database, asked: str) -> RecordID:
    """The question of this id or text. Raises UsageError when there is none, or more than one."""
    found: list[RecordID] = database.value(_FIND, asked=asked)
    if not found:
        raise UsageError(f"no question has the id or text {asked!r}", "surrecall questions lists the golden set")
    if len(found) > 1:
        raise UsageError(f"{asked!r} is {' and '.join(map(record_text, found))}", "give the id of one")
    return found[0]


def marked_document(database: Database, table: str, asked: str) -> RecordID:
    """The document of stale labels that an id means, gone or not."""
    marked: list[RecordID] = database.value(_MARKED, asked=asked)
    return marked[0] if marked else _document(database, table, asked)


def _document(database: Database, table: str, asked: str) -> RecordID:
    name = _ids.Name(asked.removeprefix(f"{table}:"))
    found = _ids.resolve(database, table, [name, _ids.Name(asked)])
    records = found[_ids.Name(asked)] or found[name]
    if len(records) != 1:
        problem = f"no {table} has the id {asked!r}" if not records else f"the id {asked!r} is that of two records of {table}"
        raise DataError(problem, "surrecall export documents lists them")
    return records[0]
