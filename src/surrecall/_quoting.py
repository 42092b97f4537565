"""Names and texts in SurrealQL: quoting them, and taking a quoted name apart."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# words that the parser takes for something else where a name could stand
_KEYWORDS = re.compile(
    "and|begin|break|cancel|commit|continue|create|define|delete|explain|false|for|function|if|info|insert|kill|let|live|none|null"
    "|only|option|or|rebuild|relate|remove|return|select|show|sleep|table|throw|true|update|upsert|use|value",
    re.IGNORECASE,
)
# one part of a path: a name in backticks, one in angle brackets, or anything up to the next dot
_PART = re.compile(r"`((?:[^`\\]|\\.)*)`|⟨((?:[^⟩\\]|\\.)*)⟩|([^.`⟨]+)")


def identifier(name: str) -> str:
    """A name as the parser takes it, in backticks where it is not plain."""
    if is_plain(name):
        return name
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def is_plain(name: str) -> bool:
    """Whether the parser takes a name without quotes, wherever a name can stand."""
    return _PLAIN.fullmatch(name) is not None and not _KEYWORDS.fullmatch(name)


def text(value: str) -> str:
    """A string literal."""
    return f"'{inside(value)}'"


def inside(value: str) -> str:
    """What stands between the quotes of a string literal."""
    return value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")


def path(field: str) -> str:
    """A field as the parser takes it: dots part it, and what is quoted already stays. Raises ValueError when it is none."""
    return ".".join("*" if part == "*" else identifier(part) for part in parts(field))


def parts(field: str) -> tuple[str, ...]:
    """The names of a field's path, without their quotes. Raises ValueError when it is no path."""
    found: list[str] = []
    position = 0
    while True:
        match = _PART.match(field, position)
        if match is None:
            raise ValueError(field)
        quoted = match[1] if match[1] is not None else match[2]
        found.append(match[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        position = match.end()
        if position == len(field):
            return tuple(found)
        if field[position] != ".":
            raise ValueError(field)
        position += 1
