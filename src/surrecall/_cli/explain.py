"""surrecall explain"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from surrecall import _diagnosis, _render
from surrecall._cli._app import Context, Json, command, cutoffs
from surrecall._cli._question import as_free_text, find_question, vector_of
from surrecall._cli._resolution import say
from surrecall._errors import UsageError

_PLACE = ("rank", "document", "title", "grade", "score", "distance", "words")


@command("explain")
def explain(
    context: Context,
    question: Annotated[str, typer.Argument(help="Id or text of a question of the golden set, or free text.")],
    retriever: Annotated[str | None, typer.Option("-r", "--retriever", help="By this one; else the last registered.")] = None,
    k: Annotated[str, typer.Option("-k", "--k", help="A label below this rank is missed.")] = "10",
    depth: Annotated[int | None, typer.Option("--depth", min=1, help="How deep each list is looked at; else the pool.")] = None,
    vector: Annotated[str | None, typer.Option("--vector", help="Vector of a free text: [0.1, 0.2, …].")] = None,
    as_json: Json = False,
) -> None:
    """Show one question by one retriever: where each label stands in each list, what stands above it, and why it was missed.

    The lists are asked anew. Beside each document stand the words of the question that it holds, with their part of its BM25
    score, and its distance from the question.

    Example: surrecall explain money_back --retriever hybrid -k 3
    """
    cut = cutoffs([k], ())
    if len(cut) != 1:
        raise UsageError(f"one k belongs here, got {k!r}", "for example: -k 3")
    with context.open() as database:
        found = find_question(database, question)
        asked: Any = found if found is not None and vector is None else {"text": question, "embedding": vector_of(vector)}
        name = retriever or _diagnosis.last_retriever(database)
        with as_free_text(question, name, without_vector=found is None and vector is None):
            told = _diagnosis.diagnose(database, name, asked, cut[0], depth)
        note = database.value("RETURN fn::depth_note($depth)", depth=told["depth"])
    if as_json:
        _render.print_json(context.out, told)
        return
    if note:
        context.warn(note)
    say(context, f"{_render.cell(told['question']) or 'free text'}: {told['text']}")
    say(context, f"{name} at k = {told['k']}; each list is looked at {told['depth']} deep")
    if told["labels"]:
        context.out.print()
        rows = [_label(row) for row in told["labels"]]
        context.show(_render.table(rows, list(rows[0]), title="labels"))
    context.out.print()
    context.show(_render.table([_place(row) for row in told["top"]], _PLACE, title="what comes back"))
    context.out.print()
    for row in told["labels"]:
        say(context, _sentence(row))
    if not told["labels"]:
        say(context, "no label is known for it, so nothing can be missed")
    elif all(row["verdict"] is None for row in told["labels"]):
        say(context, "no label is missed")


def _label(row: dict[str, Any]) -> dict[str, Any]:
    ranks = {
        one["stage"] if one["own"] else f"{one['stage']} ({one['retriever']})": one["rank"] if one["rank"] is not None else "-"
        for one in row["ranks"]
    }
    shown = {"document": row["document"], "grade": row["grade"]} | ranks
    return shown | {"fault": row["verdict"] and row["verdict"]["kind"]}


def _place(row: dict[str, Any]) -> dict[str, Any]:
    # what adds nothing that can be seen would hide what does
    words = ", ".join(f"{one['word']} {one['score']:.2f}" for one in row["words"] if one["score"] >= 0.005)
    shown = {name: row[name] for name in _PLACE if name != "words"}
    return shown | {"words": words or None}


def _sentence(row: dict[str, Any]) -> str:
    verdict = row["verdict"]
    if verdict is None:
        return f"{_render.cell(row['document'])}: found at rank {row['rank']}"
    return f"{_render.cell(row['document'])}: {verdict['kind']}: {verdict['why']}; try {verdict['fix']}: {verdict['advice']}"
