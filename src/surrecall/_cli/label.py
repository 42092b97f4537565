"""surrecall label"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from surrecall import _keys, _label_session, _label_table, _pool, _render, _who
from surrecall._cli._app import Context, Json, command, progress_bar
from surrecall._cli._export import Force, tell
from surrecall._cli._resolution import say
from surrecall._cli.pool import Depth, OneQuestion, Retrievers, one, show_shares, source, warn
from surrecall._database import Database
from surrecall._errors import ExitCode, SurrecallError, UsageError
from surrecall._export.output import Output


@command("label")
def label(
    context: Context,
    retriever: Retrievers = None,
    depth: Depth = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set; else default.")] = None,
    question: OneQuestion = None,
    who: Annotated[str | None, typer.Option("--who", help="Who judges; else git's user.name, else the login.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", help="Write the candidates as a CSV to fill in; - is standard output.")
    ] = None,
    given: Annotated[Path | None, typer.Option("--from", help="Read such a CSV back, filled in.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Judge what the retrievers bring and nobody judged: in the terminal, one key a document, or in a CSV.

    r relevant, p partly, n not, s skip, b back (takes the last answer back), m more of a long text, q quit. Each answer is stored
    before the next document is shown, and is not asked again; skipped ones come last, the next time. «» mark words of the
    question. Whether partly makes a label says the threshold of the set: 2 by default, and then it does not.

    The column grade of the CSV takes relevant, partly or not, or 2, 1, 0; a blank one is left for later. The file is read whole
    or not at all, and a second time changes nothing.

    Example: surrecall label --who Ada -k 10
             surrecall label --out to_label.csv
             surrecall label --from to_label.csv --who Ada
    """
    if out is not None and given is not None:
        raise UsageError("--out writes a file and --from reads one", "give one of the two")
    name = _who.name(who, context.folder)
    with context.open() as database:
        if out is None and given is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("there is no terminal to ask in", "surrecall label --out to_label.csv writes a table to fill in")
        asked = _pool.Options(question_set, retriever, depth, one(database, question), name)
        if given is not None:
            _table(context, database, given, asked, as_json)
            return
        with progress_bar(context, "pooling") as advance:
            pooled = _pool.pool(database, asked, advance)
        if out is not None:
            with Output(force=force) as output:
                _label_table.write(database, output.lines(out), pooled.unjudged)
            counts = {"candidates": len(pooled.unjudged), "questions": pooled.told["questions"]}
            warn(context, pooled.told)
            tell(context, out, as_json, counts, _render.counted(len(pooled.unjudged), "candidate"))
        else:
            _session(context, database, pooled, name, as_json)


def _session(context: Context, database: Database, pooled: _pool.Pooled, name: str, as_json: bool) -> None:
    candidates = pooled.unjudged
    say(context, f"{source(pooled.told)}; {_render.counted(len(candidates), 'candidate')} to judge as {_render.printable(name)}")
    with _keys.keys() as key:
        session = _label_session.run(database, context.out, candidates, name, key)
    context.out.print()
    told = {"judged": session.counts, "skipped": session.skipped, "labels": session.labels}
    _end(context, database, pooled, session.questions, told, as_json)
    if session.interrupted:
        stopped = SurrecallError(
            f"interrupted; {_render.counted(sum(session.counts.values()), 'judgement')} stored", "the same command goes on"
        )
        stopped.exit_code = ExitCode.INTERRUPTED
        raise stopped


def _table(context: Context, database: Database, path: Path, asked: _pool.Options, as_json: bool) -> None:
    try:
        with progress_bar(context, "pooling") as advance:
            pooled = _pool.pool(database, asked, advance)
    except SurrecallError as error:
        if error.statement is None:
            raise
        # what was judged counts, whatever became of the retrievers since
        pooled = None
        context.warn(f"no judged share: {error.text}")
    with progress_bar(context, "judging") as advance:
        judged = _label_table.read(database, path, asked.who or "", advance)
    _end(context, database, pooled, judged.questions, _read(judged), as_json)


def _read(judged: _label_table.Judged) -> dict[str, Any]:
    counts = {"relevant": judged.relevant, "partly": judged.partly, "not": judged.not_relevant}
    return {"judged": counts, "there": judged.there, "blank": judged.blank}


def _end(
    context: Context, database: Database, pooled: _pool.Pooled | None, touched: list[Any], told: dict[str, Any], as_json: bool
) -> None:
    """What was judged, and the judged share before and after."""
    after = None
    if pooled is not None:
        there = {_render.record_text(question) for question in pooled.begun["questions"]}
        after = _pool.again(database, pooled, [question for question in touched if _render.record_text(question) in there])
    if as_json:
        shares = {
            "before": pooled.told["shares"] if pooled else None,
            "after": after.told["shares"] if after else None,
            "warnings": after.told["warnings"] if after else [],
        }
        _render.print_json(context.out, told | shares)
        return
    counts = told["judged"]
    more = {
        "skipped": told.get("skipped"),
        "label changed" if told.get("labels") == 1 else "labels changed": told.get("labels"),
        "judged so before": told.get("there"),
        "left blank": told.get("blank"),
    }
    said = ", ".join(f"{count} {what}" for what, count in (counts | more).items() if count)
    say(context, f"judged {_render.counted(sum(counts.values()), 'document')}" + (f": {said}" if said else ""))
    if pooled and after:
        show_shares(context, after.told, pooled.told["shares"])
        warn(context, after.told)
