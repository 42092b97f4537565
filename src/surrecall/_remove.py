"""Taking surrecall out of a database: what it put in, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from surrecall import _inventory, _quoting
from surrecall._database import Database
from surrecall._errors import SchemaError, SurrecallError

# an assertion as the engine prints it, up to the clause that follows
_ASSERTION = re.compile(r" ASSERT .*?(?= (?:REFERENCE|COMMENT|PERMISSIONS)\b|$)", re.DOTALL)


@dataclass(frozen=True)
class Removal:
    """One statement that takes something out: what, and how many rows go with it (None for what has none)."""

    label: str
    statement: str
    rows: int | None = None


def plan(database: Database) -> list[Removal]:
    """What remove would do, in its order; nothing when surrecall is not there."""
    there = _inventory.everything(database)
    ours = [found for found in there.values() if found.is_ours]
    functions = [found for found in ours if found.kind == "function"]
    tables = [found for found in ours if found.kind == "table"]
    freed = [
        Removal(f"the assertion of {found.label}", _without_assertion(found.text))
        for found in there.values()
        if found.kind == "field" and found.table not in {table.name for table in tables} and _calls(found.text, functions)
    ]
    removals = [
        Removal(found.label, f"REMOVE TABLE {_quoting.identifier(found.name)}", _rows(database, found)) for found in tables
    ]
    removals += [Removal(found.label, f"REMOVE FUNCTION fn::{found.name}") for found in functions]
    return freed + removals


def remove(database: Database) -> list[Removal]:
    """Take everything out in one transaction; what was taken out.

    Raises SchemaError when the database refuses, and then nothing is gone.
    """
    planned = plan(database)
    if not planned:
        return []
    statements = "; ".join(removal.statement for removal in planned)
    try:
        database.run_as_written(f"BEGIN; {statements}; COMMIT;")
    except SurrecallError as error:
        raise SchemaError(
            f"the database refused, nothing was removed: {error.message}", "look for a function or table of yours that needs it"
        ) from error
    return planned


def _without_assertion(text: str) -> str:
    return _ASSERTION.sub("", text).replace("DEFINE FIELD", "DEFINE FIELD OVERWRITE", 1)


def _calls(text: str, functions: list[_inventory.Definition]) -> bool:
    return any(re.search(rf"\bfn::{re.escape(function.name)}\(", text) for function in functions)


def _rows(database: Database, table: _inventory.Definition) -> int:
    counted: int = database.value("RETURN count(SELECT VALUE id FROM type::table($table))", table=table.name)
    return counted
