"""Who works at this machine, where a command keeps a name."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path

from surrecall._errors import UsageError


def name(given: str | None, folder: Path) -> str:
    """The name that was given, else the one of git, else of the login. Raises UsageError when there is none."""
    if given is not None:
        if not given.strip():
            raise UsageError("--who is empty", "for example: --who Ada")
        return given.strip()
    try:
        asked = subprocess.run(["git", "config", "user.name"], cwd=folder, capture_output=True, text=True, timeout=5, check=False)
        found = asked.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        found = ""
    try:
        found = found or getpass.getuser().strip()
    except (OSError, KeyError, ImportError):
        found = ""
    if not found:
        raise UsageError("it is not known who works here", "give a name: --who Ada")
    return found
