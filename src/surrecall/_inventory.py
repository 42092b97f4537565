"""What a database defines, by name, as the engine itself prints it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surrealdb import escape_identifier

if TYPE_CHECKING:
    from surrecall._database import Database

# every function and table of ours says so at the head of its COMMENT; that is how apply tells them from the user's
MARK = re.compile(r"COMMENT ['\"]surrecall: ")
_SINGULAR = {"fields": "field", "events": "event", "indexes": "index"}


@dataclass(frozen=True)
class Definition:
    """One definition in force. `name` as it is said in messages, for example `fn::score` or `table question`."""

    kind: str
    name: str
    text: str

    @property
    def is_ours(self) -> bool:
        """Whether its COMMENT names surrecall."""
        return MARK.search(self.text) is not None


def functions_and_tables(database: Database) -> dict[str, Definition]:
    """Functions and tables by name."""
    info = database.value("INFO FOR DB")
    found = [Definition("function", f"fn::{name}", text) for name, text in info["functions"].items()]
    found += [Definition("table", f"table {name}", text) for name, text in info["tables"].items()]
    return {definition.name: definition for definition in found}


def with_parts(database: Database) -> dict[str, Definition]:
    """Our functions and tables by name, the tables with their fields, events and indexes."""
    ours = {name: found for name, found in functions_and_tables(database).items() if found.is_ours}
    for table in [found.name.removeprefix("table ") for found in ours.values() if found.kind == "table"]:
        info = database.value(f"INFO FOR TABLE {escape_identifier(table)}")
        for kind in _SINGULAR:
            for name, text in info[kind].items():
                part = Definition(kind, f"{_SINGULAR[kind]} {name} of table {table}", text)
                ours[part.name] = part
    return ours
