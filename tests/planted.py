"""A corpus with one planted case of each kind of fault, and the questions that run into them.

Vectors lie on a circle, each case in a part of its own, six documents one degree apart, the question at its beginning; so the
order of the vector search is theirs. Each case has a word of its own, held by all six, once each: BM25 gives them one score,
and they come in the order of their ids.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import Database, _init, _schema
from surrecall._corpus import Corpus
from surrecall._retrievers import Retriever, Stage

K, POOL, DOCUMENTS = 2, 5, 6
CORPUS = Corpus("piece", "body", "vec", 4, pool=POOL, reference="none", parent="book", position="number")
_HYBRID = "fn::search_hybrid($question.text, $question.embedding, $k)"
_REVERSED = "array::reverse(fn::search_hybrid($question.text, $question.embedding, 5))"
RETRIEVERS = [
    Retriever("open", _HYBRID, "piece", where="$row.id.book != 'hidden'", stages=(Stage("fused", _HYBRID),)),
    Retriever("turned", _REVERSED, "piece", stages=(Stage("fused", _HYBRID), Stage("reranked", _REVERSED))),
]
# the retriever that runs into it; every kind of fault has a question named like it
CASES = {
    "not-in-corpus": "hybrid",
    "not-indexed": "hybrid",
    "filtered-out": "open",
    "unlabelled-answer": "hybrid",
    "index-loss": "hybrid",
    "reranker-demotion": "turned",
    "near-duplicates": "hybrid",
    "chunk-boundary": "hybrid",
    "vocabulary-gap": "hybrid",
    "one-stage-only": "vector",
    "ranking": "hybrid",
}
_SAME = "the pump of the boiler is drained by the red valve under its left side before winter comes"


def _vector(degrees: float) -> list[float]:
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0.0, 0.0]


def _word(kind: str) -> str:
    return kind.replace("-", "") + "word"


def _id(kind: str, number: int) -> str:
    return f"{kind.replace('-', '_')}_{number}"


def _documents() -> dict[Any, dict[str, Any]]:
    rows: dict[Any, dict[str, Any]] = {
        _id(kind, number): {
            "body": f"{_word(kind)} {' '.join(f'{_id(kind, number)}x{letter}' for letter in 'abcd')}",
            "vec": _vector(30 * place + number),
        }
        for place, kind in enumerate(CASES)
        for number in range(1, DOCUMENTS + 1)
    }
    rows["silent"] = {"body": "nothing of what anybody asks"}
    rows["lonely"] = {"body": f"{_word('one-stage-only')} lonely", "vec": _vector(30 * 11 + 15)}
    rows["distant"] = {"body": "says it in other words", "vec": _vector(30 * 11 + 16)}
    for number in range(1, DOCUMENTS + 1):
        # the word of this case is held by the lonely one alone
        rows[_id("one-stage-only", number)]["body"] = f"filler {number} one two"
        rows[_id("chunk-boundary", number)] |= {"book": "manual", "number": number}
    rows[_id("filtered-out", 1)] |= {"book": "hidden", "number": 1}
    for number in (1, 2, 3):
        rows[_id("near-duplicates", number)]["body"] = f"{_word('near-duplicates')} {_SAME} {number}"
    for number in (1, 4):
        rows[_id("unlabelled-answer", number)]["body"] = f"{_word('unlabelled-answer')} {_SAME.replace('pump', 'fan')} {number}"
    # the vector index never finds an array for an id; three documents have its word more often
    for number in (1, 2, 3):
        rows[_id("index-loss", number)]["body"] = " ".join([_word("index-loss")] * 3)
    for number in (4, 5, 6):
        rows[_id("index-loss", number)]["body"] = f"filler {number} three four"
    rows[("lost", 1)] = {"body": f"{_word('index-loss')} and some more words of it", "vec": _vector(30 * 4)}
    return rows


_LABELS: dict[str, Any] = {kind: _id(kind, 4) for kind in CASES} | {
    "not-indexed": "silent",
    "filtered-out": _id("filtered-out", 1),
    "index-loss": ("lost", 1),
    "reranker-demotion": _id("reranker-demotion", 1),
    "chunk-boundary": _id("chunk-boundary", 3),
    "vocabulary-gap": "distant",
    "one-stage-only": "lonely",
}


def _piece(name: Any) -> RecordID:
    return RecordID("piece", list(name) if isinstance(name, tuple) else name)


def plant(database: Database, folder: Path) -> None:
    """A project in the folder, and its corpus and questions in the database; every label but that of `ranking` is of its kind."""
    _init.init(folder, CORPUS, extra=RETRIEVERS)
    _schema.apply(database, folder)
    rows = [{"id": _piece(name)} | fields for name, fields in _documents().items()]
    database.run("INSERT INTO piece $rows RETURN NONE", rows=rows)
    for place, kind in enumerate(CASES):
        database.run(
            "CREATE $id SET text = $text, embedding = $vector, relevant = [$label], kind = $kind",
            id=RecordID("question", kind),
            text=_word(kind),
            vector=_vector(30 * place),
            label=_piece(_LABELS[kind]),
            kind="odd" if place % 2 else "even",
        )
    database.run("DELETE $gone", gone=_piece(_LABELS["not-in-corpus"]))
