"""surrecall ingest-policy"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from surrecall import _policy, _render
from surrecall._cli._app import Context, Json, command, cutoffs, progress_bar


class Mode(StrEnum):
    """What happens when the corpus changes."""

    OFF = "off"
    RECORD = "record"
    GUARD = "guard"


@command("ingest-policy")
def ingest_policy(
    context: Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table of the corpus.")],
    mode: Annotated[Mode | None, typer.Option("--mode", help="off, record or guard; without it, what is in force.")] = None,
    k: Annotated[list[str] | None, typer.Option("-k", "--k", help="Cutoffs: 1,3,5; at first those of surrecall.toml.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set; at first default.")] = None,
    wait: Annotated[
        str | None, typer.Option("--wait", help="How long nothing more must come in before an evaluation; at first 1s.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what happens when the corpus changes, or set it.

    In mode record each change leaves a row in corpus_change, in the transaction of whoever writes. A server then evaluates in the
    background, once a burst is over, the retrievers that retrievers.toml marks with on_ingest = true, all where none is marked.
    On the embedded engine fn::evaluate_pending() or surrecall evaluate --pending does; surrecall check says what is pending.

    Example: surrecall ingest-policy article --mode record -k 3
    """
    values: dict[str, Any] = {}
    if mode is not None:
        values["mode"] = mode.value
    if question_set is not None:
        values["set"] = question_set
    if wait is not None:
        values["wait"] = wait
    with context.open() as database, progress_bar(context, "reading the corpus") as advance:
        if k or (mode is not None and not _policy.exists(database)):
            values["k"] = list(cutoffs(k, context.project.cutoffs))
        found = _policy.set_policy(database, table, values, advance)
    if as_json:
        _render.print_json(context.out, found)
        return
    row: dict[str, Any] = {"table": found.table, "mode": found.mode, "wait": found.wait, "set": found.set}
    row |= {"k": ", ".join(map(str, found.k)), "retrievers": ", ".join(found.retrievers), "pending": found.pending}
    context.show(_render.table([row], tuple(row)))
    if found.mode != "off" and not found.known:
        context.warn("the corpus kept changing while it was read, so its fingerprint is read anew at the next evaluation")
