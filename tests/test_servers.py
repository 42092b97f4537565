"""The suite's own choice of a server: the order, what a demand means, and what the header says."""

from __future__ import annotations

import pytest

from pytest_surrecall import _servers as servers
from pytest_surrecall._servers import Server, Unavailable, acquire


@pytest.fixture
def nothing_there(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A machine where each kind can be switched on."""
    there = dict.fromkeys(servers.KINDS, False)

    def starter(kind: str) -> object:
        def start(_environment: object) -> Server:
            if not there[kind]:
                raise Unavailable("none here")
            return Server(kind, "mem://", detail="x")

        return start

    monkeypatch.setattr(servers, "STARTERS", {kind: starter(kind) for kind in servers.KINDS})
    return there


def test_the_order_is_address_container_binary_embedded(nothing_there: dict[str, bool]) -> None:
    for kind in reversed(servers.KINDS):
        nothing_there[kind] = True
        assert acquire({}).kind == kind


@pytest.mark.parametrize("kind", servers.KINDS)
def test_a_demand_takes_nothing_else(nothing_there: dict[str, bool], kind: str) -> None:
    nothing_there.update(dict.fromkeys(servers.KINDS, True))
    assert acquire({"SURRECALL_TEST_SERVER": kind}).kind == kind
    nothing_there[kind] = False
    with pytest.raises(Unavailable, match=f"SURRECALL_TEST_SERVER={kind} can't be had"):
        acquire({"SURRECALL_TEST_SERVER": kind})


def test_a_demand_for_something_unknown_is_refused() -> None:
    with pytest.raises(Unavailable, match="is none of url, container, binary, embedded"):
        acquire({"SURRECALL_TEST_SERVER": "docker"})


def test_the_header_says_which_one_and_what_was_passed_over(nothing_there: dict[str, bool]) -> None:
    nothing_there["binary"] = True
    assert acquire({}).headline == "surrecall server: binary x; no url (none here); no container (none here)"


def test_the_header_of_this_run(pytestconfig: pytest.Config, server: Server) -> None:
    from conftest import pytest_report_header

    assert pytest_report_header(pytestconfig).startswith(f"surrecall server: {server.kind}")


def test_an_address_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = servers.wait
    monkeypatch.setattr(servers, "wait", lambda server, **_: honest(server, patience=0.3))
    with pytest.raises(Unavailable, match="did not answer"):
        acquire({"SURRECALL_TEST_SERVER": "url", "SURRECALL_TEST_URL": "ws://127.0.0.1:9"})


def test_a_binary_that_is_none(tmp_path: object) -> None:
    with pytest.raises(Unavailable, match="can't be had"):
        acquire({"SURRECALL_TEST_SERVER": "binary", "SURREAL_BINARY": f"{tmp_path}/surreal"})


def test_an_image_that_can_not_be_had() -> None:
    with pytest.raises(Unavailable, match="can't be had"):
        acquire({"SURRECALL_TEST_SERVER": "container", "SURRECALL_TEST_IMAGE": "surrecall.invalid/nothing:none"})
