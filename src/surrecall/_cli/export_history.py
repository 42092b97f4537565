"""surrecall export history"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall._cli._app import Context, Json, command, export_app
from surrecall._cli._export import FileArgument, Force, form_of, tell
from surrecall._export import history
from surrecall._export.output import Output
from surrecall._render import counted


@command("history", group=export_app)
def export_history(
    context: Context,
    file: FileArgument,
    form: Annotated[history.Form | None, typer.Option("--format", help="Else the file's ending, else csv.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the history, one row a retriever and cutoff, oldest first, every metric at full precision.

    Example: surrecall export history history.csv
    """
    asked = form_of(file, form, history.Form, history.Form.CSV)
    with context.open() as database, Output(force=force) as output:
        exported = history.export(database, asked, output.lines(file))
    tell(context, file, as_json, exported, counted(exported.runs, "run"))
