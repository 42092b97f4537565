"""Changing the retrievers of a project: retrievers.toml, what is made from it, and the database, together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from surrecall import _files, _retrievers, _schema
from surrecall._database import Database
from surrecall._errors import UsageError
from surrecall._retrievers import Retriever


def retrievers(project: Path) -> list[Retriever]:
    """The retrievers of a project, the help centre's where it has no files of its own."""
    path = _files.corpus_folder(project).parent / _files.REGISTRY_FILE
    return _retrievers.parse(_files.read(path), str(path))


def one(project: Path, name: str) -> Retriever:
    """A retriever by name. Raises UsageError that lists those that exist."""
    known = {retriever.name: retriever for retriever in retrievers(project)}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1)
    raise UsageError(f"no retriever named {name}; there are: {', '.join(known)}", f"did you mean {near[0]}?" if near else None)


def add(database: Database, project: Path, retriever: Retriever) -> None:
    """Add a retriever, or put it in the place of the one of that name, and apply; a failure leaves all as it was."""
    _change(database, project, lambda text: _retrievers.added(text, retriever))


def remove(database: Database, project: Path, name: str) -> None:
    """Take a retriever out, and apply; its history stays. Raises UsageError for an unknown or the only one."""
    one(project, name)
    if len(retrievers(project)) == 1:
        raise UsageError(f"{name} is the only retriever", "surrecall retriever add puts another beside it first")
    _change(database, project, lambda text: _retrievers.removed(text, name))


def _change(database: Database, project: Path, edit: Callable[[str], str]) -> None:
    path = _own_file(project)
    # bytes, so that line ends and a byte-order mark stay what they are
    dispatcher = path.parent / Path(_files.DISPATCHER_FILE).name
    before = {file: file.read_bytes() for file in (path, dispatcher) if file.is_file()}
    after = edit(before[path].decode("utf-8"))
    _retrievers.parse(after.removeprefix("\ufeff"), str(path))
    try:
        path.write_bytes(after.encode("utf-8"))
        _schema.apply(database, project)
    except BaseException:
        for file, content in before.items():
            file.write_bytes(content)
        raise


def _own_file(project: Path) -> Path:
    path = project / "surql" / _files.REGISTRY_FILE
    if not path.is_file():
        raise UsageError(
            "this folder has no surql/corpus/retrievers.toml, so there is nothing to change",
            "surrecall init, or surrecall init --adopt for a database that is there",
        )
    return path
