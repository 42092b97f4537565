"""surrecall retriever test"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from surrealdb import RecordID

from surrecall import _registry, _render, _retriever_check
from surrecall._cli._app import Context, Json, command, retriever_app
from surrecall._cli._question import find_question
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DataError, ExitCode, SurrecallError, UsageError
from surrecall._retriever_check import Question, Verdict
from surrecall._retrievers import Retriever


@command("test", group=retriever_app)
def test_(
    context: Context,
    name: Annotated[str, typer.Argument(help="Name of the retriever.")],
    question: Annotated[str | None, typer.Option("--question", help="Question to try it on; else five of the set.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Documents to ask for.")] = 10,
    as_json: Json = False,
) -> None:
    """Try a retriever on a few questions: what comes back, in which order, the same each time, and on both executors.

    Ends with 4 when it has a fault.

    Example: surrecall retriever test hybrid --question money_back
    """
    corpus = corpus_of(context)
    retriever = _registry.one(context.folder, name)
    with context.open() as database:
        trial = asked_questions(database, corpus, question)
        try:
            verdict = _retriever_check.check(database, retriever, trial, k, corpus)
        except SurrecallError as error:
            if error.statement is None:
                raise
            raise DataError(f"the call of {name} fails: {error.message}", error.hint or "mend it in retrievers.toml") from error
    if as_json:
        _render.print_json(context.out, {"retriever": retriever, "verdict": verdict})
    else:
        show_verdict(context, retriever, verdict, k)
    for fault in verdict.faults:
        context.warn(f"{name}: {fault}")
    if verdict.prefix is not retriever.prefix and verdict.ranking:
        said = "begins" if verdict.prefix else "does not begin"
        context.warn(
            f"{name}: its list at k {said} its list at 2k; write prefix = {str(verdict.prefix).lower()} into retrievers.toml"
        )
    if verdict.faults:
        raise typer.Exit(ExitCode.DATA)


def corpus_of(context: Context) -> Corpus:
    """The corpus of the project. Raises UsageError when the folder has none."""
    if context.project.corpus is None:
        raise UsageError("surrecall.toml of this folder has no [corpus]", "surrecall init, or surrecall init --adopt, writes it")
    return context.project.corpus


def asked_questions(database: Database, corpus: Corpus, given: str | None) -> list[Question]:
    """The questions to try with: the one that was named, a few of the golden set, or a document's first words."""
    if given is not None:
        found = find_question(database, given)
        return [found if found is not None else {"text": given}]
    stored = _retriever_check.stored(database)
    if stored:
        return list(stored)
    trial = _retriever_check.sample(database, corpus)
    if trial is None:
        raise DataError(f"{corpus.table} is empty, so there is nothing to try it on", "import documents first")
    return [trial]


def _shown(found: Any) -> str:
    return _render.record_text(found) if isinstance(found, RecordID) else repr(found)


def show_verdict(context: Context, retriever: Retriever, verdict: Verdict, k: int) -> None:
    """What came back, in a line or two."""
    shown = ", ".join(_shown(found) for found in verdict.ranking[:3])
    more = ", …" if len(verdict.ranking) > 3 else ""
    context.out.print(
        f"{retriever.name} gave {len(verdict.ranking)} of {k}{': ' + shown + more if shown else ''}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
    for note in verdict.notes:
        context.warn(f"{retriever.name}: {note}")
    if not verdict.prefix:
        why = "k rows give fewer than k" if retriever.where or retriever.document else f"asking for {2 * k} changes the first {k}"
        context.out.print(f"{why}, so it is asked anew for each cutoff", highlight=False)
