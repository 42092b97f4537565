"""Reading SurrealQL that a user wrote as one expression, without what stands in texts and comments."""

from __future__ import annotations

import re

# a text, a quoted name or a comment; a text first, so that what looks like a comment inside one is none
_SKIPPED = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`\\]|\\.)*`|⟨[^⟩]*⟩)|(?P<comment>/\*.*?\*/|(?:--|//|#)[^\n]*)",
    re.DOTALL,
)
_WRITES = re.compile(r"(?<![\w.:$])(?:CREATE|INSERT|UPDATE|UPSERT|DELETE|RELATE|REMOVE|DEFINE|ALTER)(?=\s)", re.IGNORECASE)


def code(expression: str) -> str:
    """An expression with empty texts, and a blank in the place of a comment."""
    return _SKIPPED.sub(lambda found: "''" if found["text"] else " ", expression)


def writes(*expressions: str) -> str | None:
    """The word by which one of the expressions writes; None when none does."""
    found = _WRITES.search(code(" ".join(expressions)))
    return found[0].upper() if found else None


def is_one(expression: str) -> bool:
    """Whether it can be one expression: no semicolon outside braces, where a second statement would begin.

    What is never closed is left to the engine, which says where.
    """
    depth = 0
    for char in code(expression).rstrip().removesuffix(";"):
        depth += (char in "{([") - (char in "})]")
        if depth < 0 or (char == ";" and depth == 0):
            return False
    return True
