"""Labels of two levels, thresholds, chosen metrics and cutoffs, all from stored answers: nothing is retrieved again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from surrecall import Database, Options, SurrecallError, _evaluation, evaluate
from test_cli import surrecall
from test_evaluation import define_retriever

# gold is 2, evidence 1; c was judged not relevant, d is a negative and e a fractional grade
QUESTIONS = """
FOR $name IN ['a', 'b', 'c', 'd', 'e', 'f'] {
  CREATE type::record('article', $name) SET title = $name, content = $name, embedding = [1, 0, 0, 0];
};
CREATE question:one SET text = 'one', judged = [
  { document: article:a, grade: 2 }, { document: article:b, grade: 1 }, { document: article:c, grade: 0 }
];
CREATE question:two SET text = 'two', judged = [{ document: article:b, grade: 2 }, { document: article:d, grade: -1 }];
CREATE question:three SET text = 'three', judged = [{ document: article:a, grade: 1 }, { document: article:e, grade: 1.5 }];
CREATE question:four SET text = 'four', relevant = [article:f];
"""
RANKING = "['b', 'c', 'a', 'a', 'd', 'e'].slice(0, $k).map(|$name| { id: type::record('article', $name), score: 1f })"


@pytest.fixture
def levels(schema: Database) -> Database:
    schema.run(QUESTIONS)
    define_retriever(schema, "fixed", RANKING)
    return schema


def test_stored_answers_are_read_at_either_level(levels: Database) -> None:
    evaluation = evaluate(levels, Options([3, 6]))
    row = evaluation.row
    assert (row["rel"], row["scale"], row["status"]) == (1, 2, "complete")
    assert [(run["k"], run["rel"], run["scale"]) for run in evaluation.runs] == [(3, 1, 2), (6, 1, 2)]
    # the retriever is gone, and so are its questions' labels: the facts are enough
    levels.run("DELETE retriever; UPDATE question SET judged = NONE, relevant = [article:f]")

    def at(rel: float | None, k: int) -> dict[str, Any]:
        run: dict[str, Any] = levels.value(
            "RETURN fn::evaluation_run($evaluation, 'fixed', $k, $rel)", evaluation=row["id"], k=k, rel=rel
        )
        return run

    # evidence: b and a; b; a and e; f. Gold: a; b; nothing of three and four, which count as 0
    assert [at(1, 3)[name] for name in ("recall", "hit", "all", "questions", "rel")] == [(1 + 1 + 0.5) / 4, 0.75, 0.5, 4, 1]
    assert [at(2, 3)[name] for name in ("recall", "hit", "rr", "ap", "rprec")] == [
        0.5,
        0.5,
        (1 / 3 + 1) / 4,
        (1 / 3 + 1) / 4,
        0.25,
    ]
    assert at(1.5, 6)["recall"] == pytest.approx((1 + 1 + 1) / 4)
    # b has none above it; a has the 1 and the 0 of the question above it: 1 - min(2, 1) / min(2, 1)
    assert at(2, 3)["bpref"] == pytest.approx((0 + 1) / 4)
    for name in ("ndcg", "ndcg_exp", "err", "rbp", "judged", "repeats", "scale"):
        assert at(2, 6)[name] == at(1, 6)[name] == at(None, 6)[name] == evaluation.runs[1][name], name
    assert evaluation.runs[1]["repeats"] == 4
    # on the set's scale of 2, not the question's own: three stops at its e with (2^1.5 - 1) / 4
    assert (
        levels.value("RETURN fn::means($id, 'fixed', { k: 6, metrics: ['err'], max: 4 })", id=row["id"])[0]["err"]
        < at(1, 6)["err"]
    )


def test_means_of_choice_are_the_same_in_shards_and_in_one(levels: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = evaluate(levels, Options([2, 6])).row["id"]
    whole = levels.value("RETURN fn::means($id, 'fixed', { k: [1, 2, 3], rel: 2 })", id=evaluation)
    (tally,) = levels.value("RETURN fn::tally_begin($id, 'fixed', { k: [1, 2, 3], rel: 2 })", id=evaluation)
    monkeypatch.setattr(_evaluation, "_TALLIED", 1)
    tally = _evaluation.tallied(levels, tally)
    assert levels.value("RETURN fn::tally_means([$tally])", tally=tally) == whole
    below_a_write = levels.value(
        "RETURN (CREATE ONLY executor_probe SET v = fn::means($id, 'fixed', { k: [1, 2, 3], rel: 2 })).v", id=evaluation
    )
    assert below_a_write == [{key: value for key, value in row.items() if value is not None} for row in whole]
    for row in whole:
        scores = levels.value(
            "SELECT VALUE fn::score(ranking, labels, $k, { rel: 2, max: 2 }) FROM eval_answer ORDER BY question", k=row["k"]
        )
        for name in scores[0]:
            assert row[name] == pytest.approx(sum(score[name] for score in scores) / 4, abs=1e-12), name
    (one,) = levels.value("RETURN fn::means($id, 'fixed', { k: 6, metrics: ['ndcg', 'recall'] })", id=evaluation)
    assert {key for key, value in one.items() if value is not None} == {"k", "questions", "ndcg", "recall"}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("fn::means($id, 'other', {})", "no answers of other in evaluation:"),
        ("fn::means($id, 'fixed', { k: 7 })", "k is at most 6, the depth of evaluation:"),
        ("fn::means($id, 'fixed', { k: 0 })", "k must be a whole number"),
        ("fn::means($id, 'fixed', { metrics: ['recal'] })", "no metric named recal"),
        ("fn::means($id, 'fixed', { rel: -1 })", "rel is the lowest grade that is relevant"),
        ("fn::means($id, 'fixed', { relevant: 2 })", "means have no option relevant; they take k, metrics, rel, max, p, counts"),
        ("fn::means(evaluation:none, 'fixed', {})", "evaluation:none is not there"),
        ("fn::tally_means(fn::tally_begin($id, 'fixed', {}))", "the sums are not complete"),
    ],
)
def test_what_there_is_not_is_said(levels: Database, statement: str, message: str) -> None:
    evaluation = evaluate(levels, Options([6])).row["id"]
    with pytest.raises(SurrecallError, match="^" + message):
        levels.value(f"RETURN {statement}", id=evaluation)


def test_an_evaluation_at_a_level(levels: Database) -> None:
    told = evaluate(levels, Options([3], rel=2))
    assert told.row["rel"] == 2
    assert (told.runs[0]["rel"], told.runs[0]["recall"]) == (2, 0.5)
    assert "2 questions have no label of grade 2 or more; they count as 0, except in nDCG, ERR and RBP" in told.warnings
    recorded = levels.value("RETURN fn::record_evaluation({ k: 3, rel: 2 })")
    assert recorded[0]["recall"] == 0.5
    with pytest.raises(SurrecallError, match="no label of the golden set default has a grade of 3 or more, the highest is 2"):
        evaluate(levels, Options([3], rel=3))
    with pytest.raises(SurrecallError, match="rel is the lowest grade that is relevant, a number above 0, got 0"):
        evaluate(levels, Options([3], rel=0))
    assert levels.value("RETURN fn::check_history()") == []


def test_the_command(tmp_path: Path) -> None:
    env = {"SURREAL_URL": "surrealkv://data"}

    def call(*arguments: str, code: int = 0) -> str:
        done = surrecall(*arguments, cwd=tmp_path, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    call("apply")
    call("seed")
    usual = call("evaluate", "-k", "3").splitlines()
    assert usual[0].split() == ["retriever", "k", "recall", "hit", "precision", "p", "rr", "ap", "ndcg", "judged"]
    assert max(map(len, usual[:-1])) <= 80
    chosen = call("evaluate", "-k", "3", "-m", "bpref", "--metric", "rprec").splitlines()
    assert chosen[0].split() == ["retriever", "k", "bpref", "rprec"]
    told = json.loads(surrecall("evaluate", "-k", "3", "--json", cwd=tmp_path, env=env).stdout)
    metrics = {path.stem.removesuffix("_at") for path in (ROOT / "surql/core/metric").glob("*.surql")}
    assert all(metrics <= set(run) for run in told["runs"])
    unknown = call("evaluate", "-k", "3", "-m", "recal", code=2)
    assert "no metric named recal; there are: all, ap, bpref" in unknown
    assert "did you mean recall?" in unknown
    assert "no label of the golden set default has a grade of 2 or more" in call("evaluate", "-k", "3", "--rel", "2", code=2)
