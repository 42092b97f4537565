"""The command line: `surrecall`, also `python -m surrecall`. One module a command."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

from surrecall._cli._app import app
from surrecall._errors import ExitCode

__all__ = ["app", "load", "main"]


def load(word: str = "") -> None:
    """Register the commands that begin with a word; all of them where it begins none, for the help and for what was misspelt.

    A third of the start of a command would else be spent on the others.
    """
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))
    first = word.replace("-", "_")
    wanted = [name for name in names if first and (name == first or name.startswith(f"{first}_"))]
    for name in wanted or names:
        import_module(f"surrecall._cli.{name}")


def main() -> None:
    """Entry point."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # an id or text that the terminal has no letters for is shown escaped
            stream.reconfigure(errors="backslashreplace")
    load(next((word for word in sys.argv[1:] if not word.startswith("-")), ""))
    try:
        app()
    except Exception:
        # a fault of surrecall's own; 1 would say that a gate failed
        traceback.print_exc()
        sys.exit(ExitCode.DATABASE)
