"""What the database said, as the error it is for the user: its kind, and so its exit code, and the next step."""

from __future__ import annotations

import re

from surrecall._errors import DatabaseError, DataError, SchemaError, SurrecallError, UsageError

_APPLY = "surrecall apply"
_LOGIN = "give --user and SURREAL_PASSWORD (or SURREAL_USER and SURREAL_PASSWORD)"

# how a text begins: what it is, and the next step where the text itself does not end with one
_CAUSES: tuple[tuple[re.Pattern[str], type[SurrecallError], str | None], ...] = tuple(
    (re.compile(pattern), kind, hint)
    for pattern, kind, hint in (
        (r"k must be ", UsageError, None),
        (r"no retriever named ", UsageError, None),
        (r"no such question", UsageError, "surrecall questions lists them"),
        (r"no question (in|of) the golden set|no answerable question", DataError, None),
        (r"the query vector ", DataError, None),
        (r"(index|full-text index|vector index) .* is ", SchemaError, None),
        (r"no retriever is registered", SchemaError, None),
        (r"There was no suitable index supporting the expression", SchemaError, _APPLY),
        (r"Function 'fn::.* not found|The function 'fn::.* does not exist", SchemaError, _APPLY),
        (r"The table '.*' does not exist", SchemaError, _APPLY),
        (r"Anonymous access not allowed", DatabaseError, _LOGIN),
    )
)


def explain(text: str, statement: int | None = None) -> SurrecallError:
    """The error for a text of the database. Our own functions end theirs with the next step, after a semicolon."""
    for pattern, kind, hint in _CAUSES:
        if pattern.match(text):
            message, _, told = text.partition("; ")
            return kind(message, hint or told or None, statement)
    return DatabaseError(text, None, statement)
