"""Driving a review of a golden set. Every verdict is the database's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from surrealdb import RecordID

from surrecall import _render, _writer
from surrecall._database import Database
from surrecall._export.output import Lines
from surrecall._shards import Progress, Shards, joined

_BEGIN = "RETURN fn::review_begin($options)"
_PART = """
LET $rows = (SELECT VALUE fn::review_question($begun, id) FROM $questions);
RETURN { rows: $rows, part: fn::review_part($rows) };
"""
_END = "RETURN fn::review_end($begun, $parts)"
_READ = "RETURN fn::read_question($question, $who)"
_FIRST_SHARD = 8
COLUMNS = ("question", "text", "labels", "kind", "source", "added", "read", "last ranks")


@dataclass(frozen=True)
class Reviewed:
    """What fn::review_end gave, and the rows of fn::review_question in question order."""

    told: dict[str, Any]
    rows: list[dict[str, Any]]


def review(
    database: Database, question_set: str | None, days: int | None, progress: Progress = lambda _done, _all: None
) -> Reviewed:
    """Look at every question of a golden set."""
    given = {"set": question_set, "days": days}
    begun = database.value(_BEGIN, options={name: value for name, value in given.items() if value is not None})
    questions = begun["questions"]

    def work(start: int, end: int) -> Any:
        return database.value(_PART, begun=begun, questions=questions[start:end])

    done = Shards(len(questions), progress).run(len(questions), work, _FIRST_SHARD)
    told = database.value(_END, begun=begun, parts=[one["part"] for one in done])
    return Reviewed(told, joined([one["rows"] for one in done]))


def read(database: Database, questions: Sequence[RecordID], who: str) -> None:
    """Note that somebody read questions with their labels. Raises DatabaseError for a user who may not write."""
    _writer.require_writer(database, "reading")
    for question in questions:
        database.run(_READ, question=question, who=who)


def over(told: dict[str, Any]) -> str:
    """What a review stands on."""
    evaluations = told["evaluations"]
    newest = f"the newest {evaluations} of {told['complete']} evaluations" if evaluations < told["complete"] else ""
    asked = newest or _render.counted(evaluations, "evaluation")
    counts = f"{_render.counted(told['questions'], 'question')}, {_render.counted(told['labels'], 'label')}"
    return f"set {told['set']}: {counts}, answers of {asked} read"


def named(row: dict[str, Any]) -> str:
    """One row of a problem in a line."""
    questions = row.get("questions") or [row[name] for name in ("question",) if row.get(name)]
    who = ", ".join(map(_render.record_text, questions))
    label = f": {_render.record_text(row['document'])}" if row.get("document") else ""
    age = f", {row['age']} days" if row.get("age") is not None else ""
    says = f"{': ' if who else ''}{row['says']}" if row.get("says") else ""
    return f"{who}{label}{age}{says}"


def cells(row: dict[str, Any]) -> dict[str, Any]:
    """One question as it stands in a table."""
    return {
        "question": row["question"],
        "text": row["text"],
        "labels": [_label(label) for label in row["labels"]],
        "kind": row["kind"],
        "source": row["source"],
        "added": None if row["age"] is None else f"{row['age']} d",
        "read": min((f"{label['age']} d" for label in row["labels"] if label["read"] == row["read"]), default=None),
        "last ranks": [f"{one['retriever']} {one['rank'] or '-'}" for one in row["last"]],
    }


def _label(label: dict[str, Any]) -> str:
    title = label.get("title") or _render.record_text(label["document"]).partition(":")[2]
    grade = "" if label["grade"] == 1 else f" ({label['grade']})"
    return f"{title}{grade}"


def markdown(reviewed: Reviewed, lines: Lines) -> None:
    """Write a review to read: problems first, then every question."""
    for line in _markdown(reviewed):
        lines.write(line + "\n")


def _markdown(reviewed: Reviewed) -> Iterator[str]:
    told = reviewed.told
    yield f"# Review of the golden set {_escaped(told['set'])}"
    yield ""
    yield _escaped(over(told))
    yield ""
    yield "## Problems"
    yield ""
    problems = [one for one in told["problems"] if one["count"]]
    if not problems:
        yield "None."
    for one in problems:
        yield f"- {one['count']} {_escaped(one['says'])}"
        yield from (f"  - {_escaped(named(row))}" for row in one["rows"])
    yield ""
    yield "## Questions"
    yield ""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "| " + " | ".join("---" for _ in COLUMNS) + " |"
    for row in map(cells, reviewed.rows):
        yield "| " + " | ".join(_escaped(_render.cell(row[column])) for column in COLUMNS) + " |"


def _escaped(text: str) -> str:
    """A text that is no markup, in one line."""
    safe = " ".join(_render.printable(text).split())
    for letter in "\\`*[]<>|#":
        safe = safe.replace(letter, f"\\{letter}")
    return safe
