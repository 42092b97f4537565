"""surrecall trend"""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from surrecall import _render, _trend
from surrecall._cli._app import LARGEST, Context, Json, command, progress_bar
from surrecall._cli._chart import chart
from surrecall._cli._resolution import class_name, say, warn_all
from surrecall._errors import UsageError

# a century: more is a typing error
_MOST_DAYS = 36_500
_DAYS = 30
_COLUMNS = ("day", "retriever", "value", "ms", "runs", "questions", "labels", "changed")


class TrendBy(StrEnum):
    """What questions are sorted by."""

    KIND = "kind"
    TAG = "tag"
    SOURCE = "source"
    SPLIT = "split"


@command("trend")
def trend(
    context: Context,
    metric: Annotated[str | None, typer.Option("--metric", "-m", help="Any metric of fn::score; else recall.")] = None,
    k: Annotated[
        int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Cutoff; else the largest of the newest run.")
    ] = None,
    by: Annotated[TrendBy | None, typer.Option("--by", help="By class of question, from the stored answers.")] = None,
    retriever: Annotated[str | None, typer.Option("-r", "--retriever", help="Only this one.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Only this golden set.")] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=_MOST_DAYS, help="The last so many, today among them; else 30.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="From this day on: 2026-11-30.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Before this day.")] = None,
    zone: Annotated[str | None, typer.Option("--zone", help="Whose days: UTC, +02:00, Europe/Berlin; else UTC.")] = None,
    as_json: Json = False,
) -> None:
    """Draw the history of a metric by day, with a mark where it is not of one piece.

    A point is the mean of the runs of one day over one state of one golden set; numbers of questions are never mixed. A ^ below
    the axis is a day on which the corpus, the labels, the definitions, the engine or the number of questions was not what it
    was at the run before: the table says which.

    Example: surrecall trend --metric recall -k 3 --days 30
    """
    with context.open() as database, progress_bar(context, "reading") as advance:
        asked = _trend.Trend(
            metric=metric,
            k=k,
            by=by and by.value,
            retriever=retriever,
            question_set=question_set,
            zone=zone,
            days=_DAYS if days is None and since is None and until is None else days,
            since=_day(since),
            until=_day(until),
        )
        told = _trend.trend(database, asked, advance)
    if as_json:
        _render.print_json(context.out, told)
    elif told["rows"]:
        _show(context, told)
    else:
        say(context, "no run in this time; --days and --since reach further back, surrecall evaluate makes one")
    warn_all(context, told)


def _day(text: str | None) -> str | None:
    """A day of --since or --until as it came. Raises UsageError where no run can be of it."""
    if text is not None and text[:4].isdigit() and not 1970 <= int(text[:4]) <= 2999:
        raise UsageError(f"no run is of {text}", "a day from 1970 on, for example 2026-11-30")
    return text


def _show(context: Context, told: dict[str, Any]) -> None:
    rows, by = told["rows"], told.get("by")
    first = date.fromisoformat(min(row["day"] for row in rows))
    last = date.fromisoformat(max(row["day"] for row in rows))
    days = [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]
    places = {day: place for place, day in enumerate(days, 1)}
    curves: dict[str, dict[int, float]] = {}
    for row in rows:
        # of several states on one day the last one is drawn; the table has all
        curves.setdefault(_curve(row, by), {})[places[row["day"]]] = row["value"]
    marks = {places[row["day"]] for row in rows if row["changed"]}
    measure = f"{told['metric']}@{told['k']}"
    for line in chart(measure, curves, min(context.out.width, 80), days, marks):
        say(context, line)
    context.out.print()
    several = len({row["set"] for row in rows}) > 1
    shown = [
        row
        | {
            by or "class": class_name(row.get("class")) if by else None,
            "ms": row.get("median_ms"),
            "labels": (row.get("golden_set") or "")[:8] or None,
            "changed": ", ".join(row["changed"]) or (None if row["known"] else "not known"),
        }
        for row in rows
    ]
    columns = [*_COLUMNS[:2], *(["set"] if several else []), *([by] if by else []), *_COLUMNS[2:]]
    context.show(_render.table(shown, columns, title=measure))
    context.out.print()
    for sentence in told["sentences"]:
        say(context, sentence)


def _curve(row: dict[str, Any], by: str | None) -> str:
    return f"{row['retriever']} {class_name(row.get('class'))}" if by else str(row["retriever"])
