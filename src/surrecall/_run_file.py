"""TREC run files: the rankings of a system, one document a line."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from surrecall import _ids, _tabular
from surrecall._faults import Faults

_BLANKS = re.compile(r"[ \t\f\v]+")
# question, Q0, document, rank, score, name of the run; trec_eval takes whatever stands after that
_FIELDS = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One document for one question. `single` is the score as trec_eval reads it, a 32-bit float."""

    line: int
    content: str
    question: _ids.Name
    document: _ids.Name
    score: float
    single: float


def read(path: Path, faults: Faults) -> list[Line]:
    """All lines of a file, in its order, which says nothing of the ranking."""
    names: dict[str, _ids.Name] = {}
    found = []
    for number, content in _tabular.lines(_tabular.decoded(path, faults)):
        fields = _BLANKS.split(content.strip(" \t\f\v"))
        if len(fields) < _FIELDS:
            faults.add(path, number, "not six fields: question, Q0, document, rank, score, name", content)
            continue
        question, document = (names.setdefault(field, _ids.Name(field)) for field in (fields[0], fields[2]))
        score = _tabular.number(fields[4])
        single = None if score is None else _single(float(score))
        if score is None or single is None:
            faults.add(path, number, f"the score {fields[4]!r} is no number of 32 bits", content)
        else:
            found.append(Line(number, content, question, document, float(score), single))
    return found


def _single(value: float) -> float | None:
    """The nearest 32-bit float; None where there is none."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None
