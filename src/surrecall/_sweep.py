"""Driving a sweep over a parameter of an expression. Rankings, scores, the choice and its comparison are the database's."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from surrealdb import RecordID

from surrecall import _anchors, _comparison, _expressions, _probes, _retrievers
from surrecall._database import Database
from surrecall._errors import DatabaseError, DataError, SurrecallError, UsageError
from surrecall._executors import CLOSURE, SAMPLE, STREAMING, faster, order
from surrecall._render import record_text
from surrecall._retrievers import Retriever
from surrecall._shards import Progress, Shards, joined

Value = int | float | str

_BEGIN = "RETURN fn::sweep_begin($options)"
_CHOICE = "RETURN fn::sweep_choice($begun, $sums)"
_END = "RETURN fn::sweep_end($begun, $choice, $parts, $heldout)"
_LOOK = "CREATE heldout_look SET set = $set, what = 'sweep', questions = $questions RETURN NONE"
_PROBE = """
DEFINE FUNCTION OVERWRITE {name}($asked: any, $k: any, $x: any) {{
  LET $question = (SELECT * FROM ONLY $asked);
  {body}
}} COMMENT 'surrecall: tries values of a parameter, for a moment'
"""
_TIMED = """
DEFINE FUNCTION OVERWRITE {name}($asked: any, $k: any, $x: any) {{
  LET $from = time::now();
  LET $rows = {body};
  RETURN {{ rows: $rows, took: <float> duration::nanos(time::now() - $from) / 1000000 }};
}} COMMENT 'surrecall: times a search, for a moment'
"""
# one form for each executor; an index that is rebuilt meanwhile gives less than there is, so each shard asks first
_READ = {
    STREAMING: """
fn::require_indexes();
LET $answers = (
  SELECT VALUE fn::sweep_labelled(id, fn::sweep_answer($name, PROBE(id, $k, $x), $k)) FROM $questions
);
""",
    CLOSURE: """
fn::require_indexes();
LET $answers = $questions.map(|$id|
  fn::sweep_labelled($id, fn::sweep_answer($name, PROBE($id, $k, $x), $k))
);
""",
}
_PART = """
RETURN object::extend(fn::sweep_part($asked, $answers, $sums), { seen: crypto::sha256(<string> $answers.ranking) });
"""
# the registered table of chunks that the expression gives, if it does
_TABLE = "RETURN fn::labelled_table('', fn::sweep_ranking($name, PROBE($question, $k, $x).rows, $k))"
_CHUNKS = "RETURN fn::sweep_chunks($begun, $table)"
_REQUIRES_INDEXES = 0
_FIRST_SHARD = 4
_PARAMETER = re.compile(r"\$x\b")


@dataclass(frozen=True)
class Options:
    """What to sweep: SurrealQL over `$question`, `$k` and `$x`, and values of `$x`.

    The expression gives record ids best first, or rows {id, score}. `document` is how `$row`, what came back, leads to the
    labelled document. None takes the default of fn::sweep_begin.
    """

    expression: str
    values: Sequence[Value]
    k: int
    metric: str | None = None
    question_set: str | None = None
    document: str | None = None
    seed: int | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """The options of fn::sweep_begin."""
        given = {"metric": self.metric, "set": self.question_set, "seed": self.seed}
        return {"values": list(self.values), "k": self.k} | {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Failure:
    """A value for which the expression failed: the first question it failed on, and what it said."""

    x: Value
    question: RecordID
    message: str


@dataclass(frozen=True)
class Swept:
    """What fn::sweep_end gave, and the values that are not in it, since the expression failed for them."""

    told: dict[str, Any]
    failed: list[Failure]
    warnings: list[str]


class _Fails(Exception):
    """The expression fails on a question."""

    def __init__(self, question: RecordID, error: SurrecallError) -> None:
        super().__init__(error.text)
        self.question = question
        self.error = error


@dataclass(frozen=True)
class _Answered:
    """One value over some questions: the metric and the milliseconds of each, the sums of all, how many got nothing."""

    values: list[float]
    took: list[float]
    sums: list[float]
    questions: int
    empty: int

    def row(self, x: Value) -> dict[str, Any]:
        return {"x": x, "sums": self.sums, "questions": self.questions, "empty": self.empty, "took": self.took}


def sweep(database: Database, asked: Options, progress: Progress = lambda _done, _all: None) -> Swept:
    """Measure an expression at each value, choose the best, compare it with the others, and score it on what is held out.

    Nothing is stored; a function that is defined for the time of it is taken out again. Raises UsageError for an expression that
    can't be read, writes or has no $x, DataError where no question is left to choose by, and the error of the expression where
    it fails for every value.
    """
    probing = _expression(asked)
    begun = database.value(_BEGIN, options=asked.asked)
    values = begun["values"]
    failed: list[Failure] = []
    errors: list[SurrecallError] = []
    answered: list[tuple[Value, _Answered]] = []
    with _probe(database, probing) as probe:
        if table := _table(database, probe, begun):
            begun = database.value(_CHUNKS, begun=begun, table=table)
        questions, heldout = begun["questions"], begun["heldout"]
        resamples = 2 * begun["resamples"] * (len(values) - 1)
        shards = Shards(len(values) * len(questions) + len(heldout) + resamples, progress)
        asking = _Asking(database, probe, begun, shards)
        for x in values:
            try:
                answered.append((x, asking.all(x, questions)))
            except _Fails as failure:
                failed.append(Failure(x, failure.question, failure.error.message))
                errors.append(failure.error)
        if not answered:
            # of no other kind: the expression itself
            kind = DataError if type(errors[0]) is DatabaseError else type(errors[0])
            raise kind("the expression fails for every value\n  " + "\n  ".join(map(said, failed)), "mend the expression")
        choice = database.value(_CHOICE, begun=begun, sums=[one.row(x) for x, one in answered])
        best = next(one.values for x, one in answered if x == choice["x"])
        parts = [
            {"x": x} | _comparison.resampled(database, shards, begun, {"a": best, "b": one.values})
            for x, one in answered
            if x != choice["x"]
        ]
        kept = None
        if heldout:
            try:
                kept = asking.all(choice["x"], heldout).row(choice["x"])
                database.run(_LOOK, set=begun["set"], questions=len(heldout))
            except _Fails as failure:
                failed.append(Failure(choice["x"], failure.question, failure.error.message))
    told = database.value(_END, begun=begun, choice=choice, parts=parts, heldout=kept)
    return Swept(told, failed, told["warnings"] + asking.warnings)


def said(failure: Failure) -> str:
    """A failure in a line."""
    return f"x = {failure.x}, {record_text(failure.question)}: {failure.message}"


def _expression(asked: Options) -> Retriever:
    if not _PARAMETER.search(_expressions.code(asked.expression)):
        raise UsageError("the expression has no $x, so every value would give the same", "put $x where the parameter stands")
    probing = Retriever("sweep", asked.expression.strip(), "", document=(asked.document or "").strip() or None)
    for given in (probing.call, probing.document or ""):
        if not _expressions.is_one(given):
            raise UsageError(f"more than one expression: {given[:80]!r}", _retrievers.ONE)
    if word := _retrievers.writes(probing):
        raise UsageError(f"the expression writes ({word}), and would with every question", "a search reads")
    return probing


@contextmanager
def _probe(database: Database, probing: Retriever) -> Iterator[str]:
    """A function of the expression, for as long as it takes."""
    bodies = {"x": _retrievers.body(probing, database.settings.names)}
    with ExitStack() as stack:
        try:
            names = stack.enter_context(_probes.defined(database, "sweep", bodies, _PROBE))
        except SurrecallError as error:
            if not error.message.startswith("Parse error"):
                raise
            raise UsageError(f"the expression can't be read: {error.message}", "mend the expression") from error
        timed = {"timed": f"{names['x']}($asked, $k, $x)"}
        yield stack.enter_context(_probes.defined(database, "sweep", timed, _TIMED))["timed"]


def _table(database: Database, probe: str, begun: dict[str, Any]) -> str | None:
    """The registered table of chunks that the expression gives; None where it gives documents, nothing, or fails."""
    if not _anchors.tables(database):
        return None
    for x in begun["values"]:
        for question in begun["questions"][:SAMPLE]:
            try:
                found = database.value(_TABLE.replace("PROBE", probe), name="of the sweep", question=question, k=begun["k"], x=x)
            except SurrecallError as error:
                if error.statement is None:
                    raise
                continue
            if found is not None:
                return str(found)
    return None


class _Asking:
    """Puts the questions to the expression, a shard at a time, on the faster executor."""

    def __init__(self, database: Database, probe: str, begun: dict[str, Any], shards: Shards) -> None:
        self._database = database
        self._read = {executor: text.replace("PROBE", probe) + _PART for executor, text in _READ.items()}
        self._asked = {key: begun[key] for key in ("k", "metric", "metrics", "reading")}
        self._shards = shards
        self._executor: str | None = None
        self.warnings: list[str] = []

    def all(self, x: Value, questions: list[RecordID]) -> _Answered:
        """Every question at one value. Raises _Fails on the first one that the expression fails on."""
        sums: list[float] = [0] * len(self._asked["metrics"])

        def work(start: int, end: int) -> dict[str, Any]:
            nonlocal sums
            told = self._ask(x, questions[start:end], sums)
            sums = told["sums"]
            return told

        if self._executor is None:
            self._choose_executor(x, questions[:SAMPLE])
        parts = self._shards.run(len(questions), work, _FIRST_SHARD)
        values, took = (joined([part[name] for part in parts]) for name in ("values", "took"))
        return _Answered(values, took, sums, len(questions), sum(part["empty"] for part in parts))

    def _ask(self, x: Value, questions: list[RecordID], sums: list[float]) -> dict[str, Any]:
        try:
            return self._one(self._executor or STREAMING, x, questions, sums)
        except SurrecallError as error:
            if error.statement is None or error.statement == _REQUIRES_INDEXES:
                raise
            # which question it is
            for question in questions:
                try:
                    self._one(self._executor or STREAMING, x, [question], sums)
                except SurrecallError as cause:
                    if cause.statement is None:
                        raise
                    raise _Fails(question, cause) from cause
            raise

    def _one(self, executor: str, x: Value, questions: list[RecordID], sums: list[float]) -> dict[str, Any]:
        told: dict[str, Any] = self._database.value(
            self._read[executor],
            name="of the sweep",
            questions=questions,
            k=self._asked["k"],
            x=x,
            asked=self._asked,
            sums=sums,
        )
        return told

    def _choose_executor(self, x: Value, questions: list[RecordID]) -> None:
        """Put the first questions to both, and keep the faster one."""
        seconds: dict[str, list[float]] = {executor: [] for executor in _READ}
        sums = [0] * len(self._asked["metrics"])
        try:
            for index, question in enumerate(questions):
                seen = set()
                for executor in order(index):
                    began = time.monotonic()
                    seen.add(self._one(executor, x, [question], list(sums))["seen"])
                    seconds[executor].append(time.monotonic() - began)
                if len(seen) > 1 and not self.warnings:
                    self.warnings.append(
                        "the engine's two executors gave different lists for the same question; end the order with the id: "
                        "ORDER BY score DESC, id"
                    )
        except SurrecallError as error:
            if error.statement is None:
                raise
            # a question that fails is no sample; the shards find out which
            return
        self._executor = faster(seconds)
