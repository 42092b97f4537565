"""surrecall retriever list"""

from __future__ import annotations

from surrecall import _registry, _render
from surrecall._cli._app import Context, Json, command, retriever_app


@command("list", connects=False, group=retriever_app)
def list_(context: Context, as_json: Json = False) -> None:
    """Show the retrievers of this folder, as retrievers.toml has them.

    Example: surrecall retriever list
    """
    found = _registry.retrievers(context.folder)
    if as_json:
        _render.print_json(context.out, found)
        return
    # what a reranked one calls is made from its other entries
    rows = [vars(retriever) | ({"call": None} if retriever.reranks is not None else {}) for retriever in found]
    columns = ("name", "call", "returns", "prefix", "where", "document", "reranks", "rerank", "pool", "warning")
    context.show(_render.table(rows, tuple(key for key in columns if any(row[key] is not None for row in rows))))
