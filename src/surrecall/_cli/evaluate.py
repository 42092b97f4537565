"""surrecall evaluate"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from surrecall import _evaluation, _policy, _render, _resolution, _view
from surrecall._cli._app import Context, Json, command, cutoffs, progress_bar
from surrecall._cli._pending import take_up, tell_pending
from surrecall._cli._resolution import ByOption, show_resolution, show_slices, warn_all
from surrecall._database import Database
from surrecall._errors import DataError, ExitCode, UsageError

_MEANS = ("recall", "hit", "precision", "p", "rr", "ap", "ndcg", "judged")
# what leaves room for the class
_SLICED = ("recall", "hit", "rr", "ndcg")
_UNANSWERABLE = ("retriever", "k", "questions", "nothing", "something", "top_score", "answerable_top_score")
_VIEW = ("retriever", "k", "full", "seen", "difference", "visible", "labels", "hidden", "short")
_COUNTS = ("questions", "empty", "errors", "repeats")
_COST = ("retriever", "k", "recall", "ndcg", *_render.TOOK, _render.TOKENS)


class Trigger(StrEnum):
    """What asks for an evaluation from the command line."""

    MANUAL = "manual"
    CI = "ci"


@command("evaluate")
def evaluate(
    context: Context,
    k: Annotated[list[str] | None, typer.Option("-k", "--k", help="Cutoffs: 1,3,5; else those of surrecall.toml.")] = None,
    retriever: Annotated[
        list[str] | None, typer.Option("-r", "--retriever", help="Only this one; may be given more than once.")
    ] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    rel: Annotated[float, typer.Option("--rel", help="Lowest grade that counts as relevant.")] = 1,
    metric: Annotated[
        list[str] | None, typer.Option("-m", "--metric", help="Show this one; may be given more than once; all are recorded.")
    ] = None,
    note: Annotated[str | None, typer.Option("--note", help="Kept with the runs.")] = None,
    trigger: Annotated[Trigger, typer.Option("--trigger", help="What asks for it.")] = Trigger.MANUAL,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Connections to work over; a server's cores.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Finish the newest evaluation that was cut off.")] = False,
    pending: Annotated[bool, typer.Option("--pending", help="Evaluate the changes of the corpus that are pending.")] = False,
    by: ByOption = None,
    as_: Annotated[
        str | None, typer.Option("--as", help="Beside the full view, that of record:ACCESS, user:NAME or token; see below.")
    ] = None,
    as_file: Annotated[
        Path | None, typer.Option("--as-file", help="What --as signs in with; else the variable SURRECALL_AS.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the retrievers over the golden set and append the figures to the history.

    Cut off, by Ctrl-C or a server that goes away, it leaves no figure; --resume finishes it.

    Every metric is recorded and in --json; the table shows the usual ones, or those of --metric. nDCG, ERR and RBP read the
    grades themselves, so --rel does not change them.

    Below the table is said on how many questions it stands, by how much one label moves the mean, and the smallest difference
    that can be told; under 30 questions, the questions themselves. --by sorts the questions into classes, and marks the one
    farthest below the mean.

    A second table has what that costs: the time of the retrieval alone, median and 95th percentile of the questions, and the
    tokens of the first k texts in a prompt, estimated at four characters each.

    Questions that nothing in the corpus answers are in no mean. A table of their own says for which share of them nothing came
    back, and for which something did; where there are scores, also the mean of the highest one beside that of questions with
    an answer: a floor belongs between the two.

    --as measures the same retrievers under a user's permissions too: recall as that user sees it, over the labels that it may
    see, and those that it may not. record:ACCESS is a user of the application, signed in with a JSON object of what its SIGNIN
    takes; user:NAME one of the database, with its password; token whoever a token is of. The secret stands in SURRECALL_AS or a
    file, never in the command. The user's figures have a name of their own in the history: hybrid@person:ann.

    --pending evaluates what the ingest policy asks for, where changes of the corpus are pending or came in by surreal import, and
    does nothing else. Without it, changes that nothing in the background takes up are evaluated first.

    Ends with 4 when a retriever failed on a question: such an evaluation is kept, with the error, as failed.

    Example: surrecall evaluate -k 1,3,5 --note "chunks of 400"
    """
    who = None if as_ is None else _view.login(as_, as_file)
    if as_file is not None and who is None:
        raise UsageError("--as-file says what to sign in with, and not as whom", "give --as record:ACCESS, user:NAME or token")
    if who is not None and (resume or by or pending):
        raise UsageError("--as goes with none of --resume, --pending and --by", "one after the other")
    with context.open() as database, progress_bar(context, "evaluating") as advance:
        if resume and (k or retriever or note or rel != 1):
            raise UsageError("--resume goes on with what was asked then", "leave -k, -r, --rel and --note out")
        shown = metrics_of(database, metric)
        view: _view.View | None = None
        if pending:
            if resume or k or retriever or note or rel != 1:
                raise UsageError("--pending asks what the ingest policy says", "leave -k, -r, --rel, --note and --resume out")
            taken = _policy.take_up(database, advance)
            if taken.evaluation is None:
                if as_json:
                    _render.print_json(context.out, {"evaluation": None, "pending": 0})
                else:
                    context.out.print("nothing is pending")
                return
            if taken.error is not None:
                raise DataError(f"what is pending could not be evaluated: {taken.error}", "mend that, then --pending again")
            tell_pending(context, taken)
            evaluation = _evaluation.read(database, taken.evaluation)
        elif resume:
            evaluation = _evaluation.resume(database, jobs=jobs, progress=advance)
        else:
            take_up(context, database, advance)
            options = _evaluation.Options(
                cutoffs=cutoffs(k, context.project.cutoffs),
                retrievers=retriever,
                question_set=question_set,
                note=note,
                trigger=trigger.value,
                revision=_evaluation.git_revision(context.folder),
                # a whole number stays one, as the grades are
                rel=int(rel) if rel.is_integer() else rel,
            )
            if who is not None:
                view = _view.view(database, who, options, jobs=jobs, progress=advance)
                evaluation = view.full
            else:
                evaluation = _evaluation.evaluate(database, options, jobs=jobs, progress=advance)
        # one that has no runs has nothing to stand on
        names = list(dict.fromkeys(run["retriever"] for run in evaluation.runs))
        told = _resolution.resolution(database, evaluation.row["id"], names, context.project.prompt_k)
        latency = _evaluation.latency(database, evaluation.row["id"], names)
        chosen = {"by": by and by.value, "metrics": list(metric or _SLICED), "metric": metric[0] if metric else "recall"}
        sliced = _resolution.slices(database, evaluation.row["id"], names, chosen) if by else None
    if as_json:
        shown_as = _render.jsonable(evaluation) | {"resolution": told, "latency": latency}
        shown_as |= {"view": _view_json(view)} if view else {}
        _render.print_json(context.out, shown_as | ({"slices": sliced} if by else {}))
    else:
        if by and sliced:
            show_slices(context, sliced, by, metric or _SLICED)
            context.out.print()
        show_evaluation(context, evaluation, shown, told, latency)
        if view is not None:
            _show_view(context, view)
    for warning in [*evaluation.warnings, *([*view.evaluation.warnings, *view.warnings] if view else [])]:
        context.warn(warning)
    warn_all(context, told, sliced)
    if evaluation.failed or (view is not None and view.failed):
        raise typer.Exit(ExitCode.DATA)


def metrics_of(database: Database, asked: list[str] | None) -> list[str]:
    """The metrics to show, in the order asked; the usual ones when none is. Raises UsageError naming those that there are."""
    known: list[str] = database.value("RETURN fn::metrics()")
    for name in asked or []:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise UsageError(
                f"no metric named {name}; there are: {', '.join(known)}", f"did you mean {near[0]}?" if near else None
            )
    return list(dict.fromkeys(asked or _MEANS))


def show_evaluation(
    context: Context,
    evaluation: _evaluation.Evaluation,
    metrics: Sequence[str] = _MEANS,
    resolution: dict[str, Any] | None = None,
    latency: Sequence[dict[str, Any]] = (),
) -> None:
    """The means of an evaluation, what they cost, what went wrong in it, what they stand on, and what it measured."""
    row, runs = evaluation.row, evaluation.runs
    if runs:
        context.show(_render.table(runs, ("retriever", "k", *metrics)))
    took = {(one["retriever"], one["k"]): _render.took(one) for one in latency}
    if any(took.values()):
        context.out.print()
        costs = [run | took.get((run["retriever"], run["k"]), {}) | _render.tokens(run.get("prompt_tokens")) for run in runs]
        context.show(_render.table(costs, _COST, title="ms a question, tokens of the first k (estimated)"))
    # what went wrong is counted in a table of its own, where there is something to count
    if any(run[count] for run in runs for count in ("empty", "errors", "repeats")):
        context.out.print()
        context.show(_render.table(runs, ("retriever", "k", *_COUNTS)))
    if evaluation.unanswerable:
        context.out.print()
        context.show(_render.table(evaluation.unanswerable, _UNANSWERABLE, title="where nothing in the corpus answers"))
    show_resolution(context, resolution, metrics)
    if resolution is not None:
        context.out.print()
    questions, documents = len(row["questions"]), row["corpus"]["documents"]
    level = "" if row["rel"] == 1 else f"relevant from grade {row['rel']}, "
    context.out.print(
        f"{_render.counted(questions, 'question')} of the set {row['set']}, {_render.counted(documents, 'document')}, {level}"
        f"{row['status']}, {_render.record_text(row['id'])}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )


def _view_json(view: _view.View) -> dict[str, Any]:
    """A user's view, without the evaluation of the full one, which stands beside it."""
    return {
        "by": view.by,
        "documents": view.documents,
        "evaluation": _render.jsonable(view.evaluation),
        "rows": _render.jsonable(view.rows),
        "hidden": _render.jsonable(view.hidden),
        "warnings": view.warnings,
    }


def _show_view(context: Context, view: _view.View) -> None:
    """A user's recall beside that of the full view, and the labels that it can't see."""
    context.out.print()
    errors = any(row["errors"] for row in view.rows)
    columns = (*_VIEW, *(("errors",) if errors else ()))
    context.show(_render.table(view.rows, columns, title=f"recall as {view.by} sees it"))
    context.out.print()
    documents = view.full.row["corpus"]["documents"]
    evaluation = _render.record_text(view.evaluation.row["id"])
    lines = [
        f"full: recall@k of the full view; seen: of {view.by}; visible: over the labels that it may see; "
        "short: questions given fewer than k documents",
        f"{view.by} may see {view.documents} of {_render.counted(documents, 'document')}, {evaluation}",
    ]
    if view.hidden:
        context.show(_render.table([_hidden(row) for row in view.hidden], ("question", "text", "labels it may not see")))
        context.out.print()
    for line in lines:
        context.out.print(line, soft_wrap=True, markup=False, highlight=False)


def _hidden(row: dict[str, Any]) -> dict[str, Any]:
    labels = ", ".join(map(_render.record_text, row["hidden"]))
    return {"question": row["question"], "text": row["text"], "labels it may not see": labels}
