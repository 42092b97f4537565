"""surrecall export contexts"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall._cli._app import Context, Json, command, export_app
from surrecall._cli._export import AnySet, FileArgument, tell
from surrecall._export import contexts, source
from surrecall._export.output import Output
from surrecall._render import counted


@command("contexts", group=export_app)
def export_contexts(
    context: Context,
    file: FileArgument,
    question_set: AnySet = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over a file that is there; leave out labels whose document is gone.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write each question with the texts that answer it, as JSON Lines, so that generation can be tested by itself.

    One line a question: id, text, and contexts of id, title, text and grade. A question that nothing answers has none.

    Example: surrecall export contexts contexts.jsonl
    """
    with context.open() as database, Output(force=force) as output:
        corpus = source.of_project(context.project, context.folder)
        exported = contexts.export(database, corpus, output.lines(file), question_set, without_missing=force)
    told = f"{counted(exported.questions, 'question')}, {counted(exported.contexts, 'context')}"
    tell(context, file, as_json, exported, told)
    if exported.missing:
        context.warn(f"{counted(exported.missing, 'label')} left out, since the document is gone")
