"""surrecall export run"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall._cli._app import LARGEST, Context, Json, command, export_app
from surrecall._cli._export import FileArgument, form_of, tell
from surrecall._export import runs
from surrecall._export.output import Output
from surrecall._render import counted


@command("run", group=export_app)
def export_run(
    context: Context,
    file: FileArgument,
    retriever: Annotated[str, typer.Option("-r", "--retriever", help="Whose rankings.")],
    form: Annotated[runs.Form | None, typer.Option("--format", help="Else the file's ending, else trec.")] = None,
    evaluation: Annotated[
        str | None, typer.Option("--evaluation", help="Of this one; else of the newest complete one that has the retriever.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Depth, where it was asked for several; else the deepest.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over a file that is there; leave out questions the retriever failed on.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the rankings of a retriever as an evaluation stored them: a TREC run file, JSON Lines or CSV.

    trec_eval sorts a run by score (descending, as 32-bit floats; equal ones by document id, descending) and ignores the rank.
    Where the retriever's own scores give its order back that way they are written; for the other questions descending whole
    numbers are. A question for which nothing came back has no line in any form, and counts 0: use trec_eval -c.

    Example: surrecall export run bm25.run --retriever bm25
    """
    asked = form_of(file, form, runs.Form, runs.Form.TREC)
    with context.open() as database, Output(force=force) as output:
        exported = runs.export(database, asked, output.lines(file), retriever, evaluation, k, errors=force)
    told = (
        f"{counted(exported.documents, 'document')} for {counted(exported.questions, 'question')} "
        f"({retriever}, {exported.evaluation})"
    )
    tell(context, file, as_json, exported, told)
    if exported.empty:
        context.warn(
            f"nothing came back for {counted(exported.empty, 'question')}: no line here, and 0 in every mean (trec_eval -c)"
        )
    if exported.errors:
        context.warn(f"{retriever} failed on {counted(exported.errors, 'question')}: no line here")
