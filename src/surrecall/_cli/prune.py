"""surrecall prune"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _prune, _render
from surrecall._cli._app import Context, Json, command, progress_bar
from surrecall._cli._resolution import say

_SHOWN = 20


@command("prune")
def prune(
    context: Context,
    keep_days: Annotated[
        int | None, typer.Option("--keep-days", min=0, max=36_500, help="Answers of the last so many days stay.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="DATE", help="Of evaluations that started before: 2026-01-31, in UTC."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, delete nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Thin the stored answers of old evaluations; every run and evaluation stays.

    An answer goes when it holds every relevant label of its question. What failed stays: an answer that misses a label within
    the depth it was asked for, an empty one, an error; so do unanswerable questions, of which no run has a figure. The newest
    complete evaluation of each retriever and golden set keeps all answers, and so does one that a baseline names.

    compare, curve, trend --by, blame and export run refuse an evaluation that was pruned: what is left gives another figure.

    Example: surrecall prune --keep-days 90 --dry-run
    """
    moment = _prune.moment(keep_days, before)
    with context.open() as database, progress_bar(context, "pruning") as advance:
        told = _prune.prune(database, moment, dry_run=dry_run, progress=advance)
    if as_json:
        _render.print_json(context.out, told)
        return
    if told.evaluations:
        context.show(_render.table(told.evaluations[:_SHOWN], ("evaluation", "answers", "kept")))
        if len(told.evaluations) > _SHOWN:
            say(context, f"the oldest {_SHOWN} of {len(told.evaluations)} evaluations; --json has all")
    did, evaluations = "would delete" if dry_run else "deleted", _render.counted(len(told.evaluations), "evaluation")
    say(context, f"{did} {_render.counted(told.answers, 'answer')} of {evaluations}, {told.kept} kept")
    for kept, why in ((told.baselines, "a baseline names it"), (told.newest, "newest of a retriever and golden set")):
        if kept:
            say(context, f"whole: {_render.counted(len(kept), 'evaluation')}, {why}")
