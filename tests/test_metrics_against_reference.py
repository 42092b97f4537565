"""Random rankings and labels: every metric equals trec_eval (pytrec_eval) or ir_measures to 1e-9.

Their runs are dictionaries: a repeat is replaced by a fresh unjudged id and an empty ranking by one such id, which changes
none of their figures for the documents that are there.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from random import Random
from typing import Any

import ir_measures
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from surrealdb import RecordID

from definitions import DEFINITIONS
from pytest_surrecall._servers import Server
from surrecall import Database, Settings

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
# these have no cutoff in trec_eval; 20 is beyond every ranking here
UNCUT = {"rr": "recip_rank", "bpref": "bpref", "rprec": "Rprec"}
LEVELS = (1, 2, 3)
# how many random rankings; 10000 is run by hand
EXAMPLES = int(os.environ.get("SURRECALL_EXAMPLES", "300"))


@pytest.fixture(scope="module")
def engine_database() -> Iterator[Database]:
    """One embedded database for all examples; pure functions leave nothing in it."""
    with Database(Settings("mem://", "reference", "reference")) as database:
        database.run(DEFINITIONS)
        yield database


def scored(database: Database, ranking: list[str], labels: dict[str, int], **reading: Any) -> dict[int, dict[str, float]]:
    rows = database.value(
        "RETURN (SELECT VALUE fn::score($ranking, $labels, $this, $reading) FROM $cutoffs)",
        reading=reading,
        cutoffs=list(CUTOFFS),
        ranking=[RecordID("d", name) for name in ranking],
        labels=[{"document": RecordID("d", name), "grade": grade} for name, grade in labels.items()],
    )
    return dict(zip(CUTOFFS, rows, strict=True))


def as_run(ranking: list[str]) -> dict[str, float]:
    fresh = [name if name not in ranking[:index] else f"repeat{index}" for index, name in enumerate(ranking)] or ["none"]
    return {name: float(len(fresh) - index) for index, name in enumerate(fresh)}


def reference(ranking: list[str], labels: dict[str, int], rel: int = 1) -> dict[str, float]:
    wanted = {name.format(k=k) for name in TREC.values() for k in CUTOFFS}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": labels}, {*wanted, *UNCUT.values()}, relevance_level=rel)
    result: dict[str, float] = evaluator.evaluate({"q": as_run(ranking)})["q"]
    return result


def ir(measure: Any, ranking: list[str], labels: dict[str, int]) -> float:
    return float(ir_measures.calc_aggregate([measure], {"q": labels}, {"q": as_run(ranking)})[measure])


@given(ranking=rankings, labels=st.one_of(binary_labels, graded_labels), rel=st.sampled_from(LEVELS))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equal_to_trec_eval(engine_database: Database, ranking: list[str], labels: dict[str, int], rel: int) -> None:
    ours, theirs = scored(engine_database, ranking, labels, rel=rel), reference(ranking, labels, rel)
    for k in CUTOFFS:
        for name, trec_name in TREC.items():
            assert ours[k][name] == pytest.approx(theirs[trec_name.format(k=k)], abs=1e-9), f"{name}@{k}"
        assert ours[k]["all"] == (theirs[f"recall_{k}"] == 1)
    for name, trec_name in UNCUT.items():
        assert ours[20][name] == pytest.approx(theirs[trec_name], abs=1e-9), name
    # exponential gains are linear ones over mapped grades; a shift keeps negative grades negative
    mapped = {name: 2**grade - 1 if grade >= 0 else grade for name, grade in labels.items()}
    exponential = reference(ranking, mapped)
    for k in CUTOFFS:
        assert ours[k]["ndcg_exp"] == pytest.approx(exponential[f"ndcg_cut_{k}"], abs=1e-9), k


def gains(ranking: list[str], labels: dict[str, float]) -> list[float]:
    """The gain of each slot; a repeat gains nothing."""
    return [max(0, labels.get(name, 0)) if name not in ranking[:index] else 0 for index, name in enumerate(ranking)]


@given(
    ranking=rankings,
    labels=st.dictionaries(st.sampled_from(DOCUMENTS), st.one_of(st.integers(-2, 4), st.floats(-1, 4)), max_size=10),
    p=st.floats(0.01, 0.99),
    top=st.one_of(st.none(), st.sampled_from([1, 2, 4, 5.5])),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_equal_to_the_formulas_of_err_and_rbp(
    engine_database: Database, ranking: list[str], labels: dict[str, float], p: float, top: float | None
) -> None:
    ours = scored(engine_database, ranking, labels, p=p, max=top)  # type: ignore[arg-type]
    highest = top or max([1, *labels.values()])
    slots = [min(gain, highest) for gain in gains(ranking, labels)]
    for k in CUTOFFS:
        err = sum(
            (2**gain - 1) / 2**highest / (index + 1) * math.prod(1 - (2**above - 1) / 2**highest for above in slots[:index])
            for index, gain in enumerate(slots[:k])
        )
        assert ours[k]["err"] == pytest.approx(err, abs=1e-9), k
        rbp = (1 - p) * sum(gain / highest * p**index for index, gain in enumerate(slots[:k]))
        assert ours[k]["rbp"] == pytest.approx(rbp, abs=1e-9), k


def test_equal_to_gdeval(engine_database: Database, server: Server) -> None:
    """gdeval's scale ends at 4, its topics are numbers, and it prints five places."""
    if shutil.which("perl") is None:
        if server.kind == "container":
            pytest.fail("the whole suite was demanded, and gdeval, a Perl script, can't run: perl is not here")
        pytest.skip("gdeval is a Perl script, and perl is not here")
    random = Random(8)
    topics = {}
    for topic in range(1, 201):
        ranking = random.choices(DOCUMENTS, k=random.randint(1, 15))
        topics[str(topic)] = ranking, {name: random.randint(-1, 4) for name in random.sample(DOCUMENTS, random.randint(1, 10))}
    qrels = {topic: labels for topic, (_, labels) in topics.items()}
    runs = {topic: as_run(ranking) for topic, (ranking, _) in topics.items()}
    for k in (1, 5, 20):
        err, ndcg = ir_measures.ERR @ k, ir_measures.nDCG(dcg="exp-log2") @ k
        for value in ir_measures.iter_calc([err, ndcg], qrels, runs):
            ours = scored(engine_database, *topics[value.query_id], max=4)
            assert ours[k]["err" if value.measure == err else "ndcg_exp"] == pytest.approx(value.value, abs=1.001e-5), value


@given(ranking=rankings, labels=st.one_of(binary_labels, graded_labels), k=st.sampled_from(CUTOFFS))
@settings(max_examples=EXAMPLES // 2, deadline=None)
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
@settings(max_examples=EXAMPLES // 2, deadline=None)
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
