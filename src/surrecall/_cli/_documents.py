"""The argument and options of a command that reads a file of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(metavar="FILE", help="Documents: .jsonl, .json, .csv or .tsv.")]
Form = Annotated[str | None, typer.Option("--format", help="jsonl, json, csv or tsv; else that of the extension.")]
Vectors = Annotated[Path | None, typer.Option("--vectors", help="Vectors of the documents, an .npy file.")]
Ids = Annotated[Path | None, typer.Option("--ids", help="Ids of its rows, one a line; else the .ids.txt beside it.")]
VectorColumn = Annotated[str | None, typer.Option("--vector-column", help="Column with the vectors; else vector.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column with the ids; else id or _id.")]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column with the texts; else text, or content.")]
TitleColumn = Annotated[str | None, typer.Option("--title", help="Column with the titles; else title.")]
PrependTitle = Annotated[
    bool, typer.Option("--prepend-title", help="Put the title before a text that does not begin with it: it is searched too.")
]
