"""The form of a snapshot: SurrealQL in blocks of whole lines, between a first line with counts and a last one with a checksum.

    -- surrecall snapshot 1 {"documents": …}
    -- file 1 surql/corpus/article.surql
    -- "the text of that file, as a JSON string"
    -- define 1 table article
    DEFINE TABLE article …;
    -- documents 4 article
    OPTION IMPORT; INSERT INTO article [
    { id: article:gift_card, … },
    { id: article:track_order, … },
    ] RETURN NONE;
    -- labels 4 label_seen
    INSERT INTO label_seen [
    …
    -- end <sha256 of everything above, hex>

Each block says how many lines it has, so a text that looks like the head of a block is none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from surrecall._errors import DataError
from surrecall._export.output import Lines

_VERSION = 1
_FIRST = "-- surrecall snapshot "
_LAST = "-- end "
# what one statement should not be larger than, by much
_ROWS, _ROOM = 500, 1_000_000


class Kind(StrEnum):
    """What a block holds, in the order of the file."""

    FILE = "file"
    DEFINE = "define"
    DOCUMENTS = "documents"
    INDEX = "index"
    QUESTIONS = "questions"
    LABELS = "labels"


@dataclass(frozen=True)
class Header:
    """The first line: what the file holds, and what the database that it came from gave for it.

    `tables` are the corpus table first, then those of its vectors and chunks where these are others; rows by table.
    `golden_sets` are fn::golden_set_hash and number of questions by set.
    """

    surrecall: str
    engine: str
    tables: dict[str, int]
    corpus_hash: str
    golden_sets: dict[str, dict[str, str | int]]

    @property
    def documents(self) -> int:
        """Rows of the corpus table."""
        return next(iter(self.tables.values()))

    @property
    def rows(self) -> int:
        """Rows of all tables, and questions."""
        return sum(self.tables.values()) + self.questions

    @property
    def questions(self) -> int:
        """Questions of all golden sets."""
        return sum(int(golden_set["questions"]) for golden_set in self.golden_sets.values())


@dataclass(frozen=True)
class Block:
    """One block: statements, or for a file its text."""

    kind: Kind
    label: str
    text: str


class Writer:
    """Writes a snapshot: the header, blocks in order, the end."""

    def __init__(self, lines: Lines, header: Header) -> None:
        self._lines = lines
        self._hash = hashlib.sha256()
        self._write(f"{_FIRST}{_VERSION} {json.dumps(asdict(header), ensure_ascii=False)}\n")

    def file(self, name: str, text: str) -> None:
        """Add a file of the project."""
        self.block(Kind.FILE, name, f"-- {json.dumps(text)}")

    def block(self, kind: Kind, label: str, text: str) -> None:
        """Add one block; lines end in LF alone."""
        self._write(f"-- {kind.value} {text.count(chr(10)) + 1} {json.dumps(label, ensure_ascii=False)}\n{text}\n")

    def rows(self, kind: Kind, label: str, head: str, rows: Iterator[str]) -> int:
        """Add rows, in as many statements as it takes; their number. `head` is the statement up to the list."""
        held: list[str] = []
        count = room = 0

        def flush() -> None:
            if held:
                self.block(kind, label, "\n".join([f"{head} [", *(f"{row}," for row in held), "] RETURN NONE;"]))
                held.clear()

        for row in rows:
            held.append(row)
            count, room = count + 1, room + len(row)
            if len(held) == _ROWS or room > _ROOM:
                flush()
                room = 0
        flush()
        return count

    def end(self) -> None:
        """Close the file."""
        self._lines.write(f"{_LAST}{self._hash.hexdigest()}\n")

    def _write(self, text: str) -> None:
        self._hash.update(text.encode())
        self._lines.write(text)


class Reader:
    """A snapshot that was read through once and found whole. Raises DataError when it is damaged, or none at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._open() as file:
            first = file.readline()
            self.header = self._header(first)
            digest, last = hashlib.sha256(first), b""
            for line in file:
                digest.update(last)
                last = line
        self.checksum = digest.hexdigest()
        if last != f"{_LAST}{self.checksum}\n".encode():
            raise DataError(
                f"{path} is damaged or cut off, nothing was stored", "fetch it again, or write it again: surrecall snapshot"
            )

    def blocks(self) -> Iterator[Block]:
        """The blocks in order."""
        with self._open() as file:
            file.readline()
            while not (head := file.readline()).startswith(_LAST.encode()):
                _, kind, count, label = head.decode().split(" ", 3)
                text = b"".join(file.readline() for _ in range(int(count))).decode().removesuffix("\n")
                yield Block(Kind(kind), json.loads(label), text)

    def rows(self, label: str) -> Iterator[str]:
        """The rows of a table, as they are printed."""
        for block in self.blocks():
            if block.kind in (Kind.DOCUMENTS, Kind.QUESTIONS, Kind.LABELS) and block.label == label:
                for line in block.text.split("\n")[1:-1]:
                    yield line.removesuffix(",")

    def files(self) -> dict[str, str]:
        """The files of the project, text by name."""
        return {block.label: json.loads(block.text.removeprefix("-- ")) for block in self.blocks() if block.kind is Kind.FILE}

    def _open(self) -> IO[bytes]:
        try:
            return self._path.open("rb")
        except OSError as error:
            raise DataError(f"{self._path} can't be read: {error.strerror}", "check the path, or make it readable") from error

    def _header(self, line: bytes) -> Header:
        written = line.decode(errors="replace")
        version, _, rest = written.removeprefix(_FIRST).partition(" ")
        if not written.startswith(_FIRST):
            raise DataError(
                f"{self._path} is no snapshot", "surrecall snapshot writes one; surrecall import --help lists other forms"
            )
        if version != str(_VERSION):
            raise DataError(
                f"{self._path} is a snapshot of form {version}, this surrecall reads form {_VERSION}", "use a newer surrecall"
            )
        try:
            return Header(**json.loads(rest))
        except (ValueError, TypeError) as error:
            raise DataError(f"{self._path} is damaged, nothing was stored: {str(error)[:80]}", "fetch it again") from error
