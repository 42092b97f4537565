"""Changes of the corpus are noted with the write, evaluated after it, and none is forgotten."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conftest import ROOT, fresh_settings
from definitions import DEFINITIONS
from pytest_surrecall._servers import Server
from servers import Killable
from surrecall import Database, Options, Settings, SurrecallError, _inventory, _policy, _remove, _schema, _seed, evaluate
from surrecall._cli import app, load

load()
WATCH = "UPSERT ingest_policy:article SET mode = 'record', k = [3]"
# what the issue allows from the last write on
PATIENCE = 15.0
WRITES = 500
ONE = """
INSERT INTO article (
  SELECT type::record('article', 'many' + <string> $this) AS id, 'words of ' + <string> $this AS content,
    [0.9, 0.1, 0, 0.001 * $this] AS embedding
  FROM array::range(0, 500)
) RETURN NONE
"""


def rounds(database: Database) -> list[dict[str, Any]]:
    """The evaluations on ingest, oldest first."""
    found: list[dict[str, Any]] = database.value("SELECT * FROM evaluation WHERE trigger = 'ingest' ORDER BY started, id")
    return found


def settled(database: Database, since: float, patience: float = PATIENCE) -> float:
    """Wait until nothing is pending and nobody is at it; the seconds since a moment."""
    while True:
        left = database.value("RETURN [fn::ingest_pending(), fn::ingest_held()]")
        took = time.monotonic() - since
        if left == [0, False]:
            return took
        assert took < patience, f"after {took:.1f} s: {left}, steps {database.value('SELECT * FROM ingest_step')}"
        time.sleep(0.1)


def insert(settings: Settings, numbers: range, trouble: list[str]) -> None:
    """A statement a document over one connection, until one fails."""
    try:
        with Database(settings) as database:
            for number in numbers:
                database.run(
                    "CREATE type::record('article', $id) SET content = $text, embedding = [0.1, 0.9, 0, $x] RETURN NONE",
                    id=f"single{number}",
                    text=f"words of {number}",
                    x=0.001 * number,
                )
    except SurrecallError as error:
        trouble.append(str(error))


def over_connections(settings: Settings, count: int, writes: int) -> list[str]:
    """So many statements over so many connections at once; what went wrong."""
    trouble: list[str] = []
    threads = [threading.Thread(target=insert, args=(settings, range(at, writes, count), trouble)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return trouble


def carried(database: Database) -> bool:
    """Whether the fingerprint that follows the changes is the one of the documents."""
    known, same = database.value("RETURN [corpus_state:now.lanes != NONE, fn::corpus_hash() = fn::lanes_hash(fn::corpus_read())]")
    assert known
    return bool(same)


@pytest.fixture
def on_server(pytestconfig: pytest.Config, server: Server) -> Iterator[Database]:
    """The help centre on the server of the suite: the embedded engine runs nothing in the background."""
    if server.is_embedded:
        pytest.skip("what runs in the background needs a server, this run has the embedded engine")
    with Database(fresh_settings(pytestconfig, "server")) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
        yield database


def expect_few(database: Database, documents: int) -> None:
    """Between one and five evaluations, the last with everything, all of it marked."""
    found = rounds(database)
    assert 1 <= len(found) <= 5
    assert [row["status"] for row in found] == ["complete"] * len(found)
    assert found[-1]["corpus"]["documents"] == documents
    assert database.value("RETURN array::distinct((SELECT VALUE evaluation FROM corpus_change))")[0] is not None
    assert database.value("SELECT VALUE id FROM corpus_change WHERE evaluation = NONE") == []
    assert database.value("SELECT VALUE id FROM eval_run WHERE evaluation = $last", last=found[-1]["id"]) != []
    assert carried(database)
    assert database.value("RETURN fn::check()") == []


def test_a_burst_in_one_statement(on_server: Database) -> None:
    on_server.run(WATCH)
    on_server.run(ONE)
    took = settled(on_server, time.monotonic())
    assert took < PATIENCE
    assert on_server.value("RETURN count(SELECT VALUE id FROM corpus_change)") == WRITES
    expect_few(on_server, 10 + WRITES)


def test_a_burst_over_eight_connections(on_server: Database) -> None:
    on_server.run(WATCH)
    assert over_connections(on_server.settings, 8, WRITES) == []
    settled(on_server, time.monotonic())
    assert on_server.value("RETURN count(SELECT VALUE id FROM corpus_change)") == WRITES
    expect_few(on_server, 10 + WRITES)


@pytest.mark.parametrize("moment", ["before the evaluation", "in the evaluation"])
def test_killed_between_write_and_evaluation(killable: Killable, moment: str) -> None:
    settings = killable.server.settings("main", "main")
    with Database(settings) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
        database.run(WATCH)
        database.run(ONE)
        while moment == "in the evaluation" and not database.value("SELECT VALUE id FROM eval_answer LIMIT 1"):
            time.sleep(0.01)
    killable.kill()
    killable.start()
    began = time.monotonic()
    with Database(settings) as database:
        assert database.value("RETURN fn::ingest_pending()") > 0
        settled(database, began)
        expect_few(database, 10 + WRITES)


def test_killed_in_the_middle_of_many_writers(killable: Killable) -> None:
    settings = killable.server.settings("main", "main")
    with Database(settings) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
        database.run(WATCH)
    trouble: list[str] = []
    threads = [threading.Thread(target=insert, args=(settings, range(at, 250, 8), trouble)) for at in range(8)]
    for thread in threads:
        thread.start()
    with Database(settings) as database:
        while database.value("RETURN fn::ingest_pending()") < 20:
            time.sleep(0.05)
    killable.kill()
    for thread in threads:
        thread.join(timeout=60)
    assert trouble, "the server was killed after the last write"
    killable.start()
    with Database(settings) as database:
        stored = database.value("RETURN fn::corpus_size()")
        assert stored > 10
        # every write that is there was noted, and no other
        assert database.value("RETURN count(SELECT VALUE id FROM corpus_change)") == stored - 10
        database.run(ONE)
        settled(database, time.monotonic())
        expect_few(database, stored + WRITES)


def test_a_lease_whose_holder_is_gone_is_taken_over(on_server: Database) -> None:
    on_server.run(WATCH)
    on_server.run("UPSERT ingest_lease:head SET holder = 'gone', until = time::now() + 3s")
    on_server.run("CREATE article SET content = 'x', embedding = [1, 0, 0, 0]")
    time.sleep(1.0)
    assert rounds(on_server) == []
    time.sleep(2.5)
    on_server.run("CREATE article SET content = 'y', embedding = [1, 0, 0, 0]")
    settled(on_server, time.monotonic())
    expect_few(on_server, 12)


def pending(database: Database) -> dict[str, Any]:
    """Take up what is pending, on every engine: nothing runs in the background of the tests that use it."""
    told: dict[str, Any] = database.value("RETURN fn::evaluate_pending()")
    return told


@pytest.fixture
def watched(help_centre: Database) -> Database:
    """Changes are noted, and nothing but fn::evaluate_pending takes them up."""
    help_centre.run("REMOVE EVENT ingest_wake_up ON ingest_wake; REMOVE EVENT ingest_step_do ON ingest_step;")
    help_centre.run(WATCH)
    return help_centre


def test_each_change_is_noted_with_its_hashes(watched: Database) -> None:
    watched.run("CREATE article:new SET content = 'a', embedding = [1, 0, 0, 0]")
    (hash_one,) = watched.run("RETURN fn::document_hash(article:new)")
    watched.run("UPDATE article:new SET content = 'b'")
    (hash_two,) = watched.run("RETURN fn::document_hash(article:new)")
    # nothing that retrieval sees is another
    watched.run("UPDATE article:new SET content = 'b'; UPDATE article:new SET title = NONE")
    watched.run("DELETE article:new")
    noted = watched.value("SELECT * FROM corpus_change ORDER BY at")
    assert [(row["action"], row.get("before"), row.get("hash")) for row in noted] == [
        ("CREATE", None, hash_one),
        ("UPDATE", hash_one, hash_two),
        ("DELETE", hash_two, None),
    ]
    assert {str(row["document"]) for row in noted} == {"article:new"}
    assert carried(watched)


def test_a_write_that_is_taken_back_leaves_nothing(watched: Database) -> None:
    with pytest.raises(SurrecallError):
        watched.run("BEGIN; CREATE article SET content = 'a', embedding = [1, 0, 0, 0]; THROW 'no'; COMMIT;")
    assert watched.value("SELECT * FROM corpus_change") == []
    assert watched.value("SELECT * FROM ingest_wake") == []


def test_off_costs_nothing_and_leaves_nothing(help_centre: Database) -> None:
    before = help_centre.value("INFO FOR TABLE article")
    assert before["events"].keys() == {"surrecall_labels"}
    help_centre.run(WATCH)
    assert set(help_centre.value("INFO FOR TABLE article")["events"]) == {"surrecall_ingest", "surrecall_labels"}
    help_centre.run("UPSERT ingest_policy:article SET mode = 'off'")
    assert help_centre.value("INFO FOR TABLE article") == before
    help_centre.run("CREATE article SET content = 'a', embedding = [1, 0, 0, 0]")
    assert help_centre.value("SELECT * FROM corpus_change") == []
    assert help_centre.value("SELECT * FROM corpus_state") == []
    help_centre.run(WATCH)
    help_centre.run("DELETE ingest_policy:article")
    assert help_centre.value("INFO FOR TABLE article") == before
    with pytest.raises(SurrecallError, match="this database evaluates article"):
        help_centre.run("UPSERT ingest_policy:other SET mode = 'record'")


def test_pending_is_evaluated_in_one_statement(watched: Database) -> None:
    watched.run(ONE)
    (told,) = watched.value("RETURN fn::check()")
    assert told["problem"] == "500 changes are pending, no evaluation has seen them"
    assert told["next"] == "surrecall evaluate --pending"
    found = pending(watched)
    assert (found["status"], found["pending"], found["seen"]) == ("complete", 0, WRITES)
    expect_few(watched, 10 + WRITES)
    runs = watched.value("SELECT seq, retriever, k FROM eval_run ORDER BY seq")
    assert [(run["retriever"], run["k"]) for run in runs] == [("bm25", 3), ("vector", 3), ("hybrid", 3)]
    assert pending(watched) == {"pending": 0}
    assert len(rounds(watched)) == 1
    # the same figures as anybody gets who asks for them
    by_hand = evaluate(watched, Options([3]))
    assert by_hand.row["corpus"] == rounds(watched)[0]["corpus"]
    figures = watched.value("SELECT seq, retriever, recall, ndcg, hit FROM eval_run ORDER BY seq")
    assert [row | {"seq": 0} for row in figures[:3]] == [row | {"seq": 0} for row in figures[3:]]


def test_only_what_is_marked_is_evaluated(watched: Database) -> None:
    watched.run("UPDATE retriever:hybrid SET on_ingest = true")
    watched.run("CREATE article SET content = 'a', embedding = [1, 0, 0, 0]")
    pending(watched)
    assert watched.value("SELECT VALUE retriever FROM eval_run") == ["hybrid"]


def test_a_failing_evaluation_is_a_row_and_harms_no_write(watched: Database) -> None:
    watched.run("REMOVE INDEX article_embedding ON article")
    watched.run("CREATE article:new SET content = 'a', embedding = [1, 0, 0, 0]")
    found = pending(watched)
    assert found["status"] == "failed"
    assert "index article_embedding on article is missing" in found["error"]
    assert watched.value("RETURN record::exists(article:new)")
    (row,) = rounds(watched)
    assert (row["status"], row["error"]) == ("failed", found["error"])
    assert watched.value("SELECT * FROM eval_run") == []
    told = [finding["problem"] for finding in watched.value("RETURN fn::check_evaluations()")]
    assert any("index article_embedding on article is missing" in problem for problem in told)
    # it stays pending until it can be evaluated
    assert found["pending"] == 1
    watched.run("DEFINE INDEX article_embedding ON article FIELDS embedding HNSW DIMENSION 4 DIST COSINE")
    assert pending(watched)["status"] == "complete"
    expect_few_after_failure = rounds(watched)
    assert [row["status"] for row in expect_few_after_failure] == ["failed", "complete"]
    assert watched.value("RETURN fn::check_ingest()") == []


def test_a_failing_evaluation_in_the_background(on_server: Database) -> None:
    on_server.run(WATCH)
    on_server.run("REMOVE INDEX article_embedding ON article")
    on_server.run("CREATE article:new SET content = 'a', embedding = [1, 0, 0, 0]")
    began = time.monotonic()
    while not rounds(on_server):
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.1)
    assert on_server.value("RETURN record::exists(article:new)")
    time.sleep(4)
    # once, and not again and again
    (row,) = rounds(on_server)
    assert "index article_embedding on article is missing" in row["error"]
    on_server.run("DEFINE INDEX article_embedding ON article FIELDS embedding HNSW DIMENSION 4 DIST COSINE")
    on_server.run("CREATE article SET content = 'b', embedding = [1, 0, 0, 0]")
    settled(on_server, time.monotonic())
    assert [row["status"] for row in rounds(on_server)] == ["failed", "complete"]


def test_a_question_that_fails_is_an_answer_with_its_error(watched: Database) -> None:
    watched.run("UPDATE question:signin SET embedding = NONE")
    watched.run("CREATE article SET content = 'a', embedding = [1, 0, 0, 0]")
    assert pending(watched)["status"] == "failed"
    errors = watched.value("SELECT retriever, question, message FROM eval_answer WHERE status = 'error' ORDER BY retriever")
    assert [str(row["question"]) for row in errors] == ["question:signin"] * 2
    assert all("vector" in row["message"] for row in errors)
    # it was measured, with what could not be
    assert watched.value("RETURN fn::ingest_pending()") == 0
    assert len(watched.value("SELECT VALUE id FROM eval_run")) == 3


def test_what_an_import_brings_is_found_and_caught_up(watched: Database) -> None:
    watched.run_as_written(
        "OPTION IMPORT; INSERT INTO article { id: article:imported, content: 'words', embedding: [1f, 0f, 0f, 0f] };"
    )
    assert watched.value("SELECT * FROM corpus_change") == []
    told = watched.value("RETURN fn::check_ingest()")
    assert [finding["problem"] for finding in told] == [
        "1 documents came in of which no event told, as surreal import leaves them"
    ]
    found = pending(watched)
    assert found["status"] == "complete"
    assert found["unrecorded"] == "1 documents came in of which no event told, as surreal import leaves them"
    assert rounds(watched)[-1]["corpus"]["documents"] == 11
    assert carried(watched)
    assert watched.value("RETURN fn::check()") == []
    # and one that was changed without an event
    watched.run_as_written("OPTION IMPORT; UPDATE article:imported SET content = 'others';")
    (finding,) = watched.value("RETURN fn::check_ingest()")
    assert finding["problem"] == "documents were changed of which no event told"


def test_the_fingerprint_is_the_same_both_ways(help_centre: Database) -> None:
    read = help_centre.value("RETURN fn::corpus_hash()")
    help_centre.run(WATCH)
    assert help_centre.value("RETURN fn::corpus_hash()") == read
    help_centre.run("CREATE article:x SET content = 'a', embedding = [1, 0, 0, 0]")
    other = help_centre.value("RETURN fn::corpus_hash()")
    assert other != read
    help_centre.run("UPSERT ingest_policy:article SET mode = 'off'")
    assert help_centre.value("RETURN fn::corpus_hash()") == other
    help_centre.run("DELETE article:x")
    assert help_centre.value("RETURN fn::corpus_hash()") == read
    # the order in which documents came is no part of it, each of its contents is
    help_centre.run("LET $row = (SELECT * FROM ONLY article:gift_card); CREATE article:copy SET content = $row.content")
    assert help_centre.value("RETURN fn::corpus_hash()") not in (read, other)


def test_the_fingerprint_reads_no_document_where_changes_are_noted(watched: Database) -> None:
    watched.run("CREATE article SET content = 'a', embedding = [1, 0, 0, 0]")
    wanted = watched.value("RETURN fn::corpus_hash()")
    watched.run("DEFINE FUNCTION OVERWRITE fn::corpus_part($table: string, $after: any, $count: option<int>) { THROW 'read' }")
    assert watched.value("RETURN fn::corpus_hash()") == wanted
    row = watched.value("RETURN fn::evaluation_begin({ k: [3] })")
    assert row["corpus"]["hash"] == wanted


def test_evaluations_of_another_corpus_are_told_apart(watched: Database) -> None:
    for number in range(2):
        watched.run("CREATE type::record('article', $id) SET content = 'zebra', embedding = [1, 0, 0, 0]", id=f"z{number}")
        pending(watched)
    first, second = rounds(watched)
    compare = "RETURN fn::compare({ sides: [$a, $b], retriever: 'hybrid', k: 3 })"
    assert first["corpus"]["hash"] != second["corpus"]["hash"]
    told = watched.value(compare, a=first["id"], b=second["id"])
    assert {tuple(compared["differs"]) for compared in told["comparisons"]} == {("the corpus",)}
    # the same documents again, by whichever way
    watched.run("DELETE article:z1")
    pending(watched)
    told = watched.value(
        "RETURN fn::compare({ sides: [$a, $b], retriever: 'hybrid', k: 3 })", a=first["id"], b=rounds(watched)[-1]["id"]
    )
    assert {tuple(compared["differs"]) for compared in told["comparisons"]} == {()}


def test_a_large_corpus_is_read_in_parts(watched: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from surrecall import _fingerprint

    watched.run("UPSERT ingest_policy:article SET mode = 'off'")
    watched.run(ONE)
    whole = watched.value("RETURN fn::corpus_hash()")
    monkeypatch.setattr(_fingerprint, "_AT_ONCE", 100)
    seen: list[tuple[int, int]] = []
    lanes = _fingerprint.read(watched, ["article"], 510, lambda done, total: seen.append((done, total)))
    assert watched.value("RETURN fn::lanes_hash($lanes)", lanes=lanes) == whole
    assert _fingerprint.corpus_hash(watched) == whole
    assert seen == [(100, 510), (200, 510), (300, 510), (400, 510), (500, 510), (510, 510)]
    assert evaluate(watched, Options([3])).row["corpus"]["hash"] == whole


def test_a_state_that_is_not_known_is_worked_out_in_steps(watched: Database) -> None:
    watched.run("DELETE corpus_state")
    watched.run(ONE)
    assert pending(watched)["status"] == "complete"
    expect_few(watched, 10 + WRITES)


def command(settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """surrecall in a folder, on a database."""
    monkeypatch.chdir(folder)
    for name, value in (("URL", settings.url), ("NS", settings.namespace), ("DB", settings.database)):
        monkeypatch.setenv(f"SURREAL_{name}", value)
    if settings.user and settings.password:
        monkeypatch.setenv("SURREAL_USER", settings.user)
        monkeypatch.setenv("SURREAL_PASSWORD", settings.password)

    def run(*arguments: str, code: int = 0) -> Any:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == code, done.output + str(done.exception)
        return done

    return run


def test_the_commands(pytestconfig: pytest.Config, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(f"surrealkv://{tmp_path / 'data'}") if engine == "embedded" else fresh_settings(pytestconfig, engine)
    (tmp_path / "project").mkdir()
    shutil.copytree(ROOT / "surql" / "corpus", tmp_path / "project" / "surql" / "corpus")
    (tmp_path / "project" / "surrecall.toml").write_text("k = [1, 3]\n")
    run = command(settings, tmp_path / "project", monkeypatch)
    run("apply")
    run("seed")
    assert json.loads(run("ingest-policy", "article", "--json").stdout)["mode"] == "off"
    assert "this database evaluates article" in run("ingest-policy", "other", code=2).output
    told = json.loads(run("ingest-policy", "article", "--mode", "record", "--wait", "500ms", "--json").stdout)
    assert (told["mode"], told["wait"], told["k"], told["known"]) == ("record", "500ms", [1, 3], True)
    assert "no duration" in run("ingest-policy", "article", "--wait", "soon", code=2).output
    assert "record" in run("ingest-policy", "article").stdout
    assert run("evaluate", "--pending").stdout == "nothing is pending\n"
    assert run("check").stdout == "all is well\n"
    run("apply")
    assert run("check").stdout == "all is well\n"
    with Database(settings) as database:
        database.run("CREATE article:new SET content = 'a', embedding = [1, 0, 0, 0]")
    if engine == "embedded":
        assert "1 changes are pending" in " ".join(run("check", code=4).stdout.split())
        assert "1 pending change evaluated" in run("evaluate", "--pending").output
        with Database(settings) as database:
            database.run("UPDATE article:new SET content = 'b'")
        # a command that writes history takes it up as well
        assert "1 pending change evaluated" in run("evaluate", "-k", "1").output
    else:
        run("evaluate", "--pending")
    with Database(settings) as database:
        assert database.value("RETURN fn::ingest_pending()") == 0
        found = rounds(database)
        assert found
        assert {row["status"] for row in found} == {"complete"}
        assert found[-1]["k"] == [1, 3]
        assert database.value("RETURN fn::check()") == []
    assert "--pending asks" in run("evaluate", "--pending", "-k", "3", code=2).output
    # taken out without a trace
    with Database(settings) as database:
        assert set(database.value("INFO FOR TABLE article")["events"]) == {"surrecall_ingest", "surrecall_labels"}
        _remove.remove(database, _remove.plan(database))
        assert database.value("INFO FOR TABLE article")["events"] == {}
        assert _inventory.apis(database) == []


def test_apply_renews_the_event(watched: Database) -> None:
    _schema.apply(watched, ROOT)
    wanted = watched.value("INFO FOR TABLE article")["events"]
    watched.run("DEFINE EVENT OVERWRITE surrecall_ingest ON article THEN { RETURN 1 } COMMENT 'surrecall: old'")
    _schema.apply(watched, ROOT)
    assert watched.value("INFO FOR TABLE article")["events"] == wanted
    watched.run("REMOVE EVENT surrecall_ingest ON article")
    (finding,) = watched.value("RETURN fn::check_ingest()")
    assert "the event that notes changes is not there" in finding["problem"]


def test_cut_off_on_the_embedded_engine(watched: Database) -> None:
    watched.run("CREATE article SET content = 'a', embedding = [1, 0, 0, 0]")
    holder = watched.value("RETURN fn::ingest_start(false)")["holder"]
    while not watched.value("SELECT VALUE id FROM eval_answer LIMIT 1"):
        watched.run("RETURN fn::ingest_go_on($holder)", holder=holder)
    # another one asks while it is under way
    assert pending(watched)["pending"] == 1
    assert "held" in pending(watched)
    assert watched.value("RETURN fn::check_ingest()")[0]["problem"] == "1 changes are pending, and are being evaluated"
    watched.run("UPDATE ingest_lease:head SET until = time::EPOCH")
    assert pending(watched)["status"] == "complete"
    first, second = rounds(watched)
    assert (first["status"], first["error"]) == ("failed", "it was cut off and never came to an end")
    assert second["status"] == "complete"
    assert watched.value("SELECT VALUE id FROM eval_run WHERE evaluation = $id", id=first["id"]) == []
    # the steps of the one that was cut off do nothing any more
    assert watched.value("SELECT * FROM ingest_step") == []


def test_policy_and_its_figures(watched: Database) -> None:
    found = _policy.policy(watched)
    assert (found.table, found.mode, found.k, found.pending, found.known) == ("article", "record", [3], 0, True)
    assert found.retrievers == ["bm25", "vector", "hybrid"]
