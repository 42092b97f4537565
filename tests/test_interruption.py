"""Long evaluations that are cut off: no figure without all its answers, and the same figures once resumed."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, fresh_settings
from servers import Killable
from surrecall import Database, Interrupted, Options, SchemaError, Settings, UsageError, _schema, _seed, evaluate, resume
from test_cli import environment

QUESTIONS = 40
MEANS = ("retriever", "k", "questions", "recall", "precision", "p", "hit", "rr", "ap", "ndcg", "judged", "errors")
# each answer takes a moment, so that there is a middle to be cut off in
SLOW = """
-- fn::slow: a search that takes its time.
DEFINE FUNCTION OVERWRITE fn::slow($q: string, $k: any) {
  sleep(12ms);
  RETURN fn::search_bm25($q, $k);
} COMMENT 'surrecall: for the tests';
"""
REGISTRY = """
[slow]
call = "fn::slow($question.text, $k)"
returns = "article"

[again]
call = "fn::slow($question.text, $k)"
returns = "article"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "surql" / "corpus", folder / "surql" / "corpus")
    (folder / "surql/corpus/slow.surql").write_text(SLOW)
    (folder / "surql/corpus/retrievers.toml").write_text(REGISTRY)
    return folder


def fill(settings: Settings, project: Path) -> None:
    """The help centre with two slow retrievers and as many questions as it takes."""
    with Database(settings) as database:
        _schema.apply(database, project)
        _seed.seed(database)
        for number in range(QUESTIONS - 8):
            database.run(
                "LET $of = (SELECT * FROM question WHERE note = NONE ORDER BY id)[$n % 8];"
                "CREATE type::record('question', $name) SET text = $of.text, relevant = $of.relevant, note = 'copy',"
                " embedding = $of.embedding",
                n=number,
                name=f"copy{number}",
            )


@pytest.fixture
def target(pytestconfig: pytest.Config, engine: str, tmp_path: Path, project: Path) -> Settings:
    """A filled database that outlives a process."""
    settings = Settings(f"surrealkv://{tmp_path / 'data'}") if engine == "embedded" else fresh_settings(pytestconfig, engine)
    fill(settings, project)
    return settings


def start(settings: Settings, cwd: Path, *arguments: str) -> subprocess.Popen[str]:
    env = {"SURREAL_URL": settings.url, "SURREAL_NS": settings.namespace, "SURREAL_DB": settings.database}
    if settings.user and settings.password:
        env |= {"SURREAL_USER": settings.user, "SURREAL_PASSWORD": settings.password}
    command = [sys.executable, "-m", "surrecall", "evaluate", *(arguments or ("-k", "1,3"))]
    return subprocess.Popen(command, cwd=cwd, env=environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def figures(runs: list[dict[str, Any]]) -> list[list[Any]]:
    return [[row[key] for key in MEANS] for row in runs]


def state(settings: Settings) -> tuple[int, list[str], int]:
    """Runs, the status of each evaluation, answers."""
    with Database(settings) as database:
        return (
            database.value("RETURN count(SELECT VALUE id FROM eval_run)"),
            database.value("SELECT VALUE status FROM evaluation ORDER BY started"),
            database.value("RETURN count(SELECT VALUE id FROM eval_answer)"),
        )


def wait_for_answers(settings: Settings, at_least: int) -> None:
    """Until an evaluation is under way; only a server can be asked meanwhile."""
    deadline = time.monotonic() + 30
    while state(settings)[2] < at_least:
        assert time.monotonic() < deadline, "no answer came"
        time.sleep(0.02)


def test_killed_at_random_moments_and_resumed(target: Settings, project: Path) -> None:
    with Database(target) as database:
        wanted = figures(evaluate(database, Options([1, 3])).runs)
    runs = len(wanted)
    # ten moments on a server; on the embedded engine, whose folder needs a process of its own each time, three
    moments = random.Random(7)
    cut_off = 0
    for trial in range(10):
        if target.is_embedded and trial >= 3 and cut_off:
            break
        begun = len(state(target)[1])
        process = start(target, project)
        if target.is_embedded:
            time.sleep(moments.uniform(1.0, 2.2))
        else:
            before = state(target)[2]
            wait_for_answers(target, before + 1)
            time.sleep(moments.uniform(0.0, 0.9))
        process.kill()
        process.communicate()
        stored, status, _answers = state(target)
        if len(status) == begun:
            # it had not begun: then there is nothing of it
            assert stored == runs
            continue
        if status[-1] == "complete":
            # it was faster than the kill: then it is whole
            runs += len(wanted)
            assert stored == runs
            continue
        if status[-1] != "running":
            raise AssertionError(status)
        cut_off += 1
        assert stored == runs, "a run without all its answers"
        with Database(target) as database:
            assert [row["kind"] for row in database.value("RETURN fn::check_evaluations()")] == ["evaluation"]
            assert figures(resume(database).runs) == wanted
            assert database.value("RETURN fn::check()") == []
        runs += len(wanted)
    assert cut_off > 0
    assert state(target)[0] == runs


def test_ctrl_c_says_how_to_go_on(target: Settings, project: Path) -> None:
    # how long it takes to begin differs from machine to machine, and nobody can look into a folder that is held
    for delay in (1.8, 2.3, 2.8, 1.4, 3.5):
        process = start(target, project)
        if target.is_embedded:
            time.sleep(delay)
        else:
            wait_for_answers(target, 5)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
        if "complete" in state(target)[1]:
            # it was done before the signal came, which met it on its way out
            assert process.returncode in (0, 130, -signal.SIGINT)
            return
        assert process.returncode == 130, told
        if "interrupted; evaluation:" in told:
            break
        # before it had begun
        assert state(target)[1] == []
    assert "interrupted; evaluation:" in told
    assert f"of {2 * QUESTIONS} answers, and no run" in told
    assert "next: surrecall evaluate --resume" in told
    assert state(target)[0] == 0
    done = start(target, project, "--resume", "--json")
    shown, told = done.communicate(timeout=60)
    assert done.returncode == 0, told
    assert len(json.loads(shown)["runs"]) == 4
    assert state(target)[1] == ["complete"]


def test_a_server_that_is_killed_and_comes_back(killable: Killable, project: Path) -> None:
    settings = killable.server.settings("main", "main")
    fill(settings, project)
    with Database(settings) as database:
        wanted = figures(evaluate(database, Options([1, 3])).runs)
    process = start(settings, project)
    wait_for_answers(settings, 2 * QUESTIONS + 5)
    killable.kill()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 3, told
    assert "and no run" in told
    assert "next: surrecall evaluate --resume" in told
    killable.start()
    assert state(settings)[:2] == (len(wanted), ["complete", "running"])
    with Database(settings) as database:
        assert figures(resume(database).runs) == wanted
        assert database.value("RETURN fn::check()") == []


def test_several_connections_give_the_same_figures(target: Settings) -> None:
    with Database(target) as database:
        alone = evaluate(database, Options([1, 3]))
        together = evaluate(database, Options([1, 3]), jobs=4)
        assert figures(together.runs) == figures(alone.runs)
        assert database.value("RETURN fn::check()") == []


def test_nothing_to_resume(help_centre: Database) -> None:
    with pytest.raises(UsageError, match="no evaluation is unfinished"):
        resume(help_centre)


@pytest.mark.parametrize(
    ("meanwhile", "changed"),
    [
        ("UPDATE question:signin SET relevant = [article:gift_card]", "the golden set"),
        ("DEFINE FUNCTION OVERWRITE fn::mine() { RETURN 1 }", "the definitions"),
        ("CREATE article SET content = 'x', embedding = [1, 0, 0, 0]", "the number of documents"),
        ("UPDATE article:gift_card SET content = 'other words'", "the content of the corpus"),
    ],
)
def test_what_changed_meanwhile_is_not_resumed_over(help_centre: Database, meanwhile: str, changed: str) -> None:
    help_centre.value("RETURN fn::evaluation_begin({ k: [3] })")
    help_centre.run(meanwhile)
    with pytest.raises(SchemaError) as caught:
        resume(help_centre)
    assert changed in caught.value.message
    assert "DELETE evaluation:" in (caught.value.hint or "")


def test_the_progress_ends_where_it_should(help_centre: Database) -> None:
    seen: list[tuple[int, int]] = []
    evaluate(help_centre, Options([3]), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (24, 24)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_worker_that_fails_stops_the_others(target: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    if target.is_embedded:
        with Database(target) as database:
            assert evaluate(database, Options([3]), jobs=4).row["status"] == "complete"
        return
    honest = Database.run
    calls = iter(range(10_000))

    def flaky(self: Database, statements: str, **variables: Any) -> list[Any]:
        if "INSERT IGNORE" in statements and next(calls) == 9:
            self.close()
        return honest(self, statements, **variables)

    with Database(target) as database:
        monkeypatch.setattr(Database, "run", flaky)
        with pytest.raises(Interrupted):
            evaluate(database, Options([1, 3]), jobs=3)
        monkeypatch.undo()
    assert state(target)[0] == 0
    with Database(target) as database:
        assert len(resume(database).runs) == 4
