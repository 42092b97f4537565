"""surrecall compare --by: what a difference of 0 hides."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator
from typing import Any

import pytest

import three_kinds
from conftest import ROOT, fresh_settings
from definitions import DEFINITIONS
from surrecall import Database, Options, Settings, UsageError, _comparison, evaluate
from test_cli import Run, run, target  # noqa: F401
from test_comparison import without_none


@pytest.fixture(scope="module")
def kinds(pytestconfig: pytest.Config, engine: str) -> Iterator[Database]:
    """The three kinds, evaluated once; nothing here changes it."""
    with Database(fresh_settings(pytestconfig, engine)) as database:
        database.run(DEFINITIONS)
        three_kinds.seed(database)
        evaluate(database, Options([1, 5]))
        yield database


def slices(database: Database, *sides: Any, **options: Any) -> list[dict[str, Any]]:
    """The classes of one comparison, found equal on both executors and in shards."""
    asked = {"sides": list(sides), "resamples": 100} | options
    told: dict[str, Any] = database.value("RETURN fn::compare($options)", options=asked)
    below = database.value("RETURN (CREATE ONLY executor_probe SET value = fn::compare($options)).value", options=asked)
    assert without_none(told) == without_none(below)
    (one,) = told["comparisons"]
    (other,) = _comparison.compare(database, _comparison.Comparison(list(sides), **options))["comparisons"]
    assert other["slices"] == one["slices"]
    rows: list[dict[str, Any]] = one["slices"]
    return rows


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["class"], row["questions"], row["wins"], row["ties"], row["losses"], row["weakest"]) for row in rows]


def test_one_class_pays_for_another(kinds: Database) -> None:
    rows = slices(kinds, "bm25", "vector", k=5, by="kind")
    assert brief(rows) == [
        ("lexical", 16, 0, 0, 16, True),
        ("factual", 16, 0, 16, 0, False),
        ("conceptual", 16, 15, 1, 0, False),
    ]
    assert [row["difference"] for row in rows] == [-1.0, 0.0, pytest.approx(15 / 16)]
    (one,) = kinds.value("RETURN fn::compare({ sides: ['bm25', 'vector'], k: 5, by: 'kind', resamples: 100 })")["comparisons"]
    assert math.isclose(sum(row["difference"] * row["questions"] for row in rows) / 48, one["difference"], abs_tol=1e-12)
    for name in ("wins", "ties", "losses", "questions"):
        assert sum(row[name] for row in rows) == one[name]


def test_classes_are_the_means_of_their_questions(kinds: Database) -> None:
    for by, field in (("kind", "kind"), ("source", "source"), ("split", "split"), ("tag", "tags")):
        values = {
            name: kinds.value(
                f"SELECT VALUE [{field}, fn::rr(ranking, labels)] FROM eval_answer WHERE retriever = $name ORDER BY question",
                name=name,
            )
            for name in ("bm25", "vector")
        }
        for row in slices(kinds, "bm25", "vector", k=5, by=by, metric="rr"):
            for side, name in (("mean_a", "bm25"), ("mean_b", "vector")):
                mine = [
                    value
                    for classes, value in values[name]
                    if (row["class"] in (classes or [None]) if field == "tags" else classes == row["class"])
                ]
                assert len(mine) == row["questions"]
                assert row[side] == pytest.approx(statistics.fmean(mine), abs=1e-12)


def test_classes_are_those_of_the_later_side_and_of_common_questions(schema: Database) -> None:
    three_kinds.seed(schema)
    evaluate(schema, Options([5], retrievers=["bm25"]))
    schema.run("UPDATE question SET kind = 'one'; UPDATE question:q00 SET kind = NONE; DELETE question:q01")
    evaluate(schema, Options([5], retrievers=["bm25"]))
    rows = slices(schema, "bm25", by="kind")
    assert brief(rows) == [(None, 1, 0, 1, 0, False), ("one", 46, 0, 46, 0, False)]


def test_what_there_is_not_is_said(kinds: Database) -> None:
    with pytest.raises(UsageError, match="compare takes by: kind, tag, source or split, got colour"):
        kinds.run("RETURN fn::compare({ sides: ['bm25', 'vector'], by: 'colour' })")


def test_the_command(run: Run, target: Settings) -> None:  # noqa: F811
    with Database(target) as database:
        database.run(DEFINITIONS)
        three_kinds.seed(database)
        evaluate(database, Options([1, 5]))
    shown = run("compare", "bm25", "vector", "-k", "5", "--by", "kind").stdout
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"```text\n(by kind\n.*?)```", page, re.DOTALL)
    assert printed in "\n".join(line.rstrip() for line in shown.splitlines())
    assert max(map(len, shown.splitlines()[:-1])) <= 80
    told = json.loads(run("compare", "bm25", "vector", "hybrid", "--by", "kind", "--json").stdout)
    assert (told["by"], len(told["comparisons"][1]["slices"])) == ("kind", 3)
    assert "by kind (bm25, hybrid)" in run("compare", "bm25", "vector", "hybrid", "--by", "kind").stdout
    assert "slices" not in run("compare", "bm25", "vector").stdout
