"""Filling the templates of the live page; every text in them is escaped."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from surrecall import _render
from surrecall._serve import codes

_TEMPLATES = Path(__file__).parents[1] / "templates"


def render(template: str, facts: dict[str, Any]) -> str:
    """A page of templates/serve."""
    return _environment().get_template(f"serve/{template}").render(facts)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "cell": _render.cell,
        "text": lambda value: _render.printable(str(value)),
        "record": lambda value: _render.printable(_render.record_text(value)),
        "code": codes.code,
        "marked": _marked,
    }
    return environment


def _marked(text: str, words: list[str]) -> list[tuple[str, bool]]:
    """The text in pieces, with whether each is a word that the question has too."""
    wanted, pieces, begun = {word.lower() for word in words}, [], 0
    safe = _render.printable(text)
    for match in re.finditer(r"[^\W_]+", safe):
        if match[0].lower() in wanted:
            pieces += [(safe[begun : match.start()], False), (match[0], True)]
            begun = match.end()
    return [*pieces, (safe[begun:], False)]
