"""A trend, driven so that no statement takes longer than a client waits. Points and what is said of them are the database's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from surrecall._database import Database
from surrecall._errors import UsageError
from surrecall._shards import Progress

_BEGIN = "RETURN fn::trend_begin($options)"
_CLASSES = "RETURN fn::trend_classes($run, $metric, $by)"
_END = "RETURN fn::trend_end($begun, $rows)"
_OLDEST = "SELECT VALUE at FROM eval_run ORDER BY at LIMIT 1"


@dataclass(frozen=True)
class Trend:
    """What to show; None takes the default of fn::trend. `zone` is UTC, an offset like +02:00, or a name like Europe/Berlin."""

    metric: str | None = None
    k: int | None = None
    by: str | None = None
    retriever: str | None = None
    question_set: str | None = None
    zone: str | None = None
    days: int | None = None
    since: str | None = None
    until: str | None = None


def trend(database: Database, asked: Trend, progress: Progress = lambda _done, _all: None) -> dict[str, Any]:
    """What fn::trend gives. Raises UsageError for what is unknown."""
    given = {
        "metric": asked.metric,
        "k": asked.k,
        "by": asked.by,
        "retriever": asked.retriever,
        "set": asked.question_set,
        "zone": zone(database, asked.zone),
        "days": asked.days,
        "since": asked.since,
        "until": asked.until,
    }
    begun = database.value(_BEGIN, options={name: value for name, value in given.items() if value is not None})
    rows = begun["runs"]
    if asked.by is not None:
        rows = []
        for done, run in enumerate(begun["runs"], 1):
            rows += database.value(_CLASSES, run=run, metric=begun["metric"], by=asked.by)
            progress(done, len(begun["runs"]))
    told: dict[str, Any] = database.value(_END, begun=begun, rows=rows)
    return told


def zone(database: Database, name: str | None) -> str | list[dict[str, Any]] | None:
    """A zone as fn::trend takes it: the engine knows offsets alone, so a name becomes its offsets since the first run."""
    if name is None or name in ("UTC", "Z") or name.startswith(("+", "-")):
        return name
    try:
        found = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(f"no zone is named {name}", "for example: UTC, +02:00, Europe/Berlin") from error
    oldest = database.value(_OLDEST)
    since = oldest[0] if oldest else datetime.now(UTC)
    # summer time ends within a year, so the days around are enough
    first, last = since.astimezone(UTC) - timedelta(days=2), datetime.now(UTC) + timedelta(days=2)
    return [{"since": at, "offset": _text(offset)} for at, offset in _offsets(found, first, last)]


def _offsets(found: ZoneInfo, first: datetime, last: datetime) -> Iterator[tuple[datetime, timedelta]]:
    """Each offset of a zone with the moment from which it holds, to the minute."""

    def offset(at: datetime) -> timedelta:
        return at.astimezone(found).utcoffset() or timedelta()

    at, held = first, offset(first)
    yield at, held
    while at < last:
        then = at + timedelta(days=1)
        if offset(then) != held:
            low, high = at, then
            while high - low > timedelta(minutes=1):
                middle = low + (high - low) / 2
                low, high = (middle, high) if offset(middle) == held else (low, middle)
            held = offset(then)
            yield (high - timedelta(seconds=high.second, microseconds=high.microsecond)), held
        at = then


def _text(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
