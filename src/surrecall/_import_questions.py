"""Questions of a file into the golden set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _ids, _ingest, _label_file, _question_file, _schema, _vectors
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._faults import Faults

# what a question may have beside its labels, and what a row without it has
_DETAILS: dict[str, Any] = {"kind": None, "tags": [], "split": None, "source": "human", "note": None}
_THERE = "SELECT * FROM $ids"
_BATCH = 500


@dataclass(frozen=True)
class Options:
    """What to import. `labels` is a file of labels for questions that carry none; `ids` names the questions of `vectors`."""

    path: Path
    form: str
    labels: Path | None = None
    question_set: str = "default"
    vectors: Path | None = None
    ids: Path | None = None
    model: str | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class ImportedQuestions:
    """What an import did, or would do: rows added, their labels, and rows that were there already with the same content.

    `vectors_filled` of those had no vector, and were given one.
    """

    questions: int
    labels: int
    questions_there: int
    vectors_filled: int
    unlabelled: int
    repeated_labels: int
    dry_run: bool


def import_questions(
    database: Database,
    project: Path,
    corpus: Corpus,
    options: Options,
    progress: _ingest.Progress = lambda _done, _all: None,
) -> ImportedQuestions:
    """Add the questions of a file; a second time changes nothing.

    Raises DataError with file, line and content of what is wrong; then, as after any failure, nothing is added.
    """
    faults = Faults()
    entries = _question_file.read(options.path, options.form, faults)
    labels = None if options.labels is None else _label_file.read(options.labels, None, faults)
    faults.raise_if_any()
    if not entries:
        raise DataError(f"{options.path} holds no question", "one row a question: id, text, and its relevant documents")
    entries, unlabelled = _labelled(entries, options)
    if not options.dry_run and database.table("question") not in database.value("INFO FOR DB")["tables"]:
        # a row for a table that is not there would make a table without any of its rules
        _schema.apply(database, project)
    table = database.table("question")
    named = [entry.name for entry in entries if entry.name is not None]
    known = _ids.resolve(database, table, named)
    questions = [_record(table, entry, known, options.path, faults) for entry in entries]
    vectors = _read_vectors(options, corpus, entries, questions)

    documents = _ids.resolve(
        database,
        corpus.table,
        [name for entry in entries for name in entry.documents] + [label.document for label in labels or []],
    )
    gathered = None
    if labels is not None and options.labels is not None:
        asked = _ids.among((label.question for label in labels), [question.id for question in questions])
        gathered = _label_file.gather(
            options.labels, labels, asked, documents, faults, f"neither in {options.path.name} nor there"
        )
    rows = []
    for entry, question in zip(entries, questions, strict=True):
        grades = None if gathered is None else gathered.grades.get(question.id, {})
        if grades is not None and not grades:
            unlabelled += 1
            continue
        row = _row(entry, question, corpus, documents, grades, options, faults)
        embedding = entry.embedding if vectors is None else vectors[str(question.id)]
        if embedding is not None:
            row["embedding"] = embedding
            row |= {"embedding_model": entry.model or options.model} if entry.model or options.model else {}
        rows.append((entry, row))
    faults.raise_if_any()
    _ingest.require_dimension(corpus, "question", [row.get("embedding") for _, row in rows])
    fresh, fillings = _compared(database, rows, options.path, faults)
    faults.raise_if_any()
    if not options.dry_run:
        undo = _ingest.empty(database, fillings)
        with _ingest.logged(database, f"questions of {options.path.name}", 0, len(fresh) + len(fillings), undo) as added:
            _ingest.fill(database, fillings)
            _ingest.add_questions(database, fresh, added, progress)
    return ImportedQuestions(
        questions=len(fresh),
        labels=sum(len(row.get("judged") or row["relevant"]) for row in fresh),
        questions_there=len(rows) - len(fresh),
        vectors_filled=len(fillings),
        unlabelled=unlabelled,
        repeated_labels=(gathered.repeated if gathered else 0) + sum(entry.repeated for entry, _ in rows),
        dry_run=options.dry_run,
    )


def labels_of(grades: Sequence[tuple[RecordID, float | int]]) -> dict[str, Any]:
    """Labels as a question keeps them: plain ones where every grade is 1, else graded, and no answer where none is 1 or more."""
    if all(grade == 1 for _, grade in grades):
        return {"relevant": [document for document, _ in grades], "answerable": True}
    return judged_of(grades)


def judged_of(grades: Sequence[tuple[RecordID, float | int]]) -> dict[str, Any]:
    """Labels that stay graded, whatever their grades."""
    relevant = [document for document, grade in grades if grade >= 1]
    judged = [{"document": document, "grade": grade} for document, grade in grades]
    return {"judged": judged, "relevant": relevant, "answerable": bool(relevant)}


def _labelled(entries: list[_question_file.Entry], options: Options) -> tuple[list[_question_file.Entry], int]:
    """The questions that can be stored, and how many Quepid had no rating for. Raises DataError for questions without labels."""
    with_labels = [entry for entry in entries if entry.is_labelled]
    bare = [entry for entry in entries if not entry.is_labelled]
    if options.labels is not None:
        if with_labels:
            raise UsageError(
                f"{options.path.name} has labels of its own, first in line {with_labels[0].line}, and --labels gives others",
                f"import it without --labels, then: surrecall import labels {options.labels}",
            )
        return bare, 0
    if options.form == "quepid" and with_labels:
        return with_labels, len(bare)
    if bare:
        raise DataError(
            f"{len(bare)} of {len(entries)} questions of {options.path} have no label, first in line {bare[0].line}: "
            f"{bare[0].content.strip()[:120]!r}",
            f"name the documents that answer them (relevant), say answerable false, or give a file of labels: "
            f"surrecall import questions {options.path} --labels qrels.tsv",
        )
    return entries, 0


def _record(
    table: str, entry: _question_file.Entry, known: dict[_ids.Name, list[RecordID]], path: Path, faults: Faults
) -> RecordID:
    """The id of a question: the one that is there, else a new one."""
    name = entry.name
    if name is None:
        return RecordID(table, _question_file.made_id(entry.text))
    if len(known[name]) > 1:
        faults.add(path, entry.line, _label_file.missing("question", name, known[name]), entry.content)
    return known[name][0] if known[name] else _ids.new(table, name)


def _read_vectors(
    options: Options, corpus: Corpus, entries: list[_question_file.Entry], questions: list[RecordID]
) -> _vectors.Vectors | None:
    if options.vectors is None:
        if options.ids is not None:
            raise UsageError("--ids names the rows of --vectors, which is not given", "give --vectors FILE.npy")
        if corpus.vector is None and any(entry.embedding is not None for entry in entries):
            raise UsageError(f"the questions have vectors, and {corpus.table} has none", "leave embedding out of the file")
        return None
    if corpus.vector is None:
        raise UsageError(f"{corpus.table} has no vectors, so its questions need none", "leave --vectors out")
    vectors = _vectors.read(options.vectors, options.ids or options.vectors.with_suffix(".ids.txt"))
    _vectors.require_distinct([question.id for question in questions], options.path)
    lacking = [question for question in questions if str(question.id) not in vectors]
    if lacking:
        raise DataError(
            f"{len(lacking)} of {len(questions)} questions have no vector in {options.vectors.name}, first {lacking[0].id!r}",
            "embed them all, or import without --vectors",
        )
    return vectors


def _row(
    entry: _question_file.Entry,
    question: RecordID,
    corpus: Corpus,
    documents: dict[_ids.Name, list[RecordID]],
    grades: dict[Any, float | int] | None,
    options: Options,
    faults: Faults,
) -> dict[str, Any]:
    """A question as it is stored."""
    for name in dict.fromkeys(entry.documents):
        if len(documents[name]) != 1:
            faults.add(options.path, entry.line, _label_file.missing("document", name, documents[name]), entry.content)
            return {"relevant": []}

    def meant(names: Sequence[_ids.Name]) -> list[RecordID]:
        return [documents[name][0] for name in names]

    details = dict(entry.details)
    row: dict[str, Any] = {"id": question, "text": entry.text, "set": details.pop("set", options.question_set), **details}
    if grades is not None:
        row |= {"source": "imported"} | details
        row |= labels_of([(RecordID(corpus.table, document), grade) for document, grade in grades.items()])
    elif entry.judged:
        pairs = list(zip(meant([name for name, _ in entry.judged]), (grade for _, grade in entry.judged), strict=True))
        if len({document.id for document, _ in pairs}) < len(pairs):
            faults.add(options.path, entry.line, "two names of one document, each with a grade", entry.content)
        row |= judged_of(pairs)
    else:
        row |= {"relevant": list({document.id: document for document in meant(entry.relevant)}.values())}
    if entry.answerable is not None:
        row["answerable"] = entry.answerable
    if entry.anchors:
        phrases = [phrase for _, phrase in entry.anchors]
        row["anchors"] = [
            {"document": document, "phrase": phrase}
            for document, phrase in zip(meant([name for name, _ in entry.anchors]), phrases, strict=True)
        ]
    return row


def _compared(
    database: Database, rows: list[tuple[_question_file.Entry, dict[str, Any]]], path: Path, faults: Faults
) -> tuple[list[dict[str, Any]], list[_ingest.Filling]]:
    """The rows that are not there yet, and vectors for those that are there without one.

    A row that is there with another content is a fault, and so is an id that is there twice.
    """
    there: dict[Any, dict[str, Any]] = {}
    for batch in _ingest.batches([row["id"] for _, row in rows], _BATCH):
        there |= {row["id"].id: row for row in database.value(_THERE, ids=batch)}
    fresh = []
    fillings = []
    seen: dict[Any, int] = {}
    for entry, row in rows:
        name = row["id"].id
        if name in seen:
            faults.add(path, entry.line, f"the same question as line {seen[name]}", entry.content)
            continue
        seen[name] = entry.line
        if name not in there:
            fresh.append(row)
            continue
        other = _difference(row, there[name])
        if other is not None:
            faults.add(path, entry.line, f"the question {name!r} is there with another {other}", entry.content)
        elif row.get("embedding") is not None and not there[name].get("embedding"):
            values: dict[str, Any] = {"embedding": row["embedding"], "embedding_model": row.get("embedding_model")}
            fillings.append(_ingest.Filling(row["id"], values))
    return fresh, fillings


def _difference(row: dict[str, Any], there: dict[str, Any]) -> str | None:
    """What a row has other than the one that is there; a vector only where the row has one."""
    if row["text"] != there.get("text"):
        return f"text: {str(there.get('text'))[:60]!r}"
    if row["set"] != there.get("set"):
        return f"set: {there.get('set')!r}"
    ours, theirs = _grades(row), _grades(there)
    if ours != theirs:
        return f"labels, {len(theirs)} and not {len(ours)} or of other grades; surrecall import labels changes them"
    if row.get("answerable", True) != there.get("answerable", True):
        return "answerable"
    for key, default in _DETAILS.items():
        if row.get(key, default) != (there.get(key) or default):
            return f"{key}: {there.get(key)!r}"
    if _phrases(row) != _phrases(there):
        return "anchors"
    if row.get("embedding") is not None and there.get("embedding") and row["embedding"] != there["embedding"]:
        return "vector"
    return None


def _grades(row: dict[str, Any]) -> dict[Any, float | int]:
    if row.get("judged"):
        return {label["document"].id: label["grade"] for label in row["judged"]}
    return {document.id: 1 for document in row["relevant"]}


def _phrases(row: dict[str, Any]) -> list[tuple[Any, str]]:
    return [(anchor["document"].id, anchor["phrase"]) for anchor in row.get("anchors") or []]
