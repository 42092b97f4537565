"""surrecall export documents"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall._cli._app import Context, Json, command, export_app, progress_bar
from surrecall._cli._export import FileArgument, Force, form_of, tell
from surrecall._export import documents, source
from surrecall._export.npy import NpyWriter
from surrecall._export.output import Output
from surrecall._render import counted


@command("documents", group=export_app)
def export_documents(
    context: Context,
    file: FileArgument,
    form: Annotated[documents.Form | None, typer.Option("--format", help="Else the file's ending, else jsonl.")] = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="With their vectors.")] = False,
    npy: Annotated[
        str | None, typer.Option("--npy", metavar="FILE.npy", help="Vectors as a file of their own, ids in FILE.ids.txt.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the corpus: id, title and text of every document; other fields are in a snapshot only.

    Example: surrecall export documents corpus.jsonl
    """
    asked = form_of(file, form, documents.Form, documents.Form.JSONL)
    with context.open() as database, Output(force=force) as output, progress_bar(context, "exporting") as advance:
        corpus = source.of_project(context.project, context.folder)
        writer = NpyWriter(output, npy) if npy is not None else None
        exported = documents.export(database, corpus, asked, output.lines(file), vectors=vectors, npy=writer, progress=advance)
        if writer is not None:
            writer.finish()
    with_vectors = f", {counted(exported.vectors, 'vector')}" if vectors or npy else ""
    tell(context, file, as_json, exported, f"{counted(exported.documents, 'document')}{with_vectors}")
