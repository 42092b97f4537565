"""Markdown and JUnit XML of gate and compare: what they say, and that no text is anything but text there."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from surrecall import Database, Options, _ci, _comparison, _gate, _junit, _markdown, evaluate
from surrecall._errors import UsageError

_HOSTILE = "a | b `c` <script>alert(1)</script> ![x](http://e.com) @octocat #12 \x1b[31m\x00 ]]> & \u2028 $e$"


def test_a_code_span_is_one_cell_of_text() -> None:
    assert _markdown.code("plain") == "`plain`"
    assert _markdown.code("two\nlines\tof  it") == "`two lines of it`"
    assert _markdown.code("a`b``c") == "```a`b``c```"
    assert _markdown.code("`") == "`` ` ``"
    assert _markdown.code("a|b") == "`a\\|b`"
    assert _markdown.code(" \n") == ""
    assert "\x1b" not in _markdown.code(_HOSTILE)


def test_a_sentence_has_no_markup_left() -> None:
    told = _markdown.plain(_HOSTILE)
    assert "\\<script\\>" in told
    assert "\\!\\[x\\]\\(http\\://e.com\\)" in told
    # neither a person nor an issue is called
    assert "@octocat" not in told
    assert "\\#12" in told
    assert "recall@3" in _markdown.plain("recall@3 of hybrid")


def test_junit_is_xml_whatever_stands_in_it(tmp_path: Path) -> None:
    cases = [_junit.Case("g", _HOSTILE, _HOSTILE, _HOSTILE), _junit.Case("g", "good"), _junit.Case("g", "\ufffe\x0b")]
    _junit.write(tmp_path / "out.xml", "suite", cases)
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    names = [str(case.get("name")) for case in suite]
    assert names[1] == "good"
    assert "<script>alert(1)</script>" in names[0]
    (failure,) = suite.iter("failure")
    assert "]]>" in str(failure.text)
    with pytest.raises(UsageError, match="can't be written"):
        _junit.write(tmp_path / "nowhere" / "out.xml", "suite", cases)


@pytest.fixture
def broken(help_centre: Database) -> Database:
    """The help centre with two floors, a baseline, and articles that take the place of the answer to a late parcel."""
    help_centre.run(
        """
        CREATE eval_floor:value CONTENT { retriever: 'hybrid', metric: 'recall', k: 3, minimum: 0.8, file: true };
        CREATE eval_floor:falls CONTENT { retriever: 'hybrid', metric: 'recall', k: 3, drop: 0.02, baseline: 'main', file: true };
        CREATE eval_floor:holds CONTENT { retriever: 'bm25', metric: 'hit', k: 5, minimum: 0.1, file: true };
        UPDATE question:late_parcel SET text = $text;
        """,
        text="my parcel hasn't arrived yet | <b>why</b>",
    )
    first = evaluate(help_centre, Options((1, 3, 5)))
    help_centre.run("RETURN fn::baseline_set('main', $evaluation, NONE)", evaluation=first.row["id"])
    help_centre.run(
        "FOR $n IN 1..4 { CREATE type::record('article', 'faq' + <string> $n) SET title = 'Late parcels', "
        "content = 'my parcel has not arrived yet', embedding = [0, 0, 1, 0] }"
    )
    return help_centre


def test_a_gate_says_which_questions_broke(broken: Database) -> None:
    told = _gate.judge(broken, _gate.measure(broken), questions=True)
    floors = {floor["floor"]: floor for floor in told["floors"]}
    assert {name: floor["holds"] for name, floor in floors.items()} == {"falls": False, "holds": True, "value": False}
    assert "broke" not in floors["holds"]
    falls = floors["falls"]["broke"]
    assert (str(falls[0]["question"].id), falls[0]["was"], falls[0]["score"]) == ("late_parcel", 1.0, 0.0)
    # the fall of the floor is the fall of these questions: the others gained nothing
    fallen = sum(row["was"] - row["score"] for row in falls) / floors["falls"]["questions"]
    assert fallen == pytest.approx(floors["falls"]["base"] - floors["falls"]["value"])
    assert [label["rank"] for label in falls[0]["labels"]] == [4]
    below = floors["value"]["broke"]
    assert all(row.get("was") is None and row["score"] < 1 for row in below)
    scores = [row["score"] for row in below]
    assert scores == sorted(scores)
    lost = sum(1 - score for score in scores) / floors["value"]["questions"]
    assert 1 - lost == pytest.approx(floors["value"]["value"])

    cases = _ci.gate_cases(told)
    assert len(cases) == 3 + len(falls) + len(below)
    assert [case.name for case in cases if case.failure is None] == ["holds"]
    shown = _ci.gate_markdown(told, [{"floor": "a|b", "value": 0.5, "holds": "NO"}], ["careful"])
    assert shown.startswith("### ❌ surrecall gate: 2 of 3 floors broken\n")
    assert "| `my parcel hasn't arrived yet \\| <b>why</b>` | 1.000 | 0.000 | `article:track_order at 4` |" in shown
    assert "| `a\\|b` | 0.500 | `NO` |" in shown
    assert shown.endswith("> ⚠️ careful\n")


def test_a_comparison_for_a_pull_request(broken: Database) -> None:
    evaluate(broken, Options((1, 3, 5)))
    told = _comparison.compare(broken, _comparison.Comparison(sides=["hybrid", "bm25"], metric="recall", k=3))
    shown = _ci.comparison_markdown(told, [])
    (one,) = told["comparisons"]
    assert f"- {_markdown.plain(one['verdict'])}" in shown
    assert f"broke: {len(one['broke'])} question" in shown
    cases = _ci.comparison_cases(told)
    assert len(cases) == 1 + len(one["broke"])
    # not told apart is no failure; each question that broke is one
    assert [case.failure is None for case in cases] == [True] + [False] * len(one["broke"])
