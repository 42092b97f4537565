"""Judgements of a model that a person repeats without seeing the verdict. What is drawn and what it shows the database says."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _writer
from surrecall._database import Database
from surrecall._errors import SurrecallError, UsageError
from surrecall._faults import Faults
from surrecall._retry import retried

_DRAW = "RETURN fn::audit_draw($set, $number, $anew)"
_ANSWER = "RETURN fn::audit_answer($judgement, $verdict, $who)"
_STATE = """
RETURN {
  audits: (SELECT VALUE fn::audit_figures(id) FROM (SELECT id, at FROM judgement_audit WHERE set = $set ORDER BY at, id)),
  open: fn::audit_open($set),
  alarm: fn::audit_alarm($set),
  unaudited: fn::audit_pool($set).len(),
};
"""
_OPEN = "RETURN fn::audit_open($set)"
_ACCEPT = "RETURN fn::audit_accept($difference)"
_KNOWN = "RETURN fn::verdict_grade($verdict) != NONE"
_COLUMNS = ("judgement", "question", "document", "text", "passage", "verdict")
SHORT = {"y": "yes", "p": "part", "n": "no"}


@dataclass(frozen=True)
class Accepted:
    """Labels that follow the person's verdict now, and differences that stay, each with the reason."""

    changed: int
    left: list[dict[str, Any]]


def draw(database: Database, question_set: str, number: int, *, anew: bool) -> dict[str, Any]:
    """What is to be repeated: {audit, todo}. Raises DataError where no model judged."""
    _writer.require_writer(database, "audit")
    drawn: dict[str, Any] = retried(lambda: database.value(_DRAW, set=question_set, number=number, anew=anew))
    return drawn


def answer(database: Database, judgement: RecordID, verdict: str, who: str) -> None:
    """Keep a person's verdict: yes, part or no."""
    retried(lambda: database.value(_ANSWER, judgement=judgement, verdict=verdict, who=who))


def state(database: Database, question_set: str) -> dict[str, Any]:
    """Figures of all audits of a set, the differences that labels do not follow, the alarm or None, how many are not audited."""
    found: dict[str, Any] = database.value(_STATE, set=question_set)
    return found


def accept(database: Database, question_set: str) -> Accepted:
    """Make the labels follow the person's verdicts. The last relevant document of a question stays, and is told."""
    _writer.require_writer(database, "label")
    changed, left = 0, []
    for difference in database.value(_OPEN, set=question_set):
        try:
            retried(lambda difference=difference: database.value(_ACCEPT, difference=difference))  # type: ignore[misc]
        except SurrecallError as error:
            left.append({"question": difference["question"], "document": difference["document"], "why": error.message})
        else:
            changed += 1
    return Accepted(changed, left)


def write(path: Path, todo: list[dict[str, Any]]) -> None:
    """A sheet to fill in, its last column empty. Raises UsageError where it can't be written, or stands there already."""
    try:
        with path.open("x", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(_COLUMNS)
            for row in todo:
                ids = (row["judgement"].id, str(row["question"].id), str(row["document"].id))
                writer.writerow([*ids, row["text"], row["passage"], ""])
    except OSError as error:
        raise UsageError(f"--out {path} can't be written: {error.strerror}", "a file that is not there yet") from error


def read(database: Database, path: Path) -> list[tuple[RecordID, str]]:
    """The verdicts of a sheet that was filled in; rows without one are not judged yet. Raises DataError naming each line."""
    _writer.require_writer(database, "verdict")
    faults = Faults("stored")
    try:
        lines = list(_lines(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"--from {path} can't be read: {getattr(error, 'strerror', None) or error}", "a CSV of --out") from error
    if not lines or not {"judgement", "verdict"} <= set(lines[0][1]):
        raise UsageError(f"--from {path} has no columns judgement and verdict", "surrecall audit --out FILE writes such a sheet")
    found: list[tuple[RecordID, str]] = []
    seen: dict[str, int] = {}
    for number, row in lines:
        key, verdict = (row.get("judgement") or "").strip(), (row.get("verdict") or "").strip().lower()
        verdict = SHORT.get(verdict, verdict)
        if not verdict:
            continue
        if not key or not database.value(_KNOWN, verdict=verdict):
            faults.add(path, number, "no verdict of yes, part or no" if key else "no judgement", f"{key},{verdict}")
        elif key in seen:
            faults.add(path, number, f"the judgement stands in line {seen[key]} too", key)
        else:
            seen[key] = number
            found.append((RecordID(database.table("judgement"), key), verdict))
    faults.raise_if_any("mend these lines, then read it again")
    return found


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        for row in reader:
            yield reader.line_num, row
