"""surrecall history"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _render
from surrecall._cli._app import Context, Json, command

_HISTORY = """
SELECT * FROM eval_run WHERE ($retriever = NONE OR retriever = $retriever) AND ($k = NONE OR k = $k)
ORDER BY seq DESC LIMIT $limit
"""


@command("history")
def history(
    context: Context,
    retriever: Annotated[str | None, typer.Option("-r", "--retriever", help="Only this retriever.")] = None,
    k: Annotated[int | None, typer.Option("-k", "--k", min=1, help="Only this cutoff.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Newest rows to show.")] = 30,
    as_json: Json = False,
) -> None:
    """Read the history, newest first: one row a retriever and cutoff of every evaluation.

    Example: surrecall history --retriever hybrid -k 3
    """
    with context.open() as database:
        rows = database.value(_HISTORY, retriever=retriever, k=k, limit=limit)
    if as_json:
        _render.print_json(context.out, rows)
    elif rows:
        context.out.print(_render.table(rows, ("at", "retriever", "k", "recall", "rr", "ndcg", "questions", "note")))
    else:
        context.out.print("no run yet; next: surrecall evaluate")
