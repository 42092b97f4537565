"""A request as the answers take it, and what they give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from surrealdb import RecordID

from surrecall._errors import UsageError
from surrecall._serve import codes


@dataclass(frozen=True)
class Asked:
    """A request: the options of its address, what its form holds, and whether a script wants JSON in the place of a page."""

    options: dict[str, str]
    form: dict[str, list[str]] = field(default_factory=dict)
    json: bool = False

    def number(self, name: str, default: int) -> int:
        """A whole number among the options. Raises UsageError for anything else."""
        text = self.options.get(name) or str(default)
        if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1_000_000):
            raise UsageError(f"{name} is {text!r}, no whole number from 1", "for example: 5")
        return int(text)

    def record(self, name: str, table: str) -> RecordID | None:
        """The id that an option holds after a ~; None where it holds none, or a name."""
        text = self.options.get(name, "")
        return codes.record(text.removeprefix("~"), table) if text.startswith("~") else None

    def entry(self, name: str, default: str = "") -> str:
        """The first entry of that name in the form."""
        return (self.form.get(name) or [default])[0]


@dataclass(frozen=True)
class Filled:
    """A template of templates/serve with what fills it."""

    template: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class Whole:
    """A page that is finished."""

    text: str


@dataclass(frozen=True)
class Done:
    """Something was written or begun: what a script is told, and where a form leads."""

    told: dict[str, Any]
    then: str
    status: int = 200
