"""Single keys of a terminal, without the Enter key."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

try:
    import termios
except ImportError:  # no POSIX
    termios = None  # type: ignore[assignment]

_ESCAPE = b"\x1b"
INTERRUPT = "\x03"


@contextmanager
def keys() -> Iterator[Callable[[], str]]:
    """A function that waits for a key. Meanwhile nothing is echoed, and what is typed ahead is kept.

    Ctrl-C is a key too, so that it never cuts a statement in two; arrows and their like are one key that means nothing.
    """
    if termios is None:
        yield typer.getchar
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    changed = termios.tcgetattr(terminal)
    changed[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG)
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    # not TCSAFLUSH, which forgets what is typed ahead
    termios.tcsetattr(terminal, termios.TCSADRAIN, changed)
    try:
        yield lambda: _key(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _key(terminal: int) -> str:
    read = os.read(terminal, 1)
    if not read:
        raise EOFError
    while select.select([terminal], [], [], 0)[0] and (read[:1] == _ESCAPE or not _whole(read)):
        more = os.read(terminal, 1)
        if not more:
            break
        read += more
        if read[:1] == _ESCAPE and len(read) > 2 and more.isalpha():
            break
    return read.decode(errors="replace")


def _whole(read: bytes) -> bool:
    """Whether bytes are a whole character."""
    try:
        read.decode()
    except UnicodeDecodeError:
        return False
    return True
