"""Looking into a database that is somebody's already: the tables that can be searched, and the functions that search them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from surrealdb import RecordID

from surrecall import _files, _inventory, _names, _quoting, _retriever_check, _schema
from surrecall._corpus import Corpus, TextIndex
from surrecall._database import Database
from surrecall._errors import SchemaError, SurrecallError, UsageError
from surrecall._retrievers import Retriever

_FULLTEXT = re.compile(r"FULLTEXT ANALYZER (?P<analyzer>`(?:[^`\\]|\\.)*`|\S+) BM25")
_HNSW = re.compile(r"HNSW DIMENSION (?P<dimension>\d+) DIST (?P<distance>[A-Z]+(?: [\d.]+)?)")
_LINK = re.compile(r"^(?:none \| )?(?:option<)?record<(?P<table>`(?:[^`\\]|\\.)*`|[^<>| ]+)>")
_STRING = re.compile(r"^(?:none \| )?(?:option<)?string\b")
# what the parameters of a search function tend to be called
_TEXT = ("q", "query", "question", "text", "term", "terms", "search", "input", "prompt", "keywords")
_FIRST = "SELECT * FROM type::table($table) LIMIT 1"
_TITLES = ("title", "heading", "headline", "subject", "name", "caption")
_LENGTH = "RETURN math::sum((SELECT VALUE string::len(<string> ({field} ?? '')) FROM {table} LIMIT 50))"
_VECTOR = ("qvec", "vec", "vector", "embedding", "emb", "qv", "query_vector", "query_embedding", "query_vec")
_COUNT = ("k", "limit", "lim", "n", "top", "topk", "top_k", "count", "size")
# what a function may do to be tried unasked: read, and compute; anything else could write, wait or call out
_STRINGS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|/\*.*?\*/", re.DOTALL)
_ACTS = re.compile(
    r"\b(?:CREATE|INSERT|UPDATE|UPSERT|DELETE|RELATE|REMOVE|DEFINE|ALTER|REBUILD|KILL|LIVE|SLEEP)\b|\bfunction\s*\(",
    re.IGNORECASE,
)
_READS = re.compile("array|count|duration|encoding|geo|math|meta|object|parse|rand|record|search|set|string|time|type|vector")
_SPACE = re.compile(r"([a-z_]+)`?::", re.IGNORECASE)

Ask = Callable[[str, Sequence[str]], str]


@dataclass(frozen=True)
class Vectors:
    """A vector index, and how its rows and the documents lead to each other where it is of another table."""

    table: str
    field: str
    index: str
    dimension: int
    distance: str
    link: str | None = None
    linked_by: str | None = None

    @property
    def label(self) -> str:
        """How messages and options name it."""
        return f"{self.table}.{self.field}"


@dataclass(frozen=True)
class Candidate:
    """A table that can be evaluated: its rows, its full-text indexes, its vector indexes, and its text fields."""

    table: str
    rows: int
    words: tuple[TextIndex, ...]
    vectors: tuple[Vectors, ...]
    strings: tuple[str, ...]


@dataclass(frozen=True)
class Own:
    """A function of the user's that searches, as a retriever; or why it is none (`refused`)."""

    name: str
    retriever: Retriever | None
    refused: str | None = None


@dataclass(frozen=True)
class Adopted:
    """What was found and chosen: the corpus, and the functions that looked like searches."""

    corpus: Corpus
    rows: int
    own: tuple[Own, ...]

    @property
    def extra(self) -> list[Retriever]:
        """The retrievers that the user's functions make."""
        return [found.retriever for found in self.own if found.retriever]


@dataclass(frozen=True)
class Wishes:
    """What was asked for; None leaves it to what is found."""

    table: str | None = None
    fields: Sequence[str] = ()
    vector: str | None = None
    pool: int = 100
    reference: str = "none"
    names: tuple[tuple[str, str], ...] = ()


def adopt(database: Database, wishes: Wishes, ask: Ask) -> Adopted:
    """Choose the corpus of a database; writes nothing. `ask` picks one of several names, or raises UsageError.

    Raises UsageError when no table has an index, SchemaError when a name of surrecall's is taken (both definitions shown).
    """
    found = candidates(database)
    if not found:
        raise UsageError(
            f"no table of {database.settings.label} has a full-text index with BM25 or an HNSW index",
            "DEFINE INDEX … FULLTEXT ANALYZER … BM25, or … HNSW DIMENSION …, then again; init --table makes a new table",
        )
    chosen = _table(found, wishes, ask)
    corpus = _corpus(database, chosen, wishes, ask)
    _schema.require_corpus(database, corpus.table, corpus.names)
    refuse_taken_names(database, corpus)
    return Adopted(corpus, chosen.rows, tuple(_own_searches(database, corpus)))


def candidates(database: Database) -> list[Candidate]:
    """The tables that have a full-text or a vector index, by name; one that holds the vectors of another is a part of that."""
    tables = {
        definition.name: _structure(database, definition.name)
        for definition in _inventory.functions_and_tables(database).values()
        if definition.kind == "table" and not definition.is_ours
    }
    tables = {name: info for name, info in tables.items() if info is not None}
    words = {name: _words(info) for name, info in tables.items()}
    vectors = {name: _vectors(name, info) for name, info in tables.items()}
    links = {name: _links(database, name, info) for name, info in tables.items() if words[name] or vectors[name]}
    parts: set[str] = set()
    found: list[Candidate] = []
    for name in links:
        own = list(vectors[name])
        for other in links:
            if words[name] and other != name and vectors[other] and not words[other]:
                joined = _joined(name, other, links, vectors[other])
                own += joined
                parts |= {other} if joined else set()
        rows = _inventory.rows(database, name)
        strings = tuple(_quoting.path(part["name"]) for part in tables[name]["fields"] if _STRING.match(part["kind"] or ""))
        strings = strings or _sampled(database, name, str)
        found.append(Candidate(name, rows, tuple(words[name]), tuple(own), strings))
    return sorted((one for one in found if one.table not in parts), key=lambda one: one.table)


def _structure(database: Database, table: str) -> Any:
    """What the engine tells of a table; None where it can't, for a field whose name it can't print."""
    try:
        return database.run_as_written(f"INFO FOR TABLE {_quoting.identifier(table)} STRUCTURE")[-1]
    except SurrecallError:
        return None


def refuse_taken_names(database: Database, corpus: Corpus) -> None:
    """Raise SchemaError, with both definitions, when the database has something of its own under a name of ours."""
    files = [*_files.core(corpus.names), *(_files.SourceFile(f"corpus/{file.name}", file.text) for file in corpus.render())]
    files = [file for file in files if file.name.endswith(".surql")]
    with _schema.scratch(files) as reference:
        wanted = _inventory.functions_and_tables(reference)
    there = _inventory.functions_and_tables(database)
    taken = [definition for label, definition in wanted.items() if label in there and not there[label].is_ours]
    if taken:
        definitions = "\n".join(f"  there: {there[ours.label].text}\n  ours:  {ours.text}" for ours in taken)
        options = " ".join(f"--rename {_renaming(ours)}" for ours in taken)
        raise SchemaError(
            f"{', '.join(ours.label for ours in taken)}: taken by what is not surrecall's; nothing was written\n{definitions}",
            f"give ours another name: surrecall init --adopt --table {shlex.quote(corpus.table)} {options}",
        )


def _renaming(ours: _inventory.Definition) -> str:
    if ours.kind == "function":
        return f"fn::{ours.name}=fn::surrecall_{ours.name}"
    return f"{ours.name}=surrecall_{ours.name}"


def _words(info: dict[str, Any]) -> list[TextIndex]:
    """One full-text index a field: the first by name."""
    found: dict[str, TextIndex] = {}
    for index in sorted(info["indexes"], key=lambda one: str(one["name"])):
        if match := _FULLTEXT.search(index["index"]):
            found.setdefault(index["cols"][0], TextIndex(index["cols"][0], index["name"], _unquoted(match["analyzer"])))
    return list(found.values())


def _vectors(table: str, info: dict[str, Any]) -> list[Vectors]:
    found: dict[str, Vectors] = {}
    for index in sorted(info["indexes"], key=lambda one: str(one["name"])):
        if match := _HNSW.search(index["index"]):
            field = index["cols"][0]
            found.setdefault(field, Vectors(table, field, index["name"], int(match["dimension"]), match["distance"]))
    return list(found.values())


def _links(database: Database, table: str, info: dict[str, Any]) -> dict[str, str]:
    """Fields that hold a record, and of which table: as defined, else as the first row has them."""
    defined = {
        _quoting.path(part["name"]): _unquoted(match["table"])
        for part in info["fields"]
        if (match := _LINK.match(part["kind"] or ""))
    }
    first: list[dict[str, Any]] = database.run_as_written(_FIRST, table=table)[-1]
    seen = {
        _quoting.identifier(key): value.table_name
        for row in first
        for key, value in row.items()
        if key != "id" and isinstance(value, RecordID)
    }
    return seen | defined


def _joined(table: str, other: str, links: dict[str, dict[str, str]], vectors: list[Vectors]) -> list[Vectors]:
    """The vectors of another table as vectors of this one, where a record leads from one to the other."""
    link = next((field for field, target in links[other].items() if target == table), None)
    linked_by = next((field for field, target in links[table].items() if target == other), None)
    if link is None and linked_by is None:
        return []
    return [replace(one, link=link, linked_by=None if link else linked_by) for one in vectors]


def _sampled(database: Database, table: str, kind: type) -> tuple[str, ...]:
    rows: list[dict[str, Any]] = database.run_as_written(_FIRST, table=table)[-1]
    return tuple(_quoting.identifier(key) for row in rows for key, value in row.items() if isinstance(value, kind))


def _table(found: list[Candidate], wishes: Wishes, ask: Ask) -> Candidate:
    by_name = {one.table: one for one in found}
    if wishes.table is None:
        return found[0] if len(found) == 1 else by_name[ask("table", list(by_name))]
    if wishes.table not in by_name:
        holder = next((one.table for one in found if any(part.table == wishes.table for part in one.vectors)), None)
        if holder is not None:
            raise UsageError(f"{wishes.table} holds vectors of {holder}, whose documents are found by them", f"--table {holder}")
        raise UsageError(
            f"--table {wishes.table} has no full-text index with BM25 and no HNSW index",
            f"tables that have one: {', '.join(by_name)}",
        )
    return by_name[wishes.table]


def _corpus(database: Database, chosen: Candidate, wishes: Wishes, ask: Ask) -> Corpus:
    words = _longest_first(database, chosen.table, _wanted_words(chosen, wishes))
    vector = _wanted_vector(chosen, wishes, ask)
    fields = [one.field for one in words] or [_quoting.path(name) for name in wishes.fields] or list(chosen.strings[:1])
    if not fields:
        raise UsageError(f"{chosen.table} has no full-text index and no field of text was found", "name it with --field")
    aside = vector is not None and vector.table != chosen.table
    return Corpus(
        table=chosen.table,
        text=fields,
        vector=vector.field if vector else None,
        dimension=vector.dimension if vector else 0,
        distance=vector.distance if vector else "COSINE",
        analyzer=words[0].analyzer if words else None,
        pool=wishes.pool,
        adopted=True,
        text_indexes=[one.name for one in words],
        vector_index=vector.index if vector else None,
        vector_table=vector.table if vector and aside else None,
        link=vector.link if vector else None,
        linked_by=vector.linked_by if vector else None,
        title=_title(chosen, words),
        reference=wishes.reference,
        names=dict(wishes.names),
    )


def _longest_first(database: Database, table: str, words: list[TextIndex]) -> list[TextIndex]:
    """The fields by the length of what they hold: the first is the body of a document, the last its heading."""
    if len(words) < 2:
        return words
    lengths = [database.run_as_written(_LENGTH.format(field=one.field, table=_quoting.identifier(table)))[-1] for one in words]
    return [words[index] for index in sorted(range(len(words)), key=lambda index: -lengths[index])]


def _title(chosen: Candidate, words: list[TextIndex]) -> str | None:
    """The field that is shown as a document's heading: one of that name, else the shortest of several that are searched."""
    named = next((name for name in chosen.strings if name.lower() in _TITLES), None)
    return named or (words[-1].field if len(words) > 1 else None)


def _wanted_words(chosen: Candidate, wishes: Wishes) -> list[TextIndex]:
    """All full-text indexes, or those over the fields that were named."""
    if not wishes.fields or not chosen.words:
        return list(chosen.words)
    by_field = {one.field: one for one in chosen.words}
    for name in wishes.fields:
        if _path(name) not in by_field:
            raise UsageError(
                f"--field {name} of {chosen.table} has no full-text index with BM25",
                f"fields that have one: {', '.join(by_field)}",
            )
    return [by_field[_path(name)] for name in wishes.fields]


def _wanted_vector(chosen: Candidate, wishes: Wishes, ask: Ask) -> Vectors | None:
    by_name = {(one.field if one.table == chosen.table else one.label): one for one in chosen.vectors}
    if wishes.vector is not None:
        name = next((name for name in by_name if wishes.vector in (name, by_name[name].label)), None) or _path(wishes.vector)
        if name not in by_name:
            raise UsageError(
                f"--vector {wishes.vector} of {chosen.table} has no HNSW index",
                f"fields that have one: {', '.join(by_name) or 'none'}",
            )
        return by_name[name]
    if len(by_name) > 1:
        return by_name[ask("vector", list(by_name))]
    return next(iter(by_name.values()), None)


def _own_searches(database: Database, corpus: Corpus) -> list[Own]:
    """The user's functions whose parameters are those of a search over this table, each tried once."""
    found: list[Own] = []
    functions = database.value("INFO FOR DB STRUCTURE")["functions"]
    for function in sorted(functions, key=lambda one: str(one["name"])):
        name = f"fn::{function['name']}"
        if str(function.get("comment") or "").startswith("surrecall: "):
            continue
        call = _call(name, function["args"], corpus)
        if call is None:
            continue
        if _may_act(function["block"]):
            reason = "it may do more than read, so it was not tried"
            found.append(Own(name, None, reason))
            continue
        retriever = Retriever(
            _retriever_name(function["name"], {own.retriever.name for own in found if own.retriever}), call, corpus.table
        )
        found.append(_tried(database, corpus, name, retriever))
    return found


def _may_act(block: str) -> bool:
    """Whether a function may do more than read and compute."""
    code = _STRINGS.sub("''", block)
    return _ACTS.search(code) is not None or not all(map(_READS.fullmatch, _SPACE.findall(code)))


def _tried(database: Database, corpus: Corpus, name: str, retriever: Retriever) -> Own:
    question = _retriever_check.sample(database, corpus)
    if question is None:
        return Own(name, None, "the table is empty, so it could not be tried")
    try:
        # the verdict is surrecall's, which is not in this database yet: the lists are judged in one of its own
        with _schema.scratch(_files.core({})) as judge:
            verdict = _retriever_check.judge(database, retriever, question, 10, corpus, judge)
    except SurrecallError as error:
        return Own(name, None, error.message)
    if verdict.faults:
        return Own(name, None, verdict.faults[0])
    return Own(name, replace(retriever, prefix=verdict.prefix))


def _call(name: str, parameters: list[list[str]], corpus: Corpus) -> str | None:
    """The call of a function over $question and $k; None when its parameters are no search's."""
    given: list[str] = []
    for parameter, kind in parameters:
        plain = parameter.lower()
        if plain in _TEXT and ("string" in kind or kind == "any"):
            given.append("$question.text")
        elif plain in _VECTOR and ("array" in kind or kind == "any") and corpus.vector is not None:
            given.append("$question.embedding")
        elif plain in _COUNT and (kind == "any" or re.search(r"int|number", kind)):
            given.append("$k")
        elif kind.startswith(("none |", "option<")):
            break
        else:
            return None
    if not {"$question.text", "$question.embedding"} & set(given):
        return None
    call = f"{name}({', '.join(given)})"
    return call if "$k" in given else f"array::slice({call}, 0, $k)"


def _retriever_name(function: str, taken: set[str]) -> str:
    """A name for the retriever of a function: its own, made to one that a retriever can have and none has."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", function).lstrip("_0123456789")[:60] or "search"
    taken = taken | {"bm25", "vector", "hybrid", "k"}
    if plain in taken:
        plain = f"own_{plain}"[:60]
    return next(name for name in (plain, *(f"{plain}_{number}" for number in range(2, 10_000))) if name not in taken)


def _path(name: str) -> str:
    try:
        return _quoting.path(name)
    except ValueError:
        return name


def _unquoted(name: str) -> str:
    return _quoting.parts(name)[0]


def renames(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """`question=golden_question` as pairs. Raises UsageError on anything else."""
    pairs = [part.partition("=") for part in given]
    for old, equals, new in pairs:
        if not (old and equals and new):
            raise UsageError(f"--rename {old + equals + new!r} is no pair", "for example: --rename question=golden_question")
    return tuple(_names.check({old: new for old, _, new in pairs}, _files.our_functions()).items())
