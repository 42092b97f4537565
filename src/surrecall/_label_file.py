"""Files of labels: TREC qrels, the BEIR form, CSV and JSON Lines, with a header or without."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrecall import _ids, _tabular
from surrecall._errors import DataError
from surrecall._faults import Faults

FORMATS = ("trec", "tsv", "csv", "jsonl", "beir")
# a header is known by its names, in any case and order
_COLUMNS = {
    "question": ("query_id", "queryid", "qid", "query", "question_id", "topic"),
    "document": ("corpus_id", "doc_id", "docid", "document_id", "docno"),
    "grade": ("score", "relevance", "rating", "rel", "label"),
    "iteration": ("iter",),
}
_NEEDED = ("question", "document", "grade")
# what C's isspace takes for a blank in one line; an id may hold any other
_BLANKS = re.compile(r"[ \t\f\v]+")
# TREC: question, iteration, document, grade
_ORDERS = {3: (0, 1, 2), 4: (0, 2, 3)}


@dataclass(frozen=True, slots=True)
class Label:
    """One line: a question, a document, a grade, and where it stands."""

    line: int
    content: str
    question: _ids.Name
    document: _ids.Name
    grade: float | int


@dataclass(frozen=True)
class Gathered:
    """Grades by question and document, the lines they stand in, and how many lines said the same again."""

    grades: dict[Any, dict[Any, float | int]]
    lines: dict[tuple[Any, Any], Label]
    repeated: int


def read(path: Path, form: str | None, faults: Faults) -> list[Label]:
    """All labels of a file. Without a format the extension tells CSV and JSON; other files are TREC or BEIR, which their first
    line tells apart. Raises DataError for a header that can't be made out.
    """
    known = path.suffix.lower().lstrip(".")
    form = form or ("jsonl" if known in ("jsonl", "ndjson", "json") else "csv" if known == "csv" else None)
    found = _of_objects(path, faults) if form == "jsonl" else _of_text(path, form, faults)
    return list(found)


def gather(
    path: Path,
    labels: Iterable[Label],
    questions: Mapping[_ids.Name, Sequence[Any]],
    documents: Mapping[_ids.Name, Sequence[Any]],
    faults: Faults,
    nowhere: str = "not in the database",
) -> Gathered:
    """Labels by the questions and documents that they mean.

    A pair given again with the same grade is counted, with another one a fault; so is a name that means nothing, or two things.
    """
    gathered = Gathered({}, {}, 0)
    repeated = 0
    for label in labels:
        ends = []
        for kind, name, found in (
            ("question", label.question, questions[label.question]),
            ("document", label.document, documents[label.document]),
        ):
            if len(found) == 1:
                ends.append(found[0])
            else:
                faults.add(path, label.line, missing(kind, name, found, nowhere), label.content)
        if len(ends) < 2:
            continue
        question, document = (getattr(end, "id", end) for end in ends)
        earlier = gathered.lines.get((question, document))
        if earlier is None:
            gathered.grades.setdefault(question, {})[document] = label.grade
            gathered.lines[question, document] = label
        elif earlier.grade == label.grade:
            repeated += 1
        else:
            faults.add(
                path, label.line, f"another grade than in line {earlier.line}, {earlier.content.strip()[:60]!r}", label.content
            )
    return Gathered(gathered.grades, gathered.lines, repeated)


def missing(kind: str, name: _ids.Name, found: Sequence[Any], nowhere: str = "not in the database") -> str:
    """Why a name can't be taken for one record."""
    if not found:
        return f"the {kind} {name.shown} is {nowhere}"
    kinds = " and ".join(f"the {_KINDS.get(type(getattr(end, 'id', end)).__name__, 'record')}" for end in found)
    return f"the {kind} {name.shown} is ambiguous: {kinds} are both there; a JSON file tells them apart"


_KINDS = {"str": "text", "int": "number", "UUID": "UUID"}


def _of_objects(path: Path, faults: Faults) -> Iterator[Label]:
    for row in _tabular.read(path, "jsonl", _COLUMNS, faults):
        question, document = row.name("question"), row.name("document")
        if question is None or document is None:
            faults.add(path, row.line, f"no id of a {'question' if question is None else 'document'}", row.content)
            continue
        grade, wrong = _tabular.grade(row.fields.get("grade"))
        if wrong or isinstance(row.fields["grade"], str):
            faults.add(path, row.line, wrong or "a grade is a number, without quotes", row.content)
        else:
            yield Label(row.line, row.content, question, document, grade)


def _of_text(path: Path, form: str | None, faults: Faults) -> Iterator[Label]:
    text = _tabular.decoded(path, faults)
    first = next(_tabular.lines(text), None)
    if first is None:
        return
    order: tuple[int, int, int] | None = None
    width = 0
    for line, content, cells in _cells(path, text, first[1], form, faults):
        if order is None:
            header = _header(cells)
            if header is not None:
                order, width = header, len(cells)
                continue
            order, width = _order(path, line, content, cells, form)
        if len(cells) != width or not all(cells[place] for place in order):
            faults.add(path, line, f"not { ({3: 'three', 4: 'four'}.get(width, str(width))) } fields", content)
            continue
        question, document, given = (cells[place] for place in order)
        grade, wrong = _tabular.grade(given)
        if wrong:
            faults.add(path, line, wrong, content)
        else:
            yield Label(line, content, _ids.Name(question), _ids.Name(document), grade)


def _cells(path: Path, text: str, first: str, form: str | None, faults: Faults) -> Iterator[tuple[int, str, list[str]]]:
    """The fields of each line: between delimiters where the first line has them, else between blanks."""
    delimiter = _tabular.delimiter_of(path, first, _COLUMNS) if form == "csv" else "\t"
    split = [cell.strip() for cell in first.split(delimiter)]
    # a TREC file holds no id with a blank, so however tabs and blanks are mixed in it, they part fields
    if form == "csv" or (form != "trec" and "\t" in first and all(split) and (len(split) == 3 or _header(split) is not None)):
        for line, content, cells in _tabular.delimited(path, text, delimiter, faults):
            whole = delimiter not in content and form != "csv"
            yield (
                line,
                content,
                _BLANKS.split(content.strip()) if whole else [*cells[:3], *(cell for cell in cells[3:] if cell.strip())],
            )
        return
    for line, content in _tabular.lines(text):
        yield line, content, _BLANKS.split(content.strip(" \t\f\v"))


def _header(cells: Sequence[str]) -> tuple[int, int, int] | None:
    """Where question, document and grade stand, when the line names them."""
    names = {alias: name for name, aliases in _COLUMNS.items() for alias in (name, *aliases)}
    found = [names.get(re.sub(r"[\s-]+", "_", cell.strip().lower())) for cell in cells]
    if None in found or any(found.count(name) != 1 for name in _NEEDED):
        return None
    question, document, grade = (found.index(name) for name in _NEEDED)
    return question, document, grade


def _order(path: Path, line: int, content: str, cells: Sequence[str], form: str | None) -> tuple[tuple[int, int, int], int]:
    """Where they stand without a header: by the number of fields."""
    columns = {"trec": 4, "beir": 3, "tsv": 3}.get(form or "", 4 if len(cells) == 4 else 3)
    if _tabular.number(cells[-1]) is None and len(cells) >= 3:
        raise DataError(f"{path}:{line}: an unknown header: {content.strip()[:200]!r}", "query-id, corpus-id, score")
    return _ORDERS[columns], columns
