"""surrecall audit"""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from surrecall import _audit, _render
from surrecall._cli._app import Context, Json, command
from surrecall._cli._resolution import say
from surrecall._database import Database
from surrecall._errors import UsageError

_COLUMNS = ("at", "judges", "who", "drawn", "judged", "differ", "labels", "agreement", "kappa", "alarm")
_OPEN = ("question", "document", "model", "person", "who", "label")
_WORDS = ("no", "part", "yes")
_SHOWN = 2000
_LISTED = 20


@command("audit")
def audit(
    context: Context,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=10_000, help="Judgements to draw.")] = 30,
    who: Annotated[str | None, typer.Option("--who", help="Your name, kept with your verdicts; else the login.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write what is to be judged to a CSV, to fill in.")] = None,
    filled: Annotated[Path | None, typer.Option("--from", help="Read a CSV of --out that was filled in.")] = None,
    anew: Annotated[bool, typer.Option("--new", help="Draw again although an audit is unfinished.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Make the labels follow the person's verdicts.")] = False,
    as_json: Json = False,
) -> None:
    """Repeat some judgements of a model without seeing its verdict, and show how far you agree.

    30 of its judgements are drawn, evenly from the grades; y, p and n judge one, s leaves it for later, q stops, and the next
    call goes on. Two judgements differ when their grades do. When more than a tenth of the drawn ones differ, every table with
    figures of the set shows an alarm, until a later audit is within a tenth. Without a terminal the figures so far are shown.

    Example: surrecall audit --set default --who ada
    """
    if sum(map(bool, (out, filled, accept))) > 1:
        raise UsageError("--out, --from and --accept are three steps", "one at a time")
    interactive = not (out or filled or accept or as_json) and _is_terminal()
    accepted: _audit.Accepted | None = None
    with context.open() as database:
        if filled:
            name = _name(who)
            for judgement, verdict in _audit.read(database, filled):
                _audit.answer(database, judgement, verdict, name)
        elif accept:
            accepted = _audit.accept(database, question_set)
        elif out or interactive or anew:
            drawn = _audit.draw(database, question_set, number, anew=anew)
            if out:
                _audit.write(out, drawn["todo"])
            elif interactive:
                _ask(context, database, drawn["todo"], _name(who))
        state = _audit.state(database, question_set)
    if as_json:
        _render.print_json(context.out, state | ({"accepted": accepted} if accepted else {}))
    else:
        _show(context, state, question_set)
        if out:
            say(context, f"wrote {out}: fill in the column verdict (yes, part, no), then surrecall audit --from {out} --who NAME")
        if accepted:
            say(context, f"{_render.counted(accepted.changed, 'label')} changed to the person's verdict")
    for left in accepted.left if accepted else []:
        context.warn(f"{_render.cell(left['question'])}, {_render.cell(left['document'])}: {left['why']}")
    if state["alarm"]:
        context.warn(state["alarm"])


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _name(who: str | None) -> str:
    name = (who if who is not None else getpass.getuser()).strip()
    if not name:
        raise UsageError("a verdict is somebody's", "--who NAME")
    return name


def _ask(context: Context, database: Database, todo: list[dict[str, Any]], who: str) -> None:
    for place, row in enumerate(todo, 1):
        context.out.print()
        say(context, f"{place} of {len(todo)}")
        say(context, f"question: {row['text']}")
        passage = row["passage"] or ""
        for line in passage[:_SHOWN].splitlines():
            say(context, f"  {line}")
        if len(passage) > _SHOWN:
            say(context, "  …")
        while True:
            try:
                key = typer.prompt("does it answer? [y]es, in [p]art, [n]o, [s]kip, [q]uit").strip().lower()[:1]
            except typer.Abort:
                # Ctrl-C or Ctrl-D: what was judged is stored
                key = "q"
            if key in ("q", "s") or key in _audit.SHORT:
                break
        if key == "q":
            break
        if key != "s":
            _audit.answer(database, row["judgement"], _audit.SHORT[key], who)
    context.out.print()


def _show(context: Context, state: dict[str, Any], question_set: str) -> None:
    if not state["audits"]:
        waiting = f"; {_render.counted(state['unaudited'], 'judgement')} of a model to audit" if state["unaudited"] else ""
        say(context, f"no audit of the golden set {question_set} yet{waiting}")
        return
    rows = [
        row | {"judges": ", ".join(row["judges"]), "who": ", ".join(row["who"]), "alarm": "ALARM" if row["alarm"] else None}
        for row in state["audits"]
    ]
    context.show(_render.table(rows, _COLUMNS))
    if state["open"]:
        context.out.print()
        listed = [
            row | {"model": _WORDS[row["grade"]], "person": _WORDS[row["person"]], "label": row.get("label")}
            for row in state["open"][:_LISTED]
        ]
        context.show(_render.table(listed, _OPEN, title="labels that do not follow the person"))
        if len(state["open"]) > _LISTED:
            say(context, f"the first {_LISTED} of {len(state['open'])}; --json has all")
    context.out.print()
    unfinished = sum(row["drawn"] - row["judged"] for row in state["audits"][-1:])
    left = f"{unfinished} of the last audit are not judged yet; " if unfinished else ""
    say(context, f"{left}{_render.counted(state['unaudited'], 'judgement')} of models that no person repeated")
