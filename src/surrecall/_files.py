"""The SurrealQL files: where they are, and in which order they load."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from surrecall import _names
from surrecall._errors import SchemaError

REGISTRY_FILE = "corpus/retrievers.toml"
DISPATCHER_FILE = "corpus/retrieve.surql"
FLOORS_FILE = "corpus/floors.toml"
FLOOR_ROWS_FILE = "corpus/floors.surql"
_DEFINED = re.compile(r"^DEFINE FUNCTION OVERWRITE (fn::\w+)", re.MULTILINE)


@dataclass(frozen=True)
class SourceFile:
    """One SurrealQL file: `name` is its path below surql/ or seed/, with slashes."""

    name: str
    text: str


def packaged(folder: str) -> Path:
    """The folder `surql` or `seed` that came with this package, in a wheel or in a checkout."""
    inside = Path(__file__).parent / folder
    return inside if inside.is_dir() else Path(__file__).parents[2] / folder


def corpus_folder(project: Path) -> Path:
    """The corpus files that are in force: the project's own surql/corpus, else the help centre's."""
    own = project / "surql" / "corpus"
    return own if own.is_dir() else packaged("surql") / "corpus"


def load(project: Path) -> list[SourceFile]:
    """All files in loading order, sorted by path: core of this package, in the names of the project, and the project's corpus."""
    folder = corpus_folder(project)
    files = core(_names.check(_names.of_project(project), our_functions())) + _below(folder, "corpus")
    if not any(file.name.startswith("corpus/") for file in files):
        raise SchemaError(f"{folder} holds no .surql file", "put the corpus files back, or remove the folder")
    return sorted(files, key=lambda file: file.name)


def core(names: _names.Names) -> list[SourceFile]:
    """The files that name no corpus, sorted by path, in the names of a project."""
    return [SourceFile(file.name, _names.rename(file.text, names)) for file in _below(packaged("surql") / "core", "core")]


def _below(folder: Path, label: str) -> list[SourceFile]:
    paths = sorted(folder.rglob("*.surql"))
    return [SourceFile(f"{label}/{path.relative_to(folder).as_posix()}", read(path)) for path in paths]


@cache
def our_functions() -> frozenset[str]:
    """The functions that surrecall defines, those of every kind of corpus included, as fn::name."""
    folders = (packaged("surql") / "core", Path(__file__).parent / "templates" / "corpus")
    defined = {name for folder in folders for path in folder.rglob("*.surql") for name in _DEFINED.findall(read(path))}
    return frozenset({*defined, "fn::retrieve", "fn::retrieve_rows"})


@cache
def metrics() -> tuple[str, ...]:
    """The names of the metrics, in alphabetical order; a file of its own each."""
    return tuple(sorted(path.stem.removesuffix("_at") for path in (packaged("surql") / "core" / "metric").glob("*.surql")))


def joined(files: Sequence[SourceFile]) -> str:
    """Several files as one text; a last statement without its semicolon gets one."""
    return "\n".join(
        f"-- surql/{file.name}\n{file.text.rstrip()}{'' if _is_closed(file.text) else chr(10) + ';'}\n" for file in files
    )


def _is_closed(text: str) -> bool:
    code = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("--", "#", "//"))]
    return not code or code[-1].rstrip().endswith(";")


def seed(name: str) -> SourceFile:
    """One file of the demo data: articles, questions or queries."""
    path = packaged("seed") / f"{name}.surql"
    return SourceFile(path.name, read(path))


def read(path: Path) -> str:
    """A text file, without a byte-order mark. Raises SchemaError when it can't be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{path} can't be read: {error}", "save it as UTF-8 text") from error
