"""surrecall split"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _render, _split
from surrecall._cli._app import Context, Json, command
from surrecall._cli._resolution import say

_COLUMNS = ("kind", "questions", "dev", "heldout", "neither")


@command("split")
def split(
    context: Context,
    heldout: Annotated[
        float | None, typer.Option("--heldout", help="Share to hold out; else the one given before, else 0.3.")
    ] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and store nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Hold questions out: a share of each kind that no setting is chosen by.

    Which ones follows from a hash of their text, so it is the same everywhere; equal texts go together. A question that has a
    split keeps it, and new ones get theirs the next time. What chooses a setting (sweep, curve, ann, advise) reads no held-out
    question for its choice; what measures them is counted, and how often it was is shown.

    Example: surrecall split --heldout 0.3
    """
    with context.open() as database:
        done = _split.split(database, question_set, heldout, dry_run=dry_run)
    if as_json:
        _render.print_json(context.out, done)
        return
    columns = [name for name in _COLUMNS if name != "neither" or any(row["neither"] for row in done.counts)]
    context.show(_render.table(done.counts, columns))
    context.out.print()
    held = sum(row["split"] == "heldout" for row in done.assigned)
    did = "would hold out" if dry_run else "held out"
    rest = len(done.assigned) - held
    say(context, f"{did} {held} more, {rest} more to choose by; {_render.cell(done.share)} of each kind in all")
    say(context, done.looks["sentence"])
