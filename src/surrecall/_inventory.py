"""What a database defines, by name, as the engine itself prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surrecall import _files, _names, _quoting
from surrecall._errors import SurrecallError

if TYPE_CHECKING:
    from surrecall._database import Database

# functions and tables of ours say so at the head of their COMMENT, and have a name that is ours; that is how they are told from
# the user's, who may write what he likes into his own
_MARK = "surrecall: "
# tables of chunks, and the functions that search them, have names that the user chose
_CHUNK_MARK = "surrecall: chunks of "
# where the paths of our APIs begin
API = "/surrecall/"
# what a trial defines and takes away again
PROBE = ("retriever_probe_", "sweep_probe_", "ann_probe_", "advise_probe_")
_TOP = {"functions": "function", "analyzers": "analyzer", "tables": "table"}
_PARTS = {"fields": "field", "events": "event", "indexes": "index"}
# events that a policy puts on the user's tables, and takes off
_WATCH = "surrecall_"
_REMOVE = {"analyzer": "REMOVE ANALYZER {0}", "field": "REMOVE FIELD {0} ON {1}", "index": "REMOVE INDEX {0} ON {1}"}


@dataclass(frozen=True)
class Definition:
    """One definition in force: `kind` and `name`, of `table` where it is a part of one.

    `is_marked` when its COMMENT names surrecall, `is_ours` when its name is one of surrecall's too.
    """

    kind: str
    name: str
    text: str
    table: str | None = None
    is_marked: bool = False
    is_ours: bool = False

    @property
    def label(self) -> str:
        """How messages name it, for example `fn::score`, `table question`, `index words of table article`."""
        if self.kind == "function":
            return f"fn::{self.name}"
        return f"{self.kind} {self.name}" + (f" of table {self.table}" if self.table else "")

    @property
    def is_view(self) -> bool:
        """Whether it is a table that is made from another, so it has to go before that one."""
        return self.kind == "table" and " AS SELECT " in self.text

    @property
    def is_chunks(self) -> bool:
        """Whether it is a table that surrecall chunk fills."""
        return self.kind == "table" and self.is_ours and f"COMMENT '{_CHUNK_MARK}" in self.text

    @property
    def is_watch(self) -> bool:
        """Whether it is an event that an ingest policy put on a table of the user's."""
        return self.kind == "event" and self.is_marked and self.name.startswith(_WATCH)

    @property
    def removal(self) -> str | None:
        """The statement that takes a definition of the user's away, so that apply can make it anew; None for a table."""
        form = _REMOVE.get(self.kind)
        return form and form.format(_quoting.identifier(self.name), _quoting.identifier(self.table or ""))


def functions_and_tables(database: Database) -> dict[str, Definition]:
    """Functions and tables by label."""
    return of_kind(_top(database), "function", "table")


def apis(database: Database) -> list[str]:
    """The paths of the APIs that are ours."""
    told = database.run_as_written("INFO FOR DB STRUCTURE")[0]["apis"]
    return [one["path"] for one in told if str(one["path"]).startswith(API)]


def everything(database: Database) -> dict[str, Definition]:
    """Functions, analyzers and tables by label, the tables with their fields, events and indexes."""
    found = _top(database)
    for table in of_kind(found, "table").values():
        found |= {part.label: part for part in _parts(database, table)}
    return found


def of_kind(found: dict[str, Definition], *kinds: str) -> dict[str, Definition]:
    """Those of some kinds, by label."""
    return {label: definition for label, definition in found.items() if definition.kind in kinds}


def rows(database: Database, table: str) -> int:
    """The number of rows of a table, by the engine's own count: no row is read."""
    counted = database.run_as_written("SELECT count() FROM type::table($table) GROUP ALL", table=table)[-1]
    return int(counted[0]["count"]) if counted else 0


def _parts(database: Database, table: Definition) -> list[Definition]:
    """Fields, events and indexes of a table."""
    name = _quoting.identifier(table.name)
    try:
        texts, told = database.run_as_written(f"INFO FOR TABLE {name}; INFO FOR TABLE {name} STRUCTURE;")
    except SurrecallError:
        # the engine can't print some fields of the user's (one that is named select); nothing of ours is among them
        if table.is_ours:
            raise
        return []
    return [
        Definition(kind, part, text, table.name, marked, marked)
        for group, kind in _PARTS.items()
        for marks in [_marked(told[group])]
        for part, text in texts[group].items()
        for marked in [part in marks]
    ]


def _top(database: Database) -> dict[str, Definition]:
    """Functions, analyzers and tables by label."""
    texts, told = database.run_as_written("INFO FOR DB; INFO FOR DB STRUCTURE;")
    names = database.settings.names
    ours = {names.get(name, name).removeprefix("fn::") for name in (*_names.TABLES, *_files.our_functions())}
    found = [
        Definition(kind, name, text, None, marked, marked and (name in ours or name in chunks or name.startswith(PROBE)))
        for group, kind in _TOP.items()
        for marks, chunks in [(_marked(told[group]), _marked(told[group], _CHUNK_MARK))]
        for name, text in texts[group].items()
        for marked in [name in marks]
    ]
    return {definition.label: definition for definition in found}


def _marked(structure: list[dict[str, Any]], mark: str = _MARK) -> set[str]:
    """The names of definitions whose COMMENT names surrecall, or begins as `mark` does."""
    return {one["name"] for one in structure if str(one.get("comment") or "").startswith(mark)}
