"""Labels of a file onto questions that are there: added, or changed where that is asked for; never taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _ids, _ingest, _label_file, _labels, _schema
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DataError, SurrecallError
from surrecall._faults import Faults

_BATCH = 500
_THERE = "SELECT id, relevant, judged, answerable FROM $ids"
# FOR, not one UPDATE: each row has values of its own
# only over what was read: another writer's labels are never taken away
_SET = """
BEGIN;
FOR $row IN $rows {
  LET $there = (SELECT judged, relevant FROM ONLY $row.old.id);
  IF fn::labels_of($there) != fn::labels_of($row.old) {
    THROW 'the labels of ' + <string> $row.old.id + ' changed meanwhile; import the file again';
  };
  UPDATE $row.old.id SET judged = $row.new.judged, relevant = $row.new.relevant, answerable = $row.new.answerable,
    edited = { who: 'import labels', why: $file, at: time::now() } RETURN NONE;
};
COMMIT;
"""
_PUT_BACK = """
BEGIN;
FOR $row IN $rows {
  LET $there = (SELECT judged, relevant FROM ONLY $row.old.id);
  IF fn::labels_of($there) = fn::labels_of($row.new) {
    UPDATE $row.old.id SET judged = $row.old.judged, relevant = $row.old.relevant, answerable = $row.old.answerable,
      edited = { who: 'import labels', why: $file + ' failed, put back', at: time::now() } RETURN NONE;
  };
};
COMMIT;
"""


@dataclass(frozen=True)
class ImportedLabels:
    """What an import did, or would do: labels added, changed (with `replace`), there already, and given twice in the file.

    `questions` were changed; `now_answerable` of them had no relevant document before, `no_longer_answerable` have none now.
    """

    labels: int
    questions: int
    replaced: int
    labels_there: int
    repeated_labels: int
    now_answerable: int
    no_longer_answerable: int
    dry_run: bool


def import_labels(
    database: Database,
    corpus: Corpus,
    path: Path,
    form: str | None,
    *,
    replace: bool = False,
    dry_run: bool = False,
    progress: _ingest.Progress = lambda _done, _all: None,
) -> ImportedLabels:
    """Add the labels of a file to questions that are there; a second time changes nothing.

    Raises DataError with file, line and content of what is wrong, among it a label that is there with another grade unless
    `replace` says to change it; then, as after any failure, nothing is changed.
    """
    faults = Faults()
    labels = _label_file.read(path, form, faults)
    faults.raise_if_any()
    if not labels:
        raise DataError(f"{path} holds no label", "one line a label: query-id, corpus-id, score; or TREC's four fields")
    _schema.require_corpus(database, corpus.table)
    questions = _ids.resolve(database, database.table("question"), [label.question for label in labels])
    documents = _ids.resolve(database, corpus.table, [label.document for label in labels])
    gathered = _label_file.gather(path, labels, questions, documents, faults)
    records = {found[0].id: found[0] for found in questions.values() if len(found) == 1}
    before = _before(database, [records[name] for name in gathered.grades])
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = []
    added = replaced = there = 0
    for question, grades in gathered.grades.items():
        old = before[question]
        merged = _labels.graded(old)
        touched = False
        for document, grade in grades.items():
            had = merged.get(document)
            if had is None:
                added += 1
            elif had[1] == grade:
                there += 1
                continue
            elif replace:
                replaced += 1
            else:
                label = gathered.lines[question, document]
                problem = f"{document!r} has the grade {had[1]} for {question!r}; --replace would make it {grade}"
                faults.add(path, label.line, problem, label.content)
                continue
            touched = True
            merged[document] = RecordID(corpus.table, document), grade
        if touched:
            changes.append((old, {"id": old["id"], **_labels.merged(old, list(merged.values()))}))
    faults.raise_if_any()
    if not dry_run:
        _store(database, path, changes, progress)
    return ImportedLabels(
        labels=added,
        questions=len(changes),
        replaced=replaced,
        labels_there=there,
        repeated_labels=gathered.repeated,
        now_answerable=sum(new["answerable"] and not old["answerable"] for old, new in changes),
        no_longer_answerable=sum(old["answerable"] and not new["answerable"] for old, new in changes),
        dry_run=dry_run,
    )


def _before(database: Database, questions: list[RecordID]) -> dict[Any, dict[str, Any]]:
    found: dict[Any, dict[str, Any]] = {}
    for batch in _ingest.batches(questions, _BATCH):
        found |= {row["id"].id: row for row in database.value(_THERE, ids=batch)}
    return found


def _store(
    database: Database, path: Path, changes: list[tuple[dict[str, Any], dict[str, Any]]], progress: _ingest.Progress
) -> None:
    """Write the new labels; after a failure the old ones are put back."""
    written: list[dict[str, Any]] = []
    source = f"labels of {path.resolve()}"
    with _ingest.logged(database, source, 0, len(changes), undo=_putting_back(database, path, written)):
        for batch in _ingest.shards(changes, lambda change: len(_labels.graded(change[1]))):
            rows = [{"old": {"judged": None, **old}, "new": {"judged": None, **new}} for old, new in batch]
            written += rows
            database.run(_SET, rows=rows, file=path.name)
            progress(len(written), len(changes))


def _putting_back(database: Database, path: Path, written: list[dict[str, Any]]) -> Callable[[], None]:
    def undo() -> None:
        for batch in _ingest.shards(written, lambda row: len(_labels.graded(row["old"]))):
            try:
                database.run(_PUT_BACK, rows=batch, file=path.name)
            except SurrecallError as error:
                if error.statement is None:
                    raise

    return undo
