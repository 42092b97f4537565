"""Driving a gate: the evaluations that the floors ask for, then a floor a statement. The database says whether one holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from surrealdb import RecordID

from surrecall import _evaluation, _stale
from surrecall._database import Database
from surrecall._errors import DataError, UsageError

_PLAN = "RETURN fn::gate_plan()"
_BEGIN = "RETURN fn::gate_begin($options)"
_FLOOR = "RETURN fn::floor_verdict($floor, $row, $why, $given)"
_QUESTIONS = "RETURN fn::floor_questions($floor, $row, $given)"
_END = "RETURN fn::gate_end($faults, $verdicts)"

Progress = Callable[[int, int], None]
# a name of eval_baseline, or what a file of a baseline holds
Baseline = str | dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """The evaluations that a gate is to judge; `unmeasured` are {set, why} of golden sets that could not be evaluated."""

    evaluations: list[RecordID]
    unmeasured: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def measure(
    database: Database,
    *,
    note: str | None = None,
    trigger: str = "manual",
    revision: str | None = None,
    jobs: int = 1,
    progress: Progress = lambda _done, _all: None,
) -> Measured:
    """Evaluate what the floors name, once a golden set. A set that has nothing to score is no error here: its floors fail."""
    measured = Measured([])
    for asked in database.value(_PLAN):
        options = _evaluation.Options(
            cutoffs=asked["cutoffs"],
            retrievers=asked["retrievers"],
            question_set=asked["set"],
            note=note,
            trigger=trigger,
            revision=revision,
        )
        try:
            evaluation = _evaluation.evaluate(database, options, jobs=jobs, progress=progress)
        except (DataError, UsageError) as error:
            measured.unmeasured.append({"set": asked["set"], "why": error.text})
        else:
            measured.evaluations.append(evaluation.row["id"])
            measured.warnings.extend(evaluation.warnings)
    return measured


def judge(
    database: Database,
    measured: Measured | None,
    baseline: Baseline | None = None,
    progress: Progress = lambda _done, _all: None,
    *,
    strict: bool = False,
    questions: bool = False,
) -> dict[str, Any]:
    """What fn::gate gives: of these evaluations, or where there are none given, of the newest of each golden set.

    `strict`: a stale label fails it too, whatever the floors say. With `questions` each broken floor has `broke`, the rows of
    fn::floor_questions.
    """
    options: dict[str, Any] = {"strict": strict}
    if strict:
        _stale.scan(database)
    if measured is not None:
        options |= {"evaluations": measured.evaluations, "unmeasured": measured.unmeasured}
    begun = database.value(_BEGIN, options=options)
    verdicts = []
    for one in begun["floors"]:
        verdict = database.value(_FLOOR, floor=one["floor"], row=one.get("row"), why=one.get("why"), given=baseline)
        if questions and not verdict["holds"]:
            verdict["broke"] = database.value(_QUESTIONS, floor=one["floor"], row=one.get("row"), given=baseline)
        verdicts.append(verdict)
        progress(len(verdicts), len(begun["floors"]))
    told: dict[str, Any] = database.value(_END, faults=begun["faults"], verdicts=verdicts)
    return told


def evaluations(given: Sequence[RecordID]) -> Measured:
    """Evaluations that are there already."""
    return Measured(list(given))
