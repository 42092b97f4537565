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
        told = subprocess.run(  # fixed arguments, no shell
            ["git", "-C", str(folder), "config", "user.name"], capture_output=True, text=True, check=False, timeout=10
        ).stdout.strip()
        return told or getpass.getuser()
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        raise UsageError("nobody is known by name here", "--who NAME") from error
