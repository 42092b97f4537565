"""Cutting the corpus into chunks: a table of them beside the corpus, each linked to its document, kept up with it."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from surrealdb import RecordID

from surrecall import _files, _inventory, _quoting, _retrievers, _schema, _writer
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DatabaseError, DataError, SchemaError, UsageError
from surrecall._evaluation import Interrupted
from surrecall._retry import retried

_MAX_CHARS, _OVERLAP = 800, 0
# documents read by one statement, and chunks written by one; a full-text index makes large transactions slow out of proportion
_PAGE = 200
_CUT_PAGE = 5000
_BATCH_WITHOUT_INDEXES, _BATCH_WITH_INDEXES = 500, 50
# the splitter's time grows with the square of a text that has few places to cut at
_STRETCH = 100_000
# where a longer text is parted, the best first: places at which the splitter would cut anyway
_SEAMS = (r"\n(?=#{1,6}[ \t])", r"\n[ \t\r]*\n", r"\n", r"[.!?…。！？][\"'”’)]*(?:\s+|(?<=[。！？]))", r"\s+")
# so many chunks are added sooner by building the indexes anew
_HEAVY = 5000
# a build that has not moved for as long will not
_STALLED = 60.0
_SOURCES = "chunk_sources.surql"
# a line that only a heading of Markdown begins with
_HEADING = re.compile(r"^#{1,6}[ \t]+\S", re.MULTILINE)

_RECORDED = "SELECT * FROM ONLY type::record('chunking', $into)"
_RECORD = """
UPSERT type::record('chunking', $into) CONTENT {
  corpus: $corpus, document: 'document', text: 'text', position: 'position',
  splitter: $splitter, max_chars: $max_chars, overlap: $overlap, made: time::now()
} RETURN NONE;
"""
_OPEN = "RETURN CREATE ONLY import_log CONTENT { source: $source, documents: $documents, questions: 0, next: $next }"
_CLOSE = "UPDATE import_log SET finished = time::now() WHERE source = $source AND finished = NONE RETURN NONE"
_UNFINISHED = "RETURN (SELECT VALUE id FROM import_log WHERE source = $source AND finished = NONE).len() > 0"
_ANY = "RETURN (SELECT VALUE id FROM type::table($table) LIMIT 1).len() > 0"
_COUNT = "RETURN (SELECT count() FROM type::table($table) GROUP ALL)[0].count ?? 0"
_CUT = """
SELECT id, document, <string> document AS name, source, position FROM {source} LIMIT $size;
"""
# one id can't be deleted and inserted in one transaction, see docs/engine-notes.md; what is known of a chunk stays with its text
_STORE = """
BEGIN;
FOR $one IN $cut {{ DELETE {table} WHERE document = $one.document AND position >= $one.chunks RETURN NONE }};
FOR $row IN $again {{
  LET $there = (SELECT * FROM ONLY $row.id);
  LET $same = $there.text = $row.text AND $there.title = $row.title;
  UPSERT $row.id CONTENT IF $same {{ object::extend($there, $row) }} ELSE {{ $row }} RETURN NONE;
}};
INSERT INTO {table} $rows RETURN NONE;
COMMIT;
"""
_TAKE_OUT = """
RETURN (DELETE (
  SELECT VALUE id FROM {table} WHERE document IN $documents AND position >= $position LIMIT $size
) RETURN BEFORE).len()
"""
_EMPTY = "RETURN (DELETE (SELECT VALUE id FROM type::table($table) LIMIT $size) RETURN BEFORE).len()"

Progress = Callable[[int, int], None]


class Form(StrEnum):
    """What texts are taken for: Markdown, plain text, or each for what it looks like."""

    AUTO = "auto"
    MARKDOWN = "markdown"
    PLAIN = "plain"


class Splitter(Protocol):
    """What cuts a text: pieces with the place of their first character, in order."""

    def chunk_indices(self, text: str) -> list[tuple[int, str]]: ...


@dataclass(frozen=True)
class Asked:
    """How to cut; None is as it was cut before, else the default. `replace` allows another way than before."""

    into: str
    max_chars: int | None = None
    overlap: int | None = None
    form: Form | None = None
    replace: bool = False


@dataclass
class Chunked:
    """What became of it: documents that have a text, those cut now, chunks added, taken out, and there in the end.

    `without_text` are documents with nothing to cut; `files` those written into surql/corpus, `retrievers` those added.
    """

    into: str
    splitter: str
    max_chars: int
    overlap: int
    documents: int = 0
    cut: int = 0
    added: int = 0
    removed: int = 0
    chunks: int = 0
    without_text: int = 0
    files: list[str] = field(default_factory=list)
    retrievers: list[str] = field(default_factory=list)


def write(project: Path, corpus: Corpus, into: str) -> tuple[list[Path], list[str]]:
    """Write the files of a chunk table into surql/corpus, and its retrievers into retrievers.toml; what was written.

    A table that has its file there is the user's to edit: then nothing is. Raises UsageError in a folder without surql/corpus.
    """
    folder = project / "surql" / "corpus"
    registry = project / "surql" / _files.REGISTRY_FILE
    if not registry.is_file():
        raise UsageError(
            "this folder has no surql/corpus, where the definitions of a chunk table belong",
            f"surrecall init --table {corpus.table} … writes it",
        )
    files = corpus.chunk_files(into)
    if (folder / f"{into}.surql").exists():
        return [], []
    # a project from before there were chunks lacks what check knows their documents by
    files += [file for file in corpus.render() if file.name == _SOURCES and not (folder / file.name).exists()]
    retrievers = corpus.chunk_retrievers(into)
    text = registry.read_bytes().decode("utf-8")
    known = {one.name for one in _retrievers.parse(text.removeprefix("\ufeff"), str(registry))}
    added = [one for one in retrievers if one.name not in known]
    for one in added:
        text = _retrievers.added(text, one)
    _retrievers.parse(text.removeprefix("\ufeff"), str(registry))
    try:
        for file in files:
            (folder / file.name).write_text(file.text, encoding="utf-8")
        registry.write_bytes(text.encode("utf-8"))
    except OSError as error:
        raise UsageError(f"{error.filename} can't be written: {error.strerror}", "make the folder writable") from error
    return [folder / file.name for file in files], [one.name for one in added]


def chunk(
    database: Database,
    project: Path,
    corpus: Corpus,
    asked: Asked,
    progress: Progress = lambda _done, _all: None,
    fill: Callable[[], None] = lambda: None,
) -> Chunked:
    """Cut the documents that are not cut yet or changed since, and take out the chunks of those that are gone.

    `fill` is called when the chunks are there, and before their indexes are, under which each change of a row takes long.

    Raises UsageError for a table that is none of chunks, or was cut in another way; Interrupted on Ctrl-C, after which the next
    call goes on.
    """
    corpus.require_chunk_table(asked.into)
    recorded = _recorded(database, corpus, asked)
    splitter, done = _settled(asked, recorded)
    _refuse_others(database, corpus, asked, recorded)
    _writer.require_writer(database, "chunk")
    indexed = _prepare(database, project, corpus, asked, done)
    again = f"surrecall chunk {corpus.table} --into {asked.into}"
    source = f"chunks {asked.into}"
    work = _Work(database, corpus, asked.into, splitter, done)
    before = database.value(_COUNT, table=asked.into)
    try:
        if before and (recorded is None or _differs(recorded, done)):
            database.run(_OPEN, source=source, documents=0, next=again)
            work.empty()
        if recorded is None or _differs(recorded, done):
            how = {"splitter": done.splitter, "max_chars": done.max_chars, "overlap": done.overlap}
            database.run(_RECORD, into=asked.into, corpus=corpus.table, **how)
        work.look()
        if indexed and work.is_heavy:
            _remove_indexes(database, corpus, asked.into)
            indexed = False
        if (work.total or not indexed) and not database.value(_UNFINISHED, source=source):
            database.run(_OPEN, source=source, documents=work.total, next=again)
        work.run(progress, _BATCH_WITH_INDEXES if indexed else _BATCH_WITHOUT_INDEXES)
        try:
            fill()
        finally:
            # the chunks are whole, whatever became of their vectors
            if not indexed:
                _build_indexes(database, project, corpus, asked.into)
            database.run(_CLOSE, source=source)
    except (KeyboardInterrupt, DatabaseError) as error:
        by_user = isinstance(error, KeyboardInterrupt)
        raise Interrupted(
            f"{'interrupted' if by_user else error}; {done.cut} of {work.total} documents are cut and kept",
            f"{again} goes on",
            by_user=by_user,
        ) from error
    done.chunks = database.value(_COUNT, table=asked.into)
    done.removed = before + done.added - done.chunks
    return done


def _recorded(database: Database, corpus: Corpus, asked: Asked) -> dict[str, Any] | None:
    """How a table was cut; None for a new one."""
    if database.table("chunking") not in database.value("INFO FOR DB")["tables"]:
        return None
    row: dict[str, Any] | None = database.value(_RECORDED, into=asked.into)
    if row is not None and row.get("made") is None:
        raise UsageError(f"{asked.into} was cut by something else, and is left alone", "give --into the name of a new table")
    if row is not None and row["corpus"] != corpus.table:
        raise UsageError(f"{asked.into} holds chunks of {row['corpus']}, not of {corpus.table}", "give --into another name")
    return row


def _settled(asked: Asked, recorded: dict[str, Any] | None) -> tuple[Callable[[str], Splitter], Chunked]:
    """The splitter and its parameters: as asked, else as before, else the defaults."""
    before = recorded or {}
    form = asked.form or (Form(before["splitter"].rpartition(" ")[2]) if before.get("splitter") else Form.AUTO)
    max_chars = asked.max_chars or before.get("max_chars") or _MAX_CHARS
    overlap = asked.overlap if asked.overlap is not None else before.get("overlap", _OVERLAP)
    if overlap >= max_chars:
        raise UsageError(
            f"--overlap {overlap} leaves nothing new in a chunk of {max_chars}", "give --overlap less than --max-chars"
        )
    found, version = _splitters(max_chars, overlap)
    told = Chunked(asked.into, f"semantic-text-splitter {version}, {form}", max_chars, overlap)
    if recorded is not None and _differs(recorded, told) and not asked.replace:
        was = f"--max-chars {before['max_chars']} --overlap {before['overlap']} --{_form(before)}"
        raise UsageError(
            f"{asked.into} was cut with {was}; now --max-chars {max_chars} --overlap {overlap} --{form} is asked for",
            "--replace cuts it anew; to compare both, --into another table",
        )

    def of(text: str) -> Splitter:
        markdown = form is Form.MARKDOWN or (form is Form.AUTO and _HEADING.search(text) is not None)
        return found[markdown]

    return of, told


def _form(recorded: dict[str, Any]) -> str:
    return str(recorded["splitter"]).rpartition(" ")[2]


def _differs(recorded: dict[str, Any], told: Chunked) -> bool:
    """Whether a table was cut in another way; another version of the splitter is none."""
    now = (told.max_chars, told.overlap, told.splitter.rpartition(" ")[2])
    return (recorded["max_chars"], recorded["overlap"], _form(recorded)) != now


def _splitters(max_chars: int, overlap: int) -> tuple[dict[bool, Splitter], str]:
    """The splitter for Markdown (True) and the one for plain text, and their version."""
    try:
        from importlib.metadata import version

        from semantic_text_splitter import MarkdownSplitter, TextSplitter
    except ImportError as error:
        raise UsageError("surrecall chunk needs semantic-text-splitter", "pip install 'surrecall[chunk]'") from error
    plain, markdown = TextSplitter(max_chars, overlap=overlap), MarkdownSplitter(max_chars, overlap=overlap)
    return {False: plain, True: markdown}, version("semantic-text-splitter")


def _refuse_others(database: Database, corpus: Corpus, asked: Asked, recorded: dict[str, Any] | None) -> None:
    """A table that is there and was not made by surrecall chunk stays what it is."""
    found = _inventory.functions_and_tables(database).get(f"table {asked.into}")
    if found is not None and not found.is_ours:
        raise UsageError(
            f"{asked.into} is a table of yours, and is left alone\n  there: {found.text}",
            f"surrecall chunk {corpus.table} --into another name",
        )
    if found is not None and recorded is None and not asked.replace and database.value(_ANY, table=asked.into):
        raise UsageError(f"{asked.into} holds chunks, and how they were cut is not recorded", "--replace cuts it anew")


def _prepare(database: Database, project: Path, corpus: Corpus, asked: Asked, done: Chunked) -> bool:
    """Write and apply the definitions; whether the indexes stay while rows go in."""
    into = asked.into
    folder = project / "surql" / "corpus"
    names = [*(file.name for file in corpus.chunk_files(into)), _SOURCES]
    paths = [*(folder / name for name in names), project / "surql" / _files.REGISTRY_FILE,
             project / "surql" / _files.DISPATCHER_FILE]  # fmt: skip
    before = {path: path.read_bytes() if path.is_file() else None for path in paths}
    tables = database.value("INFO FOR DB")["tables"]
    filled = into in tables and database.value(_ANY, table=into)
    indexes = corpus.chunk_indexes(into)
    try:
        written, done.retrievers = write(project, corpus, into)
        done.files = [path.name for path in written]
        _schema.apply(database, project, leave_out=indexes)
    except BaseException:
        # files and database go together, or not at all
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
        raise
    if filled and all(state == "ready" for state, _ in _building(database, into, indexes)):
        return True
    _remove_indexes(database, corpus, into)
    return False


def _remove_indexes(database: Database, corpus: Corpus, into: str) -> None:
    for index in corpus.chunk_indexes(into):
        database.run_as_written(f"REMOVE INDEX IF EXISTS {_quoting.identifier(index)} ON {_quoting.identifier(into)}")


def _stretches(text: str) -> Iterator[tuple[int, str]]:
    """A text in stretches that are cut each by itself, with the place of their first character."""
    start = 0
    while len(text) - start > _STRETCH:
        window = text[start + _STRETCH // 2 : start + _STRETCH]
        ends = (max((found.end() for found in re.finditer(seam, window)), default=None) for seam in _SEAMS)
        end = start + _STRETCH // 2 + next((end for end in ends if end is not None), len(window))
        yield start, text[start:end]
        start = end
    yield start, text[start:]


@dataclass
class _Known:
    """What there is of a document: the fingerprints of its chunks, how many they are, whether the first is among them."""

    id: RecordID
    sources: set[str] = field(default_factory=set)
    chunks: int = 0
    # the first of a long document is written last
    whole: bool = False


@dataclass
class _Document:
    """A document as it is to be cut."""

    id: RecordID
    name: str
    text: str
    title: str | None
    source: str


class _Work:
    """The cutting of one table."""

    def __init__(self, database: Database, corpus: Corpus, into: str, splitter: Callable[[str], Splitter], done: Chunked) -> None:
        self._database, self._corpus, self._into, self._splitter = database, corpus, into, splitter
        self._done = done
        self._table = _quoting.identifier(into)
        # documents that have chunks, by what the id prints
        self._cut: dict[str, _Known] = {}
        self._gone: dict[str, RecordID] = {}
        # what is to be done: documents, and about how many chunks
        self.total = self._chunks = 0

    @property
    def is_heavy(self) -> bool:
        """Whether it is done sooner without the indexes."""
        return self._chunks > _HEAVY

    def empty(self) -> None:
        """Take every chunk out."""
        while self._database.value(_EMPTY, table=self._into, size=_BATCH_WITHOUT_INDEXES):
            pass

    def look(self) -> None:
        """Find out what is to be done."""
        for row in self._pages(_CUT, self._into, _CUT_PAGE):
            known = self._cut.setdefault(row["name"], _Known(row["document"]))
            known.sources.add(row["source"])
            known.chunks += 1
            known.whole |= row["position"] == 0
        self._gone = {name: known.id for name, known in self._cut.items()}
        for document in self._documents():
            self._gone.pop(document.name, None)
            self._done.documents += 1
            if self._is_due(document):
                self.total += 1
                self._chunks += len(document.text) // (self._done.max_chars - self._done.overlap) + 1
        self.total += len(self._gone)

    def run(self, progress: Progress, batch: int) -> None:
        """Cut what is due, and take out what is gone. A document is whole, or cut anew by the next call."""
        held: dict[str, list[dict[str, Any]]] = {}
        for document in self._documents():
            if not self._is_due(document):
                continue
            if len(document.text) > _STRETCH:
                # what is cut is kept, whatever becomes of a long one
                self._store(held)
                held = {}
            rows = self._rows(document)
            if max(len(rows), self._chunks_of(document.name)) > batch:
                self._store_long(document, rows, batch)
            else:
                held[document.name] = rows
                if sum(map(len, held.values())) < batch:
                    continue
                self._store(held)
                held = {}
            progress(self._done.cut, self.total)
        self._store(held)
        gone = list(self._gone.values())
        for start in range(0, len(gone), batch):
            self._take_out(gone[start : start + batch], 0, batch)
        progress(self.total, self.total)

    def _is_due(self, document: _Document) -> bool:
        known = self._cut.get(document.name)
        return known is None or not known.whole or known.sources != {document.source}

    def _chunks_of(self, name: str) -> int:
        """How many chunks of a document there are before it is cut."""
        return self._cut[name].chunks if name in self._cut else 0

    def _rows(self, document: _Document) -> list[dict[str, Any]]:
        made = []
        splitter = self._splitter(document.text)
        pieces = (
            (begin + start, text)
            for begin, stretch in _stretches(document.text)
            for start, text in splitter.chunk_indices(stretch)
        )
        for position, (start, text) in enumerate(pieces):
            # the promise of a chunk is that it stands in its document, letter for letter
            if document.text[start : start + len(text)] != text:
                raise DataError(
                    f"{document.name}: a chunk does not stand at its place in the text",
                    "this is a fault of the splitter: report it",
                )
            # what the engine prints of an id tells 7 from '7'
            key = hashlib.sha256(f"{document.name}\n{position}".encode()).hexdigest()[:32]
            made.append(
                {
                    "id": RecordID(self._into, key),
                    "document": document.id,
                    "position": position,
                    "start": start,
                    "end": start + len(text),
                    "text": text,
                    "source": document.source,
                    **({"title": document.title} if document.title is not None else {}),
                }
            )
        return made

    def _store(self, cut: dict[str, list[dict[str, Any]]]) -> None:
        """Write the chunks of some documents, by what their ids print, in one transaction."""
        if not cut:
            return
        known = [name for name in cut if name in self._cut]
        self._write(
            [{"document": self._cut[name].id, "chunks": len(cut[name])} for name in known],
            [row for name in known for row in cut[name]],
            [row for name, rows in cut.items() if name not in self._cut for row in rows],
        )
        self._done.cut += len(cut)
        self._done.added += sum(map(len, cut.values()))

    def _store_long(self, document: _Document, rows: list[dict[str, Any]], batch: int) -> None:
        """Write the chunks of a document that are too many for one transaction; the first last, to say that all are there."""
        known = document.name in self._cut
        if known:
            self._take_out([document.id], len(rows), batch)
        for some in [*(rows[start : start + batch] for start in range(1, len(rows), batch)), rows[:1]]:
            self._write([], some if known else [], [] if known else some)
        self._done.cut += 1
        self._done.added += len(rows)

    def _write(self, cut: list[dict[str, Any]], again: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
        statement = _STORE.format(table=self._table)
        retried(lambda: self._database.run(statement, cut=cut, again=again, rows=rows))

    def _take_out(self, documents: Sequence[RecordID], position: int, batch: int) -> None:
        """Take out the chunks of some documents from a position on, some at a time."""
        statement = _TAKE_OUT.format(table=self._table)
        while self._database.value(statement, documents=documents, position=position, size=batch) == batch:
            pass

    def _documents(self) -> Iterator[_Document]:
        """Every document that has a text, in id order."""
        title = self._corpus.title or "NONE"
        statement = (
            f"SELECT id, <string> id AS name, {self._corpus.body} AS text, {title} AS title, "
            f"fn::chunk_source({self._corpus.body}, {title}) AS source FROM {{source}} LIMIT $size;"
        )
        self._done.without_text = 0
        for row in self._pages(statement, self._corpus.table, _PAGE):
            if row["source"] is None:
                self._done.without_text += 1
                continue
            title_text = row["title"] if isinstance(row["title"], str) else None
            yield _Document(row["id"], row["name"], row["text"], title_text, row["source"])

    def _pages(self, statement: str, table: str, size: int) -> Iterator[dict[str, Any]]:
        """The rows of a table in id order, some at a time; a range of ids is read from its beginning."""
        after: Any = None
        while True:
            source = "type::table($table)" if after is None else "type::record($table, $after>..)"
            page = self._database.value(statement.format(source=source), table=table, after=after, size=size)
            yield from page
            if len(page) < size:
                return
            after = page[-1]["id"].id


def _build_indexes(database: Database, project: Path, corpus: Corpus, into: str) -> None:
    """Define the indexes over the rows that are there, in the background, and wait: no query may take longer than 30 s."""
    indexes = corpus.chunk_indexes(into)
    for file in _files.load(project):
        if Path(file.name).stem in indexes:
            database.run_as_written(file.text.rstrip().removesuffix(";") + " CONCURRENTLY;")
    moved, seen = time.monotonic(), _building(database, into, indexes)
    while any(state != "ready" for state, _ in seen):
        time.sleep(0.05)
        now = _building(database, into, indexes)
        if now != seen:
            moved, seen = time.monotonic(), now
        if any(state in ("error", "missing") for state, _ in now) or time.monotonic() - moved > _STALLED:
            raise SchemaError(
                f"the indexes of {into} could not be built: {', '.join(f'{state} {count}' for state, count in now)}",
                f"look for a full disk or a fault in the server's log, then surrecall chunk {corpus.table} --into {into}",
            )


def _building(database: Database, into: str, indexes: Sequence[str]) -> list[tuple[str, str]]:
    """State and progress of each index."""
    table = _quoting.identifier(into)
    defined = database.run_as_written(f"INFO FOR TABLE {table}")[-1]["indexes"]
    found = []
    for index in indexes:
        if index not in defined:
            found.append(("missing", ""))
            continue
        building = database.run_as_written(f"INFO FOR INDEX {_quoting.identifier(index)} ON {table}")[-1].get("building", {})
        found.append((str(building.get("status", "ready")), str(building)))
    return found
