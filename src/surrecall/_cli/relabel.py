"""surrecall relabel"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _render, _stale, _who
from surrecall._cli._app import Context, Json, command
from surrecall._cli._resolution import say
from surrecall._errors import UsageError


@command("relabel")
def relabel(
    context: Context,
    question: Annotated[str, typer.Argument(help="Id or text of a question of the golden set.")],
    document: Annotated[str, typer.Argument(help="Id of a document; of a label also one that is gone.")],
    grade: Annotated[
        float | None, typer.Option("--grade", help="What it is worth: relevant from 1; 0 and below judged not relevant.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the label away.")] = False,
    who: Annotated[str | None, typer.Option("--who", help="Who says so; else the name of git, else of the login.")] = None,
    why: Annotated[str | None, typer.Option("--why", help="Kept with the change.")] = None,
    as_json: Json = False,
) -> None:
    """Give a document a grade for one question, change it, or take the label away.

    Labels are changed by hand alone, and each change leaves a row in label_change: from what to what, who, when, why. The last
    relevant document of a question stays: label another one first. A label that gets another grade is fresh from then on.

    Example: surrecall relabel money_back refund_request --grade 1 --why "answers it in the second paragraph"
    """
    if (grade is None) is not remove:
        raise UsageError("a label gets a grade or goes", "give --grade N, or --remove")
    if grade is not None and grade.is_integer():
        grade = int(grade)
    table = context.project.corpus.table if context.project.corpus else "article"
    with context.open() as database:
        changed = _stale.relabel(database, table, (question, document), grade, _who.name(who, context.folder), why)
    if as_json:
        _render.print_json(context.out, changed)
        return
    if changed is None:
        say(context, "nothing changed, it has that grade already")
        return
    before = "no label" if changed.get("before") is None else f"grade {changed['before']}"
    after = "no label" if changed.get("after") is None else f"grade {changed['after']}"
    of = f"{_render.record_text(changed['document'])} for {_render.record_text(changed['question'])}"
    say(context, f"{of}: {before} before, {after} now; by {changed['who']}")
