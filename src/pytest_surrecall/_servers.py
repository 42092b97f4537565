"""Where tests get their SurrealDB from: an address, a container, a binary, or the embedded engine, in that order.

SURRECALL_TEST_SERVER demands one of them; then nothing else will do.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from surrecall import Database, DatabaseError, Settings

IMAGE = "surrealdb/surrealdb:v3.2.4"
KINDS = ("url", "container", "binary", "embedded")
USER, PASSWORD = "root", "surrecall-tests"
_PATIENCE = 60.0


class Unavailable(Exception):
    """This kind of server can't be had here; the text says why."""


@dataclass(frozen=True)
class Server:
    """A running server, or the embedded engine. `stop` ends what was started for the tests."""

    kind: str
    url: str
    user: str | None = None
    password: str | None = None
    detail: str = ""
    passed_over: tuple[str, ...] = ()
    stop: Callable[[], None] = field(default=lambda: None, repr=False)

    def settings(self, namespace: str, database: str) -> Settings:
        return Settings(self.url, namespace, database, self.user, self.password)

    @property
    def is_embedded(self) -> bool:
        return self.kind == "embedded"

    @property
    def headline(self) -> str:
        shown = f"surrecall server: {self.kind} {self.detail}".rstrip()
        return "; ".join([shown, *(f"no {reason}" for reason in self.passed_over)])


_STARTED = pytest.StashKey[Server]()


def of_session(config: pytest.Config) -> Server:
    """The server of a test session, by --surrecall-server or the environment, started when it is first asked for.

    Raises pytest.UsageError when a demanded one can't be had.
    """
    if _STARTED not in config.stash:
        demanded = config.getoption("--surrecall-server", None)
        environment = os.environ | ({"SURRECALL_TEST_SERVER": demanded} if demanded else {})
        try:
            config.stash[_STARTED] = acquire(environment)
        except Unavailable as reason:
            raise pytest.UsageError(str(reason)) from reason
    return config.stash[_STARTED]


def stop(config: pytest.Config) -> None:
    """End the server of a session, where one was started."""
    if _STARTED in config.stash:
        config.stash[_STARTED].stop()


def acquire(environment: Mapping[str, str] = os.environ) -> Server:
    """Get a server. Raises Unavailable when the demanded one can't be had."""
    demanded = environment.get("SURRECALL_TEST_SERVER", "")
    if demanded and demanded not in KINDS:
        raise Unavailable(f"SURRECALL_TEST_SERVER={demanded} is none of {', '.join(KINDS)}")
    reasons: list[str] = []
    for kind in [demanded] if demanded else KINDS:
        try:
            server = STARTERS[kind](environment)
        except Unavailable as reason:
            reasons.append(f"{kind} ({reason})")
            continue
        return Server(**(vars(server) | {"passed_over": tuple(reasons)}))
    raise Unavailable(f"SURRECALL_TEST_SERVER={demanded} can't be had: {reasons[-1]}")


def _at_url(environment: Mapping[str, str]) -> Server:
    url = environment.get("SURRECALL_TEST_URL")
    if not url:
        raise Unavailable("SURRECALL_TEST_URL is not set")
    server = Server("url", url, environment.get("SURREAL_USER", "root"), environment.get("SURREAL_PASSWORD", "root"), detail=url)
    # an address that was given and does not answer is a mistake, not a reason to take something else
    wait(server, patience=10.0)
    return server


def _container(environment: Mapping[str, str]) -> Server:
    try:
        import docker.errors
        from testcontainers.core.config import testcontainers_config
        from testcontainers.core.container import DockerContainer
    except ImportError as error:
        raise Unavailable(f"testcontainers is not installed: {error}") from error
    # its helper container only removes what a killed run left over, and its image can't be pulled everywhere
    testcontainers_config.ryuk_disabled = True
    image = environment.get("SURRECALL_TEST_IMAGE", IMAGE)
    # not the memory store: it loses about 3 in 1,000 concurrent updates of one record, which the suite would meet
    command = f"start --user {USER} --pass {PASSWORD} --bind 0.0.0.0:8000 surrealkv:///data/tests"
    try:
        container = DockerContainer(image).with_command(command).with_exposed_ports(8000).with_kwargs(user="0")
        if hasattr(container, "with_tmpfs_mount"):
            # what is thrown away need not reach a disk
            container.with_tmpfs_mount("/data")
        container.start()
    except (docker.errors.DockerException, OSError) as error:
        raise Unavailable(f"{image}: {str(error).splitlines()[0][:160]}") from error
    address = f"ws://{container.get_container_host_ip()}:{container.get_exposed_port(8000)}"
    server = Server("container", address, USER, PASSWORD, detail=image, stop=container.stop)
    return _ready(server)


def _binary(environment: Mapping[str, str]) -> Server:
    path = environment.get("SURREAL_BINARY") or shutil.which("surreal", path=environment.get("PATH"))
    if not path:
        raise Unavailable("no surreal on PATH, SURREAL_BINARY is not set")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="surrecall-tests-")
    command = [
        path,
        "start",
        "--user",
        USER,
        "--pass",
        PASSWORD,
        "--bind",
        f"127.0.0.1:{port}",
        "--no-banner",
        f"surrealkv://{folder}/tests",
    ]
    try:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError as error:
        raise Unavailable(f"{path}: {error}") from error

    def stop() -> None:
        process.terminate()
        process.wait(timeout=10)
        shutil.rmtree(folder, ignore_errors=True)

    return _ready(Server("binary", f"ws://127.0.0.1:{port}", USER, PASSWORD, detail=path, stop=stop))


def _embedded(_environment: Mapping[str, str]) -> Server:
    return Server("embedded", "mem://")


def _ready(server: Server) -> Server:
    try:
        wait(server)
    except Unavailable:
        server.stop()
        raise
    return server


def wait(server: Server, patience: float = _PATIENCE) -> None:
    """Until a query answers; a log line says less."""
    last, deadline = "", time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            with Database(server.settings("probe", "probe")) as database:
                database.value("RETURN 1")
                return
        except DatabaseError as error:
            last = error.message
            time.sleep(0.1)
    raise Unavailable(f"{server.url} did not answer in {patience:.0f} s: {last}")


STARTERS: dict[str, Callable[[Mapping[str, str]], Server]] = {
    "url": _at_url,
    "container": _container,
    "binary": _binary,
    "embedded": _embedded,
}
