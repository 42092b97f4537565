"""Reading a collection in the BEIR form: documents, questions, labels, and vectors where there are some."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrecall import _vectors
from surrecall._errors import DataError, UsageError
from surrecall._faults import Faults

# the names a part goes by; the first that is there is taken
_DOCUMENTS = ("docs.jsonl", "corpus.jsonl")
_QUESTIONS = ("queries.jsonl",)
_LABELS = ("qrels.tsv", "qrels/test.tsv")
_ID_KEYS = ("id", "_id")
# a header is known by its names, in any case and order
_HEADERS = {
    "question": ("query-id", "query_id", "queryid", "qid", "query"),
    "document": ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "document"),
    "grade": ("score", "relevance", "grade", "rel", "label"),
}


@dataclass(frozen=True)
class Document:
    """One document: `text` is what is searched, `title` what is shown."""

    id: str
    title: str | None
    text: str
    vector: list[float] | None = None


@dataclass(frozen=True)
class Question:
    """One question with its labels, document id to grade."""

    id: str
    text: str
    labels: dict[str, float]
    vector: list[float] | None = None


@dataclass(frozen=True)
class Collection:
    """A collection that was read whole and found consistent. `unlabelled` questions had no label and are left out."""

    documents: list[Document]
    questions: list[Question]
    unlabelled: int
    repeated_labels: int


def read(folder: Path) -> Collection:
    """Read and check a whole collection. Raises DataError with file, line and content of the first ten faults."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "give the folder that holds docs.jsonl, queries.jsonl and qrels.tsv")
    faults = Faults()
    document_vectors, question_vectors = _find_vectors(folder, "docs", "corpus"), _find_vectors(folder, "queries")
    documents = list(_documents(_part(folder, _DOCUMENTS), document_vectors, faults))
    texts = dict(_questions(_part(folder, _QUESTIONS), faults))
    # a label of a document that could not be read is no fault of its own
    faults.raise_if_any()
    labels, repeated = _labels(_part(folder, _LABELS), {document.id for document in documents}, set(texts), faults)
    if not documents and not faults.count:
        raise DataError(f"{_part(folder, _DOCUMENTS)} holds no document", "one JSON object a line: id, title, text")
    if question_vectors is not None:
        _same_dimension(document_vectors, question_vectors, folder)
        for name in texts:
            if name not in question_vectors:
                faults.add(_part(folder, _QUESTIONS), 0, "a question without a vector", name)
    faults.raise_if_any()
    if not labels:
        raise DataError(f"{_part(folder, _LABELS)} holds no label", "one line a label: query-id, corpus-id, score")
    questions = [
        Question(name, text, labels[name], question_vectors[name] if question_vectors else None)
        for name, text in texts.items()
        if name in labels
    ]
    return Collection(documents, questions, len(texts) - len(questions), repeated)


def _part(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{folder} holds no {' or '.join(names)}", "put the file there, or give another folder")


def _find_vectors(folder: Path, *names: str) -> _vectors.Vectors | None:
    """Vectors of documents or questions: one file docs*.npy beside docs.ids.txt, in the folder or in embeddings/."""
    for place in (folder / "embeddings", folder):
        for name in names:
            found = sorted(place.glob(f"{name}*.npy"))
            if len(found) > 1:
                raise UsageError(
                    f"{place} holds several vector files: {', '.join(path.name for path in found)}",
                    f"leave one {name}*.npy there",
                )
            if found:
                return _vectors.read(found[0], place / f"{name}.ids.txt")
    return None


def _same_dimension(documents: _vectors.Vectors | None, questions: _vectors.Vectors, folder: Path) -> None:
    if documents is None:
        raise DataError(f"{folder} has vectors for questions and none for documents", "add docs*.npy and docs.ids.txt")
    ours, theirs = len(next(iter(documents.values()))), len(next(iter(questions.values())))
    if ours != theirs:
        raise DataError(f"vectors of {ours} for documents and of {theirs} for questions in {folder}", "embed both with one model")


def _lines(path: Path, faults: Faults) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank; without a byte-order mark, whatever the line ends."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}", "make it readable") from error
    except UnicodeDecodeError as error:
        place = path.read_bytes()[: error.start].count(b"\n") + 1
        faults.add(path, place, "no UTF-8 text", repr(error.object[error.start : error.start + 10]))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _objects(path: Path, faults: Faults) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """JSON objects of a file with line, content and id, each id once."""
    seen: dict[str, int] = {}
    for number, line in _lines(path, faults):
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            faults.add(path, number, f"no JSON ({str(error)[:60]})", line)
            continue
        name = next((row[key] for key in _ID_KEYS if key in row), None) if isinstance(row, dict) else None
        if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
            faults.add(path, number, "no object with an id", line)
        elif (name := str(name)) in seen:
            faults.add(path, number, f"the id {name!r} is there already, in line {seen[name]}", line)
        else:
            seen[name] = number
            yield number, line, name, row


def _documents(path: Path, vectors: _vectors.Vectors | None, faults: Faults) -> Iterator[Document]:
    for number, line, name, row in _objects(path, faults):
        title, text = row.get("title") or None, row.get("text")
        if not isinstance(text, str) or not (title is None or isinstance(title, str)):
            faults.add(path, number, "no text", line)
        elif not text.strip() and not (title or "").strip():
            faults.add(path, number, "an empty document", line)
        elif vectors is not None and name not in vectors:
            faults.add(path, number, "a document without a vector", line)
        else:
            # many collections open the text with the title; it counts once
            whole = text if title is None or text.startswith(title) else f"{title}\n{text}"
            yield Document(name, title, whole, vectors[name] if vectors else None)


def _questions(path: Path, faults: Faults) -> Iterator[tuple[str, str]]:
    for number, line, name, row in _objects(path, faults):
        text = row.get("text")
        if not isinstance(text, str) or not text.strip():
            faults.add(path, number, "a question without text", line)
        else:
            yield name, text


def _labels(path: Path, documents: set[str], questions: set[str], faults: Faults) -> tuple[dict[str, dict[str, float]], int]:
    """Labels by question. A pair given again with the same grade is counted, with another one a fault."""
    labels: dict[str, dict[str, float]] = {}
    places: dict[tuple[str, str], int] = {}
    order: tuple[int, int, int] | None = None
    repeated = 0
    for number, line in _lines(path, faults):
        fields = line.split("\t") if "\t" in line else line.split()
        fields = [part.strip() for part in fields]
        if order is None:
            order, header = _columns(path, number, fields)
            if header:
                continue
        if len(fields) != 3 or not all(fields):
            faults.add(path, number, "not three fields", line)
            continue
        question, document, text = (fields[index] for index in order)
        try:
            grade = float(text)
        except ValueError:
            faults.add(path, number, f"the grade {text!r} is no number", line)
            continue
        if not -1000 < grade < 1000:
            faults.add(path, number, f"the grade {text!r} is out of range", line)
        elif question not in questions:
            faults.add(path, number, f"the question {question!r} is in no file", line)
        elif document not in documents:
            faults.add(path, number, f"the document {document!r} is in no file", line)
        elif document in labels.get(question, {}):
            if labels[question][document] == grade:
                repeated += 1
            else:
                faults.add(path, number, f"another grade than in line {places[question, document]}", line)
        else:
            labels.setdefault(question, {})[document] = grade
            places[question, document] = number
    return labels, repeated


def _columns(path: Path, number: int, fields: list[str]) -> tuple[tuple[int, int, int], bool]:
    """Where question, document and grade stand, and whether the line is a header."""
    names = [name.lower() for name in fields]
    found = {key: next((names.index(name) for name in known if name in names), None) for key, known in _HEADERS.items()}
    places = [found["question"], found["document"], found["grade"]]
    if None not in places and len(fields) == 3:
        question, document, grade = (place for place in places if place is not None)
        return (question, document, grade), True
    try:
        float(fields[-1])
    except ValueError as error:
        raise DataError(f"{path}:{number}: an unknown header: {fields!r}", "query-id, corpus-id, score") from error
    return (0, 1, 2), False
