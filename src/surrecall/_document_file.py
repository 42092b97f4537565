"""Files of documents: JSON Lines, a JSON array, CSV, TSV."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surrecall import _ids, _tabular
from surrecall._errors import UsageError
from surrecall._faults import Faults
from surrecall._question_file import Fault, flag, vector

FORMATS = ("jsonl", "json", "csv", "tsv")
_DELETE = "delete"


@dataclass(frozen=True)
class Names:
    """How the file calls what a document has; None takes the usual names. `vector` is None for a file without vectors."""

    id: str | None = None
    text: str | None = None
    title: str | None = None
    vector: str | None = None


@dataclass(frozen=True)
class Entry:
    """One document of a file."""

    line: int
    content: str
    name: _ids.Name
    text: str
    title: str | None
    vector: list[float] | None
    # whether the row says that the document goes; it has no text then
    delete: bool = False
    # which text it is a piece of, and which piece, by the fields of the corpus
    piece: dict[str, Any] = field(default_factory=dict)


def read(
    path: Path,
    form: str,
    names: Names,
    text_field: str,
    faults: Faults,
    left_out: dict[str, None] | None = None,
    *,
    deletes: bool = False,
    pieces: tuple[str, str] | None = None,
) -> list[Entry]:
    """All documents of a file, each id once; fields that are none of `names` are left out, and their names put into `left_out`.

    `pieces` are the fields of a document that say of which text it is a piece, and which piece: columns of the same names.
    With `deletes` a row whose field `delete` is true says that the document goes, and needs no text.

    Raises DataError for a header that can't be made out, UsageError for a name of `names` that no row has.
    """
    usual = {
        "id": ("_id", "doc_id", "docid", "document_id", "corpus_id"),
        "text": tuple(dict.fromkeys((text_field.lower(), "content", "body", "abstract"))),
        "title": (),
        "vector": ("embedding",),
    }
    given = {"id": names.id, "text": names.text, "title": names.title, "vector": names.vector}
    columns = {name: () if given[name] else aliases for name, aliases in usual.items()}
    columns = {given[name] or name: aliases for name, aliases in columns.items()}
    columns |= {_DELETE: ()} if deletes else {}
    columns |= dict.fromkeys(pieces or (), ())
    rows = _tabular.read(path, form, _renamed(columns), faults, strict=False, left_out=left_out)
    called = {name: _tabular.canonical(given[name] or name) for name in given}
    for name, wanted in given.items():
        if wanted and rows and not any(called[name] in row.fields for row in rows):
            raise UsageError(f"no row of {path.name} has a {wanted!r}", "look at its first line for the name")
    entries: dict[Any, Entry] = {}
    for row in rows:
        try:
            entry = _entry(row, called, pieces)
        except Fault as fault:
            faults.add(path, row.line, str(fault), row.content)
            continue
        earlier = entries.get(entry.name.value)
        if earlier is not None:
            faults.add(path, row.line, f"the id {entry.name.shown} is there already, in line {earlier.line}", row.content)
        else:
            entries[entry.name.value] = entry
    return list(entries.values())


def _renamed(columns: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {_tabular.canonical(name): tuple(_tabular.canonical(alias) for alias in aliases) for name, aliases in columns.items()}


def _entry(row: _tabular.Row, called: dict[str, str], pieces: tuple[str, str] | None) -> Entry:
    name = row.name(called["id"])
    if name is None:
        raise Fault("no id" if called["id"] not in row.fields else "the id is neither a text nor a whole number of 64 bits")
    if flag(row.fields.get(_DELETE), _DELETE):
        return Entry(row.line, row.content, name, "", None, None, delete=True)
    text, title = row.fields.get(called["text"]), row.fields.get(called["title"])
    if not isinstance(text, str) and not (text is None and not row.typed and title):
        raise Fault("no text")
    if title is not None and not isinstance(title, str):
        raise Fault("the title is no text")
    if not (text or "").strip() and not (title or "").strip():
        raise Fault("an empty document")
    given = row.fields.get(called["vector"])
    own = None if given is None else _vector(given)
    return Entry(row.line, row.content, name, text or "", title or None, own, piece=_piece(row, pieces))


def _piece(row: _tabular.Row, pieces: tuple[str, str] | None) -> dict[str, Any]:
    if pieces is None:
        return {}
    given = {name: row.fields.get(_tabular.canonical(name)) for name in pieces}
    parent, position = pieces
    if given[position] not in (None, ""):
        number = _tabular.number(given[position])
        if not isinstance(number, int):
            raise Fault(f"{position} is no whole number")
        given[position] = number
    if isinstance(given[parent], dict | list):
        raise Fault(f"{parent} is neither a text nor a number")
    return {name: value for name, value in given.items() if value not in (None, "")}


def _vector(given: Any) -> list[float]:
    """A vector of a row: a list, or a cell with one as JSON writes it, or with numbers between blanks or commas."""
    if not isinstance(given, str):
        return vector(given)
    if given.strip().startswith("["):
        try:
            return vector(_tabular.parsed(given))
        except ValueError as error:
            raise Fault("a vector that is no JSON array") from error
    numbers = [_tabular.number(part) for part in given.replace(",", " ").split()]
    return vector(numbers)
