"""Driving a pool: the merged top results of several retrievers. Merging, folding and shares are the database's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._errors import SurrecallError
from surrecall._render import record_text
from surrecall._shards import Progress, Shards, joined

_BEGIN = "RETURN fn::pool_begin($options)"
_PART = "RETURN (SELECT VALUE fn::pool_question($begun, id) FROM $questions)"
_END = "RETURN fn::pool_end($begun, $parts)"
_FIRST_SHARD = 4
# of a row of fn::pool_question, what fn::pool_end reads
_READ = ("lists", "labels", "origins", "unjudged", "asked", "failed", "elsewhere", "gone")


@dataclass(frozen=True)
class Options:
    """What to pool; None takes the default of fn::pool_begin. Candidates that `who` skipped come last."""

    question_set: str | None = None
    retrievers: Sequence[str] | None = None
    k: int | None = None
    question: RecordID | None = None
    who: str | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """The options of fn::pool_begin."""
        given = {
            "set": self.question_set,
            "retrievers": list(self.retrievers) if self.retrievers else None,
            "k": self.k,
            "question": self.question,
            "who": self.who,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Candidate:
    """What is to be judged for a question: the document that is shown, and those of its text, which get the same judgement."""

    question: RecordID
    text: str
    documents: list[RecordID]
    rank: int
    retrievers: list[str]
    skipped: bool


@dataclass(frozen=True)
class Pooled:
    """What fn::pool_begin, fn::pool_question for each question, and fn::pool_end gave."""

    begun: dict[str, Any]
    rows: list[dict[str, Any]]
    told: dict[str, Any]

    @property
    def unjudged(self) -> list[Candidate]:
        """The candidates that nobody judged, question by question, those that were skipped last."""
        found = [
            Candidate(row["question"], row["text"], one["open"], one["rank"], one["retrievers"], one["skipped"])
            for row in self.rows
            for one in row["candidates"]
            if not one["judged"]
        ]
        # stable: within either half they stay in their order
        return sorted(found, key=lambda candidate: candidate.skipped)


def pool(database: Database, options: Options, progress: Progress = lambda _done, _all: None) -> Pooled:
    """Pool the top results of each question. Raises UsageError where fewer than two retrievers can be pooled."""
    begun = database.value(_BEGIN, options=options.asked)
    rows = _rows(database, begun, begun["questions"], progress)
    return Pooled(begun, rows, _end(database, begun, rows))


def again(database: Database, pooled: Pooled, questions: Sequence[RecordID]) -> Pooled:
    """The same pool after some of its questions were judged."""
    touched = {record_text(question): question for question in questions}
    fresh = {record_text(row["question"]): row for row in _rows(database, pooled.begun, list(touched.values()))}
    rows = [row for row in pooled.rows if record_text(row["question"]) not in touched] + list(fresh.values())
    places = {record_text(question): place for place, question in enumerate(pooled.begun["questions"])}
    rows.sort(key=lambda row: places[record_text(row["question"])])
    return Pooled(pooled.begun, rows, _end(database, pooled.begun, rows))


def _rows(
    database: Database, begun: dict[str, Any], questions: list[RecordID], progress: Progress = lambda _done, _all: None
) -> list[dict[str, Any]]:
    def work(start: int, end: int) -> list[dict[str, Any]]:
        part = questions[start:end]
        try:
            rows: list[dict[str, Any]] = database.value(_PART, begun=begun, questions=part)
        except SurrecallError as error:
            raise _named(database, begun, part, error) from error
        return rows

    return joined(Shards(len(questions), progress).run(len(questions), work, _FIRST_SHARD))


def _named(database: Database, begun: dict[str, Any], questions: list[RecordID], error: SurrecallError) -> SurrecallError:
    """The error of the one question that a retriever fails on."""
    if error.statement is None:
        return error
    for question in questions:
        try:
            database.value(_PART, begun=begun, questions=[question])
        except SurrecallError as cause:
            if cause.statement is None:
                return cause
            return type(cause)(f"{record_text(question)} can't be asked: {cause.message}", cause.hint, cause.statement)
    return error


def _end(database: Database, begun: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    parts = [{name: row[name] for name in _READ} for row in rows]
    told: dict[str, Any] = database.value(_END, begun=begun, parts=parts)
    return told
