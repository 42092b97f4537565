"""surrecall questions"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _render
from surrecall._cli._app import Context, Json, command

_QUESTIONS = """
SELECT id, text, relevant, kind, set, answerable, source FROM question
WHERE $set = NONE OR set = $set ORDER BY set, id
"""

_SETS = "SELECT VALUE set FROM question GROUP BY set ORDER BY set"


@command("questions")
def questions(
    context: Context,
    question_set: Annotated[str | None, typer.Option("--set", help="Only this golden set.")] = None,
    as_json: Json = False,
) -> None:
    """Read the golden set: every question with its labels.

    Example: surrecall questions
    """
    with context.open() as database:
        rows = database.value(_QUESTIONS, set=question_set)
        sets = database.value(_SETS)
    if as_json:
        _render.print_json(context.out, rows)
        return
    several = len({row["set"] for row in rows}) > 1
    columns = ["id", "text", "relevant", "kind"] + (["set"] if several else [])
    if rows:
        context.show(_render.table(rows, columns))
    context.out.print(_render.counted(len(rows), "question"), highlight=False)
    if not rows and sets:
        context.out.print(f"there are the sets {', '.join(sets)}", markup=False, highlight=False)
