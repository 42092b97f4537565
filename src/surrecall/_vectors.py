"""Vectors from .npy files. numpy reads them; it comes with the extra `vectors`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from surrecall._errors import DataError, UsageError

Vectors = dict[str, list[float]]
# as fn::usable_vector: the index holds 32-bit floats and squares them, so what is beyond is zero or infinite there
_SHORTEST, _LONGEST = 1e-15, 1e15


def fault(vector: Sequence[float]) -> str | None:
    """What keeps a vector from being searched with, as a noun phrase; None when nothing does."""
    if not all(map(math.isfinite, vector)):
        return "a vector with NaN or infinity"
    if not _SHORTEST < math.hypot(*vector) < _LONGEST:
        return "a vector of zeros, or of numbers too small or too large"
    return None


def read(path: Path, ids_path: Path) -> Vectors:
    """Vectors by id: a two-dimensional .npy of n × d numbers, and a text file with the n ids, one a line, in the same order.

    Raises DataError with file and place when the file is damaged, the lengths differ, an id repeats, or a vector can't be
    searched with.
    """
    try:
        import numpy
    except ImportError as error:
        raise UsageError(
            f"{path} needs numpy to be read", "pip install 'surrecall[vectors]', or move the vectors away to import without"
        ) from error
    try:
        with path.open("rb") as file:
            matrix = numpy.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError as error:
        raise DataError(f"{path} is not there", "give the vectors' file, or none") from error
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} is no .npy file that can be read: {error}", "write it again with numpy.save") from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise DataError(f"{path} holds {matrix.dtype} of shape {matrix.shape}", "n × d numbers belong there")
    try:
        # str.splitlines would also break at separators that an id may hold
        ids = re.split(r"\r\n|\n|\r", ids_path.read_bytes().decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{ids_path} can't be read: {reason}", f"one id a line, in the order of {path.name}") from error
    while ids and not ids[-1].strip():
        ids.pop()
    if len(ids) != len(matrix):
        raise DataError(
            f"{path} holds {len(matrix)} vectors, {ids_path.name} {len(ids)} ids", "one id a vector, in the same order"
        )
    rows: list[list[float]] = matrix.astype(float).tolist()
    unusable = [(index, wrong) for index, row in enumerate(rows) if (wrong := fault(row))]
    if unusable:
        (first, wrong), more = unusable[0], f", and {len(unusable) - 1} more" if unusable[1:] else ""
        raise DataError(
            f"{path} row {first + 1} ({ids[first]}) is {wrong}{more}", "embed these again; a zero vector is nearest to everything"
        )
    vectors: Vectors = dict(zip(ids, rows, strict=True))
    if len(vectors) != len(ids):
        again = next(name for name, times in Counter(ids).items() if times > 1)
        raise DataError(
            f"{ids_path} line {len(ids) - ids[::-1].index(again)}: the id {again!r} is there twice", "one vector an id"
        )
    return vectors


def require_distinct(names: Iterable[object], where: Path) -> None:
    """Refuse ids that a file of ids can't tell apart: the number 7 and the text 7."""
    seen: dict[str, object] = {}
    for name in names:
        other = seen.setdefault(str(name), name)
        if other != name:
            raise DataError(
                f"{where} has the ids {other!r} and {name!r}, which a file of ids can't tell apart",
                "keep the vectors in the JSON rows themselves, or import without vectors",
            )
