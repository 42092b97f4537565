"""seed/queries.surql: the walk as one file, and step by step."""

from __future__ import annotations

from conftest import ROOT
from surrecall import Database, _files, _walk


def test_the_steps_are_numbered_and_whole() -> None:
    steps = _walk.steps()
    assert [step.number for step in steps] == list(range(1, 11))
    assert all(step.title and step.explanation and step.statements.endswith(";") for step in steps)
    text = _files.seed("queries").text
    assert all(line in text for step in steps for line in step.statements.splitlines())


def test_the_whole_file_run_twice_leaves_two_sets_of_runs(help_centre: Database) -> None:
    text = _files.seed("queries").text
    first = help_centre.run(text)
    rows = help_centre.value("SELECT retriever, k, recall, seq FROM eval_run ORDER BY seq")
    assert len(rows) == 12
    second = help_centre.run(text)
    again = help_centre.value("SELECT retriever, k, recall, seq FROM eval_run ORDER BY seq")
    assert again[:12] == rows
    assert [{**row, "seq": row["seq"] + 12} for row in rows] == again[12:]
    # all but the two reads of the history give the same
    assert first[:-2][:8] == second[:-2][:8]
    assert help_centre.value("RETURN fn::check_history()") == []


def test_step_by_step_gives_what_the_file_gives(help_centre: Database) -> None:
    stepped = {done.step.title: done.results for done in _walk.run(help_centre)}
    assert len(stepped["The golden set"][0]) == 8
    assert stepped["The golden set"][0][0] == {
        "text": "429 too many requests",
        "relevant": ["API rate limits and 429 errors"],
    }
    (floors,) = stepped["The fix: a floor under the lexical scores"]
    assert [row["recall"] for row in floors] == [0.833, 1.0, 1.0, 1.0]
    ((*hits,),) = stepped['Why "how do I get my money back" broke']
    assert hits == [
        {"title": "Return an item", "score": 2.46},
        {"title": "Track your order", "score": 1.27},
        {"title": "API rate limits and 429 errors", "score": 1.15},
    ]
    (mrr,) = stepped["How far down is the first hit"]
    assert {name: round(value, 3) for name, value in mrr.items()} == {"bm25": 0.646, "vector": 0.875, "hybrid": 0.76}


def test_the_seed_is_plain_create_statements_of_the_demo_data() -> None:
    for name, count in (("articles", 10), ("questions", 8)):
        text = (ROOT / "seed" / f"{name}.surql").read_text(encoding="utf-8")
        assert text.count("\nCREATE ") == count
