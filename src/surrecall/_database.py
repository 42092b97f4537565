"""One connection to SurrealDB, whose errors carry the true cause."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from surrealdb import NotAllowedError, Surreal, SurrealError

from surrecall import _names, _quoting
from surrecall._causes import explain
from surrecall._errors import DatabaseError, MissingDatabase, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from surrecall._settings import Settings

# what a statement says when another one of its transaction failed: the symptom, not the cause
_CONSEQUENCE = re.compile(r"not executed due to (a failed|a cancelled) transaction", re.IGNORECASE)
# how the engine introduces the text of a THROW, here, in an event, or in a function below another
_THROWN = re.compile(r"^((Error while processing event \w+: )?An error occurred: )+")
_OLDEST_MAJOR = 3


class Database:
    """A database that is open. Use as a context manager.

    `patience` is how long, in seconds, a server may take to answer for the first time; with `create` false a namespace or
    database that is not there is refused, where the engine would make it.
    Raises DatabaseError when the server can't be reached or refuses the login, UsageError for a user without a password.
    """

    def __init__(self, settings: Settings, patience: float = 0.0, *, create: bool = True, token: str | None = None) -> None:
        self.settings = settings
        self._create = create
        self._token = token
        if settings.user is not None and settings.password is None and not settings.is_embedded:
            raise UsageError(f"no password for {settings.user}", "set SURREAL_PASSWORD, or give --password")
        self._connection: Any = self._connect(time.monotonic() + patience)
        self.version = str(self._connection.version()).removeprefix("surrealdb-")
        if int(self.version.partition(".")[0]) < _OLDEST_MAJOR:
            self.close()
            raise DatabaseError(
                f"{settings.url} runs SurrealDB {self.version}; full-text indexes and rank fusion need 3 or later",
                "start surrealdb/surrealdb:v3.2.4, see docker-compose.yml",
            )

    def another(self) -> Database:
        """A second connection to the same database, with the login of this one: a server takes long over a password."""
        return Database(self.settings, token=self._token)

    def _connect(self, deadline: float) -> Any:
        """Open, sign in, choose the database; until the deadline, try again while nothing answers."""
        settings = self.settings
        while True:
            connection: Any = None
            try:
                connection = Surreal(settings.url)
                connection.connect()
                self._sign_in(connection)
                if not self._create:
                    self._require_there(connection)
                connection.use(settings.namespace, settings.database)
                return connection
            except (SurrealError, OSError) as error:
                if connection is not None:
                    _close(connection)
                if isinstance(error, NotAllowedError):
                    who = f" of {settings.user}" if settings.user else " without a user"
                    raise DatabaseError(
                        f"{settings.url} refuses the login{who}",
                        "check --user and --password, or SURREAL_USER and SURREAL_PASSWORD",
                    ) from error
                if settings.is_embedded or time.monotonic() > deadline:
                    raise DatabaseError(
                        f"no database answers at {settings.url}: {error}", self._unreachable_hint(str(error))
                    ) from error
                time.sleep(0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; twice is fine."""
        _close(self._connection)

    def run(self, statements: str, **variables: Any) -> list[Any]:
        """Run statements of surrecall's with bound variables; one result a statement.

        Raises a SurrecallError with the first true cause; inside BEGIN … COMMIT nothing took effect then, outside the
        statements before it did.
        """
        return self.run_as_written(_names.rename(statements, self.settings.names), **variables)

    def run_as_written(self, statements: str, **variables: Any) -> list[Any]:
        """Run statements that hold a user's own words, in which no name may be changed."""
        try:
            answer: dict[str, Any] = self._connection.query_raw(statements, variables)
        except (SurrealError, OSError) as error:
            raise DatabaseError(
                f"{self.settings.url} stopped answering: {error}", "check that the server runs, then try again"
            ) from error
        if "error" in answer:
            raise explain(str(answer["error"]["message"]).strip())
        results: list[dict[str, Any]] = answer["result"]
        failed = [(index, str(row["result"])) for index, row in enumerate(results) if row["status"] != "OK"]
        if failed:
            causes = [(index, text) for index, text in failed if not _CONSEQUENCE.search(text)]
            index, text = (causes or failed)[0]
            raise explain(_THROWN.sub("", text), index)
        return [row["result"] for row in results]

    @property
    def holds_transactions(self) -> bool:
        """Whether a transaction can stay open over several statements, which only a websocket carries."""
        return self.settings.url.startswith(("ws://", "wss://"))

    @contextmanager
    def undone(self) -> Iterator[Database]:
        """The same database inside a transaction of its own connection that is cancelled in the end, whatever happens.

        A statement that fails ends neither it nor takes back what it had written by then.
        """
        with self.another() as other:
            connection = other._connection
            transaction: UUID = connection.begin()
            inside = copy(other)
            inside._connection = _Transaction(connection, transaction)
            try:
                yield inside
            finally:
                # of a connection that is gone the server cancels what it had begun
                with suppress(SurrealError, OSError):
                    connection.cancel(transaction)

    def table(self, name: str) -> str:
        """The name that a table of surrecall's goes by in this database; `name` is the one it has in surql/core."""
        return self.settings.names.get(name, name)

    def value(self, statements: str, **variables: Any) -> Any:
        """Run statements and give the result of the last one."""
        return self.run(statements, **variables)[-1]

    def notifications(self, table: str, stop: threading.Event) -> Iterator[dict[str, Any]]:
        """What changes in a table of surrecall's, as a server tells it over ws://, until `stop`.

        Raises DatabaseError when the server goes away, or tells nothing (http://, the embedded engine).
        """
        try:
            live = self._connection.live(self.table(table))
            # the blocking client waits a tenth of a second at a time, and gives nothing back before something came
            received = self._connection.subscribe_live(live)
            reader = threading.Thread(target=self._end_with, args=(live, stop), daemon=True)
            reader.start()
            yield from received
        except (SurrealError, OSError, NotImplementedError) as error:
            raise DatabaseError(f"{self.settings.url} tells nothing of {table}: {error}", "check that the server runs") from error

    def _end_with(self, live: Any, stop: threading.Event) -> None:
        """End a live query when it is to stop; its reader then comes to an end too."""
        stop.wait()
        with suppress(SurrealError, OSError):
            self._connection.kill(live)

    def _require_there(self, connection: Any) -> None:
        """Raise MissingDatabase with what there is when namespace or database is not; a user who may not look is let through."""
        settings = self.settings

        def names(statement: str, kind: str) -> list[str] | None:
            answer = connection.query_raw(statement, {}).get("result", [{"status": "ERR"}])[-1]
            return list(answer["result"][kind]) if answer["status"] == "OK" else None

        spaces = names("INFO FOR ROOT", "namespaces")
        if spaces is not None and settings.namespace not in spaces:
            raise MissingDatabase(
                f"{settings.url} has no namespace {settings.namespace}",
                f"--ns names another; there are: {', '.join(spaces) or 'none'}",
            )
        if spaces is None:
            return
        there = names(f"USE NS {_quoting.identifier(settings.namespace)}; INFO FOR NS", "databases")
        if there is not None and settings.database not in there:
            raise MissingDatabase(
                f"{settings.url} has no database {settings.database} in the namespace {settings.namespace}",
                f"--db names another; there are: {', '.join(there) or 'none'}",
            )

    def _sign_in(self, connection: Any) -> None:
        settings = self.settings
        if settings.is_embedded:
            return
        if settings.user is None:
            # without a login a server lets in whoever its capabilities allow; the first statement tells
            return
        if self._token is not None:
            connection.authenticate(self._token)
            return
        login = {"username": settings.user, "password": settings.password or ""}
        # a user is defined on the root, a namespace or a database, and the name does not say which
        levels: list[dict[str, str]] = [
            login,
            login | {"namespace": settings.namespace},
            login | {"namespace": settings.namespace, "database": settings.database},
        ]
        for level in levels:
            try:
                self._token = connection.signin(level).access
            except NotAllowedError:
                if level is levels[-1]:
                    raise
            else:
                return

    def _unreachable_hint(self, reason: str) -> str:
        if "No space left" in reason:
            return "make room on the disk, then try again"
        if self.settings.is_embedded:
            return "a surrealkv folder is held by one process at a time, and must be writable"
        return "start one (docker-compose up -d, or surreal start), or check --url"


class _Transaction:
    """A connection whose statements belong to one transaction."""

    def __init__(self, connection: Any, transaction: UUID) -> None:
        self._connection, self._id = connection, transaction

    def query_raw(self, statements: str, variables: dict[str, Any]) -> Any:
        return self._connection.query_raw(statements, variables, None, self._id)


def _close(connection: Any) -> None:
    try:
        connection.close()
    except (SurrealError, OSError):
        # it is gone already
        return
