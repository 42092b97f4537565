"""Starting a project: surrecall.toml and surql/corpus for a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from surrecall._corpus import Corpus
from surrecall._errors import UsageError
from surrecall._retrievers import Retriever
from surrecall._settings import PROJECT_FILE, Settings

_SETTINGS = """\
# cutoffs of surrecall evaluate
k = [5, 20]

# the table that surql/corpus was written for; surrecall import reads it
[corpus]
{corpus}
{names}
# the database; the password belongs into SURREAL_PASSWORD
{database}
"""
_NO_DATABASE = """\
# [database]
# url = "ws://127.0.0.1:8000"
# namespace = "main"
# database = "main\""""


def init(
    folder: Path,
    corpus: Corpus,
    *,
    extra: Sequence[Retriever] = (),
    address: Settings | None = None,
    force: bool = False,
    chunks: Sequence[str] = (),
) -> list[Path]:
    """Write surrecall.toml and surql/corpus into a folder; the paths written. `extra` are retrievers beside those of the indexes,
    `address` the database, whose login is left out, `chunks` tables of chunks, which surrecall chunk fills.

    Raises UsageError when one of them is there already, unless `force` says to write over them.
    """
    targets = files(folder, corpus, extra, address, chunks)
    there = [path for path in targets if path.exists()]
    if there and not force:
        raise UsageError(
            f"{there[0].relative_to(folder)} is there already" + (f", and {len(there) - 1} more" if there[1:] else ""),
            "use another folder, or --force to write over them",
        )
    try:
        for path, text in targets.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename} can't be written: {error.strerror}", "make the folder writable") from error
    return list(targets)


def files(
    folder: Path,
    corpus: Corpus,
    extra: Sequence[Retriever] = (),
    address: Settings | None = None,
    chunks: Sequence[str] = (),
) -> dict[Path, str]:
    """What init writes, text by path."""
    retrievers = [*extra, *(one for table in chunks for one in corpus.chunk_retrievers(table))]
    made = [*corpus.render(retrievers), *(file for table in chunks for file in corpus.chunk_files(table))]
    targets = {folder / "surql" / "corpus" / file.name: file.text for file in made}
    names = "".join(f"{json.dumps(old)} = {json.dumps(new)}\n" for old, new in corpus.names.items())
    taken = f"\n# tables and functions of surrecall that go by another name in this database\n[names]\n{names}" if names else ""
    targets[folder / PROJECT_FILE] = _SETTINGS.format(corpus=_entries(corpus), names=taken, database=_database(address))
    return targets


def _database(address: Settings | None) -> str:
    if address is None:
        return _NO_DATABASE
    values = {"url": address.url, "namespace": address.namespace, "database": address.database}
    if address.user is not None:
        values["user"] = address.user
    return "\n".join(["[database]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())])


def _entries(corpus: Corpus) -> str:
    """TOML: a JSON string, number or list of strings is one of TOML's too. What is as it is anyway is left out."""
    values = {field.name: getattr(corpus, field.name) for field in fields(corpus) if field.name != "names"}
    values["title"] = corpus.title or ""
    values["analyzer"] = corpus.analyzer_name if corpus.has_words else None
    plain = {field.name: field.default for field in fields(corpus) if field.name not in ("pool", "distance", "reference")}
    if corpus.vector is None:
        plain["distance"] = values["distance"]
    return "\n".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value != plain.get(key, "")
    )
