"""The report: what stands on it is what the database says, any text is text, and a browser finds nothing wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from surrealdb import RecordID

import pictures
from browser import accessibility_faults, chromium, complaints, look, requests
from conftest import ROOT
from surrecall import Database, Options, _comparison, _gate, _report, evaluate
from surrecall._errors import UsageError
from test_cli import Run, run, seeded, target

__all__ = ["run", "seeded", "target"]

_HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=document.title='owned'> **b** [l](javascript:x) \x1b[31m\x07 ﷽"
)


@pytest.fixture
def evaluated(help_centre: Database) -> Database:
    """Two evaluations: articles that take the place of an answer came between them, and one of everything is named in HTML."""
    help_centre.run(
        """
        UPDATE question:signin SET kind = 'conceptual';
        UPDATE question:rate_limit SET kind = 'lexical';
        UPDATE question:late_parcel SET text = text + $hostile, kind = $hostile;
        CREATE eval_floor:falls CONTENT { retriever: 'hybrid', metric: 'recall', k: 3, minimum: 0.8, file: true };
        """,
        hostile=_HOSTILE,
    )
    evaluate(help_centre, Options((1, 3, 5), note=_HOSTILE))
    help_centre.run(
        "FOR $n IN 1..4 { CREATE type::record('article', '<i>' + <string> $n) SET title = 'Late parcels' + $hostile, "
        "content = 'my parcel has not arrived yet', embedding = [0, 0, 1, 0] }",
        hostile=_HOSTILE,
    )
    evaluate(help_centre, Options((1, 3, 5)))
    return help_centre


def _text(page: str) -> str:
    """What a reader sees."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_what_it_says_is_what_the_database_says(evaluated: Database) -> None:
    facts = _report.gather(evaluated, _report.Asked(k=3))
    page = _report.page(facts)
    shown = _text(page)
    # every mean of the page is that of the history
    for row in facts.measures:
        run_of = next(run for run in facts.runs if (run["retriever"], run["k"]) == (row["retriever"], 3))
        assert row["mean"] == pytest.approx(run_of[row["metric"]], abs=1e-12)
        assert 0 <= row["low"] <= row["mean"] <= row["high"] <= 1
        cells = (row["retriever"], row["metric"], *(f"{row[name]:.3f}" for name in ("mean", "low", "high")))
        assert " ".join(cells) in shown
    gate = _gate.judge(evaluated, _gate.evaluations([facts.row["id"]]))
    assert f"Broken: {gate['sentence']}" in shown
    before, after = evaluated.value("SELECT VALUE id FROM evaluation ORDER BY started")
    sides = _comparison.Comparison(sides=[before, after], retriever="hybrid", metric="recall", k=3, by="kind")
    (compared,) = _comparison.compare(evaluated, sides)["comparisons"]
    assert facts.comparison is not None
    assert facts.comparison["verdict"] == compared["verdict"]
    assert compared["verdict"] in shown
    assert f"Worse: {len(compared['broke'])}" in shown
    # what was not the same stands beside the evaluation that saw it first
    assert [step["differs"] for step in facts.history] == [[], ["the corpus"]]
    assert [step["documents"] for step in facts.history] == [10, 13]
    assert facts.misses is not None
    assert "no label is stale" in shown
    assert f"left {facts.misses['summary']['missed']} of 12 labels out of its first 3" in shown
    # the worst question first, each with its rankings as they were stored
    assert str(facts.questions[0]["question"].id) == "late_parcel"
    stored = evaluated.value(
        "SELECT retriever, ranking FROM eval_answer WHERE evaluation = $evaluation AND question = question:late_parcel "
        "ORDER BY retriever",
        evaluation=after,
    )
    assert [(one["retriever"], [row["document"] for row in one["ranking"]]) for one in facts.questions[0]["retrievers"]] == [
        (row["retriever"], row["ranking"]) for row in stored
    ]
    assert len(facts.questions) == facts.all_questions == 8


def test_the_health_of_the_golden_set(evaluated: Database) -> None:
    evaluated.run("UPDATE article:track_order SET content = 'Something else.'")
    judgement = {"question": RecordID("question", "signin"), "document": RecordID("article", "gift_card"), "grade": 0}
    evaluated.run("fn::judge($judgement, true)", judgement={**judgement, "source": "person", "judge": "Ada"})
    evaluated.run("UPDATE question:signin SET split = 'heldout'")
    shown = _text(_report.page(_report.gather(evaluated, _report.Asked(k=3, why=False))))
    assert "1 labels are stale" in shown
    assert "1 judgements by a person" in shown
    assert "the held-out questions of the set default were never measured" in shown
    runs = evaluated.value("SELECT retriever, judged, seq FROM eval_run WHERE k = 3 ORDER BY seq DESC LIMIT 3")
    for run_of in runs:
        assert f"{run_of['retriever']}: {run_of['judged']:.3f} of what stood in its first 3 was labelled" in shown


def test_no_text_is_anything_but_text(evaluated: Database) -> None:
    page = _report.page(_report.gather(evaluated, _report.Asked(k=3)))
    assert "document.title=" in page
    assert not re.search(r"<script|<img|<i>\d|onerror=document[^&]*'owned'>", page)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", page)
    assert len(page.encode()) < _report.LARGEST_PAGE


def test_a_page_never_grows_beyond_its_limit(evaluated: Database) -> None:
    facts = _report.gather(evaluated, _report.Asked(k=3, why=False))
    assert facts.misses is None
    many = replace(facts, questions=facts.questions * 100, all_questions=len(facts.questions) * 100)
    page = _report.page(many)
    assert len(page.encode()) < _report.LARGEST_PAGE
    told = re.search(r"The (\d+) worst of 800 questions", _text(page))
    assert told
    assert page.count('<details class="question">') == int(told[1]) > 50


def test_what_there_is_not(help_centre: Database) -> None:
    evaluate(help_centre, Options((3,), ["bm25"]))
    with pytest.raises(UsageError, match="no retriever named nope"):
        _report.gather(help_centre, _report.Asked(retriever="nope"))
    with pytest.raises(UsageError, match="k is 9, and that evaluation asked for 3 documents"):
        _report.gather(help_centre, _report.Asked(k=9))
    with pytest.raises(UsageError, match="no metric named recal"):
        _report.gather(help_centre, _report.Asked(metric="recal"))
    facts = _report.gather(help_centre, _report.Asked())
    shown = _text(_report.page(facts))
    assert "No floor is set" in shown
    assert "there is no earlier evaluation of bm25 to compare with" in shown
    with pytest.raises(UsageError, match="no evaluation"):
        _report.gather(help_centre, _report.Asked(against=RecordID("evaluation", "nope")))


def test_a_browser_finds_nothing_wrong(evaluated: Database, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(_report.page(_report.gather(evaluated, _report.Asked(k=3))), encoding="utf-8")
    with chromium() as browser:
        for width, dark, print_it in ((360, True, False), (1280, False, False), (800, False, True)):
            look(browser, page.as_uri(), width, dark=dark, print_it=print_it)
            assert browser.title.startswith("surrecall: default")
            # nothing but the file itself is asked for, and nothing runs over the side
            assert {url for url in requests(browser) if not url.startswith("data:")} == {page.as_uri()}
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
            browser.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert accessibility_faults(browser) == []
            assert complaints(browser) == []
        look(browser, page.as_uri(), 1280)
        # a question unfolds by the keyboard alone
        browser.execute_script("document.querySelector('details.question summary').focus()")
        browser.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", "key": "Enter", "code": "Enter", "text": "\r"})
        browser.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", "key": "Enter", "code": "Enter"})
        assert browser.execute_script("return document.querySelector('details.question').open")
        drawn = browser.execute_script("return [...document.querySelectorAll('svg')].map(one => one.getAttribute('aria-label'))")
        assert len(drawn) == 6
        assert all(drawn)


def test_the_command(seeded: Run, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert "nothing to read" in seeded("report", "-o", str(out), code=4).stderr
    seeded("evaluate", "-k", "3", "--retriever", "bm25")
    assert re.search(r"wrote .*r\.html, \d+ kB, 8 of 8 questions unfold", seeded("report", "-o", str(out)).stdout)
    told = json.loads(seeded("report", "-o", str(out), "--json").stdout)
    assert told == {"file": str(out), "bytes": out.stat().st_size}
    assert "can't be written" in seeded("report", "-o", str(tmp_path / "no" / "r.html"), code=2).stderr


def test_the_pictures_of_the_readme_are_made_from_the_demo(tmp_path: Path) -> None:
    with chromium():
        pictures.make(tmp_path)
    shown = re.findall(r"!\[[^\]]+\]\((docs/pictures/[^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert sorted(Path(path).name for path in shown) == sorted(pictures.NAMES)
    for name in pictures.NAMES:
        for folder in (tmp_path, pictures.FOLDER):
            assert 10_000 < (folder / name).stat().st_size < 200_000
