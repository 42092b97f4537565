"""surrecall confirm"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from surrecall import _render, _stale, _who
from surrecall._cli._app import Context, Json, command
from surrecall._cli._resolution import say
from surrecall._errors import ExitCode, UsageError

# the text of the question is left out: with it the table fits no terminal
_COLUMNS = ("question", "document", "title", "since", "was", "is")
_TITLES = "RETURN $documents.map(|$id| fn::document_facts($id).title)"
# enough of a hash to tell two apart
_SHOWN = 6


@command("confirm")
def confirm(
    context: Context,
    question: Annotated[list[str] | None, typer.Argument(help="Ids or texts of questions whose stale labels still hold.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All stale labels, or with --set those of a golden set.")] = False,
    document: Annotated[str | None, typer.Option("--document", help="The labels of this document, for any question.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Only of this golden set.")] = None,
    who: Annotated[str | None, typer.Option("--who", help="Who looked at them; else the name of git, else of the login.")] = None,
    why: Annotated[str | None, typer.Option("--why", help="Kept with each.")] = None,
    as_json: Json = False,
) -> None:
    """List labels whose document changed since they were labelled, or say that they still hold.

    A label is stale when title or text of its document are not what they were when it was labelled or last confirmed; a new
    vector alone is no change. Without arguments they are listed, and with them the labels whose document is gone.

    A confirmed label is fresh from then on, and leaves a row in label_change with who, when and why. No label changes. One
    whose document is gone can't be confirmed: surrecall relabel takes it away. Ends with 4 when such a one was asked for.

    Example: surrecall confirm money_back --who Ada
    """
    if everything and (question or document):
        raise UsageError("--all goes with neither questions nor --document", "leave one of them out")
    asked = bool(question or document or everything)
    if not asked and why is not None:
        raise UsageError("--why belongs to what is confirmed", "name questions, or --all")
    with context.open() as database:
        options: dict[str, Any] = {"set": question_set} if question_set else {}
        if question:
            options["questions"] = [_stale.question(database, one) for one in question]
        if document:
            table = context.project.corpus.table if context.project.corpus else "article"
            options["document"] = _stale.marked_document(database, table, document)
        rows = _stale.stale(database, options)
        done = _stale.confirm(database, rows, _who.name(who, context.folder), why) if asked else None
        titles = database.value(_TITLES, documents=[row["document"] for row in rows]) if rows and not asked else []
    if as_json:
        _render.print_json(context.out, rows if done is None else done)
    elif done is None:
        if rows:
            context.show(_render.table([_row(row, title) for row, title in zip(rows, titles, strict=True)], _COLUMNS))
            context.out.print()
        gone = sum(row["gone"] for row in rows)
        say(context, f"{_render.counted(len(rows) - gone, 'label')} stale, {gone} of documents that are gone")
        if len(rows) > gone:
            say(context, "read what changed, then: surrecall confirm QUESTION, or surrecall relabel QUESTION DOCUMENT")
    else:
        say(context, f"confirmed {_render.counted(len(done.confirmed), 'label')}")
    for row in done.gone if done else []:
        label, of = _render.record_text(row["document"]), _render.record_text(row["question"])
        context.warn(f"{label} is gone, and a label of {of}; surrecall relabel takes it away, or labels another document")
    if done is not None and done.gone:
        raise typer.Exit(ExitCode.DATA)


def _row(row: dict[str, Any], title: str | None) -> dict[str, Any]:
    return {
        "question": row["question"],
        "document": row["document"],
        "title": title,
        "since": row["since"],
        "was": (row.get("was") or "")[:_SHOWN],
        "is": "gone" if row["gone"] else row["is"][:_SHOWN],
    }
