"""surql/ as one transaction, read once: a server takes a third of the time that it takes for a definition at a time."""

from __future__ import annotations

from pathlib import Path

from surrecall import _files

DEFINITIONS = f"BEGIN;\n{_files.joined(_files.load(Path(__file__).parents[1]))}\nCOMMIT;"
