"""surrecall retriever remove"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _registry, _render
from surrecall._cli._app import Context, Json, command, retriever_app


@command("remove", group=retriever_app)
def remove(
    context: Context,
    name: Annotated[str, typer.Argument(help="Name of the retriever.")],
    as_json: Json = False,
) -> None:
    """Take a retriever out of retrievers.toml and of the database; its history stays.

    Example: surrecall retriever remove mine
    """
    with context.open() as database:
        _registry.remove(database, context.folder, name)
    if as_json:
        _render.print_json(context.out, {"removed": name})
        return
    context.out.print(f"removed {name}; what it did before stays in the history", markup=False, highlight=False)
