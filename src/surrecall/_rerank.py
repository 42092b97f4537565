"""Rerankers outside the database: a file of scores, or an endpoint. What they say becomes answers of an evaluation, as an import.

The candidates are a retriever's, asked in the database, and the order is made there too (fn::rerank_order); here texts go out and
scores come in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _evaluation, _ids, _ingest, _render, _retrievers, _run_file, _writer
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._endpoint import JsonEndpoint, checked_url
from surrecall._errors import DataError, EmbeddingError, SurrecallError, UsageError
from surrecall._faults import Faults
from surrecall._retry import retried

_QUESTIONS = "SELECT VALUE id FROM question WHERE set = $set ORDER BY id"
_POOLS = "RETURN fn::rerank_pools($retriever, $questions, $pool)"
_TEXTS = "RETURN fn::document_texts($ids)"
_ORDER = "RETURN math::sum($answers.map(|$answer| fn::rerank_order($answer.pool, $answer.scores).unscored))"
_STORE = "fn::rerank_answers($evaluation, $answers)"
_FINGERPRINT = "LET $hash = fn::corpus_hash(); UPDATE $evaluation SET corpus.hash = $hash RETURN NONE;"
_SHARD = 8

Progress = Callable[[int, int], None]
Answer = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What to rerank and how to record it: the retriever with its `pool` of candidates, and the name in the history."""

    retriever: str
    name: str
    cutoffs: Sequence[int]
    pool: int = _retrievers.POOL
    scores: Path | None = None
    url: str | None = None
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    key_name: str = "RERANKER_API_KEY"
    timeout: float = 120.0
    question_set: str = "default"
    note: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Reranked:
    """The evaluation, whether it was there already, and how many candidates the reranker gave no score: they keep their place."""

    evaluation: _evaluation.Evaluation
    known: bool
    candidates: int
    unscored: int

    @property
    def warnings(self) -> list[str]:
        """What should be known beside the figures."""
        lost = (
            f"{self.unscored} of {self.candidates} candidates have no score, a fault of the harness: they stand behind the others"
        )
        return [*self.evaluation.warnings, *([lost] if self.unscored else [])]


def rerank(
    database: Database, corpus: Corpus | None, options: Options, progress: Progress = lambda _done, _all: None
) -> Reranked:
    """Put the candidates of a retriever in the order of outside scores, and measure that; the same scores again change nothing.

    Raises DataError for lines that can't be read, EmbeddingError when the endpoint fails or gives no list of scores, UsageError
    for the name of a registered retriever. After any failure nothing of it is left.
    """
    _retrievers.require_name(options.name)
    if (options.scores is None) is (options.url is None):
        raise UsageError("a reranker is a file of scores or an endpoint", "give --scores FILE or --reranker-url URL")
    endpoint = None if options.url is None else _Endpoint(options)
    database.run("fn::require_import($retriever, $set)", retriever=options.name, set=options.question_set)
    _writer.require_writer(database, "evaluation")
    asked: list[RecordID] = database.value(_QUESTIONS, set=options.question_set)
    scores = None if options.scores is None else _read(database, corpus, options.scores, asked)
    answers: list[Answer] = []
    for pools in _pools(database, options, asked):
        for pool in pools:
            found = scores.get(_ids.key(pool["question"]), []) if scores is not None else _asked(database, endpoint, pool)
            answers.append({"question": pool["question"], "pool": pool["pool"], "scores": found})
            progress(len(answers), len(asked))
    candidates = sum(len(answer["pool"]) for answer in answers)
    unscored = sum(database.value(_ORDER, answers=part) for part in _shards(answers))
    if unscored == candidates:
        raise DataError(
            f"no score for any of {_render.counted(candidates, 'candidate')} of {options.retriever}",
            "compare the ids of the questions" if scores is not None else "each result needs a relevance_score, a finite number",
        )
    request = _request(database, options, answers)
    known = database.value("RETURN fn::imported_run($options)", options=request)
    if known is not None:
        return Reranked(_evaluation.read(database, known), known=True, candidates=candidates, unscored=unscored)
    return Reranked(_record(database, request, answers), known=False, candidates=candidates, unscored=unscored)


def _request(database: Database, options: Options, answers: Sequence[Answer]) -> dict[str, Any]:
    told = json.dumps(_render.jsonable([options.retriever, options.pool, answers]), sort_keys=True)
    return {
        "retriever": options.name,
        "k": list(options.cutoffs),
        "set": options.question_set,
        "note": options.note,
        "revision": options.revision,
        "engine": database.version,
        "longest": options.pool,
        "file": options.scores.name if options.scores is not None else str(options.url),
        "sha256": hashlib.sha256(told.encode()).hexdigest(),
    }


def _record(database: Database, request: dict[str, Any], answers: Sequence[Answer]) -> _evaluation.Evaluation:
    for other in database.value(
        "RETURN fn::imports_cut_off($retriever, $set)", retriever=request["retriever"], set=request["set"]
    ):
        _evaluation.discard(database, other)
    row = database.value("RETURN fn::import_begin($options)", options=request)
    evaluation: RecordID = row["id"]
    try:
        for part in _shards(answers):
            database.run(_STORE, evaluation=evaluation, answers=part)
        database.run(_FINGERPRINT, evaluation=evaluation)
        return _evaluation.finish(database, row)
    except BaseException:
        # where the database went away, check names it, and reranking again takes its place
        with suppress(SurrecallError):
            _evaluation.discard(database, evaluation)
        raise


def _shards(answers: Sequence[Answer]) -> Iterator[list[Answer]]:
    yield from map(list, _ingest.shards(answers, lambda answer: len(answer["pool"])))


def _pools(database: Database, options: Options, asked: Sequence[RecordID]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(asked), _SHARD):
        questions = list(asked[start : start + _SHARD])
        given = {"retriever": options.retriever, "questions": questions, "pool": options.pool}
        yield retried(lambda given=given: database.value(_POOLS, **given))  # type: ignore[misc]


def _read(database: Database, corpus: Corpus | None, path: Path, asked: Sequence[RecordID]) -> dict[Any, list[dict[str, Any]]]:
    """Scores by question; those of questions that are not asked, and of documents that are not there, count for nothing."""
    faults = Faults()
    lines = _run_file.read(path, _run_file.form_of(path), faults)
    faults.raise_if_any(f"mend these lines, then rerank again; {_run_file.FORMS}")
    by_id = {_ids.key(question): question for question in asked}
    questions = _ids.among((line.question for line in lines), by_id)
    documents = _ids.resolve(database, corpus.table if corpus else "article", [line.document for line in lines])
    found: dict[Any, list[dict[str, Any]]] = {}
    first: dict[tuple[str, str], _run_file.Line] = {}
    for line in lines:
        other = first.setdefault((str(line.question), str(line.document)), line)
        if other.score != line.score:
            faults.add(path, line.line, f"another score than in line {other.line}", line.content)
        if line.score is None:
            faults.add(path, line.line, "no score", line.content)
        for question in questions[line.question]:
            found.setdefault(question, []).extend(
                {"document": document, "score": line.score} for document in documents[line.document]
            )
    faults.raise_if_any("scores belong into a file that a reranker made; surrecall import run takes rankings without")
    return found


def _asked(database: Database, endpoint: _Endpoint | None, pool: dict[str, Any]) -> list[dict[str, Any]]:
    """The scores that an endpoint gives the candidates of one question."""
    if endpoint is None or not pool["pool"]:
        return []
    texts = {_ids.key(row["id"]): row["text"] for row in database.value(_TEXTS, ids=pool["pool"])}
    return endpoint.scores(pool["text"], pool["pool"], [texts.get(_ids.key(document), "") for document in pool["pool"]])


class _Endpoint:
    """A reranker that takes {query, documents} and gives {results: [{index, relevance_score}]}."""

    def __init__(self, options: Options) -> None:
        self._url = checked_url(options.url or "", "--reranker-url", "http://127.0.0.1:8080/rerank")
        self._model = options.model
        self._endpoint = JsonEndpoint(
            self._url,
            self._url,
            "--reranker-url",
            "",
            "check --reranker-url and --model; --pool asks for fewer candidates",
            options.key,
            options.key_name,
            options.timeout,
            "check {option}, or run it again later; nothing was stored",
        )

    def scores(self, query: str, documents: Sequence[RecordID], texts: Sequence[str]) -> list[dict[str, Any]]:
        """One row a document that it scored."""
        body: dict[str, Any] = {"query": query, "documents": list(texts), "top_n": len(texts)}
        answer = self._endpoint.ask(body | ({"model": self._model} if self._model else {}))
        rows = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._unusable("holds no list `results`")
        places = [row.get("index") for row in rows]
        if any(type(place) is not int or not 0 <= place < len(documents) for place in places):
            raise self._unusable(f"names documents that were no candidates (index from 0 to {len(documents) - 1})")
        if len(set(places)) < len(places):
            raise self._unusable("names a document twice")
        given = [(row["index"], row.get("relevance_score")) for row in rows]
        # null is how JSON writes NaN: such a document has no score
        if any(score is not None and type(score) not in (int, float) for _, score in given):
            raise self._unusable("holds a relevance_score that is no number")
        try:
            return [{"document": documents[place], "score": float(score)} for place, score in given if score is not None]
        except OverflowError as error:
            raise self._unusable("holds a relevance_score that is too large") from error

    def _unusable(self, why: str) -> EmbeddingError:
        return EmbeddingError(
            f"the answer of {self._url} {why}", "check that --reranker-url takes {query, documents} and gives {results}"
        )
