"""Questions of a file into the golden set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _ids, _import_models, _ingest, _label_file, _labels, _question_changes, _question_file, _schema, _vectors
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._faults import Faults
from surrecall._question_changes import Wanted

_BLANK = "RETURN $phrases.map(|$phrase| fn::anchor_text($phrase) = '')"
_THERE = "SELECT * FROM $ids"
_BATCH = 500
_ADVISED = 500
_OTHER_CONTENT = "mend these lines; or --replace changes the questions that are there to what the file says"


@dataclass(frozen=True)
class Options:
    """What to import. `labels` is a file of labels for questions that carry none; `ids` names the questions of `vectors`.

    `replace` changes questions that are there with another content.
    """

    path: Path
    form: str
    labels: Path | None = None
    question_set: str = "default"
    vectors: Path | None = None
    ids: Path | None = None
    model: str | None = None
    names: _question_file.Names = _question_file.USUAL
    replace: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class ImportedQuestions:
    """What an import did, or would do: rows added, their labels, and rows that were there already.

    Of those, `replaced` had another content, with `labels_added` and `labels_replaced` (their grade) among it, and
    `vectors_outdated` lost the vector of their old text; `vectors_filled` had no vector, and were given one; `models_stated` had
    one of an unknown or another model. `below_one` questions have labels of which none reaches grade 1, the first of them
    `first_below_one`. `anchors` is what fn::anchor_advice says of the anchors that came in; None where there are none.
    """

    questions: int
    labels: int
    questions_there: int
    replaced: int
    labels_added: int
    labels_replaced: int
    vectors_filled: int
    models_stated: int
    vectors_outdated: int
    below_one: int
    first_below_one: str | int | None
    unlabelled: int
    repeated_labels: int
    dry_run: bool
    anchors: dict[str, Any] | None = None


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
    entries = _question_file.read(options.path, options.form, faults, options.names)
    labels = None if options.labels is None else _label_file.read(options.labels, None, faults)
    faults.raise_if_any()
    if not entries:
        raise DataError(f"{options.path} holds no question", "one row a question: id, text, and its relevant documents")
    entries, unlabelled = _labelled(entries, options)
    table = database.table("question")
    if table in database.value("INFO FOR DB")["tables"]:
        _schema.require_corpus(database, corpus.table)
    elif not options.dry_run:
        # a row for a table that is not there would make a table without any of its rules
        _schema.apply(database, project)
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
    _refuse_blank(database, entries, options, table, faults)
    rows: list[Wanted] = []
    for entry, question in zip(entries, questions, strict=True):
        grades = None if gathered is None else gathered.grades.get(question.id, {})
        wanted = _wanted(entry, question, corpus, documents, grades, options, faults)
        embedding = entry.embedding if vectors is None else vectors[str(question.id)]
        if embedding is not None:
            wanted.row["embedding"] = embedding
            wanted.row.update({"embedding_model": entry.model or options.model} if entry.model or options.model else {})
        rows.append(wanted)
    faults.raise_if_any()
    _ingest.require_dimension(corpus, "question", [wanted.row.get("embedding") for wanted in rows])
    found = _compared(database, rows, options, faults)
    faults.raise_if_any(_OTHER_CONTENT if found.unlike and not options.replace else None)
    if found.bare and options.labels is None:
        raise _without_labels(found.bare, len(entries), options)
    if not options.dry_run:
        _store(database, corpus, options, found, progress)
    return ImportedQuestions(
        questions=len(found.fresh),
        labels=sum(len(row.get("judged") or row["relevant"]) for row in found.fresh),
        questions_there=len(rows) - len(found.fresh) - len(found.bare),
        replaced=sum(change.replaced for change in found.changes.values()),
        labels_added=sum(change.added for change in found.changes.values()),
        labels_replaced=sum(change.regraded for change in found.changes.values()),
        vectors_filled=sum(change.filled for change in found.changes.values()),
        models_stated=sum(change.modelled for change in found.changes.values()),
        vectors_outdated=sum(change.outdated for change in found.changes.values()),
        below_one=len(found.below_one),
        first_below_one=found.below_one[0] if found.below_one else None,
        unlabelled=unlabelled + len(found.bare),
        repeated_labels=(gathered.repeated if gathered else 0) + sum(wanted.entry.repeated for wanted in rows),
        dry_run=options.dry_run,
        anchors=_advice(database, [wanted.row["id"] for wanted in rows if wanted.row.get("anchors")], options),
    )


def _refuse_blank(database: Database, entries: list[_question_file.Entry], options: Options, table: str, faults: Faults) -> None:
    """An anchor of characters that are nowhere, a soft hyphen for one, would stand in every text."""
    phrases = [(entry, phrase) for entry in entries for _, phrase in entry.anchors]
    # nothing of surrecall's is there in a dry run before the first apply
    if not phrases or table not in database.value("INFO FOR DB")["tables"]:
        return
    for some in _ingest.batches(phrases, _BATCH):
        blank = database.value(_BLANK, phrases=[phrase for _, phrase in some])
        for (entry, _), is_blank in zip(some, blank, strict=True):
            if is_blank:
                faults.add(options.path, entry.line, "an anchor whose phrase holds no visible character", entry.content)


def _advice(database: Database, questions: list[Any], options: Options) -> dict[str, Any] | None:
    """What should be known of the anchors that were stored; None where there are none."""
    if not questions or options.dry_run:
        return None
    parts = [questions[start : start + _ADVISED] for start in range(0, len(questions), _ADVISED)]
    told = [database.value("RETURN fn::anchor_advice($questions)", questions=part) for part in parts]
    first = next((part["first"] for part in told if part.get("first")), None)
    return {key: sum(part[key] for part in told) for key in ("anchors", "unclear", "unusual")} | {"first": first}


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
    # those that are there have their labels
    if bare and not options.replace:
        raise _without_labels(bare, len(entries), options)
    return entries, 0


def _without_labels(bare: list[_question_file.Entry], count: int, options: Options) -> DataError:
    return DataError(
        f"{len(bare)} of {count} questions of {options.path} have no label, first in line {bare[0].line}: "
        f"{bare[0].content.strip()[:120]!r}",
        f"name the documents that answer them (relevant), say answerable false, or give a file of labels: "
        f"surrecall import questions {options.path} --labels qrels.tsv",
    )


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


def _wanted(
    entry: _question_file.Entry,
    question: RecordID,
    corpus: Corpus,
    documents: dict[_ids.Name, list[RecordID]],
    grades: dict[Any, float | int] | None,
    options: Options,
    faults: Faults,
) -> Wanted:
    """A question as it is stored, and its labels as the file gives them."""
    for name in dict.fromkeys(entry.documents):
        if len(documents[name]) != 1:
            faults.add(options.path, entry.line, _label_file.missing("document", name, documents[name]), entry.content)
            return Wanted(entry, {"relevant": []}, [], names_set=False)

    def meant(names: Sequence[_ids.Name]) -> list[RecordID]:
        return [documents[name][0] for name in names]

    details = dict(entry.details)
    question_set = details.pop("set", options.question_set)
    row: dict[str, Any] = {"id": question, "text": entry.text, "set": question_set, **details}
    labels: list[tuple[RecordID, float | int | None]]
    if grades is not None:
        row |= {"source": "imported"} | details
        pairs = [(RecordID(corpus.table, document), grade) for document, grade in grades.items()]
        row |= _labels.labels_of(pairs)
        labels = [*pairs]
    elif entry.judged:
        pairs = list(zip(meant([name for name, _ in entry.judged]), (grade for _, grade in entry.judged), strict=True))
        if len({document.id for document, _ in pairs}) < len(pairs):
            faults.add(options.path, entry.line, "two names of one document, each with a grade", entry.content)
        row |= _labels.judged_of(pairs)
        labels = [*pairs]
    else:
        # a question that only says where its answer stands is labelled with these documents
        named = entry.relevant or ([] if entry.answerable is False else [name for name, _ in entry.anchors])
        row |= {"relevant": list({document.id: document for document in meant(named)}.values())}
        labels = [(document, None) for document in row["relevant"]]
    if entry.answerable is not None:
        row["answerable"] = entry.answerable
    if entry.anchors:
        phrases = [phrase for _, phrase in entry.anchors]
        row["anchors"] = [
            {"document": document, "phrase": phrase}
            for document, phrase in zip(meant([name for name, _ in entry.anchors]), phrases, strict=True)
        ]
    return Wanted(entry, row, labels, names_set="set" in entry.details or question_set != "default")


@dataclass
class _Compared:
    """Rows that are not there yet, without labels (`bare`) or to be stored; changes of those that are, by index of `before`.

    `unlike` counts those that are there with another content.
    """

    fresh: list[dict[str, Any]]
    bare: list[_question_file.Entry]
    changes: dict[int, _question_changes.Change]
    before: list[dict[str, Any]]
    below_one: list[Any]
    unlike: int = 0


def _compared(database: Database, rows: list[Wanted], options: Options, faults: Faults) -> _Compared:
    """What is there of the rows, and what is to become of it.

    A row that is there with another content is a fault unless it is to be replaced, and so is an id that is there twice.
    """
    there: dict[Any, dict[str, Any]] = {}
    for batch in _ingest.batches([wanted.row["id"] for wanted in rows], _BATCH):
        there |= {row["id"].id: row for row in database.value(_THERE, ids=batch)}
    found = _Compared([], [], {}, [], [])
    seen: dict[Any, int] = {}
    for wanted in rows:
        entry, name = wanted.entry, wanted.row["id"].id
        if name in seen:
            faults.add(options.path, entry.line, f"the same question as line {seen[name]}", entry.content)
            continue
        seen[name] = entry.line
        old = there.get(name)
        labelled = bool(wanted.labels) or entry.answerable is False
        if old is None or (not labelled and not options.replace):
            if labelled:
                found.fresh.append(wanted.row)
            else:
                found.bare.append(entry)
            new = wanted.row
        elif options.replace:
            change = _question_changes.change(wanted, old)
            if change.fault:
                faults.add(options.path, entry.line, f"the question {name!r} {change.fault}", entry.content)
            new = _note(found, change, old)
        else:
            other = _question_changes.difference(wanted, old)
            if other is not None:
                faults.add(options.path, entry.line, f"the question {name!r} is there with {other}", entry.content)
                found.unlike += 1
                continue
            filling = _question_changes.filling(wanted.row, old)
            filled = "embedding" in filling
            new = _note(found, _question_changes.Change(filling, filled, modelled=bool(filling) and not filled), old)
        if entry.answerable is None and new.get("judged") and not any(label["grade"] >= 1 for label in new["judged"]):
            found.below_one.append(name)
    return found


def _note(found: _Compared, change: _question_changes.Change, old: dict[str, Any]) -> dict[str, Any]:
    """Keep a change that changes something; the question as it will be."""
    if change.values:
        found.changes[len(found.before)] = change
        found.before.append(old)
    return old | change.values


def _store(database: Database, corpus: Corpus, options: Options, found: _Compared, progress: _ingest.Progress) -> None:
    """Write changes and new questions; after a failure all is as it was."""
    # an edit of labels says who made it
    edited = {"edited": {"who": "import questions", "why": options.path.name, "at": datetime.now(UTC)}}
    after = [
        _ingest.Filling(found.before[index]["id"], change.values | (edited if change.added or change.regraded else {}))
        for index, change in found.changes.items()
    ]
    before = [
        _ingest.Filling(filling.id, {key: old.get(key) for key in filling.values})
        for filling, old in zip(after, found.before, strict=True)
    ]
    vectors = any(row.get("embedding") is not None for row in [*found.fresh, *(filling.values for filling in after)])
    models = any("embedding_model" in filling.values for filling in after) or vectors
    record = _import_models.Record(database, database.table("question"), "embedding") if models else None

    def undo() -> None:
        _ingest.put_back(database, after, before)
        if record is not None:
            record.put_back()

    with _ingest.logged(database, f"questions of {options.path.resolve()}", 0, len(found.fresh) + len(after), undo) as added:
        _ingest.fill(database, after)
        _ingest.add_questions(database, found.fresh, added, progress)
        if record is not None:
            record.settle(corpus.dimension)
