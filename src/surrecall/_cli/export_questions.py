"""surrecall export questions"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall._cli._app import Context, Json, command, export_app
from surrecall._cli._export import AnySet, FileArgument, Force, form_of, tell
from surrecall._errors import UsageError
from surrecall._export import questions
from surrecall._export.output import Output
from surrecall._render import counted


@command("questions", group=export_app)
def export_questions(
    context: Context,
    file: FileArgument,
    form: Annotated[questions.Form | None, typer.Option("--format", help="Else the file's ending, else jsonl.")] = None,
    question_set: AnySet = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="With their vectors (jsonl).")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the golden set with labels, grades, anchors and kinds, as surrecall import questions reads it.

    JSON Lines tells the record 7 from the record '7'; CSV and TSV have ids as text, and are refused where two would read the
    same. beir-queries holds ids and texts alone.

    Example: surrecall export questions golden.jsonl
    """
    asked = form_of(file, form, questions.Form, questions.Form.JSONL)
    if vectors and asked is not questions.Form.JSONL:
        raise UsageError(f"{asked} has no place for vectors", "--format jsonl, or surrecall export collection")
    with context.open() as database, Output(force=force) as output:
        exported = questions.export(database, asked, output.lines(file), question_set, vectors=vectors)
    tell(context, file, as_json, exported, f"{counted(exported.questions, 'question')}, {counted(exported.labels, 'label')}")
