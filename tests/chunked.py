"""A collection of long documents whose labels are spans: questions with anchors, and the documents in tables of chunks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import Database, _anchors, _files, _init, _retrievers
from surrecall._corpus import Corpus

CORPUS = Corpus("text", "body", title=None)
_BATCH = 1000
_SEARCH = """
DEFINE FUNCTION OVERWRITE fn::find_{table}($q: string, $k: int) {{
  RETURN SELECT id, score FROM (
    SELECT id, search::score(1) AS score FROM {table} WHERE text @1,OR@ $q ORDER BY score DESC, id LIMIT $k
  );
}};
"""


@dataclass(frozen=True)
class Chunking:
    """Windows of so many characters, each beginning so many before the end of the one before."""

    size: int
    overlap: int

    @property
    def table(self) -> str:
        return f"chunk_{self.size}_{self.overlap}"

    def starts(self, text: str) -> range:
        return range(0, len(text), self.size - self.overlap)


CHUNKINGS = tuple(Chunking(size, overlap) for size in (200, 400, 800) for overlap in (0, size // 4))


@dataclass(frozen=True)
class Spans:
    """The collection: texts by id, and the spans of each question as [document, start, end]."""

    texts: dict[str, str]
    questions: dict[str, str]
    spans: dict[str, list[tuple[str, int, int]]]

    def phrase(self, span: tuple[str, int, int]) -> str:
        name, start, end = span
        return self.texts[name][start:end]


def read(folder: Path) -> Spans:
    def lines(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    spans: dict[str, list[tuple[str, int, int]]] = {}
    for row in lines("spans.jsonl"):
        spans.setdefault(row["query_id"], []).append((row["doc_id"], row["start"], row["end"]))
    texts = {row["id"]: row["text"] for row in lines("docs.jsonl")}
    return Spans(texts, {row["id"]: row["text"] for row in lines("queries.jsonl")}, spans)


def load(database: Database, collection: Spans, project: Path, sample: Sequence[str] = ()) -> None:
    """Documents and questions; those of `sample` also in a golden set of that name."""
    _init.init(project, CORPUS)
    database.run(_files.joined(_files.load(project)))
    rows = [{"id": RecordID("text", name), "body": text} for name, text in collection.texts.items()]
    database.run("INSERT INTO text $rows RETURN NONE", rows=rows)
    questions = [
        {
            "id": RecordID("question", f"{prefix}{name}"),
            "text": collection.questions[name],
            "set": question_set,
            "relevant": list({span[0]: RecordID("text", span[0]) for span in collection.spans[name]}.values()),
            "anchors": [
                {"document": RecordID("text", span[0]), "phrase": collection.phrase(span)} for span in collection.spans[name]
            ],
        }
        for prefix, question_set, names in (("", "default", list(collection.spans)), ("sample_", "sample", sample))
        for name in names
    ]
    database.run("INSERT INTO question $rows RETURN NONE", rows=questions)


def cut(database: Database, collection: Spans, chunking: Chunking) -> None:
    """The documents in a table of chunks, registered."""
    table = chunking.table
    database.run(f"DEFINE TABLE {table}")
    rows = [
        {
            "id": RecordID(table, f"{name}_{at:05}"),
            "document": RecordID("text", name),
            "position": at,
            "text": text[start : start + chunking.size],
        }
        for name, text in collection.texts.items()
        for at, start in enumerate(chunking.starts(text))
    ]
    for start in range(0, len(rows), _BATCH):
        database.run(f"INSERT INTO {table} $rows RETURN NONE", rows=rows[start : start + _BATCH])
    _anchors.add_chunking(database, table, {})


def search(database: Database, *chunkings: Chunking) -> None:
    """A full-text index on each table, and a retriever of its name."""
    entries = []
    for chunking in chunkings:
        table = chunking.table
        database.run(
            f"DEFINE INDEX words ON {table} FIELDS text FULLTEXT ANALYZER {CORPUS.analyzer or 'text_text'} BM25;"
            + _SEARCH.format(table=table)
        )
        entries.append(_retrievers.entry(_retrievers.Retriever(table, f"fn::find_{table}($question.text, $k)", table)))
    database.run(_retrievers.compile_dispatcher(_retrievers.parse("\n\n".join(entries))))
