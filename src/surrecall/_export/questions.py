"""Questions as JSON Lines, CSV, TSV, and the queries of the BEIR form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from surrealdb import RecordID

from surrecall._database import Database
from surrecall._errors import DataError
from surrecall._export import ids, source
from surrecall._export.output import Lines
from surrecall._export.pages import pages
from surrecall._render import record_text

_FIELDS = "id, text, relevant, judged, answerable, anchors, set, kind, tags, split, source, note"
COLUMNS = ("id", "text", "relevant", "grades", "anchors", "answerable", "set", "kind", "tags", "split", "source", "note")
_DELIMITERS = {"csv": ",", "tsv": "\t"}


class Form(StrEnum):
    """The forms of a file of questions."""

    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    BEIR_QUERIES = "beir-queries"


@dataclass(frozen=True)
class Exported:
    """What was written."""

    questions: int
    labels: int


def export(database: Database, form: Form, lines: Lines, question_set: str | None = None, *, vectors: bool = False) -> Exported:
    """Write the questions of a set, or of all; JSON Lines with their vectors where these are asked for.

    Raises DataError naming what the form can't hold.
    """
    source.require_set(database, question_set)
    if form in (Form.JSONL, Form.BEIR_QUERIES):
        write = _jsonl if form is Form.JSONL else _beir
        return _counted(map(write(lines), rows(database, question_set, vectors=vectors)))
    found = list(rows(database, question_set))
    ids.Twins(database, form.value.upper()).refuse(_mentioned(found))
    write_row = lines.table(COLUMNS, _DELIMITERS[form])

    def written(row: dict[str, Any]) -> dict[str, Any]:
        write_row(_cells(row, form.value.upper()))
        return row

    return _counted(map(written, sorted(found, key=lambda row: ids.text(row["id"]))))


def rows(database: Database, question_set: str | None, *, vectors: bool = False) -> Iterator[dict[str, Any]]:
    """The questions of a set, or of all, in id order."""
    fields = f"{_FIELDS}, embedding, embedding_model" if vectors else _FIELDS
    for page in pages(database, database.table("question"), fields, source.IN_SET, set=question_set):
        for row in page:
            if not isinstance(row.get("text"), str):
                raise DataError(f"{record_text(row['id'])} has no text", "surrecall check lists such questions; mend them first")
            yield row


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A question as one object: what is not set, or as it is by default, is left out."""
    found: dict[str, Any] = {"id": ids.typed(row["id"]), "text": row["text"]}
    if row.get("judged"):
        found["judged"] = [
            {"document": ids.typed(label.get("document")), "grade": source.whole(label.get("grade"))} for label in row["judged"]
        ]
    else:
        found["relevant"] = [ids.typed(document) for document in row.get("relevant") or []]
    if row.get("answerable") is False:
        found["answerable"] = False
    if row.get("anchors"):
        found["anchors"] = [
            {"document": ids.typed(anchor.get("document")), "phrase": anchor.get("phrase", "")} for anchor in row["anchors"]
        ]
    defaults: dict[str, Any] = {"set": "default", "kind": None, "tags": [], "split": None, "source": "human", "note": None}
    found |= {name: row[name] for name, default in defaults.items() if row.get(name) not in (None, default)}
    if row.get("embedding") is not None:
        found["embedding"] = source.numbers(row["embedding"])
    return found | ({"embedding_model": row["embedding_model"]} if row.get("embedding_model") is not None else {})


def _jsonl(lines: Lines) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def write(row: dict[str, Any]) -> dict[str, Any]:
        lines.json(as_json(row))
        return row

    return write


def _beir(lines: Lines) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def write(row: dict[str, Any]) -> dict[str, Any]:
        lines.json({"_id": ids.typed(row["id"]), "text": row["text"]})
        return row

    return write


def _cells(row: dict[str, Any], what: str) -> dict[str, str]:
    """A question as cells of a table."""
    judged, relevant = row.get("judged") or [], row.get("relevant") or []
    documents = [label.get("document") for label in judged] or relevant
    anchors = [(anchor.get("document"), anchor.get("phrase", "")) for anchor in row.get("anchors") or []]
    found = {
        "id": ids.cell(row["id"], what),
        "text": row["text"],
        "relevant": _list([ids.cell(record, what) for record in documents]),
        "grades": _list([str(source.whole(label.get("grade"))) for label in judged]),
        "anchors": _anchors([(ids.cell(document, what), phrase) for document, phrase in anchors]),
        "answerable": "false" if row.get("answerable") is False else "",
        "tags": _list(row.get("tags") or []),
    }
    for name in ("set", "kind", "split", "source", "note"):
        value = row.get(name)
        if isinstance(value, str) and not value.strip():
            raise DataError(
                f"{record_text(row['id'])} has a blank {name}, which in {what} would be none", "--format jsonl tells them apart"
            )
        defaults = {"set": "default", "source": "human"}
        found[name] = "" if value is None or value == defaults.get(name) else value
    return found


def _list(values: Sequence[str]) -> str:
    """A list as a cell: values between bars, or JSON where a value would not come back from that."""
    return _barred(values) if _is_plain(values) else json.dumps(list(values), ensure_ascii=False)


def _anchors(anchors: Sequence[tuple[str, str]]) -> str:
    """Anchors as a cell: `document::phrase` between bars, or JSON."""
    joined = [f"{document}::{phrase}" for document, phrase in anchors]
    apart = all("::" not in name and not name.endswith(":") and name == name.strip() for name, _ in anchors)
    if apart and all(phrase == phrase.strip() for _, phrase in anchors) and _is_plain(joined):
        return _barred(joined)
    return json.dumps([{"document": document, "phrase": phrase} for document, phrase in anchors], ensure_ascii=False)


def _barred(values: Sequence[str]) -> str:
    return "|".join(value.replace("\\", "\\\\").replace("|", "\\|") for value in values)


def _is_plain(values: Sequence[str]) -> bool:
    return all(value and value == value.strip() and not value.startswith("[") for value in values)


def _mentioned(found: Sequence[dict[str, Any]]) -> Iterator[RecordID]:
    for row in found:
        yield row["id"]
        yield from row.get("relevant") or []
        yield from (label.get("document") for label in row.get("judged") or [])
        yield from (anchor.get("document") for anchor in row.get("anchors") or [])


def _counted(found: Iterator[dict[str, Any]]) -> Exported:
    questions = labels = 0
    for row in found:
        questions += 1
        labels += len(row.get("judged") or row.get("relevant") or [])
    return Exported(questions, labels)
