"""Files of questions: JSON Lines, a JSON array, CSV, TSV, and the CSV that Quepid exports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surrecall import _ids, _tabular, _vectors
from surrecall._errors import DataError, UsageError
from surrecall._faults import Faults

FORMATS = ("csv", "tsv", "jsonl", "json", "quepid")
SPLITS, SOURCES = ("dev", "heldout"), ("human", "production", "generated", "imported")
_TYPED: dict[str, tuple[str, ...]] = {
    "id": ("_id",),
    "text": ("question", "query"),
    "relevant": (),
    "judged": (),
    "answerable": (),
    "anchors": (),
    "set": (),
    "kind": (),
    "tags": (),
    "split": (),
    "source": (),
    "note": (),
    "embedding": (),
    "embedding_model": (),
    # BEIR's own, which says nothing of the question
    "metadata": (),
}
_CELLS: dict[str, tuple[str, ...]] = {
    "id": ("qid", "query_id", "question_id", "_id"),
    "text": ("question", "query"),
    "relevant": ("document", "doc_id", "docid", "document_id", "corpus_id"),
    "grades": ("grade", "rating", "score", "relevance"),
    **dict.fromkeys(("answerable", "anchors", "set", "kind", "tags", "split", "source", "note"), ()),
}
_QUEPID = {"text": ("query", "query_text"), "document": ("docid", "doc_id"), "grade": ("rating",)}
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# a spreadsheet would run what begins so, and Quepid writes a blank before it
_GUARDED = re.compile(r" (?=[=+@-])")


class Fault(Exception):
    """Why a row is no question."""


@dataclass(frozen=True)
class Entry:
    """One question of a file. `relevant` are plain labels, `judged` graded ones; at most one of the two is there.

    `name` is None when the file gives no id. `answerable` is None when the file does not say. `repeated` labels were given again.
    """

    line: int
    content: str
    name: _ids.Name | None
    text: str
    relevant: list[_ids.Name] = field(default_factory=list)
    judged: list[tuple[_ids.Name, float | int]] = field(default_factory=list)
    answerable: bool | None = None
    anchors: list[tuple[_ids.Name, str]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    embedding: list[float] | None = None
    model: str | None = None
    repeated: int = 0

    @property
    def is_labelled(self) -> bool:
        """Whether it has a label of any kind, or says that there can be none."""
        return bool(self.relevant or self.judged or self.anchors) or self.answerable is False

    @property
    def documents(self) -> list[_ids.Name]:
        """Every document it names."""
        return [*self.relevant, *(name for name, _ in self.judged), *(name for name, _ in self.anchors)]


@dataclass(frozen=True)
class Names:
    """How the file calls the id and the text of a question; None takes the usual names."""

    id: str | None = None
    text: str | None = None


USUAL = Names()


def read(path: Path, form: str, faults: Faults, names: Names = USUAL) -> list[Entry]:
    """All questions of a file, each once.

    Raises DataError for a header that can't be made out, UsageError for a name of `names` that no row has.
    """
    if form == "quepid":
        if names != USUAL:
            raise UsageError("an export of Quepid has its own columns", "leave --id and --text out, or --format quepid")
        return _merged(path, _quepid(path, faults), faults)
    if form in ("csv", "tsv"):
        return _merged(path, _read(path, _rows(path, form, _CELLS, names, faults), _of_cells, faults), faults)
    entries: dict[Any, Entry] = {}
    for entry in _read(path, _rows(path, form, _TYPED, names, faults), _of_json, faults):
        key = _key(entry)
        if key in entries:
            what = f"the id {entry.name.shown}" if entry.name else "the question"
            faults.add(path, entry.line, f"{what} is there already, in line {entries[key].line}", entry.content)
        else:
            entries[key] = entry
    return list(entries.values())


def _rows(path: Path, form: str, columns: _tabular.Columns, names: Names, faults: Faults) -> list[_tabular.Row]:
    """The rows, with what `names` calls the id and the text under these two."""
    given = {name: wanted for name, wanted in (("id", names.id), ("text", names.text)) if wanted}
    called = {_tabular.canonical(wanted): name for name, wanted in given.items()}
    free: dict[str, Sequence[str]] = {
        name: [alias for alias in aliases if alias not in called] for name, aliases in columns.items() if name not in given
    }
    named: dict[str, Sequence[str]] = dict.fromkeys(called, ())
    rows = _tabular.read(path, form, named | free, faults)
    for own, name in called.items():
        if rows and not any(own in row.fields for row in rows):
            raise UsageError(f"no row of {path.name} has a {given[name]!r}", "look at its first line for the name")
    return [replace(row, fields={called.get(own, own): value for own, value in row.fields.items()}) for row in rows]


def made_id(text: str) -> str:
    """The id of a question whose file gives none: its first words, and twelve digits of the hash of its whole text.

    The same text has the same id in every file, and two texts have two.
    """
    words = re.findall(r"[a-z0-9]+", text.lower())
    start = "-".join(words)[:40].strip("-") or "question"
    return f"{start}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def split_list(cell: str) -> list[str]:
    r"""The members of a list in a cell, between `|`; a backslash keeps a `|` or `\` from parting. Raises Fault."""
    members, member, characters = [], "", iter(cell)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following not in ("|", "\\"):
                raise Fault(r"a backslash before something else than | or \ ")
            member += following
        elif character == "|":
            members.append(member)
            member = ""
        else:
            member += character
    return [found for found in [*members, member] if found.strip(_tabular.BLANKS)]


def _read(path: Path, rows: list[_tabular.Row], parse: Callable[[_tabular.Row], Entry], faults: Faults) -> Iterator[Entry]:
    for row in rows:
        try:
            entry = parse(row)
            if not entry.text.strip():
                raise Fault("a question without text")
            if entry.answerable is True and entry.judged and all(grade < 1 for _, grade in entry.judged):
                raise Fault("answerable, and no grade of 1 or more")
            yield entry
        except Fault as fault:
            faults.add(path, row.line, str(fault), row.content)


def _key(entry: Entry) -> Any:
    # a text for an id and a text for a question are two keys
    return (entry.name.value, True) if entry.name else (entry.text, False)


def _merged(path: Path, entries: Iterator[Entry], faults: Faults) -> list[Entry]:
    """Rows of one question as one: a sheet may give each of its documents a row."""
    found: dict[Any, Entry] = {}
    for entry in entries:
        key = _key(entry)
        first = found.get(key)
        if first is None:
            found[key] = entry
            continue
        fields = ("text", "answerable", "details", "anchors")
        other = next((name for name in fields if getattr(entry, name) != getattr(first, name)), None)
        if other is not None:
            what = "something else" if other == "details" else f"another {other}"
            faults.add(path, entry.line, f"{what} than in line {first.line} for the same question", entry.content)
            continue
        judged = dict(first.judged)
        clash = next((name for name, grade in entry.judged if judged.get(name, grade) != grade), None)
        if clash is not None:
            faults.add(path, entry.line, f"another grade of {clash.shown} than in line {first.line} or below", entry.content)
            continue
        merged = replace(
            first,
            relevant=list(dict.fromkeys([*first.relevant, *entry.relevant])),
            judged=list((judged | dict(entry.judged)).items()),
        )
        given = sum(len(part.relevant) + len(part.judged) + part.repeated for part in (first, entry))
        found[key] = replace(merged, repeated=given - len(merged.relevant) - len(merged.judged))
    for entry in found.values():
        if entry.relevant and entry.judged:
            faults.add(path, entry.line, "some documents of the question have a grade and some have none", entry.content)
    return list(found.values())


def _of_json(row: _tabular.Row) -> Entry:
    fields = row.fields
    name = row.name("id")
    if "id" in fields and name is None:
        raise Fault("the id is neither a text nor a whole number of 64 bits")
    judged: dict[_ids.Name, float | int] = {}
    for label in _list(fields, "judged"):
        if not isinstance(label, dict) or set(label) != {"document", "grade"} or isinstance(label["grade"], str):
            raise Fault('judged holds {"document": …, "grade": a number}')
        grade, wrong = _tabular.grade(label["grade"])
        if wrong:
            raise Fault(wrong)
        document = _document(label["document"])
        if judged.setdefault(document, grade) != grade:
            raise Fault(f"two grades for {document.shown}")
    anchors = []
    for anchor in _list(fields, "anchors"):
        if not isinstance(anchor, dict) or set(anchor) != {"document", "phrase"}:
            raise Fault('anchors holds {"document": …, "phrase": "…"}')
        anchors.append(_anchor(_document(anchor["document"]), anchor["phrase"]))
    relevant = [_document(value) for value in _list(fields, "relevant")]
    if judged and any(document not in judged for document in relevant):
        raise Fault("relevant names a document that judged does not; give one of the two")
    answerable = fields.get("answerable")
    if answerable is not None and not isinstance(answerable, bool):
        raise Fault("answerable is neither true nor false")
    embedding = fields.get("embedding")
    return Entry(
        line=row.line,
        content=row.content,
        name=name,
        text=_text(fields, "text"),
        relevant=[] if judged else list(dict.fromkeys(relevant)),
        judged=list(judged.items()),
        answerable=answerable,
        anchors=anchors,
        details=_details(fields, _list(fields, "tags")),
        embedding=None if embedding is None else vector(embedding),
        model=_text(fields, "embedding_model") or None,
        repeated=len(_list(fields, "judged")) - len(judged) if judged else len(relevant) - len(set(relevant)),
    )


def _of_cells(row: _tabular.Row) -> Entry:
    fields = row.fields
    documents = [_cell_document(value) if typed else _ids.Name(value) for value, typed in _members(fields, "relevant")]
    grades = [value for value, _ in _members(fields, "grades")]
    if grades and len(grades) != len(documents):
        raise Fault(f"{len(grades)} grades for {len(documents)} documents")
    judged: dict[_ids.Name, float | int] = {}
    for document, given in zip(documents, grades, strict=False):
        grade, wrong = _tabular.grade(given)
        if wrong:
            raise Fault(wrong)
        if judged.setdefault(document, grade) != grade:
            raise Fault(f"two grades for {document.shown}")
    anchors = []
    for value, typed in _members(fields, "anchors"):
        if typed and isinstance(value, dict) and set(value) == {"document", "phrase"}:
            anchors.append(_anchor(_cell_document(value["document"]), value["phrase"]))
        elif not typed and "::" in value:
            name, _, phrase = value.partition("::")
            anchors.append(_anchor(_ids.Name(name.strip()), phrase.strip()))
        else:
            raise Fault("an anchor is document::phrase")
    return Entry(
        line=row.line,
        content=row.content,
        name=row.name("id"),
        text=_text(fields, "text"),
        relevant=[] if judged else list(dict.fromkeys(documents)),
        judged=list(judged.items()),
        answerable=flag(fields.get("answerable"), "answerable"),
        anchors=anchors,
        details=_details(fields, [value if typed else value.strip() for value, typed in _members(fields, "tags")]),
        repeated=len(documents) - len(set(documents)),
    )


def flag(value: Any, name: str) -> bool | None:
    """A field that is true or false, as JSON has it or in words; None where it is not there. Raises Fault for anything else."""
    if value is None or isinstance(value, bool):
        return value
    said = value.strip().lower() if isinstance(value, str) else repr(value)
    if said and said not in _WORDS:
        raise Fault(f"{name} is {said!r}, neither true nor false")
    return _WORDS[said] if said else None


def _quepid(path: Path, faults: Faults) -> Iterator[Entry]:
    """Quepid's export with ratings: query, docid, rating, or among more columns Query Text, Doc ID, Rating.

    A query without a rating is a row that ends after its text; a rating that is empty was not given.
    """
    rows = _tabular.read(path, "csv", _QUEPID, faults, strict=False, ragged=True)
    if rows and not any("document" in row.fields for row in rows):
        raise DataError(f"{path} holds no rated document", "export the case with its ratings: Basic or Detailed")
    for row in rows:
        text = _GUARDED.sub("", row.fields.get("text", ""), count=1)
        document = _GUARDED.sub("", row.fields.get("document", ""), count=1)
        given = row.fields.get("grade", "")
        grade, wrong = _tabular.grade(given) if given.strip() else (0, None)
        if not text.strip():
            faults.add(path, row.line, "a question without text", row.content)
        elif wrong or (given.strip() and not document.strip()):
            faults.add(path, row.line, wrong or "a rating of no document", row.content)
        else:
            judged = [(_ids.Name(document), grade)] if given.strip() else []
            yield Entry(row.line, row.content, None, text, judged=judged, details={"source": "imported"})


def vector(value: Any) -> list[float]:
    """A vector of a JSON file. Raises Fault unless it is a list of numbers that can be searched with."""
    if not isinstance(value, list) or any(_tabular.number(part) is None or isinstance(part, str) for part in value):
        raise Fault("a vector is a list of finite numbers")
    found = [float(part) for part in value]
    if wrong := _vectors.fault(found):
        raise Fault(f"{wrong}; embed it again")
    return found


def _details(fields: dict[str, Any], tags: list[Any]) -> dict[str, Any]:
    """Set, kind, tags, split, source and note, where the row has them."""
    found: dict[str, Any] = {key: _text(fields, key) for key in ("set", "kind", "split", "source", "note") if fields.get(key)}
    for key, known in (("split", SPLITS), ("source", SOURCES)):
        if found.get(key, known[0]) not in known:
            raise Fault(f"{key} is {found[key]!r}, none of {', '.join(known)}")
    if any(not isinstance(tag, str) for tag in tags):
        raise Fault("a tag is a text")
    return found | ({"tags": list(dict.fromkeys(tags))} if tags else {})


def _members(fields: dict[str, Any], key: str) -> list[tuple[Any, bool]]:
    """The members of a list in a cell, and whether they are JSON's."""
    cell = fields.get(key, "")
    if not cell.startswith("["):
        return [(member, False) for member in split_list(cell)]
    try:
        found = _tabular.parsed(cell)
    except ValueError as error:
        raise Fault(f"{key} begins with [ and is no JSON array ({error})") from error
    return [(member, True) for member in found]


def _document(value: Any) -> _ids.Name:
    name = _ids.of_json(value)
    if name is None:
        raise Fault(f"{value!r} is no id of a document")
    return name


def _cell_document(value: Any) -> _ids.Name:
    """An id in a JSON array in a cell: there too a text is a text of the table, which may mean a number."""
    name = _document(value)
    return _ids.Name(value) if isinstance(value, str) else name


def _anchor(document: _ids.Name, phrase: Any) -> tuple[_ids.Name, str]:
    if not isinstance(phrase, str) or not phrase.strip() or document.value == "":
        raise Fault("an anchor without a document or a phrase")
    return document, phrase


def _list(fields: dict[str, Any], key: str) -> list[Any]:
    found = fields.get(key, [])
    if not isinstance(found, list):
        raise Fault(f"{key} is no list")
    return found


def _text(fields: dict[str, Any], key: str) -> str:
    found = fields.get(key, "")
    if not isinstance(found, str):
        raise Fault(f"{key} is no text")
    return found
