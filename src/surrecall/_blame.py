"""What came above a label, driven in shards. What is known and what is said are the database's."""

from __future__ import annotations

from typing import Any

from surrealdb import RecordID

from surrecall import _comparison
from surrecall._database import Database
from surrecall._shards import Progress, Shards, joined

_BEGIN = "RETURN fn::blame_begin($a, $b, $options)"
_FALLEN = "RETURN fn::blame_fallen($comparison, $a, $b)"
_ROWS = "RETURN $fallen.map(|$one| fn::blame_row($begun, $one))"
_END = "RETURN fn::blame_end($begun, $rows)"


def blame(
    database: Database,
    a: RecordID,
    b: RecordID,
    *,
    metric: str | None = None,
    k: int | None = None,
    retriever: str | None = None,
    progress: Progress = lambda _done, _all: None,
) -> dict[str, Any]:
    """What fn::blame gives. Raises UsageError for what is unknown, DataError where answers were pruned or nothing is common."""
    given = {"metric": metric, "k": k, "retriever": retriever}
    options = {name: value for name, value in given.items() if value is not None}
    begun = database.value(_BEGIN, a=a, b=b, options=options)
    comparisons = begun.pop("comparisons")
    shards = Shards(sum(3 * len(one["questions"]) for one in comparisons), progress)
    rows: list[dict[str, Any]] = []
    for one in comparisons:
        values = _comparison.values_of(database, shards, begun, one)
        fallen = database.value(_FALLEN, comparison=one, **values)
        told = shards.run(
            len(fallen),
            lambda start, end, fallen=fallen: database.value(_ROWS, begun=begun, fallen=fallen[start:end]),  # type: ignore[misc]
        )
        rows += joined(told)
        shards.skip(len(one["questions"]) - len(fallen))
    result: dict[str, Any] = database.value(_END, begun=begun, rows=rows)
    return result
