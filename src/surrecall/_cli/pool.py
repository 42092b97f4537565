"""surrecall pool"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from surrealdb import RecordID

from surrecall import _label_table, _pool, _render
from surrecall._cli._app import LARGEST, Context, Json, command, progress_bar
from surrecall._cli._export import Force
from surrecall._cli._question import find_question
from surrecall._cli._resolution import say
from surrecall._database import Database
from surrecall._errors import UsageError
from surrecall._export.output import STANDARD_OUTPUT, Output

Retrievers = Annotated[
    list[str] | None, typer.Option("-r", "--retriever", help="Pool these, two or more; else all of the evaluation.")
]
Depth = Annotated[
    int | None,
    typer.Option("-k", "--depth", min=1, max=LARGEST, help="First so many of each; else the depth of the evaluation."),
]
OneQuestion = Annotated[str | None, typer.Option("--question", help="Only this one, by its id or text.")]


@command("pool")
def pool(
    context: Context,
    retriever: Retrievers = None,
    depth: Depth = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set; else default.")] = None,
    question: OneQuestion = None,
    out: Annotated[str | None, typer.Option("--out", help="Write what nobody judged, as a CSV to fill in.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Merge the top results of two retrievers or more for each question, what nobody judged first.

    Rankings are those of the newest complete evaluation that has two retrievers and the depth; questions that it lacks, and all
    where there is none, are asked anew. A document that several retrievers bring stands once; so do documents of the same text.

    The judged share is that of the first k results which have a label or a judgement. surrecall label asks for the others.

    Example: surrecall pool -r bm25 -r vector -k 10
    """
    with context.open() as database:
        asked = _pool.Options(question_set, retriever, depth, one(database, question))
        with progress_bar(context, "pooling") as advance:
            pooled = _pool.pool(database, asked, advance)
        if out is not None:
            with Output(force=force) as output:
                _label_table.write(database, output.lines(out), pooled.unjudged)
    if as_json:
        if out != STANDARD_OUTPUT:
            _render.print_json(context.out, pooled.told | {"rows": pooled.rows})
        return
    if out == STANDARD_OUTPUT:
        return
    context.show(_render.table([_row(row) for row in pooled.rows], _COLUMNS))
    context.out.print()
    show_shares(context, pooled.told)
    warn(context, pooled.told)
    say(context, source(pooled.told))
    if out is not None:
        say(
            context, f"wrote {_render.counted(len(pooled.unjudged), 'candidate')} to {out}; surrecall label --from {out} reads it"
        )
    elif pooled.told["unjudged"]:
        say(context, f"{_render.counted(pooled.told['unjudged'], 'candidate')} that nobody judged; surrecall label asks for them")


def one(database: Database, asked: str | None) -> RecordID | None:
    """The question that is asked for. Raises UsageError when there is none."""
    if asked is None:
        return None
    found = find_question(database, asked)
    if found is None:
        raise UsageError(f"no question has the id or text {asked!r}", "surrecall questions lists the golden set")
    return found


def show_shares(context: Context, told: dict[str, Any], before: Sequence[dict[str, Any]] | None = None) -> None:
    """The judged share of each retriever, and what it was before."""
    if before is None:
        context.show(_render.table(told["shares"], ("retriever", "results", "judged", "share")))
        return
    earlier = {row["retriever"]: row for row in before}
    rows = [
        {
            "retriever": row["retriever"],
            "results": row["results"],
            "before": earlier.get(row["retriever"], {}).get("share"),
            "after": row["share"],
        }
        for row in told["shares"]
    ]
    context.show(_render.table(rows, ("retriever", "results", "before", "after")))


def source(told: dict[str, Any]) -> str:
    """Whose results were pooled."""
    where = f"in {_render.record_text(told['evaluation'])}" if told["evaluation"] else "asked anew"
    return f"pooled the first {told['k']} of {', '.join(told['retrievers'])}, {where}, set {told['set']}"


def warn(context: Context, told: dict[str, Any]) -> None:
    """What should be known beside a pool."""
    for warning in told["warnings"]:
        context.warn(warning)


_COLUMNS = ("question", "text", "candidates", "unjudged", "judged share")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "question": row["question"],
        "text": row["text"],
        "candidates": len(row["candidates"]),
        "unjudged": row["unjudged"],
        "judged share": row["share"],
    }
