"""Filling the vectors of questions and documents. Which models may meet is decided in the database; here texts go to a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _vectors, _writer
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._embedders import Embedder, Kind, openai
from surrecall._embedders.hashing import Hashing
from surrecall._embedders.sentence_transformers import SentenceTransformers
from surrecall._embedding_rows import Count, Place, Row, Rows
from surrecall._errors import DatabaseError, DataError, EmbeddingError, UsageError
from surrecall._evaluation import Interrupted
from surrecall._render import counted, record_text
from surrecall._retry import retried

# a row whose text changes while it is embedded is embedded again, so often
_TRIES = 3
# so many unusable vectors are no accident
_REFUSED_AT_MOST = 10
# the bounds of fn::usable_vector: what is shorter or longer is zero or infinite in the index

_CHUNK_TABLES = "SELECT VALUE record::id(id) FROM chunking WHERE made != NONE ORDER BY id"
_RECORDED = "SELECT * FROM embedding_model ORDER BY role, id"
_SETS = "SELECT VALUE set FROM question GROUP BY set ORDER BY set"
_REQUIRE = "fn::require_model($table, $field, $made)"
_CLAIM_BESIDE = "RETURN fn::claim_embeddings($table, $field, $made, $set)"
_CLAIM = "fn::claim_embeddings($table, $field, $made, $set)"
_BEGIN = "fn::begin_embeddings($table, $field, $made)"
_FINISH = "fn::finish_embeddings($table, $field, $made)"
_REACHED = """
UPDATE type::record('embedding_model', [$table, $field]) SET next.after = $after WHERE next.model = $made.model RETURN NONE
"""
_AFTER = "RETURN type::record('embedding_model', [$table, $field]).next.after"

Progress = Callable[[int, int], None]

_ROLES = ("question", "document")


@dataclass(frozen=True)
class How:
    """How a model is called; recorded beside its vectors, so that a later run needs no option.

    `dimensions`: whether vectors of the corpus's dimension are asked for, of models that can be shortened; `max_chars`: where
    longer texts are cut. A key is not part of it.
    """

    embedder: Kind
    model: str
    endpoint: str | None = None
    dimensions: bool = False
    max_chars: int | None = None
    prefixes: dict[str, str] = field(default_factory=dict)
    # whether nobody but the database names the endpoint
    from_record: bool = False

    def recorded(self) -> dict[str, Any]:
        """What goes into the database beside model and prefix."""
        values = {"embedder": str(self.embedder), "endpoint": self.endpoint, "max_chars": self.max_chars}
        return {key: value for key, value in values.items() if value is not None} | {"dimensions": self.dimensions}


@dataclass(frozen=True)
class Asked:
    """What the caller asks for; None is what was recorded, else the default.

    `every` replaces vectors that are there; `same_model` states that those of an unknown model are of this one. `roles` are the
    kinds of rows to work on.
    """

    embedder: Kind | None = None
    model: str | None = None
    endpoint: str | None = None
    dimensions: bool | None = None
    max_chars: int | None = None
    prefixes: dict[str, str | None] = field(default_factory=dict)
    roles: tuple[str, ...] = _ROLES
    # the one table to work on; None is all of them
    table: str | None = None
    question_set: str | None = None
    every: bool = False
    same_model: bool = False
    key_name: str = "OPENAI_API_KEY"
    batch: int = 64
    timeout: float = 120.0


@dataclass
class Filled:
    """What became of one kind of rows: how many there are, how many were to embed and were embedded, how many texts were cut."""

    role: str
    field: str
    rows: int
    asked: int
    embedded: int = 0
    cut: int = 0
    without_text: int = 0


@dataclass(frozen=True)
class Embedded:
    """What embedding did. `model` is None where it was only counted and none was named."""

    model: str | None
    dimension: int
    filled: list[Filled]


def places(
    corpus: Corpus | None, project: Path, database: Database, roles: Sequence[str] = _ROLES, table: str | None = None
) -> list[Place]:
    """Where vectors belong: questions, then documents, then chunks of them. Without a project it is the help centre.

    `roles` and `table` are what is to be worked on. Raises UsageError when the corpus has no vectors, keeps them in another
    table, or is not known, or when there is nothing to fill in that table.
    """
    if corpus is None and (project / "surql" / "corpus").is_dir():
        raise UsageError(
            "surrecall.toml of this folder has no [corpus], so the table is not known",
            "surrecall init --table … --field … --vector … --dimension …",
        )
    documents, texts, vector, dimension = (
        ("article", ("content",), "embedding", 4)
        if corpus is None
        else (corpus.table, corpus.texts, corpus.vector, corpus.dimension)
    )
    if vector is None:
        raise UsageError(f"{documents} has no vector field", "surrecall init --vector … --dimension … names one")
    questions = Place("question", database.table("question"), ("text",), "embedding", dimension)
    chunks = [Place("document", name, ("text",), "embedding", dimension, noun="chunk") for name in database.value(_CHUNK_TABLES)]
    fills = [questions.table, documents, *(place.table for place in chunks)]
    if table is not None and table not in fills:
        raise UsageError(
            f"surrecall embed fills no table {table}; it fills {', '.join(fills)}",
            f"surrecall chunk {documents} --into {table} makes a table of chunks",
        )
    if corpus is not None and corpus.vector_table:
        if "document" in roles and table in (None, documents):
            raise UsageError(
                f"the vectors of {documents} are in {corpus.vector_table}, which surrecall embed does not fill",
                "embed them with what made them; surrecall embed --questions-only fills the questions",
            )
        # only looked at: whose vectors they are decides what the questions' may be
        return [questions, Place("document", corpus.vector_table, texts, vector, dimension), *chunks]
    # a title among them stands before them anyway
    title = (corpus.title if corpus else None) or "title"
    texts = tuple(name for name in texts if name != title) or texts
    return [questions, Place("document", documents, texts, vector, dimension, title), *chunks]


def count(database: Database, where: Sequence[Place], asked: Asked) -> Embedded:
    """Count what there is to embed, and check that the model may; nothing is stored and no model is called."""
    plan = _plan(database, where, asked, required=asked.embedder is not None or asked.model is not None)
    return Embedded(plan.how.model if plan.how else None, where[0].dimension, [part.filled() for part in plan.parts])


def embed(database: Database, where: Sequence[Place], asked: Asked, progress: Progress = lambda _done, _all: None) -> Embedded:
    """Fill the vectors that are missing, or replace every one; what is stored stays when it is cut off.

    Raises UsageError when another model made the vectors that are there, before anything is asked of a model; DataError for a
    dimension other than the corpus's, before anything is stored, and for vectors that can't be used; EmbeddingError when the
    model fails; Interrupted on Ctrl-C.
    """
    plan = _plan(database, where, asked, required=True)
    how = plan.how
    assert how is not None
    _writer.require_writer(database, "vector")
    # loaded when the first text needs it: a model can take minutes
    embedder = cache(lambda: _embedder(how, asked, where[0].dimension))
    works = [_Work(database, part, how, asked) for part in plan.parts]
    total, done = sum(work.filled.asked for work in works), 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done, total)

    try:
        _probe(embedder, works)
        for work in works:
            work.open()
        for place in plan.claimed:
            database.run(_CLAIM_BESIDE, table=place.table, field=place.vector, made=_made(place, how), set=None)
        for work in works:
            work.run(embedder, advance)
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"interrupted; {_stored(works)} embedded and kept, {max(0, total - done)} of {total} left",
            "surrecall embed goes on",
            by_user=True,
        ) from error
    except EmbeddingError as error:
        raise EmbeddingError(f"{error.message}; {_stored(works)} of {total} embedded and kept", error.hint) from error
    refused = [line for work in works for line in work.refused]
    if refused:
        raise _unusable(how, refused)
    return Embedded(how.model, where[0].dimension, [work.filled for work in works])


def vector_of(database: Database, where: Sequence[Place], text: str, asked: Asked) -> tuple[list[float], str] | None:
    """The vector of one question by the model that is recorded, and its name; None where none is recorded that can be called.

    Raises UsageError where questions and documents are of two models, DataError for a vector that can't be used, EmbeddingError
    when the model fails.
    """
    recorded = database.value(_RECORDED)
    how = _resolve(recorded, asked, required=False)
    if how is None:
        return None
    _refuse_apart(recorded)
    whole = how.prefixes["question"] + (text[: how.max_chars] if how.max_chars else text)
    (vector,) = _embedder(how, asked, where[0].dimension).embed([whole])
    if wrong := _fault(vector, where[0].dimension):
        raise DataError(f"{how.model} gave {wrong} for the question", "surrecall embed names the model of the others")
    return vector, how.model


@dataclass(frozen=True)
class _Part:
    """One place of a plan: its rows, and whether every vector is replaced or the missing ones are filled."""

    place: Place
    every: bool
    question_set: str | None
    counted: Count

    def filled(self) -> Filled:
        """The tally to begin with."""
        return Filled(
            self.place.noun or self.place.role,
            self.place.label,
            self.counted.rows,
            self.counted.rows if self.every else self.counted.lacking,
        )


@dataclass(frozen=True)
class _Plan:
    how: How | None
    parts: list[_Part]
    # places that are not worked on, whose vectors are stated to be of the same model
    claimed: list[Place]


class _Work:
    """One place being filled."""

    def __init__(self, database: Database, part: _Part, how: How, asked: Asked) -> None:
        self.place = part.place
        self.filled = part.filled()
        self.refused: list[str] = []
        self._database = database
        self._how = how
        self._asked = asked
        self._every = part.every
        self._rows = Rows(database, part.place, part.question_set)
        self._prefix = how.prefixes[part.place.role]
        self._made = _made(part.place, how)

    def first_text(self) -> str | None:
        """A text to try the model with; None where there is nothing to embed."""
        for ids in self._batches(every=self._every):
            for row in self._rows.read(ids, every=self._every):
                if row.whole.strip():
                    return self._text(row)[0]
        return None

    def open(self) -> None:
        """Before the first vector: note that every one is being replaced, or whose those from elsewhere are."""
        if self._every:
            self._call(_BEGIN)
        elif self._asked.same_model:
            self._call(_CLAIM, set=self._asked.question_set)

    def run(self, embedder: Callable[[], Embedder], advance: Callable[[int], None]) -> None:
        """Embed batch by batch; with the last row a replacement of every vector is closed."""
        after = self._reached() if self._every else None
        if after is not None:
            advance(self.filled.asked - sum(len(ids) for ids in self._rows.pages(every=True, after=after)))
        for ids in self._batches(every=self._every, after=after):
            self._batch(embedder, ids, every=self._every)
            if self._every and not self.refused:
                # a row that was refused is to be found again by the run that goes on
                self._call(_REACHED, after=ids[-1])
            advance(len(ids))
        if self._every:
            # rows that came in meanwhile, before the place that had been reached; those without text were counted above
            without_text = self.filled.without_text
            for ids in self._batches(every=False):
                self._batch(embedder, ids, every=False)
            self.filled.without_text = without_text
            if not self.refused:
                self._call(_FINISH)

    def _reached(self) -> RecordID | None:
        after = self._database.value(_AFTER, table=self.place.table, field=self.place.vector)
        return after if isinstance(after, RecordID) else None

    def _batches(self, *, every: bool, after: RecordID | None = None) -> Iterator[list[RecordID]]:
        for page in self._rows.pages(every=every, after=after):
            for start in range(0, len(page), self._asked.batch):
                yield page[start : start + self._asked.batch]

    def _batch(self, embedder: Callable[[], Embedder], ids: list[RecordID], *, every: bool) -> None:
        for _ in range(_TRIES):
            rows = self._with_text(self._rows.read(ids, every=every), every=every)
            if not rows:
                return
            texts = [self._text(row) for row in rows]
            vectors = embedder().embed([text for text, _ in texts])
            good = [index for index, vector in enumerate(vectors) if self._is_usable(rows[index], vector)]
            stored = self._rows.store(
                [rows[index] for index in good], [vectors[index] for index in good], self._made, every=every
            )
            self.filled.embedded += len(stored)
            self.filled.cut += sum(texts[index][1] for index in good if rows[index].id in stored)
            if len(self.refused) >= _REFUSED_AT_MOST:
                raise _unusable(self._how, self.refused)
            # what changed meanwhile; what is gone or has a vector by now drops out when it is read again
            ids = [rows[index].id for index in good if rows[index].id not in stored]
            if not ids:
                return
        left = self._rows.read(ids, every=every)
        if left:
            raise DatabaseError(
                f"{record_text(left[0].id)} takes no vector: this user may not write it, or its text changes all the time",
                "take a user who may (--user), or run it again",
            )

    def _with_text(self, rows: list[Row], *, every: bool) -> list[Row]:
        """The rows that have something to embed."""
        found = []
        for row in rows:
            if row.whole.strip():
                found.append(row)
            elif row.has_vector and every:
                self.refused.append(f"{record_text(row.id)} has a vector and no text to make a new one from")
            else:
                self.filled.without_text += 1
        return found

    def _text(self, row: Row) -> tuple[str, bool]:
        """What goes to the model, and whether the row's text was cut for it."""
        whole, most = row.whole, self._how.max_chars
        cut = most is not None and len(whole) > most
        return self._prefix + (whole[:most] if cut else whole), cut

    def _is_usable(self, row: Row, vector: Sequence[float]) -> bool:
        wrong = _fault(vector, self.place.dimension)
        if wrong:
            self.refused.append(f"{record_text(row.id)} got {wrong}")
        return wrong is None

    def _call(self, statement: str, **more: Any) -> None:
        variables = {"table": self.place.table, "field": self.place.vector, "made": self._made, **more}
        retried(lambda: self._database.run(statement, **variables))


def _stored(works: Sequence[_Work]) -> int:
    return sum(work.filled.embedded for work in works)


def _probe(embedder: Callable[[], Embedder], works: Sequence[_Work]) -> None:
    """Embed one text first: a model of another dimension is refused before anything is stored."""
    for work in works:
        text = work.first_text()
        if text is None:
            continue
        (vector,) = embedder().embed([text])
        if len(vector) != work.place.dimension:
            raise DataError(
                f"{embedder().model} gives vectors of {len(vector)} numbers, {work.place.label} takes {work.place.dimension}; "
                "nothing was stored",
                f"surrecall init --dimension {len(vector)}, another --model, or --dimensions where it can be shortened",
            )
        return


def _unusable(how: How, refused: Sequence[str]) -> DataError:
    shown = "\n  ".join(refused[:_REFUSED_AT_MOST])
    return DataError(
        f"{how.model} left {len(refused)} without a usable vector; nothing was stored for them\n  {shown}",
        "look at their texts, then surrecall embed goes on with what is left",
    )


def _fault(vector: Sequence[float], dimension: int) -> str | None:
    """What keeps a vector from being searched with."""
    if len(vector) != dimension:
        return f"{len(vector)} numbers where {dimension} belong"
    return _vectors.fault(vector)


def _made(place: Place, how: How) -> dict[str, Any]:
    return {
        "role": place.role,
        "model": how.model,
        "dimension": place.dimension,
        "prefix": how.prefixes[place.role],
        "how": how.recorded(),
    }


def _plan(database: Database, where: Sequence[Place], asked: Asked, *, required: bool) -> _Plan:
    """What is to be done, and that it may be. A replacement that was cut off is finished before anything else."""
    recorded = database.value(_RECORDED)
    how = _resolve(recorded, asked, required=required)
    open_fields = [(row["table"], row["field"]) for row in recorded if row.get("next")]
    chosen = [place for place in where if place.role in asked.roles and asked.table in (None, place.table)]
    opened = [place for place in chosen if (place.table, place.vector) in open_fields]
    if opened and not asked.every:
        chosen = opened
    parts = []
    for place in chosen:
        every = asked.every or place in opened
        question_set = asked.question_set if place.role == "question" and not every else None
        part = _Part(place, every, question_set, Rows(database, place, question_set).count())
        if question_set is not None and not part.counted.rows:
            sets = ", ".join(database.value(_SETS)) or "none"
            raise UsageError(f"no question is in the golden set {question_set}", f"there are: {sets}")
        parts.append(part)
    if how is not None and not asked.every:
        _refuse_apart(recorded)
        # those that are not worked on count too: questions and documents must meet
        for place in opened or where:
            database.run(_REQUIRE, table=place.table, field=place.vector, made=_made(place, how))
        _refuse_unknown(recorded, parts, asked, how)
    beside = [place for place in where if place.role == "document" and place not in chosen] if how is not None else []
    known = {(row["table"], row["field"]) for row in recorded}
    claimed = [place for place in beside if (place.table, place.vector) not in known and Rows(database, place).count().unknown]
    if how is not None and claimed and not asked.same_model:
        raise UsageError(
            f"{claimed[0].label} holds vectors whose model is not recorded, and the questions' are compared with them",
            f"--same-model states that they are of {how.model}; else name the embedder and model that made them",
        )
    return _Plan(how, parts, claimed)


def _refuse_apart(recorded: Sequence[dict[str, Any]]) -> None:
    """Questions and documents of two models are no start: whichever model is named, one of them has vectors of another."""
    if any(row.get("next") for row in recorded):
        return
    questions, documents = (
        next((row for row in recorded if row["role"] == role and row.get("model")), None) for role in ("question", "document")
    )
    if questions is None or documents is None or questions["model"] == documents["model"]:
        return
    # the way that needs no further option, where one of the two is known by how it is called
    callable_ = {row["role"] for row in (questions, documents) if (row.get("how") or {}).get("embedder")}
    if "document" in callable_:
        step = f"surrecall embed --all --questions-only replaces those of the questions with vectors of {documents['model']}"
    elif "question" in callable_:
        step = f"surrecall embed --all --documents-only replaces those of the documents with vectors of {questions['model']}"
    else:
        step = (
            f"surrecall embed --all --questions-only {_naming(documents['model'])} replaces those of the questions with vectors "
            "of the documents' model"
        )
    raise UsageError(
        f"{questions['table']}.{questions['field']} holds vectors of {questions['model']}, "
        f"{documents['table']}.{documents['field']} of {documents['model']}, which can't be compared",
        step,
    )


def _naming(model: str) -> str:
    """The options that name a model, of which nobody said how it is called."""
    return "--embedder hashing" if model == Hashing.model else f"--embedder … --model {model}"


def _refuse_unknown(recorded: Sequence[dict[str, Any]], parts: Sequence[_Part], asked: Asked, how: How) -> None:
    """Vectors whose model nobody stated are not added to."""
    known = {(row["table"], row["field"]) for row in recorded}
    for part in parts:
        place, unknown = part.place, part.counted.unknown
        # what is recorded of documents holds for all of them, of a question for itself alone
        if (
            unknown
            and not part.every
            and not asked.same_model
            and (place.role == "question" or (place.table, place.vector) not in known)
        ):
            raise UsageError(
                f"{place.label} holds {counted(unknown, 'vector')} whose model is not recorded",
                f"--same-model states that they are of {how.model}; --all replaces "
                + ("them" if place.role == "question" else "those of your documents for good"),
            )


def _resolve(rows: Sequence[dict[str, Any]], asked: Asked, *, required: bool) -> How | None:
    """What was asked for, the rest as it was recorded. Raises UsageError when no embedder or model is named by either."""
    # a model that is on its way is the one to go on with
    known = [row["next"] | {"role": row["role"]} for row in rows if row.get("next")] or [row for row in rows if row.get("model")]
    if asked.every:
        # who replaces only the questions' vectors, or only the documents', wants the model of the others
        known.sort(key=lambda row: row["role"] in asked.roles)
    base = known[0] if known else {}
    how = base.get("how") or {}
    if asked.embedder is None and not how.get("embedder"):
        if not required:
            return None
        if base:
            raise UsageError(
                f"{base['model']} is recorded, and not how it is called",
                f"surrecall embed {_naming(base['model'])} goes on with it; another one, with --all, replaces every vector",
            )
        raise UsageError(
            "no embedder is named, and none is recorded",
            "--embedder openai --model …, --embedder sentence-transformers --model …, or --embedder hashing",
        )
    kind = asked.embedder or Kind(how["embedder"])
    # what was recorded of another embedder says nothing of this one
    same = asked.embedder is None or asked.embedder == how.get("embedder")
    model = asked.model or (base.get("model") if same or not how else None)
    if kind is Kind.HASHING:
        if asked.model not in (None, Hashing.model):
            raise UsageError(f"the embedder hashing has no model {asked.model}", "leave --model out, or name another --embedder")
        model = Hashing.model
    if model is None:
        raise UsageError(f"--embedder {kind} needs --model", _EXAMPLES[kind])
    if not same or model != base.get("model"):
        how = {key: value for key, value in how.items() if key == "endpoint"} if same else {}
    endpoint, named = None, asked.endpoint or os.environ.get("OPENAI_BASE_URL")
    if kind is Kind.OPENAI:
        endpoint = openai.checked_endpoint(named or how.get("endpoint") or openai.DEFAULT_ENDPOINT)
    prefixes = {row["role"]: row["prefix"] for row in known if row["model"] == model}
    return How(
        embedder=kind,
        model=model,
        endpoint=endpoint,
        dimensions=bool(how.get("dimensions")) if asked.dimensions is None else asked.dimensions,
        max_chars=asked.max_chars or how.get("max_chars"),
        prefixes={
            role: given if (given := asked.prefixes.get(role)) is not None else prefixes.get(role, "")
            for role in ("question", "document")
        },
        from_record=not named and endpoint != openai.DEFAULT_ENDPOINT,
    )


_EXAMPLES = {
    Kind.OPENAI: "for example: --embedder openai --model text-embedding-3-small",
    Kind.SENTENCE_TRANSFORMERS: "for example: --embedder sentence-transformers --model sentence-transformers/all-MiniLM-L6-v2",
}


def _embedder(how: How, asked: Asked, dimension: int) -> Embedder:
    asked_dimension = dimension if how.dimensions else None
    if how.embedder is Kind.HASHING:
        return Hashing(dimension)
    if how.embedder is Kind.SENTENCE_TRANSFORMERS:
        return SentenceTransformers(how.model, asked.batch, asked_dimension)
    key = os.environ.get(asked.key_name)
    if key and how.from_record:
        # whoever may write the database must not decide where a key goes
        raise UsageError(
            f"the endpoint {how.endpoint} is named by the database alone, and {asked.key_name} holds a key",
            f"--endpoint {how.endpoint} sends the key there; without a key, unset {asked.key_name}",
        )
    return openai.OpenAI(how.endpoint or "", how.model, key, asked.key_name, asked_dimension, asked.timeout)
