"""Driving an evaluation in shards. What is measured is measured in the database; rankings never come here."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _anchors, _stale, _writer
from surrecall._database import Database
from surrecall._errors import DatabaseError, ExitCode, SchemaError, SurrecallError, UsageError
from surrecall._executors import CLOSURE, SAMPLE, STREAMING, faster, order
from surrecall._fingerprint import corpus_hash
from surrecall._render import record_text
from surrecall._retry import retried as _retried
from surrecall._rows import Rows

# One form for each executor. In both the write is a statement of its own, so it does not decide where the reading runs. An index
# that is rebuilt meanwhile gives less than there is, so each shard asks first.
_READ = {
    STREAMING: """
fn::require_indexes();
LET $answers = (SELECT VALUE object::extend(fn::answer($retriever, id, $depth), { evaluation: $evaluation }) FROM $questions);
""",
    CLOSURE: """
fn::require_indexes();
LET $answers = $questions.map(|$id| object::extend(fn::answer($retriever, $id, $depth), { evaluation: $evaluation }));
""",
}
_STORE = "INSERT IGNORE INTO eval_answer $answers RETURN NONE;"
# whether the other executor gave the ranking that is stored; only the verdict comes here
_COMPARE = """
RETURN $answers[0].ranking = (
  SELECT VALUE ranking FROM eval_answer
  WHERE evaluation = $evaluation AND retriever = $retriever AND depth = $depth AND question = $questions[0]
)[0];
"""
_FAIL = """
INSERT IGNORE INTO eval_answer object::extend({
  evaluation: $evaluation, retriever: $retriever, question: $question, depth: $depth, ranking: [], kind: $question.kind,
  tags: $question.tags, source: $question.source, split: $question.split,
  took: 0ns, status: 'error', message: $message
}, fn::labels_for((SELECT * FROM ONLY $question), $retriever, [], NONE)) RETURN NONE;
"""
# the runs of one retriever, summed a few hundred answers at a time: a large golden set takes longer than a client waits
_TALLIES = "RETURN fn::tally_begin($evaluation, $retriever, { k: $cutoffs, counts: true })"
_TALLY = """
LET $evaluation = $tally.evaluation;
LET $retriever = $tally.retriever;
LET $depth = $tally.depth;
LET $after = $tally.after;
LET $answers = (
  SELECT id, question, answerable, status, ranking.len() AS returned, labels.grade AS grades,
    labels.map(|$label| { at: (ranking.find_index($label.document) ?? -1) + 1, grade: $label.grade })[WHERE at > 0].sort()
      AS places
  FROM eval_answer
  WHERE evaluation = $evaluation AND retriever = $retriever AND depth = $depth AND question > $after
  ORDER BY question LIMIT $limit
);
RETURN fn::tally($tally, $answers, $limit);
"""
_DRAFT = """
LET $runs = fn::evaluation_runs($tallies);
UPDATE $evaluation SET drafts = array::concat(drafts ?? [], $runs) RETURN NONE;
"""
_TALLIED = 500
# of a run: what is about the history and not about the figures
_LINKS = ("id", "seq", "hash", "previous", "evaluation", "set", "note", "rel", "scale", "at")
_LATENCY = "RETURN fn::latency($evaluation, $retriever)"
_FINGERPRINT = "UPDATE $evaluation SET corpus.hash = $hash RETURN NONE;"
_CLOSED = """
SELECT * FROM ONLY $evaluation;
RETURN fn::evaluation_warnings($evaluation);
RETURN fn::evaluation_unanswerable($evaluation);
"""
# an imported ranking has no retriever that could be asked for the rest, one on ingest has steps of its own, and nobody is signed
# in for a user's view
_UNFINISHED = """
SELECT VALUE id FROM evaluation WHERE status = 'running' AND trigger NOT IN ['import', 'ingest'] AND seen = NONE
ORDER BY started DESC, id LIMIT 1
"""

# a shard should end long before the client gives up on a query (30 s), and be long enough to hide the round trip
_SHARD_SECONDS = 1.0
_FIRST_SHARD, _LARGEST_SHARD = 4, 500

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to evaluate. `cutoffs` are whole numbers from 1; no retrievers means all; relevant is what has grade `rel` or more."""

    cutoffs: Sequence[int]
    retrievers: Sequence[str] | None = None
    question_set: str = "default"
    note: str | None = None
    trigger: str = "manual"
    revision: str | None = None
    # the lowest grade that counts as relevant
    rel: int | float = 1


@dataclass(frozen=True)
class Evaluation(Rows):
    """A finished evaluation: the row, its runs in history order, and what should be known beside the figures.

    Shown in a notebook, and by to_pandas, it is its runs: retriever, k, questions and every metric, floats in [0,1].

    `unanswerable` are rows of fn::evaluation_unanswerable: how often something came back where nothing answers; empty where
    every question has an answer.
    """

    row: dict[str, Any]
    runs: list[dict[str, Any]]
    warnings: list[str]
    unanswerable: list[dict[str, Any]] = field(default_factory=list)

    @property
    def rows(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The runs with the names of what they measured first, without what links them in the history."""
        first = ("retriever", "k", "questions")
        return [
            {name: run[name] for name in first} | {name: run[name] for name in run if name not in first and name not in _LINKS}
            for run in self.runs
        ]

    def _lines(self) -> Sequence[str]:
        return [f"warning: {text}" for text in self.warnings]

    @property
    def failed(self) -> bool:
        """Whether at least one answer is an error."""
        return bool(self.row["status"] == "failed")


class Interrupted(SurrecallError):
    """Long work was cut off, by Ctrl-C or a server that went away; what was done is kept, and the same command goes on."""

    def __init__(self, message: str, hint: str, *, by_user: bool) -> None:
        super().__init__(message, hint)
        self.exit_code = ExitCode.INTERRUPTED if by_user else ExitCode.DATABASE


def evaluate(database: Database, options: Options, *, jobs: int = 1, progress: Progress = lambda _done, _all: None) -> Evaluation:
    """Run and record one evaluation over `jobs` connections (one on the embedded engine, which has no more).

    Raises UsageError, SchemaError or DataError before anything is stored when it can't start, and leaves no run when it is
    cut off: resume finishes it.
    """
    return _drive(database, _begin(database, options), jobs, progress)


def resume(database: Database, *, jobs: int = 1, progress: Progress = lambda _done, _all: None) -> Evaluation:
    """Finish the newest evaluation that was cut off, with the same figures as if it had not been.

    Raises UsageError when there is none, SchemaError when corpus, golden set or definitions changed since it began.
    """
    found = database.value(_UNFINISHED)
    if not found:
        raise UsageError("no evaluation is unfinished", "surrecall evaluate begins one")
    changed = database.value("RETURN fn::evaluation_changed($evaluation, $hash)", evaluation=found[0], hash=corpus_hash(database))
    if changed:
        raise SchemaError(
            f"{' and '.join(changed)} changed since {record_text(found[0])} began, its figures would be of no one state",
            f"DELETE {record_text(found[0])}, then surrecall evaluate",
        )
    return _drive(database, database.value("SELECT * FROM ONLY $evaluation", evaluation=found[0]), jobs, progress)


def answer_all(database: Database, row: dict[str, Any], progress: Progress = lambda _done, _all: None) -> None:
    """Ask what an evaluation has yet to ask, over this one connection, and store the answers; no run is made of them."""
    board = _Board(_missing(database, row["id"]), len(row["calls"]) * len(row["questions"]), progress)
    for call in board.calls:
        board.count(_sample(database, call))
    _answer_all([database], board)


def finish(database: Database, row: dict[str, Any]) -> Evaluation:
    """Work out the runs of an evaluation whose answers are all there, and close it."""
    _draft([database], row, threading.Event())
    runs = _retried(lambda: database.value("RETURN fn::evaluation_complete($evaluation)", evaluation=row["id"]))
    return _closed(database, row["id"], runs)


def fingerprint(database: Database, evaluation: RecordID) -> None:
    """Note the fingerprint of the corpus as it is now with an evaluation."""
    told = corpus_hash(database)
    _retried(lambda: database.run(_FINGERPRINT, evaluation=evaluation, hash=told))


def read(database: Database, evaluation: RecordID) -> Evaluation:
    """An evaluation that is closed."""
    runs = database.value("SELECT * FROM eval_run WHERE evaluation = $evaluation ORDER BY seq", evaluation=evaluation)
    return _closed(database, evaluation, runs)


def discard(database: Database, evaluation: RecordID) -> None:
    """Take an evaluation out that can't be resumed and never came to an end: an import, or a user's view."""
    while database.value("RETURN fn::import_discard($evaluation)", evaluation=evaluation):
        pass


def latency(database: Database, evaluation: RecordID, retrievers: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of fn::latency, a retriever at a time: many answers take long to read."""
    parts = [database.value(_LATENCY, evaluation=evaluation, retriever=name) for name in retrievers]
    return [row for part in parts for row in part]


def git_revision(folder: Path) -> str | None:
    """The commit a folder stands at, with `+` when files differ from it; None outside a checkout or without git."""
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD")
        return commit + "+" if _git(folder, "status", "--porcelain") else commit
    except (OSError, subprocess.SubprocessError):
        return None


def _begin(database: Database, options: Options) -> dict[str, Any]:
    _stale.scan(database, options.question_set)
    asked: dict[str, Any] = {
        "k": list(options.cutoffs),
        "set": options.question_set,
        "trigger": options.trigger,
        "rel": options.rel,
        "engine": database.version,
        "fingerprint": False,
        "anchors": False,
    }
    asked |= {"retrievers": list(options.retrievers)} if options.retrievers else {}
    asked |= {"note": options.note} if options.note else {}
    asked |= {"revision": options.revision} if options.revision else {}
    row: dict[str, Any] | None = database.value("RETURN fn::evaluation_begin($options)", options=asked)
    if row is None:
        raise _writer.refused("evaluation")
    return row


@dataclass
class _Call:
    """One retriever at one depth, and the questions it has yet to answer."""

    evaluation: RecordID
    retriever: str
    depth: int
    questions: list[RecordID]
    executor: str = STREAMING
    shard: int = _FIRST_SHARD
    # whether the two executors gave the same lists for the sample
    agrees: bool = True

    @property
    def variables(self) -> dict[str, Any]:
        return {"evaluation": self.evaluation, "retriever": self.retriever, "depth": self.depth}

    def take(self, workers: int) -> list[RecordID]:
        # towards the end smaller ones, so that nobody waits for the last
        fair = -(-len(self.questions) // (2 * workers)) if workers > 1 else self.shard
        size = max(1, min(self.shard, max(fair, _FIRST_SHARD)))
        taken, self.questions = self.questions[:size], self.questions[size:]
        return taken

    def learn(self, asked: int, seconds: float) -> None:
        """Size the next shard by what this one took."""
        wanted = int(asked * _SHARD_SECONDS / max(seconds, 1e-6))
        self.shard = max(1, min(_LARGEST_SHARD, wanted, self.shard * 4))


@dataclass
class _Board:
    """The shards that are left, shared by the workers."""

    calls: list[_Call]
    total: int
    progress: Progress
    done: int = 0
    workers: int = 1
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)

    def shards(self) -> Iterator[tuple[_Call, list[RecordID]]]:
        """Shards until there are none, or somebody said stop."""
        while not self.stop.is_set():
            with self.lock:
                call = next((call for call in self.calls if call.questions), None)
                if call is None:
                    return
                questions = call.take(self.workers)
            yield call, questions

    def count(self, answered: int) -> None:
        with self.lock:
            self.done += answered
            self.progress(self.done, self.total)


def _drive(database: Database, row: dict[str, Any], jobs: int, progress: Progress) -> Evaluation:
    evaluation = row["id"]
    board = _Board(_missing(database, evaluation), len(row["calls"]) * len(row["questions"]), progress)
    board.done = board.total - sum(len(call.questions) for call in board.calls)
    try:
        with _fingerprint(database, evaluation):
            _anchors.place(database, row["set"], sorted({call["retriever"] for call in row["calls"]}))
            for call in board.calls:
                board.count(_sample(database, call))
            with _connections(database, jobs) as connections:
                board.workers = len(connections)
                _answer_all(connections, board)
                _draft(connections, row, board.stop)
        runs = _retried(lambda: database.value("RETURN fn::evaluation_complete($evaluation)", evaluation=evaluation))
    except (KeyboardInterrupt, DatabaseError) as error:
        by_user = isinstance(error, KeyboardInterrupt)
        reason = "interrupted" if by_user else str(error)
        raise Interrupted(
            f"{reason}; {record_text(evaluation)} has {board.done} of {board.total} answers, and no run",
            "surrecall evaluate --resume",
            by_user=by_user,
        ) from error
    closed = _closed(database, evaluation, runs)
    unequal = [call.retriever for call in board.calls if not call.agrees]
    warnings = closed.warnings + [
        f"{name}: the engine's two executors gave different lists for the same question" for name in unequal
    ]
    return replace(closed, warnings=warnings)


def _closed(database: Database, evaluation: RecordID, runs: list[dict[str, Any]]) -> Evaluation:
    row, warnings, unanswerable = database.run(_CLOSED, evaluation=evaluation)
    return Evaluation(row, runs, warnings, unanswerable)


@contextmanager
def _fingerprint(database: Database, evaluation: RecordID) -> Iterator[None]:
    """Work out the fingerprint of the corpus, which reads all of it, beside the retrieval where there is a second connection."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with database.another() as other:
                fingerprint(other, evaluation)
        except BaseException as error:  # carried over to the caller's thread
            errors.append(error)

    if database.settings.is_embedded:
        fingerprint(database, evaluation)
        yield
        return
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if errors:
        raise errors[0]


def _draft(connections: list[Database], row: dict[str, Any], stop: threading.Event) -> None:
    """Work out the runs, and leave them with the evaluation; what is missing or changed by then is found when it is closed."""
    names = dict.fromkeys(call["retriever"] for call in row["calls"])
    # one connection reads the answers once for all cutoffs; more share a retriever, and scoring takes longer than reading
    cutoffs = [row["k"]] if len(connections) == 1 else [[k] for k in sorted(row["k"], reverse=True)]
    parts = iter([(name, some) for some in cutoffs for name in names])
    lock = threading.Lock()

    def work(connection: Database) -> None:
        while not stop.is_set():
            with lock:
                part = next(parts, None)
            if part is None:
                return
            asked = {"evaluation": row["id"], "retriever": part[0], "cutoffs": part[1]}
            tallies = [tallied(connection, tally) for tally in connection.value(_TALLIES, **asked)]
            _retried(partial(connection.run, _DRAFT, evaluation=row["id"], tallies=tallies))

    _together(connections, stop, work)


def tallied(database: Database, tally: dict[str, Any]) -> dict[str, Any]:
    """Sums over all answers; what is added up stays in the database's hands and only passes through here."""
    while not tally["done"]:
        tally = database.value(_TALLY, tally=tally, limit=_TALLIED)
    return tally


def _missing(database: Database, evaluation: RecordID) -> list[_Call]:
    rows = database.value("RETURN fn::evaluation_missing($evaluation)", evaluation=evaluation)
    return [_Call(evaluation, row["retriever"], row["depth"], row["questions"]) for row in rows]


@contextmanager
def _connections(database: Database, jobs: int) -> Iterator[list[Database]]:
    """The connection that is there, and as many more as `jobs` asks for; the embedded engine has one."""
    extra = 0 if database.settings.is_embedded else max(0, jobs - 1)
    with ExitStack() as stack:
        yield [database, *(stack.enter_context(database.another()) for _ in range(extra))]


def _together(connections: list[Database], stop: threading.Event, work: Callable[[Database], None]) -> None:
    """Do the same on every connection, each in a thread; the first error stops all and is raised."""
    errors: list[BaseException] = []

    def guarded(connection: Database) -> None:
        try:
            work(connection)
        except BaseException as error:  # carried over to the caller's thread
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=guarded, args=(other,), daemon=True) for other in connections[1:]]
    for thread in threads:
        thread.start()
    guarded(connections[0])
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _answer_all(connections: list[Database], board: _Board) -> None:
    """Work the board off."""

    def work(connection: Database) -> None:
        for call, questions in board.shards():
            began = time.monotonic()
            _answer(connection, call, questions)
            call.learn(len(questions), time.monotonic() - began)
            board.count(len(questions))

    _together(connections, board.stop, work)


def _sample(database: Database, call: _Call) -> int:
    """Answer the first questions on both executors, keep the faster one for the rest; how many were answered.

    The answer of the one that is asked first is stored, the other's is compared with it.
    """
    questions = call.questions[:SAMPLE]
    if len(questions) < SAMPLE or len(call.questions) < 4 * SAMPLE:
        return 0
    seconds: dict[str, list[float]] = {executor: [] for executor in _READ}
    try:
        for index, question in enumerate(questions):
            first, second = order(index)
            equal: list[Any] = []
            for executor, then in ((first, _STORE), (second, _COMPARE)):
                began = time.monotonic()
                equal.append(database.value(_READ[executor] + then, questions=[question], **call.variables))
                seconds[executor].append(time.monotonic() - began)
            call.agrees = call.agrees and bool(equal[-1])
    except SurrecallError as error:
        if error.statement is None:
            raise
        # a question that fails is no sample; the shards find out which
        return 0
    call.executor = faster(seconds)
    call.questions = call.questions[SAMPLE:]
    call.learn(SAMPLE, sum(seconds[call.executor]))
    return SAMPLE


def _answer(database: Database, call: _Call, questions: list[RecordID]) -> None:
    statement = _READ[call.executor] + _STORE
    try:
        _retried(lambda: database.run(statement, questions=questions, **call.variables))
        return
    except SurrecallError as error:
        if error.statement is None:
            raise
    # one question of the shard fails; find it, keep its error as its answer, and the others' answers
    for question in questions:
        try:
            database.run(statement, questions=[question], **call.variables)
        except SurrecallError as error:
            if error.statement is None:
                raise
            database.run(_FAIL, question=question, message=error.text, **call.variables)


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(  # fixed arguments, no shell
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
