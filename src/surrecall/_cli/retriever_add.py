"""surrecall retriever add"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from surrecall import _registry, _render, _retriever_check, _retrievers, _schema
from surrecall._cli._app import Context, Json, command, retriever_app
from surrecall._cli.retriever_test import asked_questions, corpus_of, show_verdict
from surrecall._errors import DataError, SurrecallError, UsageError
from surrecall._retrievers import Retriever


@command("add", group=retriever_app)
def add(
    context: Context,
    name: Annotated[str, typer.Argument(help="Name in the tables and in the history.")],
    expression: Annotated[str, typer.Argument(help="SurrealQL over $question and $k: ids best first, or rows {id, score}.")],
    returns: Annotated[
        str | None, typer.Option("--returns", help="Table of the ids that come back; else what comes back says it.")
    ] = None,
    where: Annotated[str | None, typer.Option("--where", help="Condition over $row that a row must meet.")] = None,
    document: Annotated[
        str | None, typer.Option("--document", help="How $row leads to the labelled document: $row.document.")
    ] = None,
    reranks: Annotated[
        str | None, typer.Option("--reranks", help="Retriever whose candidates, $ids, the expression puts in another order.")
    ] = None,
    pool: Annotated[int | None, typer.Option("--pool", min=1, max=10_000, help="Candidates of a reranker; else 50.")] = None,
    question: Annotated[str | None, typer.Option("--question", help="Question to try it on; else five of the set.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Documents to ask for in the trial.")] = 10,
    force: Annotated[
        bool, typer.Option("--force", help="Keep it although the trial finds a fault, or the name is taken.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add a retriever: your own search function, a subquery, an API; it is tried on a few questions first.

    Tried are: record ids of the declared table, best first, no more than asked, the same list on both executors of the engine and
    when asked again, and whether the list at k begins the list at 2k (else it is called once per cutoff). What fails is refused
    with the reason; --force keeps it, and every evaluation shows the reason as a warning.

    Example: surrecall retriever add mine 'fn::my_search($question.text, $k)'

    With --reranks the expression is one over $question, $ids and $k, and gives the ids in another order: a reranker. It is also
    tried on all its candidates: one that brings or drops documents is a fault.

    Example: surrecall retriever add small 'fn::chunks($question.text, $k)' --where '$row.id.size = 400'
    """
    _retrievers.require_name(name)
    corpus = corpus_of(context)
    known = [retriever.name for retriever in _registry.retrievers(context.folder)]
    if name in known and not force:
        raise DataError(f"there is a retriever named {name} already", "another name, --force to put this one in its place")
    if reranks is None and pool is not None:
        raise UsageError("--pool is of a reranker", "--reranks names the retriever whose candidates it takes")
    if reranks is not None and (where or document):
        raise UsageError("--where and --document belong to the retriever that is reranked", "leave them out")
    if reranks is not None:
        _registry.one(context.folder, reranks)
        asked = _retrievers.reranked(name, reranks, expression, pool or _retrievers.POOL, returns or "")
    else:
        asked = Retriever(
            name, expression, returns or "", where=(where or "").strip() or None, document=(document or "").strip() or None
        )
    if not force and (word := _retrievers.writes(asked)):
        raise DataError(f"{name} was not added: it writes ({word}), and would with every question", "a search reads; or --force")
    # the name and the entries are checked as those of the file are
    others = [one for one in _registry.retrievers(context.folder) if one.name != name]
    entries = [_retrievers.entry(one) for one in (*others, replace(asked, returns=returns or corpus.table))]
    _retrievers.parse("\n\n".join(entries), "retriever add")
    with context.open(create=True) as database:
        _schema.apply(database, context.folder)
        trial = asked_questions(database, corpus, question)
        try:
            verdict = _retriever_check.check(database, asked, trial, k, corpus)
        except SurrecallError as error:
            if error.statement is None or not force:
                raise DataError(
                    f"{name} was not added, its call fails: {error.message}", error.hint or "mend the expression"
                ) from error
            verdict = _retriever_check.Verdict([f"its call fails: {error.message}"], [], True, [], None, 0)
        if verdict.faults and not force:
            raise DataError(
                f"{name} was not added: {'; '.join(verdict.faults)}", "mend the expression, or --force to keep it as it is"
            )
        added = replace(
            asked,
            returns=returns or verdict.returns or corpus.table,
            prefix=verdict.prefix,
            warning="; ".join(verdict.faults) or None,
        )
        _registry.add(database, context.folder, added)
    if as_json:
        _render.print_json(context.out, {"retriever": added, "verdict": verdict})
        return
    show_verdict(context, added, verdict, k)
    context.out.print(f"added {name} to surql/corpus/retrievers.toml and to the database", highlight=False, markup=False)
    if added.warning:
        context.warn(f"{name}: {added.warning}")
