"""surrecall judge"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _judge, _render
from surrecall._cli import _model
from surrecall._cli._app import LARGEST, Context, Json, command, progress_bar
from surrecall._cli._resolution import say


@command("judge")
def judge(
    context: Context,
    model: _model.Model,
    endpoint: _model.Endpoint = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    depth: Annotated[int, typer.Option("-k", "--k", min=1, max=LARGEST, help="Judge what is among the first k.")] = 10,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Documents for each question.")] = 5,
    threshold: Annotated[
        int | None, typer.Option("--threshold", min=1, max=2, help="Grade that becomes a label: 2 YES alone, 1 PART too; else 2.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what a model judged by another version of the prompt.")] = False,
    max_chars: _model.MaxChars = 6000,
    key_env: _model.KeyEnv = "OPENAI_API_KEY",
    timeout: _model.Timeout = 120.0,
    price_in: _model.PriceIn = None,
    price_out: _model.PriceOut = None,
    dry_run: _model.DryRun = False,
    yes: _model.Yes = False,
    as_json: Json = False,
) -> None:
    """Let a language model judge near misses: YES, PART or NO.

    A near miss is a document among the first k of a retriever, in the newest evaluation, that has no label and no judgement. YES
    is grade 2, PART grade 1; what reaches the threshold of the set becomes a label, at most the set's highest grade, and NO the
    grade 0. A model never changes a label. Each verdict is stored with model, prompt version and date. Anything else than a
    verdict is counted and makes no label; the same command asks again. Then: surrecall audit.

    Example: surrecall judge --model gpt-4o-mini --set default -k 10 --limit 3
    """
    chat = _model.chat(model, endpoint, key_env, timeout, price_in, price_out)
    options = _judge.Options(question_set, depth, limit, threshold, again, max_chars)
    with context.open() as database:
        with progress_bar(context, "looking") as advance:
            planned = _judge.plan(database, chat, options, advance)
        _model.show_estimate(context, planned.estimate, planned.cut)
        if planned.elsewhere:
            context.warn(
                f"{_render.counted(planned.elsewhere, 'result')} of another table left out: a label is a document, and those of "
                "chunks are anchors"
            )
        if dry_run:
            if as_json:
                _render.print_json(context.out, planned)
            return
        _judge.settle(database, options)
        if planned.pairs:
            _model.confirm(yes)
        with progress_bar(context, "judging") as advance:
            done = _judge.judge(database, chat, planned, options, advance)
    if as_json:
        _render.print_json(context.out, done)
        return
    if not planned.pairs:
        say(context, f"nothing to judge: all among the first {depth} has a label or a judgement")
        return
    row = {"YES": done.yes, "PART": done.part, "NO": done.no, "labels": done.labels, "judged not relevant": done.not_relevant}
    context.show(_render.table([row]))
    context.out.print()
    say(
        context,
        f"{done.judged} near miss{'' if done.judged == 1 else 'es'} judged by {done.model}, prompt {done.prompt}; "
        f"threshold of the set {question_set}: {done.threshold}",
    )
    _model.show_usage(context, done.usage)
    lost = done.refused + done.malformed
    if lost:
        context.warn(
            f"{lost} without a verdict: {done.refused} refused, {done.malformed} malformed; no label was made of them, "
            "and the same command asks again"
        )
    if done.labels:
        say(context, f"surrecall audit --set {question_set} has a person repeat some")
