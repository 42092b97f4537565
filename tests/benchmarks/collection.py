"""What the benchmarks share: the collection's folder, a database of its own on a server, a project with its corpus files."""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surrecall import Database, Settings, _collection, _ingest, _init
from surrecall._corpus import Corpus

CORPUS = Corpus("paper", "abstract", "embedding", 384)


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("collection", type=Path, help="folder of SciFact in the BEIR form, with vectors in embeddings/")
    parser.add_argument("--url", default="ws://127.0.0.1:8000")
    parser.add_argument("--user", default="root")
    parser.add_argument("--password", default="root")
    parser.add_argument("--pairs", type=int, default=5)
    return parser


def fresh(options: argparse.Namespace) -> Settings:
    """A database nobody else uses."""
    name = "bench" + uuid.uuid4().hex
    return Settings(options.url, name, name, options.user, options.password)


def project() -> Path:
    """A folder with surrecall.toml and the corpus files."""
    folder = Path(tempfile.mkdtemp(prefix="surrecall-bench-"))
    _init.init(folder, CORPUS)
    return folder


def load(settings: Settings, collection: _collection.Collection) -> None:
    """The collection as surrecall imports it."""
    with Database(settings) as database:
        _ingest.ingest(database, project(), CORPUS, collection, "scifact", "default")


def seconds(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def report(name: str, ours: list[float], theirs: list[float]) -> None:
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    print("  each:", " ".join(f"{one:.3g}/{other:.3g}" for one, other in zip(ours, theirs, strict=True)))
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"{name}: {median(ratios):.3f} (pairs {spread}; {median(ours):.2f} s over {median(theirs):.2f} s)", flush=True)
