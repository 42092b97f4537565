"""The mean that hides a class, curves over k, and what figures stand on: from stored answers, on every engine and executor."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

import three_kinds
from conftest import fresh_settings
from definitions import DEFINITIONS
from surrecall import Database, Options, Settings, SurrecallError, _resolution, _seed, evaluate
from surrecall._cli import _chart
from test_cli import Run, run, seeded, target  # noqa: F401
from test_comparison import without_none
from test_evaluation import define_retriever

FIVE = 5


@pytest.fixture(scope="module")
def kinds(pytestconfig: pytest.Config, engine: str) -> Iterator[tuple[Database, RecordID]]:
    """The three kinds, evaluated once; nothing here changes it."""
    with Database(fresh_settings(pytestconfig, engine)) as database:
        database.run(DEFINITIONS)
        three_kinds.seed(database)
        yield database, evaluate(database, Options([1, FIVE])).row["id"]


@pytest.fixture(scope="module")
def centre(pytestconfig: pytest.Config, engine: str) -> Iterator[tuple[Database, RecordID]]:
    """The help centre, evaluated once; nothing here changes it."""
    with Database(fresh_settings(pytestconfig, engine)) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
        yield database, evaluate(database, Options([1, 3, FIVE])).row["id"]


def ask(database: Database, expression: str, **variables: Any) -> Any:
    """What an expression gives, the same on both executors."""
    told = database.value(f"RETURN {expression}", **variables)
    below = database.value(f"RETURN (CREATE ONLY executor_probe SET v = {expression}).v", **variables)
    assert below == without_none(told)
    return told


def sliced(database: Database, evaluation: RecordID, retriever: str, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ask(
        database, "fn::slices($evaluation, $retriever, $options)", evaluation=evaluation, retriever=retriever, options=options
    )
    return rows


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [("all" if row["whole"] else row["class"], row["questions"], row["recall"], row["farthest"]) for row in rows]


def test_one_mean_hides_a_class_near_zero(kinds: tuple[Database, RecordID]) -> None:
    database, evaluation = kinds
    assert brief(sliced(database, evaluation, "bm25", k=FIVE)) == [
        ("all", 48, 33 / 48, False),
        ("conceptual", 16, 1 / 16, True),
        ("factual", 16, 1.0, False),
        ("lexical", 16, 1.0, False),
    ]
    assert brief(sliced(database, evaluation, "vector", k=FIVE)) == [
        ("all", 48, 32 / 48, False),
        ("lexical", 16, 0.0, True),
        ("conceptual", 16, 1.0, False),
        ("factual", 16, 1.0, False),
    ]
    told = _resolution.slices(database, evaluation, ["bm25", "vector", "hybrid"], {"by": "kind", "k": [FIVE]})
    assert told["sentences"][:2] == [
        "vector: recall@5 is 0 for kind lexical (16 questions), 0.667 below its mean",
        "bm25: recall@5 is 0.062 for kind conceptual (16 questions), 0.625 below its mean",
    ]
    assert told["warnings"] == ["48 questions, too few to trust a slice (under 100); the smallest class has 16"]


def test_slices_are_the_means_of_their_answers(kinds: tuple[Database, RecordID]) -> None:
    """Every metric and class, and the whole to the last bit what the history has."""
    database, evaluation = kinds
    runs = database.value("SELECT * FROM eval_run WHERE evaluation = $id ORDER BY seq", id=evaluation)
    names = database.value("RETURN fn::metrics()")
    scores = database.value(
        "SELECT kind, tags, source, split, question, fn::score(ranking, labels, 5) AS score FROM eval_answer"
        " WHERE evaluation = $id AND retriever = 'hybrid'",
        id=evaluation,
    )
    for by, field in (("kind", "kind"), ("tag", "tags"), ("source", "source"), ("split", "split")):
        rows = sliced(database, evaluation, "hybrid", by=by)
        for stored in runs:
            if stored["retriever"] == "hybrid":
                (whole,) = [row for row in rows if row["k"] == stored["k"] and row["whole"]]
                assert [whole[name] for name in names] == [stored[name] for name in names]
        for row in rows:
            if row["k"] == FIVE and not row["whole"]:
                mine = [
                    one["score"]
                    for one in scores
                    if (row["class"] in one["tags"] if row["class"] and by == "tag" else (one[field] or None) == row["class"])
                ]
                assert row["questions"] == len(mine)
                for name in names:
                    assert row[name] == pytest.approx(statistics.fmean(score[name] for score in mine), abs=1e-12), name


def test_classes_by_tag_source_split_and_set(kinds: tuple[Database, RecordID]) -> None:
    database, evaluation = kinds

    def classes(by: str) -> dict[str | None, int]:
        return {row["class"]: row["questions"] for row in sliced(database, evaluation, "bm25", by=by, k=FIVE) if not row["whole"]}

    # a question with two tags is in two classes, one without in its own
    assert classes("tag") == {"even": 24, "first": 12, None: 18}
    assert classes("source") == {"human": 40, "production": 8}
    assert classes("split") == {"dev": 24, "heldout": 12, None: 12}
    assert classes("set") == {"default": 48}
    # nothing is below a mean of one class
    assert not any(row["farthest"] for row in sliced(database, evaluation, "bm25", by="set"))
    assert _resolution.slices(database, evaluation, ["bm25"], {"by": "set"})["sentences"] == [
        "bm25: no class is below the mean of recall"
    ]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("fn::slices($id, 'bm25', { by: 'kinds' })", "slices are by kind, tag, source, split or set, got kinds"),
        ("fn::slices($id, 'bm25', { of: 'kind' })", "slices have no option of"),
        ("fn::slices($id, 'bm25', { metric: 'recal' })", "no metric named recal"),
        ("fn::slices($id, 'bm26', {})", "no answers of bm26 in evaluation:"),
        ("fn::slices($id, 'bm25', { k: 6 })", "k is at most 5"),
        ("fn::curve($id, 'bm26')", "no answers of bm26 in evaluation:"),
        ("fn::stored_evaluation($id, 'other', NONE)", "no evaluation evaluation:.* of the set other"),
        ("fn::stored_evaluation(NONE, 'other', NONE)", "nothing to read: no evaluation of the set other is complete"),
        ("fn::stored_evaluation(NONE, NONE, ['bm26'])", "no retriever named bm26 in a complete evaluation of the set default"),
    ],
)
def test_what_there_is_not_is_said(kinds: tuple[Database, RecordID], expression: str, message: str) -> None:
    database, evaluation = kinds
    with pytest.raises(SurrecallError, match="^" + message):
        database.value(f"RETURN {expression}", id=evaluation)


def test_classes_are_what_the_questions_were(schema: Database) -> None:
    """Also of an answer that is an error, and of a recorded evaluation; a question that changes later changes no figure."""
    three_kinds.seed(schema)
    schema.run("UPDATE question:q00 SET embedding = NONE")
    evaluation = evaluate(schema, Options([3], retrievers=["vector"])).row["id"]
    recorded = schema.value("RETURN fn::record_evaluation({ k: 3, retrievers: ['bm25'] })")[0]["evaluation"]
    schema.run("UPDATE question SET kind = 'other', tags = [], source = 'imported', split = NONE")
    for one, retriever, factual in ((evaluation, "vector", 15), (recorded, "bm25", 16)):
        told = {row["class"]: row["questions"] for row in sliced(schema, one, retriever) if not row["whole"]}
        assert told == {"conceptual": 16, "factual": factual, "lexical": 16}
    facts = schema.value("SELECT kind, tags, source, split FROM ONLY eval_answer WHERE status = 'error' LIMIT 1")
    assert facts == {"kind": "factual", "tags": ["even", "first"], "source": "production", "split": None}
    # a question without a kind is a class of its own, and is not one that is called nothing
    schema.run("UPDATE question SET kind = NONE; UPDATE question:q01 SET kind = ''")
    again = evaluate(schema, Options([3], retrievers=["bm25"])).row["id"]
    assert {row["class"]: row["questions"] for row in sliced(schema, again, "bm25") if not row["whole"]} == {None: 47, "": 1}


def test_a_curve_is_the_history_at_every_k(kinds: tuple[Database, RecordID], centre: tuple[Database, RecordID]) -> None:
    for database, evaluation in (kinds, centre):
        for retriever in ("bm25", "vector", "hybrid"):
            curve = ask(database, "fn::curve($id, $name)", id=evaluation, name=retriever)
            assert (curve["retriever"], curve["every_k"], curve["depth"]) == (retriever, True, FIVE)
            assert [row["k"] for row in curve["rows"]] == [1, 2, 3, 4, FIVE]
            for before, after in pairwise(curve["rows"]):
                assert before["recall"] <= after["recall"]
            for row in curve["rows"]:
                for metric, function in (("recall", "fn::recall_at"), ("hit", "fn::hit_at")):
                    values = database.value(
                        f"SELECT VALUE {function}(ranking, labels, $k) FROM eval_answer"
                        " WHERE evaluation = $id AND retriever = $name AND split != 'heldout'",
                        id=evaluation,
                        name=retriever,
                        k=row["k"],
                    )
                    assert row[metric] == pytest.approx(statistics.fmean(values), abs=1e-12)
            runs = database.value(
                "SELECT * FROM eval_run WHERE evaluation = $id AND retriever = $name", id=evaluation, name=retriever
            )
            at = {row["k"]: row for row in curve["rows"]}
            # the history has the questions too that are held out, and no k is chosen by
            assert curve["heldout"] == (12 if database is kinds[0] else 0)
            for one in runs if curve["heldout"] == 0 else []:
                assert at[one["k"]]["recall"] == pytest.approx(one["recall"], abs=1e-12)
                assert at[one["k"]]["hit"] == one["hit"]
    database, evaluation = centre
    row = _resolution.evaluation_of(database, evaluation, None, None)
    (told,) = _resolution.curves(database, row, ["hybrid"], 1, 5)
    assert told["gain"]["at_prompt"] == told["curve"]["rows"][0]["recall"]
    assert told["gain"]["at_pool"] == told["curve"]["rows"][4]["recall"]


def test_what_a_reranker_could_gain(centre: tuple[Database, RecordID]) -> None:
    database, evaluation = centre

    def gain(prompt: int | None, pool: int | None) -> Any:
        return ask(
            database,
            "fn::reranker_gain(fn::curve($id, 'hybrid'), $prompt, $pool)",
            id=evaluation,
            prompt=prompt,
            pool=pool,
        )

    assert (
        gain(3, 5)["sentence"]
        == "hybrid: a reranker could gain up to 0.125 in recall@3, from 0.833 to 0.958, by what is found at 5"
    )
    assert (gain(None, None)["prompt_k"], gain(None, None)["pool_k"]) == (1, 5)
    # one place: all of one label, a half of two, a third of three
    sizes = database.value("SELECT VALUE relevant.len() FROM question")
    assert gain(None, None)["gain"] == pytest.approx(sum(1 / size for size in sizes) / 8 - 23 / 48)
    assert gain(None, None)["at_pool"] == pytest.approx(23 / 24)
    assert gain(3, 20)["sentence"].endswith("by what is found at 5 (pool_k is 20, the evaluation asked for 5)")
    assert gain(5, 5)["sentence"].startswith(
        "hybrid: the prompt takes all that the first stage returns, so a reranker gains nothing"
    )
    assert gain(9, 20)["gain"] is None


def test_a_retriever_that_is_asked_anew_is_known_at_its_cutoffs_alone(schema: Database) -> None:
    three_kinds.seed(schema)
    schema.run("UPDATE question SET split = NONE")
    # at 1 it has one article, at 4 four others
    define_retriever(
        schema,
        "fickle",
        "IF $k = 1 { [article:a00] } ELSE { [article:a01, article:a02, article:a03, article:a04].slice(0, $k) }",
        False,
    )
    evaluation = evaluate(schema, Options([1, 4])).row["id"]
    curve = ask(schema, "fn::curve($id, 'fickle')", id=evaluation)
    assert curve["every_k"] is False
    assert [(row["k"], row["recall"]) for row in curve["rows"]] == [(1, 1 / 48), (4, 4 / 48)]
    assert schema.value("RETURN fn::reranker_gain($curve, 1, 4)", curve=curve)["gain"] == pytest.approx(3 / 48)
    unknown = schema.value("RETURN fn::reranker_gain($curve, 2, 4)", curve=curve)
    assert unknown["gain"] is None
    assert unknown["sentence"] == "fickle was asked at k 1, 4 alone; surrecall evaluate -k 2,4 tells what a reranker could gain"
    # one cutoff looks like any list that begins the longer one, but for the registry
    once = evaluate(schema, Options([4])).row["id"]
    assert [row["k"] for row in schema.value("RETURN fn::curve($id, 'fickle')", id=once)["rows"]] == [4]
    by_hand = schema.value("RETURN fn::read_by_hand($id, ['fickle'])", id=evaluation)
    assert (by_hand[-1]["question"].id, by_hand[-1]["ranks"]) == ("q01", {"fickle": 1})
    assert by_hand[-5]["ranks"] == {"fickle": None}


def test_what_a_set_can_tell(kinds: tuple[Database, RecordID], centre: tuple[Database, RecordID]) -> None:
    database, evaluation = kinds
    told = ask(database, "fn::resolution($id, 5)", id=evaluation)
    assert told["questions"] == {"fewest": 48, "most": 48}
    assert told["step"] == {"smallest": 1 / 48, "largest": 1 / 48}
    values = {
        name: database.value(
            "SELECT VALUE fn::recall_at(ranking, labels, 5) FROM eval_answer"
            " WHERE evaluation = $id AND retriever = $name ORDER BY question",
            id=evaluation,
            name=name,
        )
        for name in ("bm25", "vector", "hybrid")
    }
    smallest = {
        frozenset(pair): 2.801585
        * statistics.stdev(b - a for a, b in zip(values[pair[0]], values[pair[1]], strict=True))
        / math.sqrt(48)
        for pair in (("bm25", "vector"), ("bm25", "hybrid"), ("vector", "hybrid"))
    }
    for end, pick in (("smallest", min), ("largest", max)):
        one = told["told"][end]
        assert one["smallest"] == pytest.approx(pick(smallest.values()))
        assert smallest[frozenset((one["a"], one["b"]))] == pytest.approx(one["smallest"])
    assert told["by_hand"] == told["warnings"] == []
    assert told["sentences"][0] == "48 questions, one label moves recall by 0.021"
    assert told["sentences"][1].startswith("smallest difference in recall@5 told: 0.")
    # one retriever has nobody beside it
    alone = _resolution.resolution(database, evaluation, ["vector"], 5)
    assert alone is not None
    spread = statistics.stdev(values["vector"])
    assert alone["told"]["smallest"]["smallest"] == pytest.approx(2.801585 * math.sqrt(2) * spread / math.sqrt(48))
    assert alone["sentences"][1].endswith("(vector, and one unrelated to it)")

    database, evaluation = centre
    told = ask(database, "fn::resolution($id, 99)", id=evaluation)
    # a k that was never asked for is the smallest cutoff
    assert told["k"] == 1
    assert told["step"] == {"smallest": 1 / 3 / 8, "largest": 1 / 8}
    assert told["warnings"] == ["8 questions: read these by hand"]
    assert [(row["question"].id, row["ranks"]) for row in told["by_hand"][:2]] == [
        ("money_back", {"bm25": None, "vector": 1, "hybrid": 4}),
        ("rate_limit", {"bm25": 1, "vector": None, "hybrid": 3}),
    ]
    assert len(told["by_hand"]) == 8
    best = {(row["retriever"], row["k"]): row for row in told["best"]}
    labels = [len(one) for one in database.value("SELECT VALUE relevant FROM question")]
    for k in (1, 3, 5):
        assert best["vector", k]["best_p"] == pytest.approx(sum(min(one, k) / k for one in labels) / 8)
        for row in database.value("SELECT * FROM eval_run WHERE k = $k", k=k):
            one = best[row["retriever"], k]
            assert (one["precision"], one["p"]) == (pytest.approx(row["precision"]), pytest.approx(row["p"]))
            assert row["p"] <= one["best_p"]
            assert row["precision"] <= one["best_precision"] + 1e-12
    # short lists: a perfect retriever that brings back as many, where nothing came back as many as were asked for
    assert ask(
        database, "fn::best_precision([{ labels: 2, returned: 1 }, { labels: 1, returned: 9 }, { labels: 3, returned: 0 }], 4)"
    ) == {
        "p": pytest.approx((2 / 4 + 1 / 4 + 3 / 4) / 3),
        "precision": pytest.approx((1 + 1 / 4 + 3 / 4) / 3),
    }


def test_failed_and_equal_answers_have_no_say(schema: Database) -> None:
    three_kinds.seed(schema)
    schema.run("UPDATE question:q00 SET embedding = NONE; UPDATE question:q01 SET answerable = false")
    told = schema.value("RETURN fn::resolution($id, NONE)", id=evaluate(schema, Options([3])).row["id"])
    assert told["questions"] == {"fewest": 46, "most": 47}
    assert told["sentences"][0] == "46 to 47 questions, one label moves recall by 0.021 to 0.022"
    define_retriever(schema, "none", "[]")
    row = evaluate(schema, Options([3])).row
    told = schema.value("RETURN fn::resolution($id, NONE)", id=row["id"])
    assert told["told"] is None
    assert told["sentences"][1] == "no difference in recall@3 to tell: every question has the same value"
    define_retriever(schema, "broken", "fn::not_there()")
    row = evaluate(schema, Options([3])).row
    assert _resolution.resolution(schema, row["id"], ["broken"]) is None
    assert sliced(schema, row["id"], "broken") == []
    curve = schema.value("RETURN fn::curve($id, 'broken')", id=row["id"])
    assert curve["rows"] == []
    assert schema.value("RETURN fn::reranker_gain($curve, 1, 3)", curve=curve)["sentence"] == "broken has no score"


def test_the_chart_stands_in_80_columns_and_without_colour() -> None:
    assert _chart.letters(["bm25", "vector", "hybrid", "hybrid+floor", "bm25 again"]) == {
        "bm25": "b",
        "vector": "v",
        "hybrid": "h",
        "hybrid+floor": "y",
        "bm25 again": "m",
    }
    for depth in (1, 2, 5, 20, 74, 75, 100, 1000, 9999):
        lines = _chart.chart("recall@k", {"one": {k: k / depth for k in range(1, depth + 1)}, "two": {depth: 1.0, 1: 0.0}}, 80)
        assert max(map(len, lines)) <= 80, depth
        assert len(lines) == 14
        # both end at 1, in the last column, but for a depth of 1, where the second one is at 0
        assert lines[1].startswith("1.0 |")
        assert lines[1].endswith("*" if depth > 1 else "o"), depth
        assert lines[13].split()[-1] == str(depth)
    shown = _chart.chart("hit@k", {"a": {1: 0.0, 2: 0.5, 3: 1.0}, "b": {1: 0.0, 3: 0.52}}, 40)
    assert shown[0] == "hit@k   a a  b b"
    assert [line for line in shown[1:12] if line.rstrip()[5:]] == ["1.0 |            a", "0.5 |      a     b", "0.0 |*"]


def test_the_commands(run: Run, target: Settings) -> None:  # noqa: F811
    with Database(target) as database:
        database.run(DEFINITIONS)
        three_kinds.seed(database)
        database.run("UPDATE question SET split = NONE")
    assert "no evaluation of the set default is complete" in run("curve", code=4).stderr
    done = run("evaluate", "-k", "1,5", "--by", "kind", "-r", "bm25", "-r", "vector")
    lines = done.stdout.splitlines()
    # what the means hide comes first, and stands without colour
    assert lines[0] == "bm25: recall@1 is 0 for kind conceptual (16 questions), 0.667 below its mean"
    assert re.search(r"^bm25 +5 +conceptual +16 +0\.062 .* 0\.625 << *$", done.stdout, re.MULTILINE)
    assert "bm25       5  all                48   0.688" in done.stdout
    assert max(map(len, lines[:-1])) <= 80
    assert "retriever  k  recall    hit  precision" in done.stdout
    assert "48 questions, one label moves recall by 0.021" in done.stdout
    assert "k  retriever  questions  precision  precision, perfect      p  p, perfect" in done.stdout
    assert "48 questions, too few to trust a slice (under 100)" in done.stderr
    assert "by hand" not in done.stdout + done.stderr
    told = json.loads(run("evaluate", "-k", "1,5", "--by", "tag", "-m", "ndcg", "-r", "bm25", "--json").stdout)
    assert {row["class"] for row in told["slices"]["rows"]} == {None, "even", "first"}
    assert told["slices"]["rows"][0]["ndcg"] == told["runs"][0]["ndcg"]
    assert told["resolution"]["questions"] == {"fewest": 48, "most": 48}

    shown = run("curve", "-r", "bm25", "-r", "vector")
    assert "recall@k   b bm25  v vector" in shown.stdout
    assert "bm25: a reranker could gain up to 0.021 in recall@1, from 0.667 to 0.688, by what is found at 5" in shown.stdout
    assert "vector: a reranker gains nothing in recall@1, 0.667 is all that fits of what is found at 5" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 110
    assert "\x1b" not in shown.stdout
    told = json.loads(run("curve", "-r", "vector", "--json").stdout)
    assert [row["k"] for row in told["curves"][0]["curve"]["rows"]] == [1, 2, 3, 4, 5]
    assert "did you mean vector?" in run("curve", "-r", "vectr", code=2).stderr
    with Database(target) as database:
        database.run("CREATE eval_run SET retriever = 'bm25', k = 5, recall = 0.5, questions = 20")
    past = run("history", "--by", "kind", "-k", "5", "--limit", "3")
    assert "conceptual" in past.stdout
    assert "<<" in past.stdout
    assert "1 run without stored answers, so without classes" in past.stderr
    assert "20 to 48 questions, one label moves recall by 0.021" in past.stdout
    assert "1 run written by hand, which one question moves by up to 0.05" in past.stdout
    assert "20 questions: read these by hand" in past.stderr
    assert {row["class"] for row in json.loads(run("history", "--by", "kind", "--json").stdout)["rows"]} == {
        None,
        *three_kinds.KINDS,
    }


def test_few_questions_are_shown_and_the_project_names_its_k(seeded: Run, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "here" / "surrecall.toml").write_text("prompt_k = 3\npool_k = 5\n")
    done = seeded("evaluate", "-k", "1,3,5")
    assert "warning: 8 questions: read these by hand" in done.stderr
    assert "8 questions, one label moves recall by 0.042 to 0.125" in done.stdout
    assert "smallest difference in recall@3 told: " in done.stdout
    rows = done.stdout[done.stdout.index("rank of the first relevant document") :].splitlines()
    assert rows[2].split() == ["money_back", "how", "do", "I", "get", "my", "money", "back", "1", "4"]
    shown = seeded("curve", "--retriever", "hybrid").stdout
    assert "hybrid: a reranker could gain up to 0.125 in recall@3, from 0.833 to 0.958, by what is found at 5" in shown
    (tmp_path / "here" / "surrecall.toml").write_text("prompt_k = 9\npool_k = 5\n")
    assert "prompt_k is 9, more than pool_k, 5" in seeded("curve", code=2).stderr
