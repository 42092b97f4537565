"""Candidates as a CSV to fill in, and the same read back: whole or not at all, and a second time without effect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _ids, _ingest, _tabular, _writer
from surrecall._database import Database
from surrecall._errors import DataError, SurrecallError
from surrecall._export import ids
from surrecall._export.output import Lines
from surrecall._faults import Faults
from surrecall._pool import Candidate
from surrecall._render import printable
from surrecall._shards import Progress, Shards

COLUMNS = ("question", "text", "document", "title", "excerpt", "retrievers", "rank", "same", "grade", "note")
GRADES = {"relevant": 2, "partly": 1, "not": 0, "2": 2, "1": 1, "0": 0}
_EXCERPT = 1000
_BATCH = 100
# what a spreadsheet takes for a formula, and our own mark before it
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_MARKED = re.compile(r"'+[=+\-@\t\r]")
_READ_COLUMNS: _tabular.Columns = {
    "question": ("question_id", "query_id"),
    "document": ("document_id",),
    "retrievers": (),
    "same": (),
    "grade": ("judgement", "judgment"),
    "note": (),
}
# without one of them the file says nothing
_REQUIRED = ("question", "document", "grade")
_FACTS = "RETURN $ids.map(|$id| fn::document_facts($id))"
_TABLE = "RETURN fn::corpus_names().table"
_OPEN = "RETURN fn::label_open($rows, $who)"
_BACK = "RETURN fn::label_back($answer, $who)"
_FIRST_SHARD = 20


@dataclass(frozen=True)
class Judged:
    """What a file said: documents judged by grade, those that this person judged so before, and cells that are not filled in."""

    relevant: int
    partly: int
    not_relevant: int
    there: int
    blank: int
    questions: list[RecordID]

    @property
    def count(self) -> int:
        """The documents that were judged."""
        return self.relevant + self.partly + self.not_relevant


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula; `plain` gives it back."""
    return "'" + text if _FORMULA.match(text) else text


def plain(cell: str) -> str:
    """What `harmless` was given."""
    return cell[1:] if _MARKED.match(cell) else cell


def write(database: Database, lines: Lines, candidates: Sequence[Candidate]) -> None:
    """Write candidates, a line each, the grade left blank. Raises DataError naming an id that CSV can't hold."""
    try:
        _refuse(database, candidates)
    except DataError as error:
        raise DataError(error.message, "judge in the terminal: surrecall label") from error
    # spreadsheets take a file without it for their own code page
    lines.write(ids.BYTE_ORDER_MARK)
    row = lines.table(COLUMNS)
    for batch in ids.batches(candidates, _BATCH):
        facts = database.value(_FACTS, ids=[candidate.documents[0] for candidate in batch])
        for candidate, told in zip(batch, facts, strict=True):
            shown, *same = candidate.documents
            row(
                {
                    "question": harmless(ids.cell(candidate.question, "CSV")),
                    "text": harmless(printable(candidate.text)),
                    "document": harmless(ids.cell(shown, "CSV")),
                    "title": harmless(printable(str(told.get("title") or ""))),
                    "excerpt": harmless(printable(str(told.get("text") or ""))[:_EXCERPT]),
                    "retrievers": harmless(", ".join(candidate.retrievers)),
                    "rank": str(candidate.rank),
                    "same": json.dumps([ids.typed(one) for one in same], ensure_ascii=False) if same else "",
                }
            )


def read(database: Database, path: Path, who: str, progress: Progress = lambda _done, _all: None) -> Judged:
    """Judge what a file says. Raises DataError with file, line and content of what is wrong; nothing is stored then."""
    _writer.require_writer(database, "judgement")
    faults = Faults("judged")
    form = _tabular.format_of(path, None, ("csv", "tsv"))
    rows = _tabular.read(path, form, _READ_COLUMNS, faults, strict=False, ragged=True, left_out={}, required=_REQUIRED)
    given = list(_given(path, rows, faults))
    faults.raise_if_any("mend these lines, then read the file again")
    answers = _answers(database, path, given, who, faults)
    faults.raise_if_any("mend these lines, then read the file again")
    wanted: list[dict[str, Any]] = database.value(_OPEN, rows=answers, who=who) if answers else []
    _store(database, path, wanted, who, progress)
    grades = [row["grade"] for row in wanted for _ in row["documents"]]
    return Judged(
        relevant=grades.count(2),
        partly=grades.count(1),
        not_relevant=grades.count(0),
        there=sum(len(answer["documents"]) for answer in answers) - len(grades),
        blank=len(rows) - len(given),
        questions=[answer["question"] for answer in answers],
    )


def _statements(rows: int) -> str:
    """Judge so many rows in one transaction, and give what each answer was; a closure can't write."""
    lets = "".join(f"LET $told_{place} = fn::label_answer($rows[{place}]);\n" for place in range(rows))
    return f"BEGIN;\n{lets}RETURN [{', '.join(f'$told_{place}' for place in range(rows))}];\nCOMMIT;"


def _store(database: Database, path: Path, wanted: list[dict[str, Any]], who: str, progress: Progress) -> None:
    """Judge, some at a time; after a failure what was judged is taken back."""
    told: list[dict[str, Any]] = []

    def work(start: int, end: int) -> None:
        part = wanted[start:end]
        *_, answers, _ = database.run(_statements(len(part)), rows=part)
        told.extend(answers)

    def undo() -> None:
        for answer in reversed(told):
            database.run(_BACK, answer=answer, who=who)

    try:
        with _ingest.logged(database, f"judgements of {path.resolve()}", 0, len(wanted), undo=undo):
            Shards(len(wanted), progress).run(len(wanted), work, _FIRST_SHARD)
    except SurrecallError as error:
        if error.statement is None:
            raise
        raise type(error)(f"{path}: {error.message}; nothing was judged", error.hint, error.statement) from error


@dataclass(frozen=True)
class _Given:
    """One line that has a grade."""

    row: _tabular.Row
    question: _ids.Name
    documents: list[_ids.Name]
    grade: int


def _given(path: Path, rows: Sequence[_tabular.Row], faults: Faults) -> Iterator[_Given]:
    for row in rows:
        cell = plain(str(row.fields.get("grade", ""))).strip()
        if not cell:
            continue
        number = _tabular.number(cell.replace(",", "."))
        grade = GRADES.get(cell.lower() if number is None else str(number))
        if grade is None:
            faults.add(path, row.line, f"the grade {cell!r} is none of relevant, partly, not, 2, 1, 0", row.content)
            continue
        names = {field: row.fields.get(field, "") for field in ("question", "document")}
        missing = next((field for field, value in names.items() if not value.strip(_tabular.BLANKS)), None)
        if missing is not None:
            faults.add(path, row.line, f"a grade without a {missing}", row.content)
            continue
        try:
            others = _tabular.parsed(str(row.fields.get("same", "[]")))
            same = [_ids.of_json(value) for value in others] if isinstance(others, list) else [None]
        except ValueError:
            same = [None]
        if None in same:
            faults.add(path, row.line, 'the column same is no list of ids in JSON, as ["a", "b"]', row.content)
            continue
        document = _ids.Name(plain(names["document"]))
        yield _Given(row, _ids.Name(plain(names["question"])), [document, *(name for name in same if name)], grade)


def _answers(database: Database, path: Path, given: list[_Given], who: str, faults: Faults) -> list[dict[str, Any]]:
    """The answers of fn::label_answer, each document of a question once."""
    table: str = database.value(_TABLE)
    questions = _ids.resolve(database, database.table("question"), [one.question for one in given])
    documents = _ids.resolve(database, table, [name for one in given for name in one.documents])
    seen: dict[tuple[Any, Any], _Given] = {}
    answers = []
    for one in given:
        found = [_one("question", one.question, questions[one.question], path, one.row, faults)]
        found += [_one(table, name, documents[name], path, one.row, faults) for name in one.documents]
        question, *records = found
        fresh = []
        for record in records:
            if question is None or record is None:
                continue
            before = seen.setdefault((_ids.key(question), _ids.key(record)), one)
            if before.grade != one.grade:
                problem = f"{ids.text(record)!r} has another grade for {ids.text(question)!r} in line {before.row.line}"
                faults.add(path, one.row.line, problem, one.row.content)
            elif before is one and record not in fresh:
                fresh.append(record)
        if question is None or not fresh:
            continue
        names = [name.strip() for name in plain(str(one.row.fields.get("retrievers", ""))).split(",") if name.strip()]
        note = plain(str(one.row.fields.get("note", ""))).strip()
        answers.append(
            {
                "question": question,
                "documents": fresh,
                "grade": one.grade,
                "who": who,
                "why": note or None,
                "retrievers": names or None,
            }
        )
    return answers


def _one(what: str, name: _ids.Name, found: Sequence[RecordID], path: Path, row: _tabular.Row, faults: Faults) -> RecordID | None:
    """The record that an id means, if it is one."""
    if len(found) == 1:
        return found[0]
    problem = f"no {what} has the id {name.shown}" if not found else f"the id {name.shown} is that of {len(found)} of {what}"
    faults.add(path, row.line, problem, row.content)
    return None


def _refuse(database: Database, candidates: Sequence[Candidate]) -> None:
    records = [record for candidate in candidates for record in (candidate.question, *candidate.documents)]
    ids.Twins(database, "CSV").refuse(records)
    for record in records:
        ids.cell(record, "CSV")
