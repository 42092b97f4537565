"""Driving an evaluation in shards. What is measured is measured in the database; rankings never come here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._errors import SurrecallError

# small enough to end long before the client gives up on a query (30 s), large enough to hide the round trip
_SHARD = 20

# read first, store second: a read at the top level runs on the engine's faster executor, one below a write does not
_ANSWER = """
LET $answers = (SELECT VALUE object::extend(fn::answer($retriever, id, $depth), { evaluation: $evaluation }) FROM $questions);
INSERT INTO eval_answer $answers RETURN NONE;
"""
_ERROR = """
CREATE eval_answer CONTENT {
  evaluation: $evaluation, retriever: $retriever, question: $question, depth: $depth, ranking: [],
  labels: fn::labels_of($question), answerable: $question.answerable, kind: $question.kind,
  took: 0ns, status: 'error', message: $message
} RETURN NONE;
"""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to evaluate. `cutoffs` are whole numbers from 1; no retrievers means all that are registered."""

    cutoffs: Sequence[int]
    retrievers: Sequence[str] | None = None
    question_set: str = "default"
    note: str | None = None
    trigger: str = "manual"
    revision: str | None = None


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation: the row, its runs in history order, and what should be known beside the figures."""

    row: dict[str, Any]
    runs: list[dict[str, Any]]
    warnings: list[str]

    @property
    def failed(self) -> bool:
        """Whether at least one answer is an error."""
        return bool(self.row["status"] == "failed")


def evaluate(database: Database, options: Options, progress: Progress = lambda _done, _all: None) -> Evaluation:
    """Run and record one evaluation. Raises UsageError, SchemaError or DataError before anything is stored
    when it can't start."""
    row = _begin(database, options)
    total, done = len(row["calls"]) * len(row["questions"]), 0
    for call in row["calls"]:
        for start in range(0, len(row["questions"]), _SHARD):
            shard = row["questions"][start : start + _SHARD]
            _answer(database, row["id"], call, shard)
            done += len(shard)
            progress(done, total)
    runs = database.value("RETURN fn::evaluation_complete($evaluation)", evaluation=row["id"])
    closed, warnings = database.run(
        "SELECT * FROM ONLY $evaluation; RETURN fn::evaluation_warnings($evaluation);", evaluation=row["id"]
    )
    return Evaluation(closed, runs, warnings)


def git_revision(folder: Path) -> str | None:
    """The commit a folder stands at, with `+` when files differ from it; None outside a checkout or without git."""
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD")
        return commit + "+" if _git(folder, "status", "--porcelain") else commit
    except (OSError, subprocess.SubprocessError):
        return None


def _begin(database: Database, options: Options) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "k": list(options.cutoffs),
        "set": options.question_set,
        "trigger": options.trigger,
        "engine": database.version,
    }
    asked |= {"retrievers": list(options.retrievers)} if options.retrievers else {}
    asked |= {"note": options.note} if options.note else {}
    asked |= {"revision": options.revision} if options.revision else {}
    row: dict[str, Any] = database.value("RETURN fn::evaluation_begin($options)", options=asked)
    return row


def _answer(database: Database, evaluation: RecordID, call: dict[str, Any], questions: list[RecordID]) -> None:
    shared = {"evaluation": evaluation, "retriever": call["retriever"], "depth": call["depth"]}
    try:
        database.run(_ANSWER, questions=questions, **shared)
        return
    except SurrecallError as error:
        if error.statement is None:
            raise
    # one question of the shard fails; find it, keep its error as its answer, and the others' answers
    for question in questions:
        try:
            database.run(_ANSWER, questions=[question], **shared)
        except SurrecallError as error:
            if error.statement is None:
                raise
            database.run(_ERROR, question=question, message=error.text, **shared)


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
