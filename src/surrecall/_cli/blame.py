"""surrecall blame"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from surrecall import _blame, _render
from surrecall._cli._app import LARGEST, Context, Json, command, progress_bar
from surrecall._cli._resolution import evaluation_id, say

# more would push the sentences out of sight
_SHOWN, _ABOVE = 20, 5


@command("blame")
def blame(
    context: Context,
    a: Annotated[str, typer.Argument(metavar="A", help="An evaluation (evaluation:…).")],
    b: Annotated[str, typer.Argument(metavar="B", help="A later one.")],
    metric: Annotated[str | None, typer.Option("--metric", "-m", help="Any metric of fn::score; else recall.")] = None,
    k: Annotated[int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Cutoff; else the largest of both.")] = None,
    retriever: Annotated[str | None, typer.Option("-r", "--retriever", help="Only this one; else all that both have.")] = None,
    as_json: Json = False,
) -> None:
    """Say what came above the label of each question that fell between two evaluations.

    Of each document it says when it was written, where changes of the corpus are recorded (surrecall ingest-policy); of each
    label whether its document changed or is gone; and whether corpus, labels, definitions or engine differ. A document that
    entered a ranking need not be the cause of the fall, and is not called that. From stored answers; nothing is retrieved.

    Example: surrecall blame evaluation:before evaluation:after -k 3
    """
    with context.open() as database, progress_bar(context, "reading") as advance:
        told = _blame.blame(
            database,
            evaluation_id(database, a),
            evaluation_id(database, b),
            metric=metric,
            k=k,
            retriever=retriever,
            progress=advance,
        )
    if as_json:
        _render.print_json(context.out, told)
        return
    for row in told["rows"][:_SHOWN]:
        _show(context, row, f"{told['metric']}@{told['k']}")
    if len(told["rows"]) > _SHOWN:
        say(context, f"the first {_SHOWN} of {len(told['rows'])}; --json has all")
        context.out.print()
    for sentence in told["sentences"]:
        say(context, sentence)


def _show(context: Context, row: dict[str, Any], measure: str) -> None:
    question, text = _render.cell(row["question"]), _render.printable(row.get("text") or "")
    say(context, f"{row['retriever']}, {question}: {text}")
    say(context, f"  {measure} {_render.cell(row['a'])} -> {_render.cell(row['b'])}")
    if row.get("sentence"):
        say(context, f"  {row['sentence']}")
    for label in row["labels"]:
        say(context, f"  {label['sentence']}")
        for document in label["above"][:_ABOVE]:
            say(context, f"    {document['sentence']}")
        if len(label["above"]) > _ABOVE:
            say(context, f"    and {len(label['above']) - _ABOVE} more; --json has all")
    context.out.print()
