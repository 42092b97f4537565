"""Floors, baselines and the gate: what holds, what breaks, and everything that measured nothing and must not pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from conftest import ROOT
from surrecall import Database, DataError, Options, SurrecallError, UsageError, _baseline, _gate, _render, evaluate
from surrecall._export.output import Output
from test_comparison import named, put, running, without_none
from test_evaluation import define_retriever

# floors that came in round the types
BROKEN = (
    "minimum: 'x'",
    "minimum: NaN",
    "k: 'x'",
    "k: -1",
    "metric: 'x'",
    "metric: NONE",
    "retriever: NONE",
    "by: 'x'",
    "drop: {}",
    "class: 7, by: 'kind', minimum: 0",
    "baseline: 7, drop: 0",
    "tolerance: NONE, pin: 0.5",
    "minimum: 0, tolerance: 'x'",
)


def floor(database: Database, name: str = "f", **entries: Any) -> None:
    """A floor as a row; its file has tests of its own."""
    row = {"retriever": "one", "k": 5} | entries
    database.run("DELETE type::record('eval_floor', $name)", name=name)
    database.run("CREATE type::record('eval_floor', $name) CONTENT $row", name=name, row=row)


def gate(database: Database, **options: Any) -> dict[str, Any]:
    """What fn::gate gives, the same on both executors."""
    told: dict[str, Any] = database.value("RETURN fn::gate($options)", options=options)
    below = database.value("RETURN (CREATE ONLY executor_probe SET v = fn::gate($options)).v", options=options)
    assert below == without_none(told)
    # one floor at a time, as the command does it, gives the same
    measured = None
    if "evaluations" in options or "unmeasured" in options:
        measured = _gate.Measured(options.get("evaluations", []), options.get("unmeasured", []))
    assert _gate.judge(database, measured, options.get("baseline")) == told
    return told


def only(told: Mapping[str, Any]) -> dict[str, Any]:
    (row,) = told["floors"]
    assert isinstance(row, dict)
    return row


def reasons(told: Mapping[str, Any]) -> list[str]:
    found: list[str] = only(told)["reasons"]
    assert not only(told)["holds"]
    assert not told["holds"]
    return found


def evaluated(database: Database, mean: float, number: int = 20, **row: Any) -> RecordID:
    """A complete evaluation of `number` questions, whose recall@5 by the retriever one is `mean`."""
    return put(database, {"one": named([1.0] * round(mean * number) + [0.0] * (number - round(mean * number)))}, **row)


def test_a_minimum_a_pin_and_a_drop(schema: Database) -> None:
    evaluated(schema, 0.8)
    now = evaluated(schema, 0.7)
    floor(schema, "minimum", minimum=0.7)
    floor(schema, "minimum high", minimum=0.75)
    floor(schema, "pin", pin=0.72)
    floor(schema, "pin high", pin=0.65, tolerance=0.04)
    floor(schema, "drop", drop=0.1)
    floor(schema, "drop less", drop=0.05)
    told = gate(schema, evaluations=[now])
    assert {row["floor"]: row["holds"] for row in told["floors"]} == {
        "minimum": True, "minimum high": False, "pin": True, "pin high": False, "drop": True, "drop less": False,
    }  # fmt: skip
    assert {row["floor"]: row["reasons"] for row in told["floors"] if not row["holds"]} == {
        "minimum high": ["0.7 is below the minimum of 0.75"],
        "pin high": ["0.7 is not 0.65 ± 0.04"],
        "drop less": ["0.7 is 0.1 below the baseline of 0.8, more than 0.05"],
    }
    assert told["sentence"] == "3 of 6 floors broken"
    assert told["floors"][0]["sentence"].startswith("recall@5 of one: ")


@pytest.mark.parametrize(
    ("before", "allowed", "now", "number"), [(0.8, 0.1, 0.7, 20), (0.2, 0.05, 0.15, 20), (0.8, 0.1, 0.75, 20), (0.5, 0, 0.5, 2)]
)
def test_a_drop_of_exactly_the_tolerance_passes(schema: Database, before: float, allowed: float, now: float, number: int) -> None:
    evaluated(schema, before, number)
    floor(schema, drop=allowed)
    assert only(gate(schema, evaluations=[evaluated(schema, now, number)]))["holds"]


def test_a_hair_below_the_tolerance_fails_and_says_so(schema: Database) -> None:
    evaluated(schema, 0.8, 200)
    floor(schema, drop=0.1)
    now = evaluated(schema, 0.695, 200)
    assert reasons(gate(schema, evaluations=[now])) == ["0.695 is 0.105 below the baseline of 0.8, more than 0.1"]


def test_the_order_of_the_questions_moves_no_gate(schema: Database) -> None:
    values = [0.25, 0.5, 0.75, 1.0, 0.0, 0.25, 0.75]
    one = put(schema, {"one": named(values)}, labels=4)
    other = put(schema, {"one": named(values)}, labels=4, backwards=True)
    floor(schema, drop=0, minimum=only_value(schema, one))
    assert gate(schema, evaluations=[other])["holds"]


def only_value(database: Database, evaluation: RecordID) -> float:
    value: float = database.value("RETURN fn::means($e, 'one', { k: 5, metrics: ['recall'] })[0].recall", e=evaluation)
    return value


def test_a_question_that_gets_nothing_back_stays_in_the_mean(schema: Database) -> None:
    now = put(schema, {"one": {"a": 1.0, "b": 1.0, "c": 0.0}}, labels=1)
    floor(schema, minimum=0.67)
    row = only(gate(schema, evaluations=[now]))
    assert (row["questions"], round(row["value"], 6)) == (3, 0.666667)
    assert row["reasons"] == ["0.667 is below the minimum of 0.67"]


def test_no_floor_at_all_fails(schema: Database) -> None:
    evaluated(schema, 1)
    told = gate(schema)
    assert (told["holds"], told["floors"], told["sentence"]) == (False, [], "the gate failed")
    assert told["faults"][0].startswith("no floor is set, so nothing is measured; surrecall gate --propose")


def test_no_evaluation_at_all_fails(schema: Database) -> None:
    floor(schema, minimum=0)
    assert reasons(gate(schema)) == ["no evaluation of the golden set default came to an end; surrecall evaluate"]


def test_a_missing_arm_fails(schema: Database) -> None:
    now = evaluated(schema, 1)
    floor(schema, retriever="hybrid", minimum=0)
    assert reasons(gate(schema, evaluations=[now])) == [f"is not in {_render.record_text(now)}, which asked one"]
    floor(schema, retriever="hybird", minimum=0)
    assert reasons(gate(schema, evaluations=[now]))[0].startswith(
        "no retriever is named hybird; there are: bm25, hybrid, vector; did you mean hybrid?"
    )


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"metric": "recal"}, "no metric is named recal; there are: "),
        ({"minimum": None}, "asks for nothing; give it minimum, pin or drop"),
        ({"k": 10}, "was not asked at k = 10 in evaluation:"),
        ({"by": "kind", "class": "lexical"}, "no question of kind lexical has a score; there are: (none)"),
        ({"set": "other"}, "no evaluation of the golden set other came to an end"),
    ],
)
def test_what_is_not_measured_fails(schema: Database, entries: dict[str, Any], reason: str) -> None:
    evaluated(schema, 1)
    floor(schema, **{"minimum": 0} | entries)
    assert reasons(gate(schema))[0].startswith(reason)


@pytest.mark.parametrize(
    "broken",
    ["minimum: 'x'", "minimum: NaN", "minimum: 7", "k: 'x', minimum: 0", "metric: NONE, minimum: 0", "by: 'mood', minimum: 0"],
)
def test_a_floor_that_was_imported_round_the_types_fails(schema: Database, broken: str) -> None:
    evaluated(schema, 1)
    schema.run(
        f"OPTION IMPORT; CREATE eval_floor:f CONTENT {{ retriever: 'one', metric: 'recall', k: 5, set: 'default', {broken} }}"
    )
    assert not gate(schema)["holds"]


def test_a_nan_in_the_history_fails(schema: Database) -> None:
    now = evaluated(schema, 1)
    schema.run(
        "OPTION IMPORT; CREATE eval_run CONTENT { retriever: 'one', k: 5, questions: 20, recall: NaN, evaluation: $now }",
        now=now,
    )
    for limits in ({"minimum": 0.5}, {"pin": 0.5}, {"minimum": 0}):
        schema.run("DELETE eval_floor")
        floor(schema, **limits)
        assert reasons(gate(schema)) == ["was not measured"]
        assert only(gate(schema))["value"] is None


def test_an_evaluation_that_is_not_whole_fails(schema: Database) -> None:
    floor(schema, minimum=0)
    running = evaluated(schema, 1, status="running")
    assert reasons(gate(schema, evaluations=[running]))[0].endswith("is unfinished; surrecall evaluate --resume finishes it")
    changed = evaluated(schema, 1, status="failed", changed=["the golden set"])
    assert reasons(gate(schema, evaluations=[changed]))[0].startswith("the golden set changed while evaluation:")
    failed = put(schema, {"one": {"a": 1.0, "b": None}, "two": {"a": 1.0, "b": 1.0}}, labels=1, status="failed")
    floor(schema, "second", retriever="two", minimum=0)
    told = gate(schema, evaluations=[failed])
    assert [row["reasons"] for row in told["floors"]] == [["failed on 1 question, first on question:b: broken"], []]
    assert told["faults"] == [
        f"{_render.record_text(failed)} failed: at least one answer is an error, or golden set or definitions changed meanwhile"
    ]
    # the other retriever's floor holds, the gate does not
    schema.run("DELETE eval_floor:f")
    told = gate(schema, evaluations=[failed])
    assert (only(told)["holds"], told["holds"]) == (True, False)


def test_an_evaluation_that_is_not_there(schema: Database) -> None:
    with pytest.raises(UsageError, match="no evaluation evaluation:nope"):
        schema.value("RETURN fn::gate({ evaluations: [evaluation:nope] })")
    with pytest.raises(UsageError, match="gate has no option basline"):
        schema.value("RETURN fn::gate({ basline: 'x' })")


def test_only_questions_without_an_answer(schema: Database) -> None:
    now = put(schema, {"one": {"a": 1.0, "b": 1.0}}, unanswerable=["a", "b"])
    floor(schema, minimum=0)
    assert reasons(gate(schema, evaluations=[now])) == ["no question has a score"]


def test_no_baseline_where_a_drop_wants_one(schema: Database) -> None:
    now = evaluated(schema, 1)
    floor(schema, drop=0.5)
    assert reasons(gate(schema, evaluations=[now])) == [
        "has no baseline to fall from: no complete evaluation before this one measured it; "
        "surrecall baseline set takes one, or surrecall gate --baseline names one"
    ]
    floor(schema, drop=0.5, baseline="main")
    assert reasons(gate(schema)) == [
        "has no baseline to fall from: no baseline is named main; surrecall baseline set main takes the newest evaluation"
    ]
    assert schema.value("SELECT * FROM eval_baseline") == []
    schema.run("CREATE eval_baseline SET name = 'mine', evaluation = $now", now=now)
    assert reasons(gate(schema, baseline="mne"))[0].endswith("no baseline is named mne; there are: mine; did you mean mine?")


def test_no_common_question(schema: Database) -> None:
    put(schema, {"one": {"a": 1.0}}, labels=1)
    now = put(schema, {"one": {"b": 1.0}}, labels=1)
    floor(schema, drop=1)
    assert reasons(gate(schema, evaluations=[now])) == ["has no question in common with the baseline last whose labels are equal"]


def test_a_question_that_is_added_breaks_nothing_and_one_that_is_gone_is_counted(schema: Database) -> None:
    put(schema, {"one": {"a": 1.0, "b": 1.0, "gone": 1.0}}, labels=1)
    now = put(schema, {"one": {"a": 1.0, "b": 1.0, "new": 0.0, "newer": 0.0}}, labels=1)
    floor(schema, drop=0)
    row = only(gate(schema, evaluations=[now]))
    assert row["holds"]
    assert (row["value"], row["common_value"], row["base"]) == (0.5, 1.0, 1.0)
    assert (row["common"], row["added"], row["gone"]) == (2, 2, 1)


def test_labels_that_changed_fail_and_are_named(schema: Database) -> None:
    put(schema, {"one": {"a": 1.0, "b": 1.0}}, labels=1)
    now = put(schema, {"one": {"a": 1.0, "b": 1.0}}, labels=1, relabelled=["b"])
    floor(schema, drop=1)
    assert reasons(gate(schema, evaluations=[now])) == [
        "the labels of question:b are not those of the baseline last; surrecall baseline set takes them as they are now"
    ]
    schema.run("RETURN fn::baseline_set('main', $now, NONE, 'relabelled b')", now=now)
    assert gate(schema, evaluations=[now], baseline="main")["holds"]


def test_a_drop_is_seen_in_a_class(schema: Database) -> None:
    def kinds(evaluation: RecordID) -> None:
        schema.run(
            "OPTION IMPORT; UPDATE eval_answer SET kind = IF record::id(question) < 'q003' { 'easy' } ELSE { 'hard' } "
            "WHERE evaluation = $e",
            e=evaluation,
        )

    before = put(schema, {"one": named([1, 1, 1, 1, 1])}, labels=1)
    now = put(schema, {"one": named([1, 1, 1, 1, 0])}, labels=1)
    kinds(before)
    kinds(now)
    floor(schema, "easy", by="kind", **{"class": "easy"}, drop=0.1, minimum=1)
    floor(schema, "hard", by="kind", **{"class": "hard"}, drop=0.1)
    floor(schema, "whole", drop=0.2)
    told = {row["floor"]: row for row in gate(schema, evaluations=[now])["floors"]}
    assert (told["easy"]["holds"], told["whole"]["holds"]) == (True, True)
    assert (told["easy"]["questions"], told["easy"]["common"], told["hard"]["common"]) == (3, 3, 2)
    assert told["hard"]["sentence"] == ("recall@5 of one for kind hard: 0.5 is 0.5 below the baseline of 1, more than 0.1")


def test_last_is_not_one_that_fell_itself(schema: Database) -> None:
    """A gate that was red is not green when it is run again."""
    floor(schema, drop=0.1)
    good = evaluated(schema, 0.9)
    fell = evaluated(schema, 0.5)
    alert(schema, fell)
    again = evaluated(schema, 0.5)
    row = only(gate(schema, evaluations=[again]))
    assert (row["holds"], row["baseline_evaluation"]) == (False, good)
    # accepted on purpose
    schema.run("RETURN fn::baseline_set('last', $fell, NONE, 'half of the corpus went')", fell=fell)
    row = only(gate(schema, evaluations=[again]))
    assert (row["holds"], row["baseline_evaluation"]) == (True, fell)


def alert(database: Database, evaluation: RecordID) -> list[dict[str, Any]]:
    """The alerts of an evaluation, written as when it is completed."""
    rows: list[dict[str, Any]] = database.value(
        "LET $alerts = fn::evaluation_alerts($e); FOR $alert IN $alerts { CREATE eval_alert CONTENT $alert };"
        "SELECT * FROM eval_alert WHERE evaluation = $e ORDER BY floor",
        e=evaluation,
    )
    return rows


def test_a_baseline_is_appended_to_and_only_complete_ones_serve(schema: Database) -> None:
    first, second = evaluated(schema, 0.9), evaluated(schema, 0.8)
    failed = evaluated(schema, 1, status="failed")
    assert _baseline.declare(schema, "main", first, None, None).get("before") is None
    said = _baseline.declare(schema, "main", None, None, "new chunks")
    assert (said["evaluation"], said["before"], said["note"]) == (second, first, "new chunks")
    with pytest.raises(DataError, match="no baseline is made of"):
        _baseline.declare(schema, "main", failed, None, None)
    for statement in (
        "CREATE eval_baseline SET name = 'main', evaluation = $failed",
        "UPDATE eval_baseline SET name = 'x'",
        "DELETE eval_baseline",
    ):
        with pytest.raises(SurrecallError):
            schema.run(statement, failed=failed)
    rows = _baseline.listed(schema)
    assert [(row["name"], row["evaluation"], row["current"]) for row in rows] == [("main", second, True), ("main", first, False)]
    floor(schema, drop=0, baseline="main")
    assert only(gate(schema, evaluations=[second]))["baseline_evaluation"] == second


def test_a_baseline_goes_through_a_file_into_an_empty_history(schema: Database, tmp_path: Path) -> None:
    before = put(schema, {"one": named([0.25, 0.5, 1, 0.75]), "two": named([1, 1, 1, 0])}, labels=4)
    with Output() as output:
        exported = _baseline.export(schema, output.lines(tmp_path / "b.json"), before, None)
    assert (exported.questions, len(exported.calls)) == (4, 2)
    metrics = schema.value("RETURN fn::metrics()")
    for metric in metrics:
        for k in (1, 5):
            floor(schema, f"{metric} {k}", metric=metric, k=k, drop=0, baseline="before")
            floor(schema, f"{metric} {k} two", retriever="two", metric=metric, k=k, drop=0, baseline="before")
    schema.run("CREATE eval_baseline SET name = 'before', evaluation = $before", before=before)
    now = put(schema, {"one": named([0.25, 0.25, 1, 1]), "two": named([1, 1, 1, 0])}, labels=4)
    here = gate(schema, evaluations=[now])
    file = _baseline.read(schema, tmp_path / "b.json")
    there = gate(schema, evaluations=[now], baseline=file)
    kept = ("floor", "holds", "base", "common_value", "common")
    # every metric of a file is that of the answers it came from
    assert [[row[key] for key in kept] for row in there["floors"]] == [[row[key] for key in kept] for row in here["floors"]]
    assert len(here["floors"]) == 4 * len(metrics)
    schema.run("DELETE eval_floor")
    floor(schema, drop=0, baseline="gone")
    schema.run("DELETE eval_answer WHERE evaluation = $before", before=before)
    assert only(gate(schema, evaluations=[now], baseline=file))["holds"]


def test_a_file_without_the_retriever_or_the_question_or_with_other_labels(schema: Database, tmp_path: Path) -> None:
    before = put(schema, {"one": {"a": 1.0, "b": 1.0}}, labels=1)
    with Output() as output:
        _baseline.export(schema, output.lines(tmp_path / "b.json"), before, None)
    content = json.loads((tmp_path / "b.json").read_text())
    now = put(schema, {"one": {"a": 1.0, "b": 0.0}, "two": {"a": 1.0, "b": 1.0}}, labels=1)

    def against(change: Any) -> list[str]:
        changed = json.loads(json.dumps(content))
        change(changed)
        (tmp_path / "changed.json").write_text(json.dumps(changed))
        given = _baseline.read(schema, tmp_path / "changed.json")
        found: list[str] = only(gate(schema, evaluations=[now], baseline=given))["reasons"]
        return found

    floor(schema, drop=0.1)
    name = str(before.id)
    assert against(lambda _: None) == ["0.5 is 0.5 below the baseline of 1, more than 0.1"]
    assert against(lambda file: file["questions"].pop()) == []
    assert against(lambda file: file["questions"].clear()) == [
        f"has no question in common with the baseline {name} whose labels are equal"
    ]
    assert against(lambda file: file["questions"][1].update(labels="0" * 16))[0].startswith("the labels of question:b are not ")
    floor(schema, retriever="two", drop=0.1)
    assert against(lambda _: None) == [f"has no baseline to fall from: the baseline {name} has no answers of two at k = 5"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.update(form="surrecall baseline 2"),
        lambda file: file.pop("questions"),
        lambda file: file.update(k=["5"]),
        lambda file: file["calls"].append({"retriever": "x"}),
        lambda file: file["questions"][0].pop("labels"),
        lambda file: file["questions"][0].update(id=1.5),
        lambda file: file["questions"][0].update(grades=["1"]),
        lambda file: file["questions"][0].update(answers=[]),
        lambda file: file["questions"][0].update(answers=[[1, [[0, 1]]]]),
        lambda file: file["questions"][0].update(answers=[None]),
        # what no ranking of that depth can be
        lambda file: file["questions"][0]["answers"][0].__setitem__(1, [[9, 1]]),
        lambda file: file["questions"][0].update(grades=[]),
        lambda file: file["questions"][0]["answers"][0].__setitem__(1, [[1, -3]]),
        lambda file: file["questions"][0]["answers"][0].__setitem__(0, -5),
        lambda file: file.update(k=[10**30]),
        lambda file: file["questions"].append(file["questions"][0]),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(schema: Database, tmp_path: Path, spoil: Any) -> None:
    before = put(schema, {"one": {"a": 1.0}}, labels=1)
    with Output() as output:
        _baseline.export(schema, output.lines(tmp_path / "b.json"), before, None)
    content = json.loads((tmp_path / "b.json").read_text())
    spoil(content)
    (tmp_path / "b.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"b\.json is no baseline: "):
        _baseline.read(schema, tmp_path / "b.json")


def test_a_file_that_is_cut_off_is_refused(schema: Database, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"form": ')
    with pytest.raises(DataError, match="can't be read"):
        _baseline.read(schema, tmp_path / "b.json")


def test_question_ids_of_every_kind_come_back_from_a_file(schema: Database, tmp_path: Path) -> None:
    names: list[Any] = ["7", 7, "007", "a-b", "a b/c:d"]
    ids = [RecordID("question", name) for name in names]
    evaluation = schema.value(
        "CREATE ONLY evaluation CONTENT $row RETURN VALUE id",
        row={
            "k": [1], "depth": 1, "questions": ids, "calls": [{"retriever": "one", "depth": 1}],
            "corpus": {"documents": 1}, "golden_set": "g", "status": "complete",
        },
    )  # fmt: skip
    for question in ids:
        schema.run(
            "CREATE eval_answer CONTENT { evaluation: $e, retriever: 'one', question: $q, depth: 1, ranking: [d:1], "
            "labels: [{ document: d:1, grade: 1 }], answerable: true, took: 0ns, status: 'ok' }",
            e=evaluation,
            q=question,
        )
    with Output() as output:
        _baseline.export(schema, output.lines(tmp_path / "b.json"), evaluation, None)
    floor(schema, k=1, drop=0)
    row = only(gate(schema, evaluations=[evaluation], baseline=_baseline.read(schema, tmp_path / "b.json")))
    assert (row["holds"], row["common"], row["added"], row["gone"]) == (True, 5, 0, 0)


def test_the_gate_measures_what_the_floors_name(help_centre: Database) -> None:
    floor(help_centre, "one", retriever="hybrid", k=3, minimum=0.8)
    floor(help_centre, "two", retriever="bm25", k=1, metric="hit", minimum=0.5)
    measured = _gate.measure(help_centre, trigger="ci", note="n")
    (evaluation,) = measured.evaluations
    row = help_centre.value("SELECT * FROM ONLY $e", e=evaluation)
    assert (row["k"], row["trigger"], row["note"]) == ([1, 3], "ci", "n")
    assert {call["retriever"] for call in row["calls"]} == {"bm25", "hybrid"}
    assert _gate.judge(help_centre, measured)["holds"]


def test_an_empty_set_fails_and_nothing_becomes_a_baseline(schema: Database) -> None:
    floor(schema, retriever="hybrid", k=3, minimum=0, drop=1)
    measured = _gate.measure(schema)
    told = _gate.judge(schema, measured)
    assert reasons(told)[0].startswith("no question in the golden set default")
    schema.run("CREATE article:a SET title = 'a', content = 'a', embedding = [1, 0, 0, 0]")
    schema.run("CREATE question:q SET text = 'q', embedding = [1, 0, 0, 0], answerable = false")
    told = _gate.judge(schema, _gate.measure(schema))
    assert "no question of the golden set default is answerable" in reasons(told)[0]
    assert schema.run("SELECT * FROM eval_baseline; SELECT * FROM eval_run; SELECT * FROM evaluation") == [[], [], []]


def test_a_retriever_that_is_gone_fails_alone(help_centre: Database) -> None:
    floor(help_centre, "a", retriever="bm26", k=3, minimum=0)
    floor(help_centre, "b", retriever="bm25", k=3, minimum=0)
    told = _gate.judge(help_centre, _gate.measure(help_centre))
    assert [(row["floor"], row["holds"]) for row in told["floors"]] == [("a", False), ("b", True)]


def test_a_finished_evaluation_writes_its_alerts(help_centre: Database) -> None:
    floor(help_centre, "high", retriever="hybrid", k=3, minimum=0.9)
    floor(help_centre, "low", retriever="hybrid", k=3, minimum=0.8)
    floor(help_centre, "not asked", retriever="bm25", k=3, minimum=1)
    floor(help_centre, "other set", retriever="hybrid", k=3, minimum=1, set="other")
    floor(help_centre, "first", retriever="hybrid", k=3, drop=0)
    floor(help_centre, "nowhere", retriever="hybrid", k=3, drop=0, baseline="main")
    evaluation = evaluate(help_centre, Options([3], ["hybrid"])).row["id"]
    alerts = help_centre.value("SELECT * FROM eval_alert ORDER BY floor")
    assert [row["floor"] for row in alerts] == ["high", "nowhere"]
    assert (alerts[0]["evaluation"], alerts[0]["retriever"], alerts[0]["metric"], alerts[0]["k"]) == (
        evaluation,
        "hybrid",
        "recall",
        3,
    )
    assert round(alerts[0]["value"], 3) == 0.833
    assert alerts[0]["sentence"] == "recall@3 of hybrid: 0.833 is below the minimum of 0.9"
    for statement in ("UPDATE eval_alert SET floor = 'x'", "DELETE eval_alert"):
        with pytest.raises(SurrecallError, match="append-only"):
            help_centre.run(statement)
    # in one statement as well
    help_centre.run("RETURN fn::record_evaluation({ k: 3, retrievers: ['hybrid'] })")
    assert len(help_centre.value("SELECT * FROM eval_alert WHERE floor = 'high'")) == 2


def test_alerts_never_stand_in_the_way(help_centre: Database) -> None:
    """Floors that no gate can judge, baselines that are gone, a history with NaN in it."""
    help_centre.run("OPTION IMPORT; CREATE eval_baseline SET name = 'gone', evaluation = evaluation:gone, at = time::now()")
    assert help_centre.value("SELECT VALUE name FROM eval_baseline") == ["gone"]
    floor(help_centre, "gone", retriever="hybrid", k=3, drop=0, baseline="gone")
    for number, broken in enumerate(BROKEN):
        help_centre.run(
            "OPTION IMPORT; CREATE type::record('eval_floor', $name) CONTENT object::extend("
            f"{{ retriever: 'hybrid', metric: 'recall', k: 3, set: 'default' }}, {{ {broken} }})",
            name=f"broken {number}",
        )
    evaluation = evaluate(help_centre, Options([3], ["hybrid"]))
    assert evaluation.row["status"] == "complete"
    floors = {row["floor"] for row in help_centre.value("SELECT floor FROM eval_alert")}
    assert floors >= {"gone", "broken 0", "broken 1", "broken 4"}


def test_an_evaluation_that_failed_alerts_for_the_retriever_that_did(help_centre: Database) -> None:
    floor(help_centre, "vector", retriever="vector", k=3, minimum=0)
    floor(help_centre, "bm25", retriever="bm25", k=3, minimum=0)
    help_centre.run("UPDATE question:signin SET embedding = NONE")
    assert evaluate(help_centre, Options([3], ["vector", "bm25"])).failed
    (alert,) = help_centre.value("SELECT * FROM eval_alert")
    assert alert["floor"] == "vector"
    assert alert["sentence"].startswith("recall@3 of vector: failed on 1 question, first on question:signin: ")


def test_a_list_that_does_not_begin_the_next_is_judged_only_where_it_was_asked(help_centre: Database) -> None:
    floor(help_centre, retriever="bm25", k=3, minimum=0.77)
    now = evaluate(help_centre, Options([5], ["bm25"])).row["id"]
    row = only(gate(help_centre, evaluations=[now]))
    assert (row["holds"], round(row["value"], 3)) == (True, 0.771)
    define_retriever(help_centre, "odd", "fn::search_bm25($question.text, $k)", prefix=False)
    floor(help_centre, retriever="odd", k=3, minimum=0)
    now = evaluate(help_centre, Options([5], ["odd"])).row["id"]
    assert reasons(gate(help_centre, evaluations=[now]))[0].startswith("was not asked at k = 3 in evaluation:")


def test_equal_golden_sets_are_compared_by_the_history_and_others_by_the_answers(help_centre: Database) -> None:
    floor(help_centre, "a", retriever="hybrid", k=3, metric="ndcg", drop=0)
    floor(help_centre, "b", retriever="bm25", k=1, drop=0)
    evaluations = [evaluate(help_centre, Options([1, 3])).row["id"] for _ in range(2)]
    plain = gate(help_centre, evaluations=evaluations[1:])
    assert plain["holds"]
    help_centre.run("OPTION IMPORT; UPDATE $e SET golden_set = 'another'", e=evaluations[0])
    assert gate(help_centre, evaluations=evaluations[1:]) == plain


def test_an_evaluation_of_very_many_questions_is_not_held_up_by_its_alerts(schema: Database) -> None:
    evaluated(schema, 1)
    now = evaluated(schema, 0)
    floor(schema, "class", by="kind", **{"class": ""}, minimum=1)
    floor(schema, "drop", drop=0)
    floor(schema, "minimum", minimum=0.5)
    assert [row["floor"] for row in alert(schema, now)] == ["class", "drop", "minimum"]
    with running(schema, now):
        schema.run("CREATE eval_run CONTENT { retriever: 'one', k: 5, questions: 20, recall: 0, evaluation: $now }", now=now)
    schema.run("OPTION IMPORT; UPDATE $now SET questions = array::range(0, 5001), golden_set = 'another'", now=now)
    floor(schema, "class-drop", by="kind", **{"class": ""}, drop=0)
    # what stands in the history is judged, the rest is the gate's; what the next one could fall from has to have been judged
    alerts = schema.value("RETURN fn::evaluation_alerts($now)", now=now)
    assert [(row["floor"], row["dropped"]) for row in alerts] == [("class-drop", True), ("drop", True), ("minimum", False)]
    assert "was not judged, with so many questions" in alerts[0]["sentence"]
    assert [row["holds"] for row in gate(schema, evaluations=[now])["floors"]] == [False, False, False, False]
    # a first one has nothing to fall from, and serves the next
    schema.run("OPTION IMPORT; DELETE eval_alert; DELETE evaluation WHERE id != $now", now=now)
    assert [row["floor"] for row in schema.value("RETURN fn::evaluation_alerts($now)", now=now)] == ["minimum"]


def test_documentation_of_every_part_is_there() -> None:
    text = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
    for word in ("minimum", "pin", "drop", "baseline", "--propose", "eval_alert", "DEFINE EVENT", "surrecall watch", "1e-9"):
        assert word in text


# three articles that stand where the labels of a question stood
HARM = """
LET $nearest = (SELECT VALUE embedding FROM ONLY question:money_back);
FOR $name IN ['one', 'two', 'three'] {
  CREATE type::record('article', $name) SET title = 'In the way', content = 'nothing', embedding = $nearest;
};
"""


def test_what_was_pruned_is_no_baseline_to_fall_from(help_centre: Database) -> None:
    """What is left of a pruned evaluation are its failures, and a fall measured against those is none."""
    help_centre.run("CREATE eval_floor:keep SET retriever = 'vector', k = 3, drop = 0.02")
    first = evaluate(help_centre, Options([1, 3, 5])).row["id"]
    help_centre.run(HARM)
    evaluate(help_centre, Options([1, 3, 5]))
    kept = help_centre.value("RETURN fn::prune_keeps()")
    assert first in kept["baseline"], "the last good one of a red gate stays whole"
    # were it thinned all the same, it would be said
    help_centre.run("CREATE eval_prune SET evaluation = $first, answers = 7", first=first)
    help_centre.run(
        "CREATE question:added SET text = 'reset password', embedding = [1, 0, 0, 0.1], relevant = [article:password_reset]"
    )
    third = evaluate(help_centre, Options([1, 3, 5])).row["id"]
    told = _gate.judge(help_centre, _gate.evaluations([third]), None)
    assert told["holds"] is False
    assert "was pruned" in told["floors"][0]["sentence"]
    with pytest.raises(SurrecallError, match="has no baseline to fall from"):
        help_centre.run("BEGIN; UPDATE article:gift_card SET title = 'Cards'; fn::guard(); COMMIT;")


def test_no_run_by_hand_speaks_for_an_evaluation_that_is_closed(help_centre: Database) -> None:
    closed = evaluate(help_centre, Options([3])).row["id"]
    before = help_centre.value("SELECT * FROM eval_run ORDER BY seq")
    statement = "CREATE eval_run SET retriever = 'hybrid', k = 3, recall = 1, questions = 8, evaluation = $evaluation"
    for claimed in (closed, RecordID("evaluation", "nosuch")):
        with pytest.raises(SurrecallError, match="gets no more runs"):
            help_centre.run(statement, evaluation=claimed)
    assert help_centre.value("SELECT * FROM eval_run ORDER BY seq") == before
