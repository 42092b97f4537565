"""Vectors as a .npy file and the ids they belong to as a text file. numpy writes them; it comes with the extra `vectors`."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surrecall._errors import DataError, UsageError
from surrecall._export.ids import BYTE_ORDER_MARK
from surrecall._export.output import STANDARD_OUTPUT, Output

# numbers that are turned over at a time
_CHUNK = 1 << 20


class NpyWriter:
    """Gathers vectors, and writes them by `finish`: n × d numbers, in 32 bits where none of them needs 64, and n ids.

    Raises UsageError when numpy is missing, or the name can't be one of two files.
    """

    def __init__(self, output: Output, path: str | Path) -> None:
        try:
            import numpy
        except ImportError as error:
            raise UsageError(
                f"{path} needs numpy to be written", "pip install 'surrecall[vectors]', or leave the vectors out"
            ) from error
        if str(path) == STANDARD_OUTPUT or Path(path).suffix != ".npy":
            raise UsageError(f"{path} is no name of a .npy file", "for example: docs.npy, with docs.ids.txt beside it")
        self._numpy: Any = numpy
        self._npy = output.open(path)
        self._ids = output.lines(Path(path).with_suffix(".ids.txt"))
        self._raw = output.scratch()
        self._dimension: int | None = None
        self._narrow = True
        self.count = 0

    def add(self, name: str, vector: Sequence[float]) -> None:
        """Add one. Raises DataError for one that can't be searched with, of another length, or whose id takes two lines."""
        if any(letter in "\r\n" for letter in name) or not name.strip() or name.startswith(BYTE_ORDER_MARK):
            raise DataError(
                f"the id {name!r} does not fit on a line of its own", "leave the vectors out; surrecall snapshot holds them"
            )
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in vector) or not any(vector):
            raise DataError(
                f"the vector of {name} is all zeros, or holds something that is no number", "surrecall embed makes it anew"
            )
        self._dimension = self._dimension or len(vector)
        if len(vector) != self._dimension:
            raise DataError(
                f"the vector of {name} has {len(vector)} numbers, those before it {self._dimension}", "embed all with one model"
            )
        numbers = array("d", vector)
        self._narrow = self._narrow and list(array("f", _bounded(numbers))) == list(numbers)
        self._raw.write(numbers.tobytes())
        self._ids.write(name + "\n")
        self.count += 1

    def finish(self) -> None:
        """Write what was added."""
        kind = "<f4" if self._narrow else "<f8"
        header = {"descr": kind, "fortran_order": False, "shape": (self.count, self._dimension or 0)}
        self._numpy.lib.format.write_array_header_1_0(self._npy, header)
        self._raw.seek(0)
        while chunk := self._raw.read(8 * _CHUNK):
            self._npy.write(self._numpy.frombuffer(chunk, dtype="f8").astype(kind).tobytes())


def _bounded(numbers: Sequence[float]) -> Sequence[float]:
    """Numbers that 32 bits can take; where one is too large, something else than they are."""
    return numbers if all(abs(number) < 3.4e38 for number in numbers) else ()
