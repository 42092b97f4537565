"""Starting a project: surrecall.toml and surql/corpus for a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from surrecall._corpus import Corpus
from surrecall._errors import UsageError
from surrecall._settings import PROJECT_FILE

_SETTINGS = """\
# cutoffs of surrecall evaluate
k = [5, 20]

# the table that surql/corpus was written for; surrecall import reads it
[corpus]
{corpus}

# the database; the password belongs into SURREAL_PASSWORD
# [database]
# url = "ws://127.0.0.1:8000"
# namespace = "main"
# database = "main"
"""


def init(folder: Path, corpus: Corpus, *, force: bool = False) -> list[Path]:
    """Write surrecall.toml and surql/corpus into a folder; the paths written.

    Raises UsageError when one of them is there already, unless `force` says to write over them.
    """
    targets = {folder / "surql" / "corpus" / file.name: file.text for file in corpus.render()}
    targets[folder / PROJECT_FILE] = _SETTINGS.format(corpus=_entries(corpus))
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


def _entries(corpus: Corpus) -> str:
    """TOML: a JSON string or number is one of TOML's too."""
    values = asdict(corpus) | {"analyzer": corpus.analyzer_name, "distance": corpus.distance.upper()}
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
