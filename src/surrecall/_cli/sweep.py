"""surrecall sweep"""

from __future__ import annotations

import json
import math
import re
from typing import Annotated, Any

import typer

from surrecall import _render, _sweep
from surrecall._cli._app import LARGEST, Context, Json, command, progress_bar
from surrecall._errors import ExitCode, UsageError

# beside the metric that is chosen by
_SHOWN = ("recall", "hit", "precision", "rr", "ndcg")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


@command("sweep")
def sweep(
    context: Context,
    expression: Annotated[str, typer.Argument(help="SurrealQL over $question, $k and $x: ids best first, or rows {id, score}.")],
    x: Annotated[list[str], typer.Option("--x", help="Values of $x: 0,1.5,4, or a JSON array; may be given more than once.")],
    k: Annotated[
        int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Cutoff; else the largest of surrecall.toml.")
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", "-m", help="Choose by this one; else recall.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set; else default.")] = None,
    document: Annotated[
        str | None, typer.Option("--document", help="How $row leads to the labelled document: $row.document.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=-(2**63), max=2**63 - 1, help="Of the resamples; else 1.")] = None,
    as_json: Json = False,
) -> None:
    """Choose a parameter: one expression at several values of $x, and whether the best can be told from the others.

    The value with the highest mean is chosen; of equal ones the smallest. Each other value is compared with it question by
    question, as by surrecall compare, with p corrected by Holm. Questions whose split is heldout have no part in that: they are
    scored once, at the end, for the chosen value.

    Values are numbers where all of them are, else texts; a JSON array, as '["a,b", 1]', says it of each. Nothing is stored.

    Ends with 4 when the expression fails for a value; the others are still shown.

    Example: surrecall sweep 'fn::retrieve_hybrid_floor($question.text, $question.embedding, $k, $x)' --x 0,1.5,2.5,4 -k 3
    """
    asked = _sweep.Options(
        expression=expression,
        values=values(x),
        k=k or max(context.project.cutoffs),
        metric=metric,
        question_set=question_set,
        document=document,
        seed=seed,
    )
    with context.open() as database, progress_bar(context, "sweeping") as advance:
        swept = _sweep.sweep(database, asked, advance)
    if as_json:
        _render.print_json(context.out, swept)
    else:
        _show(context, swept.told)
    for warning in swept.warnings:
        context.warn(warning)
    for failure in swept.failed:
        context.warn(f"failed, and has no mean: {_sweep.said(failure)}")
    if swept.failed:
        raise typer.Exit(ExitCode.DATA)


def values(given: list[str]) -> list[_sweep.Value]:
    """The values of --x, each once, in the order given. Raises UsageError on anything but numbers and texts."""
    parts: list[Any] = []
    plain: list[str] = []
    for text in given:
        if text.lstrip().startswith("["):
            parts += _array(text)
        else:
            plain += [part.strip() for part in text.split(",")]
    if "" in plain:
        raise UsageError("--x has an empty value", "for example: --x 0,1.5,4; an empty text is written --x '[\"\"]'")
    numbers = [_number(part) for part in plain]
    parts += plain if None in numbers else numbers
    return list(dict.fromkeys(parts))


def _array(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--x is no JSON array: {error}", "for example: --x '[\"a,b\", 1.5]'") from error
    for value in found:
        if isinstance(value, bool) or not isinstance(value, int | float | str) or (_is_too_large(value)):
            raise UsageError(f"--x takes numbers and texts, got {value!r}", "for example: --x '[\"a,b\", 1.5]'")
    return list(found)


def _is_too_large(value: float | str) -> bool:
    return not isinstance(value, str) and not (math.isfinite(value) and abs(value) < 1e18)


def _number(text: str) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    number = int(text) if _WHOLE.fullmatch(text) else float(text)
    if _is_too_large(number):
        raise UsageError(f"--x takes numbers below 1e18, got {text}", "a smaller one")
    return number


def _show(context: Context, told: dict[str, Any]) -> None:
    """Means, the comparison with the chosen value, the held-out questions, the verdict."""
    metrics = dict.fromkeys((told["metric"], *_SHOWN))
    chosen = told["chosen"]["x"]
    rows = [row | {"x": str(row["x"]), "chosen": "yes" if row["x"] == chosen else None} for row in told["values"]]
    if not any(row["empty"] for row in rows):
        rows = [row | {"empty": None} for row in rows]
    columns = ("x", *metrics, "empty", "chosen")
    context.show(_render.table(rows, columns, title=f"at k = {told['k']}, {_render.counted(told['questions'], 'question')}"))
    context.out.print()
    costs = [row | _render.took(row) for row in rows]
    context.show(_render.table(costs, ("x", *_render.TOOK), title="ms a question"))
    if told["comparisons"]:
        context.out.print()
        title = f"{told['metric']}@{told['k']}, each less that of x = {chosen}"
        compared = ("x", "difference", "95% from", "to", "wins", "ties", "losses", "p", "p Holm")
        context.show(_render.table([_compared(one) for one in told["comparisons"]], compared, title=title))
    if told["heldout"]:
        context.out.print()
        held = told["heldout"]
        title = f"held out, {_render.counted(held['questions'], 'question')}"
        context.show(_render.table([held | {"x": str(held["x"])}], ("x", *metrics), title=title))
    context.out.print()
    context.out.print(_render.printable(told["verdict"]), soft_wrap=True, markup=False, highlight=False)


def _compared(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "x": str(one["b"]["x"]),
        **_render.difference(one),
        "p": one["sign_flip"]["p"],
        "p Holm": one["p"],
    }
