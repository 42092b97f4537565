"""Cases written as .surql files, each block a statement and what it must give.

    -- case: what is tested            (first line)
    -- reason: why it matters          (once)
    -- with: rows.surql                (optional: a file beside it, run before)
    -- database: shared                (optional: the blocks write nothing, so one database serves them all)

    -- expect: 0.5                     any SurrealQL value; fractions agree to 1e-9
    -- expect about: 0.613147          to six places
    -- expect error: part of its text
    RETURN fn::…;

A block that is a single RETURN runs on both executors of the engine: as it stands, and below a write.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from surrecall import Database, SurrecallError

HEAD = re.compile(r"^-- (case|reason|with|database): (.+)$", re.MULTILINE)
_EXPECT = re.compile(r"^-- expect( about| error)?: (.+)$", re.MULTILINE)
_TOLERANCES = {"": 1e-9, "about": 6e-7}


@dataclass(frozen=True)
class Block:
    line: int
    mode: str
    expected: str
    statement: str


def heads(text: str) -> dict[str, str]:
    """What a file says of itself: case, reason, with, database."""
    return {match[1]: match[2].strip() for match in HEAD.finditer(text)}


def check(database: Database, block: Block) -> None:
    """Run a block. Raises AssertionError when it gives something else than it must."""
    for statement in both_executors(block.statement):
        _check(database, statement, block)


def _check(database: Database, statement: str, block: Block) -> None:
    if block.mode == "error":
        try:
            got = database.value(statement)
        except SurrecallError as error:
            if block.expected not in error.text:
                raise AssertionError(f"{error.text!r} does not say {block.expected!r}") from error
            return
        raise AssertionError(f"gave {got!r} instead of an error that says {block.expected!r}")
    got = database.value(statement)
    wanted = database.value(f"RETURN {block.expected}")
    # not by assert, which pytest would add its own words to
    if not close(got, wanted, _TOLERANCES[block.mode]):
        raise AssertionError(f"{statement}\ngave {got!r}, not {wanted!r}")


def parse(text: str) -> list[Block]:
    """The blocks of a case file."""
    found = list(_EXPECT.finditer(text))
    if not found:
        return []
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [
        Block(
            line=text.count("\n", 0, match.start()) + 1,
            mode=(match[1] or "").strip(),
            expected=match[2].strip().removesuffix(";"),
            statement=text[match.end() : end].strip(),
        )
        for match, end in zip(found, ends, strict=True)
    ]


def both_executors(statement: str) -> list[str]:
    """The statement, and where it is one RETURN the same expression below a write."""
    single = re.fullmatch(r"RETURN\s+([^;]+);", statement)
    if not single:
        return [statement]
    return [statement, f"RETURN (CREATE ONLY executor_probe SET value = ({single[1]})).value;"]


def close(got: Any, wanted: Any, tolerance: float) -> bool:
    """Equal, with fractions to a tolerance; an int is no float, true is no 1."""
    if isinstance(wanted, float):
        return isinstance(got, float) and math.isclose(got, wanted, rel_tol=0, abs_tol=tolerance)
    if isinstance(wanted, list):
        return (
            isinstance(got, list)
            and len(got) == len(wanted)
            and all(close(a, b, tolerance) for a, b in zip(got, wanted, strict=True))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(got, dict)
            and got.keys() == wanted.keys()
            and all(close(got[key], wanted[key], tolerance) for key in wanted)
        )
    return type(got) is type(wanted) and bool(got == wanted)
