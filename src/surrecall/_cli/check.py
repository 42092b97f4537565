"""surrecall check"""

from __future__ import annotations

import typer

from surrecall import _render, _schema
from surrecall._cli._app import Context, Json, command
from surrecall._errors import ExitCode, SurrecallError


@command("check")
def check(context: Context, as_json: Json = False) -> None:
    """Say what is not as it should be: definitions, corpus, questions and labels, history, unfinished evaluations.

    Ends with 3 when the schema differs from the files, with 4 when the data has faults, with 0 when all is well.

    Example: surrecall check
    """
    with context.open() as database:
        findings = _schema.drift(database, context.folder)
        try:
            findings += [_schema.Finding(**row) for row in database.value("RETURN fn::check()")]
        except SurrecallError as error:
            if not findings:
                raise
            context.warn(f"the data was not checked: {error.message}")
    if as_json:
        _render.print_json(context.out, findings)
    elif findings:
        context.show(_render.table([vars(finding) for finding in findings], ("subject", "problem", "next")))
    else:
        context.out.print("all is well")
    if any(finding.kind == "schema" for finding in findings):
        raise typer.Exit(ExitCode.DATABASE)
    if findings:
        raise typer.Exit(ExitCode.DATA)
