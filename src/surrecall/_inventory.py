"""What a database defines, by name, as the engine itself prints it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surrecall import _quoting

if TYPE_CHECKING:
    from surrecall._database import Database

# every function and table of ours says so at the head of its COMMENT; that is how apply tells them from the user's
_MARK = re.compile(r"COMMENT ['\"]surrecall: ")
_PARTS = {"fields": "field", "events": "event", "indexes": "index"}
_REMOVE = {"analyzer": "REMOVE ANALYZER {0}", "field": "REMOVE FIELD {0} ON {1}", "index": "REMOVE INDEX {0} ON {1}"}


@dataclass(frozen=True)
class Definition:
    """One definition in force: `kind` and `name`, of `table` where it is a part of one."""

    kind: str
    name: str
    text: str
    table: str | None = None

    @property
    def label(self) -> str:
        """How messages name it, for example `fn::score`, `table question`, `index words of table article`."""
        if self.kind == "function":
            return f"fn::{self.name}"
        return f"{self.kind} {self.name}" + (f" of table {self.table}" if self.table else "")

    @property
    def is_ours(self) -> bool:
        """Whether its COMMENT names surrecall."""
        return _MARK.search(self.text) is not None

    @property
    def removal(self) -> str | None:
        """The statement that takes a definition of the user's away, so that apply can make it anew; None for a table."""
        form = _REMOVE.get(self.kind)
        return form and form.format(_quoting.identifier(self.name), _quoting.identifier(self.table or ""))


def functions_and_tables(database: Database) -> dict[str, Definition]:
    """Functions and tables by label."""
    return _top(database, ("functions", "function"), ("tables", "table"))


def analyzers(database: Database) -> dict[str, Definition]:
    """Analyzers by label."""
    return _top(database, ("analyzers", "analyzer"))


def everything(database: Database) -> dict[str, Definition]:
    """Functions, analyzers and tables by label, the tables with their fields, events and indexes."""
    found = functions_and_tables(database) | analyzers(database)
    for table in [definition for definition in found.values() if definition.kind == "table"]:
        info = database.value(f"INFO FOR TABLE {_quoting.identifier(table.name)}")
        for group, kind in _PARTS.items():
            parts = [Definition(kind, name, text, table.name) for name, text in info[group].items()]
            found |= {part.label: part for part in parts}
    return found


def _top(database: Database, *groups: tuple[str, str]) -> dict[str, Definition]:
    info = database.value("INFO FOR DB")
    found = [Definition(kind, name, text) for group, kind in groups for name, text in info[group].items()]
    return {definition.label: definition for definition in found}
