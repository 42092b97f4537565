"""surrecall anchors"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from surrecall import _anchors, _render
from surrecall._cli._app import Context, Json, command
from surrecall._cli._resolution import say

_COLUMNS = ("question", "verdict", "table", "place", "from", "to", "phrase")
_SHOWN = 60


@command("anchors")
def anchors(
    context: Context,
    table: Annotated[str | None, typer.Option("--table", help="One table of chunks; else each that is registered.")] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    all_rows: Annotated[bool, typer.Option("--all", help="Also those that are found whole.")] = False,
    as_json: Json = False,
) -> None:
    """Say where the anchors of the golden set stand in each table of chunks: found, split, lost, stale or ambiguous.

    Those that are not whole in a chunk are listed, with the characters of the text at which they stand. Where no table is
    registered they are looked up in their documents.

    Example: surrecall anchors --table passage
    """
    with context.open() as database:
        _anchors.note_twins(database)
        tables: list[str | None] = [table] if table is not None else [*_anchors.tables(database)]
        told = [row for one in tables or [None] for row in _anchors.report(database, question_set, one)]
    if as_json:
        _render.print_json(context.out, told)
        return
    if not told:
        say(context, f"no question of the golden set {question_set} has an anchor; surrecall import questions brings some")
        return
    shown = [_row(row) for row in told if all_rows or row["verdict"] != "found"]
    if shown:
        context.show(_render.table(shown, _COLUMNS))
        context.out.print()
    for one in dict.fromkeys(row.get("table") for row in told):
        verdicts = [row["verdict"] for row in told if row.get("table") == one]
        counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts)))
        context.out.print(f"{one or 'documents'}: {counts}", markup=False, highlight=False)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    place = row.get("place") or {}
    phrase = " ".join(row["phrase"].split())
    return row | {
        "place": place.get("in", row["document"]),
        "from": place.get("from"),
        "to": place.get("to"),
        "phrase": phrase if len(phrase) <= _SHOWN else phrase[:_SHOWN] + "…",
    }
