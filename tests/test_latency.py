"""What a retrieval costs: percentiles of stored answers, beside the means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surql_cases import both_executors
from surrecall import Database
from test_cli import Run, run, seeded, target  # noqa: F401


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([1, 2, 3, 4], 50, 2),
        (list(range(1, 21)), 95, 19),
        (list(range(1, 22)), 95, 20),
        ([7], 0, 7),
        ([7], 95, 7),
        ([], 50, None),
    ],
)
def test_percentiles_are_of_nearest_rank(schema: Database, values: list[int], percent: int, expected: int | None) -> None:
    for way in both_executors(f"RETURN fn::nearest_rank({values}, {percent})"):
        assert schema.value(way) == expected


def stored(database: Database, times: list[str], trigger: str = "manual") -> Any:
    """An evaluation at k = 2 and 3 whose answers took these times; one more failed after a minute."""
    questions = database.value("SELECT VALUE id FROM question ORDER BY id")
    row = database.value(
        "CREATE ONLY evaluation CONTENT { trigger: $trigger, set: 'default', k: [2, 3], depth: 3, questions: $questions, "
        "calls: [{ retriever: 'bm25', depth: 3 }], corpus: { documents: 10 }, golden_set: 'x' }",
        questions=questions,
        trigger=trigger,
    )
    for question, took, status in zip(questions, [*times, "1m"], [*["ok"] * len(times), "error"], strict=False):
        database.run(
            "CREATE eval_answer CONTENT { evaluation: $e, retriever: 'bm25', question: $q, depth: 3, ranking: [], labels: [], "
            f"answerable: true, took: {took}, status: $status }}",
            e=row["id"],
            q=question,
            status=status,
        )
    return row["id"]


def test_times_of_an_evaluation_without_those_that_failed(help_centre: Database) -> None:
    evaluation = stored(help_centre, ["4ms", "1ms", "2ms", "3ms"])
    for way in both_executors("RETURN fn::latency($e)"):
        rows = help_centre.value(way, e=evaluation)
        expected = {"retriever": "bm25", "depth": 3, "questions": 4, "median": 2, "p95": 4}
        assert rows == [{"k": 2} | expected, {"k": 3} | expected]
    assert help_centre.value("RETURN fn::latency($e, 'vector')", e=evaluation) == []


def test_an_imported_ranking_has_no_time(help_centre: Database) -> None:
    evaluation = stored(help_centre, ["0ns"], "import")
    assert help_centre.value("RETURN fn::latency($e)", e=evaluation) == [
        {"k": k, "retriever": "bm25", "questions": 0} for k in (2, 3)
    ]


def test_a_retriever_that_is_asked_anew_at_each_cutoff_has_a_time_for_each(help_centre: Database) -> None:
    help_centre.run("UPDATE retriever:bm25 SET prefix = false")
    help_centre.run("RETURN fn::record_evaluation({ k: [1, 3], retrievers: ['bm25', 'vector'] })")
    (evaluation,) = help_centre.value("SELECT VALUE id FROM evaluation")
    rows = help_centre.value("RETURN fn::latency($e)", e=evaluation)
    assert [(row["retriever"], row["k"], row["depth"]) for row in rows] == [
        ("bm25", 1, 1),
        ("bm25", 3, 3),
        ("vector", 1, 3),
        ("vector", 3, 3),
    ]
    assert all(0 < row["median"] <= row["p95"] for row in rows)


def test_both_stand_beside_the_quality(seeded: Run) -> None:  # noqa: F811
    shown = seeded("evaluate", "-k", "1,3").stdout
    head = next(line for line in shown.splitlines() if "95th" in line)
    assert head.split() == ["retriever", "k", "recall", "ndcg", "median", "95th", "tokens"]
    assert len(head) <= 80
    rows = json.loads(seeded("evaluate", "-k", "3", "--json").stdout)["latency"]
    assert [row["retriever"] for row in rows] == ["bm25", "vector", "hybrid"]
    # and stays in the history
    newest = json.loads(seeded("history", "--json", "--limit", "3").stdout)
    kept = {(row["retriever"], row["k"]): (row["median_ms"], row["p95_ms"]) for row in newest}
    assert kept == {(row["retriever"], row["k"]): (row["median"], row["p95"]) for row in rows}
    head = seeded("history", "-r", "bm25").stdout.splitlines()[0]
    assert "median   95th  questions" in head
    assert len(head) <= 80
    (point,) = json.loads(seeded("trend", "-r", "bm25", "-k", "3", "--json").stdout)["rows"]
    assert 0 < point["median_ms"] <= max(row["p95"] for row in rows) * 100
    compared = seeded("compare", "bm25", "hybrid").stdout
    assert "side    asked for  median" in compared
    told = json.loads(seeded("compare", "bm25", "hybrid", "--json").stdout)["comparisons"][0]
    assert told["a"]["took"] == {key: rows[0][key] for key in ("depth", "median", "p95")}
