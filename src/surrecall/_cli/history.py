"""surrecall history"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _render
from surrecall._cli._app import LARGEST, Context, Json, command

_HISTORY = """
LET $runs = (SELECT * FROM eval_run WHERE ($retriever = NONE OR retriever = $retriever) AND ($k = NONE OR k = $k)
  ORDER BY seq DESC);
RETURN {
  runs: $runs.slice(0, $limit),
  found: $runs.len(),
  retrievers: (SELECT VALUE retriever FROM eval_run GROUP BY retriever ORDER BY retriever),
  cutoffs: (SELECT VALUE k FROM eval_run GROUP BY k ORDER BY k),
};
"""
_COLUMNS = ("at", "retriever", "k", "recall", "rr", "ndcg", "questions", "errors", "note")


@command("history")
def history(
    context: Context,
    retriever: Annotated[str | None, typer.Option("-r", "--retriever", help="Only this retriever.")] = None,
    k: Annotated[int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Only this cutoff.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=LARGEST, help="Newest rows to show.")] = 30,
    as_json: Json = False,
) -> None:
    """Read the history, newest first: one row a retriever and cutoff of every evaluation.

    Example: surrecall history --retriever hybrid -k 3
    """
    with context.open() as database:
        told = database.value(_HISTORY, retriever=retriever, k=k, limit=limit)
    rows, found = told["runs"], told["found"]
    if as_json:
        _render.print_json(context.out, rows)
    elif rows:
        # a run without errors leaves that column blank
        context.show(_render.table([row | {"errors": row.get("errors") or None} for row in rows], _COLUMNS))
        if found > len(rows):
            context.out.print(f"the newest {len(rows)} of {found} runs; --limit {found} shows all", highlight=False)
    elif told["retrievers"]:
        names, cutoffs = ", ".join(told["retrievers"]), ", ".join(map(str, told["cutoffs"]))
        context.out.print(f"no such run; there are runs of {names} at {cutoffs}", markup=False, highlight=False)
    else:
        context.out.print("no run yet; next: surrecall evaluate")
