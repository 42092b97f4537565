"""Where the database is: flags before variables before the project file; secrets stay out of sight."""

from __future__ import annotations

from pathlib import Path

import pytest

from surrecall import UsageError, _settings
from surrecall._settings import ProjectFile, read_project_file, resolve


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in _settings._VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


ENTRIES = (
    "distance = 3",
    "dimension = 4.5",
    "pool = true",
    'adopted = "yes"',
    'text_indexes = "ft"',
    "vector_index = 7",
    "text = 1",
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_of_the_corpus_of_another_type(tmp_path: Path, entry: str) -> None:
    (tmp_path / "surrecall.toml").write_text(f'[corpus]\ntable = "t"\n{entry}\n')
    with pytest.raises(UsageError, match=rf"\[corpus\] {entry.partition(' ')[0]} is "):
        read_project_file(tmp_path)


def test_flags_win_over_variables_and_those_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    project = ProjectFile({"url": "ws://file", "namespace": "file", "database": "file"})
    monkeypatch.setenv("SURREAL_URL", "ws://variable")
    monkeypatch.setenv("SURREAL_NS", "variable")
    settings = resolve(project, url="ws://flag")
    assert (settings.url, settings.namespace, settings.database) == ("ws://flag", "variable", "file")


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("SURREAL_ENDPOINT", "url"),
        ("SURREAL_USERNAME", "user"),
        ("SURREAL_PASS", "password"),
        ("SURREAL_NAMESPACE", "namespace"),
        ("SURREAL_DATABASE", "database"),
    ],
)
def test_the_names_that_other_tools_use(monkeypatch: pytest.MonkeyPatch, variable: str, field: str) -> None:
    monkeypatch.setenv(variable, "ws://x")
    assert getattr(resolve(ProjectFile({"url": "ws://y"})), field) == "ws://x"


def test_a_password_is_in_no_repr() -> None:
    settings = resolve(ProjectFile(), url="ws://me:hush@host:1")
    assert (settings.url, settings.user, settings.password) == ("ws://host:1", "me", "hush")
    assert "hush" not in repr(settings)
    assert "hush" not in settings.label


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "://", "ws//x", "http://[::1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError):
        resolve(ProjectFile(), url=url)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("k = [5, 0]", "k is"),
        ("k = []", "k is"),
        ("k = 5", "k is"),
        ("k = [true]", "k is"),
        ("k = ['5']", "k is"),
        ("[database]\npassword = 'x'", "holds a login"),
        ("[database]\nhost = 'x'", "has 'host'"),
        ("database = 1", "has 'database'"),
        ("k = [", "can't be read"),
        ("prompt_k = 0", "prompt_k is 0"),
        ("pool_k = true", "pool_k is True"),
        ("prompt_k = '5'", "prompt_k is '5'"),
        ("prompt_k = 6\npool_k = 5", "prompt_k is 6, more than pool_k, 5"),
    ],
)
def test_a_project_file_that_makes_no_sense(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "surrecall.toml").write_text(content)
    with pytest.raises(UsageError) as caught:
        read_project_file(tmp_path)
    assert complaint in caught.value.message


def test_a_project_file(tmp_path: Path) -> None:
    assert read_project_file(tmp_path).cutoffs == (1, 3, 5)
    (tmp_path / "surrecall.toml").write_text("k = [20, 5, 5]\n[database]\nurl = 'surrealkv://data'\n")
    project = read_project_file(tmp_path)
    assert project.cutoffs == (5, 20)
    assert resolve(project).is_embedded
    assert (project.prompt_k, project.pool_k) == (None, None)
    (tmp_path / "surrecall.toml").write_text("prompt_k = 5\npool_k = 100\n")
    assert (read_project_file(tmp_path).prompt_k, read_project_file(tmp_path).pool_k) == (5, 100)
