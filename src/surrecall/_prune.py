"""Thinning old answers, a shard a transaction. What may go, and what went, is the database's to say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from surrealdb import RecordID

from surrecall import _writer
from surrecall._database import Database
from surrecall._errors import UsageError
from surrecall._retry import retried
from surrecall._shards import Progress

_BEGIN = "RETURN fn::prune_begin($before)"
# the end of an index is taken in a statement, and not in a function
_PAGE = """
LET $rel = (SELECT VALUE rel FROM ONLY $evaluation) ?? 1;
SELECT id, question, answerable = true AND status = 'ok' AND labels[WHERE grade >= $rel].len() > 0
  AND array::complement(labels[WHERE grade >= $rel].document, ranking).len() = 0 AS answered
FROM eval_answer
WHERE evaluation = $evaluation AND retriever = $retriever AND depth = $depth AND question > $after
ORDER BY question LIMIT $limit
"""
_DELETE = "RETURN fn::prune_part($evaluation, $answers)"
_LIMIT = 500


@dataclass(frozen=True)
class Pruned:
    """What went, or would: answers by evaluation; `kept` are answers of these evaluations that stay, as failures or unanswerable.

    `baselines` and `newest` are older evaluations that keep all.
    """

    before: datetime
    answers: int
    kept: int
    evaluations: list[dict[str, Any]]
    baselines: list[RecordID]
    newest: list[RecordID]
    dry_run: bool


def moment(keep_days: int | None, before: str | None) -> datetime:
    """The moment before which evaluations lose answers. Raises UsageError unless exactly one of the two is given."""
    if (keep_days is None) == (before is None):
        raise UsageError("which answers may go is not said, or said twice", "--keep-days 90, or --before 2026-01-31")
    if keep_days is not None:
        return datetime.now(UTC) - timedelta(days=keep_days)
    try:
        given = datetime.fromisoformat(before or "")
        return given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{before} is no date", "for example: --before 2026-01-31, or 2026-01-31T12:00:00Z") from error


def prune(
    database: Database, before: datetime, *, dry_run: bool = False, progress: Progress = lambda _done, _all: None
) -> Pruned:
    """Delete the answers of evaluations older than `before` that found all they should; each shard counts what it deletes.

    Cut off, it leaves whole shards, and goes on when it is called again.
    """
    if not dry_run:
        _writer.require_writer(database, "deletion")
    begun = database.value(_BEGIN, before=before)
    told: dict[str, dict[str, Any]] = {}
    for done, call in enumerate(begun["calls"], 1):
        gone, kept = _thin(database, call, dry_run=dry_run)
        row = told.setdefault(str(call["evaluation"]), {"evaluation": call["evaluation"], "answers": 0, "kept": 0})
        row["answers"] += gone
        row["kept"] += kept
        progress(done, len(begun["calls"]))
    rows = [row for row in told.values() if row["answers"]]
    return Pruned(
        before=before,
        answers=sum(row["answers"] for row in rows),
        kept=sum(row["kept"] for row in rows),
        evaluations=rows,
        baselines=begun["kept"]["baseline"],
        newest=begun["kept"]["newest"],
        dry_run=dry_run,
    )


def _thin(database: Database, call: dict[str, Any], *, dry_run: bool) -> tuple[int, int]:
    """Go through the answers of one call; how many went, and how many stay."""
    gone = kept = 0
    after: RecordID | None = None
    while True:
        page = database.value(_PAGE, **call, after=after, limit=_LIMIT)
        answered = [row["id"] for row in page if row["answered"]]
        kept += len(page) - len(answered)
        if dry_run:
            gone += len(answered)
        elif answered:
            gone += _delete(database, call["evaluation"], answered)
        if len(page) < _LIMIT:
            return gone, kept
        after = page[-1]["question"]


def _delete(database: Database, evaluation: RecordID, answers: list[RecordID]) -> int:
    return int(retried(lambda: database.value(_DELETE, evaluation=evaluation, answers=answers)))
