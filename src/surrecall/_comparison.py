"""Driving a comparison in shards. Values, resamples and verdicts are the database's; here they are passed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._shards import Progress, Shards, joined

_BEGIN = "RETURN fn::compare_begin($options)"
_VALUES = "RETURN fn::compare_values($answers, $metric, $k)"
_DIFFERENCES = """
LET $differences = fn::paired_differences($a, $b);
RETURN { differences: $differences, resample: fn::needs_resamples($differences) };
"""
_MEANS = "RETURN fn::compare_bootstrap($differences, $seed, $start, $end)"
_SIGNS = "RETURN fn::compare_sign_flips($differences, $seed, $start, $end)"
_END = "RETURN fn::compare_end($begun, $parts)"


@dataclass(frozen=True)
class Comparison:
    """What to compare: names of retrievers, or evaluations; None takes the default of fn::compare."""

    sides: Sequence[str | RecordID]
    retriever: str | None = None
    evaluation: RecordID | None = None
    question_set: str | None = None
    metric: str | None = None
    k: int | None = None
    seed: int | None = None
    every_pair: bool = False
    by: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of fn::compare."""
        given = {
            "retriever": self.retriever,
            "evaluation": self.evaluation,
            "set": self.question_set,
            "metric": self.metric,
            "k": self.k,
            "seed": self.seed,
            "by": self.by,
        }
        asked = {name: value for name, value in given.items() if value is not None}
        return asked | {"sides": list(self.sides), "all": self.every_pair}


def compare(database: Database, asked: Comparison, progress: Progress = lambda _done, _all: None) -> dict[str, Any]:
    """The result of fn::compare, worked out in shards of about a second.

    Raises UsageError for what is unknown, DataError when no question can be compared.
    """
    begun = database.value(_BEGIN, options=asked.options)
    comparisons, resamples = begun["comparisons"], begun["resamples"]
    # a comparison has its values on both sides, and two kinds of resamples
    total = sum(2 * len(comparison["questions"]) + 2 * resamples for comparison in comparisons)
    shards = Shards(total, progress)

    parts = [resampled(database, shards, begun, values_of(database, shards, begun, one)) for one in comparisons]
    result: dict[str, Any] = database.value(_END, begun=begun, parts=parts)
    return result


def values_of(database: Database, shards: Shards, begun: dict[str, Any], comparison: dict[str, Any]) -> dict[str, list[float]]:
    """The values of both sides of a comparison, `a` and `b`, in the order of its questions."""
    return {
        side: joined(
            shards.run(
                len(answers),
                lambda start, end, answers=answers: database.value(  # type: ignore[misc]
                    _VALUES, answers=answers[start:end], metric=begun["metric"], k=begun["k"]
                ),
            )
        )
        for side, answers in comparison["answers"].items()
    }


def resampled(database: Database, shards: Shards, begun: dict[str, Any], values: dict[str, list[float]]) -> dict[str, Any]:
    """The part of a comparison as fn::compare_end takes it: the values of both sides, `a` and `b`, and all resamples."""
    told = database.value(_DIFFERENCES, **values)

    def results(statement: str) -> list[Any]:
        return shards.run(
            begun["resamples"],
            lambda start, end: database.value(
                statement, differences=told["differences"], seed=begun["seed"], start=start, end=end
            ),
        )

    found = values | {"means": joined(results(_MEANS))}
    if told["resample"]:
        return found | {"extreme": sum(results(_SIGNS))}
    shards.skip(begun["resamples"])
    return found
