"""Pruning: what goes, what stays, that it is counted, and that nobody reads what is left as if it were whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from surrealdb import RecordID

from conftest import ROOT
from surrecall import Database, DataError, Options, Settings, SurrecallError, UsageError, _prune, _schema, evaluate
from surrecall._database import Database as Connection
from surrecall._export import runs as exported
from test_cli import Run, run, seeded, target  # noqa: F401
from test_comparison import put, running

LATER = timedelta(hours=1)
_FACTS = """
RETURN {
  runs: (SELECT * FROM eval_run ORDER BY seq), evaluations: (SELECT * FROM evaluation ORDER BY id),
  chain: (SELECT * FROM eval_chain),
  view: (SELECT * FROM eval_trend ORDER BY id)
};
"""


def soon() -> datetime:
    return datetime.now(UTC) + LATER


def answers(database: Database, evaluation: RecordID) -> set[tuple[str, str]]:
    rows = database.value("SELECT retriever, question FROM eval_answer WHERE evaluation = $id", id=evaluation)
    return {(row["retriever"], row["question"].id) for row in rows}


def finish(database: Database, evaluation: RecordID, retriever: str = "one") -> None:
    """A run, so that the evaluation is one that figures stand on."""
    with running(database, evaluation):
        database.run(
            "CREATE eval_run SET retriever = $retriever, k = 5, recall = 0.5, questions = 4, evaluation = $id",
            id=evaluation,
            retriever=retriever,
        )


@pytest.fixture
def old(help_centre: Database) -> tuple[Database, RecordID, RecordID]:
    """The help centre, evaluated twice: one that may lose answers, and the newest."""
    first = evaluate(help_centre, Options([1, 3])).row["id"]
    return help_centre, first, evaluate(help_centre, Options([1, 3])).row["id"]


def test_answers_that_found_everything_go_and_all_else_stays(old: tuple[Database, RecordID, RecordID]) -> None:
    database, first, second = old
    before, facts = answers(database, first), database.value(_FACTS)
    failing = {
        (row["retriever"], row["question"].id)
        for row in database.value(
            "SELECT retriever, question FROM eval_answer WHERE evaluation = $id AND fn::recall_at(ranking, labels, 3) < 1",
            id=first,
        )
    }
    assert 0 < len(failing) < len(before) == 24
    trial = _prune.prune(database, soon(), dry_run=True)
    assert answers(database, first) == before
    done = _prune.prune(database, soon())
    assert (trial.answers, trial.kept, trial.evaluations) == (done.answers, done.kept, done.evaluations)
    assert (done.answers, done.kept) == (24 - len(failing), len(failing))
    assert answers(database, first) == failing
    assert len(answers(database, second)) == 24
    assert done.newest == [second]
    assert database.value("RETURN fn::pruned_answers($id)", id=first) == 24 - len(failing)
    assert database.value(_FACTS) == facts
    assert database.value("RETURN fn::check()") == []
    again = _prune.prune(database, soon())
    assert (again.answers, again.evaluations) == (0, [])
    assert sum(database.value("SELECT VALUE answers FROM eval_prune")) == done.answers


def test_failures_of_every_kind_stay(schema: Database) -> None:
    values: dict[str, float | None] = {"all": 1.0, "some": 0.75, "none": 0, "error": None, "nothing": 1.0}
    first = put(schema, {"one": values}, unanswerable=["nothing"])
    empty = put(schema, {"one": {"all": 1.0}}, status="failed")
    schema.run("DELETE eval_answer WHERE evaluation = $id", id=empty)
    schema.run(
        "CREATE eval_answer SET evaluation = $id, retriever = 'one', question = question:void, depth = 5, ranking = [],"
        " labels = [{ document: d:1, grade: 1 }], answerable = true, took = 0ns, status = 'empty'",
        id=empty,
    )
    # a grade that does not count as relevant need not be found; one without any that counts is at 0
    graded = put(schema, {"one": {"all": 0.0}}, rel=2, scale=3)
    schema.run("DELETE eval_answer WHERE evaluation = $id", id=graded)
    for name, grades, ranking in (("low", [1, 2], [1]), ("miss", [2, 3], [0]), ("without", [1, 1], [0, 1])):
        schema.run(
            "CREATE eval_answer SET evaluation = $id, retriever = 'one', question = type::record('question', $name), depth = 5,"
            " ranking = $ranking, labels = $labels, answerable = true, took = 0ns, status = 'ok'",
            id=graded,
            name=name,
            ranking=[RecordID("d", place) for place in ranking],
            labels=[{"document": RecordID("d", place), "grade": grade} for place, grade in enumerate(grades)],
        )
    put(schema, {"one": values})
    for evaluation in (first, empty, graded):
        finish(schema, evaluation)
    _prune.prune(schema, soon())
    assert answers(schema, first) == {("one", name) for name in ("some", "none", "error", "nothing")}
    assert answers(schema, empty) == {("one", "void")}
    assert answers(schema, graded) == {("one", "miss"), ("one", "without")}


def test_what_a_baseline_names_and_the_newest_of_each_stay_whole(schema: Database) -> None:
    one = {"one": {"q1": 1.0}}
    made = [
        put(schema, one),
        put(schema, one),
        put(schema, one | {"two": {"q1": 1.0}}),
        put(schema, one, set="second"),
        put(schema, one, status="failed"),
        put(schema, one, status="running"),
        put(schema, one),
    ]
    plain, named, newest_of_two, other_set, failed, running, newest = made
    schema.run("CREATE eval_baseline SET name = 'release', evaluation = $id", id=named)
    done = _prune.prune(schema, soon())
    assert {str(row["evaluation"]) for row in done.evaluations} == {str(plain), str(failed)}
    assert done.baselines == [named]
    assert {str(one) for one in done.newest} == {str(newest_of_two), str(other_set), str(newest)}
    for evaluation in (named, newest_of_two, other_set, running, newest):
        assert answers(schema, evaluation), evaluation
    for evaluation in (plain, failed):
        assert not answers(schema, evaluation)
    # a baseline that is set while it runs keeps what is left
    late = put(schema, one)
    put(schema, one)
    there = schema.value("SELECT VALUE id FROM eval_answer WHERE evaluation = $id", id=late)
    schema.run("CREATE eval_baseline SET name = 'late', evaluation = $id", id=late)
    assert schema.value("RETURN fn::prune_part($id, $answers)", id=late, answers=there) == 0
    assert answers(schema, late)


def test_only_what_is_old_enough(schema: Database) -> None:
    day = timedelta(days=1)
    now = datetime.now(UTC)
    old, young = (put(schema, {"one": {"q1": 1.0}}, started=now - back * day) for back in (40, 10))
    put(schema, {"one": {"q1": 1.0}})
    assert _prune.prune(schema, _prune.moment(30, None)).answers == 1
    assert not answers(schema, old)
    assert answers(schema, young)
    assert _prune.moment(None, "2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert _prune.moment(None, "2026-01-31T12:00:00+02:00") == datetime(2026, 1, 31, 10, tzinfo=UTC)
    for given in ((None, None), (1, "2026-01-01"), (None, "soon")):
        with pytest.raises(UsageError):
            _prune.moment(*given)


def test_what_reads_answers_says_that_they_were_pruned(old: tuple[Database, RecordID, RecordID]) -> None:
    database, first, second = old
    _prune.prune(database, soon())
    refused = (
        "fn::means($id, 'bm25', NONE)",
        "fn::slices($id, 'bm25', {})",
        "fn::curve($id, 'bm25')",
        "fn::resolution($id, NONE)",
        "fn::evaluation_run($id, 'bm25', 3, NONE)",
        "fn::stored_evaluation($id, NONE, NONE)",
        "fn::compare({ sides: [$id, $other], retriever: 'bm25' })",
        "fn::compare({ sides: ['bm25', 'hybrid'], evaluation: $id })",
        "fn::compare({ sides: ['bm25'] })",
        "fn::blame($id, $other, {})",
    )
    for expression in refused:
        for statement in (f"RETURN {expression}", f"CREATE ONLY executor_probe SET value = {expression}"):
            with pytest.raises(DataError, match=r"was pruned: \d+ of its answers are gone"):
                database.run(statement, id=first, other=second)
    with pytest.raises(DataError, match="was pruned"):
        exported.export(database, exported.Form.JSONL, None, "bm25", str(first.id))  # type: ignore[arg-type]
    # what has figures of its own still tells them
    assert database.value("RETURN fn::compare({ sides: ['bm25', 'hybrid'] })")["comparisons"][0]["questions"] == 8
    told = database.value("RETURN fn::trend({ by: 'kind', retriever: 'bm25' })")
    assert {row["runs"] for row in told["rows"]} == {1}
    assert told["warnings"] == ["1 run without all answers (written by hand, or pruned), so without classes"]
    assert {row["runs"] for row in database.value("RETURN fn::trend({ retriever: 'bm25' }).rows")} == {2}
    # a class, or a cutoff of its own, can't be judged by what is left
    row = database.value("SELECT * OMIT questions FROM ONLY $id", id=first)
    floor = {"name": "f", "retriever": "bm25", "metric": "recall", "k": 3, "set": "default", "minimum": 0.0, "baseline": "last"}
    for entries, holds in (({}, True), ({"by": "source", "class": "human"}, False), ({"k": 2}, False)):
        verdict = database.value("RETURN fn::floor_verdict($floor, $row, NONE, NONE)", floor=floor | entries, row=row)
        assert (verdict["holds"], "whose answers were pruned" in str(verdict["reasons"])) == (holds, not holds)
    with pytest.raises(SurrecallError, match="evaluation"):
        database.run("CREATE eval_baseline SET name = 'main', evaluation = $id", id=first)
    assert "of its answers were pruned" in database.value("RETURN fn::evaluation_warnings($id)", id=first)[0]


def test_figures_of_unanswerable_questions_stay(help_centre: Database) -> None:
    help_centre.run("CREATE question:no SET text = 'do you sell bicycles', answerable = false, embedding = [1, 0, 0, 0]")
    first = evaluate(help_centre, Options([3])).row["id"]
    before = help_centre.value("RETURN fn::evaluation_unanswerable($id)", id=first)
    evaluate(help_centre, Options([3]))
    _prune.prune(help_centre, soon())
    after = help_centre.value("RETURN fn::evaluation_unanswerable($id)", id=first)
    assert after == [row | {"answerable_top_score": None} for row in before]
    assert before != after


def test_cut_off_it_leaves_whole_shards_and_goes_on(
    old: tuple[Database, RecordID, RecordID], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, first, _ = old
    monkeypatch.setattr(_prune, "_LIMIT", 3)
    whole, calls = _prune._delete, 0

    def dies(database: Connection, evaluation: RecordID, given: list[RecordID]) -> int:
        nonlocal calls
        calls += 1
        if calls == 3:
            # as a process that is killed within the statement: nothing of it is kept
            with pytest.raises(SurrecallError):
                database.run(
                    "BEGIN; LET $gone = fn::prune_part($id, $answers); THROW 'killed'; COMMIT;", id=evaluation, answers=given
                )
            raise KeyboardInterrupt
        return whole(database, evaluation, given)

    monkeypatch.setattr(_prune, "_delete", dies)
    with pytest.raises(KeyboardInterrupt):
        _prune.prune(database, soon())
    gone = database.value("RETURN fn::pruned_answers($id)", id=first)
    assert 0 < gone == 24 - len(answers(database, first)) < 18
    assert database.value("RETURN fn::check()") == []
    with pytest.raises(DataError, match="was pruned"):
        database.run("RETURN fn::means($id, 'bm25', NONE)", id=first)
    monkeypatch.setattr(_prune, "_delete", whole)
    rest = _prune.prune(database, soon())
    assert gone + rest.answers == 18
    assert database.value("RETURN fn::pruned_answers($id)", id=first) == 18
    assert database.value("RETURN fn::check()") == []


def test_the_same_shard_twice_is_counted_once(old: tuple[Database, RecordID, RecordID]) -> None:
    database, first, second = old
    some = database.value("SELECT VALUE id FROM eval_answer WHERE evaluation = $id LIMIT 5", id=first)
    others = database.value("SELECT VALUE id FROM eval_answer WHERE evaluation = $id LIMIT 2", id=second)
    part = "RETURN fn::prune_part($id, $answers)"
    # answers of another evaluation are none of its
    assert database.value(part, id=first, answers=[*some, *others]) == 5
    assert database.value(part, id=first, answers=some) == 0
    assert database.value("SELECT VALUE answers FROM eval_prune") == [5]
    assert len(answers(database, second)) == 24


def test_the_note_of_what_went_is_append_only_and_a_lost_one_is_named(old: tuple[Database, RecordID, RecordID]) -> None:
    database, first, _ = old
    _prune.prune(database, soon())
    notes = database.value("SELECT * FROM eval_prune ORDER BY id")
    for statement in ("UPDATE eval_prune SET answers = 1", "DELETE eval_prune", "UPDATE eval_prune SET at = time::now()"):
        with pytest.raises(SurrecallError, match="append-only"):
            database.run(statement)
    with pytest.raises(SurrecallError):
        database.run("CREATE eval_prune SET evaluation = $id, answers = 0", id=first)
    assert database.value("SELECT * FROM eval_prune ORDER BY id") == notes
    database.run("OPTION IMPORT; DELETE $id;", id=notes[0]["id"])
    (fault,) = database.value("RETURN fn::check_history()")
    assert fault["subject"].endswith(str(first.id))
    assert "of 24 answers" in fault["problem"]


def test_no_scan_in_a_shard(schema: Database) -> None:
    """Whatever the number of answers there are of other evaluations, a page is read by the index."""
    evaluation = put(schema, {"one": {f"q{number}": 1.0 for number in range(20)}})
    plan = str(
        schema.value(
            _prune._PAGE + " EXPLAIN",
            evaluation=evaluation,
            retriever="one",
            depth=5,
            after=RecordID("question", "q1"),
            limit=5,
        )
    )
    assert "eval_answer_once" in plan
    assert "TableScan" not in plan
    assert "eval_prune_evaluation" in str(
        schema.value("SELECT VALUE answers FROM eval_prune WHERE evaluation = $id EXPLAIN", id=evaluation)
    )


def test_the_command(seeded: Run, target: Settings) -> None:  # noqa: F811
    for _ in range(2):
        seeded("evaluate", "-k", "1,3")
    assert "--keep-days 90, or --before" in seeded("prune", code=2).stderr
    told = seeded("prune", "--keep-days", "0", "--dry-run")
    assert "would delete 18 answers of 1 evaluation, 6 kept" in told.stdout
    done = json.loads(seeded("prune", "--keep-days", "0", "--json").stdout)
    assert (done["answers"], done["kept"], done["dry_run"]) == (18, 6, False)
    assert "deleted 0 answers of 0 evaluations" in seeded("prune", "--before", "2000-01-01").stdout
    name = done["evaluations"][0]["evaluation"]
    with Database(target) as database:
        assert len(database.value("SELECT VALUE id FROM eval_run")) == 12
        assert database.value("RETURN fn::check()") == []
        _schema.apply(database, ROOT)
    assert "was pruned: 18 of its answers are gone" in seeded("curve", "--evaluation", name, code=4).stderr
    assert "was pruned" in seeded("compare", "bm25", code=4).stderr
    shown = seeded("history", "--by", "kind")
    assert "6 runs whose answers were pruned, so without classes" in shown.stderr
    assert seeded("history").stdout.count("hybrid") >= 4
