"""What a report tells. Every figure is the database's, from stored answers; the reasons of misses ask the retrievers anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from surrealdb import RecordID

from surrecall import _comparison, _diagnosis, _evaluation, _gate, _resolution
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._shards import Progress, Shards, joined

METRICS = ("recall", "hit", "precision", "rr", "ap", "ndcg")

_MEASURES = "RETURN fn::report_measures($evaluation, $retriever, $k, $metrics)"
_HISTORY = "RETURN fn::report_history($set, $k, $metric, $limit)"
_HEALTH = "RETURN fn::report_health($set)"
_ORDER = "RETURN fn::report_order($evaluation, $retrievers, $k, $metric)"
_QUESTIONS = "RETURN fn::report_questions($evaluation, $questions, $options)"
_FLOORS = "RETURN count(SELECT VALUE id FROM eval_floor) > 0"
_NOW = "RETURN time::now()"
# the newest complete one of the set before this one that has the retriever
_BEFORE = """
RETURN (
  SELECT id, started FROM evaluation
  WHERE set = $set AND status = 'complete' AND seen = NONE AND started < $started AND calls.retriever CONTAINS $retriever
  ORDER BY started DESC, id DESC LIMIT 1
)[0].id
"""
_STEPS = 200


@dataclass(frozen=True)
class Asked:
    """What a report is about: an evaluation (the newest complete one of the set by default), a retriever whose misses and changes
    are told (the last registered), the k of the figures (the largest), a metric, and the evaluation it is compared with.

    `questions` are how many are unfolded, `shown` how many documents of each ranking, `why` whether retrievers are asked for
    the reasons of misses.
    """

    evaluation: RecordID | None = None
    question_set: str | None = None
    retriever: str | None = None
    k: int | None = None
    metric: str = "recall"
    against: RecordID | None = None
    questions: int = 300
    shown: int = 10
    why: bool = True


@dataclass(frozen=True)
class Facts:
    """Everything on the page. Rows are as the functions of the database give them; what could not be had is None or empty."""

    at: datetime
    label: str
    row: dict[str, Any]
    retrievers: list[str]
    retriever: str
    k: int
    metric: str
    warnings: list[str]
    unanswerable: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    measures: list[dict[str, Any]]
    curves: list[dict[str, Any]]
    slices: dict[str, Any]
    resolution: dict[str, Any] | None
    gate: dict[str, Any] | None
    comparison: dict[str, Any] | None
    no_comparison: str | None
    history: list[dict[str, Any]]
    health: dict[str, Any]
    misses: dict[str, Any] | None
    no_misses: str
    questions: list[dict[str, Any]]
    all_questions: int
    why: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def gather(database: Database, asked: Asked, progress: Progress = lambda _done, _all: None) -> Facts:
    """Read everything. Raises UsageError for what there is not, DataError where nothing is complete."""
    found = _resolution.evaluation_of(
        database, asked.evaluation, asked.question_set, [asked.retriever] if asked.retriever else None
    )
    done = _evaluation.read(database, found["id"])
    row, evaluation = done.row, found["id"]
    names = _resolution.retrievers_of(row)
    chosen = asked.retriever or names[-1]
    k = asked.k or max(row["k"])
    if k > row["depth"]:
        raise UsageError(
            f"k is {k}, and that evaluation asked for {row['depth']} documents", f"-k {row['depth']}, or evaluate anew"
        )
    database.value("RETURN fn::require_metrics($metrics)", metrics=[asked.metric])
    metrics = list(dict.fromkeys([asked.metric, *METRICS]))
    measures = joined([database.value(_MEASURES, evaluation=evaluation, retriever=name, k=k, metrics=metrics) for name in names])
    order = database.value(_ORDER, evaluation=evaluation, retrievers=names, k=k, metric=asked.metric)
    comparison, no_comparison = _compared(database, asked, row, chosen, k)
    misses, no_misses = None, "the retrievers were not asked why"
    if asked.why:
        try:
            misses = _diagnosis.misses(database, evaluation, chosen, k, None, progress)
        except UsageError as error:
            # of a retriever that gives chunks, or is not registered any more, there is no why
            no_misses = error.message
    why: dict[str, list[dict[str, Any]]] = {}
    for miss in misses["rows"] if misses else []:
        why.setdefault(str(miss["question"]), []).append(miss)
    return Facts(
        at=database.value(_NOW),
        label=database.settings.label,
        row=row,
        retrievers=names,
        retriever=chosen,
        k=k,
        metric=asked.metric,
        warnings=done.warnings,
        unanswerable=done.unanswerable,
        runs=done.runs,
        measures=measures,
        curves=_resolution.curves(database, row, names, None, None, progress),
        slices=_resolution.slices(database, evaluation, names, {"by": "kind", "k": k, "metric": asked.metric}),
        resolution=_resolution.resolution(database, evaluation, names, k),
        gate=_gate.judge(database, _gate.evaluations([evaluation])) if database.value(_FLOORS) else None,
        comparison=comparison,
        no_comparison=no_comparison,
        history=database.value(_HISTORY, set=row["set"], k=k, metric=asked.metric, limit=_STEPS),
        health=database.value(_HEALTH, set=row["set"]),
        misses=misses,
        no_misses=no_misses,
        questions=_questions(database, evaluation, [one["question"] for one in order[: asked.questions]], names, asked, progress),
        all_questions=len(order),
        why=why,
    )


def _compared(
    database: Database, asked: Asked, row: dict[str, Any], retriever: str, k: int
) -> tuple[dict[str, Any] | None, str | None]:
    """The retriever then and now, or why that can't be told."""
    before = asked.against
    if before is None:
        before = database.value(_BEFORE, set=row["set"], started=row["started"], retriever=retriever)
    if before is None:
        return None, f"there is no earlier evaluation of {retriever} to compare with"
    sides = _comparison.Comparison(sides=[before, row["id"]], retriever=retriever, metric=asked.metric, k=k, by="kind")
    try:
        told = _comparison.compare(database, sides)
    except (DataError, UsageError) as error:
        if asked.against is not None:
            raise
        return None, error.message
    return told["comparisons"][0], None


def _questions(
    database: Database, evaluation: RecordID, wanted: list[RecordID], names: list[str], asked: Asked, progress: Progress
) -> list[dict[str, Any]]:
    options = {"retrievers": names, "shown": asked.shown}
    return joined(
        Shards(len(wanted), progress).run(
            len(wanted),
            lambda start, end: database.value(_QUESTIONS, evaluation=evaluation, questions=wanted[start:end], options=options),
            10,
        )
    )
