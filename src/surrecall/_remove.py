"""Taking surrecall out of a database: what it put in, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from surrecall import _inventory, _quoting
from surrecall._database import Database
from surrecall._errors import SchemaError, SurrecallError, UsageError
from surrecall._render import record_text
from surrecall._retry import retried

# the assertion that the corpus files put on a vector field, letter for letter, and nothing that somebody wrote himself
_ASSERTION = re.compile(
    r" ASSERT \$value = NONE OR (?P<call>fn::\w+(?:::\w+)*)\(\$value, \d+\)(?= (?:REFERENCE|COMMENT|PERMISSIONS)\b|$)"
)
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_RUNNING = "SELECT VALUE id FROM evaluation WHERE status = 'running' ORDER BY id LIMIT 1"


@dataclass(frozen=True)
class Removal:
    """One statement that takes something out: what, and how many rows go with it (None for what has none)."""

    label: str
    statement: str
    rows: int | None = None


@dataclass(frozen=True)
class Plan:
    """What remove would do, in its order; and what of the user's own would be left without something it uses (`users`)."""

    removals: list[Removal]
    users: list[str]


def plan(database: Database) -> Plan:
    """What remove would do; nothing when surrecall is not there."""
    there = _inventory.everything(database)
    ours = [found for found in there.values() if found.is_ours and found.kind in ("function", "table")]
    functions = [found for found in ours if found.kind == "function"]
    tables = [found for found in ours if found.kind == "table"]
    names = {table.name for table in tables}
    theirs = [found for found in there.values() if not found.is_ours and found.table not in names]
    watches = [found for found in there.values() if found.is_watch]
    checked = [found for found in theirs if found.kind == "field" and _assertion(database, found)]
    freed = [Removal(f"the assertion of {found.label}", _without_assertion(found.text)) for found in checked]
    freed += [
        Removal(found.label, f"REMOVE EVENT {_quoting.identifier(found.name)} ON {_quoting.identifier(found.table or '')}")
        for found in watches
    ]
    removals = [
        Removal(found.label, f"REMOVE TABLE {_quoting.identifier(found.name)}", _inventory.rows(database, found.name))
        # a view before the table it is of
        for found in sorted(tables, key=lambda found: not found.is_view)
    ]
    removals += [Removal(found.label, f"REMOVE FUNCTION fn::{found.name}") for found in functions]
    removals += [Removal(f"API {path}", f"REMOVE API {_quoting.text(path)}") for path in _inventory.apis(database)]
    uses = re.compile(
        "|".join([*(rf"\bfn::{re.escape(one.name)}\s*\(" for one in functions), *(rf"record<{name}>" for name in names)])
    )
    users = [
        found.label
        for found in theirs
        if removals and uses.search(_STRING.sub("''", _without_assertion(found.text) if found in checked else found.text))
    ]
    return Plan(freed + removals, users)


def remove(database: Database, planned: Plan, *, force: bool = False) -> list[Removal]:
    """Take everything out in one transaction; what was taken out.

    Raises UsageError when something of the user's uses what is ours, or an evaluation is unfinished and may be running, unless
    `force`; SchemaError when the database refuses. Then nothing is gone.
    """
    if not planned.removals:
        return []
    if planned.users and not force:
        raise UsageError(
            f"{', '.join(planned.users)}: yours, and would be left without what it uses of surrecall's; nothing was removed",
            "change it first, or --force to leave it so",
        )
    if not force and (running := database.value(_RUNNING)):
        raise UsageError(
            f"{record_text(running[0])} is unfinished, and may be running; nothing was removed",
            "wait for it, or surrecall evaluate --resume, or --force",
        )
    statements = "; ".join(removal.statement for removal in planned.removals)
    try:
        # an evaluation in the background may be at its last steps
        retried(lambda: database.run_as_written(f"BEGIN; {statements}; COMMIT;"))
    except SurrecallError as error:
        raise SchemaError(
            f"the database refused, nothing was removed: {error.message}",
            error.hint or "look for a table of yours that needs it, and whether this user may remove definitions",
        ) from error
    return planned.removals


def _assertion(database: Database, field: _inventory.Definition) -> bool:
    """Whether a field is asserted by the function that the corpus files assert vectors by."""
    match = _ASSERTION.search(field.text)
    return match is not None and match["call"] == database.settings.names.get("fn::require_vector", "fn::require_vector")


def _without_assertion(text: str) -> str:
    return _ASSERTION.sub("", text).replace("DEFINE FIELD", "DEFINE FIELD OVERWRITE", 1)
