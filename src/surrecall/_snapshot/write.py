"""Writing a snapshot. Every value is printed by the engine itself, so it comes back as it was."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from surrecall import _fingerprint, _inventory, _quoting
from surrecall._database import Database
from surrecall._errors import DataError, SchemaError
from surrecall._export import source
from surrecall._export.output import Lines
from surrecall._export.pages import pages
from surrecall._settings import PROJECT_FILE
from surrecall._snapshot.form import Header, Kind, Writer

_SETS = "SELECT set, count() AS questions FROM question GROUP BY set ORDER BY set"
_RETURNED = "SELECT VALUE returns FROM retriever GROUP BY returns ORDER BY returns"
_DATABASE = re.compile(r"^\[database\][^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*", re.MULTILINE)
# what is known of labels beside the questions: what they were given for, who changed and judged them, what was held out and seen
LABELS = ("golden_set", "label_seen", "label_change", "judgement", "heldout_look")
# worked out when it is read
_STALE = "stale"
_OF_TABLES = ("table", "field", "event")


def write(
    database: Database, folder: Path, tables: Sequence[str], lines: Lines, progress: source.Progress = source.silent
) -> Header:
    """Write the corpus tables, every golden set with what is known of its labels, what defines them, and the project's files.

    Raises DataError when it changed while it was read.
    """
    header = state(database, tables)
    done, total = itertools.count(1), header.rows

    def told() -> None:
        progress(next(done), total)

    writer = Writer(lines, header)
    for name, text in project_files(folder).items():
        writer.file(name, text)
    definitions = theirs(database, tables)
    for definition in definitions:
        if definition.kind != "index":
            writer.block(Kind.DEFINE, definition.label, f"{definition.text};")
    for table in tables:
        head = f"OPTION IMPORT; INSERT INTO {_quoting.identifier(table)}"
        writer.rows(Kind.DOCUMENTS, table, head, printed(database, table, told))
    for definition in definitions:
        if definition.kind == "index":
            writer.block(Kind.INDEX, definition.label, f"{definition.text};")
    questions = database.table("question")
    writer.rows(Kind.QUESTIONS, questions, f"INSERT INTO {_quoting.identifier(questions)}", printed(database, questions, told))
    for table in map(database.table, LABELS):
        writer.rows(Kind.LABELS, table, f"INSERT INTO {_quoting.identifier(table)}", printed(database, table))
    writer.end()
    if state(database, tables) != header:
        raise DataError("documents or questions changed while they were read", "surrecall snapshot again, while nobody writes")
    return header


def tables_of(database: Database, corpus: source.Source) -> list[str]:
    """The tables of a snapshot: the corpus, its vectors where they are apart, and what else retrievers give, such as chunks."""
    returned = database.value(_RETURNED)
    there = database.value("INFO FOR DB")["tables"]
    # how chunks were made goes with them
    chunking = database.table("chunking")
    chunked = [chunking] if chunking in there and source.count(database, chunking) else []
    return list(dict.fromkeys([*corpus.tables, *(table for table in returned if table in there), *chunked]))


def state(database: Database, tables: Sequence[str]) -> Header:
    """What a database holds of these tables, and of golden sets."""
    sets = {
        row["set"]: {"questions": row["questions"], "hash": database.value("RETURN fn::golden_set_hash($name)", name=row["set"])}
        for row in database.value(_SETS)
    }
    return Header(
        surrecall=version("surrecall"),
        engine=database.version,
        tables={table: source.count(database, table) for table in tables},
        corpus_hash=_fingerprint.corpus_hash(database),
        golden_sets=sets,
    )


def theirs(database: Database, tables: Sequence[str]) -> list[_inventory.Definition]:
    """The definitions that are not surrecall's: functions, analyzers, and the tables with their fields, events and indexes."""
    found = list(_inventory.everything(database).values())
    top = [definition for definition in found if definition.kind in ("function", "analyzer") and not definition.is_ours]
    of_tables = [
        definition
        for table in tables
        for kind in (*_OF_TABLES, "index")
        for definition in found
        if definition.kind == kind and (definition.table or definition.name) == table
    ]
    return sorted(top, key=lambda definition: definition.label) + of_tables


def project_files(folder: Path) -> dict[str, str]:
    """surrecall.toml without its database, and surql/corpus, text by name; none in a folder without them."""
    own = folder / "surql" / "corpus"
    paths = sorted(path for path in own.rglob("*") if path.suffix in (".surql", ".toml")) if own.is_dir() else []
    found = {path.relative_to(folder).as_posix(): _exactly(path) for path in paths}
    settings = folder / PROJECT_FILE
    return ({PROJECT_FILE: without_database(_exactly(settings))} if settings.is_file() else {}) | found


def database_of(text: str) -> str:
    """[database] of a surrecall.toml, as it stands there; empty without."""
    found = _DATABASE.search(text)
    return found[0] if found else ""


def without_database(text: str) -> str:
    """surrecall.toml without [database], which is where one corpus is and another will not be."""
    kept = _DATABASE.sub("", text)
    if tomllib.loads(kept) != {key: value for key, value in tomllib.loads(text).items() if key != "database"}:
        raise DataError(f"[database] of {PROJECT_FILE} can't be told from the rest", "write it as a table of its own, at the end")
    return kept


def _exactly(path: Path) -> str:
    """A text file, line ends and all."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{path} can't be read: {error}", "save it as UTF-8 text") from error


def printed(database: Database, table: str, told: Callable[[], None] = lambda: None) -> Iterator[str]:
    """The rows of a table in id order, each as the SurrealQL that gives it again, in one line."""
    printed_as = f"object::remove($this, '{_STALE}')" if table == database.table("question") else "$this"
    for page in pages(database, table, f"id, <string> {printed_as} AS row", size="row"):
        for row in page:
            if "\n" in row["row"]:
                raise DataError(f"{row['id']} is printed in several lines", "this is a fault of surrecall's: report it")
            told()
            yield row["row"]
