"""surrecall baseline export"""

from __future__ import annotations

from typing import Annotated

import typer
from surrealdb import RecordID

from surrecall import _baseline, _render
from surrecall._cli._app import Context, Json, baseline_app, command
from surrecall._cli._export import AnySet, FileArgument, Force, tell
from surrecall._cli._resolution import evaluation_id
from surrecall._database import Database
from surrecall._export.output import Output

_THERE = "RETURN array::len((SELECT VALUE id FROM eval_baseline WHERE name = $name LIMIT 1)) > 0"


@command("export", group=baseline_app)
def export(
    context: Context,
    file: FileArgument,
    named: Annotated[
        str | None, typer.Argument(metavar="[NAME|EVALUATION]", help="A baseline or an evaluation; else the newest complete one.")
    ] = None,
    question_set: AnySet = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a baseline to a file that can be committed: where the labels of each question stood, a question a line.

    surrecall gate --baseline FILE judges drops against it, also in a database that has no history.

    Example: surrecall baseline export baseline.json main
    """
    with context.open() as database, Output(force=force) as output:
        exported = _baseline.export(database, output.lines(file), _meant(database, named), question_set)
    what = f"{_render.counted(exported.questions, 'question')} of {_render.record_text(exported.evaluation)}"
    tell(context, file, as_json, exported, what)


def _meant(database: Database, named: str | None) -> str | RecordID | None:
    """The name of a baseline where there is one, else an evaluation as tables show it."""
    if named is None or database.value(_THERE, name=named):
        return named
    found = evaluation_id(database, named)
    # a name that is neither is said to be no baseline, with those that there are
    return found if ":" in named or database.value("RETURN record::exists($id)", id=found) else named
