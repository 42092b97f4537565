"""surrecall score"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surrecall import _render, _run_file, _score
from surrecall._cli._app import Context, Json, command, cutoffs, progress_bar
from surrecall._cli.evaluate import metrics_of


@command("score", connects=False)
def score(
    context: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rankings: a TREC run, .jsonl or .csv.")],
    qrels: Annotated[Path, typer.Option("--qrels", help="Labels: TREC qrels, BEIR's .tsv, .csv or .jsonl.")],
    form: Annotated[
        _run_file.Form | None,
        typer.Option("--format", help="Of the run: trec, jsonl or csv; else that of the extension, else trec."),
    ] = None,
    k: Annotated[list[str] | None, typer.Option("-k", "--k", help="Cutoffs: 1,3,5; else those of surrecall.toml.")] = None,
    metric: Annotated[list[str] | None, typer.Option("-m", "--metric", help="This one; may be given more than once.")] = None,
    rel: Annotated[float, typer.Option("--rel", help="Lowest grade that counts as relevant.")] = 1,
    only_answered: Annotated[
        bool, typer.Option("--only-answered", help="Only the questions that the run has, as trec_eval without -c.")
    ] = False,
    per_question: Annotated[bool, typer.Option("--per-question", help="Each question too, as trec_eval -q.")] = False,
    as_json: Json = False,
) -> None:
    """Score a file of rankings by a file of labels: files in, figures out, no database, nothing stored.

    The forms of FILE are those of surrecall import run, its order is trec_eval's. Every question that has a label is in the
    means; one that the run leaves out counts as 0, as with trec_eval -c. trec_eval's map, recip_rank, ndcg, Rprec and bpref
    have no cutoff: a k beyond the longest list gives them. The table shows the usual metrics, --json all of them, and both
    those of --metric where it is given.

    Ends with 4 when the two files share no question, or no document.

    Example: surrecall score bm25.run --qrels qrels.tsv -k 10,1000 --metric ndcg --metric recall
    """
    with _score.engine() as database, progress_bar(context, "scoring") as advance:
        shown = metrics_of(database, metric)
        options = _score.Options(
            run=file,
            qrels=qrels,
            cutoffs=cutoffs(k, context.project.cutoffs),
            metrics=None if as_json and not metric else shown,
            # a whole number stays one, as the grades are
            rel=int(rel) if rel.is_integer() else rel,
            only_answered=only_answered,
            per_question=per_question,
            form=form,
        )
        scored = _score.score(database, options, advance)
    if as_json:
        _render.print_json(context.out, scored)
    else:
        if per_question:
            rows = [row | {"question": str(row["question"])} for row in scored.per_question]
            context.show(_render.table(rows, ("question", "k", *shown)))
            context.out.print()
        context.show(_render.table(scored.means, ("k", *shown)))
        scope = _render.counted(scored.questions, "question") + f" of {qrels.name}, {scored.answered} of them in {file.name}"
        context.out.print(_render.printable(scope), markup=False, highlight=False, soft_wrap=True)
    for warning in scored.warnings:
        context.warn(warning)
