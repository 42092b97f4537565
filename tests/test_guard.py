"""The guard: a transaction after which a floor breaks leaves nothing, and says which questions it would break."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from conftest import ROOT, fresh_settings
from definitions import DEFINITIONS
from surrecall import Database, DatabaseError, Settings, SurrecallError, _remove, _schema, _seed
from surrecall._errors import ExitCode, GuardError
from test_cli import surrecall

# near the question on signing in and the one on 429s, with their words
PLANTED = {
    "id": RecordID("article", "planted"),
    "title": "Prices",
    "content": "429 too many requests, get my money back, parcel, account",
    "embedding": [0.0, 0.05, 0.95, 0.05],
}
HARMLESS = {
    "id": RecordID("article", "zebra"),
    "title": "Zebras",
    "content": "zebra stripes",
    "embedding": [0.0, 0.0, 0.0, 1.0],
}
# each takes one label of one question from the first three of vector search, both together two
HALF = {"title": "Half", "content": "zebra", "embedding": [0.95, 0.0, 0.0, 0.1]}
GUARDED = "BEGIN; INSERT INTO article $rows RETURN NONE; RETURN fn::guard(); COMMIT;"
CSV = "id,title,text,embedding\n"
BAD_LINE = 'planted,Prices,"429 too many requests, get my money back, parcel, account",0 0.05 0.95 0.05\n'
GOOD_LINE = "zebra,Zebras,zebra stripes,0 0 0 1\n"


def everything(database: Database) -> dict[str, Any]:
    """Every definition and every row of every table."""
    found: dict[str, Any] = {"": database.value("INFO FOR DB")}
    for table in found[""]["tables"]:
        found[table] = database.run(f"INFO FOR TABLE {table}; SELECT * FROM {table} ORDER BY id;")
    return found


def floor(database: Database, name: str, **values: Any) -> None:
    content = {"retriever": "hybrid", "metric": "recall", "k": 3} | values
    database.run("CREATE $id CONTENT $content", id=RecordID("eval_floor", name), content=content)


@pytest.fixture
def guarded(help_centre: Database) -> Database:
    """The help centre, evaluated, with a floor on recall@3."""
    help_centre.run("RETURN fn::record_evaluation({ k: [1, 3] })")
    floor(help_centre, "hybrid", minimum=0.8)
    return help_centre


@pytest.fixture
def vectors(help_centre: Database) -> Database:
    """The help centre with a floor that one half leaves standing, and two break."""
    help_centre.run("RETURN fn::record_evaluation({ k: [3] })")
    floor(help_centre, "vector", retriever="vector", minimum=0.82)
    return help_centre


def half(name: str) -> dict[str, Any]:
    return HALF | {"id": RecordID("article", name)}


def test_a_planted_article_is_refused_with_the_questions_named(guarded: Database) -> None:
    before = everything(guarded)
    with pytest.raises(GuardError) as refused:
        guarded.run(GUARDED, rows=[PLANTED])
    text = refused.value.message
    assert text.startswith("the guard refuses this transaction: floor hybrid, hybrid recall@3, ")
    assert "0.833 before and 0.792 after: 0.792 is below the minimum of 0.8" in text
    assert text.endswith('it breaks "I can\'t get into my account" 0.667 to 0.333')
    assert refused.value.exit_code == ExitCode.GATE_FAILED
    assert everything(guarded) == before


def test_a_harmless_one_goes_in_and_what_was_measured_comes_back(guarded: Database) -> None:
    measured = next(row for row in guarded.run(GUARDED, rows=[HARMLESS]) if isinstance(row, dict))
    (row,) = measured["floors"]
    assert measured["note"] is None
    assert guarded.value("RETURN record::exists(article:zebra)")
    assert (row["floor"], row["questions"], row["common"], row["fault"], row["fell"]) == ("hybrid", 8, 8, None, [])
    assert row["before"] == pytest.approx(0.8333333333)
    recorded = guarded.value("LET $runs = fn::record_evaluation({ k: [3], retrievers: ['hybrid'] }); RETURN $runs[0].recall")
    # the same but for the order of adding, which a limit must not depend on
    assert row["after"] == pytest.approx(recorded, abs=1e-12)


def test_a_batch_with_one_bad_article_leaves_none_of_them(guarded: Database) -> None:
    before = everything(guarded)
    with pytest.raises(GuardError):
        guarded.run(GUARDED, rows=[HARMLESS, PLANTED, half("half")])
    assert everything(guarded) == before


def test_every_form_of_the_call_refuses(guarded: Database) -> None:
    for call in ("RETURN fn::guard();", "fn::guard();", "LET $measured = fn::guard();"):
        with pytest.raises(GuardError, match="below the minimum"):
            guarded.run(f"BEGIN; INSERT INTO article $rows RETURN NONE; {call} COMMIT;", rows=[PLANTED])
    assert not guarded.value("RETURN record::exists(article:planted)")


def test_an_update_and_a_delete_are_judged_like_an_insert(guarded: Database) -> None:
    with pytest.raises(GuardError, match="429 too many requests"):
        guarded.run("BEGIN; UPDATE article:api_rate_limits SET content = 'zebra', embedding = NONE; RETURN fn::guard(); COMMIT;")
    # what only stood in the way may go
    guarded.run("INSERT INTO article $rows", rows=[PLANTED])
    guarded.run("BEGIN; DELETE article:planted; RETURN fn::guard(); COMMIT;")
    assert not guarded.value("RETURN record::exists(article:planted)")


def test_without_a_floor_there_is_nothing_to_guard(help_centre: Database) -> None:
    measured = help_centre.value("RETURN fn::guard()")
    assert measured["floors"] == []
    assert "no floor" in measured["note"]
    help_centre.run(GUARDED, rows=[PLANTED])
    assert help_centre.value("RETURN record::exists(article:planted)")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"retriever": "bm52"},
            "no retriever named bm52, which the floor x is for; there are: bm25, vector, hybrid",
        ),
        ({"metric": "recal", "minimum": 0.1}, "no metric named recal"),
        ({"set": "other", "minimum": 0.0}, "was not measured"),
        ({"by": "kind", "class": "nobody", "minimum": 0.0}, "hybrid recall@3 of kind nobody: was not measured"),
        ({"drop": 0.5, "baseline": "release"}, "has no baseline to fall from"),
        ({"k": 5, "drop": 0.5}, "0.958 after and nothing stored from before: has no baseline to fall from"),
        ({"pin": 0.9}, "0.833 is not 0.9 ± 0.02"),
    ],
)
def test_a_floor_that_measures_nothing_or_is_broken_already_lets_nothing_in(
    guarded: Database, values: dict[str, Any], said: str
) -> None:
    floor(guarded, "x", **values)
    with pytest.raises(SurrecallError) as refused:
        guarded.run(GUARDED, rows=[HARMLESS])
    assert said in refused.value.text
    assert not guarded.value("RETURN record::exists(article:zebra)")


def test_a_retriever_that_fails_or_an_index_that_is_missing_lets_nothing_in(guarded: Database) -> None:
    guarded.run("REMOVE INDEX article_embedding ON article")
    with pytest.raises(SurrecallError, match="article_embedding"):
        guarded.run(GUARDED, rows=[HARMLESS])
    assert not guarded.value("RETURN record::exists(article:zebra)")


def test_a_drop_is_of_the_common_questions_so_that_an_added_one_breaks_nothing(guarded: Database) -> None:
    guarded.run("DELETE eval_floor")
    floor(guarded, "drop", drop=0.01)
    # never found, so the mean of all falls; the mean of those that the baseline has does not
    guarded.run("CREATE question:new SET text = 'quux', embedding = [0.1, 0.9, 0.25, 0.0], relevant = [article:api_rate_limits]")
    row = next(row for row in guarded.run(GUARDED, rows=[HARMLESS]) if isinstance(row, dict))["floors"][0]
    assert (row["questions"], row["common"]) == (9, 8)
    assert row["before"] == pytest.approx(0.8333333333)
    assert row["after"] < 0.8
    with pytest.raises(GuardError, match=r"below the baseline of 0\.833, more than 0\.01"):
        guarded.run(GUARDED, rows=[PLANTED])


def test_a_named_baseline_is_held_against_and_not_the_newest(guarded: Database) -> None:
    guarded.run("DELETE eval_floor; CREATE eval_baseline SET name = 'release', evaluation = (SELECT VALUE id FROM evaluation)[0]")
    guarded.run("INSERT INTO article $rows", rows=[PLANTED])
    guarded.run("RETURN fn::record_evaluation({ k: [3] })")
    floor(guarded, "drop", drop=0.01)
    guarded.run(GUARDED, rows=[HARMLESS])
    floor(guarded, "since", drop=0.01, baseline="release")
    with pytest.raises(GuardError, match=r"floor since, .*0\.833 before and 0\.792 after"):
        guarded.run("BEGIN; UPDATE article:zebra SET title = 'x'; RETURN fn::guard(); COMMIT;")


def test_a_slice_is_judged_by_its_own_questions(guarded: Database) -> None:
    guarded.run("DELETE eval_floor; UPDATE question SET kind = 'other'; UPDATE question:signin SET kind = 'access'")
    guarded.run("RETURN fn::record_evaluation({ k: [3] })")
    floor(guarded, "access", by="kind", **{"class": "access"}, minimum=0.5)
    floor(guarded, "other", by="kind", **{"class": "other"}, minimum=0.85)
    with pytest.raises(GuardError) as refused:
        guarded.run(GUARDED, rows=[PLANTED])
    assert "floor access, hybrid recall@3 of kind access, 0.667 before and 0.333 after" in refused.value.message
    assert "floor other" not in refused.value.message


def test_floors_of_several_cutoffs_and_metrics_agree_with_an_evaluation(help_centre: Database) -> None:
    # one whose list at k does not begin the list at 2k is asked once a cutoff
    help_centre.run("UPDATE retriever:hybrid SET prefix = false")
    runs = help_centre.value("RETURN fn::record_evaluation({ k: [1, 3, 5] })")
    metrics = ("recall", "ndcg", "err", "judged")
    for run in runs:
        for metric in metrics:
            values = {"retriever": run["retriever"], "k": run["k"], "metric": metric, "pin": run[metric], "tolerance": 0.0}
            floor(help_centre, f"{run['retriever']}_{run['k']}_{metric}", **values)
    measured = help_centre.value("RETURN fn::guard()")
    assert len(measured["floors"]) == len(runs) * len(metrics) == 9 * 4
    for row in measured["floors"]:
        (run,) = [run for run in runs if (run["retriever"], run["k"]) == (row["retriever"], row["k"])]
        assert row["after"] == pytest.approx(run[row["metric"]], abs=1e-12), row
        assert row["before"] == pytest.approx(run[row["metric"]], abs=1e-12), row


def test_the_guard_under_a_write_gives_what_it_gives_at_the_top(guarded: Database) -> None:
    top = guarded.value("RETURN <string> fn::guard()")
    below = guarded.value("RETURN (CREATE ONLY executor_probe SET value = <string> fn::guard()).value")
    assert below == top


# the event for each row


def test_a_policy_of_guard_refuses_each_row_that_breaks_a_floor(guarded: Database) -> None:
    guarded.run("UPSERT ingest_policy:article SET mode = 'guard'")
    before = everything(guarded)
    with pytest.raises(GuardError, match="I can't get into my account"):
        guarded.run("INSERT INTO article $rows", rows=[HARMLESS, PLANTED])
    assert everything(guarded) == before
    guarded.run("INSERT INTO article $rows", rows=[HARMLESS])
    guarded.run("UPSERT ingest_policy:article SET mode = 'off'")
    guarded.run("INSERT INTO article $rows", rows=[PLANTED])
    assert guarded.value("RETURN [article:zebra, article:planted].map(|$id| record::exists($id))") == [True, True]


def test_the_event_judges_states_in_between_and_the_function_the_final_one(guarded: Database) -> None:
    moved = """
        BEGIN;
        LET $was = (SELECT VALUE content FROM ONLY article:api_rate_limits);
        UPDATE article:api_rate_limits SET content = 'zebra', embedding = [0, 0, 0.1, 0];
        UPDATE article:api_rate_limits SET content = $was, embedding = [0.1, 0.05, 0.05, 0.95];
        RETURN fn::guard();
        COMMIT;
    """
    guarded.run(moved)
    guarded.run("UPSERT ingest_policy:article SET mode = 'guard'")
    with pytest.raises(GuardError, match="429 too many requests"):
        guarded.run(moved)
    comment = guarded.value("INFO FOR TABLE article")["events"]["surrecall_guard"]
    assert "judges after each row, so also states that a transaction only passes through" in comment


def test_check_names_a_guard_that_lets_everything_in(help_centre: Database) -> None:
    assert help_centre.value("RETURN fn::check_guard()") == []
    help_centre.run("UPSERT ingest_policy:article SET mode = 'guard'; UPSERT eval_guard:trial SET n = 0")
    without, trial = help_centre.value("RETURN fn::check_guard()")
    assert without["subject"] == "article"
    assert "there is no floor" in without["problem"]
    assert trial["next"] == "DELETE eval_guard:trial"
    assert [row for row in help_centre.value("RETURN fn::check()") if row["kind"] == "guard"] == [without, trial]


def test_remove_takes_the_event_off_and_apply_keeps_it(guarded: Database) -> None:
    _schema.apply(guarded, ROOT)
    guarded.run("UPSERT ingest_policy:article SET mode = 'guard'")
    assert _schema.drift(guarded, ROOT) == []
    _schema.apply(guarded, ROOT)
    assert "surrecall_guard" in guarded.value("INFO FOR TABLE article")["events"]
    _remove.remove(guarded, _remove.plan(guarded), force=True)
    assert guarded.value("INFO FOR TABLE article")["events"] == {}
    guarded.run("INSERT INTO article $rows", rows=[HARMLESS, PLANTED])


def record_user(database: Database) -> Any:
    """A connection of somebody who may write articles, and is no user of the database."""
    database.run(
        "DEFINE TABLE person PERMISSIONS FULL; DEFINE TABLE OVERWRITE article SCHEMAFULL PERMISSIONS FULL;"
        "DEFINE ACCESS visitor ON DATABASE TYPE RECORD SIGNUP (CREATE person SET name = $name) "
        "SIGNIN (SELECT * FROM person WHERE name = $name);"
    )
    settings = database.settings
    connection = database._connection
    names = {"namespace": settings.namespace, "database": settings.database}
    connection.signup({**names, "access": "visitor", "variables": {"name": "x"}})
    return connection


def test_a_record_user_is_refused_by_the_function_and_judged_by_the_event(guarded: Database) -> None:
    guarded.run("UPSERT ingest_policy:article SET mode = 'guard'")
    record_user(guarded)
    assert guarded.value("RETURN $auth != NONE")
    with pytest.raises(DatabaseError, match="can not judge for this user"):
        guarded.run("RETURN fn::guard()")
    with pytest.raises(GuardError, match="I can't get into my account"):
        guarded.run("INSERT INTO article $rows", rows=[PLANTED])
    guarded.run("INSERT INTO article $rows", rows=[HARMLESS])
    assert guarded.value("SELECT VALUE id FROM article WHERE title IN ['Zebras', 'Prices']") == [HARMLESS["id"]]


# several writers


@pytest.fixture
def served(pytestconfig: pytest.Config, engine: str) -> Iterator[Settings]:
    """A database that several connections can write to, with the floor of vectors; the embedded engine has one connection."""
    settings = fresh_settings(pytestconfig, engine)
    with Database(settings) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
        database.run("RETURN fn::record_evaluation({ k: [3] })")
        floor(database, "vector", retriever="vector", minimum=0.82)
        if settings.is_embedded:
            # one process, one connection: writers can only take turns
            database.run(GUARDED, rows=[half("one")])
            with pytest.raises(GuardError):
                database.run(GUARDED, rows=[half("two")])
            assert database.value("SELECT VALUE id FROM article WHERE title = 'Half'") == [half("one")["id"]]
        yield settings


def test_two_that_overlap_harmless_alone_and_harmful_together_do_not_both_get_in(served: Settings) -> None:
    if served.is_embedded:
        return
    with Database(served) as one, Database(served) as two:
        begun = {name: (own._connection, own._connection.begin()) for name, own in (("one", one), ("two", two))}
        for name, (connection, transaction) in begun.items():
            for statement in ("INSERT INTO article $rows RETURN NONE", "RETURN fn::guard()"):
                answer = connection.query_raw(statement, {"rows": [half(name)]}, None, transaction)["result"][0]
                # neither sees the other, so both are found harmless
                assert answer["status"] == "OK", answer
        outcomes = []
        for connection, transaction in begun.values():
            try:
                connection.commit(transaction)
                outcomes.append("in")
            except Exception as error:
                assert "conflict" in str(error).lower()
                outcomes.append("conflict")
        assert sorted(outcomes) == ["conflict", "in"]
        assert len(one.value("SELECT VALUE id FROM article WHERE title = 'Half'")) == 1
        # tried again, it is judged with the other one there
        other = "two" if outcomes[0] == "in" else "one"
        with pytest.raises(GuardError, match="I can't get into my account"):
            two.run(GUARDED, rows=[half(other)])


def test_in_a_transaction_that_a_client_holds_the_error_has_to_be_followed_by_cancel(served: Settings) -> None:
    if served.is_embedded:
        return
    with Database(served) as database:
        connection = database._connection
        for end, stored in ((connection.cancel, []), (connection.commit, [half("one")["id"], half("two")["id"]])):
            transaction = connection.begin()
            for statement, status in (("INSERT INTO article $rows RETURN NONE", "OK"), ("RETURN fn::guard()", "ERR")):
                rows = {"rows": [half("one"), half("two")]}
                assert connection.query_raw(statement, rows, None, transaction)["result"][0]["status"] == status
            end(transaction)
            # the engine commits what a failed statement was about: measured, and said in docs/guard.md
            assert database.value("SELECT VALUE id FROM article WHERE title = 'Half' ORDER BY id") == stored


def at_once(settings: Settings, batches: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Each batch by a writer of its own, all at the same time, conflicts tried again; what became of each."""
    outcomes: dict[str, str] = {}
    barrier = threading.Barrier(len(batches))

    def write(name: str, rows: list[dict[str, Any]]) -> None:
        with Database(settings) as own:
            barrier.wait()
            while name not in outcomes:
                try:
                    own.run(GUARDED, rows=rows)
                    outcomes[name] = "in"
                except GuardError:
                    outcomes[name] = "refused"
                except SurrecallError as error:
                    assert "conflict" in error.message.lower(), error

    writers = [threading.Thread(target=write, args=batch) for batch in batches.items()]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return outcomes


def test_writers_at_once_lose_nothing_and_of_a_harmful_pair_one_gets_in(served: Settings) -> None:
    if served.is_embedded:
        return
    harmless = {
        f"h{number}": [HARMLESS | {"id": RecordID("article", f"h{number}_{row}")} for row in range(3)] for number in range(6)
    }
    outcomes = at_once(served, harmless | {name: [half(name)] for name in ("one", "two")})
    assert all(outcomes[name] == "in" for name in harmless)
    assert sorted(outcomes[name] for name in ("one", "two")) == ["in", "refused"]
    with Database(served) as database:
        there = set(map(str, database.value("SELECT VALUE id FROM article WHERE title = 'Zebras'")))
        assert there == {str(row["id"]) for rows in harmless.values() for row in rows}
        assert len(database.value("SELECT VALUE id FROM article WHERE title = 'Half'")) == 1
        # each of those that are in wrote the lock row once
        assert database.value("SELECT VALUE n FROM ONLY eval_guard:lock") == 7


# the command


@pytest.fixture
def home(pytestconfig: pytest.Config, engine: str, tmp_path: Path) -> tuple[Settings, Path, dict[str, str]]:
    """A project for the help centre beside its database, evaluated, with a floor."""
    settings = fresh_settings(pytestconfig, engine)
    url = settings.url if not settings.is_embedded else f"surrealkv://{tmp_path / 'g.db'}"
    env = {"SURREAL_URL": url, "SURREAL_NS": settings.namespace, "SURREAL_DB": settings.database}
    env |= {"SURREAL_USER": settings.user, "SURREAL_PASSWORD": settings.password or ""} if settings.user else {}
    project = tmp_path / "project"
    project.mkdir()
    init = ("init", "--table", "article", "--field", "content", "--vector", "embedding", "--dimension", "4", "--analyzer", "help")
    for command in (init, ("apply",), ("seed",), ("evaluate", "-k", "1,3")):
        assert surrecall(*command, cwd=project, env=env).returncode == 0
    own = Settings(url, settings.namespace, settings.database, settings.user, settings.password)
    with Database(own) as database:
        floor(database, "hybrid", minimum=0.8)
    return own, project, env


def test_import_documents_guarded(home: tuple[Settings, Path, dict[str, str]]) -> None:
    settings, project, env = home
    (project / "bad.csv").write_text(CSV + GOOD_LINE + BAD_LINE, encoding="utf-8")
    (project / "good.csv").write_text(CSV + GOOD_LINE, encoding="utf-8")
    (project / "many.csv").write_text("id,text\n" + "".join(f"d{n},words of {n}\n" for n in range(501)), encoding="utf-8")
    with Database(settings) as database:
        before = everything(database)
    refused = surrecall("import", "documents", "bad.csv", "--guard", cwd=project, env=env)
    assert refused.returncode == 1
    assert "I can't get into my account" in refused.stderr
    assert "surrecall whatif" in refused.stderr
    many = surrecall("import", "documents", "many.csv", "--guard", cwd=project, env=env)
    assert many.returncode == 2
    assert "501 documents are more than the 500" in many.stderr
    trial = surrecall("import", "documents", "good.csv", "--guard", "--dry-run", cwd=project, env=env)
    assert trial.returncode == 2
    with Database(settings) as database:
        assert everything(database) == before
    good = surrecall("import", "documents", "good.csv", "--guard", cwd=project, env=env)
    assert good.returncode == 0, good.stderr
    assert "imported 1 document, 1 with a vector" in good.stdout
    assert "hybrid  hybrid     recall" in good.stdout
    with Database(settings) as database:
        assert database.value("RETURN record::exists(article:zebra)")
        assert database.value("RETURN fn::check_imports()") == []


def test_import_documents_guarded_fills_vectors_in_the_same_transaction(home: tuple[Settings, Path, dict[str, str]]) -> None:
    settings, project, env = home
    with Database(settings) as database:
        database.run("CREATE article:planted SET title = 'Prices', content = $text", text=PLANTED["content"])
        database.run("CREATE article:zebra SET title = 'Zebras', content = 'zebra stripes'")
    (project / "bad.csv").write_text(CSV + BAD_LINE, encoding="utf-8")
    (project / "good.csv").write_text(CSV + GOOD_LINE, encoding="utf-8")
    assert surrecall("import", "documents", "bad.csv", "--guard", cwd=project, env=env).returncode == 1
    assert surrecall("import", "documents", "good.csv", "--guard", cwd=project, env=env).returncode in (0, 1)
    with Database(settings) as database:
        assert database.value("SELECT VALUE embedding FROM ONLY article:planted") is None


def test_a_row_that_the_table_refuses_is_named_by_its_line(home: tuple[Settings, Path, dict[str, str]]) -> None:
    settings, project, env = home
    with Database(settings) as database:
        database.run("DEFINE FIELD OVERWRITE title ON article TYPE option<string> ASSERT $value != 'Zebras'")
    (project / "docs.csv").write_text(CSV + GOOD_LINE, encoding="utf-8")
    refused = surrecall("import", "documents", "docs.csv", "--guard", cwd=project, env=env)
    assert refused.returncode == 4
    assert "docs.csv:2: the table article refuses the document 'zebra'" in refused.stderr


def test_the_refusal_of_the_documentation(guarded: Database) -> None:
    text = (ROOT / "docs" / "guard.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```surql\n(.*?)```", text, re.DOTALL)
    shown = next(part for part in re.findall(r"```text\n(.*?)```", text, re.DOTALL) if part.startswith("the guard refuses"))
    guarded.run("DELETE eval_floor")
    with pytest.raises(GuardError) as refused:
        guarded.run(block)
    assert refused.value.message == shown.strip()
    assert not guarded.value("RETURN record::exists(article:prices)")
