"""One connection to SurrealDB, whose errors carry the true cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

from surrealdb import NotAllowedError, Surreal, SurrealError

from surrecall._errors import DatabaseError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from surrecall._settings import Settings

# what a statement says when another one of its transaction failed: the symptom, not the cause
_CONSEQUENCE = re.compile(r"not executed due to (a failed|a cancelled) transaction", re.IGNORECASE)
_THROWN = "An error occurred: "
_OLDEST_MAJOR = 3


class Database:
    """A database that is open. Use as a context manager.

    Raises DatabaseError when the server can't be reached or refuses the login, or a statement fails.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        try:
            self._connection: Any = Surreal(settings.url)
            self._connection.connect()
        except SurrealError as error:
            raise DatabaseError(f"no database answers at {settings.url}: {error}", self._unreachable_hint()) from error
        except OSError as error:
            raise DatabaseError(f"no database answers at {settings.url}: {error}", self._unreachable_hint()) from error
        try:
            self._sign_in()
            self.version = str(self._connection.version()).removeprefix("surrealdb-")
            self._connection.use(settings.namespace, settings.database)
        except SurrealError as error:
            self.close()
            if isinstance(error, NotAllowedError):
                raise DatabaseError(
                    f"{settings.url} refuses the login" + (f" of {settings.user}" if settings.user else " without a user"),
                    "check --user and --password, or SURREAL_USER and SURREAL_PASSWORD",
                ) from error
            raise DatabaseError(f"no database answers at {settings.url}: {error}", self._unreachable_hint()) from error
        except BaseException:
            self.close()
            raise
        if int(self.version.partition(".")[0]) < _OLDEST_MAJOR:
            self.close()
            raise DatabaseError(
                f"{settings.url} runs SurrealDB {self.version}; full-text indexes and rank fusion need 3 or later",
                "start surrealdb/surrealdb:v3.2.4, see docker-compose.yml",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; twice is fine."""
        try:
            self._connection.close()
        except (SurrealError, OSError):
            return

    def run(self, statements: str, **variables: Any) -> list[Any]:
        """Run statements with bound variables; one result a statement.

        Raises DatabaseError with the first true cause; inside BEGIN … COMMIT nothing took effect then, outside the
        statements before it did.
        """
        try:
            answer: dict[str, Any] = self._connection.query_raw(statements, variables)
        except (SurrealError, OSError) as error:
            raise DatabaseError(
                f"{self.settings.url} stopped answering: {error}", "check that the server runs, then try again"
            ) from error
        if "error" in answer:
            raise DatabaseError(str(answer["error"]["message"]).strip())
        results: list[dict[str, Any]] = answer["result"]
        failed = [(index, str(row["result"])) for index, row in enumerate(results) if row["status"] != "OK"]
        if failed:
            causes = [(index, text) for index, text in failed if not _CONSEQUENCE.search(text)]
            index, text = (causes or failed)[0]
            raise DatabaseError(text.replace(_THROWN, ""), statement=index)
        return [row["result"] for row in results]

    def value(self, statements: str, **variables: Any) -> Any:
        """Run statements and give the result of the last one."""
        return self.run(statements, **variables)[-1]

    def _sign_in(self) -> None:
        settings = self.settings
        if settings.is_embedded:
            return
        if settings.user is None:
            # without a login a server lets in whoever its capabilities allow; the first statement tells
            return
        if settings.password is None:
            raise UsageError(f"no password for {settings.user}", "set SURREAL_PASSWORD, or give --password")
        login = {"username": settings.user, "password": settings.password}
        # a user is defined on the root, a namespace or a database, and the name does not say which
        levels: list[dict[str, str]] = [
            login,
            login | {"namespace": settings.namespace},
            login | {"namespace": settings.namespace, "database": settings.database},
        ]
        for level in levels:
            try:
                self._connection.signin(level)
            except NotAllowedError:
                if level is levels[-1]:
                    raise
            else:
                return

    def _unreachable_hint(self) -> str:
        if self.settings.is_embedded:
            return "a surrealkv folder is held by one process at a time, and must be writable"
        return "start one (docker-compose up -d, or surreal start), or check --url"
