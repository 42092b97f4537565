"""Judgements of a model that a person repeats: what is drawn, how far they agree, and the alarm until it is mended."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from surrecall import Database, DataError, Options, Settings, SurrecallError, UsageError, _audit, _resolution, evaluate
from test_cli import Run, run, seeded, surrecall, target  # noqa: F401  fixtures

_DOCUMENTS = 60
WORDS = ("no", "part", "yes")


@pytest.fixture
def judged(schema: Database) -> Database:
    """A question, and what a model said of 60 documents: every third yes, in part, no."""
    schema.run(
        """
        FOR $n IN array::range(0, 61) { CREATE type::record('article', $n) SET content = 'Document number ' + <string> $n };
        CREATE question:q SET text = 'Which one?', relevant = [article:60];
        """
    )
    said(schema, {number: WORDS[number % 3] for number in range(_DOCUMENTS)})
    return schema


def said(database: Database, verdicts: dict[int, str], prompt: str = "1") -> None:
    """What the model said of some documents."""
    question = RecordID("question", "q")
    rows = [
        {"question": question, "document": RecordID("article", number), "verdict": verdict, "model": "m-1", "prompt": prompt}
        for number, verdict in verdicts.items()
    ]
    database.run("FOR $said IN $rows { fn::model_verdict($said) }", rows=rows)


def repeat(database: Database, todo: list[dict[str, Any]], differ: int = 0) -> None:
    """A person's verdicts: the model's, but for the first so many: no where it said yes or part, yes where it said no."""
    rows = []
    for place, row in enumerate(todo):
        grade = row["document"].id % 3
        rows.append([row["judgement"], ("no" if grade else "yes") if place < differ else WORDS[grade]])
    database.run("FOR $one IN $rows { fn::audit_answer($one[0], $one[1], 'ada') }", rows=rows)


def label(database: Database, number: int) -> Any:
    labels = database.value("RETURN fn::labels_of(question:q)")
    return next((one["grade"] for one in labels if one["document"].id == number), None)


def test_what_is_drawn_is_even_stable_and_does_not_tell_the_verdict(judged: Database) -> None:
    drawn = _audit.draw(judged, "default", 30, anew=False)
    assert len(drawn["todo"]) == 30
    grades = [row["document"].id % 3 for row in drawn["todo"]]
    assert [grades.count(grade) for grade in range(3)] == [10, 10, 10]
    assert grades != sorted(grades)
    assert set(drawn["todo"][0]) == {"judgement", "question", "document", "text", "passage"}
    assert drawn["todo"][0]["passage"] == f"Document number {drawn['todo'][0]['document'].id}"
    # the same again until they are answered, then others
    repeat(judged, drawn["todo"][:10])
    assert _audit.draw(judged, "default", 30, anew=False) == {"audit": drawn["audit"], "todo": drawn["todo"][10:]}
    repeat(judged, drawn["todo"][10:])
    other = _audit.draw(judged, "default", 30, anew=False)
    assert not {row["document"].id for row in other["todo"]} & {row["document"].id for row in drawn["todo"]}
    with pytest.raises(SurrecallError, match="what was drawn stays drawn"):
        judged.run("UPDATE judgement_audit SET drawn = []")


def test_agreement_and_kappa(judged: Database) -> None:
    drawn = _audit.draw(judged, "default", 30, anew=False)
    (figures,) = _audit.state(judged, "default")["audits"]
    assert (figures["judged"], figures["agreement"], figures["kappa"], figures["complete"]) == (0, None, None, False)
    repeat(judged, drawn["todo"], differ=3)
    (figures,) = _audit.state(judged, "default")["audits"]
    assert (figures["drawn"], figures["judged"], figures["differ"], figures["complete"]) == (30, 30, 3, True)
    assert figures["agreement"] == pytest.approx(0.9)
    pairs = [(row["document"].id % 3, 0 if row["document"].id % 3 else 2) for row in drawn["todo"][:3]]
    pairs += [(row["document"].id % 3,) * 2 for row in drawn["todo"][3:]]
    chance = sum(sum(a == g for a, _ in pairs) * sum(b == g for _, b in pairs) for g in range(3)) / 900
    assert figures["kappa"] == pytest.approx((0.9 - chance) / (1 - chance))
    assert (figures["judges"], figures["who"]) == (["m-1"], ["ada"])
    # a tenth exactly is no alarm
    assert figures["alarm"] is False
    assert _audit.state(judged, "default")["alarm"] is None


def test_an_audit_measures_and_makes_no_label(judged: Database) -> None:
    before = judged.value("RETURN fn::labels_of(question:q)")
    repeat(judged, _audit.draw(judged, "default", 30, anew=False)["todo"], differ=30)
    assert judged.value("RETURN fn::labels_of(question:q)") == before


def test_the_alarm_comes_before_the_end_and_goes_when_it_is_mended(judged: Database) -> None:
    drawn = _audit.draw(judged, "default", 30, anew=False)
    repeat(judged, drawn["todo"][:4], differ=3)
    assert _audit.state(judged, "default")["alarm"] is None
    repeat(judged, drawn["todo"][4:5], differ=1)
    # 4 of 30, whatever the others will be
    alarm = _audit.state(judged, "default")["alarm"]
    assert alarm.startswith("alarm: ada judged 4 of 30 audited judgements of m-1 otherwise, so the labels that a model added")
    # another audit that is not finished does not end it
    other = _audit.draw(judged, "default", 20, anew=True)
    repeat(judged, other["todo"][:19])
    assert _audit.state(judged, "default")["alarm"] == alarm
    repeat(judged, other["todo"][19:])
    assert _audit.state(judged, "default")["alarm"] is None
    # and one that finds as much again rings it again
    third = _audit.draw(judged, "default", 10, anew=True)
    repeat(judged, third["todo"], differ=2)
    assert "2 of 10 audited judgements" in _audit.state(judged, "default")["alarm"]


def test_accepted_verdicts_are_the_labels(judged: Database) -> None:
    # everything is audited, so nothing is left for another audit
    drawn = _audit.draw(judged, "default", 60, anew=False)
    repeat(judged, drawn["todo"], differ=12)
    state = _audit.state(judged, "default")
    assert state["alarm"]
    assert state["unaudited"] == 0
    differ = drawn["todo"][:12]
    wanted = {row["document"].id: (1 if row["document"].id % 3 == 0 else 0) for row in differ}
    assert {row["document"].id for row in state["open"]} <= set(wanted)
    done = _audit.accept(judged, "default")
    assert done.left == []
    assert done.changed == len(state["open"]) > 0
    assert {number: label(judged, number) for number in wanted} == wanted
    for row in drawn["todo"][12:]:
        grade = row["document"].id % 3
        assert label(judged, row["document"].id) == {0: 0, 1: None, 2: 1}[grade]
    after = _audit.state(judged, "default")
    assert after["open"] == []
    assert after["alarm"] is None
    assert _audit.accept(judged, "default").changed == 0
    changes = judged.value("SELECT * FROM label_change WHERE who = 'ada'")
    assert {row["why"] for row in changes} == {"an audit of the judgement of m-1"}


def test_after_accepting_the_alarm_names_what_is_left_to_do(judged: Database) -> None:
    drawn = _audit.draw(judged, "default", 30, anew=False)
    repeat(judged, drawn["todo"], differ=8)
    assert "surrecall audit --accept, then judge again or audit anew" in _audit.state(judged, "default")["alarm"]
    assert _audit.accept(judged, "default").changed > 0
    alarm = _audit.state(judged, "default")["alarm"]
    assert alarm.endswith("are not to be trusted; judge again or audit anew (surrecall audit --new)")


def test_a_yes_that_is_a_part_to_the_person_loses_its_label(judged: Database) -> None:
    drawn = _audit.draw(judged, "default", 60, anew=False)
    row = next(one for one in drawn["todo"] if one["document"].id % 3 == 2)
    assert label(judged, row["document"].id) == 1
    _audit.answer(judged, row["judgement"], "part", "ada")
    assert _audit.accept(judged, "default").changed == 1
    assert label(judged, row["document"].id) is None
    # a newer verdict of the same person counts
    _audit.answer(judged, row["judgement"], "yes", "ada")
    assert _audit.accept(judged, "default").changed == 1
    assert label(judged, row["document"].id) == 1


def test_the_last_label_of_a_question_stays_and_is_told(judged: Database) -> None:
    row = next(one for one in _audit.draw(judged, "default", 60, anew=False)["todo"] if one["document"].id % 3 == 2)
    judged.run("UPDATE question:q SET judged = [{ document: $one, grade: 1 }]", one=row["document"])
    _audit.answer(judged, row["judgement"], "no", "ada")
    done = _audit.accept(judged, "default")
    assert done.changed == 0
    assert "the last relevant document" in done.left[0]["why"]


def test_a_newer_judgement_is_what_is_audited(judged: Database) -> None:
    said(judged, dict.fromkeys(range(_DOCUMENTS), "no"), prompt="2")
    pool = judged.value("RETURN fn::audit_pool('default')")
    assert len(pool) == _DOCUMENTS
    assert {row["grade"] for row in pool} == {0}
    # what is drawn, and gone since, is not waited for
    drawn = _audit.draw(judged, "default", 5, anew=False)
    judged.run(
        "UPDATE question:q SET judged = [{ document: article:60, grade: 1 }]; DELETE $gone", gone=drawn["todo"][0]["document"]
    )
    repeat_no = [row["judgement"] for row in drawn["todo"][1:]]
    for judgement in repeat_no:
        _audit.answer(judged, judgement, "no", "ada")
    (figures,) = _audit.state(judged, "default")["audits"]
    assert (figures["drawn"], figures["complete"], figures["kappa"]) == (4, True, None)


def test_what_is_no_part_of_an_audit_is_refused(judged: Database) -> None:
    with pytest.raises(DataError, match="nothing to audit"):
        _audit.draw(judged, "other", 30, anew=False)
    drawn = _audit.draw(judged, "default", 1, anew=False)["todo"][0]["judgement"]
    for judgement, verdict, error in (
        (RecordID("judgement", "none"), "yes", DataError),
        (judged.value("SELECT VALUE id FROM judgement WHERE id != $drawn LIMIT 1", drawn=drawn)[0], "yes", DataError),
        (drawn, "perhaps", UsageError),
    ):
        with pytest.raises(error):
            _audit.answer(judged, judgement, verdict, "ada")


def test_every_view_of_the_figures_says_the_alarm(help_centre: Database) -> None:
    options = Options([3], retrievers=["bm25", "vector"])
    evaluation = evaluate(help_centre, options)
    pair = {"question": RecordID("question", "money_back"), "document": RecordID("article", "gift_card")}
    help_centre.value("RETURN fn::model_verdict($said)", said=pair | {"verdict": "YES", "model": "m-1", "prompt": "1"})
    assert any("no audit of them" in line for line in evaluate(help_centre, options).warnings)
    (row,) = _audit.draw(help_centre, "default", 30, anew=False)["todo"]
    _audit.answer(help_centre, row["judgement"], "no", "ada")
    alarm = _audit.state(help_centre, "default")["alarm"]
    assert alarm
    newest = evaluate(help_centre, options)
    runs = help_centre.value("SELECT VALUE id FROM eval_run ORDER BY at, id")
    seen = {
        "evaluate": newest.warnings,
        "history": help_centre.value("RETURN fn::history_steps($runs).warnings", runs=runs),
        "trend": help_centre.value("RETURN fn::trend({ k: 3 }).warnings"),
        "compare": help_centre.value(
            "RETURN fn::compare({ sides: ['bm25', 'vector'], k: 3, resamples: 100 }).comparisons[0].warnings"
        ),
        "blame": help_centre.value("RETURN fn::blame($a, $b, {}).sentences", a=evaluation.row["id"], b=newest.row["id"]),
        "curve, gate, misses, whatif, ann": _resolution.alarms(help_centre, ["default", None]),
    }
    assert {name for name, lines in seen.items() if alarm not in lines} == set()
    assert _resolution.alarms(help_centre, ["other"]) == []


def test_the_sheet(judged: Database, tmp_path: Path) -> None:
    path = tmp_path / "audit.csv"
    _audit.write(path, _audit.draw(judged, "default", 30, anew=False)["todo"])
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert {row["verdict"] for row in rows} == {""}
    assert _audit.read(judged, path) == []
    with pytest.raises(UsageError, match="can't be written"):
        _audit.write(path, [])
    # as a spreadsheet may leave it
    rows[0]["verdict"], rows[1]["verdict"], rows[2]["verdict"] = "Y", " part ", "NO"
    fill(path, rows)
    # a second time changes nothing
    for judgement, verdict in _audit.read(judged, path) * 2:
        _audit.answer(judged, judgement, verdict, "ada")
    assert judged.value("SELECT VALUE grade FROM judgement WHERE source = 'person' ORDER BY at, id") == [2, 1, 0]
    rows[3]["verdict"], rows[4] = "perhaps", rows[0]
    fill(path, rows)
    with pytest.raises(DataError, match="2 faults, nothing was stored") as caught:
        _audit.read(judged, path)
    assert ":5: no verdict of yes, part or no" in caught.value.message
    assert ":6: the judgement stands in line 2 too" in caught.value.message
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="no columns judgement and verdict"):
        _audit.read(judged, path)


def fill(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_the_command(
    seeded: Run,  # noqa: F811
    target: Settings,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert seeded("audit").stdout == "no audit of the golden set default yet\n"
    with Database(target) as database:
        question = RecordID("question", "money_back")
        for key, verdict in (("gift_card", "YES"), ("enable_2fa", "PART"), ("track_order", "NO")):
            pair = {"question": question, "document": RecordID("article", key), "model": "m-1", "prompt": "1"}
            database.value("RETURN fn::model_verdict($said)", said=pair | {"verdict": verdict})
    assert "3 judgements of a model to audit" in seeded("audit").stdout
    monkeypatch.setattr("surrecall._cli.audit._is_terminal", lambda: True)
    env = {"SURREAL_URL": target.url, "SURREAL_NS": target.namespace, "SURREAL_DB": target.database}
    env |= {"SURREAL_USER": target.user or "", "SURREAL_PASSWORD": target.password or ""} if target.user else {}
    # what is no key is asked again, a skipped one stays
    shown = surrecall("audit", "--who", "ada", cwd=tmp_path, env=env, answers="x\ny\ns\nq\n")
    assert shown.returncode == 0, shown.stderr
    assert "1 of 3" in shown.stdout
    assert "question: how do I get my money back" in shown.stdout
    assert not any(word in shown.stdout.split("does it answer?")[1] for word in ("YES", "PART", "NO"))
    shown = surrecall("audit", "--who", "ada", cwd=tmp_path, env=env, answers="n\nn\n")
    assert "2 of 2" in shown.stdout
    monkeypatch.undo()
    state = json.loads(seeded("audit", "--json").stdout)
    (figures,) = state["audits"]
    assert (figures["judged"], figures["complete"], figures["who"]) == (3, True, ["ada"])
    table = seeded("audit")
    assert "kappa" in table.stdout
    assert ("ALARM" in table.stdout) == bool(state["alarm"]) == ("alarm: ada judged" in table.stderr)
    done = seeded("audit", "--accept")
    assert f"{len(state['open'])} label" in done.stdout
    assert json.loads(seeded("audit", "--json").stdout)["open"] == []
    sheet = str(tmp_path / "sheet.csv")
    assert "nothing to audit" in seeded("audit", "--out", sheet, code=4).stderr
    assert "three steps" in seeded("audit", "--out", sheet, "--accept", code=2).stderr
    assert "can't be read" in seeded("audit", "--from", sheet, code=2).stderr
