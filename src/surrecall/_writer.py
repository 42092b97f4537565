"""Whether the user may write. The server answers a write that it does not allow with nothing, and no error."""

from __future__ import annotations

from surrecall._database import Database
from surrecall._errors import DatabaseError, SchemaError, SurrecallError

_MAY, _MAY_NOT = "surrecall: this user may write", "surrecall: this user may not write"
# never stored: the transaction ends in an error either way
_PROBE = f"""
BEGIN;
LET $made = (CREATE import_log SET source = 'probe', documents = 0, questions = 0);
IF array::len($made) > 0 {{ THROW '{_MAY}' }} ELSE {{ THROW '{_MAY_NOT}' }};
COMMIT;
"""


def refused(what: str) -> DatabaseError:
    """The error for what the database did not store."""
    return DatabaseError(f"the database stored no {what}", "this user may read but not write; take one that may (--user)")


def require_writer(database: Database, what: str) -> None:
    """Raise DatabaseError when this user may not write, before `what` is asked, worked out or told."""
    try:
        database.run(_PROBE)
    except SurrecallError as error:
        if error.message == _MAY_NOT:
            raise refused(what) from error
        # in a strict database without the schema there is nothing to try it on; whatever needs the schema says so
        if error.message != _MAY and not isinstance(error, SchemaError):
            raise
