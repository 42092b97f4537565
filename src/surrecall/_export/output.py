"""Files that are written whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self
from uuid import uuid4

from surrecall._errors import UsageError

STANDARD_OUTPUT = "-"
# what is larger waits on the disk
_IN_MEMORY = 8 * 1024 * 1024
# ends of lines to some readers, not to JSON, which escapes all others
_SEPARATORS = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "\x85\u2028\u2029"})


class Output:
    """Files under temporary names, which take their own when all of them are done.

    Use as a context manager: an error inside leaves nothing behind. `force` replaces files that are there. The name `-` is
    standard output, which gets nothing either before all is done.
    """

    def __init__(self, *, force: bool = False) -> None:
        self._force = force
        # the file, its temporary name if it has one, and where it goes, None for standard output
        self._files: list[tuple[IO[bytes], Path | None, Path | None]] = []
        self._scratch: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._keep()
        finally:
            for scratch in self._scratch:
                scratch.close()
            for file, temporary, _ in self._files:
                # a full disk fails here once more
                with suppress(OSError):
                    file.close()
                if temporary is not None:
                    temporary.unlink(missing_ok=True)

    def open(self, name: str | Path) -> IO[bytes]:
        """A file to write. Raises UsageError when it is there and not to be replaced, or its folder can't be written."""
        if str(name) == STANDARD_OUTPUT:
            return self._spooled(None)
        # a link stays one: what it leads to is replaced
        path = Path(name).resolve()
        try:
            if path.exists() and not path.is_file() and not path.is_dir():
                # a pipe or a device: nothing can take its name
                return self._spooled(path)
            self._refuse_existing(path)
            temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
            file = temporary.open("xb+")
        except OSError as reason:
            raise _unwritable(path, reason) from reason
        self._files.append((file, temporary, path))
        return file

    def lines(self, name: str | Path) -> Lines:
        """A text file to write."""
        return Lines(self.open(name))

    def scratch(self) -> IO[bytes]:
        """A file of nobody's, gone when all is done."""
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._scratch.append(file)
        return file

    def _spooled(self, path: Path | None) -> IO[bytes]:
        file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._files.append((file, None, path))
        return file

    def _refuse_existing(self, path: Path) -> None:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", "name a file in it")
        if path.exists() and not self._force:
            raise UsageError(f"{path} is there already", "name another file, or --force to write over it")

    def _keep(self) -> None:
        path: Path | None = None
        try:
            for file, temporary, place in self._files:
                path = place
                file.flush()
                if temporary is not None:
                    os.fsync(file.fileno())
            for file, temporary, path in self._files:
                if temporary is not None and path is not None:
                    # somebody may have written it meanwhile
                    self._refuse_existing(path)
                    temporary.replace(path)
                elif path is not None:
                    with path.open("wb") as special:
                        _copy(file, special)
                else:
                    _copy(file, sys.stdout.buffer)
        except BrokenPipeError:
            raise
        except OSError as reason:
            raise _unwritable(path, reason) from reason


class Lines:
    """Text as UTF-8, line ends as given."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        """Write text as it is."""
        self._file.write(text.encode())

    def json(self, row: dict[str, Any]) -> None:
        """Write one object as a line of JSON."""
        self.write(json.dumps(row, ensure_ascii=False, allow_nan=False).translate(_SEPARATORS) + "\n")

    def table(self, columns: Sequence[str], delimiter: str = ",") -> Callable[[dict[str, str]], None]:
        """Write a header of CSV; gives the function that writes a row, whose missing cells stay blank."""
        writer = csv.writer(_Rows(self), delimiter=delimiter, lineterminator="\r\n")
        writer.writerow(columns)
        return lambda row: writer.writerow([row.get(column, "") for column in columns])


class _Rows:
    """Ends rows with LF. The writer must be told CRLF: a cell with a CR is not quoted when that is no part of its line end."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def write(self, row: str) -> None:
        self._lines.write(row.removesuffix("\r\n") + "\n")


def _copy(file: IO[bytes], target: IO[bytes]) -> None:
    file.seek(0)
    shutil.copyfileobj(file, target)
    target.flush()


def _unwritable(path: Path | None, reason: OSError) -> UsageError:
    return UsageError(
        f"{path or 'standard output'} can't be written: {reason.strerror or reason}", "name a file in a folder that exists"
    )
