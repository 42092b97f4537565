"""surrecall misses"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from surrecall import _diagnosis, _render, _resolution
from surrecall._cli._app import Context, Json, command, cutoffs, progress_bar
from surrecall._cli._question import find_question
from surrecall._cli._resolution import evaluation_id, say, warn_all
from surrecall._errors import UsageError

_ROW = ("question", "document", "fault", "why", "read as")


@command("misses")
def misses(
    context: Context,
    retriever: Annotated[str | None, typer.Option("-r", "--retriever", help="Of this one; else the last registered.")] = None,
    k: Annotated[str | None, typer.Option("-k", "--k", help="Missed is what ranks below; else the largest cutoff.")] = None,
    evaluation: Annotated[str | None, typer.Option("--evaluation", help="Of this one; else of the newest complete one.")] = None,
    question_set: Annotated[str | None, typer.Option("--set-name", help="Golden set; else default.")] = None,
    depth: Annotated[int | None, typer.Option("--depth", min=1, help="How deep each list is looked at; else the pool.")] = None,
    verdict: Annotated[
        tuple[str, str] | None, typer.Option("--set", metavar="QUESTION KIND", help="Keep your own verdict on a question.")
    ] = None,
    note: Annotated[str | None, typer.Option("--note", help="Why, with --set.")] = None,
    as_json: Json = False,
) -> None:
    """Sort all misses of an evaluation by kind of fault and kind of question, counts first.

    What was missed comes from stored answers; why is asked of the retriever's lists anew. A verdict of your own (--set) stands
    beside the computed one, and outlives the evaluation.

    Examples: surrecall misses --retriever hybrid -k 3
              surrecall misses --set money_back ranking --note "a floor under weak lexical hits"
    """
    if note is not None and verdict is None:
        raise UsageError("--note belongs to a verdict", "surrecall misses --set QUESTION KIND --note TEXT")
    if verdict is not None:
        _keep(context, *verdict, note, as_json)
        return
    given = cutoffs([k], ()) if k is not None else ()
    if len(given) > 1:
        raise UsageError(f"one k belongs here, got {k!r}", "for example: -k 3")
    with context.open() as database, progress_bar(context, "asking why") as advance:
        name = retriever or _diagnosis.last_retriever(database)
        asked = None if evaluation is None else evaluation_id(database, evaluation)
        row = _resolution.evaluation_of(database, asked, question_set, [name])
        told = _diagnosis.misses(database, row["id"], name, given[0] if given else max(row["k"]), depth, advance)
        alarms = _resolution.alarms(database, [row["set"]])
    if as_json:
        _render.print_json(context.out, {"evaluation": row["id"], "retriever": name} | told)
        return
    _show(context, name, told)
    changed = told["summary"]["changed"]
    if changed:
        context.warn(
            f"{_render.counted(changed, 'missed label')} of that evaluation changed since, or its question is gone, so no kind "
            "is told; surrecall evaluate measures what is there"
        )
    warn_all(context, {"warnings": alarms})
    if told["note"]:
        context.warn(told["note"])
    say(context, f"missed in {_render.record_text(row['id'])}, set {row['set']}; the lists were asked anew")


def _keep(context: Context, asked: str, kind: str, note: str | None, as_json: bool) -> None:
    with context.open() as database:
        question = find_question(database, asked)
        if question is None:
            raise UsageError(f"no question has the id or text {asked!r}", "surrecall questions lists the golden set")
        row = _diagnosis.note(database, question, kind, note)
    if as_json:
        _render.print_json(context.out, row)
    else:
        say(context, f"kept: {_render.cell(question)} is {kind}" + (f", {note}" if note else ""))


def _show(context: Context, name: str, told: dict[str, Any]) -> None:
    summary = told["summary"]
    say(
        context,
        f"{name} at k = {summary['k']}: {summary['missed']} of {summary['labels']} labels missed,"
        f" of {summary['missed_questions']} of {_render.counted(summary['questions'], 'question')}",
    )
    say(
        context,
        f"recall {_render.cell(summary['recall'])}; its lists hold {_render.cell(summary['pool_recall'])}:"
        f" {summary['not_promoted']} not promoted, {summary['never_found']} never found by the first stage",
    )
    if not told["rows"]:
        return
    context.out.print()
    kinds = [
        {"fault": row["kind"], "labels": row["labels"], "questions": row["questions"], "try first": row["fix"]}
        | {one["kind"]: one["labels"] for one in row["classes"] if len(row["classes"]) > 1}
        for row in summary["kinds"]
    ]
    context.show(_render.table(kinds, list(kinds[0])))
    context.out.print()
    context.show(_render.table([_row(row) for row in told["rows"]], _ROW))
    context.out.print()


def _row(row: dict[str, Any]) -> dict[str, Any]:
    noted = row["noted"]
    shown = {
        "question": row["question"],
        "document": row["document"],
        "rank": row["rank"],
        "fault": row["kind"],
        "why": row["why"],
    }
    return shown | {"read as": noted and " ".join(text for text in (noted["kind"], noted["note"]) if text)}
