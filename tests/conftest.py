"""Fixtures: databases of their own for every test, on the embedded engine and on the server the suite found."""

from __future__ import annotations

import os
import re
import signal
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from definitions import DEFINITIONS
from pytest_surrecall._servers import Server, Unavailable, acquire
from servers import Killable
from surql_cases import CaseFile, close_shared
from surrecall import Database, Settings, _seed
from templates import Templates

ROOT = Path(__file__).parents[1]
_ENGINE = re.compile(r"(?<=[\[-])(?:embedded|server)(?=[\]-])")
# what measures, and what an engine does of its own accord: every case on both
_ON_BOTH = {
    "test_evaluation",
    "test_figures",
    "test_history",
    "test_ingest",
    "test_interruption",
    "test_real_collections",
}
# of these it is the loading that takes long, and a whole collection is loaded into one engine
_ON_ONE = {"test_scifact_": "server", "test_chroma_": "server", "test_cranfield_": "embedded"}
# what takes longest begins first, so that no worker is left with it at the end
_LONGEST = (
    "test_real_collections",
    "test_data_in",
    "test_readme",
    "test_import_run",
    "test_adopt",
    "test_ingest",
    "test_round_trip",
    "test_retriever",
    "test_comparison",
    "test_interruption",
    "test_chunk",
    "test_gate_commands",
    "test_serve",
    "test_report",
)
_SERVER = pytest.StashKey[Server]()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell's background job ignores Ctrl-C, and so would every command that is started here
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        config.stash[_SERVER] = acquire()
    except Unavailable as reason:
        raise pytest.UsageError(str(reason)) from reason
    if _leaves_it_to_workers(config):
        # it was there, which is what the header says; each worker starts one of its own
        config.stash[_SERVER].stop()


def _leaves_it_to_workers(config: pytest.Config) -> bool:
    """Whether this process only hands tests out."""
    return not hasattr(config, "workerinput") and bool(config.getoption("tx", None))


def pytest_unconfigure(config: pytest.Config) -> None:
    close_shared()
    server = config.stash.get(_SERVER, None)
    if server is not None and not _leaves_it_to_workers(config):
        server.stop()


def pytest_report_header(config: pytest.Config) -> str:
    return config.stash[_SERVER].headline


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test that takes a database runs on the embedded engine, and on the server where there is one."""
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", engines(metafunc.config), scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of what only moves and shows data, each case runs on one of the engines, always the same, unless both are asked for."""
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
    if len(engines(config)) < 2 or os.environ.get("SURRECALL_TEST_ENGINES") == "both":
        return
    left_out = [item for item in items if _is_the_other_s(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _is_the_other_s(item: pytest.Item) -> bool:
    """Whether a case belongs to the engine that this one is not of."""
    engine = _ENGINE.search(item.nodeid)
    if engine is None:
        return False
    for name, only in _ON_ONE.items():
        if item.name.startswith(name):
            return engine[0] != only
    if item.path.stem in _ON_BOTH or "cases" in item.path.parts:
        return False
    # a quarter on the server, where a database of a test's own takes several times as long to define
    mine = "server" if zlib.crc32(_ENGINE.sub("", item.nodeid).encode()) % 4 == 1 else "embedded"
    return mine != engine[0]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    if file_path.suffix == ".surql" and "cases" in file_path.parts:
        return CaseFile.from_parent(parent, path=file_path)
    return None


def engines(config: pytest.Config) -> list[str]:
    return ["embedded"] if config.stash[_SERVER].is_embedded else ["embedded", "server"]


def fresh_settings(config: pytest.Config, engine: str) -> Settings:
    """A database nobody else uses."""
    name = "t" + uuid.uuid4().hex
    return Settings("mem://", name, name) if engine == "embedded" else config.stash[_SERVER].settings(name, name)


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> Server:
    """The server of the suite."""
    return pytestconfig.stash[_SERVER]


@pytest.fixture
def killable(server: Server) -> Iterator[Killable]:
    """A server of a test's own, which may be killed and started again on its volume."""
    if server.kind not in ("container", "binary"):
        pytest.skip(f"a server that can be killed needs a container or a binary, this run has {server.kind}")
    own = Killable(server.kind)
    yield own
    own.remove()


@pytest.fixture
def empty(pytestconfig: pytest.Config, engine: str) -> Iterator[Database]:
    """A database with nothing in it."""
    with Database(fresh_settings(pytestconfig, engine)) as database:
        yield database


@pytest.fixture
def schema(pytestconfig: pytest.Config, engine: str, templates: Templates) -> Iterator[Database]:
    """A database with surrecall and the help centre's definitions, and no rows."""
    yield from _defined(pytestconfig, engine, templates, seeded=False)


@pytest.fixture
def help_centre(pytestconfig: pytest.Config, engine: str, templates: Templates) -> Iterator[Database]:
    """A database with the ten articles and eight questions."""
    yield from _defined(pytestconfig, engine, templates, seeded=True)


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Databases to copy."""
    return Templates(tmp_path_factory.mktemp("templates"))


def _defined(config: pytest.Config, engine: str, templates: Templates, *, seeded: bool) -> Iterator[Database]:
    if engine == "embedded":
        with templates.copy(seeded=seeded) as database:
            yield database
        return
    with Database(fresh_settings(config, engine)) as database:
        database.run(DEFINITIONS)
        if seeded:
            _seed.seed(database)
        yield database
