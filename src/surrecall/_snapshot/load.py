"""Loading a snapshot into another database: everything, found equal to where it came from, or nothing."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from surrecall import _inventory, _quoting, _schema
from surrecall._database import Database
from surrecall._errors import DataError, SchemaError, SurrecallError, UsageError
from surrecall._settings import PROJECT_FILE, ProjectFile, read_project_file
from surrecall._snapshot import write
from surrecall._snapshot.form import Block, Kind, Reader

_ANY = "RETURN (SELECT VALUE id FROM type::table($table) LIMIT 1).len() > 0"
_UNFINISHED = "SELECT VALUE id FROM import_log WHERE source = $source AND finished = NONE"
_FINISHED = "UPDATE import_log SET finished = time::now() WHERE source = $source AND finished = NONE RETURN NONE"
_IDS = "SELECT VALUE id FROM type::table($table)"
_DELETE_OTHERS = "OPTION IMPORT; DELETE (SELECT VALUE id FROM type::table($table) WHERE id NOT IN $ids) RETURN NONE"
_DELETE = "DELETE (SELECT VALUE id FROM type::table($table) LIMIT 200) RETURN BEFORE"
_REMOVE = {
    "function": "REMOVE FUNCTION IF EXISTS fn::{0}",
    "analyzer": "REMOVE ANALYZER IF EXISTS {0}",
    "table": "REMOVE TABLE IF EXISTS {0}",
    "field": "REMOVE FIELD IF EXISTS {0} ON {1}",
    "event": "REMOVE EVENT IF EXISTS {0} ON {1}",
    "index": "REMOVE INDEX IF EXISTS {0} ON {1}",
}
# indexes before the analyzers they use, tables before the functions that their fields call
_ORDER = ("index", "event", "field", "table", "analyzer", "function")
# a build that has not moved for as long will not
_STALLED = 60.0
# what a snapshot may write beside surrecall.toml: nothing above the folder, nothing below others
_OWN_FILE = re.compile(r"surql/corpus/(?!\.)[^/\\\x00]+\.(?:surql|toml)")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Loaded:
    """What was loaded, rows and files."""

    documents: int
    questions: int
    golden_sets: int
    files: list[str]
    corpus_hash: str


def load(
    database: Database,
    folder: Path,
    snapshot: Reader,
    *,
    force: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> Loaded:
    """Load a snapshot, and write its project files into a folder that lacks them.

    Raises DataError when the corpus table or the golden set is not empty, or what was loaded is not what the snapshot says;
    SchemaError when a name is taken by another definition; UsageError when the folder has other files (`force` writes over
    them). Whatever fails, what was there before is there again.
    """
    header, files = snapshot.header, snapshot.files()
    _require_names(files)
    new_files = _new_files(folder, files, force=force)
    source = f"snapshot {snapshot.checksum[:16]}"
    tables = [*header.tables, database.table("question")]
    resumed = _is_unfinished(database, source)
    if not resumed:
        _refuse_rows(database, tables)
    with _undone_on_failure(database, tables, resumed=resumed):
        _define(database, [block for block in snapshot.blocks() if block.kind is Kind.DEFINE])
        with _as_project(files) as project:
            _schema.apply(database, project)
        if not resumed:
            row = {"source": source, "documents": header.documents, "questions": header.questions}
            database.run("CREATE import_log CONTENT $row RETURN NONE", row=row)
        _load_rows(database, snapshot, progress, resumed=resumed)
        _refuse_difference(database, snapshot)
        for name in new_files:
            own = _own_database(folder) if name == PROJECT_FILE else ""
            between = "\n" if own and not files[name].endswith("\n") else ""
            _write_file(folder / name, files[name] + between + own)
        database.run(_FINISHED, source=source)
    return Loaded(header.documents, header.questions, len(header.golden_sets), new_files, header.corpus_hash)


@contextmanager
def _as_project(files: dict[str, str]) -> Iterator[Path]:
    """The project files in a folder of their own."""
    with tempfile.TemporaryDirectory() as name:
        for path, text in files.items():
            _write_file(Path(name) / path, text)
        yield Path(name)


def project_settings(snapshot: Reader) -> ProjectFile:
    """What surrecall.toml of a snapshot says; defaults when it has none."""
    with _as_project({name: text for name, text in snapshot.files().items() if name == PROJECT_FILE}) as project:
        return read_project_file(project)


def _new_files(folder: Path, files: dict[str, str], *, force: bool) -> list[str]:
    """The files to write. Raises UsageError when the folder has others of their names, or a project of its own."""
    there = write.project_files(folder)
    if not there.get(PROJECT_FILE, "x").strip():
        # it says where the database is, and nothing else
        del there[PROJECT_FILE]
    other = [name for name, text in there.items() if files.get(name) != text]
    if other and not (force and set(other) <= set(files)):
        lacks = other[0] not in files
        raise UsageError(
            f"{folder / other[0]} {'is not in the snapshot' if lacks else 'differs from the one in the snapshot'}",
            "load it in an empty folder" + ("" if lacks else ", or --force writes over it"),
        )
    return [name for name in files if there.get(name) != files[name]]


def _own_database(folder: Path) -> str:
    """What surrecall.toml of the folder says of the database, which stays."""
    path = folder / PROJECT_FILE
    return write.database_of(path.read_bytes().decode("utf-8-sig")) if path.exists() else ""


def _refuse_rows(database: Database, tables: Sequence[str]) -> None:
    defined = database.value("INFO FOR DB")["tables"]
    for table in tables:
        if table in defined and database.value(_ANY, table=table):
            raise DataError(
                f"{table} of this database holds rows already, nothing was stored", "load it into another database (--db)"
            )


def _is_unfinished(database: Database, source: str) -> bool:
    """Whether this very snapshot was being loaded here and was cut off."""
    log = database.table("import_log")
    return log in database.value("INFO FOR DB")["tables"] and bool(database.value(_UNFINISHED, source=source))


def _define(database: Database, blocks: Sequence[Block]) -> None:
    """Define what is missing. Raises SchemaError when a name is taken by something else."""
    there = _inventory.everything(database)
    for block in blocks:
        text = block.text.removesuffix(";")
        if block.label not in there:
            # the engine makes `vector.*` by itself when it makes `vector`
            database.run_as_written(_overwriting(text))
        elif there[block.label].text != text:
            raise SchemaError(
                f"{block.label} is taken by another definition; nothing was changed\n"
                f"  there:    {there[block.label].text}\n  snapshot: {text}",
                "load the snapshot into another database (--db)",
            )


def _load_rows(database: Database, snapshot: Reader, progress: Progress, *, resumed: bool) -> None:
    """Documents, then their indexes, which are slow to fill a row at a time, then questions."""
    total = snapshot.header.rows
    indexes = [block for block in snapshot.blocks() if block.kind is Kind.INDEX]
    for name, table in map(_index_of, indexes):
        database.run_as_written(f"REMOVE INDEX IF EXISTS {_quoting.identifier(name)} ON {_quoting.identifier(table)}")
    done, built = 0, False
    for block in snapshot.blocks():
        if block.kind is Kind.QUESTIONS and not built:
            _build(database, indexes)
            built = True
        if block.kind is Kind.LABELS:
            _load_labels(database, block, resumed=resumed)
        elif block.kind in (Kind.DOCUMENTS, Kind.QUESTIONS):
            # rows that an earlier load stored stay; IGNORE hides faults too, so it is for these alone
            text = block.text.replace("INSERT INTO", "INSERT IGNORE INTO", 1) if resumed else block.text
            database.run_as_written(text)
            done += block.text.count("\n") - 1
            progress(done, total)
    if not built:
        _build(database, indexes)


def _load_labels(database: Database, block: Block, *, resumed: bool) -> None:
    """Rows of one table about labels; those that an event made as the questions came in give way."""
    seen = block.label == database.table("label_seen")
    ending = " ON DUPLICATE KEY UPDATE hash = $input.hash, since = $input.since, now = $input.now RETURN NONE;"
    text = block.text.removesuffix(" RETURN NONE;") + ending if seen else block.text
    database.run_as_written(text.replace("INSERT INTO", "INSERT IGNORE INTO", 1) if resumed and not seen else text)


def _build(database: Database, indexes: Sequence[Block]) -> None:
    """Define indexes over the rows that are there, in the background, and wait: no query may take long."""
    for block in indexes:
        database.run_as_written(f"{block.text.removesuffix(';')} CONCURRENTLY;")
    seen: list[str] = []
    moved = time.monotonic()
    while True:
        states = [_state(database, *_index_of(block)) for block in indexes]
        if all(status == "ready" for status, _ in states):
            return
        if str(states) != str(seen):
            moved, seen = time.monotonic(), [str(state) for state in states]
        if any(status == "error" for status, _ in states) or time.monotonic() - moved > _STALLED:
            told = ", ".join(f"{block.label}: {state[1]}" for block, state in zip(indexes, states, strict=True))
            raise SchemaError(f"an index could not be built: {told}", "look for a full disk or a fault in the server's log")
        time.sleep(0.05)


def _state(database: Database, name: str, table: str) -> tuple[str, str]:
    statement = f"INFO FOR INDEX {_quoting.identifier(name)} ON {_quoting.identifier(table)}"
    building = database.run_as_written(statement)[0].get("building", {})
    return str(building.get("status", "ready")), str(building)


def _index_of(block: Block) -> tuple[str, str]:
    """Name and table of an index, from its label: `index words of table article`."""
    name, _, table = block.label.removeprefix("index ").rpartition(" of table ")
    return name, table


def _refuse_difference(database: Database, snapshot: Reader) -> None:
    """Compare fingerprints, then every field of every row."""
    header = snapshot.header
    loaded = write.state(database, list(header.tables))
    wanted = {
        "documents": (loaded.tables, header.tables),
        "fn::corpus_hash()": (loaded.corpus_hash, header.corpus_hash),
        "golden sets": (loaded.golden_sets, header.golden_sets),
    }
    for what, (ours, theirs) in wanted.items():
        if ours != theirs:
            versions = f" (it was written by surrecall {header.surrecall} on SurrealDB {header.engine})"
            raise DataError(
                f"what was loaded is not what the snapshot says{versions}; nothing was kept\n  {what}, snapshot: {theirs}\n"
                f"  {what}, here:     {ours}",
                "load it with the surrecall and the SurrealDB that it was written with",
            )

    there = {block.label for block in snapshot.blocks()}
    seen = [table for table in [database.table("label_seen")] if table in there]
    for table in [*header.tables, database.table("question"), *seen]:
        for ours, theirs in zip_longest(write.printed(database, table), snapshot.rows(table), fillvalue="nothing"):
            if ours != theirs:
                raise DataError(
                    f"a row of {table} did not come back as it was; nothing was kept\n"
                    f"  snapshot: {theirs[:500]}\n  here:     {ours[:500]}",
                    "surrecall snapshot again; a value that the engine prints and does not read has to be changed at its source",
                )


@contextmanager
def _undone_on_failure(database: Database, tables: Sequence[str], *, resumed: bool) -> Iterator[None]:
    """Put definitions, registry and rows back as they were when what is done inside fails."""
    before, paths = _inventory.everything(database), _inventory.apis(database)
    registry = database.table("retriever")
    retrievers = database.value("SELECT * FROM retriever") if f"table {registry}" in before else []
    kept = {table: database.value(_IDS, table=table) for table in map(database.table, write.LABELS) if f"table {table}" in before}
    try:
        yield
    except BaseException:
        try:
            # what a load that was cut off had stored stays: loading it again finishes that
            if not resumed:
                _undo(database, before, retrievers, tables)
                for table, ids in kept.items():
                    # some of them are appended only
                    database.run(_DELETE_OTHERS, table=table, ids=ids)
                for path in set(_inventory.apis(database)) - set(paths):
                    database.run_as_written(f"REMOVE API {_quoting.text(path)}")
        except SurrecallError:
            # the database went away; check names the import, and loading the same file again finishes it
            pass
        raise


def _undo(
    database: Database, before: dict[str, _inventory.Definition], retrievers: list[dict[str, Any]], tables: Sequence[str]
) -> None:
    # questions first: a labelled document can't be deleted, and what a label refers to is forgotten only by an ordinary DELETE
    *corpus, questions = tables
    for table, option in [(questions, ""), *((table, "OPTION IMPORT; ") for table in corpus)]:
        if f"table {table}" in before:
            while database.run(option + _DELETE, table=table)[-1]:
                pass
    after = _inventory.everything(database)
    new = [definition for label, definition in after.items() if label not in before]
    for definition in sorted(new, key=lambda definition: (_ORDER.index(definition.kind), not definition.is_view)):
        statement = _REMOVE[definition.kind].format(_quoted(definition), _quoting.identifier(definition.table or ""))
        if definition.table is None or f"table {definition.table}" in before:
            database.run_as_written(statement)
    for label, definition in before.items():
        if label not in after or after[label].text != definition.text:
            database.run_as_written(_overwriting(definition.text))
    if f"table {database.table('retriever')}" in before:
        database.run("DELETE retriever; INSERT INTO retriever $rows RETURN NONE;", rows=retrievers)
    if f"table {database.table('import_log')}" in before:
        database.run("DELETE import_log WHERE finished = NONE AND string::starts_with(source, 'snapshot ')")


def _overwriting(text: str) -> str:
    return re.sub(r"^DEFINE (\w+)", r"DEFINE \1 OVERWRITE", text)


def _quoted(definition: _inventory.Definition) -> str:
    # a function's name has its parts, a field's its path, as the engine prints them
    return definition.name if definition.kind in ("function", "field") else _quoting.identifier(definition.name)


def _require_names(files: dict[str, str]) -> None:
    """Raise DataError when a snapshot would write anything but a project's own files."""
    for name in files:
        if name != PROJECT_FILE and not _OWN_FILE.fullmatch(name):
            raise DataError(
                f"the snapshot holds a file {name!r}, which is none of a project; nothing was loaded",
                "take another snapshot",
            )


def _write_file(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}", "make the folder writable") from error
