"""surrecall chunking remove"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _anchors, _render
from surrecall._cli._app import Context, Json, chunking_app, command


@command("remove", group=chunking_app)
def remove(
    context: Context,
    table: Annotated[str, typer.Argument(help="Table of chunks.")],
    as_json: Json = False,
) -> None:
    """Take a table of chunks out of the registry; the table itself and its history stay.

    Example: surrecall chunking remove passage
    """
    with context.open() as database:
        _anchors.remove_chunking(database, table)
    if as_json:
        _render.print_json(context.out, {"removed": table})
        return
    context.out.print(f"{table} is not registered any more; its rows stay", markup=False, highlight=False)
