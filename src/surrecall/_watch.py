"""Following evaluations and alerts, and telling somebody of each alert.

A live query only wakes the watcher: what is new is then read from the tables, so nothing is lost between two looks, and nothing
told twice. Where there are no live queries (http://, the embedded engine) it looks every few seconds.
"""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import requests

from surrecall import _render
from surrecall._database import Database
from surrecall._errors import DatabaseError, UsageError

_NOW = "RETURN time::now()"
_SINCE = "RETURN fn::alerts_since($since)"
# a row takes the time at which its transaction wrote it, and is seen when that one ends
_LATEST = timedelta(seconds=60)
_POLL_SECONDS, _LIVE_SECONDS = 2.0, 10.0
_POST_SECONDS, _COMMAND_SECONDS = 10.0, 60.0
_ATTEMPTS = 3
_WATCHED = ("evaluation", "eval_alert")

Warn = Callable[[str], None]


@dataclass(frozen=True)
class News:
    """An evaluation that came to an end, or an alert; the row as JSON has it."""

    kind: str
    row: dict[str, Any]


def since(text: str) -> datetime:
    """A moment in ISO 8601, UTC where it names no zone. Raises UsageError for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--since {text!r} is no time", "for example: --since 2026-11-30T12:00:00Z") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def has_live_queries(database: Database) -> bool:
    """Whether the connection tells by itself what is new."""
    return database.settings.url.startswith(("ws://", "wss://"))


def follow(database: Database, start: datetime | None, timeout: float | None, warn: Warn) -> Iterator[News]:
    """What is new since `start`, else since now, as it comes, until the timeout (in seconds), or for ever.

    A server that goes away is waited for.
    """
    start = start or database.value(_NOW)
    deadline = None if timeout is None else time.monotonic() + timeout
    newest, told, first = start, set(), True
    with _woken(database) as (wake, pause):
        while True:
            try:
                found = database.value(_SINCE, since=newest - _LATEST)
            except DatabaseError as error:
                database = _again(database, error, deadline, warn)
                continue
            rows = [("evaluation", row, row["finished"]) for row in found["evaluations"]]
            rows += [("alert", row, row["at"]) for row in found["alerts"]]
            for kind, row, at in sorted(rows, key=lambda one: (one[2], one[0] == "evaluation")):
                if str(row["id"]) in told:
                    continue
                told.add(str(row["id"]))
                newest = max(newest, at)
                # one that is dated before, but was not there at the first look, was written by a transaction that ended since
                if at >= start or not first:
                    yield News(kind, _render.jsonable(row))
            first = False
            left = pause if deadline is None else min(pause, deadline - time.monotonic())
            if left <= 0:
                return
            with suppress(queue.Empty):
                wake.get(timeout=left)
                # what came meanwhile is read in one go
                while True:
                    wake.get_nowait()


def run_command(command: str, payload: dict[str, Any]) -> str | None:
    """Run a command with the payload as JSON on its input; what went wrong, None when nothing did."""
    try:
        line = json.dumps(payload, ensure_ascii=False) + "\n"
        done = subprocess.run(shlex.split(command), input=line, text=True, timeout=_COMMAND_SECONDS, check=False)
    except (OSError, ValueError) as error:
        return f"--run can't be started: {error}"
    except subprocess.TimeoutExpired:
        return f"--run did not end in {_COMMAND_SECONDS:g} s, and was stopped"
    return f"--run ended with {done.returncode}" if done.returncode else None


def checked_command(command: str) -> str:
    """The command as it is. Raises UsageError when it can't be one."""
    try:
        if shlex.split(command):
            return command
        raise ValueError("it is empty")
    except ValueError as error:
        raise UsageError(f"--run is no command: {error}", "for example: --run 'notify-send surrecall'") from error


def checked_url(url: str) -> str:
    """The address as it is. Raises UsageError, which shows nothing of it but its scheme, when none can be posted to."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise UsageError("--post is no http:// or https:// address", "for example: --post https://alerts.example.com/hook")
    return url


def post(url: str, payload: dict[str, Any], sleep: Callable[[float], None] = time.sleep) -> str | None:
    """POST the payload as JSON; tried again while the other side is busy or away. What went wrong, None when nothing did.

    The path of an address is often the secret of a hook, so only its host is told.
    """
    host = urlsplit(url).hostname
    problem = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            sleep(2.0 ** (attempt - 1))
        try:
            # a redirect would carry the alert elsewhere
            answer = requests.post(url, json=payload, timeout=_POST_SECONDS, allow_redirects=False)
        except requests.RequestException as error:
            problem = type(error).__name__
            continue
        if answer.status_code < 300:
            return None
        problem = str(answer.status_code)
        if answer.status_code not in (408, 425, 429) and answer.status_code < 500:
            break
    return f"--post to {host} failed: {problem}"


@contextmanager
def _woken(database: Database) -> Iterator[tuple[queue.Queue[str], float]]:
    """A queue that fills when something is new, and how long to wait for it at most."""
    wake: queue.Queue[str] = queue.Queue()
    if not has_live_queries(database):
        yield wake, _POLL_SECONDS
        return
    stop = threading.Event()
    threads = [threading.Thread(target=_listen, args=(database, table, wake, stop), daemon=True) for table in _WATCHED]
    for thread in threads:
        thread.start()
    try:
        yield wake, _LIVE_SECONDS
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=5)


def _listen(database: Database, table: str, wake: queue.Queue[str], stop: threading.Event) -> None:
    """Put a word into the queue for each notification; a connection of its own, since one can carry one subscription."""
    while not stop.is_set():
        try:
            with Database(database.settings, patience=5.0) as listening:
                for _ in listening.notifications(table, stop):
                    wake.put(table)
        except DatabaseError:
            # the watcher itself says that the server is away
            stop.wait(1.0)
        # what came while nobody listened
        wake.put(table)


def _again(database: Database, error: DatabaseError, deadline: float | None, warn: Warn) -> Database:
    """The database, once it answers again. Raises what it said where it refuses, or the deadline is over."""
    if error.statement is not None:
        raise error
    warn(f"{error.message}; trying again")
    while True:
        patience = 5.0 if deadline is None else max(0.0, min(5.0, deadline - time.monotonic()))
        try:
            return Database(database.settings, patience=patience)
        except DatabaseError:
            if deadline is not None and time.monotonic() >= deadline:
                raise
