"""The rankings of an outside system, from a file, as one evaluation among the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _evaluation, _ids, _ingest, _label_file, _retrievers, _run_file, _writer
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DataError, SurrecallError, UsageError
from surrecall._faults import Faults

_QUESTIONS = "SELECT VALUE id FROM question WHERE set = $set ORDER BY id"
_SAMPLES = "SELECT VALUE id FROM type::table($table) LIMIT 2"
_SETS = "SELECT VALUE set FROM question GROUP BY set"
_STORE = "fn::import_answers($evaluation, $answers)"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to import: the file, the name its system goes by, the golden set, and the cutoffs to measure at.

    `form` is that of the file; None takes the one that its ending names.
    """

    path: Path
    retriever: str
    cutoffs: Sequence[int]
    question_set: str = "default"
    note: str | None = None
    revision: str | None = None
    form: _run_file.Form | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class ImportedRun:
    """What an import did, or would do.

    `evaluation` is the new one, or the one that the file was imported as before (`known`); None for a trial. Counts are of lines,
    of the questions of the set and how many of them have no line, of questions of the file that the set has not, of different
    documents and how many of them the corpus has not.
    """

    evaluation: _evaluation.Evaluation | None
    known: bool
    lines: int
    questions: int
    unanswered: int
    unknown_questions: int
    documents: int
    unknown_documents: int

    @property
    def warnings(self) -> list[str]:
        """What should be known beside the figures."""
        found = list(self.evaluation.warnings) if self.evaluation else []
        if self.unknown_documents:
            found.append(
                f"{self.unknown_documents} of {self.documents} documents of the run are not in the corpus; they are not relevant"
            )
        if self.unknown_questions:
            found.append(f"{self.unknown_questions} questions of the run are not in the golden set and were left out")
        return found


def import_run(
    database: Database, corpus: Corpus, options: Options, progress: Progress = lambda _done, _all: None
) -> ImportedRun:
    """Store the rankings of a file as the answers of one evaluation, and measure them; a second time changes nothing.

    Raises DataError for lines that can't be read, or when the file shares no question or no document with the database;
    UsageError for the name of a registered retriever. After any failure nothing of it is left.
    """
    _retrievers.require_name(options.retriever)
    if options.path.exists() and not options.path.is_file():
        raise UsageError(f"{options.path} is no file", "write the run into a file first: it is read twice")
    faults = Faults()
    lines = _run_file.read(options.path, options.form or _run_file.form_of(options.path), faults)
    faults.raise_if_any(f"mend these lines, then import again; {_run_file.FORMS}")
    if not lines:
        raise DataError(f"{options.path} holds no line", _run_file.FORMS)
    asked: list[RecordID] = database.value(_QUESTIONS, set=options.question_set)
    questions = _among(asked, [line.question for line in lines])
    documents = _ids.resolve(database, corpus.table, [line.document for line in lines])
    _require_overlap(database, corpus, options, questions, documents, asked)
    for line in lines:
        for kind, name, meant in (("question", line.question, questions), ("document", line.document, documents)):
            if len(meant[name]) > 1:
                faults.add(options.path, line.line, _label_file.missing(kind, name, meant[name]), line.content)
    faults.raise_if_any()
    listed: dict[Any, list[dict[str, Any]]] = {_ids.key(question): [] for question in asked}
    for line in lines:
        for question in questions[line.question]:
            document = (documents[line.document] or [_ids.new(corpus.table, line.document)])[0]
            listed[_ids.key(question)].append(line.listed(document))
    told = ImportedRun(
        evaluation=None,
        known=False,
        lines=len(lines),
        questions=len(asked),
        unanswered=sum(not rows for rows in listed.values()),
        unknown_questions=sum(not found for found in questions.values()),
        documents=len(documents),
        unknown_documents=sum(not found for found in documents.values()),
    )
    request = {
        "retriever": options.retriever,
        "k": list(options.cutoffs),
        "set": options.question_set,
        "note": options.note,
        "revision": options.revision,
        "engine": database.version,
        "longest": max(len(rows) for rows in listed.values()),
        "file": options.path.name,
        "sha256": hashlib.sha256(options.path.read_bytes()).hexdigest(),
    }
    known = database.value("RETURN fn::imported_run($options)", options=request)
    if known is not None:
        return replace(told, evaluation=_evaluation.read(database, known), known=True)
    database.run("fn::require_import($retriever, $set)", retriever=options.retriever, set=options.question_set)
    if options.dry_run:
        return told
    return replace(told, evaluation=_record(database, request, asked, listed, progress))


def _record(
    database: Database,
    request: dict[str, Any],
    asked: list[RecordID],
    listed: dict[Any, list[dict[str, Any]]],
    progress: Progress,
) -> _evaluation.Evaluation:
    """Store and measure; an import of the same name that was cut off is replaced."""
    _writer.require_writer(database, "import")
    left = database.value("RETURN fn::imports_cut_off($retriever, $set)", retriever=request["retriever"], set=request["set"])
    for other in left:
        _evaluation.discard(database, other)
    row = database.value("RETURN fn::import_begin($options)", options=request)
    evaluation: RecordID = row["id"]
    try:
        done = 0
        for shard in _ingest.shards(asked, lambda question: len(listed[_ids.key(question)])):
            answers = [{"question": question, "listed": listed[_ids.key(question)]} for question in shard]
            database.run(_STORE, evaluation=evaluation, answers=answers)
            done += len(shard)
            progress(done, len(asked))
        _evaluation.fingerprint(database, evaluation)
        return _evaluation.finish(database, row)
    except BaseException:
        # where the database went away, check names the import, and importing the file again takes its place
        with suppress(SurrecallError):
            _evaluation.discard(database, evaluation)
        raise


def _among(asked: list[RecordID], names: list[_ids.Name]) -> dict[_ids.Name, list[RecordID]]:
    by_id = {_ids.key(question): question for question in asked}
    return {name: [by_id[value] for value in values] for name, values in _ids.among(names, by_id).items()}


def _require_overlap(
    database: Database,
    corpus: Corpus,
    options: Options,
    questions: dict[_ids.Name, list[RecordID]],
    documents: dict[_ids.Name, list[RecordID]],
    asked: list[RecordID],
) -> None:
    """Refuse a file that is of other questions or other documents: every figure would be 0, and look like a bad system."""
    if not any(questions.values()):
        sets = ", ".join(database.value(_SETS)) or "none"
        raise DataError(
            f"no question in common: {options.path.name} has {len(questions)}, for example {_sample(questions)}; the golden set "
            f"{options.question_set} has {len(asked)}, for example {_sample(asked)}",
            f"compare the ids, or name another golden set with --set (there are: {sets})",
        )
    if not any(documents.values()):
        size = database.value("RETURN fn::corpus_size()")
        samples = database.value(_SAMPLES, table=corpus.table)
        raise DataError(
            f"no document in common: {options.path.name} has {len(documents)}, for example {_sample(documents)}; "
            f"{corpus.table} has {size}, for example {_sample(samples)}",
            "compare the ids: labels are of the documents that are in the database",
        )


def _sample(names: Any) -> str:
    return " and ".join(repr(name.id if isinstance(name, RecordID) else name.value) for name in list(names)[:2]) or "none"
