"""Every block of the README is run, and what it shows is what comes out."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import tomllib
from pathlib import Path

import pytest

import foreign
import three_kinds
from conftest import ROOT
from endpoints import Endpoint
from surrecall import Database, Options, Settings, _retrievers, _settings, evaluate
from test_cli import target  # noqa: F401
from test_collection import write

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SHELL = [text for kind, text in BLOCKS if kind == "sh"]
SET_UP = [text for text in SHELL if "pip install" in text]
COMPOSE = [text for text in SHELL if "docker-compose" in text]
COLLECTION = [text for text in SHELL if "import collection" in text]
EMBEDDING = [text for text in SHELL if text.startswith("export") and "surrecall embed --embedder hashing --all" in text]
IMPORTS = [text for text in SHELL if "import documents" in text]
ADOPTION = [text for text in SHELL if "init --adopt" in text]
COMPARE = [text for text in SHELL if "surrecall compare" in text]
CURVE = [text for text in SHELL if "surrecall curve" in text]
SWEEP = [text for text in SHELL if "surrecall sweep" in text]
DIAGNOSIS = [text for text in SHELL if "surrecall explain" in text]
EXPORT = [text for text in SHELL if "surrecall export" in text]
_RUN_APART = SET_UP + COMPOSE + COLLECTION + EMBEDDING + IMPORTS + EXPORT + ADOPTION + COMPARE + CURVE + SWEEP + DIAGNOSIS
COMMANDS = [text for text in SHELL if text not in _RUN_APART]


def shell(script: str, cwd: Path, **variables: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SURREAL_", "SURRECALL_", "PYTEST_"))}
    environment = clean | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "80"} | variables
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this repository, as a clone would have them."""
    folder = tmp_path_factory.mktemp("clone") / "surrecall"
    ignore = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "dist", "*.egg-info")
    shutil.copytree(ROOT, folder, ignore=ignore)
    return folder


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "surql", "toml", "text", "python", "yaml"}
    groups = (SET_UP, COMPOSE, COLLECTION, EMBEDDING, IMPORTS, EXPORT, ADOPTION, COMPARE, CURVE, SWEEP, DIAGNOSIS, COMMANDS)
    assert [len(group) for group in groups] == [2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]


def test_the_first_command_installs_and_runs_the_demo(checkout: Path) -> None:
    shown = shell(SET_UP[0], checkout)
    assert "10. The history" in shown
    assert "Next: surrecall apply" in shown


def test_the_second_command_is_the_gate_s() -> None:
    # the whole suite by this very command, in a clean environment, is what .ci/run runs
    assert SET_UP[1].strip() in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_commands_in_a_folder(tmp_path: Path) -> None:
    shown = shell(COMMANDS[0], tmp_path)
    table = next(text for kind, text in BLOCKS if kind == "text" and text.startswith("retriever"))
    assert table in shown
    assert "seeded 10 articles and 8 questions" in shown
    assert "all is well" in shown


def test_the_steps_of_the_workflow(tmp_path: Path) -> None:
    """What its steps run, in a project with files as it names them, over a folder in the place of the service."""
    (workflow,) = (text for kind, text in BLOCKS if kind == "yaml")
    steps = [
        textwrap.dedent(text)
        for text in re.findall(r"^ +run: \|\n((?: {10,}.*\n)+)", workflow.replace("- run:", "  run:"), re.MULTILINE)
    ]
    assert len(steps) == 2
    (tmp_path / "data").mkdir()
    documents = (
        '{"id": "d1", "title": "Valves", "text": "a valve opens"}\n{"id": "d2", "title": "Pipes", "text": "a pipe is laid"}\n'
    )
    (tmp_path / "data" / "documents.jsonl").write_text(documents)
    (tmp_path / "data" / "questions.jsonl").write_text('{"id": "q1", "text": "valve", "relevant": ["d1"]}\n')
    here = {"SURREAL_URL": "surrealkv://recall.db", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    shell("surrecall init --table note --field text", tmp_path)
    shell(steps[0], tmp_path, **here)
    propose = "surrecall evaluate && surrecall gate --propose && surrecall apply && surrecall baseline set main"
    shell(f"{propose} && surrecall baseline export baseline.json main", tmp_path, **here)
    shell(steps[1], tmp_path, **here)
    assert "### ✅ surrecall gate" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    with Database(Settings(f"surrealkv://{tmp_path / 'recall.db'}")) as database:
        database.run("UPDATE note:d1 SET text = 'gone', title = 'gone'")
    with pytest.raises(AssertionError):
        shell(steps[1], tmp_path, **here)
    assert "### ❌ surrecall gate" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "<failure" in (tmp_path / "gate.xml").read_text(encoding="utf-8")


def test_the_commands_for_a_collection(tmp_path: Path) -> None:
    here = tmp_path / "papers"
    here.mkdir()
    write(tmp_path / "scifact", dimension=384)
    shown = shell(COLLECTION[0], here)
    assert "imported 11 documents, 11 questions, 11 labels" in shown
    assert re.search(r"^hybrid +100 ", shown, re.MULTILINE)


def test_the_commands_that_embed(tmp_path: Path) -> None:
    shown = shell(EMBEDDING[0], tmp_path)
    assert "embedded 8 questions and 10 documents with hashing-1, 4 numbers each" in shown
    assert re.search(r"^vector +3 ", shown, re.MULTILINE)
    assert "nothing to embed: 8 questions and 10 documents have their vectors" in shown


def test_the_commands_that_bring_data_in(tmp_path: Path) -> None:
    files = {
        "docs.jsonl": '{"id": "d1", "text": "one"}\n{"id": 2, "text": "two"}\n',
        "queries.jsonl": '{"_id": "q1", "text": "which one"}\n',
        "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
        "sheet.csv": "id,text,relevant,kind\nq2,which two,2|d1,numbers\n",
        "more.trec": "q1 0 2 2\n",
        "outside.trec": "q1 Q0 2 1 1.5 outside\nq2 Q0 d1 1 0.5 outside\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    shown = shell(IMPORTS[0], tmp_path).splitlines()
    assert [line for line in shown if re.match("(would import|imported) ", line)] == [
        "imported 2 documents, 0 with a vector",
        "imported 1 question, 1 label",
        "imported 1 question, 2 labels",
        "would import 1 label, for 1 question",
        "imported 1 label, for 1 question",
        "imported 2 lines, 2 of 2 questions answered",
    ]
    assert any(re.match(r"outside +10 +0\.500", line) for line in shown)


def test_the_five_minutes_for_a_database_that_is_there(target: Settings, tmp_path: Path) -> None:  # noqa: F811
    """Word for word, but for the address."""
    with Database(target) as database:
        foreign.build(database)
        database.run(
            "DEFINE FUNCTION fn::shop_search($query: string, $limit: int, $language: string) { RETURN fn::find($query, $limit) };"
        )
        before = foreign.state(database)
    (sheet,) = [text for kind, text in BLOCKS if kind == "text" and text.startswith("id,text,relevant,kind")]
    header, row = sheet.splitlines()
    assert row.endswith(",d17|d52,factual")
    (tmp_path / "questions.csv").write_text(f"{header}\n{row.replace('d17|d52', '17|a b/3')}\nfruit,kiwi mango,11,\n")
    first, *commands = ADOPTION[0].splitlines(keepends=True)
    assert first.startswith("export SURREAL_URL=ws://127.0.0.1:8000 SURREAL_NS=shop SURREAL_DB=shop SURREAL_USER=root ")
    endpoint = Endpoint(4)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    login = {"SURREAL_USER": target.user, "SURREAL_PASSWORD": target.password} if target.user else {}
    where = {"SURREAL_URL": target.url, "SURREAL_NS": target.namespace, "SURREAL_DB": target.database} | login
    where["OPENAI_BASE_URL"] = endpoint.url
    shown = shell("".join(commands), tmp_path, **{key: str(value) for key, value in where.items()})
    for line in (
        "found table my-papers, 40 rows",
        "found fn::find searches it: retriever find",
        "imported 2 questions, 3 labels",
        "added shop to surql/corpus/retrievers.toml and to the database",
        "2 questions of the set default, 40 documents, complete",
    ):
        assert line in shown, shown
    for name in ("bm25", "vector", "hybrid", "find", "shop"):
        assert re.search(rf"^{name} +20 ", shown, re.MULTILINE), name
    shell("surrecall check && surrecall remove --yes", tmp_path, **{key: str(value) for key, value in where.items()})
    with Database(target) as database:
        assert foreign.state(database) == before


def test_the_commands_that_take_data_out(tmp_path: Path) -> None:
    before = "surrecall apply && surrecall seed && surrecall evaluate -k 1,3,5\n"
    after = "export SURREAL_URL=surrealkv://copy.db && surrecall evaluate -k 1,3,5 && surrecall export collection ./again\n"
    shown = shell(before + EXPORT[0] + after + "diff -r centre again", tmp_path, SURREAL_URL="surrealkv://recall.db")
    assert "loaded 10 documents and 8 questions, equal to their source" in shown
    # the figures of the copy are those of the source
    tables = re.findall(r"^(?:retriever +k +recall +hit .*\n)(?:\w+ +\d.*\n){9}", shown, re.MULTILINE)
    assert len(tables) == 2
    assert tables[0] == tables[1]


def test_the_commands_that_compare(tmp_path: Path) -> None:
    before = "surrecall apply && surrecall seed && surrecall evaluate -k 1,3,5\n"
    shown = shell(before + COMPARE[0], tmp_path, SURREAL_URL="surrealkv://recall.db")
    # a title is filled up with blanks
    lines = "\n".join(line.rstrip() for line in shown.splitlines())
    (printed,) = [text for kind, text in BLOCKS if kind == "text" and text.startswith("recall@1")]
    # what took how long, and which evaluation it is of, stand between
    for paragraph in printed.strip().split("\n\n"):
        assert paragraph in lines
    assert re.search(r"^side +asked for +median +95th +tokens\nbm25 +\d+ +[\d.]+ +[\d.]+ +\d+\n", lines, re.MULTILINE)
    assert "bm25 and vector cannot be told apart on 8 questions" in lines
    assert re.search(r"hybrid in evaluation:\w+ and hybrid in evaluation:\w+ cannot be told apart on 8 questions", lines)


def test_the_commands_for_k_and_kind(tmp_path: Path) -> None:
    before = "surrecall apply && surrecall seed && surrecall evaluate -k 1,3,5\n"
    shown = shell(before + CURVE[0], tmp_path, SURREAL_URL="surrealkv://recall.db")
    assert "recall@k   b bm25  v vector  h hybrid" in shown
    assert "hybrid: a reranker could gain up to 0.312 in recall@1, from 0.479 to 0.792, by what is found at 5" in shown
    assert re.search(r"^hybrid +3 +human +8 +0\.833", shown, re.MULTILINE)
    assert re.search(r"hybrid +3 +\(none\) +8 +0\.833", shown)


def test_the_class_that_the_mean_hides(tmp_path: Path) -> None:
    (printed,) = [text for kind, text in BLOCKS if kind == "text" and "below its mean" in text]
    shell("surrecall apply", tmp_path, SURREAL_URL="surrealkv://kinds.db")
    with Database(Settings(f"surrealkv://{tmp_path / 'kinds.db'}")) as database:
        three_kinds.seed(database)
    command = "surrecall evaluate -k 5 -r bm25 -r vector --by kind"
    assert f"`{command}`" in README
    shown = shell(command, tmp_path, SURREAL_URL="surrealkv://kinds.db")
    assert "\n".join(line.rstrip() for line in shown.splitlines()).startswith(printed)


def test_the_command_that_sweeps(tmp_path: Path) -> None:
    shown = shell("surrecall apply && surrecall seed\n" + SWEEP[0], tmp_path, SURREAL_URL="surrealkv://recall.db")
    lines = "\n".join(line.rstrip() for line in shown.splitlines())
    (printed,) = [text for kind, text in BLOCKS if kind == "text" and text.startswith("at k = 3")]
    # what took how long stands between
    for paragraph in printed.strip().split("\n\n"):
        assert paragraph in lines
    assert re.search(r"^x +median +95th\n0 +[\d.]+ +[\d.]+\n", lines, re.MULTILINE)


def test_the_commands_that_say_why(tmp_path: Path) -> None:
    before = "surrecall apply && surrecall seed && surrecall evaluate -k 1,3,5\n"
    shown = shell(before + DIAGNOSIS[0], tmp_path, SURREAL_URL="surrealkv://recall.db")
    assert re.search(r"^refund_request +1 +- +1 +4 +ranking", shown, re.MULTILINE)
    assert re.search(r"^ranking +3 +2 +hybrid-weights", shown, re.MULTILINE)


def test_the_table_of_the_demo() -> None:
    from test_figures import PUBLISHED

    rows = re.findall(r"^\| (\d) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", README, re.MULTILINE)
    assert [row[0] for row in rows] == ["1", "3", "5"]
    for k, *figures in rows:
        for name, figure in zip(("bm25", "vector", "hybrid"), figures, strict=False):
            assert float(figure) == pytest.approx(PUBLISHED["recall"][name][k], abs=5.1e-4)


def test_the_floor_of_that_table(help_centre: Database) -> None:
    rows = re.findall(r"^\| (\d) \| \S+ \| \S+ \| \S+ \| (\S+) \|$", README, re.MULTILINE)
    assert [float(figure) for _, figure in rows] == [
        help_centre.value("RETURN fn::evaluate_floor($k, 1.5).recall", k=int(k)) for k, _ in rows
    ]


def test_the_statements(help_centre: Database) -> None:
    (statements,) = [text for kind, text in BLOCKS if kind == "surql"]
    evaluate(help_centre, Options([3]))
    results = help_centre.run(statements)
    assert results[0] == {"k": 3, "bm25": 0.771, "vector": 0.875, "hybrid": 0.833}
    assert results[2]["rr"] == 0.5
    assert len(results[3]) == 9
    trend = {row["retriever"]: row["recall"] for row in results[5]}
    assert round(trend["hybrid"], 3) == 0.833
    assert sorted(row["text"] for row in results[7]) == ["I can't get into my account", "how do I get my money back"]
    assert results[8][0]["answerable"] is True


def test_the_python_block(tmp_path: Path) -> None:
    (script,) = [text for kind, text in BLOCKS if kind == "python"]
    shell("surrecall apply && surrecall seed", tmp_path, SURREAL_URL="surrealkv://recall.db")
    (tmp_path / "script.py").write_text(script)
    assert ast.literal_eval(shell("python script.py", tmp_path)) == {"k": 3, "bm25": 0.771, "vector": 0.875, "hybrid": 0.833}


def test_the_toml_blocks(tmp_path: Path) -> None:
    project, registry = [text for kind, text in BLOCKS if kind == "toml"]
    (tmp_path / "surrecall.toml").write_text(project)
    assert _settings.read_project_file(tmp_path).database == tomllib.loads(project)["database"]
    shipped = _retrievers.parse((ROOT / "surql/corpus/retrievers.toml").read_text())
    (printed,) = _retrievers.parse(registry)
    # its stages are told of in docs/diagnosis.md
    assert printed in [dataclasses.replace(one, stages=()) for one in shipped]


def test_the_folders_it_names_exist() -> None:
    (layout,) = [text for kind, text in BLOCKS if kind == "text" and text.startswith("surql/")]
    for line in layout.splitlines():
        assert (ROOT / line.split()[0]).is_dir()


def test_the_documentation_shows_what_explain_and_misses_print(tmp_path: Path) -> None:
    before = "surrecall apply && surrecall seed && surrecall evaluate -k 3,10\n"
    commands = next(text for text in SHELL if "surrecall explain" in text)
    shown = shell(before + commands, tmp_path, SURREAL_URL="surrealkv://recall.db")
    printed = {line.rstrip() for line in shown.splitlines()}
    page = (ROOT / "docs/diagnosis.md").read_text(encoding="utf-8")
    documented = [line for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) for line in block.splitlines() if line]
    assert len(documented) > 15
    assert [line for line in documented if line not in printed] == []
