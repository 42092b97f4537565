"""surrecall rerank"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from surrecall import _evaluation, _render, _rerank, _retrievers
from surrecall._cli._app import Context, Json, command, cutoffs, progress_bar
from surrecall._cli.evaluate import show_evaluation


@command("rerank")
def rerank(
    context: Context,
    retriever: Annotated[str, typer.Argument(help="Registered retriever whose candidates are reranked.")],
    name: Annotated[str, typer.Option("--name", help="Name of the result in the history.")],
    scores: Annotated[
        Path | None, typer.Option("--scores", help="Scores that a reranker gave: a TREC run, .jsonl or .csv.")
    ] = None,
    reranker_url: Annotated[
        str | None, typer.Option("--reranker-url", help="Endpoint that takes {query, documents} and gives {results}.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Model to name to the endpoint.")] = None,
    pool: Annotated[int, typer.Option("--pool", min=1, max=10_000, help="Candidates for each question.")] = _retrievers.POOL,
    k: Annotated[list[str] | None, typer.Option("-k", "--k", help="Cutoffs: 1,3,5; else those of surrecall.toml.")] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    note: Annotated[str | None, typer.Option("--note", help="Kept with the runs.")] = None,
    key_env: Annotated[str, typer.Option("--key-env", help="Variable that holds the key of the endpoint.")] = "RERANKER_API_KEY",
    timeout: Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds for one request.")] = 120.0,
    as_json: Json = False,
) -> None:
    """Measure a reranker outside the database: a cross-encoder behind an endpoint, or the scores it wrote into a file.

    The candidates are the first of a registered retriever, their order is that of the scores, and of equal scores that of the
    candidates. A candidate without a score stands behind the others, and is counted: no reranker brings or drops documents, so
    recall of the pool stays the first stage's. The result stands in the history beside it, as an imported ranking does.

    A reranker that is SurrealQL is a retriever of its own: surrecall retriever add --reranks.

    Example: surrecall rerank hybrid --name crossencoder --reranker-url http://127.0.0.1:8080/rerank --pool 50 -k 5,10
    """
    options = _rerank.Options(
        retriever=retriever,
        name=name,
        cutoffs=cutoffs(k, context.project.cutoffs),
        pool=pool,
        scores=scores,
        url=reranker_url,
        model=model,
        key=os.environ.get(key_env),
        key_name=key_env,
        timeout=timeout,
        question_set=question_set,
        note=note,
        revision=_evaluation.git_revision(context.folder),
    )
    with context.open() as database, progress_bar(context, "reranking") as advance:
        done = _rerank.rerank(database, context.project.corpus, options, advance)
    if as_json:
        _render.print_json(context.out, done)
    else:
        show_evaluation(context, done.evaluation)
        said = f"reranked {_render.counted(done.candidates, 'candidate')} of {retriever}"
        there = f"nothing stored: these scores are {_render.record_text(done.evaluation.row['id'])} already"
        context.out.print(there if done.known else said, soft_wrap=True, markup=False, highlight=False)
    for warning in done.warnings:
        context.warn(warning)
