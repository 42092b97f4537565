"""Changes of the corpus that are pending, for the commands that take them up."""

from __future__ import annotations

from surrecall import _policy, _render
from surrecall._cli._app import Context
from surrecall._database import Database
from surrecall._policy import Progress, TakenUp


def take_up(context: Context, database: Database, progress: Progress) -> None:
    """Evaluate what is pending, where nothing in the background does, and say so."""
    if not _policy.is_left(database):
        return
    taken = _policy.take_up(database, progress)
    if taken.error is not None:
        context.warn(f"what is pending could not be evaluated: {taken.error}")
    elif taken.evaluation is not None:
        tell_pending(context, taken)


def tell_pending(context: Context, taken: TakenUp) -> None:
    """A line on standard error on what was evaluated, and one on what no event had told of."""
    line = f"{_render.counted(taken.seen, 'pending change')} evaluated"
    context.err.print(line, soft_wrap=True, markup=False, highlight=False)
    if taken.unrecorded:
        context.warn(taken.unrecorded)
    if taken.pending:
        context.warn(f"{_render.counted(taken.pending, 'change')} still pending")
