"""Trying a retriever out on one question. What comes back is judged by fn::retriever_verdict."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from surrealdb import RecordID

from surrecall import _names, _quoting, _retrievers
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import SurrecallError
from surrecall._retrievers import Retriever, body

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
_FIRST = "SELECT VALUE id FROM question ORDER BY answerable DESC, id LIMIT 1"

Question = RecordID | dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a retriever (nothing, mostly), what should be known of it, and its list at k.

    `prefix` is whether that begins its list at 2k, `returns` the table of what its call gave.
    """

    faults: list[str]
    notes: list[str]
    prefix: bool
    ranking: list[Any]
    returns: str | None


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


def stored(database: Database) -> RecordID | None:
    """A question of the golden set; None when it is empty."""
    return next(iter(database.value(_FIRST)), None)


def check(database: Database, retriever: Retriever, question: Question, k: int, corpus: Corpus) -> Verdict:
    """Try a retriever where surrecall is applied, in the form in which it will run.

    Raises the error of the call itself when it fails.
    """
    name = f"fn::retriever_probe_{uuid.uuid4().hex}"
    made = (
        _names.rename(body(retriever), dict(database.settings.names))
        if retriever.document or retriever.where
        else body(retriever)
    )
    database.run_as_written(_PROBE.format(name=name, body=made))
    try:
        return _judged(database, retriever, question, k, corpus, f"{name}($question, $k)", database)
    finally:
        database.run_as_written(f"REMOVE FUNCTION IF EXISTS {name}")


def judge(database: Database, retriever: Retriever, question: Question, k: int, corpus: Corpus, judging: Database) -> Verdict:
    """Try a plain call where surrecall is not applied yet, and define nothing; the verdict is given in the database `judging`."""
    return _judged(database, retriever, question, k, corpus, _retrievers.plain(retriever.call), judging)


def _judged(
    database: Database, retriever: Retriever, asked: Question, k: int, corpus: Corpus, call: str, judging: Database
) -> Verdict:
    question = database.value(_ROW, asked=asked)
    asking = [_STREAMING.format(call=_retrievers.plain(retriever.call)), _STREAMING.format(call=call), _CLOSURE.format(call=call)]
    asking += [_STREAMING.format(call=call)] * _REPEATS
    if retriever.where is not None:
        condition = _retrievers.plain(retriever.where)
        asking.append(f"RETURN count(({_retrievers.plain(retriever.call)}).filter(|$row| {condition}));")
    raw, streaming, closure, *again = database.run_as_written("\n".join(asking), **_given(question), k=k)
    kept = again.pop() if retriever.where is not None else 0
    seen = {
        "k": k,
        "raw": raw,
        "streaming": streaming,
        "closure": closure,
        "again": again,
        "deeper": _deeper(database, call, question, k),
        "returns": retriever.returns or None,
        "labelled": corpus.table,
        "mapped": retriever.document is not None,
        "condition": retriever.where is not None,
        "kept": kept,
    }
    told = judging.value("RETURN fn::retriever_verdict($seen)", seen=seen)
    return Verdict(told["faults"], told["notes"], told["prefix"], told["ranking"], told.get("returns"))


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
