"""surrecall export labels"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall._cli._app import Context, Json, command, export_app
from surrecall._cli._export import AnySet, FileArgument, Force, form_of, tell
from surrecall._export import labels
from surrecall._export.output import Output
from surrecall._render import counted


@command("labels", group=export_app)
def export_labels(
    context: Context,
    file: FileArgument,
    form: Annotated[labels.Form | None, typer.Option("--format", help="Else the file's ending, else trec.")] = None,
    question_set: AnySet = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the labels, one a line: TREC qrels, the BEIR form, JSON Lines or CSV.

    TREC and BEIR hold whole grades only, TREC no id with white space; what does not fit is named, and nothing is written.

    Example: surrecall export labels golden.qrels --format trec
    """
    asked = form_of(file, form, labels.Form, labels.Form.TREC)
    with context.open() as database, Output(force=force) as output:
        exported = labels.export(database, asked, output.lines(file), question_set)
    without = f", {exported.unlabelled} without a label left out" if exported.unlabelled else ""
    told = f"{counted(exported.labels, 'label')} of {counted(exported.questions, 'question')}{without}"
    tell(context, file, as_json, exported, told)
