"""Markdown as GitHub renders it, in which no text of a question, document or name can be anything but text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from surrecall import _render

_SPECIAL = re.compile(r"[\\`*_{}\[\]()<>#+\-!|~&$:]")
# would address a person, or name an issue
_MENTION = re.compile(r"(?<![\w`])@(?=\w)")


def code(text: str) -> str:
    """A code span: nothing in it is markup, a link, a mention or an end of a cell."""
    line = " ".join(_render.printable(text).split())
    if not line:
        return ""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def plain(text: str) -> str:
    """A sentence with every sign escaped that could be markup."""
    line = " ".join(_render.printable(text).split())
    # the joiner is nothing to the eye, and keeps a name from being called
    return _MENTION.sub("@\u2060", _SPECIAL.sub(lambda sign: f"\\{sign[0]}", line))


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """Lines of a table; columns that are empty in every row are left out, numbers stand to the right. Texts are code spans."""
    shown = [name for name in columns if any(row.get(name) is not None for row in rows)]
    right = {name for name in shown if all(isinstance(row[name], int | float) for row in rows if row.get(name) is not None)}
    lines = [_line(plain(name) for name in shown), _line("--:" if name in right else "---" for name in shown)]
    return lines + [_line(_cell(row.get(name)) for name in shown) for row in rows]


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines that unfold on a click."""
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: Any) -> str:
    shown = _render.cell(value)
    return shown if isinstance(value, int | float) and not isinstance(value, bool) else code(shown)
