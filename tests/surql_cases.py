"""Cases written as .surql files, on every engine.

Their form is that of the pytest plugin (pytest_surrecall._blocks), but `-- with: help centre` loads the demo's rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from definitions import DEFINITIONS
from pytest_surrecall._blocks import Block, both_executors, check, heads, parse
from surrecall import Database, _seed

__all__ = ["CaseFile", "CaseItem", "both_executors"]


_SHARED: dict[tuple[str, bool], Database] = {}


def close_shared() -> None:
    """Close what the cases share, before its server ends."""
    for database in _SHARED.values():
        database.close()
    _SHARED.clear()


class CaseFile(pytest.File):
    """One .surql file; an item a block and engine."""

    def collect(self) -> Iterator[pytest.Item]:
        from conftest import engines

        text = self.path.read_text(encoding="utf-8")
        told = heads(text)
        if not told.get("case") or not told.get("reason"):
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
                    rows="with" in told,
                    shares="database" in told,
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
        """One such database for all files whose blocks write nothing."""
        if (engine, rows) not in _SHARED:
            _SHARED[engine, rows] = self.fresh(engine, rows)
        return _SHARED[engine, rows]


class CaseItem(pytest.Item):
    """One block on one engine."""

    def __init__(self, *, block: Block, engine: str, rows: bool, shares: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.block, self.engine, self.rows, self.shares = block, engine, rows, shares

    def runtest(self) -> None:
        parent = self.parent
        assert isinstance(parent, CaseFile)
        if self.shares:
            check(parent.shared(self.engine, self.rows), self.block)
        else:
            with parent.fresh(self.engine, self.rows) as database:
                check(database, self.block)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002
        return f"{self.path}:{self.block.line}\n{excinfo.value}"

    def reportinfo(self) -> tuple[Any, int, str]:
        return self.path, self.block.line, f"{self.path.name}:{self.block.line}"
