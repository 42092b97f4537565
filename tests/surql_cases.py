"""Cases written as .surql files, each block a statement and what it must give.

    -- case: what is tested            (once, first line)
    -- reason: why it matters          (once)
    -- with: help centre               (optional: load the demo's rows)
    -- database: shared                (optional: the blocks write nothing, so one database serves them all)

    -- expect: 0.5                     any SurrealQL value; fractions agree to 1e-9
    -- expect about: 0.613147          to six places
    -- expect error: part of its text
    RETURN fn::…;

A block runs on every engine, and one that is a single RETURN on both executors: as it stands, and below a write.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from definitions import DEFINITIONS
from surrecall import Database, SurrecallError, _seed

_HEAD = re.compile(r"^-- (case|reason|with|database): (.+)$", re.MULTILINE)
_EXPECT = re.compile(r"^-- expect( about| error)?: (.+)$", re.MULTILINE)
_TOLERANCES = {"": 1e-9, "about": 6e-7}


@dataclass(frozen=True)
class Block:
    line: int
    mode: str
    expected: str
    statement: str


class CaseFile(pytest.File):
    """One .surql file; an item a block and engine."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._databases: dict[str, Database] = {}

    def collect(self) -> Iterator[pytest.Item]:
        from conftest import engines

        text = self.path.read_text(encoding="utf-8")
        heads = {match[1]: match[2] for match in _HEAD.finditer(text)}
        if not heads.get("case") or not heads.get("reason"):
            raise self.CollectError(f"{self.path}: needs -- case: and -- reason:")
        blocks = parse(text)
        if not blocks:
            raise self.CollectError(f"{self.path}: expects nothing")
        for engine in engines(self.config):
            for block in blocks:
                yield CaseItem.from_parent(
                    self,
                    name=f"{block.line}[{engine}]",
                    block=block,
                    engine=engine,
                    rows="with" in heads,
                    shares="database" in heads,
                )

    def fresh(self, engine: str, rows: bool) -> Database:
        """A database with the definitions, and the demo's rows where the case asks for them."""
        from conftest import fresh_settings

        database = Database(fresh_settings(self.config, engine))
        database.run(DEFINITIONS)
        if rows:
            _seed.seed(database)
        return database

    def shared(self, engine: str, rows: bool) -> Database:
        """One such database for the whole file."""
        if engine not in self._databases:
            self._databases[engine] = self.fresh(engine, rows)
        return self._databases[engine]

    def teardown(self) -> None:
        for database in self._databases.values():
            database.close()
        self._databases.clear()


class CaseItem(pytest.Item):
    """One block on one engine."""

    def __init__(self, *, block: Block, engine: str, rows: bool, shares: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.block, self.engine, self.rows, self.shares = block, engine, rows, shares

    def runtest(self) -> None:
        parent = self.parent
        assert isinstance(parent, CaseFile)
        if self.shares:
            self._check_all(parent.shared(self.engine, self.rows))
        else:
            with parent.fresh(self.engine, self.rows) as database:
                self._check_all(database)

    def _check_all(self, database: Database) -> None:
        for statement in both_executors(self.block.statement):
            self._check(database, statement)

    def _check(self, database: Database, statement: str) -> None:
        mode, expected = self.block.mode, self.block.expected
        if mode == "error":
            try:
                got = database.value(statement)
            except SurrecallError as error:
                assert expected in error.text, f"{error.text!r} does not say {expected!r}"
                return
            raise AssertionError(f"gave {got!r} instead of an error that says {expected!r}")
        got = database.value(statement)
        wanted = database.value(f"RETURN {expected}")
        assert close(got, wanted, _TOLERANCES[mode]), f"{statement}\ngave {got!r}, not {wanted!r}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002
        return f"{self.path}:{self.block.line}\n{excinfo.value}"

    def reportinfo(self) -> tuple[Any, int, str]:
        return self.path, self.block.line, f"{self.path.name}:{self.block.line}"


def parse(text: str) -> list[Block]:
    """The blocks of a case file."""
    found = list(_EXPECT.finditer(text))
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
