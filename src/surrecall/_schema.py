"""Applying the files to a database, all or nothing, and telling where it differs from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from surrecall import _files, _inventory, _retrievers
from surrecall._database import Database
from surrecall._errors import SchemaError, SurrecallError
from surrecall._settings import Settings

_REGISTRY = "SELECT id, position, call, returns, prefix FROM retriever ORDER BY position, id"


@dataclass(frozen=True)
class Applied:
    """What apply did: counts of what is in force now, and whether the dispatcher was generated anew."""

    files: int
    functions: int
    tables: int
    regenerated: bool


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be. `next` is the step that mends it."""

    kind: str
    subject: str
    problem: str
    next: str


def apply(database: Database, project: Path) -> Applied:
    """Define everything in one transaction; twice changes nothing, a failure leaves nothing.

    Raises SchemaError when a file is wrong (named, with its line) or a function or table of ours would replace somebody
    else's (both definitions shown).
    """
    regenerated = regenerate_dispatcher(project)
    files = _files.load(project)
    with scratch(files) as reference:
        wanted = _inventory.functions_and_tables(reference)
    _refuse_clashes(wanted, _inventory.functions_and_tables(database))
    try:
        database.run("BEGIN;\n" + "\n".join(file.text for file in files) + "\nCOMMIT;")
    except SurrecallError as error:
        raise SchemaError(
            f"the database refused the schema, nothing was changed: {error.message}",
            "mend what it names; surrecall check compares the database with the files",
        ) from error
    ours = [definition for definition in wanted.values() if definition.is_ours]
    return Applied(
        files=len(files),
        functions=sum(definition.kind == "function" for definition in ours),
        tables=sum(definition.kind == "table" for definition in ours),
        regenerated=regenerated,
    )


def regenerate_dispatcher(project: Path) -> bool:
    """Make retrieve.surql from retrievers.toml where the two differ; whether it had to be written."""
    folder = _files.corpus_folder(project)
    registry, dispatcher = folder.parent / _files.REGISTRY_FILE, folder.parent / _files.DISPATCHER_FILE
    if not registry.is_file():
        raise SchemaError(f"{registry} is missing", "it lists the retrievers; put it back")
    text = _retrievers.compile_dispatcher(_retrievers.parse(registry.read_text(encoding="utf-8-sig"), str(registry)))
    if dispatcher.is_file() and dispatcher.read_text(encoding="utf-8-sig") == text:
        return False
    try:
        dispatcher.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SchemaError(f"{dispatcher} can't be written: {error}", "make the folder writable") from error
    return True


@contextmanager
def scratch(files: list[_files.SourceFile]) -> Iterator[Database]:
    """An embedded database with the files in it: what they define, in the engine's own words.

    Raises SchemaError with file and line when one of them does not load.
    """
    with Database(Settings(url="mem://")) as reference:
        for file in files:
            try:
                reference.run(file.text)
            except SurrecallError as error:
                where = "" if error.statement is None else f" (statement {error.statement + 1})"
                raise SchemaError(f"surql/{file.name}{where}: {error.message}", "mend the file, then surrecall apply") from error
        yield reference


def drift(database: Database, project: Path) -> list[Finding]:
    """Where the definitions and the registry in force differ from the files."""
    files = _files.load(project)
    with scratch(files) as reference:
        wanted, rows = _inventory.with_parts(reference), reference.value(_REGISTRY)
    there = _inventory.with_parts(database)
    findings = [
        Finding("schema", name, "is missing" if name not in there else "is not what the files define", "surrecall apply")
        for name, definition in wanted.items()
        if name not in there or there[name].text != definition.text
    ]
    findings += [
        Finding("schema", name, "is in the database, and in no file", "remove it, or put its file back")
        for name in there
        if name not in wanted
    ]
    if "table retriever" in there and database.value(_REGISTRY) != rows:
        findings.append(Finding("schema", "table retriever", "holds other retrievers than retrievers.toml", "surrecall apply"))
    return findings


def bundle(project: Path) -> str:
    """All files as one, in the form `surreal import` takes."""
    regenerate_dispatcher(project)
    files = _files.load(project)
    with scratch(files):
        return "OPTION IMPORT;\n\n" + "\n".join(f"-- surql/{file.name}\n{file.text}" for file in files)


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
            f"{ours.name} is taken by a definition that is not surrecall's{others}; nothing was changed\n"
            f"  there: {theirs.text}\n  ours:  {ours.text}",
            "rename or remove yours, or use another database (--db)",
        )
