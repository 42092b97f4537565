"""Where the database is: flags, then SURREAL_* variables, then surrecall.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from surrecall import _files, _names
from surrecall._corpus import Corpus
from surrecall._errors import UsageError

PROJECT_FILE = _names.PROJECT_FILE
DEFAULT_CUTOFFS = (1, 3, 5)
_ENTRIES = ("k", "prompt_k", "pool_k", "review_after", "corpus", "names", "database")
SCHEMES = ("mem", "surrealkv", "ws", "wss", "http", "https")

# first name wins; the others are what SurrealDB's own tools and SDKs call the same thing
_VARIABLES = {
    "url": ("SURREAL_URL", "SURREAL_ENDPOINT"),
    "user": ("SURREAL_USER", "SURREAL_USERNAME"),
    "password": ("SURREAL_PASSWORD", "SURREAL_PASS"),
    "namespace": ("SURREAL_NS", "SURREAL_NAMESPACE"),
    "database": ("SURREAL_DB", "SURREAL_DATABASE"),
}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return type(value) is int


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


# what belongs into [corpus]
_CORPUS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("table", "vector", "distance", "analyzer", "vector_index", "vector_table", "title"), _is_text),
    **dict.fromkeys(("link", "linked_by", "reference", "parent", "position"), _is_text),
    **dict.fromkeys(("dimension", "pool"), _is_number),
    "text": lambda value: _is_text(value) or _is_texts(value),
    "text_indexes": _is_texts,
    "adopted": lambda value: isinstance(value, bool),
}


@dataclass(frozen=True)
class Settings:
    """One database to work on. `password` never appears in a repr, an error or the history.

    `names` are tables and functions of surrecall's that go by another name there.
    """

    url: str
    namespace: str = "main"
    database: str = "main"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_embedded(self) -> bool:
        """Whether the engine runs inside this process (mem://, surrealkv://)."""
        return self.url.startswith(("mem://", "surrealkv://"))

    @property
    def label(self) -> str:
        """The address for messages, without secrets."""
        return f"{self.url} {self.namespace}/{self.database}"


@dataclass(frozen=True)
class ProjectFile:
    """What surrecall.toml says; every field has a default, so no file is needed."""

    database: dict[str, str] = field(default_factory=dict)
    cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS
    corpus: Corpus | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    # what the prompt takes, and what the first stage returns
    prompt_k: int | None = None
    pool_k: int | None = None
    # days after which a label is to be read again
    review_after: int | None = None


def read_project_file(folder: Path) -> ProjectFile:
    """Read surrecall.toml of a folder; defaults when there is none. Raises UsageError naming the file and the entry."""
    path = folder / PROJECT_FILE
    if not path.is_file():
        return ProjectFile()
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{PROJECT_FILE} can't be read: {error}", "mend the line it names") from error
    for name in content:
        if name not in _ENTRIES:
            known = ", ".join(_ENTRIES)
            raise UsageError(f"{PROJECT_FILE} has {name!r}; it takes {known}", "rename or remove the entry")
    database = content.get("database", {})
    unknown = sorted(set(database) - set(_VARIABLES)) if isinstance(database, dict) else ["database"]
    if unknown:
        taken = ", ".join(key for key in _VARIABLES if key != "password")
        raise UsageError(f"{PROJECT_FILE}: [database] has {unknown[0]!r}; it takes {taken}", "rename or remove the entry")
    if "password" in database or "@" in str(database.get("url", "")):
        raise UsageError(
            f"{PROJECT_FILE}: [database] holds a login, and project files get committed",
            "put it into SURREAL_PASSWORD instead",
        )
    cutoffs = content.get("k", list(DEFAULT_CUTOFFS))
    if not isinstance(cutoffs, list) or not cutoffs or any(type(k) is not int or k < 1 for k in cutoffs):
        raise UsageError(f"{PROJECT_FILE}: k is {cutoffs!r}, not a list of whole numbers", "for example: k = [5, 20]")
    prompt_k, pool_k = (_whole(content, name) for name in ("prompt_k", "pool_k"))
    if prompt_k is not None and pool_k is not None and prompt_k > pool_k:
        raise UsageError(
            f"{PROJECT_FILE}: prompt_k is {prompt_k}, more than pool_k, {pool_k}",
            "pool_k is what the first stage returns, prompt_k what of it the prompt takes",
        )
    names = _names.check(_names.of_project(folder), _files.our_functions()) if "names" in content else {}
    return ProjectFile(
        database={key: str(value) for key, value in database.items()},
        cutoffs=tuple(sorted(set(cutoffs))),
        corpus=_corpus(content.get("corpus"), names),
        names=names,
        prompt_k=prompt_k,
        pool_k=pool_k,
        review_after=_whole(content, "review_after"),
    )


def resolve(
    project: ProjectFile,
    *,
    url: str | None = None,
    user: str | None = None,
    password: str | None = None,
    namespace: str | None = None,
    database: str | None = None,
) -> Settings:
    """Settle on one database. Raises UsageError when none is named or the address is none of ours."""
    given = {"url": url, "user": user, "password": password, "namespace": namespace, "database": database}
    values = {
        key: given[key] or next((os.environ[name] for name in names if os.environ.get(name)), None)
        for key, names in _VARIABLES.items()
    }
    values = {key: value or project.database.get(key) for key, value in values.items()}
    address = values["url"]
    if not address:
        raise UsageError(
            "no database is named",
            "give --url (ws://127.0.0.1:8000, or surrealkv://recall.db for a folder), set SURREAL_URL, "
            f"or write it into {PROJECT_FILE}; surrecall demo needs none",
        )
    address, url_user, url_password = _split_login(address)
    return Settings(
        url=address,
        namespace=values["namespace"] or "main",
        database=values["database"] or "main",
        user=values["user"] or url_user,
        password=values["password"] or url_password,
        names=project.names,
    )


def _whole(content: Mapping[str, Any], name: str) -> int | None:
    value = content.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise UsageError(f"{PROJECT_FILE}: {name} is {value!r}, not a whole number of 1 or more", f"for example: {name} = 5")
    return value


def _corpus(entries: Any, names: Mapping[str, str]) -> Corpus | None:
    if entries is None:
        return None
    if not isinstance(entries, dict):
        raise UsageError(f"{PROJECT_FILE}: corpus is {entries!r}, no table", "surrecall init writes it")
    for key, value in entries.items():
        wanted = _CORPUS.get(key)
        if wanted is not None and not wanted(value):
            raise UsageError(f"{PROJECT_FILE}: [corpus] {key} is {value!r}", "surrecall init writes it as it should be")
    try:
        return Corpus(**entries, names=names)
    except TypeError as error:
        raise UsageError(f"{PROJECT_FILE}: [corpus] is not whole: {error}", "surrecall init writes it") from error


def _split_login(url: str) -> tuple[str, str | None, str | None]:
    """Take a login out of the address, so that no message can show it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in SCHEMES or "://" not in url:
        shown = url.rpartition("@")[2]
        raise UsageError(f"{shown!r} is no address of a database", f"one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    login, at, host = parts.netloc.rpartition("@")
    if not at or parts.scheme in ("mem", "surrealkv"):
        return parts.scheme + url[len(parts.scheme) :], None, None
    name, _, secret = login.partition(":")
    return urlunsplit(parts._replace(netloc=host)), unquote(name) or None, unquote(secret) or None
