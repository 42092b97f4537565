"""What happens when the corpus changes: the policy, and taking up what is pending."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from surrealdb import Duration, RecordID, SurrealError

from surrecall import _fingerprint, _writer
from surrecall._database import Database
from surrecall._errors import DatabaseError, UsageError
from surrecall._evaluation import Interrupted
from surrecall._retry import retried

_POLICY = """
RETURN {
  table: fn::corpus_names().table,
  policy: (SELECT * FROM ONLY ingest_policy LIMIT 1),
  retrievers: fn::ingest_retrievers(),
  pending: fn::ingest_pending(),
  state: corpus_state:now.lanes != NONE,
}
"""
_SET = "UPSERT type::record('ingest_policy', $table) MERGE $values RETURN NONE"
_CHANGES = "RETURN (SELECT count() FROM corpus_change GROUP ALL)[0].count ?? 0"
_REBASE = """
IF ((SELECT count() FROM corpus_change GROUP ALL)[0].count ?? 0) = $changes { fn::corpus_rebase($lanes) };
RETURN corpus_state:now.lanes != NONE;
"""
_SIZE = "RETURN { rows: fn::corpus_rows(), tables: fn::corpus_tables() }"
_LEASE = "RETURN { held: fn::ingest_held(), until: ingest_lease:head.until, pending: fn::ingest_pending() }"
_NEWEST = "SELECT VALUE id FROM evaluation WHERE trigger = 'ingest' AND started >= $from ORDER BY started DESC LIMIT 1"
# a server that works takes a change up within seconds
_LEFT = """
LET $lately = time::now() - 1m;
LET $fresh = (SELECT VALUE id FROM corpus_change WHERE evaluation = NONE AND at > $lately LIMIT 1);
RETURN fn::ingest_pending() > 0 AND (!$background OR (!fn::ingest_held() AND $fresh.len() = 0));
"""
# how often a corpus that keeps changing is read again for its state; without one it is read at each evaluation
_READINGS = 3
# a background that has not moved for as long will not
_STALLED = 20.0
_NAP = 0.1

Progress = Callable[[int, int], None]


def _silent(_done: int, _all: int) -> None:
    return


@dataclass(frozen=True)
class Policy:
    """What is in force: the table, mode, wait, set and k, the retrievers that are evaluated, and how many changes are pending.

    `known` says whether the fingerprint of the corpus is carried forward from a known state.
    """

    table: str
    mode: str
    wait: str
    set: str
    k: list[int]
    retrievers: list[str]
    pending: int
    known: bool


def policy(database: Database) -> Policy:
    """The policy in force; mode off where none was ever set."""
    told = database.value(_POLICY)
    row = told["policy"] or {}
    return Policy(
        table=told["table"],
        mode=row.get("mode", "off"),
        wait=row["wait"].to_string() if "wait" in row else "1s",
        set=row.get("set", "default"),
        k=list(row.get("k", [5])),
        retrievers=told["retrievers"],
        pending=told["pending"],
        known=told["state"],
    )


def exists(database: Database) -> bool:
    """Whether a policy was ever set."""
    return bool(database.value("SELECT VALUE id FROM ingest_policy LIMIT 1"))


def set_policy(database: Database, table: str, values: Mapping[str, Any], progress: Progress = _silent) -> Policy:
    """Set what is given of mode, wait, set and k; then read the corpus once, for the state that its fingerprint starts from.

    Raises UsageError when the database evaluates another table.
    """
    there = policy(database)
    if there.table != table:
        raise UsageError(f"this database evaluates {there.table}, not {table}", f"surrecall ingest-policy {there.table}")
    if values:
        given = dict(values)
        if "wait" in given:
            given["wait"] = _duration(given["wait"])
        _writer.require_writer(database, "policy")
        retried(lambda: database.run(_SET, table=table, values=given))
    found = policy(database)
    for _ in range(_READINGS):
        if found.mode == "off" or found.known:
            break
        size, changes = database.value(_SIZE), database.value(_CHANGES)
        lanes = _fingerprint.read(database, size["tables"], size["rows"], progress)
        retried(partial(database.value, _REBASE, lanes=lanes, changes=changes))
        found = policy(database)
    return found


@dataclass(frozen=True)
class TakenUp:
    """What became of pending changes: the evaluation, None when there was nothing to do, and how many changes it has seen.

    `pending` are those that are left, `unrecorded` says what no event had told of, `error` why there are no figures.
    """

    evaluation: RecordID | None
    seen: int
    pending: int
    unrecorded: str | None = None
    error: str | None = None


def take_up(database: Database, progress: Progress = _silent) -> TakenUp:
    """Evaluate what is pending, in steps of about half a second. A server does so in the background by itself; this waits for it.

    Cut off, what is pending stays so. Raises DatabaseError when another one is at it and does not come to an end.
    """
    if not database.settings.is_embedded:
        _wait(database)
    began = database.value("RETURN time::now()")
    started = retried(lambda: database.value("RETURN fn::ingest_start($force)", force=database.settings.is_embedded))
    holder = started.get("holder")
    if holder is None and "held" in started:
        raise DatabaseError("another one evaluates what is pending, and does not come to an end", "try again in half a minute")
    if holder is None:
        return TakenUp(None, 0, 0)
    if not database.settings.is_embedded:
        # the step that was queued runs in the background, and so does what follows
        _wait(database)
    try:
        while database.value("RETURN ingest_lease:head.holder = $holder AND fn::ingest_held()", holder=holder):
            step = retried(lambda: database.value("RETURN fn::ingest_go_on($holder)", holder=holder))
            if step["done"]:
                break
            if step.get("of"):
                progress(step["answers"], step["of"])
    except KeyboardInterrupt as error:
        raise Interrupted(
            "interrupted; the changes stay pending, and there is no run", "surrecall evaluate --pending", by_user=True
        ) from error
    left = database.value("RETURN fn::ingest_pending()")
    found: Sequence[RecordID] = database.value(_NEWEST, **{"from": began})
    evaluation = found[0] if found else None
    failure = database.value("RETURN $evaluation.error", evaluation=evaluation)
    return TakenUp(evaluation, max(0, started["pending"] - left), left, started.get("unrecorded"), failure)


def is_left(database: Database) -> bool:
    """Whether changes are pending that nothing in the background will take up."""
    return bool(database.value(_LEFT, background=not database.settings.is_embedded))


def _duration(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except (ValueError, SurrealError) as error:
        raise UsageError(f"--wait {text!r} is no duration", "for example: 500ms, 1s, 2m") from error


def _wait(database: Database) -> None:
    """Until nobody is at it, or he who is does not move."""
    last, moved = None, time.monotonic()
    while True:
        lease = database.value(_LEASE)
        if not lease["held"]:
            return
        if lease["until"] != last:
            last, moved = lease["until"], time.monotonic()
        elif time.monotonic() - moved > _STALLED:
            return
        time.sleep(_NAP)
