"""The errors users see: what was asked, what exists, the next command, and an exit code."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    DATABASE = 3
    DATA = 4
    # what a shell says of a program that Ctrl-C ended
    INTERRUPTED = 130


class SurrecallError(Exception):
    """Base of every error raised on purpose.

    `message` says what was asked and what exists, `hint` the next step; `exit_code` is what the command line ends with.
    `statement` is the index of the statement that the database refused, counted from 0; None when it was no statement.
    """

    exit_code: ExitCode = ExitCode.DATABASE

    def __init__(self, message: str, hint: str | None = None, statement: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.statement = statement

    @property
    def text(self) -> str:
        """Message and hint in one line."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(SurrecallError):
    """The command was given something it can't work with."""

    exit_code = ExitCode.USAGE


class MissingDatabase(UsageError):
    """The server has no such namespace or database."""


class DatabaseError(SurrecallError):
    """The server can't be reached, refuses the login, or refused a statement."""

    exit_code = ExitCode.DATABASE


class SchemaError(SurrecallError):
    """The schema is missing, belongs to somebody else, or differs from the files."""

    exit_code = ExitCode.DATABASE


class DataError(SurrecallError):
    """Questions, labels, vectors or documents are not usable."""

    exit_code = ExitCode.DATA


class GuardError(SurrecallError):
    """A write was refused because a floor would break; nothing of it is stored."""

    exit_code = ExitCode.GATE_FAILED


class EmbeddingError(SurrecallError):
    """A model or its endpoint can't be reached, refuses, or gives something else than vectors."""

    exit_code = ExitCode.DATABASE
