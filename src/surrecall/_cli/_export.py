"""What the export commands share: the file to write, its form, and the closing line."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from surrecall import _render
from surrecall._cli._app import Context
from surrecall._errors import UsageError
from surrecall._export.output import STANDARD_OUTPUT

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="File to write; - is standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
AnySet = Annotated[str | None, typer.Option("--set", help="Only this golden set.")]

_Form = TypeVar("_Form", bound=StrEnum)


def form_of(file: str, given: _Form | None, known: type[_Form], default: _Form | None = None) -> _Form:
    """The form that was asked for, else the one that the file's ending names, else the default."""
    suffix = Path(file).suffix.removeprefix(".").lower()
    named = next((form for form in known if form.value == suffix), default)
    found = given or named
    if found is None:
        raise UsageError(f"the form is not known from {file}", f"--format {', '.join(form.value for form in known)}")
    return found


def tell(context: Context, file: str, as_json: bool, exported: Any, what: str) -> None:
    """Say what was written; beside data on standard output, on standard error."""
    console = context.err if file == STANDARD_OUTPUT else context.out
    if as_json:
        _render.print_json(console, exported)
    else:
        name = "standard output" if file == STANDARD_OUTPUT else file
        console.print(f"wrote {what} to {name}", markup=False, highlight=False, soft_wrap=True)
