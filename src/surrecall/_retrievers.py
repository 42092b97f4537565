"""The compiler of the registry: corpus/retrievers.toml in, corpus/retrieve.surql out."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, replace
from typing import Any

from surrecall import _expressions, _names, _quoting
from surrecall._errors import UsageError

# the names of eval_run and of the keys of fn::evaluate; `k` is a key of its own there
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]{0,63}")
_RESERVED = ("k",)
_FIELD = re.compile(r"\$question\.(text|embedding)\b")
# a match or a search for neighbours in the expression itself
_SEARCHES = re.compile(r"@\d*(?:,\s*(?:OR|AND))?@|<\|")
ONE = "one expression, without a semicolon outside braces: { LET $a = …; RETURN … } holds several statements"
_NAMING = "letters, digits, _ + . - after a first letter, at most 64, and not k"
_ENTRIES = {
    "call": str,
    "returns": str,
    "prefix": bool,
    "where": str,
    "document": str,
    "reranks": str,
    "rerank": str,
    "pool": int,
    "warning": str,
}
# what only a reranked retriever has, and what only another has
_RERANKED, _CALLED = ("reranks", "rerank", "pool"), ("call", "where", "document")
POOL = 50


@dataclass(frozen=True)
class Retriever:
    """One retriever to evaluate.

    `call` is SurrealQL over `$question` and `$k` that gives record ids best first, or rows {id, score}; `returns` the table
    of the ids; `prefix` whether the list at k begins the list at 2k. `where` is a condition over `$row`, what came back, that a row must
    meet; `document` how `$row` leads to the labelled document. `warning` is what it is known to do wrong.

    One that `reranks` another asks that for `pool` candidates, and puts them in the order of `rerank`, SurrealQL over `$question`, `$ids`
    (best first) and `$k`; `call` says the same in one expression.
    """

    name: str
    call: str
    returns: str
    prefix: bool = True
    where: str | None = None
    document: str | None = None
    warning: str | None = None
    reranks: str | None = None
    rerank: str | None = None
    pool: int | None = None


def parse(text: str, source: str = "retrievers.toml") -> list[Retriever]:
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
    if retriever.returns:
        return retriever
    if base.document is not None:
        raise UsageError(
            f"{source}: [{retriever.name}] has no returns, and {base.name} leads to documents of another table",
            "returns names the table of the labels",
        )
    return replace(retriever, returns=base.returns)


def require_name(name: str) -> None:
    """Raise UsageError unless a retriever can have this name."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise UsageError(f"{name!r} can't be the name of a retriever", _NAMING)


def entry(retriever: Retriever) -> str:
    """A retriever as it stands in retrievers.toml."""
    left_out = _CALLED if retriever.reranks is not None else _RERANKED
    values = {
        key: value for key, value in vars(retriever).items() if key in _ENTRIES and key not in left_out and value is not None
    }
    if retriever.prefix:
        del values["prefix"]
    if not retriever.returns:
        del values["returns"]
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join([f"[{json.dumps(retriever.name)}]" if "." in retriever.name else f"[{retriever.name}]", *lines])


def added(text: str, retriever: Retriever) -> str:
    """The registry with one retriever more, at its end, or in the place of the one of that name; the rest stays as it is.

    Raises UsageError when the file is written in a way that can't be edited.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    made = entry(retriever).replace("\n", end)
    block = _block(text, retriever.name)
    before, after = (text[: block[0]], text[block[1] :]) if block else (f"{text.rstrip()}{end}{end}", "")
    changed = f"{before}{made}{end}{after}"
    return _checked(changed, text, retriever.name, tomllib.loads(made)[retriever.name])


def removed(text: str, name: str) -> str:
    """The registry without one retriever; the rest stays as it is. Raises UsageError when the file can't be edited."""
    block = _block(text, name)
    changed = text if block is None else text[: block[0]] + text[block[1] :].lstrip("\r\n")
    return _checked(changed, text, name, None)


def _block(text: str, name: str) -> tuple[int, int] | None:
    """Where the lines of a table are: from its header to its last entry; what stands before the next header is that one's."""
    headers = [(match.start(), match[0].strip()) for match in _HEADER.finditer(text)]
    for index, (start, header) in enumerate(headers):
        if list(tomllib.loads(header.partition("#")[0])) == [name]:
            stop = headers[index + 1][0] if index + 1 < len(headers) else len(text)
            lines = text[start:stop].splitlines(keepends=True)
            while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
                lines.pop()
            return start, start + sum(map(len, lines))
    return None


def _checked(changed: str, before: str, name: str, wanted: object) -> str:
    """The changed text, once it is sure that it says what it should and nothing else."""
    expected = tomllib.loads(before.removeprefix("\ufeff")) | {name: wanted}
    if wanted is None:
        del expected[name]
    try:
        if tomllib.loads(changed.removeprefix("\ufeff")) == expected:
            return changed
    except tomllib.TOMLDecodeError:
        pass
    raise UsageError(f"retrievers.toml writes {name} in a way that is not edited here", "edit it by hand, then surrecall apply")


def writes(retriever: Retriever) -> str | None:
    """The word by which one of its expressions writes; None when none does."""
    return _expressions.writes(retriever.rerank or retriever.call, retriever.where or "", retriever.document or "")


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


def compile_dispatcher(retrievers: list[Retriever], names: _names.Names | None = None) -> str:
    """The text of retrieve.surql: the rows of the registry and fn::retrieve over one plain IF chain.

    `names` are the other names of tables and functions; a retriever's own expressions are taken as they are.
    """
    calls = [f"  IF $retriever = {_quoting.text(retriever.name)} {{ {body(retriever, names)} }};" for retriever in retrievers]
    # what the user wrote is no place for other names: it is put in after the rest was given them
    frame = _names.rename(_frame(retrievers), names or {})
    return frame.replace(_ROWS, _rows(retrievers, (names or {}).get("retriever", "retriever"))).replace(_CHAIN, "\n".join(calls))


_ROWS = "-- the rows"
_CHAIN = "  -- the chain"
_HEADER = re.compile(r"^[ \t]*\[[^\[\r\n][^\r\n]*\][ \t]*(#[^\r\n]*)?\r?$", re.MULTILINE)


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

DEFINE FUNCTION OVERWRITE fn::retrieve($retriever: string, $question: record<question> | object, $k: any) {{
  RETURN fn::ranking($retriever, $question, $k).ids;
}} COMMENT 'surrecall: the ranking of a registered retriever; name, question or its id, k >= 1; at most k record ids, best first; THROWs on an unknown name and lists those that exist';
"""


def _row(retriever: Retriever, position: int) -> dict[str, str]:
    """The row of the registry, its values as SurrealQL."""
    values = {"position": str(position), "call": _quoting.text(retriever.call), "returns": _quoting.text(retriever.returns)}
    values["prefix"] = str(retriever.prefix).lower()
    for key in ("where", "document", "reranks", "rerank", "warning"):
        if value := getattr(retriever, key):
            values[key] = _quoting.text(value)
    if retriever.pool is not None:
        values["pool"] = str(retriever.pool)
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
    optional = {key: entries[key].strip() or None for key in ("where", "document", "warning") if key in entries}
    return Retriever(name, entries["call"].strip(), entries["returns"].strip(), entries.get("prefix", True), **optional)


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
    return replace(made, prefix=entries.get("prefix", True), warning=entries.get("warning", "").strip() or None)
