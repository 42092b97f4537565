"""Documents of a file into the corpus table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _document_file, _fields, _ids, _import_models, _ingest, _label_file, _quoting, _vectors, _writer
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._faults import Faults

_THERE = "SELECT * FROM $ids"
_BATCH = 100
# documents a transaction: half a minute is what a client waits
_GUARDED = 500


@dataclass(frozen=True)
class Options:
    """What to import. `prepend_title` puts the title before a text that does not begin with it, so that it is searched too."""

    path: Path
    form: str
    names: _document_file.Names
    vectors: Path | None = None
    ids: Path | None = None
    model: str | None = None
    prepend_title: bool = False
    dry_run: bool = False
    # all in one transaction, which fn::guard judges
    guard: bool = False


@dataclass(frozen=True)
class ImportedDocuments:
    """What an import did, or would do.

    `vectors` of the new documents came with one, `vectors_filled` went to documents that were there without; `titles_left_out`
    are titles that the table has no field for, `empty` documents without text; `columns_left_out` are columns of the file that
    say nothing of a document. `model_taken_for` is the recorded model that vectors of an unnamed one are taken for. `guarded` is
    what fn::guard measured, where it was asked.
    """

    documents: int
    documents_there: int
    vectors: int
    vectors_filled: int
    titles_left_out: int
    empty: int
    columns_left_out: list[str]
    model_taken_for: str | None
    dry_run: bool
    guarded: dict[str, Any] | None = None


def import_documents(
    database: Database,
    project: Path,
    corpus: Corpus,
    options: Options,
    progress: _ingest.Progress = lambda _done, _all: None,
) -> ImportedDocuments:
    """Add the documents of a file; a second time changes nothing.

    Raises DataError with file, line and content of what is wrong, GuardError when a floor would break; then, as after any
    failure, nothing is added.
    """
    if options.guard and options.dry_run:
        raise UsageError(
            "--guard judges what is stored, and --dry-run stores nothing", "surrecall whatif FILE tells what would change"
        )
    faults = Faults()
    left_out: dict[str, None] = {}
    entries = _document_file.read(options.path, options.form, options.names, corpus.body, faults, left_out, pieces=corpus.pieces)
    faults.raise_if_any()
    if "delete" in left_out:
        raise DataError(
            f"{options.path} has a field delete, and import documents takes nothing out",
            "surrecall whatif shows what the file would change; DELETE what should go, and import without the field",
        )
    if not entries:
        raise DataError(f"{options.path} holds no document", "one row a document: id, title, text")
    vectors = read_vectors(options, corpus, entries)
    if not options.dry_run:
        _writer.require_writer(database, "import")
    # the definitions must be there before rows can be compared with what is; a trial leaves them as they are
    indexed = True if options.dry_run else _ingest.prepare(database, project, corpus, keep_indexes=options.guard)
    tables = database.value("INFO FOR DB")["tables"]
    titled = takes_title(database, corpus, tables)
    known = _ids.resolve(database, corpus.table, [entry.name for entry in entries]) if corpus.table in tables else {}
    rows = [(entry, row_of(corpus, options, entry, known.get(entry.name, []), titled, vectors, faults)) for entry in entries]
    faults.raise_if_any()
    fields = [corpus.body, *([titled] if titled else []), *([corpus.vector] if corpus.vector else []), *(corpus.pieces or ())]
    fresh = [row for _, row in rows]
    fillings: list[_ingest.Filling] = []
    if corpus.table in tables:
        fresh, fillings = _compared(database, rows, fields, corpus, options.path, faults)
    faults.raise_if_any()
    given = sum(corpus.vector is not None and _fields.pick(row, corpus.vector) is not None for _, row in rows)
    if options.model is not None and not given:
        raise UsageError("--model names the model of vectors, and the file has none", "give --vectors FILE.npy")
    fresh_vectors = sum(corpus.vector is not None and _fields.pick(row, corpus.vector) is not None for row in fresh)
    model = _import_models.DocumentModel(database, corpus, options.model, given - fresh_vectors - len(fillings))
    guarded = None
    if options.guard and len(fresh) + len(fillings) > _GUARDED:
        raise UsageError(
            f"--guard is one transaction, and {len(fresh) + len(fillings)} documents are more than the {_GUARDED} it takes",
            "import the file in parts; or without --guard, and surrecall gate after it",
        )
    if not options.dry_run:
        empty = _ingest.empty(database, fillings)
        written: list[RecordID] = []

        def undo() -> None:
            # of a transaction that was refused nothing is there
            if written or not options.guard:
                empty()
            model.put_back()

        with _ingest.logged(database, f"documents of {options.path.resolve()}", len(fresh) + len(fillings), 0, undo) as added:
            try:
                if options.guard:
                    guarded = _ingest.add_guarded(database, corpus, fresh, fillings)
                    added += [row["id"] for row in fresh]
                    written += [row.id for row in fillings]
                else:
                    _ingest.fill(database, fillings)
                    _ingest.add_documents(database, project, corpus, fresh, added, indexed=indexed, progress=progress)
            except _ingest.RefusedRow as refused:
                entry = next(entry for entry, row in rows if row["id"] == refused.id)
                raise DataError(f"{options.path}:{entry.line}: {refused.message}", refused.hint) from refused
            model.claim()
    return ImportedDocuments(
        documents=len(fresh),
        documents_there=len(rows) - len(fresh),
        vectors_filled=len(fillings),
        vectors=fresh_vectors,
        titles_left_out=0 if titled else sum(entry.title is not None for entry in entries),
        empty=sum(not _fields.pick(row, corpus.body).strip() for row in fresh),
        columns_left_out=list(left_out),
        model_taken_for=model.taken_for if fresh_vectors or fillings else None,
        dry_run=options.dry_run,
        guarded=guarded,
    )


def row_of(
    corpus: Corpus,
    options: Options,
    entry: _document_file.Entry,
    found: list[RecordID],
    titled: str | None,
    vectors: _vectors.Vectors | None,
    faults: Faults,
) -> dict[str, Any]:
    """The row that an entry of a file becomes; `found` are the documents that its id can mean, several of them a fault."""
    if len(found) > 1:
        faults.add(options.path, entry.line, _label_file.missing("document", entry.name, found), entry.content)
    embedding = entry.vector if vectors is None else vectors[str(entry.name)]
    row: dict[str, Any] = {"id": found[0] if found else _ids.new(corpus.table, entry.name)}
    _fields.place(row, corpus.body, _text(entry, options))
    if entry.title is not None and titled:
        _fields.place(row, titled, entry.title)
    if embedding is not None and corpus.vector is not None:
        _fields.place(row, corpus.vector, embedding)
    for name, value in entry.piece.items():
        _fields.place(row, name, value)
    return row


def _text(entry: _document_file.Entry, options: Options) -> str:
    if not options.prepend_title or entry.title is None or entry.text.startswith(entry.title):
        return entry.text
    return f"{entry.title}\n{entry.text}"


def read_vectors(options: Options, corpus: Corpus, entries: list[_document_file.Entry]) -> _vectors.Vectors | None:
    """The vectors of --vectors by id; None where the entries have their own, if any."""
    own = [entry for entry in entries if entry.vector is not None]
    if corpus.vector is None and (own or options.vectors is not None):
        raise UsageError(f"{corpus.table} has no vector field", "import without vectors, or name the field in surrecall.toml")
    if options.vectors is None:
        if options.ids is not None:
            raise UsageError("--ids names the rows of --vectors, which is not given", "give --vectors FILE.npy")
        _ingest.require_dimension(corpus, "document", [entry.vector for entry in own])
        return None
    if own:
        raise UsageError(f"{options.path.name} has vectors of its own, first in line {own[0].line}", "leave --vectors out")
    vectors = _vectors.read(options.vectors, options.ids or options.vectors.with_suffix(".ids.txt"))
    _vectors.require_distinct([entry.name.value for entry in entries], options.path)
    lacking = [entry for entry in entries if str(entry.name) not in vectors]
    if lacking:
        raise DataError(
            f"{len(lacking)} of {len(entries)} documents have no vector in {options.vectors.name}, first {lacking[0].name.shown}",
            "embed them all, or import without --vectors",
        )
    _ingest.require_dimension(corpus, "document", list(vectors.values())[:1])
    return vectors


def takes_title(database: Database, corpus: Corpus, tables: dict[str, str]) -> str | None:
    """The field of a document's title; None where the table is bound to its fields and has none such."""
    if corpus.title is None or corpus.table not in tables or not re.search(r"\bSCHEMAFULL\b", tables[corpus.table]):
        return corpus.title
    there = database.run_as_written(f"INFO FOR TABLE {_quoting.identifier(corpus.table)}")[-1]["fields"]
    return corpus.title if corpus.title in there else None


def _compared(
    database: Database,
    rows: list[tuple[_document_file.Entry, dict[str, Any]]],
    fields: list[str],
    corpus: Corpus,
    path: Path,
    faults: Faults,
) -> tuple[list[dict[str, Any]], list[_ingest.Filling]]:
    """The rows that are not there yet, and vectors for those that are there without one.

    A row that is there with another content, in a field that the file has, is a fault.
    """
    fresh = []
    fillings = []
    for batch in _ingest.batches(rows, _BATCH):
        ids: list[RecordID] = [row["id"] for _, row in batch]
        there = {row["id"].id: row for row in database.value(_THERE, ids=ids)}
        for entry, row in batch:
            other = there.get(row["id"].id)
            if other is None:
                fresh.append(row)
                continue
            given = [field for field in fields if _fields.pick(row, field) is not None]
            if corpus.vector in given and _fields.pick(other, corpus.vector) is None:
                given.remove(corpus.vector)
                filling = _ingest.Filling(row["id"], {})
                _fields.place(filling.values, corpus.vector, _fields.pick(row, corpus.vector))
                fillings.append(filling)
            unlike = next((field for field in given if _fields.pick(row, field) != _fields.pick(other, field)), None)
            if unlike is not None:
                faults.add(path, entry.line, f"the document {row['id'].id!r} is there with another {unlike}", entry.content)
    return fresh, fillings
