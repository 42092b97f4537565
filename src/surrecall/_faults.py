"""Faults of files, gathered by file, line and content, so that one reading shows them all."""

from __future__ import annotations

from pathlib import Path

from surrecall._errors import DataError

_SHOWN = 10


class Faults:
    """Faults by file and line, the first ten kept, raised together; `done` is what is not done then."""

    def __init__(self, done: str = "imported") -> None:
        self.done = done
        self.count = 0
        self.lines: list[str] = []

    def add(self, path: Path, line: int, problem: str, content: str) -> None:
        """Note one; `line` counts from 1, `content` is the line as it stands."""
        self.count += 1
        if len(self.lines) < _SHOWN:
            self.lines.append(f"{path}:{line}: {problem}: {content.strip()[:120]!r}")

    def raise_if_any(self, hint: str | None = None) -> None:
        """Raise DataError with all that was noted; `hint` is the next step, where it is another than to mend the lines."""
        if self.count:
            more = f"\n  and {self.count - len(self.lines)} more" if self.count > len(self.lines) else ""
            raise DataError(
                f"{self.count} fault{'s' if self.count > 1 else ''}, nothing was {self.done}\n  "
                + "\n  ".join(self.lines)
                + more,
                hint or "mend these lines, then import again",
            )
