"""docker-compose.yml: both profiles are accepted; the single server is started and used where Docker is."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from conftest import ROOT
from pytest_surrecall._servers import Server

COMPOSE = shutil.which("docker-compose")
FILE = ROOT / "docker-compose.yml"


def compose(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    assert COMPOSE
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SURRE")}
    command = [COMPOSE, "--file", str(FILE), *arguments]
    return subprocess.run(command, env=clean | variables, capture_output=True, text=True, timeout=180, check=False)


@pytest.fixture(autouse=True)
def docker_is_here(server: Server) -> None:
    """Without Docker there is nothing to start; where a container was demanded that is a failure."""
    if COMPOSE is None or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        if server.kind == "container":
            pytest.fail("the suite runs on a container, but docker-compose is not here")
        pytest.skip("docker-compose or a Docker daemon is not here")


def test_both_profiles_are_accepted() -> None:
    plain = compose("config", "--services", SURREAL_PASSWORD="x")
    assert plain.returncode == 0, plain.stderr
    cluster = compose("--profile", "cluster", "config", "--services", SURREAL_PASSWORD="x")
    assert cluster.returncode == 0, cluster.stderr
    assert {"surrealdb", "pd", "tikv1", "tikv2", "tikv3", "node1", "node2"} <= set(cluster.stdout.split())


def test_without_a_password_nothing_starts() -> None:
    done = compose("config", "--quiet")
    assert done.returncode != 0
    assert "SURREAL_PASSWORD" in done.stderr


def test_every_port_is_bound_to_this_machine_only() -> None:
    ports = re.findall(r'ports: \["([^"]+)"\]', FILE.read_text(encoding="utf-8"))
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.fixture
def project() -> Iterator[dict[str, str]]:
    """Names and a port of its own, gone afterwards with its volume."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    variables = {
        "COMPOSE_PROJECT_NAME": "surrecall" + uuid.uuid4().hex[:8],
        "SURREAL_PASSWORD": uuid.uuid4().hex,
        "SURRECALL_PORT": port,
    }
    yield variables
    compose("down", "--volumes", **variables)


def test_the_block_of_the_readme_and_the_volume_survives(project: dict[str, str], server: Server) -> None:
    from test_readme import COMPOSE as README_BLOCKS
    from test_readme import shell

    image = {"SURRECALL_IMAGE": server.detail} if server.kind == "container" else {}
    (block,) = README_BLOCKS
    port, password = project["SURRECALL_PORT"], project["SURREAL_PASSWORD"]
    script = block.replace("change-me", password).replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    shown = shell(script, ROOT, **project, **image)
    assert "hybrid     3   0.833" in shown
    # a restart on the same volume keeps the history
    again = f"""
        {_healthy()}
        docker-compose restart
        surrecall history --limit 1
    """
    shown = shell(again, ROOT, **project, **image, SURREAL_URL=f"ws://127.0.0.1:{port}", SURREAL_USER="root")
    assert "hybrid" in shown


def _healthy() -> str:
    """Wait for the health check of the file itself."""
    return (
        "for i in $(seq 60); do "
        'test "$(docker inspect --format {{.State.Health.Status}} $(docker-compose ps -q surrealdb))" = healthy && break; '
        "test $i -lt 60 || exit 9; sleep 1; done"
    )
