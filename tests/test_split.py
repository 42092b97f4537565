"""Held out: assigned once and by kind, never chosen by, and each look at it counted."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from surrealdb import RecordID

from surrecall import Database, DataError, Options, SurrecallError, UsageError, _split, _sweep, evaluate
from test_cli import Run, run, seeded, target  # noqa: F401

_PLAN = "RETURN fn::split_plan($set, $rows, $share)"
_SWEEP = "fn::retrieve_hybrid_floor($question.text, $question.embedding, $k, $x)"


def _rows(**numbers: int) -> list[dict[str, Any]]:
    return [
        {"id": RecordID("question", f"{kind}{place}"), "text": f"{kind} number {place}", "kind": kind, "answerable": True}
        for kind, number in numbers.items()
        for place in range(number)
    ]


def _plan(database: Database, rows: list[dict[str, Any]], share: float, name: str = "default") -> dict[str, str]:
    return {str(row["id"].id): row["split"] for row in database.value(_PLAN, set=name, rows=rows, share=share)}


def _held(plan: dict[str, str]) -> Counter[str]:
    return Counter(key.rstrip("0123456789") for key, split in plan.items() if split == "heldout")


@pytest.mark.parametrize(
    ("numbers", "share", "held"),
    [
        ({"a": 10, "b": 20}, 0.3, {"a": 3, "b": 6}),
        # 3.3, 2.1 and 0.6 of 20, which is 6: the one left over goes to the largest remainder
        ({"a": 11, "b": 7, "c": 2}, 0.3, {"a": 3, "b": 2, "c": 1}),
        ({"a": 1, "b": 1, "c": 1, "d": 1}, 0.5, {"a": 1, "b": 1}),
        ({"a": 10}, 0.05, {"a": 1}),
    ],
)
def test_each_kind_has_its_share(schema: Database, numbers: dict[str, int], share: float, held: dict[str, int]) -> None:
    plan = _plan(schema, _rows(**numbers), share)
    assert len(plan) == sum(numbers.values())
    assert _held(plan) == held


def test_which_ones_does_not_hang_on_order_or_id_and_does_on_the_set(schema: Database) -> None:
    rows = _rows(a=40)
    plan = _plan(schema, rows, 0.3)
    assert _plan(schema, rows[::-1], 0.3) == plan
    renamed = [row | {"id": RecordID("question", f"z{place}")} for place, row in enumerate(rows)]
    assert list(_plan(schema, renamed, 0.3).values()).count("heldout") == 12
    by_text = {row["text"]: plan[str(row["id"].id)] for row in rows}
    again = _plan(schema, renamed, 0.3)
    assert {row["text"]: again[str(row["id"].id)] for row in renamed} == by_text
    assert _plan(schema, rows, 0.3, "another set") != plan


def test_what_is_assigned_stays_and_counts(schema: Database) -> None:
    rows = _rows(a=10)
    plan = _plan(schema, rows, 0.3)
    assigned = [row | {"split": plan[str(row["id"].id)]} for row in rows]
    assert _plan(schema, assigned, 0.3) == {}
    more = _plan(schema, assigned + _rows(a=20)[10:], 0.3)
    assert set(more) == {f"a{place}" for place in range(10, 20)}
    assert _held(more) == {"a": 3}
    # more is held out already than is asked for
    assert _held(_plan(schema, [row | {"split": "heldout"} for row in rows] + _rows(b=10), 0.3)) == {"b": 3}


def test_equal_texts_go_together(schema: Database) -> None:
    texts = ["How do I pay?", "how do I  pay", "HOW DO I PAY!", "what is it", "What is it?", "alone"]
    rows = [{"id": RecordID("question", str(place)), "text": text, "answerable": True} for place, text in enumerate(texts)]
    for share in (0.2, 0.5, 0.8):
        plan = _plan(schema, rows, share)
        assert len({plan["0"], plan["1"], plan["2"]}) == len({plan["3"], plan["4"]}) == 1
    # a twin that was chosen by is not held out, and one whose twin is held out is
    rows[1]["split"], rows[3]["split"] = "dev", "heldout"
    assert _plan(schema, rows, 0.8) | {"5": ""} == {"0": "dev", "2": "dev", "4": "heldout", "5": ""}


def test_unanswerable_questions_are_a_kind_of_their_own(schema: Database) -> None:
    rows = _rows(a=20)
    for row in rows[10:]:
        row["answerable"] = False
    plan = _plan(schema, rows, 0.3)
    assert [[plan[str(row["id"].id)] for row in part].count("heldout") for part in (rows[:10], rows[10:])] == [3, 3]


def test_a_set_is_split_once(help_centre: Database) -> None:
    hashed = help_centre.value("RETURN fn::golden_set_hash('default')")
    trial = _split.split(help_centre, "default", 0.25, dry_run=True)
    assert help_centre.value("SELECT VALUE id FROM question WHERE split != NONE") == []
    done = _split.split(help_centre, "default", 0.25)
    assert done.assigned == trial.assigned
    assert [(row["dev"], row["heldout"], row["neither"]) for row in done.counts] == [(6, 2, 0)]
    assert done.looks["sentence"] == "the held-out questions of the set default were never measured"
    before = help_centre.value("SELECT id, split FROM question ORDER BY id")
    # the share is that of the set from now on
    help_centre.run("FOR $i IN [1, 2, 3, 4] { CREATE question SET text = 'new ' + <string> $i, relevant = [article:gift_card] }")
    again = _split.split(help_centre, "default")
    assert (again.share, len(again.assigned)) == (0.25, 4)
    assert [(row["dev"], row["heldout"]) for row in again.counts] == [(9, 3)]
    assert [row for row in help_centre.value("SELECT id, split FROM question ORDER BY id") if row in before] == before
    assert help_centre.value("SELECT * FROM label_change") == []
    help_centre.run("DELETE question WHERE string::starts_with(text, 'new ')")
    assert help_centre.value("RETURN fn::golden_set_hash('default')") == hashed


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5])
def test_a_share_that_is_none(help_centre: Database, share: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        _split.split(help_centre, "default", share)
    with pytest.raises(DataError, match="no question in the golden set nothing"):
        _split.split(help_centre, "nothing")


def test_nothing_is_chosen_by_what_is_held_out(help_centre: Database) -> None:
    _split.split(help_centre, "default", 0.25)
    held = set(map(str, help_centre.value("SELECT VALUE id FROM question WHERE split = 'heldout'")))
    evaluation = evaluate(help_centre, Options([3])).row["id"]
    curve = help_centre.value("RETURN fn::curve($evaluation, 'hybrid')", evaluation=evaluation)
    assert (curve["heldout"], {row["questions"] for row in curve["rows"]}) == (2, {6})
    dev = help_centre.value("RETURN fn::slices($evaluation, 'hybrid', { by: 'split' })", evaluation=evaluation)
    (wanted,) = [row["recall"] for row in dev if row.get("class") == "dev"]
    assert curve["rows"][-1]["recall"] == pytest.approx(wanted)
    for asked in (
        help_centre.value("RETURN fn::ann_begin('default', 3).questions"),
        help_centre.value("RETURN fn::advise_sample('default', 100).questions.id"),
        help_centre.value("RETURN fn::sweep_begin({ values: [0] }).questions"),
    ):
        assert len(asked) == 6
        assert not held & set(map(str, asked))
    help_centre.run("UPDATE question SET split = 'heldout'")
    for statement in ("fn::ann_begin('default', 3)", "fn::sweep_begin({ values: [0] })"):
        with pytest.raises(SurrecallError, match="is left to choose by: all 8 are held out") as caught:
            help_centre.value(f"RETURN {statement}")
        assert caught.value.exit_code == 4


def test_each_look_is_counted_and_shown(help_centre: Database) -> None:
    evaluate(help_centre, Options([3]))
    _split.split(help_centre, "default", 0.25)
    assert help_centre.value("RETURN fn::heldout_looks('default').looks") == 0
    said = evaluate(help_centre, Options([3], retrievers=["bm25"])).warnings
    assert any("2 of its questions are held out, and in its figures" in line and "measured once, on 2" in line for line in said)
    swept = _sweep.sweep(help_centre, _sweep.Options(_SWEEP, [0, 1.5], 3))
    assert swept.told["heldout"]["questions"] == 2
    assert any("were measured 2 times since 2" in line and "1 of them by a sweep" in line for line in swept.warnings)
    help_centre.run("FOR $i IN array::range(0, 8) { CREATE heldout_look SET set = 'default', what = 'sweep', questions = 2 }")
    assert "they are no longer unseen" in help_centre.value("RETURN fn::heldout_looks('default').sentence")
    for statement in ("DELETE heldout_look", "UPDATE heldout_look SET questions = 1"):
        with pytest.raises(SurrecallError, match="happened, and stays"):
            help_centre.run(statement)


def test_the_command(seeded: Run) -> None:  # noqa: F811
    assert "would hold out 2 more, 6 more to choose by" in seeded("split", "--heldout", "0.25", "--dry-run").stdout
    assert "held out 2 more, 6 more to choose by; 0.250 of each kind in all" in seeded("split", "--heldout", "0.25").stdout
    done = json.loads(seeded("split", "--json").stdout)
    assert (done["share"], done["assigned"], done["counts"][0]["heldout"]) == (0.25, [], 2)
    seeded("evaluate", "-k", "3")
    assert "2 questions held out, in none of its figures" in seeded("curve").stderr
    assert "measured once" in seeded("split").stdout
    assert "between 0 and 1" in seeded("split", "--heldout", "1", code=2).stderr
    assert "no question in the golden set x" in seeded("split", "--set", "x", code=4).stderr
