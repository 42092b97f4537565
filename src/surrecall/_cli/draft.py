"""surrecall draft"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _draft, _render
from surrecall._cli import _model
from surrecall._cli._app import LARGEST, Context, Json, command, progress_bar
from surrecall._cli._resolution import say
from surrecall._errors import DataError

_SHOWN = 20


@command("draft")
def draft(
    context: Context,
    model: _model.Model,
    endpoint: _model.Endpoint = None,
    documents: Annotated[int, typer.Option("--documents", "-n", min=1, max=1000, help="Documents to draw.")] = 150,
    into: Annotated[str, typer.Option("--into", help="Golden set that the questions go to.")] = "drafted",
    seed: Annotated[str, typer.Option("--seed", help="Another text draws other documents.")] = "1",
    type_field: Annotated[
        str | None, typer.Option("--type-field", help="Field that says what type a document is; else kind or type.")
    ] = None,
    min_words: Annotated[int, typer.Option("--min-words", min=1, max=LARGEST, help="Shorter documents are passed over.")] = 20,
    max_chars: _model.MaxChars = 6000,
    keep_flagged: Annotated[bool, typer.Option("--keep-flagged", help="Store flagged questions too, tagged.")] = False,
    key_env: _model.KeyEnv = "OPENAI_API_KEY",
    timeout: _model.Timeout = 120.0,
    price_in: _model.PriceIn = None,
    price_out: _model.PriceOut = None,
    dry_run: _model.DryRun = False,
    yes: _model.Yes = False,
    as_json: Json = False,
) -> None:
    """Let a language model draft questions from documents: a paraphrase each, and an exact one where there is an identifier.

    The documents are drawn by type and length, always the same for a seed; boilerplate and near-duplicates are passed over. A
    question that copies its passage, nearly repeats another, is in another language or lacks the identifier is flagged and held
    back. The others go to a golden set of their own, source generated, labelled with their document, and have no vector yet:
    surrecall embed. Cut off, it keeps what is stored; the same command goes on. Ends with 4 when no answer
    could be used.

    Example: surrecall draft --model gpt-4o-mini --documents 150 --into drafted
    """
    chat = _model.chat(model, endpoint, key_env, timeout, price_in, price_out)
    options = _draft.Options(
        documents=documents,
        into=into,
        seed=seed,
        type_field=type_field,
        min_words=min_words,
        max_chars=max_chars,
        keep_flagged=keep_flagged,
    )
    with context.open() as database:
        if not dry_run:
            _draft.require_writer(database)
        with progress_bar(context, "choosing") as advance:
            planned = _draft.plan(database, chat, options, advance)
        if not as_json:
            context.show(
                _render.table([row | {"type": row["type"] or None, "drawn": row["picked"]} for row in planned.strata], _STRATA)
            )
            drawn = sum(row["picked"] for row in planned.strata)
            say(
                context,
                f"{drawn} drawn, some of them to spare: {len(planned.ids)} to ask about, {planned.done} have drafts already",
            )
            for row in planned.skipped:
                say(context, f"passed over: {_render.counted(row['documents'], 'document')}, {row['reason']}")
        _model.show_estimate(context, planned.estimate, planned.cut)
        if dry_run:
            if as_json:
                _render.print_json(context.out, planned)
            return
        if planned.ids:
            _model.confirm(yes)
        with progress_bar(context, "drafting") as advance:
            done = _draft.draft(database, chat, planned, options, advance)
    if as_json:
        _render.print_json(context.out, {"sample": planned, "drafted": done})
        _end(done)
        return
    if done.held_back:
        context.out.print()
        rows = [row | {"flags": ", ".join(row["flags"])} for row in done.held_back[:_SHOWN]]
        context.show(_render.table(rows, ("document", "form", "text", "flags"), title="held back"))
        if len(done.held_back) > _SHOWN:
            say(context, f"the first {_SHOWN} of {len(done.held_back)}; --json has all")
    context.out.print()
    say(
        context,
        f"stored {_render.counted(done.stored, 'question')} in the set {into}, source generated, from "
        f"{_render.counted(done.documents, 'document')}; {len(done.held_back)} held back",
    )
    _model.show_usage(context, done.usage)
    lost = done.refused + done.malformed
    if lost:
        context.warn(
            f"{_render.counted(lost, 'document')} without questions: {done.refused} refused, {done.malformed} malformed; "
            "the same command asks again"
        )
    _end(done)


def _end(done: _draft.Drafted) -> None:
    if done.nothing:
        raise DataError(
            f"no answer of {done.model} could be used, so nothing is stored: {done.refused} refused, {done.malformed} malformed",
            "another --model may answer; the same command asks again",
        )


_STRATA = ("type", "length", "documents", "drawn")
