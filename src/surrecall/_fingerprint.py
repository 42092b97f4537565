"""The fingerprint of the corpus: carried forward by the database where changes are noted, else read in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surrecall._database import Database

# what one statement reads, well within what a client waits
_AT_ONCE = 2_000
_KNOWN = "RETURN { known: corpus_state:now.lanes != NONE, rows: fn::corpus_rows(), tables: fn::corpus_tables() }"
# what was added up before comes along, so that no figure is worked out here
_PART = """
LET $part = fn::corpus_part($table, $after, $count);
RETURN { rows: $part.rows, last: $part.last, lanes: vector::add($lanes ?? fn::lanes_of([]), $part.lanes) };
"""

Progress = Callable[[int, int], None]


def corpus_hash(database: Database) -> str:
    """The fingerprint of the corpus as it is now; a corpus of any size, in statements of a second or so."""
    told = database.value(_KNOWN)
    if told["known"] or told["rows"] <= _AT_ONCE:
        return str(database.value("RETURN fn::corpus_hash()"))
    return str(database.value("RETURN fn::lanes_hash($lanes)", lanes=read(database, told["tables"], told["rows"])))


def read(database: Database, tables: list[str], rows: int, progress: Progress = lambda _done, _all: None) -> list[int]:
    """The sum over all documents, as fn::lanes_of, read in parts."""
    lanes: list[int] | None = None
    done = 0
    for table in tables:
        after: Any = None
        while True:
            part = database.value(_PART, table=table, after=after, count=_AT_ONCE, lanes=lanes)
            lanes, after = part["lanes"], part["last"]
            done += part["rows"]
            progress(min(done, rows), rows)
            if part["rows"] < _AT_ONCE:
                break
    return lanes or []
