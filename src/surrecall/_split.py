"""Holding questions of a golden set out. Which ones, and how often they were looked at, the database says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from surrecall import _writer
from surrecall._database import Database
from surrecall._retry import retried

_BEGIN = "RETURN fn::split_begin($options)"
_ASSIGN = "BEGIN; fn::split_assign($set, $share, $assigned); COMMIT;"
_COUNTS = "RETURN fn::split_counts($set)"
_LOOKS = "RETURN fn::heldout_looks($set)"
_BATCH = 500


@dataclass(frozen=True)
class Split:
    """The share that is held out, what was assigned ({id, split}), rows of fn::split_counts, and fn::heldout_looks.

    Of a dry run the counts are those of before.
    """

    set: str
    share: float
    assigned: list[dict[str, Any]]
    counts: list[dict[str, Any]]
    looks: dict[str, Any]


def split(database: Database, question_set: str, share: float | None = None, *, dry_run: bool = False) -> Split:
    """Give the questions of a set that have no split theirs; cut off, the same again does the rest.

    Raises UsageError for a share that is none, DataError for a set without questions.
    """
    if not dry_run:
        _writer.require_writer(database, "split")
    options = {"set": question_set} | ({} if share is None else {"share": share})
    begun = database.value(_BEGIN, options=options)
    assigned = begun["assigned"]
    for start in range(0, 0 if dry_run else max(len(assigned), 1), _BATCH):
        part = assigned[start : start + _BATCH]
        retried(partial(database.run, _ASSIGN, set=question_set, share=begun["share"], assigned=part))
    counts = database.value(_COUNTS, set=question_set)
    return Split(question_set, begun["share"], assigned, counts, database.value(_LOOKS, set=question_set))
