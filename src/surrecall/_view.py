"""The retrievers as a user of the database sees them, under its permissions, beside the full view.

Retrieval runs on a connection that is signed in as that user; what came back is stored by the connection of whoever called,
since a user of the application may neither read the golden set nor write history.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from surrealdb import RecordID, Surreal, SurrealError
from surrealdb.connections.blocking_ws import BlockingSurrealSession, BlockingWsSurrealConnection

from surrecall import _evaluation, _executors
from surrecall._database import Database
from surrecall._errors import DatabaseError, SurrecallError, UsageError
from surrecall._evaluation import Evaluation, Interrupted, Progress
from surrecall._executors import CLOSURE, SAMPLE, STREAMING
from surrecall._retry import retried

VARIABLE = "SURRECALL_AS"
_FORMS = "record:ACCESS (a user of the application), user:NAME (one of the database), token"
_WHO = "RETURN { who: fn::viewer(), documents: fn::visible_documents() }"
_BEGIN = "RETURN fn::view_begin($options)"
# one form for each executor; the questions come with the call, since the user may not read them
_ASK = {
    STREAMING: "fn::require_indexes(); SELECT VALUE fn::view_answer($retriever, $this, $depth) FROM $questions",
    CLOSURE: "fn::require_indexes(); RETURN $questions.map(|$one| fn::view_answer($retriever, $one, $depth))",
}
_QUESTIONS = "SELECT * FROM $ids"
_STORE = "fn::view_store($evaluation, $retriever, $depth, $answers)"
_ROW = "RETURN fn::view_row($evaluation, $retriever, $k)"
_HIDDEN = "RETURN fn::view_hidden($evaluation)"
_WARNINGS = "RETURN fn::view_warnings($evaluation, $rows)"
_ACCESSES = "RETURN object::keys((INFO FOR DB).accesses)"
_SHARD_SECONDS, _FIRST_SHARD, _LARGEST_SHARD = 1.0, 4, 100


@dataclass(frozen=True)
class Login:
    """How a user signs in: `kind` is record, user or token, `name` the access method or the user, `secret` what it signs in with.

    The secret is no part of a repr, a message or a record.
    """

    kind: str
    name: str
    secret: Any = field(repr=False)

    @property
    def label(self) -> str:
        """For messages."""
        return "the token" if self.kind == "token" else f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class View:
    """What a user sees: its evaluation and the full view's, rows of fn::view_row, and the labels it can't see by question."""

    by: str
    documents: int
    full: Evaluation
    evaluation: Evaluation
    rows: list[dict[str, Any]]
    hidden: list[dict[str, Any]]
    warnings: list[str]

    @property
    def failed(self) -> bool:
        """Whether an answer of either is an error."""
        return self.full.failed or self.evaluation.failed


def login(given: str, file: Path | None) -> Login:
    """Who --as names, with its secret from a file or the environment. Raises UsageError for what can't be a login."""
    kind, colon, name = given.partition(":")
    if (kind, bool(colon)) not in (("record", True), ("user", True), ("token", False)) or bool(name) is not bool(colon):
        raise UsageError(f"--as {given.partition(':')[0]!r} names nobody", f"one of {_FORMS}")
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise UsageError(f"--as-file {file} can't be read: {reason}", "a file of what the user signs in with") from error
        where = str(file)
    else:
        text, where = os.environ.get(VARIABLE, ""), VARIABLE
    if not text.strip():
        wanted = {"record": "an object of what SIGNIN takes", "user": "the password", "token": "the token"}[kind]
        raise UsageError(f"{where} holds nothing to sign in with", f"{wanted} belongs into {VARIABLE}, or a file (--as-file)")
    if kind != "record":
        return Login(kind, name, text.strip() if kind == "token" else text.rstrip("\r\n"))
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        values = None
    if not isinstance(values, dict):
        # what it holds is a secret, and not shown
        raise UsageError(f"{where} holds no JSON object", f"what SIGNIN of {name} takes, such as email and password")
    return Login(kind, name, values)


@contextmanager
def opened(database: Database, who: Login) -> Iterator[Database]:
    """A connection to the same database with the rights of a user. Raises DatabaseError when it is refused."""
    other = _Viewer(database, who)
    try:
        yield other
    finally:
        other.close()


class _Viewer(Database):
    """A connection that is signed in as somebody else. On the embedded engine it is a second session of the one that is open."""

    def __init__(self, owner: Database, who: Login) -> None:
        self.settings = owner.settings
        self.version = owner.version
        self._connection = self._opened(owner)
        try:
            self._sign(owner, who)
            self._connection.use(self.settings.namespace, self.settings.database)
        except BaseException:
            self.close()
            raise

    def _opened(self, owner: Database) -> Any:
        engine = owner._connection
        try:
            if self.settings.is_embedded:
                # the engine has sessions, though the SDK's wrapper of it says that it has none
                return BlockingSurrealSession(engine, BlockingWsSurrealConnection.attach(engine))
            connection = Surreal(self.settings.url)
            connection.connect()
        except (SurrealError, OSError) as error:
            raise DatabaseError(f"{self.settings.url} takes no second connection: {error}", "try again") from error
        return connection

    def _sign(self, owner: Database, who: Login) -> None:
        place = {"namespace": self.settings.namespace, "database": self.settings.database}
        try:
            if who.kind == "token":
                self._connection.authenticate(who.secret)
            elif who.kind == "record":
                self._connection.signin({**place, "access": who.name, "variables": who.secret})
            else:
                self._sign_in_user({"username": who.name, "password": who.secret}, place)
        except (SurrealError, OSError, ValueError):
            # its text may repeat what was signed in with: a SIGNIN clause can THROW anything
            raise DatabaseError(f"{self.settings.url} refuses to sign in {who.label}", _refused(owner, who)) from None

    def _sign_in_user(self, user: dict[str, Any], place: dict[str, str]) -> None:
        levels = [{**user, **place}, {**user, "namespace": place["namespace"]}, user]
        for level in levels:
            try:
                self._connection.signin(level)
            except SurrealError:
                if level is levels[-1]:
                    raise
            else:
                return

    def close(self) -> None:
        """End the session; the engine of an embedded database stays open."""
        if self.settings.is_embedded:
            with suppress(SurrealError, OSError):
                BlockingWsSurrealConnection.detach(self._connection._connection, self._connection._session_id)
            return
        super().close()

    def another(self) -> Database:
        """Refused: there is one connection a login, and what needs a second is done as the owner."""
        raise DatabaseError("a login has one connection", "what needs a second one is the owner's to do")


def _refused(owner: Database, who: Login) -> str:
    if who.kind == "record":
        there: list[str] = owner.value(_ACCESSES)
        if who.name not in there:
            return f"no access method of the database has that name; there are: {', '.join(there) or 'none'}"
    return f"check what {VARIABLE} or --as-file holds"


def view(database: Database, who: Login, options: _evaluation.Options, *, jobs: int, progress: Progress) -> View:
    """Evaluate in the full view, then as a user, and set the two beside each other.

    Raises DatabaseError before anything is stored when the user can't sign in; cut off, the view of the user leaves nothing, and
    the evaluation of the full view stays.
    """
    with opened(database, who) as user:
        told = user.value(_WHO)
        full = _evaluation.evaluate(database, options, jobs=jobs, progress=progress)
        asked = {**told["who"], "documents": told["documents"], "beside": full.row["id"]}
        row = database.value(_BEGIN, options=asked)
        try:
            _answer_all(database, user, full.row, row, progress)
            evaluation = _evaluation.finish(database, row)
        except BaseException as error:
            with suppress(SurrecallError):
                _evaluation.discard(database, row["id"])
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(
                    "interrupted; the full view is kept, of the user's nothing", "surrecall evaluate --as …", by_user=True
                ) from error
            raise
    return read(database, full, evaluation)


def read(database: Database, full: Evaluation, evaluation: Evaluation) -> View:
    """What the two evaluations say beside each other."""
    seen = evaluation.row["seen"]
    names = dict.fromkeys(call["retriever"] for call in full.row["calls"])
    asked = [{"evaluation": evaluation.row["id"], "retriever": name, "k": k} for name in names for k in full.row["k"]]
    rows = [database.value(_ROW, **one) for one in asked]
    hidden = database.value(_HIDDEN, evaluation=evaluation.row["id"])
    said = database.value(_WARNINGS, evaluation=evaluation.row["id"], rows=rows)
    return View(seen["by"], seen["documents"], full, evaluation, rows, hidden, said)


def _answer_all(database: Database, user: Database, full: dict[str, Any], row: dict[str, Any], progress: Progress) -> None:
    """Put every question to every retriever as the user, and store what came back."""
    ids: list[RecordID] = row["questions"]
    done, total = 0, len(ids) * len(full["calls"])
    for call in full["calls"]:
        asked = _Asked(user, call["retriever"], call["depth"])
        rest = list(ids)
        while rest:
            shard, rest = rest[: asked.shard], rest[asked.shard :]
            questions = database.value(_QUESTIONS, ids=shard)
            stored = {"evaluation": row["id"], "retriever": asked.retriever, "depth": asked.depth}
            retried(partial(database.run, _STORE, answers=asked.answers(questions), **stored))
            done += len(shard)
            progress(done, total)


@dataclass
class _Asked:
    """One retriever, asked as a user: the executor that was faster for the first questions, and how many fit into a second."""

    user: Database
    retriever: str
    depth: int
    executor: str = STREAMING
    shard: int = _FIRST_SHARD
    tried: bool = False

    def answers(self, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        if not self.tried:
            self.tried = True
            self._choose(questions[:SAMPLE])
        began = time.monotonic()
        found = self._together(questions)
        wanted = int(len(questions) * _SHARD_SECONDS / max(time.monotonic() - began, 1e-6))
        self.shard = max(1, min(_LARGEST_SHARD, wanted, self.shard * 4))
        return found

    def _choose(self, questions: Sequence[dict[str, Any]]) -> None:
        seconds: dict[str, list[float]] = {executor: [] for executor in _ASK}
        try:
            for index, question in enumerate(questions):
                for executor in _executors.order(index):
                    began = time.monotonic()
                    self._ask(executor, [question])
                    seconds[executor].append(time.monotonic() - began)
        except SurrecallError as error:
            if error.statement is None:
                raise
            return
        self.executor = _executors.faster(seconds)

    def _ask(self, executor: str, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.user.value(
            _ASK[executor], retriever=self.retriever, depth=self.depth, questions=list(questions)
        )
        return found

    def _together(self, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            return self._ask(self.executor, questions)
        except SurrecallError as error:
            if error.statement is None:
                raise
        # one of them fails: its error is its answer
        found = []
        for question in questions:
            try:
                found += self._ask(self.executor, [question])
            except SurrecallError as error:
                if error.statement is None:
                    raise
                found.append({"question": question["id"], "ranking": [], "message": error.text})
        return found
