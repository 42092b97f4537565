"""surrecall chunking add"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _anchors, _render
from surrecall._cli._app import Context, Json, chunking_app, command


@command("add", group=chunking_app)
def add(
    context: Context,
    table: Annotated[str, typer.Argument(help="Table of chunks.")],
    document: Annotated[str, typer.Option("--document", help="Field that links a chunk to its document.")] = "document",
    text: Annotated[str, typer.Option("--text", help="Field that holds the text of a chunk.")] = "text",
    position: Annotated[str, typer.Option("--position", help="Field that orders the chunks of a document.")] = "position",
    as_json: Json = False,
) -> None:
    """Register a table of chunks, so that retrievers that return its rows are scored by the anchors of questions.

    A retriever that leads its chunks to documents (retriever add --document) is scored by documents all the same.

    Example: surrecall chunking add passage --document parent --text body --position part
    """
    with context.open() as database:
        row = _anchors.add_chunking(database, table, {"document": document, "text": text, "position": position})
    if as_json:
        _render.print_json(context.out, row)
        return
    context.out.print(
        f"{table} holds chunks of {row['corpus']}; surrecall check says which anchors are whole in one",
        markup=False,
        highlight=False,
    )
