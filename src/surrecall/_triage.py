"""A wrong answer of production: whether retrieval or generation lost it, and the question into the golden set for good.

The verdict is fn::triage's; here ids are looked up and a text gets its vector.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _embed, _ids, _vectors
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DataError, UsageError

_TRIAGE = "RETURN fn::triage($retriever, $question, $expected, $options)"
_ADD = "RETURN fn::triage_add($question, $expected, $options)"
_STORED = """
SELECT id, embedding, embedding_model, set != $set AS elsewhere FROM question WHERE text = $text ORDER BY elsewhere, id LIMIT 1
"""


@dataclass(frozen=True)
class Options:
    """What to look at. `vector` is a file with the question's vector; `asked` how a model is called where there is none."""

    text: str
    expected: Sequence[str]
    retriever: str | None = None
    k: int = 8
    depth: int = 100
    vector: Path | None = None
    add: bool = False
    question_set: str = "default"
    kind: str | None = None
    note: str | None = None
    asked: _embed.Asked = field(default_factory=lambda: _embed.Asked(roles=("question",)))


@dataclass(frozen=True)
class Triaged:
    """The verdict as fn::triage gives it, and what became of the question as fn::triage_add says, where it was to be added."""

    verdict: dict[str, Any]
    added: dict[str, Any] | None


def triage(database: Database, corpus: Corpus | None, project: Path, options: Options) -> Triaged:
    """Find out where an answer was lost, and with `add` keep the question.

    Raises DataError for documents that are not there and for a vector that can't be had where the retriever needs one; nothing is
    added then.
    """
    table = corpus.table if corpus else "article"
    expected = _documents(database, table, options.expected)
    question = _question(database, corpus, project, options)
    asked = {"k": options.k, "depth": options.depth}
    try:
        verdict = database.value(_TRIAGE, retriever=options.retriever, question=question, expected=expected, options=asked)
    except DataError as error:
        if question["embedding"] is not None or not error.message.startswith("a vector of "):
            raise
        raise DataError(
            "the question has no vector, which this retriever needs, and no embedder is recorded",
            "--vector FILE gives it, surrecall embed --embedder … records one, or name a retriever without (--retriever bm25)",
        ) from error
    if not options.add:
        return Triaged(verdict, None)
    more = {"set": options.question_set, "kind": options.kind, "note": options.note}
    return Triaged(verdict, database.value(_ADD, question=question, expected=expected, options=more))


def _documents(database: Database, table: str, given: Sequence[str]) -> list[RecordID]:
    """The documents that ids mean, as in the import of labels."""
    names = [_ids.Name(text) for text in given]
    found = _ids.resolve(database, table, names)
    for name in names:
        if not found[name]:
            bare = str(name).removeprefix(f"{table}:")
            raise DataError(
                f"no {table} has the id {name.shown}",
                f"give the id alone: --expected {bare}" if bare != str(name) else "surrecall export documents lists them",
            )
        if len(found[name]) > 1:
            raise DataError(
                f"the id {name.shown} is that of {len(found[name])} records of {table}, a text and a number",
                "surrecall import questions takes JSON, which tells them apart",
            )
    return [found[name][0] for name in dict.fromkeys(names)]


def _question(database: Database, corpus: Corpus | None, project: Path, options: Options) -> dict[str, Any]:
    """The text with its vector: from the file, from the golden set, or by the recorded model; None where neither has one."""
    if options.vector is not None:
        return {"text": options.text, "embedding": _read(options.vector), "embedding_model": None}
    stored = database.value(_STORED, text=options.text, set=options.question_set)
    if stored and stored[0].get("embedding"):
        return {"text": options.text, "embedding": stored[0]["embedding"], "embedding_model": stored[0].get("embedding_model")}
    vector, model = _embedded(database, corpus, project, options)
    return {"text": options.text, "embedding": vector, "embedding_model": model}


def _embedded(
    database: Database, corpus: Corpus | None, project: Path, options: Options
) -> tuple[list[float] | None, str | None]:
    if corpus is not None and corpus.vector is None:
        return None, None
    where = _embed.places(corpus, project, database, ("question",))
    return _embed.vector_of(database, where, options.text, options.asked) or (None, None)


def _read(path: Path) -> list[float]:
    try:
        numbers = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--vector {path} can't be read: {getattr(error, 'strerror', None) or error}", "a file of JSON"
        ) from error
    except json.JSONDecodeError:
        numbers = None
    if not isinstance(numbers, list) or not numbers or not all(type(number) in (int, float) for number in numbers):
        raise DataError(f"{path} holds no list of numbers", "for example: [0.1, 0.9, 0.25, 0]")
    vector = [float(number) for number in numbers]
    if wrong := _vectors.fault(vector):
        raise DataError(f"{path} holds {wrong}", "embed the question again")
    return vector
