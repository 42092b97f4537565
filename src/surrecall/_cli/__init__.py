"""The command line: `surrecall`, also `python -m surrecall`. One module a command."""

from __future__ import annotations

from surrecall._cli import apply, bundle, check, demo, evaluate, history, import_collection, init, questions, retrieve, seed
from surrecall._cli._app import app

__all__ = [
    "app",
    "apply",
    "bundle",
    "check",
    "demo",
    "evaluate",
    "history",
    "import_collection",
    "init",
    "main",
    "questions",
    "retrieve",
    "seed",
]


def main() -> None:
    """Entry point."""
    app()
