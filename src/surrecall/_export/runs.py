"""Rankings of a retriever, as they are stored: TREC run files, JSON Lines and CSV. Nothing is retrieved."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._export import ids, source
from surrecall._export.output import Lines
from surrecall._render import record_text

# the newest complete evaluation that has the retriever, or the one that was named
_EVALUATION = """
(SELECT id, started, status, calls FROM evaluation
WHERE ($evaluation = NONE AND status = 'complete' AND $retriever IN calls.retriever) OR id = $evaluation
ORDER BY started DESC, id DESC LIMIT 1)[0]
"""
_RETRIEVERS = """
array::sort(array::distinct(array::flatten(SELECT VALUE calls.retriever FROM evaluation WHERE status = 'complete')))
"""
# what is asked of all answers is small; their rankings are read by the page
_ANSWERS = """
SELECT id, question, status, message FROM eval_answer
WHERE evaluation = $evaluation AND retriever = $retriever AND depth = $depth ORDER BY question
"""
_WHOLE = "fn::require_answers($evaluation)"
_READ = "SELECT question, ranking, scores FROM $ids"
_PAGE = 100
COLUMNS = ("question", "document", "rank", "score")


class Form(StrEnum):
    """The forms of a file of rankings."""

    TREC = "trec"
    JSONL = "jsonl"
    CSV = "csv"


@dataclass(frozen=True)
class Exported:
    """What was written: `questions` with `documents` ranked. The others have no line: nothing came back, or the retriever failed.

    `own_scores` is how many questions have the retriever's own scores; the others have whole numbers in their place (TREC).
    """

    evaluation: str
    retriever: str
    depth: int
    questions: int
    documents: int
    empty: int
    errors: int
    own_scores: int


def export(
    database: Database,
    form: Form,
    lines: Lines,
    retriever: str,
    evaluation: str | None = None,
    depth: int | None = None,
    *,
    errors: bool = False,
) -> Exported:
    """Write what one retriever gave in one evaluation. `errors` leaves out the questions that it failed on.

    Raises UsageError when there is no such ranking, or answers of it were pruned; DataError naming what the form can't hold, or
    the first failed answer.
    """
    found, asked = _evaluation(database, retriever, evaluation, depth)
    database.run(_WHOLE, evaluation=found)
    answers = database.value(_ANSWERS, evaluation=found, retriever=retriever, depth=asked)
    failed = [answer for answer in answers if answer["status"] == "error"]
    if failed and not errors:
        raise DataError(
            f"{retriever} failed on {len(failed)} of {len(answers)} questions, first on {record_text(failed[0]['question'])}: "
            f"{failed[0]['message']}",
            "--force leaves these out",
        )
    ranked = [answer for answer in answers if answer["status"] == "ok"]
    if form is not Form.JSONL:
        # ids are text there, and so is their order
        ranked.sort(key=lambda answer: ids.text(answer["question"]))
    rows = _read(database, [answer["id"] for answer in ranked])
    documents, own = _write(database, form, lines, rows, retriever)
    return Exported(
        evaluation=record_text(found),
        retriever=retriever,
        depth=asked,
        questions=len(ranked),
        documents=documents,
        empty=len(answers) - len(ranked) - len(failed),
        errors=len(failed),
        own_scores=own,
    )


def trec_scores(ranking: Sequence[str], scores: Sequence[float] | None) -> tuple[list[str], bool]:
    """Scores by which trec_eval reads back a ranking, and whether they are the retriever's own.

    trec_eval ignores rank and order: it sorts by score as a 32-bit float, descending, and equal ones by document id,
    descending. Where the retriever's scores would not give its own order back, whole numbers do.
    """
    if scores is not None and len(scores) == len(ranking) and all(_fits(score) for score in scores):
        read = [(_single(score), document.encode()) for score, document in zip(scores, ranking, strict=True)]
        if all(above > below for above, below in pairwise(read)):
            return [str(source.whole(score)) for score in scores], True
    return [str(len(ranking) - place) for place in range(len(ranking))], False


def _evaluation(database: Database, retriever: str, evaluation: str | None, depth: int | None) -> tuple[RecordID, int]:
    """The evaluation to read, and the depth: the deepest the retriever was asked for, or the one that was named."""
    table = database.table("evaluation")
    given = None if evaluation is None else RecordID(table, evaluation.removeprefix(f"{table}:"))
    found = database.value(f"RETURN {_EVALUATION}", retriever=retriever, evaluation=given)
    if found is None and evaluation is not None:
        raise UsageError(
            f"no evaluation named {evaluation}", "surrecall history shows the evaluations, or leave --evaluation out"
        )
    depths = sorted(call["depth"] for call in (found or {}).get("calls", ()) if call["retriever"] == retriever)
    if not depths:
        there = sorted({call["retriever"] for call in found["calls"]}) if found else database.value(f"RETURN {_RETRIEVERS}")
        where = f"{record_text(found['id'])} has" if found else "complete evaluations have"
        if not there:
            raise UsageError("no evaluation is complete, so there is no ranking to export", "surrecall evaluate")
        raise UsageError(
            f"no ranking of a retriever named {retriever}; {where} {', '.join(there)}", "surrecall evaluate measures more"
        )
    if found["status"] == "running":
        raise DataError(f"{record_text(found['id'])} is unfinished", "surrecall evaluate --resume finishes it")
    if depth is not None and depth not in depths:
        raise UsageError(
            f"{retriever} was not asked for {depth} documents, but for {', '.join(map(str, depths))}", "-k one of these"
        )
    return found["id"], depth or depths[-1]


def _read(database: Database, answers: list[RecordID]) -> Iterator[dict[str, Any]]:
    """The rankings of answers, in their order."""
    for batch in ids.batches(answers, _PAGE):
        yield from database.value(_READ, ids=list(batch))


def _write(database: Database, form: Form, lines: Lines, rows: Iterator[dict[str, Any]], retriever: str) -> tuple[int, int]:
    """Write what came back for each question; the number of documents, and of questions with the retriever's own scores."""
    what = "a TREC run" if form is Form.TREC else "CSV"
    twins = ids.Twins(database, what)
    write_row = lines.table(COLUMNS) if form is Form.CSV else None
    documents = own = 0
    for row in rows:
        documents += len(row["ranking"])
        if form is Form.JSONL:
            own += _write_json(lines, row)
            continue
        twins.refuse([row["question"], *row["ranking"]])
        own += _write_trec(lines, row, retriever, what) if write_row is None else _write_cells(write_row, row, what)
    return documents, own


def _write_json(lines: Lines, row: dict[str, Any]) -> bool:
    scores = row.get("scores")
    # JSON has no word for NaN
    own = {} if scores is None else {"scores": [float(score) if math.isfinite(score) else None for score in scores]}
    lines.json({"question": ids.typed(row["question"]), "ranking": [ids.typed(document) for document in row["ranking"]]} | own)
    return scores is not None


def _write_cells(write_row: Callable[[dict[str, str]], None], row: dict[str, Any], what: str) -> bool:
    scores = row.get("scores")
    for place, document in enumerate(row["ranking"]):
        score = "" if scores is None or not math.isfinite(scores[place]) else repr(float(scores[place]))
        cells = (ids.cell(row["question"], what), ids.cell(document, what), str(place + 1), score)
        write_row(dict(zip(COLUMNS, cells, strict=True)))
    return scores is not None


def _write_trec(lines: Lines, row: dict[str, Any], retriever: str, what: str) -> bool:
    _refuse_repeat(row, retriever)
    question, ranking = ids.trec(row["question"], what), [ids.trec(document, what) for document in row["ranking"]]
    scores, own = trec_scores(ranking, row.get("scores"))
    for rank, (name, score) in enumerate(zip(ranking, scores, strict=True), 1):
        lines.write(f"{question} Q0 {name} {rank} {score} {retriever}\n")
    return own


def _refuse_repeat(row: dict[str, Any], retriever: str) -> None:
    seen = Counter(ids.text(document) for document in row["ranking"])
    again = next((name for name, times in seen.items() if times > 1), None)
    if again is not None:
        raise DataError(
            f"{retriever} gave {again} twice for {record_text(row['question'])}, which a TREC run can't hold",
            "--format jsonl and csv can",
        )


def _fits(score: float) -> bool:
    """Whether 32 bits hold it as a number."""
    try:
        return math.isfinite(_single(score))
    except OverflowError:
        return False


def _single(score: float) -> float:
    """A score as trec_eval holds it."""
    single: float = struct.unpack("f", struct.pack("f", score))[0]
    return single
