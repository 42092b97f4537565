"""Sweeps over a parameter: the lesson's floors, what is held out, ties, failures, and nothing left behind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from surrealdb import RecordID

from surrecall import Database, DataError, SchemaError, SurrecallError, UsageError, _sweep
from surrecall._cli.sweep import values
from test_cli import Run, run, seeded, target

__all__ = ["run", "seeded", "target"]

FLOORED = "fn::retrieve_hybrid_floor($question.text, $question.embedding, $k, $x)"
FLOORS = (0, 1.5, 2.5, 4)
ALL = "IF $x = 'good' { $question.relevant } ELSE { [] }"


def swept(database: Database, expression: str = FLOORED, xs: tuple[Any, ...] = FLOORS, k: int = 3, **more: Any) -> _sweep.Swept:
    result = _sweep.sweep(database, _sweep.Options(expression, xs, k, **more))
    assert left_behind(database) == ([], 0)
    return result


def left_behind(database: Database) -> tuple[list[str], int]:
    """Functions that were there for the sweep only, and evaluations, answers and runs."""
    functions = [name for name in database.value("INFO FOR DB")["functions"] if "probe" in name]
    tables = ("evaluation", "eval_answer", "eval_run")
    return functions, sum(database.value(f"RETURN count(SELECT VALUE id FROM {table})") for table in tables)


def means(told: dict[str, Any], metric: str = "recall") -> dict[Any, float]:
    return {row["x"]: row[metric] for row in told["values"]}


def test_the_floors_of_the_help_centre_cannot_be_told_apart(help_centre: Database) -> None:
    seen: list[tuple[int, int]] = []
    result = _sweep.sweep(help_centre, _sweep.Options(FLOORED, FLOORS, 3), lambda done, total: seen.append((done, total)))
    told = result.told
    singly = {x: help_centre.value("RETURN fn::evaluate_floor(3, $x).recall", x=x) for x in FLOORS}
    assert means(told) == pytest.approx(singly, abs=5e-4)
    assert told["chosen"] == {"x": 1.5, "mean": 1, "tied": [1.5, 2.5, 4]}
    assert told["told_apart"] == []
    assert told["verdict"] == (
        "x = 1.5 has the highest recall@3, 1, on 8 questions, with x = 2.5, x = 4; the smallest is taken; "
        "no other value can be told apart from it"
    )
    assert told["heldout"] is None
    assert any(line == "8 questions: read these by hand" for line in result.warnings)
    assert any(line.startswith("no question is held out") for line in result.warnings)
    assert seen[-1] == (4 * 8 + 3 * 2 * 2000,) * 2
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    # the comparison is that of fn::compare: x = 0 fixes nothing and breaks what it breaks
    (zero,) = [one for one in told["comparisons"] if one["b"]["x"] == 0]
    assert (zero["a"]["name"], zero["b"]["name"]) == ("x = 1.5", "x = 0")
    assert zero["difference"] == pytest.approx(means(told)[0] - 1, abs=1e-12)
    assert (zero["wins"], zero["losses"]) == (0, 2)
    assert [one["p"] for one in told["comparisons"]] == [1, 1, 1]
    # the order in which the values are given, and the size of the shards, change nothing
    backwards = swept(help_centre, xs=FLOORS[::-1]).told
    assert backwards["chosen"] == told["chosen"]
    assert means(backwards) == means(told)


def test_shards_of_any_size_give_the_same(help_centre: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    told = swept(help_centre, metric="ndcg", k=5).told
    monkeypatch.setattr(_sweep, "_FIRST_SHARD", 1)
    monkeypatch.setattr(_sweep, "_READ", dict.fromkeys(_sweep._READ, _sweep._READ["closure"]))
    again = swept(help_centre, metric="ndcg", k=5).told
    # each search took its own time
    for row in [*told["values"], *again["values"]]:
        del row["median"], row["p95"]
    assert again == told


def test_what_is_held_out_has_no_part_in_the_choice(help_centre: Database) -> None:
    help_centre.run("UPDATE question:signin, question:rate_limit, question:money_back SET split = 'heldout'")
    help_centre.run("UPDATE question:arrived_broken SET split = 'dev'")
    # fails where a held-out question is asked for a value that was not chosen
    peek = f"IF $question.split = 'heldout' AND $x != 1.5 {{ [THROW 'peeked'] }} ELSE {{ {FLOORED} }}"
    result = swept(help_centre, peek, (4, 1.5, 2.5))
    assert result.failed == []
    told = result.told

    def mean(condition: str, x: float) -> float:
        rows: list[float] = help_centre.value(
            "SELECT VALUE fn::recall_at(fn::retrieve_hybrid_floor(text, embedding, 3, $x), relevant, 3) FROM question"
            f" WHERE {condition}",
            x=x,
        )
        assert len(rows) == (3 if condition == "split = 'heldout'" else 5)
        return sum(rows) / len(rows)

    assert told["questions"] == 5
    assert means(told) == pytest.approx({x: mean("split != 'heldout'", x) for x in (4, 1.5, 2.5)})
    assert (told["heldout"]["x"], told["heldout"]["questions"]) == (1.5, 3)
    assert told["heldout"]["recall"] == pytest.approx(mean("split = 'heldout'", 1.5))
    assert not any("held out" in line for line in result.warnings)
    help_centre.run("UPDATE question SET split = 'heldout'")
    with pytest.raises(DataError, match="is left to choose by: all 8 are held out"):
        swept(help_centre)


def test_candidates_that_can_be_told_apart(help_centre: Database) -> None:
    told = swept(help_centre, ALL, ("bad", "good", "none")).told
    assert told["chosen"] == {"x": "good", "mean": 1, "tied": ["good"]}
    assert told["told_apart"] == ["bad", "none"]
    assert told["verdict"] == "x = good has the highest recall@3, 1, on 8 questions; it is better than every other"
    # all signs of eight questions, 2 of 256, and two comparisons
    assert [one["p"] for one in told["comparisons"]] == pytest.approx([2 * 2 / 256] * 2)
    assert {row["x"]: row["empty"] for row in told["values"]} == {"bad": 8, "good": 0, "none": 8}
    assert all(0 <= row["median"] <= row["p95"] < 10_000 for row in told["values"])
    # some can, some can't
    some = "IF $x = 3 { [] } ELSE IF $x = 2 AND $question.id = question:signin { [] } ELSE { $question.relevant }"
    assert swept(help_centre, some, (3, 2, 1)).told["verdict"] == (
        "x = 1 has the highest recall@3, 1, on 8 questions; it is better than x = 3, and cannot be told apart from x = 2"
    )
    # one value is a figure, and no choice
    alone = swept(help_centre, ALL, ("bad",))
    assert alone.told["comparisons"] == []
    assert alone.told["verdict"] == "x = bad has the highest recall@3, 0, on 8 questions"
    assert any(line.startswith("no label of any question was found") for line in alone.warnings)


def test_rows_with_scores_and_chunks_that_lead_to_documents(help_centre: Database) -> None:
    rows = "(SELECT VALUE { id: id, score: $x } FROM $question.relevant)"
    assert means(swept(help_centre, rows, (1, 2)).told) == {1: 1, 2: 1}
    led = swept(help_centre, "$question.relevant.map(|$id| { id: $question.id, of: $id, x: $x })", (1, 2), document="$row.of")
    assert means(led.told) == {1: 1, 2: 1}


@pytest.mark.parametrize(
    ("expression", "kind", "complaint"),
    [
        ("fn::nothing($x)", SchemaError, "the function fn::nothing does not exist"),
        ("fn::retrieve_bm25($question.text, $x) +", UsageError, "the expression can't be read"),
        ("fn::retrieve_bm25($question.text, $k)", UsageError, r"no \$x"),
        ("(CREATE article SET title = $x)", UsageError, r"writes \(CREATE\)"),
        ("$x", DataError, "fails for every value"),
        ("[THROW 'broken']; $x", SurrecallError, "broken|can't be read"),
    ],
)
def test_an_expression_that_is_no_good(
    help_centre: Database, expression: str, kind: type[SurrecallError], complaint: str
) -> None:
    with pytest.raises(kind, match=complaint):
        swept(help_centre, expression, (1, 2))
    assert left_behind(help_centre) == ([], 0)


def test_a_value_that_fails_is_named_and_the_others_stand(help_centre: Database) -> None:
    result = swept(help_centre, "IF $x = 2 AND $question.id = question:signin { 'none' } ELSE { $question.relevant }", (1, 2, 3))
    (failure,) = result.failed
    assert (failure.x, failure.question) == (2, RecordID("question", "signin"))
    assert "retriever of the sweep gave string, not a list" in failure.message
    assert means(result.told) == {1: 1, 3: 1}


def test_options_that_are_wrong(help_centre: Database) -> None:
    for more, kind, complaint in (
        ({"metric": "recal"}, UsageError, "no metric named recal"),
        ({"question_set": "other"}, DataError, "no question in the golden set other"),
        ({"k": 0}, UsageError, "k must be"),
        ({"xs": ()}, UsageError, "sweep takes numbers or texts"),
    ):
        with pytest.raises(kind, match=complaint):
            swept(help_centre, **more)
    help_centre.run("REMOVE INDEX article_embedding ON article")
    with pytest.raises(SchemaError, match="index article_embedding on article is missing"):
        swept(help_centre)


def test_ctrl_c_leaves_nothing(help_centre: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Database.value
    calls = iter(range(100))

    def cut(self: Database, statements: str, **variables: Any) -> Any:
        if "sweep_part" in statements and next(calls) == 6:
            raise KeyboardInterrupt
        return honest(self, statements, **variables)

    monkeypatch.setattr(Database, "value", cut)
    with pytest.raises(KeyboardInterrupt):
        swept(help_centre)
    assert next(calls) == 7
    monkeypatch.undo()
    assert left_behind(help_centre) == ([], 0)


def test_values_of_the_command_line() -> None:
    assert values(["0,1.5", "-2,1e3"]) == [0, 1.5, -2, 1000.0]
    assert [type(value) for value in values(["1", "1.5", "2.0"])] == [int, float, float]
    assert values(["1,or"]) == ["1", "or"]
    assert values(['["a,b", 1]', "2"]) == ["a,b", 1, 2]
    for wrong in ("", "1,,2", "[1", "[null]", "[true]", "1e30", "[1e400]"):
        with pytest.raises(UsageError):
            values([wrong])


def test_the_command(seeded: Run) -> None:
    done = seeded("sweep", FLOORED, "--x", "0,1.5,2.5,4", "-k", "3")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["0", "0.833"] in [line[:2] for line in lines]
    assert ["1.5", "1.000"] in [line[:2] for line in lines if line[-1:] == ["yes"]]
    assert "no other value can be told apart from it" in done.stdout
    assert "warning: 8 questions: read these by hand" in done.stderr
    told = json.loads(seeded("sweep", FLOORED, "--x", "0,4", "-m", "ndcg", "--json").stdout)
    assert (told["told"]["metric"], told["told"]["k"], told["failed"]) == ("ndcg", 5, [])
    failing = "IF $x = 2 { 'none' } ELSE { $question.relevant }"
    done = seeded("sweep", failing, "--x", "1,2", code=4)
    assert "x = 1 has the highest" in done.stdout
    assert "failed, and has no mean: x = 2, question:" in done.stderr
    seeded("sweep", "fn::nothing($x)", "--x", "1", code=3)
    seeded("sweep", "[]", "--x", "1", code=2)
    assert "no run yet" in seeded("history").stdout
    assert seeded("check").stdout == "all is well\n"


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("fn::retrieve_bm25($question.text, $k); THROW <string> $x", "more than one expression"),
        ("/* $x */ fn::retrieve_bm25($question.text, $k)", "has no \\$x"),
        ("IF '$x' != 'a' { fn::retrieve_bm25($question.text, $k) }", "has no \\$x"),
        ("{ DELETE/**/article:x; fn::retrieve_bm25($question.text, $x) }", "writes \\(DELETE\\)"),
    ],
)
def test_what_is_no_expression_over_the_parameter_is_refused(help_centre: Database, expression: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        swept(help_centre, expression)
    assert left_behind(help_centre) == ([], 0)
