"""surrecall evaluate"""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from surrecall import _evaluation, _render
from surrecall._cli._app import Context, Json, command, cutoffs
from surrecall._errors import ExitCode

_COLUMNS = (
    "retriever",
    "k",
    "recall",
    "hit",
    "precision",
    "p",
    "rr",
    "ap",
    "ndcg",
    "judged",
    "empty",
    "errors",
    "repeats",
)
# a bar for a moment's work only flickers
_PATIENCE = 2.0


@command("evaluate")
def evaluate(
    context: Context,
    k: Annotated[list[str] | None, typer.Option("-k", "--k", help="Cutoffs: 1,3,5; else those of surrecall.toml.")] = None,
    retriever: Annotated[
        list[str] | None, typer.Option("-r", "--retriever", help="Only this one; may be given more than once.")
    ] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    note: Annotated[str | None, typer.Option("--note", help="Kept with the runs.")] = None,
    trigger: Annotated[str, typer.Option("--trigger", help="What asked for it: manual or ci.")] = "manual",
    as_json: Json = False,
) -> None:
    """Measure the retrievers over the golden set and append the figures to the history.

    Ends with 4 when a retriever failed on a question: such an evaluation is kept, with the error, as failed.

    Example: surrecall evaluate -k 1,3,5 --note "chunks of 400"
    """
    options = _evaluation.Options(
        cutoffs=cutoffs(k, context.project.cutoffs),
        retrievers=retriever,
        question_set=question_set,
        note=note,
        trigger=trigger,
        revision=_evaluation.git_revision(context.folder),
    )
    columns = (TextColumn("evaluating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with context.open() as database:
        began = time.monotonic()
        with Progress(*columns, console=context.err, transient=True, disable=not context.err.is_terminal) as bar:
            task = bar.add_task("evaluating", total=None, visible=False)

            def advance(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total, visible=time.monotonic() - began > _PATIENCE)

            evaluation = _evaluation.evaluate(database, options, advance)
    if as_json:
        _render.print_json(context.out, evaluation)
    else:
        _print(context, evaluation)
    for warning in evaluation.warnings:
        context.warn(warning)
    if evaluation.failed:
        raise typer.Exit(ExitCode.DATA)


def _print(context: Context, evaluation: _evaluation.Evaluation) -> None:
    row = evaluation.row
    # counts of what went wrong are shown when there is something to count
    quiet = [key for key in ("empty", "errors", "repeats") if not any(run.get(key) for run in evaluation.runs)]
    if evaluation.runs:
        asked = len({run["questions"] for run in evaluation.runs}) == 1
        shown = [key for key in _COLUMNS if key not in quiet] + ([] if asked else ["questions"])
        context.out.print(_render.table(evaluation.runs, shown))
    context.out.print(
        f"{len(row['questions'])} questions of the set {row['set']}, {row['corpus']['documents']} documents, "
        f"{row['status']}, {row['id']}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
