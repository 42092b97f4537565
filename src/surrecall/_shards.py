"""Long work in pieces that a client waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

# long before the client gives up on a query (30 s), and long enough to hide the round trip
_SHARD_SECONDS = 1.0
_FIRST_SHARD, _LARGEST_SHARD = 50, 5000

Progress = Callable[[int, int], None]


class Shards:
    """Work of `total` steps, cut so that each call takes about a second; `progress` is told how many are done, of how many."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def run(self, size: int, work: Callable[[int, int], Any], first: int | None = None) -> list[Any]:
        """What `work` gives for each piece start..end of 0..size, in order; `first` is the size of the first piece."""
        results: list[Any] = []
        shard, start = first or _FIRST_SHARD, 0
        while start < size:
            end, began = min(size, start + shard), time.monotonic()
            results.append(work(start, end))
            wanted = int((end - start) * _SHARD_SECONDS / max(time.monotonic() - began, 1e-6))
            shard = max(1, min(_LARGEST_SHARD, wanted, shard * 4))
            self.skip(end - start)
            start = end
        return results

    def skip(self, steps: int) -> None:
        """Count steps as done."""
        self._done += steps
        self._progress(self._done, self._total)


def joined(lists: list[list[Any]]) -> list[Any]:
    """Several lists as one."""
    return [value for values in lists for value in values]
