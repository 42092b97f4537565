"""surrecall advise"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from surrecall import _advise, _render
from surrecall._cli._app import LARGEST, Context, Json, command, corpus_of, progress_bar


@command("advise")
def advise(
    context: Context,
    k: Annotated[
        int | None,
        typer.Option("-k", "--k", min=1, max=LARGEST, help="Where lists are cut; else the largest cutoff of surrecall.toml."),
    ] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set to search with.")] = "default",
    as_json: Json = False,
) -> None:
    """Find what in this database makes retrieval slow or wrong, by measuring it here.

    Looked at: indexes that are missing or not ready, several vector indexes on a field, documents without a vector, vectors of
    zeros, ef below K, words that most documents have (any-term search reads every document that matches), vectors beside the
    texts, identifiers that the analyzer takes apart, ties at the cut. Each finding says what was measured, the statements that
    mend it, and what they are expected to change. Nothing is changed here; what is defined for a measurement is removed again.

    Example: surrecall advise -k 10
    """
    corpus = corpus_of(context)
    with context.open() as database, progress_bar(context, "measuring") as advance:
        advised = _advise.advise(database, corpus, k or max(context.project.cutoffs), question_set, advance)
    if as_json:
        _render.print_json(context.out, advised)
    else:
        for finding in advised.findings:
            context.out.print(Text(_render.printable(f"{finding.kind}  {finding.subject}"), style="bold"))
            for label, text in (("measured", finding.measured), ("expected", finding.expected)):
                context.out.print(Text(_render.printable(f"  {label}: {text}")))
            for statement in finding.statements:
                # as it stands, so that it can be copied
                context.out.print(Text("  " + _render.printable(statement)), soft_wrap=True)
            for step in finding.commands:
                context.out.print(Text(_render.printable(f"  then: {step}")))
            context.out.print()
        if not advised.findings:
            context.out.print("nothing found")
        context.out.print(Text(f"looked at: {', '.join(advised.looked)}"))
    for warning in advised.warnings:
        context.warn(warning)
