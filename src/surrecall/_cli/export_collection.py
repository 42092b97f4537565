"""surrecall export collection"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surrecall._cli._app import Context, Json, command, export_app, progress_bar
from surrecall._cli._export import tell
from surrecall._export import collection, source
from surrecall._render import counted


@command("collection", group=export_app)
def export_collection(
    context: Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write, empty or not there.")],
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="With vectors, where there are some (needs numpy).")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Write over an earlier export.")] = False,
    as_json: Json = False,
) -> None:
    """Write corpus and golden set in the BEIR form: corpus.jsonl, queries.jsonl, qrels/test.tsv, and vectors as .npy.

    surrecall import collection reads it back. Anchors, kinds, tags, splits and notes have no place in it; export questions has
    them, and a snapshot has everything.

    Example: surrecall export collection ./papers
    """
    corpus = source.of_project(context.project, context.folder)
    with context.open() as database, progress_bar(context, "exporting") as advance:
        exported = collection.export(database, corpus, folder, question_set, vectors=vectors, force=force, progress=advance)
    told = (
        f"{counted(exported.documents, 'document')}, {counted(exported.questions, 'question')}, "
        f"{counted(exported.labels, 'label')}, {counted(exported.vectors, 'document vector')}"
    )
    tell(context, str(folder), as_json, exported, told)
    if exported.unlabelled:
        context.warn(
            f"{counted(exported.unlabelled, 'question')} without a label left out, since this form has no place for them"
        )
    if exported.unplaced:
        context.warn(
            f"{counted(exported.unplaced, 'question')} have anchors, kind, tags, split or note, which have no place here; "
            "surrecall export questions has them"
        )
