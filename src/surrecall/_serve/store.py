"""Connections of the live page: one a request on a server, one for all on the embedded engine, whose folder one process holds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from surrecall._database import Database


class Store:
    """Gives a database to one request at a time; close it when the page is no longer served."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.RLock()

    @property
    def is_embedded(self) -> bool:
        return self._database.settings.is_embedded

    @property
    def label(self) -> str:
        """The address of the database, without secrets."""
        return self._database.settings.label

    @contextmanager
    def open(self) -> Iterator[Database]:
        """A database for this thread. Raises DatabaseError when the server is away."""
        if self.is_embedded:
            with self._lock:
                yield self._database
            return
        with self._database.another() as database:
            yield database
