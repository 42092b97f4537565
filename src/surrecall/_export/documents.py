"""Documents of the corpus table: JSON Lines or CSV, with their vectors there or in a .npy file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from surrecall._database import Database
from surrecall._errors import DataError
from surrecall._export import ids, source
from surrecall._export.npy import NpyWriter
from surrecall._export.output import Lines
from surrecall._export.pages import pages
from surrecall._render import record_text

COLUMNS = ("id", "title", "text")


class Form(StrEnum):
    """The forms of a file of documents."""

    JSONL = "jsonl"
    CSV = "csv"


@dataclass(frozen=True)
class Exported:
    """What was written; `vectors` is how many documents have one there."""

    documents: int
    vectors: int


def export(
    database: Database,
    corpus: source.Source,
    form: Form,
    lines: Lines,
    *,
    vectors: bool = False,
    npy: NpyWriter | None = None,
    progress: source.Progress = source.silent,
) -> Exported:
    """Write every document, by id. Raises DataError naming what the form can't hold."""
    wanted = vectors or npy is not None
    if wanted and corpus.vector is None:
        raise DataError(f"{corpus.table} has no field with vectors", "leave the vectors out")
    write_row = lines.table(COLUMNS + (("vector",) if vectors else ())) if form is Form.CSV else None
    found = rows(database, corpus, vectors=wanted) if form is Form.JSONL else by_text(database, corpus, vectors=wanted)
    documents = with_vector = 0
    total = source.count(database, corpus.table)
    for row in found:
        documents += 1
        progress(documents, total)
        vector = row.get("vector")
        with_vector += vector is not None
        if npy is not None:
            if vector is None:
                raise DataError(
                    f"{record_text(row['id'])} has no vector", "surrecall embed gives it one; or leave the vectors out"
                )
            npy.add(ids.text(row["id"]), vector)
        written = as_json(row) | ({"vector": source.numbers(vector)} if vectors and vector is not None else {})
        if write_row is None:
            lines.json(written)
        else:
            cells = written | {"id": ids.cell(row["id"], "CSV")}
            cells |= {"vector": json.dumps(written["vector"])} if "vector" in written else {}
            write_row(cells)
    if not documents:
        raise DataError(f"{corpus.table} holds no document", "surrecall import documents")
    return Exported(documents, with_vector)


def rows(database: Database, corpus: source.Source, *, vectors: bool) -> Iterator[dict[str, Any]]:
    """The documents in id order."""
    fields = f"{source.PLAIN}, {source.VECTOR}" if vectors else source.PLAIN
    for page in pages(database, corpus.table, fields, size="text", **corpus.fields):
        for row in page:
            yield _checked(row, corpus)


def by_text(database: Database, corpus: source.Source, *, vectors: bool) -> Iterator[dict[str, Any]]:
    """The documents in the order of their ids as text, as a table of text has them. Raises DataError where two read the same."""
    found = [row["id"] for page in pages(database, corpus.table, "id") for row in page]
    ids.Twins(database, "CSV").refuse(found)
    if all(isinstance(record.id, str) for record in found):
        # the engine sorts texts as Python does
        yield from rows(database, corpus, vectors=vectors)
        return
    for batch in ids.batches(sorted(found, key=ids.text), 100):
        there = source.documents(database, corpus, batch)
        for record in batch:
            if source.key(record) in there:
                yield _checked(there[source.key(record)], corpus)


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A document as one object; an empty title is none."""
    title = {"title": row["title"]} if row.get("title") else {}
    return {"id": ids.typed(row["id"])} | title | {"text": row["text"]}


def _checked(row: dict[str, Any], corpus: source.Source) -> dict[str, Any]:
    for name, field in (("text", corpus.text), ("title", corpus.title)):
        value = row.get(name)
        if not isinstance(value, str) and (name == "text" or value is not None):
            raise DataError(
                f"the {field} of {record_text(row['id'])} is {'missing' if value is None else 'no text'}",
                "surrecall check lists such documents; surrecall snapshot holds them",
            )
    return row
