"""Embedded databases made once and copied: a folder is copied in a tenth of the time that its definitions take."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from definitions import DEFINITIONS
from surrecall import Database, Settings, _seed


class Templates:
    """Folders below `folder`, with the definitions alone, or with the help centre's rows too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies = 0

    def place(self, target: Path, *, seeded: bool) -> None:
        """Put a copy into a folder that is not there yet."""
        source = self._folder / ("seeded" if seeded else "defined")
        if not source.exists():
            with Database(Settings(f"surrealkv://{source}")) as database:
                database.run(DEFINITIONS)
                if seeded:
                    _seed.seed(database)
        shutil.copytree(source, target)

    @contextmanager
    def copy(self, *, seeded: bool) -> Iterator[Database]:
        """A database of its own, gone afterwards."""
        self._copies += 1
        target = self._folder / f"copy{self._copies}"
        self.place(target, seeded=seeded)
        try:
            with Database(Settings(f"surrealkv://{target}")) as database:
                yield database
        finally:
            shutil.rmtree(target, ignore_errors=True)
