"""Baselines: names for evaluations, and one of them in a file, small enough to be committed.

The file holds where the labels of each question stood, a question a line, so that a review shows which question moved. From that
the database works every floor's metric out again, over the questions that are common.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _ids, _render, _writer
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._export import ids
from surrecall._export.output import Lines

# what the command line takes for a cutoff
_LARGEST = 1_000_000
_FORM = "surrecall baseline 1"
_SET = "RETURN fn::baseline_set($name, $evaluation, $set, $note)"
_LIST = "RETURN fn::baselines()"
_HEAD = "RETURN fn::baseline_head($named, $set)"
_ANSWERS = "RETURN fn::baseline_answers($evaluation, $retriever, $depth)"


@dataclass(frozen=True)
class Exported:
    """What was written: the evaluation, its name in the file, how many questions and calls."""

    evaluation: RecordID
    name: str
    questions: int
    calls: list[dict[str, Any]]


def declare(
    database: Database, name: str, evaluation: RecordID | None, question_set: str | None, note: str | None
) -> dict[str, Any]:
    """Say which evaluation a name stands for from now on; {name, evaluation, at, note, before}."""
    _writer.require_writer(database, "baseline")
    said: dict[str, Any] = database.value(_SET, name=name, evaluation=evaluation, set=question_set, note=note)
    return said


def listed(database: Database) -> list[dict[str, Any]]:
    """Every row of eval_baseline, by name, the newest of each first, which is the one that counts (`current`)."""
    rows: list[dict[str, Any]] = database.value(_LIST)
    return rows


def export(database: Database, file: Lines, named: str | RecordID | None, question_set: str | None) -> Exported:
    """Write a baseline: a name, an evaluation, or None for the newest complete one of the set.

    Raises UsageError or DataError when there is none, or it is not complete, DataError for ids that JSON can't hold.
    """
    head: dict[str, Any] = database.value(_HEAD, named=named, set=question_set)
    calls = [{"retriever": call["retriever"], "depth": call["depth"]} for call in head["calls"]]
    questions: dict[Any, dict[str, Any]] = {}
    for index, call in enumerate(calls):
        for row in database.value(_ANSWERS, evaluation=head["id"], **call):
            key = ids.typed(row["question"])
            line = questions.setdefault(
                key, {"id": key, "labels": row["labels"], "answerable": row["answerable"], "grades": row["grades"],
                      "answers": [None] * len(calls)}
            )  # fmt: skip
            if row["status"] != "error":
                line["answers"][index] = [row["returned"], [[place["at"], place["grade"]] for place in row["places"]]]
    told = {
        "form": _FORM,
        "name": head["name"],
        "evaluation": _render.record_text(head["id"]),
        "finished": head["finished"],
        "set": head["set"],
        "k": head["k"],
        "calls": calls,
        "documents": head["documents"],
        "revision": head.get("revision"),
    }
    file.write("{\n")
    for key, value in told.items():
        file.write(f"{json.dumps(key)}: {json.dumps(_render.jsonable(value), ensure_ascii=False)},\n")
    lines = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in questions.values())
    file.write('"questions": [\n' + ",\n".join(lines) + "\n]\n}\n")
    return Exported(head["id"], head["name"], len(questions), calls)


def read(database: Database, path: Path) -> dict[str, Any]:
    """A file of export, as fn::gate takes it; questions that are not there are left as they were written.

    Raises DataError that names the file, and what in it is no baseline.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise DataError(f"{path} can't be read: {error}", "surrecall baseline export writes it anew") from error
    fault = next(_faults(content), None)
    if fault:
        raise DataError(f"{path} is no baseline: {fault}", "surrecall baseline export writes it anew")
    table = database.table("question")
    names = [_ids.Name(line["id"], typed=True) for line in content["questions"]]
    there = _ids.resolve(database, table, names)
    questions = [
        {"question": (there[name] or [_ids.new(table, name)])[0]}
        | {key: line[key] for key in ("labels", "answerable", "grades", "answers")}
        for name, line in zip(names, content["questions"], strict=True)
    ]
    return {"name": content["name"], "k": content["k"], "calls": content["calls"], "questions": questions}


def named(text: str) -> str | Path:
    """A file where there is one of that name, else the name of a baseline. Raises UsageError for a file that is not there."""
    path = Path(text)
    if path.is_file():
        return path
    if path.suffix.lower() == ".json" or len(path.parts) > 1:
        raise UsageError(f"no file {text}", "surrecall baseline export writes one; without .json it is the name of a baseline")
    return text


def _faults(content: Any) -> Iterator[str]:
    if not isinstance(content, dict) or content.get("form") != _FORM:
        yield f'it does not say "form": "{_FORM}"'
        return
    for key, kind in (("name", str), ("k", list), ("calls", list), ("questions", list)):
        if not isinstance(content.get(key), kind):
            yield f"{key} is {content.get(key)!r}"
            return
    if not all(map(_is_whole, content["k"])):
        yield f"k is {str(content['k'])[:80]}"
    for call in content["calls"]:
        if not (
            isinstance(call, dict)
            and set(call) == {"retriever", "depth"}
            and isinstance(call["retriever"], str)
            and _is_whole(call["depth"])
        ):
            yield f"calls holds {call!r}"
    seen = set()
    for line in content["questions"]:
        if not _is_line(line, len(content["calls"])):
            yield f"questions holds {line!r}"
            return
        for call, answer in zip(content["calls"], line["answers"], strict=True):
            if answer is None:
                yield f"the question {line['id']!r} has no answer of {call['retriever']}, which no complete evaluation lacks"
            elif not _is_possible(answer, line["grades"], call["depth"]):
                yield f"the answer {answer!r} of {call['retriever']} to {line['id']!r} can't be"
        pair = (type(line["id"]), line["id"])
        if pair in seen:
            yield f"the question {line['id']!r} stands in it twice"
        seen.add(pair)


def _is_line(line: Any, calls: int) -> bool:
    return (
        isinstance(line, dict)
        and set(line) == {"id", "labels", "answerable", "grades", "answers"}
        and _ids.of_json(line["id"]) is not None
        and isinstance(line["labels"], str)
        and isinstance(line["answerable"], bool)
        and isinstance(line["grades"], list)
        and all(map(_is_number, line["grades"]))
        and isinstance(line["answers"], list)
        and len(line["answers"]) == calls
        and all(answer is None or _is_answer(answer) for answer in line["answers"])
    )


def _is_answer(answer: Any) -> bool:
    return (
        isinstance(answer, list)
        and len(answer) == 2
        and type(answer[0]) is int
        and isinstance(answer[1], list)
        and all(
            isinstance(place, list) and len(place) == 2 and _is_whole(place[0]) and _is_number(place[1]) for place in answer[1]
        )
    )


def _is_possible(answer: list[Any], grades: list[Any], depth: int) -> bool:
    """Whether each place is one of the documents that came back, once, with a grade that is among those of the question."""
    returned, places = answer
    left = list(grades)
    for _, grade in places:
        if grade not in left:
            return False
        left.remove(grade)
    ranks = [rank for rank, _ in places]
    return 0 <= returned <= depth and len(set(ranks)) == len(ranks) and all(rank <= returned for rank in ranks)


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 < value <= _LARGEST


def _is_number(value: Any) -> bool:
    # NaN and infinity are words that Python's reader takes, and no grades
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
