"""What is new, told to every page that is open."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

from surrecall import _watch
from surrecall._database import Database
from surrecall._errors import DatabaseError

# a proxy or a browser gives a silent connection up
_BEAT_SECONDS = 15.0


class News:
    """Evaluations that end, alerts, and what this page itself did, in the order in which they came."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    def follow(self, database: Database) -> None:
        """Listen to a server from now on, in a thread of its own."""

        def listen() -> None:
            try:
                for news in _watch.follow(database, None, None, lambda _text: None):
                    self.tell(news.kind, news.row)
            except DatabaseError as error:
                self.tell("problem", {"text": error.text})

        threading.Thread(target=listen, daemon=True).start()

    def tell(self, kind: str, row: dict[str, Any]) -> None:
        """Tell every page; from any thread."""
        line = json.dumps({"kind": kind} | row, ensure_ascii=False, default=str)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, line)

    def close(self) -> None:
        """End every stream, so that the server can stop."""
        self.closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, None)

    async def stream(self) -> AsyncIterator[str]:
        """Lines of an event stream, for one page."""
        self._loop = asyncio.get_running_loop()
        mine: asyncio.Queue[str | None] = asyncio.Queue()
        self._listeners.add(mine)
        try:
            yield ": here\n\n"
            while not self.closed:
                try:
                    line = await asyncio.wait_for(mine.get(), _BEAT_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if line is None:
                    return
                yield f"data: {line}\n\n"
        finally:
            self._listeners.discard(mine)

    def _put(self, line: str | None) -> None:
        for listener in self._listeners:
            listener.put_nowait(line)
