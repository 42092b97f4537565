"""surrecall baseline list"""

from __future__ import annotations

from surrecall import _baseline, _render
from surrecall._cli._app import Context, Json, baseline_app, command
from surrecall._cli._resolution import say


@command("list", group=baseline_app)
def list_(context: Context, as_json: Json = False) -> None:
    """Show the baselines and what they stood for, the newest of each name first, which is the one that counts.

    Example: surrecall baseline list
    """
    with context.open() as database:
        rows = _baseline.listed(database)
    if as_json:
        _render.print_json(context.out, rows)
    elif rows:
        shown = [row | {"current": "yes" if row["current"] else None} for row in rows]
        context.show(_render.table(shown, ("name", "current", "at", "evaluation", "set", "documents", "note")))
    else:
        say(context, "no baseline yet; next: surrecall baseline set NAME")
