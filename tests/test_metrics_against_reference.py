"""Random rankings and labels: every metric equals trec_eval (pytrec_eval) or ir_measures to 1e-9.

Their runs are dictionaries: a repeat is replaced by a fresh unjudged id and an empty ranking by one such id, which changes
none of their figures for the documents that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ir_measures
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from surrealdb import RecordID

from conftest import ROOT
from surrecall import Database, Settings, _files

DOCUMENTS = [f"d{number}" for number in range(12)]
CUTOFFS = (1, 2, 3, 5, 10, 20)

rankings = st.lists(st.sampled_from(DOCUMENTS), max_size=15)
binary_labels = st.dictionaries(st.sampled_from(DOCUMENTS), st.just(1), min_size=1, max_size=8)
# pytrec_eval reads outside its memory where every grade is negative, so one is not; test_only_negative_grades has the rest
graded_labels = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-2, 4), min_size=1, max_size=10).filter(
    lambda labels: max(labels.values()) >= 0
)

# ours at a cutoff: trec_eval's name for the same
TREC = {
    "recall": "recall_{k}",
    "p": "P_{k}",
    "hit": "success_{k}",
    "ap": "map_cut_{k}",
    "ndcg": "ndcg_cut_{k}",
}


@pytest.fixture(scope="module")
def engine_database() -> Iterator[Database]:
    """One embedded database for all examples; pure functions leave nothing in it."""
    with Database(Settings("mem://", "reference", "reference")) as database:
        database.run("\n".join(file.text for file in _files.load(ROOT)))
        yield database


def scored(database: Database, ranking: list[str], labels: dict[str, int]) -> dict[int, dict[str, float]]:
    rows = database.value(
        "RETURN $cutoffs.map(|$k| fn::score($ranking, $labels, $k))",
        cutoffs=list(CUTOFFS),
        ranking=[RecordID("d", name) for name in ranking],
        labels=[{"document": RecordID("d", name), "grade": grade} for name, grade in labels.items()],
    )
    return dict(zip(CUTOFFS, rows, strict=True))


def as_run(ranking: list[str]) -> dict[str, float]:
    fresh = [name if name not in ranking[:index] else f"repeat{index}" for index, name in enumerate(ranking)] or ["none"]
    return {name: float(len(fresh) - index) for index, name in enumerate(fresh)}


def reference(ranking: list[str], labels: dict[str, int]) -> dict[str, float]:
    wanted = {name.format(k=k) for name in TREC.values() for k in CUTOFFS}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": labels}, {*wanted, "recip_rank"})
    result: dict[str, float] = evaluator.evaluate({"q": as_run(ranking)})["q"]
    return result


def ir(measure: Any, ranking: list[str], labels: dict[str, int]) -> float:
    return float(ir_measures.calc_aggregate([measure], {"q": labels}, {"q": as_run(ranking)})[measure])


@given(ranking=rankings, labels=st.one_of(binary_labels, graded_labels))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equal_to_trec_eval(engine_database: Database, ranking: list[str], labels: dict[str, int]) -> None:
    ours, theirs = scored(engine_database, ranking, labels), reference(ranking, labels)
    for k in CUTOFFS:
        for name, trec_name in TREC.items():
            assert ours[k][name] == pytest.approx(theirs[trec_name.format(k=k)], abs=1e-9), f"{name}@{k}"
    # trec_eval's recip_rank has no cutoff; 20 is beyond every ranking here
    assert ours[20]["rr"] == pytest.approx(theirs["recip_rank"], abs=1e-9)


@given(ranking=rankings, labels=st.one_of(binary_labels, graded_labels), k=st.sampled_from(CUTOFFS))
@settings(max_examples=150, deadline=None)
def test_equal_to_ir_measures(engine_database: Database, ranking: list[str], labels: dict[str, int], k: int) -> None:
    ours = scored(engine_database, ranking, labels)[k]
    assert ours["rr"] == pytest.approx(ir(ir_measures.RR @ k, ranking, labels), abs=1e-9)
    assert ours["ap"] == pytest.approx(ir(ir_measures.AP @ k, ranking, labels), abs=1e-9)
    assert ours["ndcg"] == pytest.approx(ir(ir_measures.nDCG @ k, ranking, labels), abs=1e-9)
    # precision of what came back is theirs, of k, scaled to the length of the list
    length = len(ranking[:k]) or 1
    assert ours["precision"] == pytest.approx(ir(ir_measures.P @ k, ranking, labels) * k / length, abs=1e-9)
    if len(set(ranking)) == len(ranking):
        assert ours["judged"] == pytest.approx(ir(ir_measures.Judged @ k, ranking, labels), abs=1e-9)


@given(
    ranking=st.lists(st.sampled_from(DOCUMENTS), max_size=15),
    labels=st.dictionaries(st.sampled_from(DOCUMENTS), st.floats(-3, 5, allow_nan=False), max_size=10),
)
@settings(max_examples=150, deadline=None)
def test_no_metric_ever_leaves_0_to_1(engine_database: Database, ranking: list[str], labels: dict[str, int]) -> None:
    for k, metrics in scored(engine_database, ranking, labels).items():
        for name, value in metrics.items():
            assert isinstance(value, float), f"{name}@{k}"
            assert 0 <= value <= 1, f"{name}@{k}"


@given(ranking=rankings, labels=graded_labels, seed=st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_order_of_the_labels_is_irrelevant(
    engine_database: Database, ranking: list[str], labels: dict[str, int], seed: Any
) -> None:
    shuffled = list(labels.items())
    seed.shuffle(shuffled)
    assert scored(engine_database, ranking, labels) == scored(engine_database, ranking, dict(shuffled))


def test_only_negative_grades(engine_database: Database) -> None:
    metrics = scored(engine_database, ["d1", "d2"], {"d1": -1, "d3": -2})[5]
    assert {name: value for name, value in metrics.items() if value} == {"judged": 0.5}
