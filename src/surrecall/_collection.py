"""Reading a collection in the BEIR form: documents, questions, labels, and vectors where there are some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrecall import _ids, _label_file, _tabular, _vectors
from surrecall._errors import DataError, UsageError
from surrecall._faults import Faults

# the names a part goes by; the first that is there is taken
_DOCUMENTS = ("docs.jsonl", "corpus.jsonl")
_QUESTIONS = ("queries.jsonl",)
_LABELS = ("qrels.tsv", "qrels/test.tsv", "qrels.trec", "qrels.txt")
_ID_KEYS = ("id", "_id")


@dataclass(frozen=True)
class Document:
    """One document: `text` is what is searched, `title` what is shown. A number for an id stays one."""

    id: str | int
    title: str | None
    text: str
    vector: list[float] | None = None


@dataclass(frozen=True)
class Question:
    """One question with its labels, document id to grade."""

    id: str | int
    text: str
    labels: dict[str | int, float]
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
    for vectors, names in ((document_vectors, [document.id for document in documents]), (question_vectors, list(texts))):
        if vectors is not None:
            _vectors.require_distinct(names, folder)
    gathered = _labels(_part(folder, _LABELS), [document.id for document in documents], texts, faults)
    labels = gathered.grades
    if not documents and not faults.count:
        raise DataError(f"{_part(folder, _DOCUMENTS)} holds no document", "one JSON object a line: id, title, text")
    if question_vectors is not None:
        _same_dimension(document_vectors, question_vectors, folder)
        for name in texts:
            if str(name) not in question_vectors:
                faults.add(_part(folder, _QUESTIONS), 0, "a question without a vector", str(name))
    faults.raise_if_any()
    if not labels:
        raise DataError(f"{_part(folder, _LABELS)} holds no label", "one line a label: query-id, corpus-id, score")
    questions = [
        Question(name, text, labels[name], question_vectors[str(name)] if question_vectors else None)
        for name, text in texts.items()
        if name in labels
    ]
    return Collection(documents, questions, len(texts) - len(questions), gathered.repeated)


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


def _objects(path: Path, faults: Faults) -> Iterator[tuple[int, str, str | int, dict[str, Any]]]:
    """JSON objects of a file with line, content and id, each id once."""
    seen: dict[str | int, int] = {}
    for line, content, row in _tabular.objects(path, faults):
        name = _ids.of_json(next((row[key] for key in _ID_KEYS if key in row), None))
        if name is None:
            faults.add(path, line, "no object with an id", content)
        elif name.value in seen:
            faults.add(path, line, f"the id {name.shown} is there already, in line {seen[name.value]}", content)
        else:
            seen[name.value] = line
            yield line, content, name.value, row


def _documents(path: Path, vectors: _vectors.Vectors | None, faults: Faults) -> Iterator[Document]:
    for number, line, name, row in _objects(path, faults):
        title, text = row.get("title") or None, row.get("text")
        if not isinstance(text, str) or not (title is None or isinstance(title, str)):
            faults.add(path, number, "no text", line)
        elif not text.strip() and not (title or "").strip():
            faults.add(path, number, "an empty document", line)
        elif vectors is not None and str(name) not in vectors:
            faults.add(path, number, "a document without a vector", line)
        else:
            # many collections open the text with the title; it counts once, and not at all where the text is said to be whole
            metadata = row.get("metadata")
            complete = isinstance(metadata, dict) and metadata.get("whole_text") is True
            whole = text if title is None or complete or text.startswith(title) else f"{title}\n{text}"
            yield Document(name, title, whole, vectors[str(name)] if vectors else None)


def _questions(path: Path, faults: Faults) -> Iterator[tuple[str | int, str]]:
    for number, line, name, row in _objects(path, faults):
        text = row.get("text")
        if not isinstance(text, str) or not text.strip():
            faults.add(path, number, "a question without text", line)
        else:
            yield name, text


def _labels(path: Path, documents: Iterable[str | int], questions: Iterable[str | int], faults: Faults) -> _label_file.Gathered:
    """Labels by question; a text of the file means the id that prints so."""
    labels = _label_file.read(path, None, faults)
    return _label_file.gather(
        path,
        labels,
        _ids.among((label.question for label in labels), questions),
        _ids.among((label.document for label in labels), documents),
        faults,
        "in no file",
    )
