"""Applying the files to a database, all or nothing, and telling where it differs from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrecall import _files, _floors, _inventory, _names, _quoting, _retrievers, _settings
from surrecall._database import Database
from surrecall._errors import SchemaError, SurrecallError
from surrecall._retry import retried
from surrecall._settings import Settings

_ANY_QUESTION = "RETURN (SELECT VALUE id FROM question LIMIT 1).len() > 0"
# how the comment of fn::corpus_names begins
_NAMES_MARK = "surrecall: {table: of the documents"
_LEFT_ALONE = "is not what surql/corpus defines, and apply leaves it alone"
# whether the view is not what the history gives
_STALE = "RETURN fn::check_trend()"
_LABELLED = re.compile(r"record<([^>|]+)>")
# tables whose rows are made from files, how they are read, and what is said where they differ
_FLOOR_TABLE, _FLOORS = "core/floor/eval_floor.surql", "floors.toml"
_ROWS = {
    "retriever": (
        "SELECT id, position, call, returns, prefix, on_ingest, where, document, stages, reranks, rerank, pool, warning "
        "FROM retriever ORDER BY position, id",
        "holds other retrievers than retrievers.toml",
    ),
    "eval_floor": ("SELECT * FROM eval_floor WHERE file = true ORDER BY id", "holds other floors than floors.toml"),
}


@dataclass(frozen=True)
class Applied:
    """What apply did: counts of what is in force now, and how many definitions are new or changed.

    `rows` are the tables whose rows are made from a file, as far as they hold others now. `regenerated` are the files that were
    made anew, by the name of the one they are made from; `left_alone` are definitions of the user's that differ from the files
    and stay as they are.
    """

    files: int
    functions: int
    tables: int
    changed: int
    rows: list[str]
    regenerated: dict[str, str]
    left_alone: list[Finding]


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be. `next` is the step that mends it."""

    kind: str
    subject: str
    problem: str
    next: str


def apply(database: Database, project: Path, *, leave_out: Sequence[str] = ()) -> Applied:
    """Define everything in one transaction; twice changes nothing, a failure leaves nothing.

    `leave_out` names corpus files, without .surql, that are not loaded this time.

    Raises SchemaError when a file is wrong (named, with its line) or a function or table of ours would replace somebody
    else's (both definitions shown).
    """
    regenerated = regenerate(project)
    files = [file for file in _files.load(project) if Path(file.name).stem not in leave_out]
    with scratch(files) as reference:
        reference_definitions = _inventory.everything(reference)
    wanted = _inventory.of_kind(reference_definitions, "function", "table")
    _require_written_names(project)
    require_corpus(database, None, _names.of_project(project))
    before = _inventory.everything(database)
    rows_before = _rows(database, before)
    _refuse_another_corpus(database, reference_definitions, before)
    _refuse_clashes(wanted, before)
    # an index over rows that are there is built outside the transaction, where an analyzer of the transaction does not exist yet
    early = [found for name, found in _inventory.of_kind(reference_definitions, "analyzer").items() if name not in before]
    for analyzer in early:
        database.run_as_written(analyzer.text.replace("DEFINE ANALYZER", "DEFINE ANALYZER IF NOT EXISTS", 1))
    try:
        # two at once meet on the same definitions, and one gets a conflict
        retried(lambda: database.run_as_written(f"BEGIN;\n{_files.joined(files)}\nCOMMIT;"))
    except SurrecallError as error:
        for analyzer in early:
            database.run(f"REMOVE ANALYZER IF EXISTS {_quoting.identifier(analyzer.name)}")
        raise SchemaError(
            f"the database refused the schema, nothing was changed: {error.message}",
            error.hint or "mend what it names; surrecall check compares the database with the files",
        ) from error
    after = _inventory.everything(database)
    if _renew_views(database, files, wanted, after):
        after = _inventory.everything(database)
    ours = [definition for definition in wanted.values() if definition.is_ours]
    return Applied(
        files=len(files),
        functions=sum(definition.kind == "function" for definition in ours),
        tables=sum(definition.kind == "table" for definition in ours),
        changed=sum(label not in before or before[label].text != found.text for label, found in after.items()),
        rows=[table for table, rows in _rows(database, after).items() if rows_before.get(table, []) != rows],
        regenerated=regenerated,
        left_alone=[found for found in _differences(reference_definitions, after) if found.problem == _LEFT_ALONE],
    )


def _rows(database: Database, there: dict[str, _inventory.Definition]) -> dict[str, list[Any]]:
    """What the tables hold whose rows are made from files, of those that are there."""
    return {
        table: database.value(statement) for table, (statement, _) in _ROWS.items() if f"table {database.table(table)}" in there
    }


def _renew_views(
    database: Database,
    files: Sequence[_files.SourceFile],
    wanted: dict[str, _inventory.Definition],
    there: dict[str, _inventory.Definition],
) -> bool:
    """Make a view anew that is not what its file defines, or not what its rows give; whether there was one.

    The engine can't replace a view that holds rows, nor remove and define it in one transaction. Nothing is lost in between: it
    is worked out from rows that stay.
    """
    renewed = False
    for label, view in wanted.items():
        if view.is_ours and view.is_view:
            stale = there[label].text != view.text or database.value(_STALE)
            text = next(file.text for file in files if f"DEFINE TABLE IF NOT EXISTS {view.name} " in file.text)
            if stale:
                database.run_as_written(f"REMOVE TABLE {_quoting.identifier(view.name)}; {text}")
                renewed = True
    return renewed


def _require_written_names(project: Path) -> None:
    """Raise SchemaError when surql/corpus was written for other names than surrecall.toml has now."""
    path = _files.corpus_folder(project) / "corpus_names.surql"
    line = re.search(r"names: \[(.*)\]", _files.read(path)) if path.is_file() else None
    written = re.findall(r"'([^']*)'", line[1]) if line else []
    if written != _names.told(_names.of_project(project)):
        raise SchemaError(
            f"surql/corpus was written for the names {', '.join(written) or 'of surrecall itself'}, and [names] of "
            f"{_names.PROJECT_FILE} says others",
            "put [names] back; for other names: surrecall remove, then init --rename … --force, which writes the files anew",
        )


def regenerate(project: Path) -> dict[str, str]:
    """Make retrieve.surql and floors.surql anew where their .toml says something else; what was written, by the name of that."""
    written = {}
    for source, made, text in _generated(project):
        if made.is_file() and _files.read(made) == text:
            continue
        try:
            made.write_text(text, encoding="utf-8")
        except OSError as error:
            raise SchemaError(f"{made} can't be written: {error}", "make the folder writable") from error
        written[source] = made.name
    return written


def _generated(project: Path) -> Iterator[tuple[str, Path, str]]:
    """The files that are made from others: the name of the source, the file, and the text that belongs into it."""
    folder = _files.corpus_folder(project).parent
    names = _names.of_project(project)
    registry = folder / _files.REGISTRY_FILE
    if not registry.is_file():
        raise SchemaError(f"{registry} is missing", "it lists the retrievers; put it back")
    retrievers = _retrievers.parse(_files.read(registry), str(registry))
    yield registry.name, folder / _files.DISPATCHER_FILE, _retrievers.compile_dispatcher(retrievers, names)
    floors, rows = folder / _files.FLOORS_FILE, folder / _files.FLOOR_ROWS_FILE
    # a project from before there were floors has neither; a file that was removed takes its floors along
    if floors.is_file() or rows.is_file():
        known = _floors.Known(
            [retriever.name for retriever in retrievers], _files.metrics(), max(_settings.read_project_file(project).cutoffs)
        )
        found = _floors.parse(_files.read(floors), known, str(floors)) if floors.is_file() else []
        yield floors.name, rows, _floors.compile_rows(found, names)


@contextmanager
def scratch(files: list[_files.SourceFile], names: _names.Names | None = None) -> Iterator[Database]:
    """An embedded database with the files in it: what they define, in the engine's own words; `names` are those of the project.

    Raises SchemaError with file and line when one of them does not load.
    """
    with Database(Settings(url="mem://", names=names or {})) as reference:
        try:
            reference.run_as_written(f"BEGIN;\n{_files.joined(files)}\nCOMMIT;")
        except SurrecallError:
            # nothing of it is there; which file it was shows one by one
            one_by_one = files
        else:
            one_by_one = []
        for file in one_by_one:
            try:
                reference.run_as_written(file.text)
            except SurrecallError as error:
                where = "" if error.statement is None else f" (statement {error.statement + 1})"
                made = {_files.DISPATCHER_FILE: "a call in retrievers.toml", _files.FLOOR_ROWS_FILE: "floors.toml"}.get(file.name)
                mend = f"{made}, which it is made from" if made else "the file"
                raise SchemaError(f"surql/{file.name}{where}: {error.message}", f"mend {mend}, then surrecall apply") from error
        yield reference


def drift(database: Database, project: Path) -> list[Finding]:
    """Where the definitions and the registry in force differ from the files; apply mends what is ours, never what is yours."""
    findings = []
    for source, made, text in _generated(project):
        if not made.is_file() or _files.read(made) != text:
            findings.append(Finding("schema", source, f"changed since {made.name} was made from it", "surrecall apply"))
    files = _files.load(project)
    with scratch(files, _names.of_project(project)) as reference:
        wanted = _inventory.everything(reference)
        rows = {table: reference.value(statement) for table, (statement, _) in _ROWS.items()}
    there = _inventory.everything(database)
    if not any(found.is_ours for found in there.values()):
        return [Finding("schema", "surrecall", "is not in this database", "surrecall apply")]
    findings += _differences(wanted, there)
    for table, (statement, problem) in _ROWS.items():
        label = f"table {database.table(table)}"
        if label in there and database.value(statement) != rows[table]:
            findings.append(Finding("schema", label, problem, "surrecall apply"))
    return findings


def require_floors(database: Database, project: Path) -> None:
    """Raise SchemaError where the database has other floors than floors.toml of the project; one without the file has its own."""
    if not (project / "surql" / _files.FLOORS_FILE).is_file():
        return
    names = _names.of_project(project)
    table = [file for file in _files.core(names) if file.name == _FLOOR_TABLE]
    rows = [_files.SourceFile(made.name, text) for source, made, text in _generated(project) if source == _FLOORS]
    statement, _ = _ROWS["eval_floor"]
    with scratch([*table, *rows], names) as reference:
        wanted = reference.value(statement)
    if database.value(statement) != wanted:
        raise SchemaError(f"floors.toml has other floors than {database.settings.label}", "surrecall apply brings them in")


def _differences(wanted: dict[str, _inventory.Definition], there: dict[str, _inventory.Definition]) -> list[Finding]:
    """Definitions that are missing, differ, or stand in no file."""
    findings: list[Finding] = []
    our_tables = {found.name for found in wanted.values() if found.kind == "table" and found.is_ours}
    # an index over chunks takes long to build, so apply makes none anew
    chunks = {found.name for found in wanted.values() if found.is_chunks}
    for label, definition in wanted.items():
        kept = definition.kind == "index" and definition.table in chunks
        ours = definition.is_ours or (definition.table in our_tables and not kept)
        if label not in there:
            findings.append(Finding("schema", label, "is missing", "surrecall apply"))
        elif there[label].text != definition.text and ours:
            findings.append(Finding("schema", label, "is not what the files define", "surrecall apply"))
        elif there[label].text != definition.text and definition.removal is not None:
            step = f"{'; '.join(_removals(definition, there))}; then surrecall apply, or change the file"
            findings.append(Finding("schema", label, _LEFT_ALONE, step))
    findings += [
        Finding("schema", label, "is in the database, and in no file", "remove it, or put its file back")
        for label, found in there.items()
        if label not in wanted and (found.is_marked or found.table in our_tables) and not found.is_watch
    ]
    return findings


def _removals(definition: _inventory.Definition, there: dict[str, _inventory.Definition]) -> list[str]:
    """The statements that make way for a definition; an analyzer goes only after the indexes that use it."""
    users = [
        found.removal
        for found in there.values()
        if definition.kind == "analyzer" and found.kind == "index" and f" ANALYZER {definition.name} " in found.text
    ]
    return [statement for statement in [*users, definition.removal] if statement]


def bundle(project: Path) -> str:
    """All files as one, in the form `surreal import` takes."""
    regenerate(project)
    files = _files.load(project)
    with scratch(files):
        return f"OPTION IMPORT;\n\n{_files.joined(files)}"


def _refuse_clashes(wanted: dict[str, _inventory.Definition], there: dict[str, _inventory.Definition]) -> None:
    clashes = [
        (definition, there[name])
        for name, definition in wanted.items()
        if definition.is_ours and name in there and not there[name].is_ours
    ]
    if clashes:
        ours, theirs = clashes[0]
        others = f" (and {len(clashes) - 1} more)" if len(clashes) > 1 else ""
        raise SchemaError(
            f"{ours.label} is taken by a definition that is not surrecall's{others}; nothing was changed\n"
            f"  there: {theirs.text}\n  ours:  {ours.text}",
            "rename or remove yours, or use another database (--db)",
        )


def require_corpus(database: Database, table: str | None, names: _names.Names | None = None) -> None:
    """Raise SchemaError when the database evaluates another table, or has surrecall under other names than this project.

    Figures would be of that table, labels be refused, and each project would take the other's functions over. `names` are those
    of the connection where none are given.
    """
    names = database.settings.names if names is None else names
    # by its comment, since it may go by another name itself
    functions = database.run_as_written("INFO FOR DB STRUCTURE")[0]["functions"]
    for name in (one["name"] for one in functions if str(one.get("comment") or "").startswith(_NAMES_MARK)):
        there = database.run_as_written(f"RETURN fn::{name}()")[0]
        if there["names"] != _names.told(names):
            raise SchemaError(
                f"{database.settings.label} has surrecall under other names ({', '.join(there['names']) or 'its own'}) than "
                f"[names] of {_names.PROJECT_FILE} says ({', '.join(_names.told(names)) or 'none'})",
                "call it in the project of that database; for other names: surrecall remove there, then init --rename anew",
            )
        if table is not None and there["table"] != table and database.value(_ANY_QUESTION):
            raise SchemaError(
                f"{database.settings.label} evaluates {there['table']}, and its questions are labelled with it; "
                f"this project is for {table}",
                "one database evaluates one table: use another (--db), or call surrecall in the project of this one",
            )


def _refuse_another_corpus(
    database: Database, wanted: dict[str, _inventory.Definition], there: dict[str, _inventory.Definition]
) -> None:
    """One database evaluates one corpus: questions whose labels are of another table would lose them."""
    labels = f"field relevant of table {database.table('question')}"
    fields = [definitions.get(labels) for definitions in (there, wanted)]
    found = [_LABELLED.search(field.text) if field else None for field in fields]
    theirs, ours = (match[1] if match else None for match in found)
    if theirs and ours and theirs != ours and database.value(_ANY_QUESTION):
        raise SchemaError(
            f"this database evaluates {theirs}, and its questions are labelled with it; this project is for {ours}",
            "use another database (--db), or call surrecall in the project of this one",
        )
