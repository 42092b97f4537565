"""surrecall curve"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from surrecall import _render, _resolution
from surrecall._cli._app import Context, Json, command, progress_bar
from surrecall._cli._chart import chart
from surrecall._cli._resolution import evaluation_id, say, show_resolution, warn_all
from surrecall._errors import DataError

_METRICS = ("recall", "hit")
# what fits beside the names in 80 columns
_SHOWN = 7
_ROUND = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


@command("curve")
def curve(
    context: Context,
    retriever: Annotated[
        list[str] | None, typer.Option("-r", "--retriever", help="Only this one; may be given more than once.")
    ] = None,
    evaluation: Annotated[str | None, typer.Option("--evaluation", help="Of this one; else of the newest complete one.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set; else default.")] = None,
    as_json: Json = False,
) -> None:
    """Show recall and hit at every k, and what a reranker could gain, from stored answers.

    Nothing is retrieved again: k goes from 1 to the depth of the evaluation. A retriever that is asked anew for each cutoff is
    shown at its cutoffs alone. prompt_k and pool_k of surrecall.toml are what the prompt takes and what the first stage returns;
    without them the smallest cutoff and the depth.

    Example: surrecall curve --retriever hybrid
    """
    prompt_k, pool_k = context.project.prompt_k, context.project.pool_k
    with context.open() as database, progress_bar(context, "reading") as advance:
        asked = None if evaluation is None else evaluation_id(database, evaluation)
        row = _resolution.evaluation_of(database, asked, question_set, retriever)
        names = list(dict.fromkeys(retriever or _resolution.retrievers_of(row)))
        told = _resolution.curves(database, row, names, prompt_k, pool_k, advance)
        resolution = _resolution.resolution(database, row["id"], names, prompt_k)
        alarms = _resolution.alarms(database, [row["set"]])
    if not any(one["curve"]["rows"] for one in told):
        raise DataError(
            f"no question of {_render.record_text(row['id'])} has a score: the retrievers failed on all of them",
            "SELECT message FROM eval_answer WHERE status = 'error' tells why",
        )
    if as_json:
        _render.print_json(context.out, {"evaluation": row["id"], "set": row["set"], "curves": told, "resolution": resolution})
    else:
        _show(context, told)
        show_resolution(context, resolution)
        context.out.print()
        for one in told:
            say(context, one["gain"]["sentence"])
        say(context, f"from stored answers of {_render.record_text(row['id'])}, set {row['set']}; nothing was retrieved")
    if left_out := max(one["curve"]["heldout"] for one in told):
        context.warn(f"{_render.counted(left_out, 'question')} held out, in none of its figures, since a k is chosen by them")
    for one in told:
        if failed := one["curve"]["errors"]:
            context.warn(f"{one['curve']['retriever']} failed on {_render.counted(failed, 'question')}, in none of its figures")
    warn_all(context, resolution, {"warnings": alarms})


def _show(context: Context, told: list[dict[str, Any]]) -> None:
    curves = [one["curve"] for one in told]
    for metric in _METRICS:
        points = {one["retriever"]: {row["k"]: row[metric] for row in one["rows"]} for one in curves}
        for line in chart(f"{metric}@k", points, min(context.out.width, 80)):
            say(context, line)
        context.out.print()
    chosen = _chosen(told)
    rows = [
        {"retriever": one["retriever"], "metric": metric} | {str(row["k"]): row[metric] for row in one["rows"]}
        for one in curves
        for metric in _METRICS
    ]
    context.show(_render.table(rows, ("retriever", "metric", *map(str, chosen)), title="at k"))
    few = [one["retriever"] for one in curves if not one["every_k"]]
    if few:
        say(context, f"asked anew for each cutoff, so known there alone: {', '.join(few)}")


def _chosen(told: Sequence[dict[str, Any]]) -> list[int]:
    """The k of the table: the prompt's and the first stage's, the cutoffs where only those are known, and round ones between."""
    there = sorted({row["k"] for one in told for row in one["curve"]["rows"]})
    gains = [one["gain"].get(name) for one in told for name in ("prompt_k", "pool_k")]
    sparse = [row["k"] for one in told if not one["curve"]["every_k"] for row in one["curve"]["rows"]]
    wanted = dict.fromkeys(k for k in (*gains, *sparse, *there[:1], *there[-1:], *_ROUND[::-1], *there) if k in there)
    return sorted(list(wanted)[:_SHOWN])
