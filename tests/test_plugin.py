"""The pytest plugin, from the built wheel, in a project of a user's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT

pytest_plugins = ["pytester"]

_DOCUMENTS = """id,title,body
reset,Reset your password,Use the link on the sign-in page to reset a forgotten password.
refund,Refunds,We return your money within five days of a cancelled order.
track,Track a parcel,The tracking number shows where your parcel is.
gift,Gift cards,A gift card is a voucher for somebody else.
"""
_QUESTIONS = """id,text,relevant
forgotten,forgotten password,reset
late,where is my parcel,track
money,how do I get reimbursed,refund
"""
_DOCS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "docs" / "pytest.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel holds, to be found before anything else."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("surrecall-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def project(pytester: pytest.Pytester, unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project for a table of its own, with a suite."""
    for name in [name for name in os.environ if name.startswith(("SURREAL_", "SURRECALL_", "PYTEST_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(unpacked))
    monkeypatch.setenv("SURRECALL_TEST_SERVER", "embedded")
    init = [sys.executable, "-m", "surrecall", "init", "--table", "note", "--field", "body"]
    subprocess.run(init, cwd=pytester.path, check=True, capture_output=True, timeout=60)
    pytester.path.joinpath("notes.csv").write_text(_DOCUMENTS)
    pytester.path.joinpath("questions.csv").write_text(_QUESTIONS)
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\n")
    return pytester


def test_the_page_on_it(project: pytest.Pytester) -> None:
    (suite,) = (text for kind, text in _DOCS if kind == "python")
    (shown,) = (text for kind, text in _DOCS if kind == "text")
    (cases,) = (text for kind, text in _DOCS if kind == "surql")
    project.makepyfile(test_search=suite)
    project.path.joinpath("cases.surql").write_text(cases)
    project.path.joinpath("rows.surql").write_text("CREATE note:a SET title = 'A', body = 'a valve opens';\n")
    done = project.runpytest_subprocess()
    done.assert_outcomes(passed=3, failed=1)
    assert shown in done.stdout.str() + "\n"


def test_an_assertion_that_fails_names_the_questions(project: pytest.Pytester, unpacked: Path) -> None:
    project.makepyfile(
        f"""
        import pytest
        import surrecall as package

        @pytest.fixture
        def loaded(surrecall):
            assert surrecall.import_documents("notes.csv") == 4
            assert surrecall.import_questions("questions.csv") == 3
            return surrecall

        def test_from_the_wheel():
            assert package.__file__.startswith({str(unpacked)!r})

        def test_holds(loaded):
            assert loaded.assert_recall("bm25", 3, at_least=0.6) == pytest.approx(2 / 3)
            loaded.assert_hit("bm25", 3, at_least=2 / 3)
            loaded.assert_mrr("bm25", 3, at_least=0.5)
            loaded.assert_ndcg("bm25", 3, at_least=0.5)

        def test_falls(loaded):
            loaded.assert_recall("bm25", 3, at_least=0.9)

        def test_what_is_not_measured_does_not_pass(loaded):
            with pytest.raises(package.UsageError, match="no retriever named bm52"):
                loaded.assert_recall("bm52", 3, at_least=0)

        def test_a_misspelt_metric_does_not_pass(loaded):
            loaded.assert_metric("recal", "bm25", 3, at_least=0)

        def test_databases_are_not_shared(surrecall):
            assert surrecall.database.value("SELECT VALUE id FROM note") == []
        """
    )
    done = project.runpytest_subprocess()
    done.assert_outcomes(passed=4, failed=2)
    done.stdout.fnmatch_lines(
        [
            "recall@3 of bm25: 0.667 is below the minimum of 0.9",
            "1 of 3 questions fell short:",
            "*question:money 'how do I get reimbursed' (0.000)",
            "*labels: note:refund not in the first 3",
            "*first: *",
            "recal@3 of bm25: no metric is named recal;*did you mean recall?",
        ]
    )


def test_cases_in_surql_files(project: pytest.Pytester) -> None:
    cases = project.mkdir("cases")
    cases.joinpath("rows.surql").write_text("CREATE note:a SET title = 'A', body = 'a valve opens';\n")
    cases.joinpath("search.surql").write_text(
        "-- case: what the search finds\n-- reason: it must find what it holds\n-- with: rows.surql\n-- database: shared\n\n"
        "-- expect: [note:a]\nRETURN fn::retrieve_bm25('valve', 5);\n"
        "-- expect: [note:b]\nRETURN fn::retrieve_bm25('valve', 5);\n"
        "-- expect error: k must be\nRETURN fn::retrieve_bm25('valve', 0);\n"
        "-- expect about: 0.333333\nRETURN 1f / 3;\n"
    )
    cases.joinpath("silent.surql").write_text("-- case: nothing\n-- reason: it would always pass\nRETURN 1;\n")
    # a file of the project is no case
    done = project.runpytest_subprocess("--continue-on-collection-errors")
    done.assert_outcomes(passed=3, failed=1, errors=1)
    done.stdout.fnmatch_lines(["*search.surql:8", "*gave *RecordID*'a'*not *RecordID*'b'*"])
    done.stdout.fnmatch_lines(["*silent.surql: expects nothing*"])
    project.makeini("[pytest]\nsurrecall_cases = false\n")
    assert project.runpytest_subprocess("cases").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_database_for_the_whole_session_and_a_project_elsewhere(project: pytest.Pytester) -> None:
    project.mkdir("search")
    for name in ("surrecall.toml", "surql"):
        project.path.joinpath(name).rename(project.path / "search" / name)
    project.makeini("[pytest]\nsurrecall_scope = session\nsurrecall_project = search\n")
    project.makepyfile(
        """
        def test_one(surrecall, surrecall_server):
            assert surrecall_server.is_embedded
            surrecall.database.run("CREATE note:a SET title = 'A', body = 'b'")

        def test_two(surrecall):
            assert surrecall.database.value("SELECT VALUE record::id(id) FROM note") == ["a"]
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=2)
    project.makeini("[pytest]\nsurrecall_scope = forever\n")
    project.runpytest_subprocess().stdout.fnmatch_lines(["*surrecall_scope is forever, none of function, class*"])


def test_a_demanded_server_that_is_not_there_is_no_green_run(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(surrecall):\n    pass\n")
    done = project.runpytest_subprocess("--surrecall-server", "url")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*SURRECALL_TEST_URL is not set*"])


def test_nothing_of_it_is_loaded_where_nobody_asks(project: pytest.Pytester) -> None:
    project.makepyfile("import sys\n\ndef test_it():\n    assert 'surrecall' not in sys.modules\n")
    project.runpytest_subprocess("--ignore=surql").assert_outcomes(passed=1)
