"""The corpus of a project: its table, and the files of surql/corpus for it, filled in from the templates beside this module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from surrecall import _files, _retrievers
from surrecall._errors import UsageError

_TEMPLATES = Path(__file__).parent / "templates" / "corpus"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# what fn::search_vec gives as a score, so that more is better
_SCORES = {
    "COSINE": "1 - distance",
    "EUCLIDEAN": "0 - distance",
    "MANHATTAN": "0 - distance",
    "CHEBYSHEV": "0 - distance",
}
# words of ours that a corpus table can't have as its name
_TAKEN = ("question", "retriever", "evaluation", "eval_answer", "eval_run", "eval_chain")


@dataclass(frozen=True)
class Corpus:
    """The table to evaluate over.

    `text` is the field that BM25 searches, `vector` the field with `dimension` numbers compared by `distance`; `pool` how many
    candidates the vector search and each half of the fusion look at, and so the largest k.
    """

    table: str
    text: str
    vector: str
    dimension: int
    distance: str = "COSINE"
    analyzer: str | None = None
    pool: int = 100

    def __post_init__(self) -> None:
        names = {"table": self.table, "field": self.text, "vector": self.vector, "analyzer": self.analyzer_name}
        for option, name in names.items():
            if not _NAME.fullmatch(name):
                raise UsageError(f"--{option} {name!r} is no plain name", "letters, digits and _, not a digit first")
        if self.table in _TAKEN:
            raise UsageError(f"--table {self.table} is a table of surrecall's own", f"ours are {', '.join(_TAKEN)}")
        if self.text == self.vector or "title" in (self.text, self.vector):
            raise UsageError("title, text and vector are three fields", "give --field and --vector other names")
        if self.distance.upper() not in _SCORES:
            raise UsageError(f"--distance {self.distance!r} is none that is known", f"one of {', '.join(_SCORES)}")
        for option, number, most in (("dimension", self.dimension, 65_536), ("pool", self.pool, 10_000)):
            if not 1 <= number <= most:
                raise UsageError(f"--{option} {number} is out of range", f"1 to {most}")

    @property
    def analyzer_name(self) -> str:
        """The analyzer of the full-text index."""
        return self.analyzer or f"{self.table}_text"

    @property
    def indexes(self) -> tuple[str, str]:
        """The names of its full-text and its vector index."""
        return f"{self.table}_words", f"{self.table}_embedding"

    def render(self) -> list[_files.SourceFile]:
        """The files of surql/corpus for this table, by name; retrieve.surql is made from retrievers.toml."""
        values = {
            "table": self.table,
            "text": self.text,
            "vector": self.vector,
            "dimension": str(self.dimension),
            "distance": self.distance.upper(),
            "score": _SCORES[self.distance.upper()],
            "analyzer": self.analyzer_name,
            "fill": "surrecall seed" if self.table == "article" else "surrecall import collection, or CREATE your own",
            "pool": str(self.pool),
            # fewer candidates than K would come back from a smaller ef
            "ef": str(self.pool * 3 // 2),
        }
        files = [
            _files.SourceFile(path.name.replace("TABLE", self.table), _filled(path.read_text(encoding="utf-8"), values))
            for path in sorted(_TEMPLATES.iterdir())
        ]
        registry = next(file.text for file in files if file.name == Path(_files.REGISTRY_FILE).name)
        dispatcher = _retrievers.compile_dispatcher(_retrievers.parse(registry))
        return [*files, _files.SourceFile(Path(_files.DISPATCHER_FILE).name, dispatcher)]


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)
