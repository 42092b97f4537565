"""The pytest plugin: a throwaway SurrealDB, the project applied to it, assertions on retrieval, and cases in .surql files.

It is loaded by every pytest in whose environment surrecall is installed, so nothing heavy is imported before it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_surrecall._cases import CaseFile
    from pytest_surrecall._project import Project
    from pytest_surrecall._servers import Server

__all__ = ["surrecall", "surrecall_server"]

_SCOPES = ("function", "class", "module", "package", "session")
_KINDS = ("url", "container", "binary", "embedded")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("surrecall")
    group.addoption(
        "--surrecall-server",
        choices=_KINDS,
        help="Where the throwaway SurrealDB comes from; else SURRECALL_TEST_SERVER, else the first of these that can be had.",
    )
    parser.addini("surrecall_project", "Folder of the project: surrecall.toml and surql/corpus; the rootdir by default.")
    parser.addini("surrecall_scope", f"How long the fixture surrecall lives: {', '.join(_SCOPES)}.", default="function")
    parser.addini("surrecall_cases", "Whether .surql files that begin with '-- case:' are collected.", type="bool", default=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    # not before something was started: nothing of it is imported then
    servers = sys.modules.get("pytest_surrecall._servers")
    if servers is not None:
        servers.stop(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    if file_path.suffix != ".surql" or not parent.config.getini("surrecall_cases"):
        return None
    from pytest_surrecall import _cases

    return _cases.CaseFile.from_parent(parent, path=file_path) if _cases.is_case(file_path) else None


@pytest.fixture(scope="session")
def surrecall_server(pytestconfig: pytest.Config) -> Server:
    """A SurrealDB that is gone afterwards: `kind`, `url`, `user`, `password`, and `settings(namespace, database)`.

    An address in SURRECALL_TEST_URL, a container (testcontainers), a `surreal` binary, or the embedded engine, in that order.
    """
    from pytest_surrecall import _servers

    return _servers.of_session(pytestconfig)


def _scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001
    scope = str(config.getini("surrecall_scope") or "function")
    if scope not in _SCOPES:
        raise pytest.UsageError(f"surrecall_scope is {scope}, none of {', '.join(_SCOPES)}")
    return scope


@pytest.fixture(scope=_scope)
def surrecall(surrecall_server: Server, pytestconfig: pytest.Config) -> Iterator[Project]:
    """A database of one's own with the project of `surrecall_project` applied; see pytest_surrecall.Project."""
    from pytest_surrecall import _project

    with _project.opened(surrecall_server, pytestconfig) as project:
        yield project


def __getattr__(name: str) -> Any:
    """Project and Server, for annotations, without importing them for everybody."""
    if name == "Project":
        from pytest_surrecall._project import Project as found

        return found
    if name == "Server":
        from pytest_surrecall._servers import Server as found_server

        return found_server
    raise AttributeError(name)
