"""Functions and tables that are defined in a user's database for the time of a trial."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from surrecall import _quoting
from surrecall._database import Database


@contextmanager
def defined(database: Database, of: str, bodies: Mapping[str, str], form: str) -> Iterator[dict[str, str]]:
    """Functions of these bodies by what they are for, under names nobody has; gone afterwards, whatever happens.

    `form` is the DEFINE statement with {name} and {body}; the names begin with `of` and _probe_, by which they are known as ours.
    """
    suffix = uuid.uuid4().hex
    names = {key: f"fn::{of}_probe_{suffix}_{key}" for key in bodies}
    try:
        for key, body in bodies.items():
            database.run_as_written(form.format(name=names[key], body=body))
        yield names
    finally:
        _remove(database, "; ".join(f"REMOVE FUNCTION IF EXISTS {name}" for name in names.values()))


@contextmanager
def table(database: Database, of: str, comment: str) -> Iterator[str]:
    """A table without a schema under a name nobody has; gone afterwards, whatever happens; named as functions are."""
    name = f"{of}_probe_{uuid.uuid4().hex}"
    try:
        database.run_as_written(f"DEFINE TABLE {name} SCHEMALESS COMMENT {_quoting.text(f'surrecall: {comment}')}")
        yield name
    finally:
        _remove(database, f"REMOVE TABLE IF EXISTS {name}")


def _remove(database: Database, statements: str) -> None:
    if database.settings.is_embedded:
        database.run_as_written(statements)
    else:
        # a connection that was cut off in the middle of an answer may not be good for another statement
        with database.another() as other:
            other.run_as_written(statements)
