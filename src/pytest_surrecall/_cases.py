"""Collecting .surql files of cases; their form stands in pytest_surrecall._blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pytest_surrecall import _blocks, _project, _servers
from surrecall import Database, SurrecallError


def is_case(path: Path) -> bool:
    """Whether a file says of itself that it is one; every other .surql file is left alone."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            return lines.readline().startswith("-- case: ")
    except (OSError, UnicodeDecodeError):
        return False


class CaseFile(pytest.File):
    """One .surql file, an item a block."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.heads: dict[str, str] = {}
        self._open = ExitStack()
        self._shared: Database | None = None

    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text(encoding="utf-8-sig")
        self.heads = _blocks.heads(text)
        if not self.heads.get("reason"):
            raise self.CollectError(f"{self.path}: needs a line -- reason: why it matters")
        blocks = _blocks.parse(text)
        if not blocks:
            raise self.CollectError(f"{self.path}: expects nothing; a block begins with -- expect: and what it must give")
        for block in blocks:
            yield CaseItem.from_parent(self, name=str(block.line), block=block)

    def shared(self) -> Database:
        """One database for the whole file."""
        if self._shared is None:
            self._shared = self.fresh(self._open)
        return self._shared

    def fresh(self, stack: ExitStack) -> Database:
        """A database with the project applied, and the rows that the file asks for."""
        project = stack.enter_context(_project.opened(_servers.of_session(self.config), self.config))
        if "with" in self.heads:
            project.load(self.path.parent / self.heads["with"])
        return project.database

    def teardown(self) -> None:
        self._open.close()
        self._shared = None


class CaseItem(pytest.Item):
    """One block."""

    def __init__(self, *, block: _blocks.Block, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.block = block

    def runtest(self) -> None:
        parent = self.parent
        assert isinstance(parent, CaseFile)
        if "database" in parent.heads:
            _blocks.check(parent.shared(), self.block)
            return
        with ExitStack() as stack:
            _blocks.check(parent.fresh(stack), self.block)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, AssertionError | SurrecallError):
            return f"{self.path}:{self.block.line}\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int, str]:
        return self.path, self.block.line - 1, f"{self.path.name}:{self.block.line}"
