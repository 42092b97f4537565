"""Trying a retriever out on one question. What comes back is judged by fn::retriever_verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from surrealdb import RecordID

from surrecall import _probes, _quoting, _retrievers
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import SurrecallError
from surrecall._retrievers import Retriever

_PROBE = "DEFINE FUNCTION OVERWRITE {name}($question: any, $k: any) {{ {body} }} COMMENT 'surrecall: tries a retriever'"
# a read at the top level runs on one executor, the body of a closure on the other
_STREAMING = "RETURN {call};"
_CLOSURE = "RETURN [1].map(|$one| {call})[0];"
_ROW = "RETURN IF type::is_record($asked) { (SELECT * FROM ONLY $asked) } ELSE { $asked };"
_REPEATS = 4
_SAMPLE = """
LET $row = (SELECT {text} AS text, {vector} AS embedding FROM {table} WHERE {filled} LIMIT 1)[0];
RETURN IF $row != NONE {{ {{ text: string::words(<string> $row.text).slice(0, 8).join(' '), embedding: $row.embedding }} }};
"""
_IS_CHUNKS = "RETURN record::exists(type::record('chunking', $table))"
_FIRST = "SELECT VALUE id FROM question ORDER BY answerable DESC, id LIMIT 5"

Question = RecordID | dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a retriever (nothing, mostly), what should be known of it, and a list of it at k.

    `prefix` is whether its list at k begins its list at 2k, `returns` the table of what its call gave, `questions` how many it
    was tried on.
    """

    faults: list[str]
    notes: list[str]
    prefix: bool
    ranking: list[Any]
    returns: str | None
    questions: int


@dataclass(frozen=True)
class _Calls:
    """How to ask: the ranking as it will be made, what the call gives by itself, and the rows of it that meet the condition."""

    whole: str
    raw: str
    kept: str


def sample(database: Database, corpus: Corpus) -> dict[str, Any] | None:
    """A question where none is stored: the first words and the vector of a document; None for an empty table."""
    filled = [f"{corpus.body} != NONE"]
    vector = "NONE"
    if corpus.vector is not None and corpus.vector_table:
        vector = f"(SELECT VALUE {corpus.vector} FROM {_quoting.identifier(corpus.vector_table)} LIMIT 1)[0]"
    elif corpus.vector is not None:
        vector = corpus.vector
        filled.append(f"{corpus.vector} != NONE")
    text = _SAMPLE.format(text=corpus.body, vector=vector, table=_quoting.identifier(corpus.table), filled=" AND ".join(filled))
    found: dict[str, Any] | None = database.run_as_written(text)[-1]
    return found


def stored(database: Database) -> list[RecordID]:
    """A few questions of the golden set; none when it is empty."""
    found: list[RecordID] = database.value(_FIRST)
    return found


def check(database: Database, retriever: Retriever, questions: Sequence[Question], k: int, corpus: Corpus) -> Verdict:
    """Try a retriever where surrecall is applied, in the form in which it will run.

    Raises the error of the call itself when it fails.
    """
    forms = {
        "whole": retriever,
        "bare": replace(retriever, where=None, document=None),
        "kept": replace(retriever, document=None),
    }
    bodies = {form: _retrievers.body(one, database.settings.names) for form, one in forms.items()}
    with _probes.defined(database, "retriever", bodies, _PROBE) as names:
        # a reranker's candidates stand beside what it made of them
        rows = ".rows" if retriever.reranks is not None else ""
        calls = _Calls(*(f"{names[form]}($question, $k){rows}" for form in forms))
        return _judged(database, [_seen(database, retriever, question, k, corpus, calls) for question in questions])


def judge(database: Database, retriever: Retriever, question: Question, k: int, corpus: Corpus, judging: Database) -> Verdict:
    """Try a plain call where surrecall is not applied yet, and define nothing; the verdict is given in the database `judging`."""
    call = _retrievers.plain(retriever.call)
    return _judged(judging, [_seen(database, retriever, question, k, corpus, _Calls(call, call, call))])


def _judged(judging: Database, seen: list[dict[str, Any]]) -> Verdict:
    told = judging.value("RETURN fn::retriever_verdicts($seen)", seen=seen)
    return Verdict(told["faults"], told["notes"], told["prefix"], told["ranking"], told.get("returns"), told["questions"])


def _seen(database: Database, retriever: Retriever, asked: Question, k: int, corpus: Corpus, calls: _Calls) -> dict[str, Any]:
    """What a retriever gives for one question, asked in every way in which it may be asked."""
    question = database.value(_ROW, asked=asked)
    asking = [_STREAMING.format(call=calls.raw), _STREAMING.format(call=calls.whole), _CLOSURE.format(call=calls.whole)]
    asking += [_STREAMING.format(call=calls.whole)] * _REPEATS
    asking.append(f"RETURN count({calls.kept});" if retriever.where is not None else "RETURN 0;")
    raw, streaming, closure, *again, kept = database.run_as_written("\n".join(asking), **_given(question), k=k)
    # chunks of a registered table are scored by anchors, and need not lead to documents
    chunks = _is_chunks(database, retriever.returns or _table_of(raw))
    return {
        "k": k,
        "raw": raw,
        "streaming": streaming,
        "closure": closure,
        "again": again,
        "deeper": _deeper(database, calls.whole, question, k),
        "returns": retriever.returns or None,
        "labelled": None if chunks else corpus.table,
        "mapped": retriever.document is not None,
        "condition": retriever.where is not None,
        "kept": kept,
        **_pool(database, retriever, calls.whole, question),
    }


def _is_chunks(database: Database, table: str | None) -> bool:
    # where surrecall is not applied yet, no table is registered
    if table is None or database.table("chunking") not in database.value("INFO FOR DB")["tables"]:
        return False
    return bool(database.value(_IS_CHUNKS, table=table))


def _table_of(rows: Any) -> str | None:
    first = rows[0] if isinstance(rows, list) and rows else None
    record = first.get("id") if isinstance(first, dict) else first
    return record.table_name if isinstance(record, RecordID) else None


def _pool(database: Database, retriever: Retriever, call: str, question: Any) -> dict[str, Any]:
    """The candidates of a reranker, and what it makes of them all; nothing for another retriever."""
    if retriever.reranks is None:
        return {}
    made = _STREAMING.format(call=call.removesuffix(".rows"))
    found = database.run_as_written(made, **_given(question), k=retriever.pool)[-1]
    return {"pool": found["pool"], "whole_pool": found["rows"]}


def _given(question: Any) -> dict[str, Any]:
    """The question, and the plain parameters that stand for its text and vector."""
    fields = question if isinstance(question, dict) else {}
    return {"question": question, "question_text": fields.get("text"), "question_embedding": fields.get("embedding")}


def _deeper(database: Database, call: str, question: Any, k: int) -> Any:
    """The list at 2k; None where the retriever gives no list that long."""
    try:
        return database.run_as_written(_STREAMING.format(call=call), **_given(question), k=2 * k)[-1]
    except SurrecallError as error:
        if error.statement is None:
            raise
        return None
