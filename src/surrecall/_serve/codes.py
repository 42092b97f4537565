"""Record ids in addresses and forms: as the bytes of the SDK's own encoding, so that no id is ever read from text."""

from __future__ import annotations

import base64
import binascii

from surrealdb import RecordID
from surrealdb.data import cbor

from surrecall._errors import UsageError


def code(record: RecordID) -> str:
    """The id as letters, digits, - and _."""
    return base64.urlsafe_b64encode(cbor.encode(record)).decode().rstrip("=")


def record(text: str, table: str | None = None) -> RecordID:
    """The id of a code. Raises UsageError for anything that is none, or of another table than the one that is wanted."""
    try:
        found = cbor.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, TypeError, KeyError, EOFError, IndexError, RecursionError) as error:
        raise UsageError("that is no id of this page", "follow a link of it") from error
    if not isinstance(found, RecordID) or (table is not None and found.table_name != table):
        raise UsageError("that is no id of this page", "follow a link of it")
    return found
