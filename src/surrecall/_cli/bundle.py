"""surrecall bundle"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surrecall import _schema
from surrecall._cli._app import Context, command
from surrecall._errors import UsageError


@command("bundle", connects=False)
def bundle(
    context: Context,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; else standard output.")] = None,
) -> None:
    """Write all definitions as one file that `surreal import` takes.

    Example: surrecall bundle -o surrecall.surql
    """
    text = _schema.bundle(context.folder)
    if output is None:
        context.out.file.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} can't be written: {error.strerror}", "name a file in a folder that exists") from error
    context.out.print(f"wrote {output}", markup=False, highlight=False)
