"""The application and what every command shares: the connection, the consoles, the way errors end."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from surrecall import _render, _schema, _settings
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import ExitCode, MissingDatabase, SurrecallError, UsageError

app = typer.Typer(
    name="surrecall",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Retrieval evaluation that lives inside SurrealDB. Start with: surrecall demo",
    epilog="Exit codes: 0 fine, 1 a gate failed, 2 usage, 3 server or schema, 4 bad data.",
)

import_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Bring data in.")
app.add_typer(import_app, name="import")

retriever_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Add, list, remove and try retrievers.")
app.add_typer(retriever_app, name="retriever")

export_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Take data out.")
app.add_typer(export_app, name="export")

baseline_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Name evaluations that floors compare with.")
app.add_typer(baseline_app, name="baseline")

chunking_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Register tables that hold documents cut into chunks."
)
app.add_typer(chunking_app, name="chunking")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request instead of tables.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML into this file.")]

# a server that was started a moment ago may not listen yet
_PATIENCE = 3.0

# a bar for a moment's work only flickers
_LONG = 2.0

# far beyond any ranking, and within what the database takes for a number
LARGEST = 1_000_000

_CONNECTION = {
    "url": Annotated[
        str | None,
        typer.Option("--url", help="ws://, http://, surrealkv://folder or mem://; else SURREAL_URL, else surrecall.toml."),
    ],
    "user": Annotated[str | None, typer.Option("--user", help="User; else SURREAL_USER.")],
    "password": Annotated[str | None, typer.Option("--password", help="Password; better in SURREAL_PASSWORD.")],
    "ns": Annotated[str | None, typer.Option("--ns", help="Namespace; else SURREAL_NS, else main.")],
    "db": Annotated[str | None, typer.Option("--db", help="Database; else SURREAL_DB, else main.")],
}


@dataclass(frozen=True)
class Context:
    """What a command works with: the folder it was called in, its settings file, the database where it asked for one."""

    folder: Path
    project: _settings.ProjectFile
    out: Console
    err: Console
    connection: dict[str, str | None]

    def open(self, *, create: bool = False, trial: bool = False, any_corpus: bool = False) -> Database:
        """Open the database that flags, environment or project file name; only `create` makes a folder for a new one.

        Raises SchemaError when it evaluates another table than the project of this folder, unless `any_corpus` says that it may.
        A `trial`, which stores nothing, has an empty database in memory in place of a folder that is not there.
        """
        given = self.connection
        settings = _settings.resolve(
            self.project,
            url=given["url"],
            user=given["user"],
            password=given["password"],
            namespace=given["ns"],
            database=given["db"],
        )
        folder = settings.url.removeprefix("surrealkv://")
        if folder != settings.url and trial and not Path(folder).exists():
            return Database(replace(settings, url="mem://"))
        if folder != settings.url and not create and not Path(folder).exists():
            raise UsageError(f"there is no database in the folder {folder}", "check --url; surrecall apply makes a new one")
        try:
            database = Database(settings, patience=_PATIENCE, create=create or settings.is_embedded)
        except MissingDatabase:
            if not trial:
                raise
            return Database(replace(settings, url="mem://"))
        if self.project.corpus is not None and not any_corpus:
            try:
                _schema.require_corpus(database, self.project.corpus.table)
            except SurrecallError:
                database.close()
                raise
        return database

    def show(self, table: Table | Text) -> None:
        """Print a table; one that needs more columns than there are runs over, since a figure that is cut is another figure."""
        needed = Measurement.get(self.out, self.out.options.update(width=10_000), table).minimum
        if needed > self.out.width:
            # a console prints nothing wider than it is
            width, self.out.width = self.out.width, needed
            self.out.print(table, crop=False, soft_wrap=False)
            self.out.width = width
        else:
            self.out.print(table)

    def warn(self, text: str) -> None:
        """A line on standard error that is no failure."""
        self.err.print(Text("warning: ", style="yellow") + Text(_render.printable(text)), soft_wrap=True)


def command(
    name: str, *, connects: bool = True, group: typer.Typer = app
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command whose first argument is a Context; `connects` adds the connection's options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = list(signature.parameters.values())[1:]
        shared = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for key, annotation in (_CONNECTION if connects else {}).items()
        ]

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            connection = {key: arguments.pop(key, None) for key in _CONNECTION}
            try:
                folder = Path.cwd()
                context = Context(folder, _settings.read_project_file(folder), _console(), _console(stderr=True), connection)
                function(context, **arguments)
            except SurrecallError as error:
                _fail(error)
            except KeyboardInterrupt:
                # what a command had begun it has taken back by now; what could be kept says so itself
                stopped = SurrecallError("interrupted", "run it again; surrecall check says what is unfinished")
                stopped.exit_code = ExitCode.INTERRUPTED
                _fail(stopped)
            except BrokenPipeError:
                # the reader went away (head, less); nothing is wrong
                sys.stderr.close()
                raise typer.Exit(ExitCode.OK) from None

        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own] + shared
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        # the whole first sentence; what is left to the library is cut at 45 characters
        group.command(name, short_help=(function.__doc__ or "").partition("\n")[0])(run)
        return function

    return register


def _console(*, stderr: bool = False) -> Console:
    """A console that shows texts as they are: `question:b:` is an id, and no code of a picture."""
    return Console(stderr=stderr, emoji=False)


@contextmanager
def progress_bar(context: Context, what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left for work over two seconds, on a terminal; gives the function that moves it."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    began = time.monotonic()
    with Progress(*columns, console=context.err, transient=True, disable=not context.err.is_terminal) as bar:
        task = bar.add_task(what, total=None, visible=False)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=time.monotonic() - began > _LONG)

        yield advance


def cutoffs(given: list[str] | None, default: tuple[int, ...], option: str = "k") -> tuple[int, ...]:
    """Numbers of `-k 1,3 -k 5`, ascending, each once. Raises UsageError on anything that is no whole number from 1."""
    parts = [part.strip() for value in given or [] for part in value.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and 0 < int(part) <= LARGEST):
            flag = "-k" if option == "k" else f"--{option}"
            raise UsageError(f"{option} must be a whole number from 1 to {LARGEST}, got {part!r}", f"for example: {flag} 1,3,5")
    return tuple(sorted({int(part) for part in parts})) or default


def corpus_of(context: Context) -> Corpus:
    """The corpus of the project. Raises UsageError where the folder has none."""
    if context.project.corpus is None:
        raise UsageError(
            "surrecall.toml of this folder has no [corpus], so the table is not known",
            "surrecall init --table … --field … --vector … --dimension …",
        )
    return context.project.corpus


def one_form(as_json: bool, markdown: bool) -> None:
    """Raise UsageError where two forms of one output are asked for."""
    if as_json and markdown:
        raise UsageError("--json and --markdown are two forms of one output", "leave one of them out")


def print_counts(context: Context, counts: Mapping[str, int]) -> None:
    """A line for each count that is not zero."""
    for what, count in counts.items():
        if count:
            context.out.print(f"{count} {what}", highlight=False)


def _fail(error: SurrecallError) -> NoReturn:
    console = _console(stderr=True)
    console.print(Text("error: ", style="bold red") + Text(_render.printable(error.message)), soft_wrap=True)
    if error.hint:
        console.print(Text("next: ", style="bold") + Text(_render.printable(error.hint)), soft_wrap=True)
    raise typer.Exit(error.exit_code)


def _show_version(wanted: bool) -> None:
    if wanted:
        Console().print(escape(version("surrecall")))
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Retrieval evaluation that lives inside SurrealDB. Start with: surrecall demo"""
