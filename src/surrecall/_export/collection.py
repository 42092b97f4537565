"""A corpus and a golden set as a folder in the BEIR form, which `surrecall import collection` reads back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._export import documents, ids, labels, questions, source
from surrecall._export.npy import NpyWriter
from surrecall._export.output import Output
from surrecall._export.pages import pages
from surrecall._render import record_text

_ANY_VECTOR = "RETURN (SELECT VALUE id FROM type::table($table) WHERE type::field($vector) != NONE LIMIT 1).len() > 0"
_LABELS = "qrels/test.tsv"
_NAMES = ("corpus.jsonl", "queries.jsonl", _LABELS, "corpus.npy", "corpus.ids.txt", "queries.npy", "queries.ids.txt")
_UNPLACED = ("anchors", "kind", "tags", "split", "note")


@dataclass(frozen=True)
class Exported:
    """What was written. `unlabelled` questions are left out; `unplaced` have something that the form has no place for."""

    documents: int
    questions: int
    labels: int
    vectors: int
    unlabelled: int
    unplaced: int


def export(
    database: Database,
    corpus: source.Source,
    folder: Path,
    question_set: str,
    *,
    vectors: bool = True,
    force: bool = False,
    progress: source.Progress = source.silent,
) -> Exported:
    """Write a collection. Raises DataError naming what the form can't hold, UsageError when the folder is not empty.

    `force` replaces the files of an earlier export, and nothing else.
    """
    source.require_set(database, question_set)
    with _whole_folder(folder, force=force) as into, Output() as output:
        found = list(questions.rows(database, question_set))
        _, judged = labels.of_set(database, question_set)
        labelled = {source.key(label.question) for label in judged}
        kept = [row for row in found if source.key(row["id"]) in labelled]
        if not kept:
            raise DataError(f"no question of the set {question_set} has a label, so there is no collection", "label some")
        labels.write(database, labels.Form.BEIR, output.lines(into / _LABELS), judged)
        lines = output.lines(into / "queries.jsonl")
        for row in kept:
            lines.json({"_id": ids.typed(row["id"]), "text": row["text"]})
        written = _documents(database, corpus, into, output, progress, vectors=vectors)
        if written[1]:
            _question_vectors(database, question_set, labelled, into, output)
    unplaced = sum(any(row.get(name) for name in _UNPLACED) for row in kept)
    return Exported(written[0], len(kept), len(judged), written[1], len(found) - len(kept), unplaced)


def _documents(
    database: Database, corpus: source.Source, into: Path, output: Output, progress: source.Progress, *, vectors: bool
) -> tuple[int, int]:
    """How many documents were written, and how many vectors."""
    wanted = vectors and corpus.vector is not None and database.value(_ANY_VECTOR, table=corpus.table, **corpus.fields)
    npy = NpyWriter(output, into / "corpus.npy") if wanted else None
    lines, count, total = output.lines(into / "corpus.jsonl"), 0, source.count(database, corpus.table)
    for row in documents.rows(database, corpus, vectors=npy is not None):
        title, text = row.get("title") or None, row["text"]
        if not text.strip():
            raise DataError(
                f"{record_text(row['id'])} has no text, and a collection none without", "surrecall check lists such documents"
            )
        found: dict[str, Any] = {"_id": ids.typed(row["id"])} | ({"title": title} if title else {}) | {"text": text}
        if title and not text.startswith(title):
            # the reader puts the title in front of a text that does not begin with it, unless it is told that this is all
            found["metadata"] = {"whole_text": True}
        lines.json(found)
        if npy is not None:
            _add(npy, row, row.get("vector"))
        count += 1
        progress(count, total)
    if npy is not None:
        npy.finish()
    return count, npy.count if npy else 0


def _question_vectors(database: Database, question_set: str, wanted: set[Any], into: Path, output: Output) -> None:
    """The questions' vectors, where there are some."""
    npy: NpyWriter | None = None
    lacking: dict[str, Any] | None = None
    for page in pages(database, database.table("question"), "id, embedding", source.IN_SET, set=question_set):
        for row in page:
            if source.key(row["id"]) not in wanted:
                continue
            if row.get("embedding") is None:
                lacking = lacking or row
            else:
                npy = npy or NpyWriter(output, into / "queries.npy")
                _add(npy, row, row["embedding"])
            if npy is not None and lacking is not None:
                _add(npy, lacking, None)
    if npy is not None:
        npy.finish()


def _add(npy: NpyWriter, row: dict[str, Any], vector: list[float] | None) -> None:
    if vector is None:
        raise DataError(
            f"{record_text(row['id'])} has no vector, where others have",
            "surrecall embed gives it one, or --no-vectors leaves all out",
        )
    npy.add(ids.text(row["id"]), vector)


def _move_into(into: Path, folder: Path) -> None:
    """Put the files of one folder into another: first all of them under names of their own, then each in its place."""
    made = [path.relative_to(into) for path in sorted(into.rglob("*")) if path.is_file()]
    aside = {name: (folder / name).with_name(f".{name.name}.part") for name in made}
    try:
        for name, temporary in aside.items():
            temporary.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(into / name, temporary)
        for name, temporary in aside.items():
            temporary.replace(folder / name)
        # of an earlier export, which had vectors
        for earlier in set(_NAMES) - {name.as_posix() for name in made}:
            (folder / earlier).unlink(missing_ok=True)
    finally:
        for temporary in aside.values():
            temporary.unlink(missing_ok=True)


@contextmanager
def _whole_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """A folder to fill, which becomes `folder` when all is done."""
    folder = folder.resolve()
    there = (
        sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()) if folder.is_dir() else []
    )
    strange = [name for name in there if name not in _NAMES]
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "name one that is empty, or not there")
    if strange or (there and not force):
        how = "name an empty folder" if strange else "name an empty folder, or --force to write over it"
        raise UsageError(f"{folder} holds {(strange or there)[0]} already", how)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        into = folder.with_name(f".{folder.name}.{uuid4().hex[:8]}.part")
        into.mkdir()
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}", "name a folder that can be made") from error
    try:
        (into / _LABELS).parent.mkdir()
        yield into
        if folder.exists():
            # file by file: the folder may be a mount point, and what else it holds stays
            _move_into(into, folder)
        else:
            into.rename(folder)
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}", "make room, or name another folder") from error
    finally:
        shutil.rmtree(into, ignore_errors=True)
