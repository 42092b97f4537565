"""surrecall chunking list"""

from __future__ import annotations

from surrecall import _anchors, _render
from surrecall._cli._app import Context, Json, chunking_app, command
from surrecall._cli._resolution import say


@command("list", group=chunking_app)
def list_(context: Context, as_json: Json = False) -> None:
    """Show the registered tables of chunks.

    Example: surrecall chunking list
    """
    with context.open() as database:
        rows = _anchors.chunkings(database)
    if as_json:
        _render.print_json(context.out, rows)
    elif rows:
        columns = ("table", "corpus", "chunks", "document", "text", "position", "splitter", "max_chars", "overlap")
        context.show(_render.table(rows, tuple(key for key in columns if any(row.get(key) is not None for row in rows))))
    else:
        say(context, "no table of chunks yet; next: surrecall chunking add TABLE")
