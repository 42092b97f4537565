"""Floors beside what was measured in a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrecall import _render
from surrecall._cli._app import Context


def show_floors(context: Context, floors: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """Rows of fn::guard_floor."""
    if not floors:
        return
    # the class alone does not say of what
    rows = [row | {"of": f"{row['by']} {row['class'] or '(none)'}" if row.get("by") else None} for row in floors]
    columns = ("floor", "retriever", "metric", "k", "of", "questions", "before", "after", "fault")
    context.out.print()
    context.show(_render.table(rows, columns, title=title))
