"""surrecall apply"""

from __future__ import annotations

from surrecall import _render, _schema
from surrecall._cli._app import Context, Json, command


@command("apply")
def apply(context: Context, as_json: Json = False) -> None:
    """Define the tables and functions in a database, all or nothing; again changes nothing.

    The corpus files come from surql/corpus of this folder where there is one, else the help centre's are used. A function
    or table of yours is never overwritten.

    Example: surrecall apply --url ws://127.0.0.1:8000 --user root
    """
    with context.open(create=True) as database:
        applied = _schema.apply(database, context.folder)
        if as_json:
            _render.print_json(context.out, applied)
            return
        for source, made in applied.regenerated.items():
            context.out.print(f"surql/corpus/{made} was made anew from {source}")
        what = f"{applied.functions} functions and {applied.tables} tables of surrecall are in {database.settings.label}"
        news = f"{applied.changed} definitions are new or changed" if applied.changed else ""
        rows = " and ".join(_MADE[table] for table in applied.rows)
        told = ", ".join(part for part in (news, f"there are other {rows}" if rows else "") if part)
        context.out.print(
            f"applied {applied.files} files: {what}; {told or 'nothing changed'}", soft_wrap=True, markup=False, highlight=False
        )
        for finding in applied.left_alone:
            context.warn(f"{finding.subject} {finding.problem}; {finding.next}")


_MADE = {"retriever": "retrievers", "eval_floor": "floors"}
