"""surrecall baseline set"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _baseline, _render
from surrecall._cli._app import Context, Json, baseline_app, command
from surrecall._cli._resolution import evaluation_id, say


@command("set", group=baseline_app)
def set_(
    context: Context,
    name: Annotated[str, typer.Argument(help="What floors call it; last: the newest one may serve though it broke a floor.")],
    evaluation: Annotated[str | None, typer.Argument(help="An evaluation; else the newest complete one.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set of the newest one; else default.")] = None,
    note: Annotated[str | None, typer.Option("--note", help="Why.")] = None,
    as_json: Json = False,
) -> None:
    """Say which evaluation a name stands for from now on; what it stood for before stays in the log.

    Example: surrecall baseline set main --note "new chunks"
    """
    with context.open() as database:
        asked = None if evaluation is None else evaluation_id(database, evaluation)
        said = _baseline.declare(database, name, asked, question_set, note)
    if as_json:
        _render.print_json(context.out, said)
        return
    before = "" if said.get("before") is None else f", before it was {_render.record_text(said['before'])}"
    say(context, f"{name} is {_render.record_text(said['evaluation'])} from now on{before}")
