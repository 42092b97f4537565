"""surrecall check"""

from __future__ import annotations

from contextlib import suppress

import typer

from surrecall import _anchors, _render, _schema, _stale
from surrecall._cli._app import Context, Json, command
from surrecall._database import Database
from surrecall._errors import ExitCode, SurrecallError

_SHOWN = 5


@command("check")
def check(context: Context, as_json: Json = False) -> None:
    """Say what is not as it should be: definitions, corpus, questions and labels, history, unfinished evaluations.

    Ends with 3 when the schema differs from the files, with 4 when the data has faults, with 0 when all is well.

    Example: surrecall check
    """
    with context.open() as database:
        findings = _schema.drift(database, context.folder)
        try:
            indexes = {finding.subject.partition(" of table ")[0] for finding in findings}
            if not findings:
                _noted(database, context)
            # for the marks; what it finds is found by fn::check too, also for a user who may not write
            with suppress(SurrecallError):
                _stale.scan(database)
                _stale.forget(database)
            told = [_schema.Finding(**row) for row in database.value("RETURN fn::check()")]
            # an index that is missing is said once; an import to finish comes before what follows from it
            told = [finding for finding in told if finding.subject not in indexes]
            findings = [found for found in told if found.kind == "import"] + findings + [f for f in told if f.kind != "import"]
        except SurrecallError as error:
            if not findings:
                raise
            context.warn(f"the data was not checked: {error.message}")
    if as_json:
        _render.print_json(context.out, findings)
    elif findings:
        context.show(_render.table([vars(finding) for finding in _folded(findings)], ("subject", "problem", "next")))
    else:
        context.out.print("all is well")
    if any(finding.kind == "schema" for finding in findings):
        raise typer.Exit(ExitCode.DATABASE)
    if findings:
        raise typer.Exit(ExitCode.DATA)


def _noted(database: Database, context: Context) -> None:
    """Look through the corpus for phrases of anchors that stand twice; who may not write is told what is known."""
    try:
        _anchors.note_twins(database)
    except SurrecallError as error:
        context.warn(f"whether anchors stand in other documents too was not looked up: {error.message}")


def _folded(findings: list[_schema.Finding]) -> list[_schema.Finding]:
    """The first few of each problem, and how many more there are: a thousand equal lines hide the rest."""
    shown: list[_schema.Finding] = []
    groups: dict[tuple[str, str], list[_schema.Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.problem), []).append(finding)
    for (kind, problem), group in groups.items():
        shown += group[:_SHOWN]
        if len(group) > _SHOWN:
            shown.append(_schema.Finding(kind, f"and {len(group) - _SHOWN} more", problem, group[0].next))
    return shown
