"""Trying again when another writer got in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from surrecall._errors import SurrecallError

_ATTEMPTS = 8


def retried(action: Callable[[], Any]) -> Any:
    """What an action gives, tried again when its transaction met another one; two writers meet on a shared row."""
    for attempt in range(_ATTEMPTS):
        try:
            return action()
        except SurrecallError as error:
            if "conflict" not in error.message.lower() or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.05 * 2**attempt)
    raise AssertionError("unreachable")
