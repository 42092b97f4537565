"""What the commands that ask a language model share: its options, the estimate, the question whether to go on."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from surrecall import _llm, _render
from surrecall._cli._app import Context
from surrecall._cli._resolution import say
from surrecall._errors import UsageError

Model = Annotated[str, typer.Option("--model", "-m", help="Name of the model, as the endpoint calls it.")]
Endpoint = Annotated[
    str | None, typer.Option("--endpoint", help="Address that speaks /chat/completions; else OPENAI_BASE_URL, else OpenAI's own.")
]
KeyEnv = Annotated[str, typer.Option("--key-env", help="Variable that holds the key of the endpoint.")]
Timeout = Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds for one request.")]
PriceIn = Annotated[float | None, typer.Option("--price-in", min=0, help="Price of a million tokens sent, for the estimate.")]
PriceOut = Annotated[float | None, typer.Option("--price-out", min=0, help="Price of a million tokens received.")]
MaxChars = Annotated[int, typer.Option("--max-chars", min=100, help="Characters of a document that are sent.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before anything is sent.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the estimate, and send and store nothing.")]


def chat(
    model: str, endpoint: str | None, key_env: str, timeout: float, price_in: float | None, price_out: float | None
) -> _llm.Chat:
    """The model that options name."""
    if (price_in is None) != (price_out is None):
        raise UsageError("--price-in and --price-out go together", "a price for a million tokens each")
    return _llm.Chat(_llm.Asked(model, endpoint, key_env, timeout, price_in, price_out))


def show_estimate(context: Context, estimate: _llm.Estimate, cut: int) -> None:
    """What would be sent, where, and what it costs; on standard error, since it stands before the result."""
    cost = "" if estimate.cost is None else f", {estimate.cost:.4f} at the prices given"
    line = (
        f"{_render.counted(estimate.requests, 'request')} to {estimate.model} at {estimate.endpoint}: about"
        f" {estimate.tokens_in} tokens sent and {estimate.tokens_out} received{cost}"
        f" (an estimate: {_llm.CHARACTERS_A_TOKEN} characters a token)"
    )
    context.err.print(_render.printable(line), soft_wrap=True, markup=False, highlight=False)
    if cut:
        context.warn(f"{_render.counted(cut, 'document')} cut at --max-chars")


def confirm(yes: bool) -> None:
    """Ask whether to send it. Raises UsageError where nobody is there to answer."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Send it? Nobody is there to answer", "--yes sends it, --dry-run only estimates")
    typer.confirm("Send it?", abort=True, err=True)


def show_usage(context: Context, usage: _llm.Usage) -> None:
    """What was sent in fact."""
    say(
        context,
        f"{_render.counted(usage.requests, 'request')}, {usage.tokens_in} tokens sent and {usage.tokens_out} received as the "
        f"endpoint counts, {usage.malformed} malformed answers",
    )
