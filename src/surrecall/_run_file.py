"""Files of rankings: TREC runs, and the JSON Lines and CSV that surrecall export run writes."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from surrecall import _ids, _tabular
from surrecall._faults import Faults

_BLANKS = re.compile(r"[ \t\f\v]+")
# question, Q0, document, rank, score, name of the run; trec_eval takes whatever stands after that
_FIELDS = 6
_QUESTION = ("query_id", "qid", "query", "question_id", "topic")
_TYPED = {"question": _QUESTION, "ranking": ("documents",), "scores": (), "searches": ()}
_CELLS = {
    "question": _QUESTION,
    "document": ("doc_id", "docid", "document_id", "docno", "corpus_id"),
    "rank": (),
    "score": (),
    "search": (),
}
FORMS = (
    "a run is a TREC file (question Q0 document rank score name), with --format jsonl one of objects "
    '({"question", "ranking": […], "scores": […]}, or {"question", "searches": [[…], […]]}), or with --format csv one of the '
    "columns question, document, rank, score, search"
)


class Form(StrEnum):
    """The forms of a file of rankings."""

    TREC = "trec"
    JSONL = "jsonl"
    CSV = "csv"


_ENDINGS = {"jsonl": Form.JSONL, "ndjson": Form.JSONL, "json": Form.JSONL, "csv": Form.CSV}


@dataclass(frozen=True, slots=True)
class Line:
    """One document for one question.

    `sort_key` sorts the documents of a question, the highest first: the score as trec_eval reads it, a 32-bit float, or the place
    that the file gives, counted down. `score` is None where the ranking has no scores, NaN where this one is not known.
    `search` is the number of the search that found it, where a question has several.
    """

    line: int
    content: str
    question: _ids.Name
    document: _ids.Name
    score: float | None
    sort_key: float
    search: int | None = None

    def listed(self, document: Any) -> dict[str, Any]:
        """The line as fn::listed takes it; `document` is what the id means."""
        row = {"document": document, "score": self.score, "sort_key": self.sort_key, "name": str(self.document)}
        return row if self.search is None else row | {"search": self.search}


def form_of(path: Path) -> Form:
    """The form that a file's ending names, else TREC."""
    return _ENDINGS.get(path.suffix.lower().lstrip("."), Form.TREC)


def read(path: Path, form: Form, faults: Faults, silent: list[_ids.Name] | None = None) -> list[Line]:
    """All documents of a file; `silent` takes the questions that are there with an empty ranking, which only JSON can say.

    Raises DataError for a header that can't be made out.
    """
    if form is Form.JSONL:
        return list(_of_objects(path, faults, silent if silent is not None else []))
    return list(_of_cells(path, faults)) if form is Form.CSV else _of_trec(path, faults)


def _of_trec(path: Path, faults: Faults) -> list[Line]:
    """The lines in their order, which says nothing of the ranking."""
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


def _of_objects(path: Path, faults: Faults, silent: list[_ids.Name]) -> Iterator[Line]:
    """A question a row, its documents best first."""
    seen: dict[Any, int] = {}
    for row in _tabular.read(path, "jsonl", _TYPED, faults):
        question, ranking, scores = row.name("question"), row.fields.get("ranking"), row.fields.get("scores")
        searches = row.fields.get("searches")
        if question is None:
            faults.add(path, row.line, "no id of a question", row.content)
            continue
        if searches is not None and (ranking is not None or scores is not None):
            faults.add(path, row.line, "searches beside a ranking or scores; either, not both", row.content)
            continue
        if searches is not None and not (isinstance(searches, list) and all(isinstance(one, list) for one in searches)):
            faults.add(path, row.line, "searches is no list of lists of ids", row.content)
            continue
        if searches is None and not isinstance(ranking, list):
            faults.add(path, row.line, "ranking is no list of ids", row.content)
            continue
        if seen.setdefault(question.value, row.line) != row.line:
            faults.add(
                path, row.line, f"the question {question.shown} is there already, in line {seen[question.value]}", row.content
            )
            continue
        lists: list[list[Any]] = [ranking or []] if searches is None else searches
        ranking = [value for found in lists for value in found]
        # the number of the search, where there are several, and the place in it
        places = [
            (None if searches is None else number, place) for number, found in enumerate(lists, 1) for place in range(len(found))
        ]
        documents = [_ids.of_json(value) for value in ranking]
        wrong = next((value for value, name in zip(ranking, documents, strict=True) if name is None), None)
        if None in documents:
            faults.add(path, row.line, f"{wrong!r} is no id of a document", row.content)
        elif scores is not None and not (
            isinstance(scores, list)
            and len(scores) == len(ranking)
            and all(score is None or _is_number(score) for score in scores)
        ):
            faults.add(path, row.line, "scores is no list of a number for each document", row.content)
        else:
            if not documents:
                silent.append(question)
            for document, (search, place) in zip(documents, places, strict=True):
                score = None if scores is None else math.nan if scores[place] is None else float(scores[place])
                if document is not None:
                    yield Line(row.line, row.content, question, document, score, float(-place), search)


def _of_cells(path: Path, faults: Faults) -> Iterator[Line]:
    """A document a row, in the order of the ranks; without any, of the scores as in a TREC file."""
    rows = _tabular.read(path, "csv", _CELLS, faults)
    ranked, searched = (any(name in row.fields for row in rows) for name in ("rank", "search"))
    found: list[Line] = []
    seen: dict[tuple[str, Any, int], int] = {}
    for row in rows:
        question, document = row.name("question"), row.name("document")
        if question is None or document is None:
            faults.add(path, row.line, f"no id of a {'question' if question is None else 'document'}", row.content)
            continue
        rank, cell = _tabular.number(row.fields.get("rank")), row.fields.get("score")
        search = _tabular.number(row.fields.get("search"))
        # by float, since 0 and -0 are two scores to write
        score = None if cell is None or _tabular.number(cell) is None else float(cell)
        single = None if score is None else _single(score)
        if cell is not None and score is None:
            faults.add(path, row.line, f"the score {cell!r} is no number", row.content)
        elif ranked and not (isinstance(rank, int) and rank > 0):
            faults.add(path, row.line, f"the rank {row.fields.get('rank')!r} is no whole number from 1", row.content)
        elif searched and not (isinstance(search, int) and search > 0):
            faults.add(path, row.line, f"the search {row.fields.get('search')!r} is no whole number from 1", row.content)
        elif ranked and rank is not None and seen.setdefault((str(question), search, int(rank)), row.line) != row.line:
            earlier = seen[str(question), search, int(rank)]
            faults.add(path, row.line, f"the rank {rank} of {question.shown} is there already, in line {earlier}", row.content)
        elif not ranked and single is None:
            faults.add(path, row.line, "neither a rank nor a score of 32 bits", row.content)
        else:
            key = -float(rank) if ranked and rank is not None else single or 0.0
            found.append(Line(row.line, row.content, question, document, score, key, search if isinstance(search, int) else None))
    return _with_all_scores(found)


def _with_all_scores(lines: Iterable[Line]) -> Iterator[Line]:
    """A score for each document of a question that has one: NaN where it is not known."""
    lines = list(lines)
    scored = {line.question for line in lines if line.score is not None}
    for line in lines:
        yield replace(line, score=math.nan) if line.score is None and line.question in scored else line


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and _tabular.number(value) is not None


def _single(value: float) -> float | None:
    """The nearest 32-bit float; None where there is none."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None
