"""The compiler of the registry: corpus/retrievers.toml in, corpus/retrieve.surql out."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass

from surrecall._errors import UsageError

# the names of eval_run and of the keys of fn::evaluate; `k` is a key of its own there
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]{0,63}")
_RESERVED = ("k",)
_NAMING = "letters, digits, _ + . - after a first letter, at most 64, and not k"
_ENTRIES = {"call": str, "returns": str, "prefix": bool}


@dataclass(frozen=True)
class Retriever:
    """One retriever to evaluate.

    `call` is SurrealQL over `$question` and `$k` that gives record ids best first, or rows {id, score}; `returns` the table
    of the ids; `prefix` whether the list at k begins the list at 2k.
    """

    name: str
    call: str
    returns: str
    prefix: bool = True


def parse(text: str, source: str = "retrievers.toml") -> list[Retriever]:
    """Read the registry, in file order. Raises UsageError naming the retriever and the entry."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} can't be read: {error}", "mend the line it names") from error
    if not tables:
        raise UsageError(f"{source} names no retriever", 'for example: [bm25] with call = "…" and returns = "article"')
    return [_retriever(name, entries, source) for name, entries in tables.items()]


def require_name(name: str) -> None:
    """Raise UsageError unless a retriever can have this name."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise UsageError(f"{name!r} can't be the name of a retriever", _NAMING)


def compile_dispatcher(retrievers: list[Retriever]) -> str:
    """The text of retrieve.surql: the rows of the registry and fn::retrieve over one plain IF chain."""
    names = ", ".join(retriever.name for retriever in retrievers)
    rows = "\n".join(
        f"UPSERT type::record('retriever', {_quoted(retriever.name)}) CONTENT {{\n"
        f"  position: {position},\n"
        f"  call: {_quoted(retriever.call)},\n"
        f"  returns: {_quoted(retriever.returns)},\n"
        f"  prefix: {str(retriever.prefix).lower()},\n"
        "};"
        for position, retriever in enumerate(retrievers)
    )
    chain = "\n".join(f"  IF $retriever = {_quoted(retriever.name)} {{ RETURN {retriever.call} }};" for retriever in retrievers)
    ids = ", ".join(f"type::record('retriever', {_quoted(retriever.name)})" for retriever in retrievers)
    return f"""\
-- The registry and its dispatcher. Generated from retrievers.toml; change that file, and surrecall apply makes this one anew.
-- Why generated: no function can be called by a computed name, and a list kept by hand beside a switch kept by hand drifts apart.
DELETE retriever WHERE id NOT IN [{ids}];
{rows}

DEFINE FUNCTION OVERWRITE fn::retrieve_rows($retriever: string, $question: record<question> | object, $k: any) {{
  LET $question = IF type::is_record($question) {{ (SELECT * FROM ONLY $question) }} ELSE {{ $question }};
  IF $question = NONE {{ THROW 'no such question' }};
{chain}
  THROW 'no retriever named ' + $retriever + {_quoted(f"; there are: {names}")};
}} COMMENT 'surrecall: what the call of a retriever gives, as it gives it; name, question or its id, k >= 1; THROWs on an unknown name and lists those that exist';

DEFINE FUNCTION OVERWRITE fn::retrieve($retriever: string, $question: record<question> | object, $k: any) {{
  RETURN fn::ranking($retriever, $question, $k).ids;
}} COMMENT 'surrecall: the ranking of a registered retriever; name, question or its id, k >= 1; at most k record ids, best first; THROWs on an unknown name and lists those that exist';
"""


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
    for key in ("call", "returns"):
        if not str(entries.get(key, "")).strip():
            raise UsageError(f"{source}: [{name}] has no {key}", 'for example: call = "fn::search($question.text, $k)"')
    return Retriever(name, entries["call"].strip(), entries["returns"].strip(), entries.get("prefix", True))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
