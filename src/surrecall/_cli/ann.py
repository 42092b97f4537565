"""surrecall ann"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _ann, _render, _resolution
from surrecall._cli._app import Context, Json, command, corpus_of, cutoffs, progress_bar
from surrecall._cli._resolution import warn_all

_COLUMNS = ("index", "ef", "overlap", "recall", "short", *_render.TOOK, "now")


@command("ann")
def ann(
    context: Context,
    k: Annotated[
        int | None, typer.Option("-k", "--k", min=1, max=10_000, help="Neighbours; else the largest cutoff of surrecall.toml.")
    ] = None,
    ef: Annotated[
        list[str] | None, typer.Option("--ef", help="Values of ef: 20,100; else k, the pool and three times the pool.")
    ] = None,
    m: Annotated[list[str] | None, typer.Option("--m", help="Try indexes with these M: 8,24.")] = None,
    efc: Annotated[list[str] | None, typer.Option("--efc", help="Try indexes with these EFC: 80,300.")] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    as_json: Json = False,
) -> None:
    """Tell the index from the embedding: what the vector index loses against exact search.

    For the golden questions: the share of the k exact neighbours that the index finds, the recall of the labels beside that of
    exact search, the questions for which fewer came back, and the time of a search in milliseconds (median, 95th percentile),
    for each ef; the ef that fn::search_vec has now is always among them. With --m or --efc also for indexes of these settings,
    built over a copy of the vectors that is removed again, on Ctrl-C too. The last line says what to set.

    Example: surrecall ann -k 10 --ef 20,100,300 --m 8,24
    """
    corpus = corpus_of(context)
    asked = _ann.Options(
        k=k or max(context.project.cutoffs),
        efs=cutoffs(ef, (), "ef"),
        ms=cutoffs(m, (), "m"),
        efcs=cutoffs(efc, (), "efc"),
        question_set=question_set,
    )
    with context.open() as database, progress_bar(context, "comparing") as advance:
        compared = _ann.compare(database, corpus, asked, advance)
        alarms = _resolution.alarms(database, [question_set])
    if as_json:
        _render.print_json(context.out, compared)
    else:
        exact = compared.exact
        rows = [
            {"index": "exact", "overlap": exact["overlap"], "recall": exact["recall"], **_render.took(exact)},
            *(row | _render.took(row) | {"short": row["short"] or None, "now": row["in_force"] or None} for row in compared.rows),
        ]
        title = f"at k = {compared.k}, {_render.counted(exact['questions'], 'question')}, ms a question"
        context.show(_render.table(rows, _COLUMNS, title=title))
        context.out.print()
        context.out.print(_render.printable(compared.advice), soft_wrap=True, markup=False, highlight=False)
    warn_all(context, {"warnings": [*compared.warnings, *alarms]})
