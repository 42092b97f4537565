"""surrecall compare"""

from __future__ import annotations

from enum import StrEnum
from string import ascii_uppercase
from typing import Annotated, Any

import typer
from surrealdb import RecordID

from surrecall import _ci, _comparison, _junit, _render
from surrecall._cli._app import LARGEST, Context, Json, Junit, Markdown, command, one_form, progress_bar
from surrecall._cli._resolution import class_name
from surrecall._database import Database

# more would push the verdict out of sight
_SHOWN = 20
# a longer name makes a table that fits no terminal
_LONGEST = 20
_LEVELS = ("k", "chunks", "tokens", "documents", "document tokens")
_SLICED = ("questions", "a mean", "b mean", "difference", "wins", "ties", "losses", "weakest")


class CompareBy(StrEnum):
    """What questions are sorted by."""

    KIND = "kind"
    TAG = "tag"
    SOURCE = "source"
    SPLIT = "split"


@command("compare")
def compare(
    context: Context,
    sides: Annotated[list[str], typer.Argument(metavar="A [B …]", help="Retrievers, or evaluations (evaluation:…).")],
    metric: Annotated[str | None, typer.Option("--metric", "-m", help="Any metric of fn::score; else recall.")] = None,
    k: Annotated[
        int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Cutoff; else the largest that all were measured at.")
    ] = None,
    evaluation: Annotated[
        str | None, typer.Option("--evaluation", help="Retrievers of this one; else of the newest complete one that has them.")
    ] = None,
    retriever: Annotated[str | None, typer.Option("-r", "--retriever", help="Of evaluations: this retriever.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set; else default.")] = None,
    every_pair: Annotated[bool, typer.Option("--all", help="Every pair, not each against the first.")] = False,
    by: Annotated[CompareBy | None, typer.Option("--by", help="Also by class of question, as B was asked it.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=-(2**63), max=2**63 - 1, help="Of the resamples; else 1.")] = None,
    rel: Annotated[float | None, typer.Option("--rel", help="Lowest relevant grade; else the evaluations'.")] = None,
    markdown: Markdown = False,
    junit: Junit = None,
    as_json: Json = False,
) -> None:
    """Tell a difference from noise: two retrievers, evaluations, or one retriever then and now.

    Everything comes from stored answers, on the questions that both have with equal labels; nothing is retrieved or stored.
    A is the baseline: the difference is B - A, fixed are the questions where B is better. With several, each is compared with
    the first, and p is corrected by Holm. One retriever alone is compared with itself: the newest evaluation with the one before.
    --by shows means, difference, wins and losses by class of question, and marks the class that lost most.

    Beside the time stand the tokens that the first k take in a prompt, estimated at four characters each. For retrievers over
    chunks, a table has the figures by chunks and by documents at every cutoff, with the tokens of each.

    --markdown prints for a pull request; --junit writes a case a comparison, which fails where A is better, and one a question
    that broke.

    Ends with 4, without a verdict, when no question can be compared.

    Example: surrecall compare bm25 hybrid -k 3
    """
    one_form(as_json, markdown)
    with context.open() as database, progress_bar(context, "comparing") as advance:
        asked = _comparison.Comparison(
            sides=[_side(database, side) for side in sides],
            retriever=retriever,
            evaluation=None if evaluation is None else _evaluation(database, evaluation),
            question_set=question_set,
            metric=metric,
            k=k,
            seed=seed,
            every_pair=every_pair,
            by=by and by.value,
            rel=rel,
        )
        told = _comparison.compare(database, asked, advance)
    if junit is not None:
        _junit.write(junit, "surrecall compare", _ci.comparison_cases(told))
    if as_json:
        _render.print_json(context.out, told)
    elif markdown:
        context.out.file.write(_ci.comparison_markdown(told, _warnings(told["comparisons"])))
    else:
        _show(context, told)
    for warning in _warnings(told["comparisons"]):
        context.warn(warning)


def _side(database: Database, text: str) -> str | RecordID:
    """A name of a retriever as it is; an evaluation as its id."""
    return _evaluation(database, text) if text.startswith(f"{database.table('evaluation')}:") else text


def _evaluation(database: Database, text: str) -> RecordID:
    table = database.table("evaluation")
    return RecordID(table, text.removeprefix(f"{table}:"))


def _show(context: Context, told: dict[str, Any]) -> None:
    """The figures, what was fixed and broke, what was left out, and the verdict of each comparison."""
    several = len(told["comparisons"]) > 1
    names = _short_names(told["comparisons"])
    figures = [_row(one, several, names) for one in told["comparisons"]]
    level = "" if told["rel"] == 1 else f", relevant from grade {told['rel']}"
    measure = f"{told['metric']}@{told['k']}{level}"
    sides = {side["name"]: side for one in told["comparisons"] for side in (one["a"], one["b"])}
    for side in sides.values():
        if names[side["name"]] != side["name"]:
            _say(context, f"{names[side['name']]}: {side['name']}, {_render.cell(side.get('at'))}")
    means = ("a", "b", "a mean", "b mean", "difference", "95% from", "to", "wins", "ties", "losses")
    context.show(_render.table(figures, means, title=measure))
    context.out.print()
    context.show(_render.table(figures, ("a", "b", "questions", "p sign-flip", "p Holm", "p t-test", "smallest difference told")))
    costs = [{"side": names[name], "asked for": (side.get("took") or {}).get("depth"), **_render.took(side.get("took")),
              **_render.tokens((side.get("prompt") or {}).get("tokens"))}
             for name, side in sides.items() if side.get("took") or side.get("prompt")]  # fmt: skip
    if costs:
        context.out.print()
        columns = ("side", "asked for", *_render.TOOK, _render.TOKENS)
        context.show(_render.table(costs, columns, title=f"ms a question, tokens of the first {told['k']} (estimated)"))
    levels = [{"side": names[name], **row} for name, side in sides.items() for row in side.get("levels") or []]
    if levels:
        context.out.print()
        shown = [row | _tokens(row) for row in levels]
        title = f"{told['metric']} of the first k chunks, and of the first k documents, with their tokens (estimated)"
        context.show(_render.table(shown, ("side", *_LEVELS), title=title))
    for one in told["comparisons"]:
        a, b = names[one["a"]["name"]], names[one["b"]["name"]]
        of = f" ({a}, {b})" if several else ""
        if told.get("by"):
            context.out.print()
            context.show(_render.table(_slices(one, told["by"]), (told["by"], *_SLICED), title=f"by {told['by']}{of}"))
        for what in ("fixed", "broke"):
            if one[what]:
                context.out.print()
                rows = [row | {a: row["a"], b: row["b"]} for row in one[what][:_SHOWN]]
                context.show(_render.table(rows, ("question", "text", a, b), title=f"{what}{of}"))
                if len(one[what]) > _SHOWN:
                    _say(context, f"the largest {_SHOWN} of {len(one[what])}; --json has all")
    context.out.print()
    for line in _sources(told["comparisons"], names):
        _say(context, line)
    for one in told["comparisons"]:
        for line in _left_out(one):
            _say(context, line)
    for one in told["comparisons"]:
        _say(context, one["verdict"])


def _tokens(row: dict[str, Any]) -> dict[str, int | None]:
    """The tokens of a row of fn::compare_levels, as whole numbers."""
    names = {"tokens": "tokens", "document_tokens": "document tokens"}
    return {name: None if row.get(key) is None else round(row[key]) for key, name in names.items()}


def _sources(comparisons: list[dict[str, Any]], names: dict[str, str]) -> list[str]:
    """Which evaluation the sides are taken from, by whose names it can't be seen."""
    sides: dict[str, list[str]] = {}
    for side in {side["name"]: side for one in comparisons for side in (one["a"], one["b"])}.values():
        if names[side["name"]] == side["name"]:
            note = f", {side['note']}" if side.get("note") else ""
            of = f"{_render.record_text(side['evaluation'])}, {_render.cell(side['at'])}{note}"
            sides.setdefault(of, []).append(side["name"])
    return [f"{', '.join(called)}: {of}" for of, called in sides.items()]


def _slices(one: dict[str, Any], by: str) -> list[dict[str, Any]]:
    """A row a class, the largest loss first and marked."""
    return [
        row
        | {
            by: class_name(row.get("class")),
            "a mean": row["mean_a"],
            "b mean": row["mean_b"],
            "weakest": "<<" if row["weakest"] else None,
        }
        for row in one["slices"]
    ]


def _short_names(comparisons: list[dict[str, Any]]) -> dict[str, str]:
    """What each side is called in a table: its name, or a letter where names are long."""
    names = list(dict.fromkeys(one[side]["name"] for one in comparisons for side in ("a", "b")))
    if max(map(len, names)) <= _LONGEST or len(names) > len(ascii_uppercase):
        return {name: name for name in names}
    return dict(zip(names, ascii_uppercase, strict=False))


def _row(one: dict[str, Any], several: bool, names: dict[str, str]) -> dict[str, Any]:
    return {
        "a": names[one["a"]["name"]],
        "b": names[one["b"]["name"]],
        "a mean": one["mean_a"],
        "b mean": one["mean_b"],
        **_render.difference(one),
        "questions": one["questions"],
        "p sign-flip": one["sign_flip"]["p"],
        "p Holm": one["p"] if several else None,
        "p t-test": one["t_test"]["p"],
        "smallest difference told": one.get("smallest_difference"),
    }


def _left_out(one: dict[str, Any]) -> list[str]:
    """A line for each reason for which questions are not compared."""
    excluded = one["excluded"]
    reasons = {
        "only_a": f"only in {one['a']['name']}",
        "only_b": f"only in {one['b']['name']}",
        "relabelled": "relabelled in between",
        "unlabelled": "no anchor to score by",
        "errors": "failed on one side",
    }
    lines = [
        f"left out, {reason}: {_render.counted(len(excluded[key]), 'question')}, {_few(excluded[key])}"
        for key, reason in reasons.items()
        if excluded[key]
    ]
    if excluded["unanswerable"]:
        lines.append(f"left out, unanswerable: {_render.counted(excluded['unanswerable'], 'question')}")
    return lines


def _few(rows: list[dict[str, Any]]) -> str:
    return ", ".join(_render.record_text(row["question"]) for row in rows[:_SHOWN]) + (" …" if len(rows) > _SHOWN else "")


def _warnings(comparisons: list[dict[str, Any]]) -> list[str]:
    """Each once, and with the names of the two where it is not said of all."""
    every = [warning for one in comparisons for warning in one["warnings"]]
    return list(
        dict.fromkeys(
            warning if every.count(warning) == len(comparisons) else f"{_names(one)}: {warning}"
            for one in comparisons
            for warning in one["warnings"]
        )
    )


def _names(one: dict[str, Any]) -> str:
    return f"{one['a']['name']}, {one['b']['name']}"


def _say(context: Context, text: str) -> None:
    context.out.print(_render.printable(text), soft_wrap=True, markup=False, highlight=False)
