"""What stands below a table of figures: on how many questions, by what steps, what can be told, and slices."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from surrealdb import RecordID

from surrecall import _render
from surrecall._cli._app import Context
from surrecall._database import Database

# more would push the figures out of sight
_BY_HAND = 10
_BY_HAND_TITLE = "rank of the first relevant document (blank: none)"
# what a perfect retriever does not bring to 1
_LIMITED = ("precision", "p")
# what a class without a name is called
_NO_CLASS = "(none)"
_WHOLE = "all"
# a longer name makes a table that fits no terminal
_LONGEST_CLASS = 30


class By(StrEnum):
    """What questions are sorted by."""

    KIND = "kind"
    TAG = "tag"
    SOURCE = "source"
    SPLIT = "split"
    SET = "set"


ByOption = Annotated[By | None, typer.Option("--by", help="Means by class of question, from the stored answers.")]


def evaluation_id(database: Database, text: str) -> RecordID:
    """The id of an evaluation, as tables show it or with its table."""
    table = database.table("evaluation")
    return RecordID(table, text.removeprefix(f"{table}:"))


def show_resolution(context: Context, told: dict[str, Any] | None, metrics: Sequence[str] = ()) -> None:
    """The best precision beside the precision that is shown, what the figures stand on, and few questions by hand."""
    if told is None:
        return
    beside = [name for name in _LIMITED if name in metrics]
    if beside:
        columns = [column for name in beside for column in (name, f"{name}, perfect")]
        rows = [row | _perfect({name: row[f"best_{name}"] for name in _LIMITED}) for row in told["best"]]
        context.out.print()
        context.show(_render.table(rows, ("k", "retriever", "questions", *columns)))
    context.out.print()
    for sentence in told["sentences"]:
        say(context, sentence)
    if told["by_hand"]:
        context.out.print()
        names = list(dict.fromkeys(row["retriever"] for row in told["best"]))
        # a rank is a whole number, and none came back where it is blank
        rows = [row["ranks"] | {"question": row["question"], "text": row["text"]} for row in told["by_hand"][:_BY_HAND]]
        context.show(
            _render.table(
                rows,
                ("question", "text", *names),
                title=_BY_HAND_TITLE,
            )
        )
        if blank := [name for name in names if all(row.get(name) is None for row in rows)]:
            say(context, f"none of these found by {', '.join(blank)}")
        if len(told["by_hand"]) > _BY_HAND:
            say(context, f"the worst {_BY_HAND} of {len(told['by_hand'])}; --json has all")


def show_slices(context: Context, told: dict[str, Any], by: By, metrics: Sequence[str], before: Sequence[str] = ()) -> None:
    """The class farthest below its mean in words, then the means by class, lowest first, that class marked."""
    for sentence in told["sentences"]:
        say(context, sentence)
    rows = [row | _perfect(row["best"]) | {by.value: _class(row), "below": _below(row)} for row in told["rows"]]
    columns = [column for name in metrics for column in ((name, f"{name}, perfect") if name in _LIMITED else (name,))]
    context.show(_render.table(rows, (*before, "retriever", "k", by.value, "questions", *columns, "below")))
    if told["steps"]:
        say(context, told["steps"])


def warn_all(context: Context, *told: dict[str, Any] | None) -> None:
    """Each warning once."""
    for warning in dict.fromkeys(warning for one in told if one for warning in one["warnings"]):
        context.warn(warning)


def say(context: Context, text: str) -> None:
    """A sentence on one line."""
    context.out.print(_render.printable(text), soft_wrap=True, markup=False, highlight=False)


def _perfect(best: dict[str, float]) -> dict[str, float]:
    return {f"{name}, perfect": value for name, value in best.items()}


def _class(row: dict[str, Any]) -> str:
    return _WHOLE if row["whole"] else class_name(row["class"])


def class_name(name: str | None) -> str:
    """What a class of questions is called in a table; a class of that name is told from the rows that are none."""
    if name is None:
        return _NO_CLASS
    name = " ".join(name.split())
    if len(name) > _LONGEST_CLASS:
        name = f"{name[:_LONGEST_CLASS]}…"
    return f'"{name}"' if name in (_WHOLE, _NO_CLASS, "") else name


def _below(row: dict[str, Any]) -> str | None:
    # what would be shown as 0.000 is left blank, but for the mark
    if row["below"] is None or (row["below"] < 5e-4 and not row["farthest"]):
        return None
    return f"{_render.cell(row['below'])}{' <<' if row['farthest'] else ''}"
