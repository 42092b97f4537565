"""Floors beside what was measured in a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrecall import _render
from surrecall._cli._app import Context

_COLUMNS = ("floor", "retriever", "metric", "k", "of", "before", "after", "holds")


def show_floors(context: Context, floors: Sequence[dict[str, Any]]) -> None:
    """Rows of fn::guard_floor, and below the table what breaks."""
    if not floors:
        return
    rows = [
        # the class alone does not say of what
        row | {"of": f"{row['by']} {row['class'] or '(none)'}" if row.get("by") else None, "holds": row["fault"] is None}
        for row in floors
    ]
    context.out.print()
    context.show(_render.table(rows, _COLUMNS, title="floors"))
    for row in floors:
        if row["fault"] is not None:
            line = f"{row['floor']}: {row['fault']}"
            context.out.print(_render.printable(line), markup=False, highlight=False, soft_wrap=True)
