"""Driving a comparison of a vector index with exact search. Neighbours, recall, times and the advice are the database's."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

from surrealdb import BoundExcluded, Range, RecordID, Table

from surrecall import _inventory, _probes, _quoting
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import SchemaError, UsageError
from surrecall._shards import Progress, Shards, joined

_BEGIN = """
RETURN object::extend(fn::ann_begin($set, $k), {
  index: fn::corpus_indexes()[WHERE name = $index][0].definition,
  literals: fn::knn_literals((INFO FOR DB).functions[$search] ?? ''),
});
"""
# The index is named: where a field has two, each executor takes another one. What leads to the documents is not timed.
_PROBE = """
DEFINE FUNCTION OVERWRITE {name}($question: record, $k: int) {{
  LET $qvec = $question.embedding;
  LET $from = time::now();
  {body}
  LET $took = <float> duration::nanos(time::now() - $from) / 1000000;
  LET $near = (SELECT source, distance FROM $rows WHERE distance > -1e300 AND distance < 1e300);
  LET $sources = $near.source;
  {documents}
  RETURN {{
    sources: array::slice($sources, 0, $k),
    distances: array::slice($near.distance, 0, $k),
    documents: array::slice($documents, 0, $k),
    took: $took,
  }};
}} COMMENT 'surrecall: holds a vector index against exact search, for a moment'
"""
_SEARCH = (
    "LET $rows = (SELECT {source} AS source, vector::distance::knn() AS distance FROM {table}{index} "
    "WHERE {vector} <|{pool},{how}|> $qvec ORDER BY distance, source);"
)
# Not in a closure: there the engine answers <|K,COSINE|> through the index with an ef of K, which is faster and not exact.
_EXACT = "SELECT VALUE { question: id, exact: PROBE(id, $k), relevant: relevant } FROM $questions"
_FOUND = "RETURN $asked.map(|$one| fn::ann_answer(PROBE($one.question, $k), $one.exact, $one.relevant, $k))"
_WARM = "RETURN $questions.map(|$id| PROBE($id, $k)).len()"
_FIGURES = "RETURN fn::ann_figures($answers)"
_ADVICE = "RETURN fn::ann_advice($rows, $exact, $k)"
# a range inside a closure is read up to LIMIT, and no further
_COPY = """
LET $page = [$rows].map(|$from| (
  SELECT type::record('{trial}', record::id(id)) AS id, id AS source, {vector} AS vector FROM $from
  WHERE type::is_array({vector}) LIMIT $limit
))[0];
INSERT INTO {trial} $page RETURN NONE;
RETURN {{ copied: $page.len(), last: array::last($page.source) }};
"""
_PAGE = 200
_FIRST_SHARD = 4
_DEFAULTS = {"M": 12, "EFC": 150}
# a build that has not moved for as long will not
_STALLED = 60.0


@dataclass(frozen=True)
class Options:
    """What to try: values of ef, and of M and EFC of an index; none of the last two tries the index that is there alone."""

    k: int
    efs: Sequence[int] = ()
    ms: Sequence[int] = ()
    efcs: Sequence[int] = ()
    question_set: str = "default"


@dataclass(frozen=True)
class Compared:
    """A row for each index and ef (index, ef, in_force, and as fn::ann_figures), the figures of exact search, and the advice."""

    k: int
    exact: dict[str, Any]
    rows: list[dict[str, Any]]
    advice: str
    warnings: list[str]


@dataclass(frozen=True)
class _Index:
    """Where a search goes: a table, its field of the vector, the name of its index, and what it is called."""

    table: str
    vector: str
    name: str
    label: str
    source: str = "id"


def compare(database: Database, corpus: Corpus, asked: Options, progress: Progress = lambda _done, _all: None) -> Compared:
    """Hold the vector index of a corpus against exact search over the golden questions.

    Indexes of other settings are built over a copy of the vectors, in a table that is removed again: two indexes on one field are
    possible, but the searches of the application would then take now this one, now that one.

    Raises UsageError where the corpus has no vectors, SchemaError where an index can't be built.
    """
    if corpus.vector is None or corpus.nearest is None:
        raise UsageError("this corpus has no vector index", "there is nothing to hold against exact search")
    search = database.settings.names.get("fn::search_vec", "fn::search_vec").removeprefix("fn::")
    begun = database.value(_BEGIN, set=asked.question_set, k=asked.k, index=corpus.nearest, search=search)
    questions: list[RecordID] = begun["questions"]
    there = _settings(begun["index"])
    force = begun["literals"][0]["ef"] if begun["literals"] else None
    pool = max(asked.k, corpus.pool)
    efs = list(dict.fromkeys([*(asked.efs or sorted({asked.k, pool, 3 * pool})), *([force] if force else [])]))
    settings = [
        {"M": m, "EFC": efc}
        for m, efc in product(asked.ms or [there["M"]], asked.efcs or [there["EFC"]])
        if (asked.ms or asked.efcs) and {"M": m, "EFC": efc} != there
    ]
    vectors = _inventory.rows(database, corpus.vector_table or corpus.table) if settings else 0
    shards = Shards(len(questions) * (1 + len(efs) * (1 + len(settings))) + vectors, progress)
    own = _Index(_quoting.identifier(corpus.vector_table or corpus.table), corpus.vector, corpus.nearest, _label(there))
    asking = _Asking(database, corpus, asked.k, pool, questions, shards)
    exact = asking.exact(own)
    rows = [row | {"in_force": row["ef"] == force} for row in asking.found(own, efs)]
    if settings:
        with _copied(database, corpus, shards) as trial:
            for one in settings:
                index = _build(database, corpus, trial, one, begun["index"])
                rows += [row | {"in_force": False} for row in asking.found(index, efs)]
    return Compared(
        asked.k,
        exact,
        rows,
        database.value(_ADVICE, rows=rows, exact=exact, k=asked.k),
        [f"{begun['without']} questions have no vector, and are in no figure"] if begun["without"] else [],
    )


class _Asking:
    """Puts the questions to one index after the other, a shard at a time."""

    def __init__(self, database: Database, corpus: Corpus, k: int, pool: int, questions: list[RecordID], shards: Shards) -> None:
        self._database, self._corpus, self._k, self._pool = database, corpus, k, pool
        self._questions, self._shards = questions, shards
        self._asked: list[dict[str, Any]] = []

    def exact(self, index: _Index) -> dict[str, Any]:
        """The figures of exact search, which all others are held against."""
        with self._defined({"exact": self._search(index, None)}) as names:
            statement = _EXACT.replace("PROBE", names["exact"])
            self._asked = self._all(lambda some: {"questions": some}, self._questions, statement)
        answers = self._database.value(
            "RETURN $asked.map(|$one| fn::ann_answer($one.exact, $one.exact, $one.relevant, $k))", asked=self._asked, k=self._k
        )
        figures: dict[str, Any] = self._database.value(_FIGURES, answers=answers)
        return figures

    def found(self, index: _Index, efs: Sequence[int]) -> list[dict[str, Any]]:
        """The figures of an index at each ef."""
        rows = []
        with self._defined({f"ef{ef}": self._search(index, ef) for ef in efs}) as names:
            # the engine takes an index into memory when it is first asked
            self._database.value(_WARM.replace("PROBE", names[f"ef{efs[0]}"]), questions=self._questions[:1], k=self._k)
            for ef in efs:
                statement = _FOUND.replace("PROBE", names[f"ef{ef}"])
                answers = self._all(lambda some: {"asked": some}, self._asked, statement)
                rows.append({"index": index.label, "ef": ef} | self._database.value(_FIGURES, answers=answers))
        return rows

    def _all(self, variables: Any, every: Sequence[Any], statement: str) -> list[Any]:
        def work(start: int, end: int) -> Any:
            return self._database.value(statement, k=self._k, **variables(every[start:end]))

        return joined(self._shards.run(len(every), work, _FIRST_SHARD))

    @contextmanager
    def _defined(self, bodies: dict[str, str]) -> Iterator[dict[str, str]]:
        form = _PROBE.replace("{documents}", self._documents().replace("{", "{{").replace("}", "}}"))
        with _probes.defined(self._database, "ann", bodies, form) as names:
            yield names

    def _search(self, index: _Index, ef: int | None) -> str:
        """The search of a body; exact without an ef."""
        return _SEARCH.format(
            source=index.source,
            table=index.table,
            index="" if ef is None else f" WITH INDEX {_quoting.identifier(index.name)}",
            vector=index.vector,
            pool=self._pool,
            how=self._corpus.distance if ef is None else ef,
        )

    def _documents(self) -> str:
        """How the rows lead to documents, each once, the nearest vector first."""
        corpus = self._corpus
        if corpus.vector_table and corpus.link:
            found = f"(SELECT VALUE {corpus.link} FROM $sources)[WHERE $this != NONE]"
        elif corpus.vector_table:
            found = (
                f"(SELECT VALUE id FROM (SELECT id, array::find_index($sources, {corpus.linked_by}) AS place "
                f"FROM {_quoting.identifier(corpus.table)} WHERE {corpus.linked_by} IN $sources ORDER BY place, id))"
            )
        else:
            found = "$sources"
        return f"LET $documents = array::distinct({found});"


@contextmanager
def _copied(database: Database, corpus: Corpus, shards: Shards) -> Iterator[str]:
    """A table with a copy of the vectors, for as long as it takes."""
    own = corpus.vector_table or corpus.table
    with _probes.table(database, "ann", "vectors for the trial of an index, for a moment") as trial:
        statement = _COPY.format(trial=trial, vector=corpus.vector)
        rows: Any = Table(own)
        while True:
            told = database.run_as_written(statement, rows=rows, limit=_PAGE)[-1]
            shards.skip(told["copied"])
            if told["copied"] < _PAGE:
                break
            rows = RecordID(own, Range(BoundExcluded(told["last"].id), None))
        yield trial


def _build(database: Database, corpus: Corpus, trial: str, setting: dict[str, int], definition: str) -> _Index:
    """An index of other settings over the copy, in place of the one before. Raises SchemaError when it is not built."""
    of_type = re.findall(r"TYPE \w+", definition)[:1]
    flags = re.findall("EXTEND_CANDIDATES|KEEP_PRUNED_CONNECTIONS", definition)
    words = [*of_type, f"EFC {setting['EFC']} M {setting['M']}", *flags]
    database.run_as_written(
        f"REMOVE INDEX IF EXISTS trial ON {trial}; DEFINE INDEX trial ON {trial} FIELDS vector HNSW DIMENSION {corpus.dimension} "
        f"DIST {corpus.distance} {' '.join(words)} CONCURRENTLY"
    )
    moved = time.monotonic()
    seen: dict[str, Any] = {}
    while True:
        state = database.run_as_written(f"INFO FOR INDEX trial ON {trial}")[-1].get("building", {})
        if state.get("status", "ready") == "ready":
            return _Index(trial, "vector", "trial", _label(setting), "source")
        if state != seen:
            moved, seen = time.monotonic(), state
        if state.get("status") == "error" or time.monotonic() - moved > _STALLED:
            raise SchemaError(
                f"the index {_label(setting)} could not be built: {state}", "look into the server's log, or try other settings"
            )
        time.sleep(0.05)


def _settings(definition: str) -> dict[str, int]:
    """M and EFC of an index that is there."""
    found = {name: re.search(rf"\b{name} (\d+)", definition) for name in _DEFAULTS}
    return {name: int(match[1]) if match else _DEFAULTS[name] for name, match in found.items()}


def _label(setting: dict[str, int]) -> str:
    return f"M {setting['M']}, EFC {setting['EFC']}"
