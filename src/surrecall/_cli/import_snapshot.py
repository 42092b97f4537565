"""surrecall import snapshot"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from surrecall import _render
from surrecall._cli._app import Context, Json, command, import_app, progress_bar
from surrecall._cli._export import Force
from surrecall._render import counted
from surrecall._snapshot.form import Reader
from surrecall._snapshot.load import load, project_settings


@command("snapshot", group=import_app)
def import_snapshot(
    context: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of surrecall snapshot.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Load a snapshot: corpus, golden sets and definitions, into a database that has none of its documents.

    The file is checked whole first. Afterwards fingerprints of corpus and golden sets are compared with those of the place it
    comes from; when anything differs or fails, everything is taken back. surrecall.toml and surql/corpus are written into this
    folder where they are not there. It holds definitions that the database will run, so load only a file that you trust.

    Example: surrecall import snapshot papers.snapshot
    """
    snapshot = Reader(file)
    if context.project.corpus is None:
        # the snapshot brings the project along; where the database is, it does not say
        told = project_settings(snapshot)
        context = replace(context, project=replace(told, database=context.project.database))
    with context.open(create=True) as database, progress_bar(context, "loading") as advance:
        loaded = load(database, context.folder, snapshot, force=force, progress=advance)
    if as_json:
        _render.print_json(context.out, loaded)
        return
    context.out.print(
        f"loaded {counted(loaded.documents, 'document')} and {counted(loaded.questions, 'question')}, equal to their source",
        highlight=False,
    )
    if loaded.files:
        context.out.print(f"wrote {counted(len(loaded.files), 'file')} of the project here", highlight=False)
