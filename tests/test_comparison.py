"""Comparing retrievers: the lesson's two questions, what is compared with what, and every figure against scipy and ranx."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from surrealdb import RecordID

from conftest import fresh_settings
from definitions import DEFINITIONS
from surrecall import Database, DataError, Options, Settings, UsageError, _comparison, _seed, _shards, evaluate
from test_cli import Run, run, seeded, target  # noqa: F401

_RECORD = "CREATE ONLY evaluation CONTENT $row RETURN VALUE id"
_LABELS = 4
SCORES = [0, 0.25, 0.5, 0.75, 1]
# forty questions, of which the second retriever is better on sixteen and worse on two
# what every engine, executor and shard size must give
LOW, HIGH, FLIP = 0.04375000000000001, 0.13125, 0.0024987506246876563
VERDICT = "two is better than one by 0.087 (95% 0.044 to 0.131), p = 0.002, on 40 questions"
DIGITS = "32ad75c408db040eb5faf8ea0743635e"
FIRST = [SCORES[(7 * number) % 4] for number in range(40)]
SECOND = [
    value if number % 2 else SCORES[min(4, max(0, int(4 * value) + (1 if number % 10 else -1)))]
    for number, value in enumerate(FIRST)
]


def put(
    database: Database,
    answers: Mapping[str, Mapping[str, float | None]],
    *,
    labels: int = _LABELS,
    depth: int = 5,
    relabelled: Sequence[str] = (),
    unanswerable: Sequence[str] = (),
    failed: Sequence[str] = (),
    backwards: bool = False,
    **row: Any,
) -> RecordID:
    """A complete evaluation: for each retriever the recall@5 of each question, as stored answers; None is an error."""
    names = sorted({question for values in answers.values() for question in values})
    evaluation: RecordID = database.value(
        _RECORD,
        row={
            "k": [1, depth],
            "depth": depth,
            "questions": [RecordID("question", name) for name in names],
            "calls": [{"retriever": retriever, "depth": depth} for retriever in answers],
            "corpus": {"documents": 10, "hash": "corpus"},
            "golden_set": "golden",
            "definitions": "definitions",
            "engine": "3.2.4",
            "status": "complete",
        }
        | row,
    )
    rows = []
    for retriever, values in answers.items():
        for name, value in values.items():
            documents = [RecordID("d", f"{'x' if name in relabelled else ''}{number}") for number in range(labels)]
            found = 0 if value is None else round(value * labels)
            failure = value is None or name in failed
            rows.append(
                {
                    "evaluation": evaluation,
                    "retriever": retriever,
                    "question": RecordID("question", name),
                    "depth": depth,
                    "ranking": [] if failure else [RecordID("d", "other"), *documents[:found]],
                    "labels": [{"document": document, "grade": 1} for document in documents],
                    "answerable": name not in unanswerable,
                    "took": None,
                    "status": "error" if failure else "ok",
                    "message": "broken" if failure else None,
                }
            )
    database.run("INSERT INTO eval_answer (SELECT *, 0ns AS took FROM $rows) RETURN NONE", rows=rows[::-1] if backwards else rows)
    return evaluation


def named(values: Sequence[float | None]) -> dict[str, float | None]:
    return {f"q{number:03}": value for number, value in enumerate(values)}


def compare(database: Database, *sides: Any, **options: Any) -> dict[str, Any]:
    told: dict[str, Any] = database.value("RETURN fn::compare($options)", options={"sides": list(sides)} | options)
    return told


@contextmanager
def running(database: Database, evaluation: RecordID) -> Iterator[None]:
    """An evaluation as it is before it is closed, so that runs may be added to it by hand."""
    database.run("OPTION IMPORT; UPDATE $id SET status = 'running'", id=evaluation)
    yield
    database.run("OPTION IMPORT; UPDATE $id SET status = 'complete'", id=evaluation)


def without_none(value: Any) -> Any:
    """As a stored row has it."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def only(told: dict[str, Any]) -> dict[str, Any]:
    (one,) = told["comparisons"]
    assert isinstance(one, dict)
    return one


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["question"].id for row in rows]


@pytest.fixture(scope="module")
def functions() -> Iterator[Database]:
    """One embedded database for what is a pure function."""
    with Database(Settings("mem://", "comparison", "comparison")) as database:
        database.run(DEFINITIONS)
        yield database


@pytest.fixture(scope="module")
def centre(pytestconfig: pytest.Config, engine: str) -> Iterator[Database]:
    """The help centre, evaluated twice; nothing here changes it."""
    with Database(fresh_settings(pytestconfig, engine)) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
        for _ in range(2):
            evaluate(database, Options([1, 3, 5]))
        yield database


def test_the_questions_of_the_lesson(centre: Database) -> None:
    told = only(compare(centre, "bm25", "hybrid", k=1, metric="hit"))
    assert [row["text"] for row in told["broke"]] == ["429 too many requests"]
    assert (told["broke"][0]["a"], told["broke"][0]["b"]) == (1.0, 0.0)
    told = only(compare(centre, "bm25", "hybrid", k=5))
    assert [(row["text"], row["a"], row["b"]) for row in told["fixed"]] == [("how do I get my money back", 0.0, 1.0)]
    assert told["broke"] == []
    assert (round(told["mean_a"], 3), round(told["mean_b"], 3), round(told["difference"], 3)) == (0.833, 0.958, 0.125)
    assert (told["wins"], told["ties"], told["losses"]) == (1, 7, 0)
    assert told["better"] is None
    assert told["verdict"].startswith(
        "bm25 and hybrid cannot be told apart on 8 questions (difference 0.125, 95% 0 to 0.375, p = 1)"
    )
    assert told["warnings"] == ["8 questions: read these by hand"]


def test_the_means_are_those_of_the_history(centre: Database) -> None:
    """At every metric and cutoff."""
    runs = centre.value("SELECT * FROM eval_run ORDER BY seq DESC LIMIT 9")
    recorded = {(row["retriever"], row["k"]): row for row in runs}
    for metric, k in itertools.product(centre.value("RETURN fn::score([], [], 1).keys()"), (1, 3, 5)):
        told = compare(centre, "bm25", "hybrid", "vector", metric=metric, k=k, resamples=100)["comparisons"]
        means = [told[0]["mean_a"], told[0]["mean_b"], told[1]["mean_b"]]
        wanted = [recorded[name, k][metric] for name in ("bm25", "hybrid", "vector")]
        assert means == pytest.approx(wanted, abs=1e-12), f"{metric}@{k}"


def test_the_floor_of_the_lesson(help_centre: Database) -> None:
    """What hybrid lost at 3, and the floor mends."""
    evaluation = evaluate(help_centre, Options([1, 3, 5])).row["id"]
    help_centre.run(
        """
        LET $floored = (CREATE ONLY evaluation CONTENT object::extend(
          (SELECT * OMIT id FROM ONLY $evaluation),
          { calls: [{ retriever: 'hybrid+floor', depth: 5 }] }
        )).id;
        FOR $row IN (SELECT * OMIT id FROM eval_answer WHERE evaluation = $evaluation AND retriever = 'hybrid') {
          LET $question = $row.question;
          LET $asked = (SELECT text, embedding FROM ONLY $question);
          CREATE eval_answer CONTENT object::extend($row, {
            evaluation: $floored,
            retriever: 'hybrid+floor',
            ranking: fn::retrieve_hybrid_floor($asked.text, $asked.embedding, 5, 1.5),
          });
        };
        """,
        evaluation=evaluation,
    )
    told = only(compare(help_centre, "hybrid", "hybrid+floor", k=3))
    assert ids(told["fixed"]) == ["money_back", "signin"]
    assert (told["broke"], told["mean_b"]) == ([], 1.0)
    assert told["a"]["evaluation"] != told["b"]["evaluation"]
    assert told["differs"] == []


def test_pinned_on_every_engine_executor_order_and_shard(schema: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = put(schema, {"one": named(FIRST), "two": named(SECOND)})
    told = compare(schema, "one", "two")
    one = only(told)
    assert (told["metric"], told["k"], told["seed"], told["resamples"]) == ("recall", 5, 1, 2000)
    assert (one["questions"], one["wins"], one["ties"], one["losses"]) == (40, 16, 22, 2)
    assert (one["mean_a"], one["mean_b"], one["difference"]) == (0.375, 0.4625, 0.0875)
    assert one["interval"] == {"level": 0.95, "low": LOW, "high": HIGH}
    assert one["sign_flip"] == {"exact": False, "p": FLIP}
    assert one["t_test"]["p"] == pytest.approx(scipy.stats.ttest_rel(SECOND, FIRST).pvalue, abs=1e-12)
    assert one["verdict"] == VERDICT
    # below a write the other executor works it out
    below = schema.value("RETURN (CREATE ONLY probe SET told = fn::compare({ sides: ['one', 'two'] })).told")
    assert below == without_none(told)
    # in shards of other sizes, and stored in another order
    for size in (1, 7):
        monkeypatch.setattr(_shards, "_FIRST_SHARD", size)
        monkeypatch.setattr(_shards, "_LARGEST_SHARD", 333 * size)
        assert _comparison.compare(schema, _comparison.Comparison(["one", "two"])) == told
    put(schema, {"one": named(FIRST), "two": named(SECOND)}, backwards=True)
    again = only(compare(schema, "one", "two"))
    assert again["a"]["evaluation"] != evaluation
    assert again["verdict"] == one["verdict"]
    assert (again["interval"], again["sign_flip"]) == (one["interval"], one["sign_flip"])
    # another seed gives other resamples, and about the same
    other = only(compare(schema, "one", "two", seed=2))
    assert other["interval"] != one["interval"]
    assert other["interval"]["low"] == pytest.approx(LOW, abs=0.02)


def test_several_retrievers_are_corrected_by_holm(schema: Database) -> None:
    worse = [max(0.0, value - 0.25) for value in SECOND]
    put(schema, {"one": named(FIRST), "two": named(SECOND), "three": named(worse)})
    told = compare(schema, "one", "two", "three")
    assert [(one["a"]["name"], one["b"]["name"]) for one in told["comparisons"]] == [("one", "two"), ("one", "three")]
    raw = [one["sign_flip"]["p"] for one in told["comparisons"]]
    assert sorted(one["p"] for one in told["comparisons"]) == pytest.approx(sorted([2 * min(raw), max(2 * min(raw), max(raw))]))
    every = compare(schema, "one", "two", "three", all=True)
    assert len(every["comparisons"]) == 3
    last = every["comparisons"][2]
    assert (last["better"], last["verdict"].split(" by ")[0]) == ("a", "two is better than three")
    assert last["verdict"].endswith("(Holm), on 40 questions")


def test_the_correction_itself(functions: Database) -> None:
    def holm(*p: float) -> Any:
        return functions.value("RETURN fn::holm($p)", p=list(p))

    assert holm(0.01, 0.04, 0.03) == pytest.approx([0.03, 0.06, 0.06])
    assert holm(0.5, 0.5, 0.5) == [1.0, 1.0, 1.0]
    assert holm(0.02) == [0.02]
    assert holm(0.01, 0.01) == [0.02, 0.02]


def test_one_retriever_then_and_now(schema: Database) -> None:
    before = put(schema, {"one": named(FIRST)})
    with pytest.raises(DataError, match="needs two evaluations that have it, and there is one"):
        compare(schema, "one")
    changed: dict[str, Any] = {"corpus": {"documents": 11, "hash": "other"}, "definitions": "others", "engine": "3.2.5"}
    now = put(schema, {"one": named(SECOND)}, **changed)
    put(schema, {"one": named(SECOND)}, status="failed")
    told = only(compare(schema, "one"))
    assert (told["a"]["evaluation"], told["b"]["evaluation"]) == (before, now)
    assert told["differs"] == ["the corpus", "the definitions", "the engine (3.2.4, 3.2.5)"]
    assert told["warnings"][0].endswith("the engine (3.2.4, 3.2.5) differ between the two evaluations")
    assert only(compare(schema, before, now))["difference"] == told["difference"]
    assert only(compare(schema, now, before))["difference"] == -told["difference"]


def test_only_common_questions_with_equal_labels(schema: Database) -> None:
    values = named(FIRST)
    gone, new = dict(itertools.islice(values.items(), 39)), dict(itertools.islice(values.items(), 1, 40))
    before = put(schema, {"one": gone | {"q002": None}}, unanswerable=["q005"], status="failed")
    now = put(schema, {"one": new | {"q003": None}}, relabelled=["q004"], unanswerable=["q005", "q006"], status="failed")
    told = only(compare(schema, before, now))
    out = told["excluded"]
    assert (ids(out["only_a"]), ids(out["only_b"])) == (["q000"], ["q039"])
    # a question that has an answer in one evaluation only is another question
    assert ids(out["relabelled"]) == ["q004", "q006"]
    assert (ids(out["errors"]), out["unanswerable"]) == (["q002", "q003"], 1)
    assert (told["questions"], told["difference"]) == (33, 0.0)
    assert "2 failed on one side or both, and are in no figure" in told["warnings"]
    other = put(schema, {"one": {"z": 1.0}})
    with pytest.raises(DataError, match="no question in common with equal labels: 39 only in the first, 1 only in the second"):
        compare(schema, before, other)
    silent = put(schema, {"one": named(FIRST), "two": named(FIRST)}, unanswerable=list(values)[:30], failed=list(values)[30:])
    with pytest.raises(DataError, match="10 failed, 30 unanswerable"):
        compare(schema, "one", "two", evaluation=silent)


def test_a_retriever_that_was_asked_for_each_cutoff(schema: Database) -> None:
    """The answers at k are those of the shallowest call that reaches it."""
    calls = [{"retriever": "one", "depth": 5}, {"retriever": "one", "depth": 3}, {"retriever": "two", "depth": 5}]
    evaluation = put(schema, {"one": named([1.0] * 12), "two": named([1.0] * 12)}, calls=calls, k=[1, 3, 5])
    schema.run(
        """
        INSERT INTO eval_answer (SELECT *, 3 AS depth, $ranking AS ranking OMIT id FROM eval_answer
          WHERE evaluation = $evaluation AND retriever = 'one') RETURN NONE;
        """,
        evaluation=evaluation,
        ranking=[RecordID("d", f"{number}") for number in range(3)],
    )
    by_k = {k: only(compare(schema, "one", "two", k=k)) for k in (2, 3, 4, 5)}
    assert {k: (told["mean_a"], told["mean_b"]) for k, told in by_k.items()} == {
        2: (0.5, 0.25),
        3: (0.75, 0.5),
        4: (0.75, 0.75),
        5: (1.0, 1.0),
    }


def test_labels_in_another_order_are_the_same_labels(schema: Database) -> None:
    before, now = put(schema, {"one": named(FIRST)}), put(schema, {"one": named(FIRST)})
    schema.run(
        """
        LET $rows = (SELECT * FROM eval_answer WHERE evaluation = $now);
        DELETE eval_answer WHERE evaluation = $now;
        INSERT INTO eval_answer (SELECT *, array::reverse(labels) AS labels FROM $rows) RETURN NONE;
        """,
        now=now,
    )
    assert only(compare(schema, before, now))["questions"] == 40


def test_sides_of_two_evaluations_where_none_has_both(schema: Database) -> None:
    put(schema, {"one": named(FIRST)})
    put(schema, {"two": named(SECOND)})
    assert only(compare(schema, "one", "two"))["difference"] == 0.0875
    put(schema, {"one": named(SECOND), "two": named(SECOND)})
    assert only(compare(schema, "one", "two"))["difference"] == 0.0
    # the newest that has both may be a shallow one
    put(schema, {"one": named(FIRST), "two": named(FIRST)}, depth=1, k=[1])
    assert only(compare(schema, "one", "two", k=5))["questions"] == 40


def test_what_is_refused(schema: Database) -> None:
    with pytest.raises(DataError, match="no evaluation of the set default is complete"):
        compare(schema, "one", "two")
    both = put(schema, {"one": named(FIRST), "two": named(SECOND)})
    other = put(schema, {"three": named(FIRST)})
    running = put(schema, {"one": named(FIRST)}, status="running")
    changed = put(schema, {"one": named(FIRST)}, status="failed", changed=["the golden set"])
    refused = {
        "no retriever named tow": ("one", "tow"),
        "once": ("one", "one"),
        "not both": ("one", both),
        "two evaluations or more": (both,),
        "no evaluation evaluation:nowhere": (both, RecordID("evaluation", "nowhere")),
        "names of retrievers": (),
    }
    for words, sides in refused.items():
        with pytest.raises(UsageError) as caught:
            compare(schema, *sides)
        assert words in caught.value.text
    bad: dict[str, dict[str, Any]] = {
        "no metric named recal; there are: ": {"metric": "recal"},
        "k must be 5 or less": {"k": 9},
        "k must be a whole number": {"k": 0},
        "a whole number for a seed": {"seed": 0.5},
        "from 100 to": {"resamples": 1},
        "no option ks": {"ks": 1},
        "no retriever named one in evaluation:": {"evaluation": other},
        "only with evaluations": {"retriever": "one"},
        "of the set other; it is of default": {"evaluation": both, "set": "other"},
    }
    for words, options in bad.items():
        with pytest.raises(UsageError) as caught:
            compare(schema, "one", "two", **options)
        assert words in caught.value.text
    for words, sides in {
        "is unfinished": (both, running),
        "the golden set changed while": (both, changed),
        "no retriever in common": (both, other),
    }.items():
        with pytest.raises(DataError, match=words):
            compare(schema, *sides)
    with pytest.raises(UsageError, match="of which retriever"):
        compare(schema, both, put(schema, {"one": named(FIRST), "two": named(SECOND)}))
    with pytest.raises(DataError) as nothing:
        compare(schema, "one", "two", set="other")
    assert "no evaluation of the set other is complete; there are some of: default" in nothing.value.text
    with pytest.raises(UsageError) as near:
        compare(schema, "one", "tow")
    assert near.value.text.endswith("there are: one, three, two; did you mean two?")


def test_differences_without_spread(schema: Database) -> None:
    """All the same difference, none, one question: no NaN anywhere."""
    half, full, one = named([0.5] * 12), named([1.0] * 12), named([0.5])
    put(schema, {"half": half, "full": full, "again": half})
    equal, better = compare(schema, "half", "again", "full")["comparisons"]
    assert equal["t_test"] == {"t": 0.0, "df": 11, "p": 1.0}
    assert (equal["sign_flip"]["p"], equal["interval"]["low"], equal["interval"]["high"]) == (1.0, 0.0, 0.0)
    assert equal["verdict"] == "half and again cannot be told apart on 12 questions: every one has the same value"
    assert equal.get("smallest_difference") is None
    assert (better["t_test"]["p"], better["interval"]["low"], better["interval"]["high"]) == (0.0, 0.5, 0.5)
    assert better["t_test"].get("t") is None
    # all signs alike, twice in 4,096: with this seed 3 of 2,000 resamples, and the one that was seen
    assert better["sign_flip"] == {"exact": False, "p": 4 / 2001}
    assert better["better"] == "b"
    put(schema, {"half": one, "full": named([1.0])}, set="single")
    single = only(compare(schema, "half", "full", set="single"))
    assert (single["t_test"]["p"], single["sign_flip"]["p"], single["better"]) == (1.0, 1.0, None)
    assert single["warnings"] == ["1 question: read it by hand"]
    assert "on 1 question (" in single["verdict"]
    for told in (equal, better, single):
        assert "NaN" not in json.dumps(told, default=str)


def test_equal_totals_in_another_order_do_not_differ(schema: Database) -> None:
    """The same values of other questions: the means, added in whatever order, are the same mean."""
    values = [1 / 3, 2 / 3, 1.0, 0.0, 1 / 3, 1 / 3, 2 / 3] * 6
    put(schema, {"one": named(values), "two": named(values[::-1])}, labels=3)
    told = only(compare(schema, "one", "two"))
    assert (told["difference"], told["mean_a"] == told["mean_b"]) == (0.0, True)
    # a drop of exactly a tenth is one, to the last place that is shown
    put(schema, {"one": named([0.8] * 20), "two": named([0.7] * 20)}, labels=10, depth=12)
    exact = only(compare(schema, "one", "two"))
    assert exact["difference"] == pytest.approx(-0.1, abs=1e-15)
    assert (exact["losses"], exact["t_test"]["p"]) == (20, 0.0)


def test_the_random_digits(functions: Database) -> None:
    digits = functions.value("RETURN fn::random_hex('1:bootstrap:0', 300)")
    assert digits[:32] == DIGITS
    assert len(digits) == 300
    # shorter is a beginning of longer
    assert functions.value("RETURN fn::random_hex('1:bootstrap:0', 200)") == digits[:200]
    many = "".join(functions.value("RETURN array::range(0, 200).map(|$r| fn::random_hex('1:test:' + <string> $r, 256))"))
    counts = [many.count(digit) for digit in "0123456789abcdef"]
    assert sum(counts) == 51_200
    assert scipy.stats.chisquare(counts).pvalue > 0.001
    pairs = np.array([int(many[place : place + 2], 16) for place in range(0, len(many), 2)])
    assert scipy.stats.chisquare(np.bincount(pairs, minlength=256)).pvalue > 0.001


def test_numbers_of_the_generator_sort_as_numbers(functions: Database) -> None:
    numbers = [0, 1, 15, 16, 255, 2**31, 2**32 - 1, 123456789]
    assert functions.value("RETURN $n.map(|$x| fn::hex_of($x))", n=numbers) == [f"{number:08x}" for number in numbers]
    assert functions.value("RETURN fn::numbers_to(0)") == []
    assert functions.value("RETURN fn::numbers_to(25000)") == list(range(25_000))


def test_every_question_is_drawn_as_often(functions: Database) -> None:
    """From differences that are powers of a hundred each resample's mean tells how often each was drawn."""
    n = 5
    differences = [float(100**power) for power in range(n)]
    means = functions.value("RETURN fn::compare_bootstrap($d, 1, 0, 1000)", d=differences)
    draws = np.array([[round(mean * n) // 100**power % 100 for power in range(n)] for mean in means])
    assert (draws.sum(axis=1) == n).all()
    assert scipy.stats.chisquare(draws.sum(axis=0)).pvalue > 0.001
    # how often one is drawn follows the binomial distribution
    expected = 1000 * scipy.stats.binom.pmf(range(4), n, 1 / n)
    seen = np.bincount(draws[:, 2], minlength=n + 1)
    assert scipy.stats.chisquare([*seen[:4], seen[4:].sum()], [*expected, 1000 - expected.sum()]).pvalue > 0.001


DIFFERENCES = st.lists(st.integers(-1000, 1000).map(lambda number: number / 1000), min_size=2, max_size=60)


@given(differences=DIFFERENCES)
@settings(max_examples=150, deadline=None)
def test_the_t_test_equals_scipys(functions: Database, differences: list[float]) -> None:
    told = functions.value("RETURN fn::t_test($d)", d=differences)
    if len(set(differences)) == 1:
        assert told["p"] == (1.0 if differences[0] == 0 else 0.0)
        return
    theirs = scipy.stats.ttest_rel(differences, [0.0] * len(differences))
    assert told["p"] == pytest.approx(theirs.pvalue, abs=1e-9)
    assert told["t"] == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-9)
    assert told["df"] == theirs.df


@pytest.mark.parametrize("n", [2, 3, 30, 1000, 15_000])
def test_the_t_test_at_every_size_and_far_out(functions: Database, n: int) -> None:
    # symmetric numbers around a mean that gives the t wanted
    base = np.linspace(-1, 1, n)
    for wanted in (1e-6, 0.3, 2.0, 6.0, 40.0):
        differences = base + wanted * base.std(ddof=1) / math.sqrt(n)
        told = functions.value("RETURN fn::t_test($d)", d=differences.tolist())
        theirs = scipy.stats.ttest_rel(differences, np.zeros(n))
        assert told["p"] == pytest.approx(theirs.pvalue, abs=1e-9)


# sixteenths, whose sums are exact: of a total that is 0 but for rounding, scipy says less than 1
@given(differences=st.lists(st.integers(-20, 20).map(lambda number: number / 16), min_size=2, max_size=8))
@settings(max_examples=40, deadline=None)
def test_all_signs_equal_scipys(functions: Database, differences: list[float]) -> None:
    told = functions.value("RETURN fn::sign_flips_exact($d)", d=differences)
    theirs = scipy.stats.permutation_test(
        (np.array(differences),), np.sum, permutation_type="samples", n_resamples=math.inf, vectorized=True
    )
    assert told == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_resamples_agree_with_scipy_and_ranx(functions: Database, seed: int) -> None:
    from ranx.statistical_tests import fisher_randomization_test

    random = np.random.default_rng(seed)
    # as differences of retrievers are: many of nothing, few of a lot, about two standard errors off zero
    n = 120
    a = random.integers(0, 5, n) / 4
    b = np.clip(a + random.integers(-1, 3, n) / 4 * (random.random(n) < 0.3) - 0.02 * seed, 0, 1)
    differences = np.sort(b - a)
    means = functions.value("RETURN fn::compare_bootstrap($d, 1, 0, 2000)", d=differences.tolist())
    error = differences.std() / math.sqrt(n)
    assert np.mean(means) == pytest.approx(differences.mean(), abs=5 * error / math.sqrt(2000))
    assert np.std(means) == pytest.approx(error, rel=0.08)
    theirs = scipy.stats.bootstrap(
        (differences,), np.mean, method="percentile", n_resamples=20_000, random_state=np.random.default_rng(1)
    ).confidence_interval
    low, high = functions.value("RETURN [math::percentile($m.sort(), 2.5), math::percentile($m.sort(), 97.5)]", m=means)
    assert (low, high) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])), abs=1e-12)
    # the standard error of such an end is .06 of the mean's own, from 2,000
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.3 * error)

    extreme = functions.value("RETURN fn::compare_sign_flips($d, 1, 0, 2000)", d=differences.tolist())
    p = (extreme + 1) / 2001
    permuted = scipy.stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
    ).pvalue
    tolerance = 5 * math.sqrt(max(p * (1 - p), 1e-4) / 2000) + 1e-3
    assert p == pytest.approx(permuted, abs=tolerance)
    randomised, _ = fisher_randomization_test(a, b, n_permutations=2000)
    assert p == pytest.approx(randomised, abs=1.5 * tolerance)


def test_the_smallest_difference_is_found_in_four_of_five_cases(functions: Database) -> None:
    random = np.random.default_rng(3)
    n, spread = 60, 0.2
    sample = random.normal(0, spread, n)
    told = functions.value("RETURN fn::smallest_difference($d)", d=sample.tolist())
    assert told == pytest.approx(2.801585 * sample.std(ddof=1) / math.sqrt(n), abs=1e-12)
    effect = 2.801585 * spread / math.sqrt(n)
    found = scipy.stats.ttest_1samp(random.normal(effect, spread, (4000, n)), 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_the_sentence(functions: Database) -> None:
    def verdict(difference: float, p: float, low: float, high: float, corrected: bool = False) -> str:
        figures = {
            "a": {"name": "A"},
            "b": {"name": "B"},
            "questions": 100,
            "ties": 50,
            "difference": difference,
            "p": p,
            "interval": {"low": low, "high": high},
        }
        text: str = functions.value("RETURN fn::compare_verdict($figures, $corrected)", figures=figures, corrected=corrected)
        return text

    assert verdict(0.12, 0.003, 0.05, 0.19) == "B is better than A by 0.12 (95% 0.05 to 0.19), p = 0.003, on 100 questions"
    assert verdict(-0.12, 0.0001, -0.19, -0.05) == "A is better than B by 0.12 (95% 0.05 to 0.19), p < 0.001, on 100 questions"
    assert (
        verdict(0.02, 0.2, -0.01, 0.05)
        == "A and B cannot be told apart on 100 questions (difference 0.02, 95% -0.01 to 0.05, p = 0.2)"
    )
    assert verdict(0.12, 0.05, 0.0, 0.19).startswith("B is better")
    assert verdict(0.12, 0.0501, 0.0, 0.19).startswith("A and B cannot")
    assert verdict(0.0, 0.01, -0.1, 0.1).startswith("A and B cannot")


def test_nothing_is_stored_or_retrieved(centre: Database) -> None:
    def state() -> list[Any]:
        return centre.run(
            "SELECT * FROM evaluation; SELECT VALUE id FROM eval_answer; SELECT * FROM eval_run; SELECT * FROM eval_chain"
        )

    before = state()
    _comparison.compare(centre, _comparison.Comparison(["bm25", "hybrid", "vector"], every_pair=True))
    assert state() == before


def test_the_command(seeded: Run, target: Settings) -> None:  # noqa: F811
    assert "no evaluation of the set default is complete" in seeded("compare", "bm25", "hybrid", code=4).stderr
    seeded("evaluate", "-k", "1,3,5")
    shown = seeded("compare", "bm25", "hybrid", "-k", "1")
    for line in ("recall@1", "fixed", "broke", "bm25 and hybrid cannot be told apart on 8 questions"):
        assert line in shown.stdout
    assert "429 too many requests  1.000   0.000" in shown.stdout
    assert "8 questions: read these by hand" in shown.stderr
    told = json.loads(seeded("compare", "bm25", "hybrid", "vector", "--metric", "ndcg", "--all", "--seed", "3", "--json").stdout)
    assert (told["metric"], told["k"], told["seed"], len(told["comparisons"])) == ("ndcg", 5, 3, 3)
    several = seeded("compare", "bm25", "hybrid", "vector")
    assert "p Holm" in several.stdout
    assert "fixed (bm25, vector)" in several.stdout
    # said of all, so said once
    assert several.stderr == "warning: 8 questions: read these by hand\n"
    evaluation = told["comparisons"][0]["a"]["evaluation"]
    assert seeded("compare", "bm25", "hybrid", "--evaluation", evaluation, "-k", "1").stdout == shown.stdout
    assert "needs two evaluations" in seeded("compare", "hybrid", code=4).stderr
    seeded("evaluate", "-k", "1,3,5")
    now = json.loads(seeded("compare", "hybrid", "--json").stdout)["comparisons"][0]
    assert now["a"]["evaluation"] == evaluation
    both = seeded("compare", evaluation, now["b"]["evaluation"], "--retriever", "hybrid").stdout
    assert "every one has the same value" in both
    # long names stand once, and a letter in the tables
    assert re.search(rf"^A: hybrid in {evaluation}, \d{{4}}-", both)
    assert re.search(r"^A  B   0.958   0.958 ", both, re.MULTILINE)
    wrong = seeded("compare", "hybird", "bm25", code=2).stderr
    assert "no retriever named hybird" in wrong
    assert "did you mean hybrid?" in wrong
    assert "did you mean ndcg?" in seeded("compare", "bm25", "hybrid", "--metric", "ndgc", code=2).stderr
    assert "k must be 5 or less" in seeded("compare", "bm25", "hybrid", "-k", "9", code=2).stderr
    with Database(target) as database:
        put(database, {"one": named(FIRST[:35]), "two": named(SECOND[:35])})
        put(database, {"one": named([*SECOND[:30], None])}, relabelled=["q001"], unanswerable=["q002"], status="failed")
        first, second = database.value("SELECT VALUE id FROM evaluation WHERE 'one' IN calls.retriever ORDER BY started")
    left = seeded("compare", f"evaluation:{first.id}", f"evaluation:{second.id}").stdout
    assert "left out, relabelled in between: 2 questions, question:q001, question:q002" in left
    assert "left out, failed on one side: 1 question, question:q030" in left
    assert only_in_one(left) == "question:q031, question:q032, question:q033, question:q034"


def only_in_one(text: str) -> str:
    """The questions of the line on what only one side has."""
    (line,) = [line for line in text.splitlines() if line.startswith("left out, only in ")]
    return line.partition("4 questions, ")[2]


def test_two_levels_of_one_set_are_not_taken_for_a_change(help_centre: Database) -> None:
    """The same answers read at grade 1 and at grade 2 differ without any retriever's doing."""
    help_centre.run(
        "UPDATE question SET judged = relevant.map(|$id, $index| { document: $id, grade: IF $index = 0 { 2 } ELSE { 1 } })"
    )
    one, two = (evaluate(help_centre, Options([3], ["bm25"], rel=rel)).row["id"] for rel in (1, 2))
    with pytest.raises(DataError, match="grade 1 or more in one evaluation, grade 2 or more in the other") as refused:
        compare(help_centre, one, two)
    assert refused.value.hint == "--rel 1 reads both alike"
    for rel in (1, 2):
        (told,) = compare(help_centre, one, two, rel=rel)["comparisons"]
        assert (told["difference"], told["ties"]) == (0, told["questions"])
        assert not any("relevant" in warning for warning in told["warnings"])


def test_an_evaluation_that_is_newer_and_left_aside_is_named(help_centre: Database) -> None:
    evaluate(help_centre, Options([3]))
    newer = evaluate(help_centre, Options([3], ["hybrid"])).row["id"]
    (told,) = compare(help_centre, "bm25", "hybrid")["comparisons"]
    # as the engine writes the id
    shown = help_centre.value("RETURN <string> $id", id=newer)
    said = f"a newer evaluation of hybrid, {shown}, is left aside, since the other is not in it"
    assert any(warning.startswith(said) for warning in told["warnings"])
    both = evaluate(help_centre, Options([3])).row["id"]
    (told,) = compare(help_centre, "bm25", "hybrid")["comparisons"]
    assert told["b"]["evaluation"] == both
    assert not any("left aside" in warning for warning in told["warnings"])
