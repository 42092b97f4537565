"""The questions of every day as functions of Python: compare, gate, trend, misses. Every figure and verdict is the database's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surrealdb import RecordID

from surrecall import _comparison, _diagnosis, _gate, _resolution, _trend
from surrecall._database import Database
from surrecall._rows import Rows


@dataclass(frozen=True)
class Comparison(Rows):
    """Differences told from noise, a row a pair: {a, b, a_mean, b_mean, difference, low, high, wins, ties, losses, questions, p}.

    Means and `difference` (b - a) are those of `metric`, in [0,1]; `low` and `high` are the ends of the 95% bootstrap interval,
    `p` is that of the sign-flip test, by Holm where there are several. `fixed` and `broke` are {question, text, a, b}, the
    largest change first. Sources: docs/comparison.md.
    """

    metric: str
    k: int
    rows: Sequence[Mapping[str, Any]]
    verdicts: Sequence[str]
    fixed: Sequence[Mapping[str, Any]]
    broke: Sequence[Mapping[str, Any]]
    warnings: Sequence[str]

    def _lines(self) -> Sequence[str]:
        return [*self.verdicts, *(f"warning: {text}" for text in self.warnings)]


@dataclass(frozen=True)
class Gate(Rows):
    """Whether floors hold, a row a floor: {floor, retriever, metric, k, value, wanted, baseline, holds, sentence}.

    `value` is the mean of `metric` at k in [0,1], None where it was not measured, which does not hold. `holds` is the verdict
    over all.
    """

    holds: bool
    sentence: str
    rows: Sequence[Mapping[str, Any]]
    faults: Sequence[str] = field(default_factory=list)

    def _lines(self) -> Sequence[str]:
        return [*self.faults, self.sentence]


@dataclass(frozen=True)
class Trend(Rows):
    """The history by day, a row a day and retriever: {day, retriever, k, value, lowest, highest, runs, questions, changed}.

    `value` is the mean of `metric` over the runs of the day, in [0,1]; `changed` says what was not the same as before.
    """

    metric: str
    rows: Sequence[Mapping[str, Any]]
    sentences: Sequence[str]
    warnings: Sequence[str]

    def _lines(self) -> Sequence[str]:
        return [*self.sentences, *(f"warning: {text}" for text in self.warnings)]


@dataclass(frozen=True)
class Misses(Rows):
    """Labels that a retriever left out of its first k, and why: {question, text, document, title, rank, kind, why, advice}.

    `rank` is its place in the retriever's list, from 1, None where it is not there; `kind` one of docs/diagnosis.md. `recall` is
    the mean recall@k in [0,1] of the `questions` that have labels.
    """

    retriever: str
    k: int
    recall: float
    questions: int
    rows: Sequence[Mapping[str, Any]]


def compare(
    database: Database,
    *sides: str | RecordID,
    metric: str = "recall",
    k: int | None = None,
    retriever: str | None = None,
    question_set: str | None = None,
    every_pair: bool = False,
) -> Comparison:
    """Compare retrievers by name, or evaluations by id, on the questions that both have with equal labels; nothing is retrieved.

    `k` is the largest cutoff that all were measured at where none is given. Raises UsageError for what is unknown, DataError
    when no question can be compared.
    """
    asked = _comparison.Comparison(
        sides=list(sides), metric=metric, k=k, retriever=retriever, question_set=question_set, every_pair=every_pair
    )
    told = _comparison.compare(database, asked)
    pairs = told["comparisons"]
    rows = [
        {
            "a": one["a"]["name"],
            "b": one["b"]["name"],
            "a_mean": one["mean_a"],
            "b_mean": one["mean_b"],
            "difference": one["difference"],
            "low": one["interval"]["low"],
            "high": one["interval"]["high"],
            **{name: one[name] for name in ("wins", "ties", "losses", "questions", "p")},
        }
        for one in pairs
    ]
    return Comparison(
        metric=told["metric"],
        k=told["k"],
        rows=rows,
        verdicts=[one["verdict"] for one in pairs],
        fixed=[row for one in pairs for row in one["fixed"]],
        broke=[row for one in pairs for row in one["broke"]],
        warnings=list(dict.fromkeys(text for one in pairs for text in one["warnings"])),
    )


def gate(database: Database, *evaluations: RecordID, baseline: str | None = None) -> Gate:
    """Judge the floors by these evaluations, or by the newest finished one of each golden set; nothing is measured.

    `baseline` is the name that drops are measured against, in the place of each floor's own. Raises UsageError for an evaluation
    that is not there.
    """
    told = _gate.judge(database, _gate.evaluations(evaluations) if evaluations else None, baseline)
    columns = ("floor", "retriever", "metric", "k", "value", "wanted", "holds", "sentence")
    rows = [{name: one.get(name) for name in columns} | {"baseline": one.get("base")} for one in told["floors"]]
    return Gate(holds=told["holds"], sentence=told["sentence"], rows=rows, faults=told["faults"])


def trend(
    database: Database,
    *,
    metric: str = "recall",
    k: int | None = None,
    retriever: str | None = None,
    question_set: str | None = None,
    days: int | None = None,
) -> Trend:
    """The history of the last `days` (30), by UTC day. Raises UsageError for what is unknown."""
    asked = _trend.Trend(metric=metric, k=k, retriever=retriever, question_set=question_set, days=days)
    told = _trend.trend(database, asked)
    columns = ("day", "retriever", "k", "value", "lowest", "highest", "runs", "questions", "changed")
    rows = [{name: row.get(name) for name in columns} for row in told["rows"]]
    return Trend(metric=told["metric"], rows=rows, sentences=told["sentences"], warnings=told["warnings"])


def misses(database: Database, retriever: str, k: int, *, evaluation: RecordID | None = None) -> Misses:
    """Every label that a retriever missed at k in an evaluation (the newest complete one), and why; its lists are asked anew.

    Raises UsageError for what is unknown, DataError where nothing is complete.
    """
    row = _resolution.evaluation_of(database, evaluation, None, [retriever])
    told = _diagnosis.misses(database, row["id"], retriever, k, None, lambda _done, _all: None)
    columns = ("question", "text", "document", "title", "rank", "kind", "why", "advice")
    rows = [{name: one.get(name) for name in columns} for one in told["rows"]]
    summary = told["summary"]
    return Misses(retriever=retriever, k=k, recall=summary["recall"], questions=summary["questions"], rows=rows)
