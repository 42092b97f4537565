"""surrecall remove"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from surrecall import _remove, _render
from surrecall._cli._app import Context, Json, command
from surrecall._errors import UsageError


@command("remove")
def remove(
    context: Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also when something of yours uses it, or an evaluation is unfinished.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Take out of a database what surrecall put in: its tables, with questions and history, and its functions.

    Your tables, functions, analyzers and indexes stay, and so do the files of this folder. The history can't be brought back.

    Example: surrecall remove --dry-run
    """
    with context.open(any_corpus=True) as database:
        plan = _remove.plan(database)
        planned = plan.removals
        if planned and not dry_run and not yes:
            rows = sum(removal.rows or 0 for removal in planned)
            question = f"Remove {len(planned)} definitions and {rows} rows from {database.settings.label}?"
            if not sys.stdin.isatty():
                raise UsageError(f"{question} Nobody is there to answer", "--yes removes them, --dry-run shows them")
            typer.confirm(question, abort=True, err=True)
        if not dry_run:
            planned = _remove.remove(database, plan, force=force)
    if as_json:
        _render.print_json(context.out, {"removed": not dry_run, "definitions": planned, "users": plan.users})
        return
    if not planned:
        context.out.print("surrecall is not in this database")
        return
    tables = [removal for removal in planned if removal.rows is not None]
    if dry_run:
        for user in plan.users:
            context.warn(f"{user} is yours and uses what would go; it is refused, unless --force")
        for removal in planned:
            with_rows = f", {_render.counted(removal.rows, 'row')}" if removal.rows is not None else ""
            context.out.print(f"would remove {removal.label}{with_rows}", soft_wrap=True, markup=False, highlight=False)
        return
    rows_gone = sum(removal.rows or 0 for removal in tables)
    context.out.print(
        f"removed {len(planned)} definitions of surrecall, with {_render.counted(rows_gone, 'row')}",
        soft_wrap=True,
        highlight=False,
    )
    context.out.print("surrecall.toml and surql/ of this folder are yours to keep or delete", highlight=False)
