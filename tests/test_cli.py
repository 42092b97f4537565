"""The command line as a user meets it: output, JSON, errors with the next step, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from conftest import fresh_settings
from definitions import DEFINITIONS
from pytest_surrecall._servers import Server
from surrecall import Database, Settings, _seed
from surrecall._cli import _app, app, load
from templates import Templates

# in one process all of them are asked for
load()
COMMANDS = (
    "demo",
    "init",
    "apply",
    "seed",
    "serve",
    "import collection",
    "embed",
    "import snapshot",
    "import documents",
    "import questions",
    "import labels",
    "import run",
    "export questions",
    "export labels",
    "export run",
    "export history",
    "export documents",
    "export collection",
    "export contexts",
    "snapshot",
    "evaluate",
    "ingest-policy",
    "questions",
    "retrieve",
    "history",
    "compare",
    "blame",
    "trend",
    "curve",
    "prune",
    "sweep",
    "rerank",
    "triage",
    "draft",
    "judge",
    "audit",
    "whatif",
    "ann",
    "advise",
    "score",
    "pool",
    "label",
    "review",
    "gate",
    "baseline set",
    "baseline list",
    "baseline export",
    "watch",
    "check",
    "anchors",
    "chunk",
    "chunking add",
    "chunking list",
    "chunking remove",
    "explain",
    "misses",
    "report",
    "confirm",
    "split",
    "relabel",
    "bundle",
    "remove",
    "retriever add",
    "retriever list",
    "retriever remove",
    "retriever test",
)
CONNECTING = tuple(command for command in COMMANDS if command not in ("demo", "score", "bundle", "retriever list"))
# a folder without a project is said before a missing address
ASK_FOR_A_PROJECT = ("import collection", "retriever add", "retriever test", "whatif", "ann", "advise", "chunk")

Run = Callable[..., subprocess.CompletedProcess[str]]


def environment(env: dict[str, str] | None) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SURREAL_", "SURRECALL_"))}
    return clean | {"COLUMNS": "80", "NO_COLOR": "1"} | (env or {})


def in_a_process(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    command = [sys.executable, "-m", "surrecall", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment(env), timeout=60, check=False)


def surrecall(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None, answers: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which saves a second of start-up each time; `answers` are typed in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(os, "environ", environment(env))
        # a server that is down is down at once
        patch.setattr(_app, "_PATIENCE", 0.2)
        done = CliRunner().invoke(app, list(arguments), prog_name="surrecall", input=answers)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(list(arguments), done.exit_code, done.stdout, done.stderr)


@pytest.fixture
def target(pytestconfig: pytest.Config, engine: str, tmp_path: Path) -> Settings:
    """A database of its own that outlives a command: a folder, or one on the server."""
    if engine == "embedded":
        return Settings(f"surrealkv://{tmp_path / 'data'}")
    return fresh_settings(pytestconfig, engine)


@pytest.fixture
def run(target: Settings, tmp_path: Path) -> Run:
    """Run a command against that database."""
    env = {"SURREAL_URL": target.url, "SURREAL_NS": target.namespace, "SURREAL_DB": target.database}
    if target.user and target.password:
        env |= {"SURREAL_USER": target.user, "SURREAL_PASSWORD": target.password}
    folder = tmp_path / "here"
    folder.mkdir()

    def ran(*arguments: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = surrecall(*arguments, cwd=folder, env=env | more)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return ran


@pytest.fixture
def seeded(run: Run, target: Settings, templates: Templates) -> Run:
    """A database with the help centre in it, put there by the library, which takes a fraction of two commands."""
    if target.is_embedded:
        templates.place(Path(target.url.removeprefix("surrealkv://")), seeded=True)
        return run
    with Database(target) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
    return run


def test_from_apply_to_history(run: Run) -> None:
    assert "functions and" in run("apply").stdout
    assert run("seed").stdout == "seeded 10 articles and 8 questions\n"
    table = run("evaluate", "-k", "1,3,5").stdout
    for line in ("bm25       1   0.438", "vector     3   0.875", "hybrid     5   0.958"):
        assert line in table
    assert "8 questions of the set default, 10 documents, complete, evaluation:" in table
    rows = json.loads(run("history", "--json").stdout)
    assert len(rows) == 9
    assert run("check").stdout == "all is well\n"


def test_apply_and_seed_twice_change_nothing(seeded: Run) -> None:
    seeded("apply")
    assert seeded("seed").stdout == "nothing seeded: there are 10 articles and 8 questions already\n"
    assert seeded("check").stdout == "all is well\n"


def test_evaluate_as_json(seeded: Run) -> None:
    told = json.loads(seeded("evaluate", "-k", "3", "--retriever", "hybrid", "--note", "n", "--trigger", "ci", "--json").stdout)
    assert told["row"]["status"] == "complete"
    assert told["row"]["note"] == "n"
    assert told["row"]["trigger"] == "ci"
    assert told["warnings"] == []
    ((row),) = told["runs"]
    assert round(row["recall"], 3) == 0.833
    assert row["retriever"] == "hybrid"


def test_questions(seeded: Run) -> None:
    shown = seeded("questions").stdout
    assert "how do I get my money back" in shown
    assert "refund_request" in shown
    assert shown.endswith("8 questions\n")
    rows = json.loads(seeded("questions", "--json").stdout)
    assert {row["id"]: row["relevant"] for row in rows}["question:rate_limit"] == ["article:api_rate_limits"]
    assert seeded("questions", "--set", "other").stdout == "0 questions\nthere are the sets default\n"


def test_retrieve_a_question_by_id_by_text_and_free_text(seeded: Run) -> None:
    for asked in ("money_back", "how do I get my money back"):
        rows = json.loads(seeded("retrieve", "bm25", asked, "-k", "3", "--json").stdout)
        assert [row["id"] for row in rows] == ["article:return_item", "article:track_order", "article:api_rate_limits"]
        assert [round(row["score"], 2) for row in rows] == [2.46, 1.27, 1.15]
        assert not any(row["relevant"] for row in rows)
    shown = seeded("retrieve", "hybrid", "rate_limit", "-k", "3").stdout
    assert ["3", "api_rate_limits", "0.031", "API", "rate", "limits", "and", "429", "errors", "yes"] in [
        line.split() for line in shown.splitlines()
    ]
    free = json.loads(seeded("retrieve", "vector", "anything", "-k", "1", "--vector", "[0, 1, 0, 0]", "--json").stdout)
    assert free[0]["id"] == "article:payment_method"
    assert seeded("retrieve", "bm25", "zeppelin").stdout == "nothing came back\n"


def test_history_filters_and_limits(seeded: Run) -> None:
    assert "no run yet; next: surrecall evaluate" in seeded("history").stdout
    seeded("evaluate", "-k", "1,3")
    seeded("evaluate", "-k", "3")
    assert len(json.loads(seeded("history", "-r", "bm25", "-k", "3", "--json").stdout)) == 2
    newest = json.loads(seeded("history", "--limit", "1", "--json").stdout)
    assert (newest[0]["retriever"], newest[0]["k"], newest[0]["seq"]) == ("hybrid", 3, 9)


def test_tables_read_well_at_80_columns(seeded: Run) -> None:
    seeded("evaluate", "-k", "1,3,5", "--note", "a note")
    for arguments in (["history"], ["questions"], ["evaluate"], ["retrieve", "hybrid", "money_back"]):
        lines = seeded(*arguments).stdout.splitlines()
        assert max(len(line) for line in lines[:-1]) <= 80, arguments


def test_check_tells_schema_from_data(seeded: Run, target: Settings) -> None:
    with Database(target) as database:
        database.run("CREATE article:bare SET title = 'x', content = 'x'")
    told = seeded("check", code=4).stdout
    assert "article:bare" in told
    with Database(target) as database:
        database.run("REMOVE FUNCTION fn::rr")
    rows = json.loads(seeded("check", "--json", code=3).stdout)
    assert {"kind": "schema", "subject": "fn::rr", "problem": "is missing", "next": "surrecall apply"} in rows


def test_check_before_apply(run: Run, target: Settings) -> None:
    Database(target).close()
    assert run("check", code=3).stdout.split()[3:] == ["surrecall", "is", "not", "in", "this", "database", "surrecall", "apply"]


@pytest.mark.parametrize("command", [("evaluate",), ("questions",), ("history",), ("seed",), ("retrieve", "bm25", "x")])
def test_before_apply_every_command_says_so(run: Run, target: Settings, command: tuple[str, ...]) -> None:
    Database(target).close()
    done = run(*command, code=3)
    assert "next: surrecall apply" in done.stderr


@pytest.mark.parametrize("k", ["0", "-1", "2.5", "five", "1,,3", "٣", ""])
def test_a_cutoff_that_is_none_is_usage(seeded: Run, k: str) -> None:
    for arguments in (["evaluate", f"-k={k}"], ["retrieve", "bm25", "signin", f"-k={k}"]):
        done = seeded(*arguments, code=2)
        assert "k must be a whole number from 1 to 1000000, got" in done.stderr
    assert "no run yet" in seeded("history").stdout


def test_an_unknown_retriever_lists_those_that_exist(seeded: Run) -> None:
    for arguments in (["evaluate", "-r", "bm26"], ["retrieve", "bm26", "signin"]):
        done = seeded(*arguments, code=2)
        assert "error: no retriever named bm26" in done.stderr
        assert "bm25, vector, hybrid" in done.stderr


def test_an_unknown_command_is_usage(tmp_path: Path) -> None:
    done = surrecall("evaluat", cwd=tmp_path)
    assert done.returncode == 2
    assert "evaluate" in done.stderr


def test_an_empty_golden_set_is_bad_data(run: Run) -> None:
    run("apply")
    done = run("evaluate", code=4)
    assert "no question in the golden set default" in done.stderr
    assert "next: " in done.stderr
    assert "no run yet" in run("history").stdout


def test_a_missing_index_is_a_fault_of_the_schema(seeded: Run, target: Settings) -> None:
    with Database(target) as database:
        database.run("REMOVE INDEX article_embedding ON article")
    done = seeded("evaluate", code=3)
    assert "index article_embedding on article is missing" in done.stderr
    assert "surrecall apply" in done.stderr
    assert "no run yet" in seeded("history").stdout


def test_a_question_that_fails_ends_with_4_and_is_shown(seeded: Run, target: Settings) -> None:
    with Database(target) as database:
        database.run("UPDATE question:signin SET embedding = NONE")
    done = seeded("evaluate", "-k", "3", code=4)
    assert "errors" in done.stdout
    assert "warning: vector: failed on 1 of 8 questions, first on question:signin" in done.stderr


@pytest.mark.parametrize("vector", ["[1, 2]", "[0, 0, 0, 0]", "[NaN, 0, 0, 0]"])
def test_a_vector_that_is_none_of_this_corpus(seeded: Run, vector: str) -> None:
    done = seeded("retrieve", "vector", "x", "--vector", vector, code=4)
    assert "a vector of " in done.stderr


def test_a_vector_that_is_no_list(seeded: Run) -> None:
    assert "--vector is no list of numbers" in seeded("retrieve", "vector", "x", "--vector", "abc", code=2).stderr


def test_a_server_that_is_down(tmp_path: Path) -> None:
    for url in ("ws://127.0.0.1:9", "http://127.0.0.1:9"):
        done = surrecall("evaluate", "--url", url, "--user", "root", "--password", "top-secret", cwd=tmp_path)
        assert done.returncode == 3
        assert f"no database answers at {url}" in done.stderr
        assert "next: start one" in done.stderr
        assert "top-secret" not in done.stderr


def test_a_wrong_password(server: Server, tmp_path: Path) -> None:
    if server.is_embedded:
        # the embedded engine has no login to get wrong; a login given to it is simply not needed
        assert surrecall("apply", "--url", "mem://", "--user", "x", "--password", "y", cwd=tmp_path).returncode == 0
        return
    for url in (server.url, server.url.replace("ws://", "http://")):
        done = surrecall("history", "--url", url, "--user", "root", "--password", "top-secret", cwd=tmp_path)
        assert done.returncode == 3
        assert f"{url} refuses the login of root" in done.stderr
        assert "next: check --user and --password" in done.stderr
        assert "top-secret" not in done.stdout + done.stderr


def test_no_login_where_one_is_needed(server: Server, tmp_path: Path) -> None:
    if server.is_embedded:
        assert surrecall("apply", "--url", "mem://", cwd=tmp_path).returncode == 0
        return
    done = surrecall("apply", "--url", server.url, cwd=tmp_path)
    assert done.returncode == 3
    assert "SURREAL_USER" in done.stderr


def test_a_user_without_a_password(tmp_path: Path) -> None:
    done = surrecall("history", "--url", "ws://127.0.0.1:9", "--user", "root", cwd=tmp_path)
    assert "SURREAL_PASSWORD" in done.stderr


def test_a_login_in_the_address_is_never_shown(tmp_path: Path) -> None:
    done = surrecall("history", "--url", "ws://root:top-secret@127.0.0.1:9", cwd=tmp_path)
    assert done.returncode == 3
    assert "ws://127.0.0.1:9" in done.stderr
    assert "top-secret" not in done.stderr
    bad = surrecall("history", "--url", "ftp://root:top-secret@127.0.0.1:9", cwd=tmp_path)
    assert bad.returncode == 2
    assert "top-secret" not in bad.stderr


def test_no_database_named_is_usage(tmp_path: Path) -> None:
    for command in CONNECTING:
        if command.startswith("import ") or command in ASK_FOR_A_PROJECT:
            continue
        given = {
            "retrieve": ["bm25", "x"],
            "compare": ["bm25", "hybrid"],
            "blame": ["a", "b"],
            "prune": ["--keep-days", "90"],
            "relabel": ["x", "y", "--remove"],
            "explain": ["x"],
            "chunking add": ["x"],
            "chunking remove": ["x"],
            "draft": ["-m", "x"],
            "judge": ["-m", "x"],
            "label": ["--out", "x.csv"],
            "review": [],
            "sweep": ["fn::f($x)", "--x", "1"],
            "init": ["--adopt"],
            "retriever remove": ["x"],
            "rerank": ["bm25", "--name", "x", "--scores", "x"],
            "triage": ["x", "--expected", "x"],
            "snapshot": ["x"],
            "ingest-policy": ["article"],
            "export run": ["x", "-r", "bm25"],
            "baseline set": ["x"],
            "baseline export": ["x"],
        }
        arguments = [*command.split(), *given.get(command, ["x"] if command.startswith("export ") else [])]
        done = surrecall(*arguments, cwd=tmp_path)
        assert done.returncode == 2, command
        assert "no database is named" in done.stderr
        assert "--url" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, tmp_path: Path) -> None:
    done = surrecall(*command.split(), "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert re.search(f"Examples?: surrecall {command}", " ".join(done.stdout.split()))
    if command not in ("bundle", "serve"):
        assert "--json" in done.stdout
    for option in ("--url", "--user", "--password", "--ns", "--db"):
        assert (option in done.stdout) == (command in CONNECTING)


def test_the_commands_are_those_of_the_documentation(tmp_path: Path) -> None:
    listed = surrecall("--help", cwd=tmp_path).stdout
    root = Path(__file__).parents[1]
    pages = "".join(path.read_text(encoding="utf-8") for path in (root / "README.md", *sorted((root / "docs").glob("*.md"))))
    for command in COMMANDS:
        assert command.split()[0] in listed
        assert f"surrecall {command}" in pages
    assert sorted(COMMANDS) == sorted(_registered(app))


def _registered(group: typer.Typer, before: str = "") -> list[str]:
    """Every command of a group, and of the groups in it."""
    own = [f"{before}{command.name}" for command in group.registered_commands]
    return own + [
        name
        for inner in group.registered_groups
        if inner.typer_instance is not None
        for name in _registered(inner.typer_instance, f"{before}{inner.name} ")
    ]


def test_the_script_and_the_module_are_the_same(tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "surrecall"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == in_a_process("--version", cwd=tmp_path).stdout != ""


def test_demo_in_under_ten_seconds_ends_with_the_history_and_what_next(tmp_path: Path) -> None:
    began = time.monotonic()
    done = in_a_process("demo", cwd=tmp_path)
    assert time.monotonic() - began < 10
    assert done.returncode == 0
    assert done.stderr == ""
    text = done.stdout
    for expected in ("1. The golden set", "API rate limits and 429 errors", "0.771", "2.460", "money_back", "0.646"):
        assert expected in text
    tail = text[text.index("10. The history") :]
    assert tail.count("hybrid+floor") == 3
    assert "Next: surrecall apply" in tail
    assert "On a server: " in tail
    assert max(len(line) for line in text.splitlines()) <= 80
    assert list(tmp_path.iterdir()) == []


def test_demo_ignores_the_project_it_is_called_in(tmp_path: Path) -> None:
    (tmp_path / "surql/corpus").mkdir(parents=True)
    (tmp_path / "surql/corpus/mine.surql").write_text("THROW 'mine'")
    assert surrecall("demo", cwd=tmp_path).returncode == 0


def test_demo_as_json(tmp_path: Path) -> None:
    shown: list[dict[str, Any]] = json.loads(surrecall("demo", "--json", cwd=tmp_path).stdout)
    assert [step["step"] for step in shown] == list(range(1, 11))
    assert shown[3]["results"] == [
        [
            {"bm25": 0.438, "hybrid": 0.479, "k": 1, "vector": 0.667},
            {"bm25": 0.771, "hybrid": 0.833, "k": 3, "vector": 0.875},
            {"bm25": 0.833, "hybrid": 0.958, "k": 5, "vector": 0.875},
        ]
    ]


def test_bundle_to_a_file_and_to_a_pipe(tmp_path: Path) -> None:
    piped = surrecall("bundle", cwd=tmp_path).stdout
    assert surrecall("bundle", "-o", "all.surql", cwd=tmp_path).stdout == "wrote all.surql\n"
    assert (tmp_path / "all.surql").read_text(encoding="utf-8") == piped
    assert piped.startswith("OPTION IMPORT;")
    done = surrecall("bundle", "-o", "no/such/folder/all.surql", cwd=tmp_path)
    assert done.returncode == 2
    assert "can't be written" in done.stderr


def test_control_characters_never_reach_the_terminal(seeded: Run, target: Settings) -> None:
    with Database(target) as database:
        database.run(
            "CREATE question:evil SET text = $text, relevant = [article:gift_card]",
            text="\x1b[31mred\x07 [bold]x[/bold]",
        )
    shown = seeded("questions").stdout
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]x[/bold]" in shown


def test_no_figure_is_cut_where_the_terminal_is_narrow(seeded: Run) -> None:
    seeded("evaluate", "-k", "1,3", "-r", "bm25")
    whole = json.loads(seeded("history", "--json", "-k", "3").stdout)[0]
    shown = seeded("history", COLUMNS="40").stdout.splitlines()
    assert shown[0].split() == ["at", "retriever", "k", "recall", "rr", "ndcg", "median", "95th", "questions"]
    assert [line.split()[2:6] for line in shown[1:3]] == [
        ["bm25", "3", f"{whole['recall']:.3f}", f"{whole['rr']:.3f}"],
        ["bm25", "1", *shown[2].split()[4:6]],
    ]


def test_a_folder_that_holds_no_database_is_not_made_by_a_typo(tmp_path: Path) -> None:
    done = surrecall("history", "--url", "surrealkv://nix.db", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no database in the folder nix.db" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_free_text_without_a_vector_is_told_from_a_question(seeded: Run) -> None:
    done = seeded("retrieve", "hybrid", "nope", code=4)
    assert "no question has the id or text 'nope', and free text has no vector for hybrid" in done.stderr
    rows = json.loads(seeded("retrieve", "bm25", "gift", "--json").stdout)
    assert rows
    assert {row["relevant"] for row in rows} == {None}


def test_one_k_for_retrieve(seeded: Run) -> None:
    assert "one k belongs here" in seeded("retrieve", "bm25", "signin", "-k", "3,5", code=2).stderr


def test_history_of_something_that_was_never_run(seeded: Run) -> None:
    seeded("evaluate", "-k", "3")
    shown = seeded("history", "-r", "nosuch").stdout
    assert shown == "no such run; there are runs of bm25, hybrid, vector at 3, of the sets default\n"
    seeded("evaluate", "-k", "3")
    assert "the newest 2 of 6 runs; --limit 6 shows all" in seeded("history", "--limit", "2").stdout


def test_a_trigger_that_is_none(seeded: Run) -> None:
    assert "manual" in seeded("evaluate", "--trigger", "cron", code=2).stderr


def test_names_and_figures_stay_whole_beside_errors(seeded: Run, target: Settings) -> None:
    with Database(target) as database:
        database.run("UPDATE question:signin SET embedding = NONE")
    shown = seeded("evaluate", "-k", "1,3", code=4).stdout
    assert "vector     1   0.714" in shown
    assert "retriever  k  questions  empty  errors  repeats" in shown
    assert max(len(line) for line in shown.splitlines()[:-1]) <= 80
    told = seeded("check", code=4).stdout
    assert "the newest, failed on 2" in " ".join(told.split())


def test_over_http(seeded: Run, target: Settings) -> None:
    if target.is_embedded:
        # nothing listens there: the address given wins over the folder, and says so
        done = seeded("evaluate", "-k", "3", "--url", "http://127.0.0.1:9", code=3)
        assert "no database answers at http://127.0.0.1:9" in done.stderr
        return
    address = target.url.replace("ws://", "http://")
    shown = seeded("evaluate", "-k", "3", "--jobs", "2", "--url", address).stdout
    assert "hybrid     3   0.833" in shown
    assert seeded("check", "--url", address).stdout == "all is well\n"


def test_resume_takes_nothing_else(seeded: Run) -> None:
    assert "--resume goes on with what was asked then" in seeded("evaluate", "--resume", "-k", "3", code=2).stderr
    assert "no evaluation is unfinished" in seeded("evaluate", "--resume", code=2).stderr


def test_an_id_is_no_code_of_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    _app._console().print("question:b: of the set :fire:", markup=False, highlight=False)
    assert capsys.readouterr().out == "question:b: of the set :fire:\n"
