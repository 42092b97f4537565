"""The compiler of the registry: corpus/retrievers.toml in, corpus/retrieve.surql out."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, replace
from typing import Any

from surrecall import _expressions, _names, _quoting, _toml_tables
from surrecall._errors import UsageError

# the names of eval_run and of the keys of fn::evaluate; `k` is a key of its own there
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]{0,63}")
_RESERVED = ("k",)
_SOURCE = "retrievers.toml"
# the name of what a retriever returns, where no stage of it is the same
_RETURNED = "returned"
_FIELD = re.compile(r"\$question\.(text|embedding)\b")
# a match or a search for neighbours in the expression itself
_SEARCHES = re.compile(r"@\d*(?:,\s*(?:OR|AND))?@|<\|")
ONE = "one expression, without a semicolon outside braces: { LET $a = …; RETURN … } holds several statements"
_NAMING = "letters, digits, _ + . - after a first letter, at most 64, and not k"
_STAGE = re.compile(r"[a-z][a-z0-9_]{0,31}")
_ENTRIES = {
    "call": str,
    "returns": str,
    "prefix": bool,
    "on_ingest": bool,
    "where": str,
    "document": str,
    "stages": dict,
    "reranks": str,
    "rerank": str,
    "pool": int,
    "warning": str,
}
# what only a reranked retriever has, and what only another has
_RERANKED, _CALLED = ("reranks", "rerank", "pool"), ("call", "where", "document", "stages")
POOL = 50
_POOL_STAGE, _RERANKED_STAGE = "pool", "reranked"


@dataclass(frozen=True)
class Stage:
    """One list that goes into a retriever's, or that it becomes: `name`, for example lexical, vector, fused or reranked; `call` as in Retriever."""

    name: str
    call: str


@dataclass(frozen=True)
class Retriever:
    """One retriever to evaluate.

    `call` is SurrealQL over `$question` and `$k` that gives record ids best first, or rows {id, score}; `returns` the table
    of the ids; `prefix` whether the list at k begins the list at 2k. `where` is a condition over `$row`, what came back, that a row must
    meet; `document` how `$row` leads to the labelled document. `stages` are the lists it is made of, first to last. `warning` is
    what it is known to do wrong. `on_ingest` says whether it is evaluated when the corpus changes; where none is marked, all are.

    One that `reranks` another asks that for `pool` candidates, and puts them in the order of `rerank`, SurrealQL over `$question`, `$ids`
    (best first) and `$k`; `call` says the same in one expression, and its stages are those of the other, then `reranked`.
    """

    name: str
    call: str
    returns: str
    prefix: bool = True
    where: str | None = None
    document: str | None = None
    stages: tuple[Stage, ...] = ()
    warning: str | None = None
    reranks: str | None = None
    rerank: str | None = None
    pool: int | None = None
    on_ingest: bool = False


def parse(text: str, source: str = _SOURCE) -> list[Retriever]:
    """Read the registry, in file order. Raises UsageError naming the retriever and the entry."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} can't be read: {error}", "mend the line it names") from error
    if not tables:
        raise UsageError(f"{source} names no retriever", 'for example: [bm25] with call = "…" and returns = "article"')
    found = [_retriever(name, entries, source) for name, entries in tables.items()]
    return [_completed(retriever, {one.name: one for one in found}, source) for retriever in found]


def reranked(name: str, reranks: str, rerank: str, pool: int = POOL, returns: str = "") -> Retriever:
    """A retriever that puts the candidates of another in another order."""
    call = f"{{ LET $ids = array::distinct(fn::ranking({_quoting.text(reranks)}, $question, {pool}).ids); RETURN {rerank} }}"
    return Retriever(name, call, returns, reranks=reranks, rerank=rerank, pool=pool)


def _completed(retriever: Retriever, known: dict[str, Retriever], source: str) -> Retriever:
    """A reranked retriever with the table of the one it reranks. Raises UsageError where that can't be."""
    seen = [retriever.name]
    base = retriever
    while base.reranks is not None:
        if base.reranks not in known:
            raise UsageError(
                f"{source}: [{base.name}] reranks {base.reranks!r}, which is none; there are: {', '.join(known)}",
                "name one of these",
            )
        base = known[base.reranks]
        if base.name in seen:
            raise UsageError(
                f"{source}: {' reranks '.join([*seen, base.name])}, in a circle", "let one of them retrieve by itself"
            )
        seen.append(base.name)
    if retriever.reranks is None:
        return retriever
    if base.document is not None and not retriever.returns:
        raise UsageError(
            f"{source}: [{retriever.name}] has no returns, and {base.name} leads to documents of another table",
            "returns names the table of the labels",
        )
    first = _completed(known[retriever.reranks], known, source)
    return replace(retriever, returns=retriever.returns or base.returns, stages=_stages_over(first, retriever.call))


def _stages_over(first: Retriever, call: str) -> tuple[Stage, ...]:
    """The lists that a reranked retriever is made of: those of the one that it reranks, and what it makes of them."""
    name = _quoting.text(first.name)
    before = [
        Stage(stage.name, f"fn::retrieve_stage({name}, {_quoting.text(stage.name)}, $question, $k)")
        for stage in first.stages
        if stage.name not in (_POOL_STAGE, _RERANKED_STAGE)
    ]
    if not before or first.reranks is not None:
        before.append(Stage(_POOL_STAGE, f"fn::retrieve({name}, $question, $k)"))
    return (*before, Stage(_RERANKED_STAGE, call))


def require_name(name: str) -> None:
    """Raise UsageError unless a retriever can have this name."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise UsageError(f"{name!r} can't be the name of a retriever", _NAMING)


def entry(retriever: Retriever) -> str:
    """A retriever as it stands in retrievers.toml."""
    left_out = _CALLED if retriever.reranks is not None else _RERANKED
    values = {
        key: value
        for key, value in vars(retriever).items()
        if key in _ENTRIES and key not in left_out and value not in (None, ())
    }
    if retriever.prefix:
        del values["prefix"]
    if not retriever.returns:
        del values["returns"]
    if not retriever.on_ingest:
        del values["on_ingest"]
    lines = [f"{key} = {_toml(value)}" for key, value in values.items()]
    return "\n".join([f"[{json.dumps(retriever.name)}]" if "." in retriever.name else f"[{retriever.name}]", *lines])


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return "{ " + ", ".join(f"{stage.name} = {_toml(stage.call)}" for stage in value) + " }"
    return json.dumps(value, ensure_ascii=False)


def added(text: str, retriever: Retriever) -> str:
    """The registry with one retriever more, at its end, or in the place of the one of that name; the rest stays as it is.

    Raises UsageError when the file is written in a way that can't be edited.
    """
    return _toml_tables.put(text, retriever.name, entry(retriever), _SOURCE)


def removed(text: str, name: str) -> str:
    """The registry without one retriever; the rest stays as it is. Raises UsageError when the file can't be edited."""
    return _toml_tables.taken_out(text, name, _SOURCE)


def writes(retriever: Retriever) -> str | None:
    """The word by which one of its expressions writes; None when none does."""
    # stages of a reranked retriever are made from others
    stages = [] if retriever.reranks is not None else [stage.call for stage in retriever.stages]
    call = retriever.rerank or retriever.call
    return _expressions.writes(call, retriever.where or "", retriever.document or "", *stages)


def plain(expression: str) -> str:
    """An expression with plain parameters in the place of the question's text and vector.

    On one executor a match against a field of a parameter is refused, and a nearest-neighbour search for one reads every row.
    """
    return _FIELD.sub(r"$question_\1", expression) if _SEARCHES.search(expression) else expression


def body(retriever: Retriever, names: _names.Names | None = None) -> str:
    """The statements that give a retriever's rows, where `$question` and `$k` are set.

    `names` are the other names of functions of ours; a retriever's own expressions are taken as they are.
    """
    if retriever.reranks is not None:
        return _reranking(retriever, names or {})
    rows_of, sightings = ((names or {}).get(name, name) for name in ("fn::retrieved_rows", "fn::first_sightings"))
    call, name = plain(retriever.call), _quoting.text(retriever.name)
    expressions = [retriever.call, retriever.where or "", retriever.document or ""]
    fields = dict.fromkeys(field for text in expressions if plain(text) != text for field in _FIELD.findall(text))
    given = "".join(f"LET $question_{field} = $question.{field}; " for field in fields)
    if retriever.where is None and retriever.document is None:
        return f"{given}RETURN {call}"
    rows = f"{given}LET $rows = {rows_of}({name}, {call}); RETURN "
    kept = f"$rows.filter(|$row| {plain(retriever.where)})" if retriever.where else "$rows"
    if retriever.document is None:
        return rows + kept
    document = plain(retriever.document)
    led = f"{kept}.map(|$row| {{ id: {document}, row: $row, score: IF type::is_object($row) {{ $row.score }} }})"
    return f"{rows}{sightings}({name}, {led})"


def _reranking(retriever: Retriever, names: _names.Names) -> str:
    """The statements of a reranked retriever: its candidates beside what it made of them."""
    expression = plain(retriever.rerank or "")
    fields = dict.fromkeys(_FIELD.findall(retriever.rerank or "")) if expression != retriever.rerank else {}
    given = "".join(f"LET $question_{field} = $question.{field}; " for field in fields)
    ranking = names.get("fn::ranking", "fn::ranking")
    candidates = f"array::distinct({ranking}({_quoting.text(retriever.reranks or '')}, $question, {retriever.pool}).ids)"
    return f"{given}LET $ids = {candidates}; LET $rows = {expression}; RETURN {{ pool: $ids, rows: $rows }}"


def _stage_body(retriever: Retriever, stage: Stage, names: _names.Names) -> str:
    """The statements that give the rows of a stage."""
    if retriever.reranks is None:
        return body(replace(retriever, call=stage.call), names)
    if stage.name == _RERANKED_STAGE:
        return (
            f"RETURN {names.get('fn::retrieve_rows', 'fn::retrieve_rows')}({_quoting.text(retriever.name)}, $question, $k).rows"
        )
    # what is written of another retriever's stages is ours
    return f"RETURN {_names.rename(stage.call, names)}"


def compile_dispatcher(retrievers: list[Retriever], names: _names.Names | None = None) -> str:
    """The text of retrieve.surql: the rows of the registry and fn::retrieve over one plain IF chain.

    `names` are the other names of tables and functions; a retriever's own expressions are taken as they are.
    """
    calls = [f"  IF $retriever = {_quoting.text(retriever.name)} {{ {body(retriever, names)} }};" for retriever in retrievers]
    stages = [
        f"  IF $retriever = {_quoting.text(retriever.name)} AND $stage = {_quoting.text(stage.name)} "
        f"{{ {_stage_body(retriever, stage, names or {})} }};"
        for retriever in retrievers
        for stage in retriever.stages
    ]
    conditions = [
        f"  IF $retriever = {_quoting.text(retriever.name)} {{ RETURN {plain(retriever.where)} }};"
        for retriever in retrievers
        if retriever.where
    ]
    # what the user wrote is no place for other names: it is put in after the rest was given them
    frame = _names.rename(_frame(retrievers), names or {})
    return (
        frame.replace(_ROWS, _rows(retrievers, (names or {}).get("retriever", "retriever")))
        .replace(_CHAIN, "\n".join(calls))
        .replace(f"{_STAGES}\n", "".join(f"{line}\n" for line in stages))
        .replace(f"{_CONDITIONS}\n", "".join(f"{line}\n" for line in conditions))
    )


_ROWS = "-- the rows"
_CHAIN = "  -- the chain"
_STAGES = "  -- each stage"
_CONDITIONS = "  -- each condition"


def _rows(retrievers: list[Retriever], table: str) -> str:
    ids = ", ".join(f"type::record('{table}', {_quoting.text(retriever.name)})" for retriever in retrievers)
    rows = "\n".join(
        f"UPSERT type::record('{table}', {_quoting.text(retriever.name)}) CONTENT {{\n"
        + "".join(f"  {key}: {value},\n" for key, value in _row(retriever, position).items())
        + "};"
        for position, retriever in enumerate(retrievers)
    )
    return f"DELETE {table} WHERE id NOT IN [{ids}];\n{rows}"


def _frame(retrievers: list[Retriever]) -> str:
    there = ", ".join(retriever.name for retriever in retrievers)
    return f"""\
-- The registry and its dispatcher. Generated from retrievers.toml; change that file, and surrecall apply makes this one anew.
-- Why generated: no function can be called by a computed name, and a list kept by hand beside a switch kept by hand drifts apart.
{_ROWS}

DEFINE FUNCTION OVERWRITE fn::retrieve_rows($retriever: string, $question: record<question> | object, $k: any) {{
  LET $question = IF type::is_record($question) {{ (SELECT * FROM ONLY $question) }} ELSE {{ $question }};
  IF $question = NONE {{ THROW 'no such question' }};
{_CHAIN}
  THROW 'no retriever named ' + $retriever + {_quoting.text(f"; there are: {there}")};
}} COMMENT 'surrecall: what the call of a retriever gives, as it gives it; name, question or its id, k >= 1; THROWs on an unknown name and lists those that exist';

DEFINE FUNCTION OVERWRITE fn::retrieve_stage($retriever: string, $stage: string, $question: record<question> | object, $k: any) {{
  LET $question = IF type::is_record($question) {{ (SELECT * FROM ONLY $question) }} ELSE {{ $question }};
  IF $question = NONE {{ THROW 'no such question' }};
{_STAGES}
  THROW 'retriever ' + $retriever + ' has no stage ' + $stage + '; SELECT id, stages.name FROM retriever shows those that exist';
}} COMMENT 'surrecall: what the call of a stage of a retriever gives, as it gives it; names, question or its id, k >= 1; THROWs on an unknown name';

DEFINE FUNCTION OVERWRITE fn::retriever_keeps($retriever: string, $row: any) {{
{_CONDITIONS}
  RETURN true;
}} COMMENT 'surrecall: whether a row meets the condition of a retriever, true where it has none; name, what its call may give: an id, or {{id, score}}';

DEFINE FUNCTION OVERWRITE fn::retrieve($retriever: string, $question: record<question> | object, $k: any) {{
  RETURN fn::ranking($retriever, $question, $k).ids;
}} COMMENT 'surrecall: the ranking of a registered retriever; name, question or its id, k >= 1; at most k record ids, best first; THROWs on an unknown name and lists those that exist';
"""


def _row(retriever: Retriever, position: int) -> dict[str, str]:
    """The row of the registry, its values as SurrealQL."""
    values = {"position": str(position), "call": _quoting.text(retriever.call), "returns": _quoting.text(retriever.returns)}
    values["prefix"] = str(retriever.prefix).lower()
    if retriever.on_ingest:
        values["on_ingest"] = "true"
    for key in ("where", "document", "reranks", "rerank", "warning"):
        if value := getattr(retriever, key):
            values[key] = _quoting.text(value)
    if retriever.pool is not None:
        values["pool"] = str(retriever.pool)
    if retriever.stages:
        rows = ", ".join(
            f"{{ name: {_quoting.text(stage.name)}, call: {_quoting.text(stage.call)} }}" for stage in retriever.stages
        )
        values["stages"] = f"[{rows}]"
    return values


def _retriever(name: str, entries: object, source: str) -> Retriever:
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise UsageError(
            f"{source}: {name!r} can't be the name of a retriever",
            _NAMING,
        )
    if not isinstance(entries, dict):
        raise UsageError(f"{source}: {name} is no table", f"write [{name}] on a line of its own")
    for key, value in entries.items():
        wanted = _ENTRIES.get(key)
        if wanted is None:
            raise UsageError(f"{source}: [{name}] has {key!r}; it takes {', '.join(_ENTRIES)}", "rename or remove it")
        if type(value) is not wanted:
            raise UsageError(f"{source}: [{name}] {key} is {value!r}", f"a {wanted.__name__} belongs there")
    if "reranks" in entries:
        return _of_entries(name, entries, source)
    if alone := [key for key in _RERANKED if key in entries]:
        raise UsageError(
            f"{source}: [{name}] has {alone[0]} and no reranks", "reranks names the retriever whose candidates it takes"
        )
    for key in ("call", "returns"):
        if not str(entries.get(key, "")).strip():
            raise UsageError(f"{source}: [{name}] has no {key}", 'for example: call = "fn::search($question.text, $k)"')
    for key in ("call", "where", "document"):
        if not _expressions.is_one(str(entries.get(key, ""))):
            raise UsageError(f"{source}: [{name}] {key} is more than one expression", ONE)
    stages = tuple(_stage(name, stage, call, source) for stage, call in entries.get("stages", {}).items())
    optional = {key: entries[key].strip() or None for key in ("where", "document", "warning") if key in entries}
    prefix, on_ingest = entries.get("prefix", True), entries.get("on_ingest", False)
    call, returns = entries["call"].strip(), entries["returns"].strip()
    return Retriever(name, call, returns, prefix, on_ingest=on_ingest, stages=stages, **optional)


def _of_entries(name: str, entries: dict[str, Any], source: str) -> Retriever:
    """A retriever that reranks another."""
    strange = [key for key in _CALLED if key in entries]
    if strange:
        raise UsageError(f"{source}: [{name}] reranks, and has {strange[0]}", "that belongs to the retriever it reranks")
    for key in ("reranks", "rerank"):
        if not str(entries.get(key, "")).strip():
            raise UsageError(
                f"{source}: [{name}] has no {key}", 'for example: rerank = "fn::rerank_lexical($question.text, $ids, $k)"'
            )
    if not _expressions.is_one(entries["rerank"]):
        raise UsageError(f"{source}: [{name}] rerank is more than one expression", ONE)
    pool = entries.get("pool", POOL)
    if pool < 1:
        raise UsageError(f"{source}: [{name}] pool is {pool}", "a whole number of 1 or more belongs there")
    made = reranked(name, entries["reranks"].strip(), entries["rerank"].strip(), pool, entries.get("returns", "").strip())
    warning = entries.get("warning", "").strip() or None
    return replace(made, prefix=entries.get("prefix", True), warning=warning, on_ingest=entries.get("on_ingest", False))


def _stage(retriever: str, name: str, call: object, source: str) -> Stage:
    if not _STAGE.fullmatch(name) or name == _RETURNED:
        raise UsageError(
            f"{source}: [{retriever}] {name!r} can't be the name of a stage",
            f"small letters, digits and _ after a first letter, at most 32, and not {_RETURNED}: lexical, vector, fused, reranked",
        )
    if not isinstance(call, str) or not call.strip():
        raise UsageError(f"{source}: [{retriever}] stage {name} is {call!r}", "an expression over $question and $k belongs there")
    if not _expressions.is_one(call):
        raise UsageError(f"{source}: [{retriever}] stage {name} is more than one expression", ONE)
    return Stage(name, call.strip())
