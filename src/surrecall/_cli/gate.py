"""surrecall gate"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from surrealdb import RecordID

from surrecall import _baseline, _ci, _evaluation, _gate, _junit, _propose, _render, _resolution, _schema
from surrecall._cli._app import Context, Json, Junit, Markdown, command, cutoffs, one_form, progress_bar
from surrecall._cli._resolution import evaluation_id, say, warn_all
from surrecall._cli.evaluate import Trigger
from surrecall._database import Database
from surrecall._errors import DataError, ExitCode, UsageError

_COLUMNS = ("floor", "slice", "questions", "value", "wanted", "baseline", "common", "holds")


# one that retrievers of ours were asked in
_NEWEST = """
SELECT id, started FROM evaluation
WHERE status = 'complete' AND trigger != 'import' AND seen = NONE AND set = $set ORDER BY started DESC, id DESC LIMIT 1
"""


# the golden sets that floors are about
_SETS = "SELECT VALUE set FROM eval_floor"


@command("gate")
def gate(
    context: Context,
    evaluation: Annotated[
        list[str] | None, typer.Option("--evaluation", help="Judge this one; may be given more than once, for several sets.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Judge the newest finished evaluation; nothing is measured.")] = False,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="What drops are measured against: FILE of baseline export, or a name.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stale labels, and labels of documents that are gone, fail too.")
    ] = False,
    propose: Annotated[
        bool, typer.Option("--propose", help="Write floors from the newest complete evaluation into floors.toml.")
    ] = False,
    retriever: Annotated[
        list[str] | None, typer.Option("-r", "--retriever", help="With --propose: only this one; may be given more than once.")
    ] = None,
    k: Annotated[list[str] | None, typer.Option("-k", "--k", help="With --propose: only these cutoffs.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("-m", "--metric", help="With --propose: this one, else recall; may be given more than once."),
    ] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="With --propose: golden set; else default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="With --propose: write over floors that are there.")] = False,
    note: Annotated[str | None, typer.Option("--note", help="Kept with the runs.")] = None,
    trigger: Annotated[Trigger, typer.Option("--trigger", help="What asks for it.")] = Trigger.MANUAL,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Connections to work over; a server's cores.")] = 1,
    markdown: Markdown = False,
    junit: Junit = None,
    as_json: Json = False,
) -> None:
    """Evaluate what the floors name, and end with 1 when one of them is broken.

    Floors stand in surql/corpus/floors.toml. A floor that could not be measured is broken too: a retriever that is not there, an
    evaluation that failed, a set or class without questions, no baseline to fall from, labels that changed since the baseline;
    and a gate without floors fails. Values at the limit hold. Questions that the baseline does not have are left out of a drop.

    --markdown prints for a pull request, with the questions that each broken floor broke on; --junit writes a case a floor and
    one a question that broke.

    --strict also fails on labels whose document changed since they were labelled, or is gone, and names each.

    --propose writes floors at what was measured, rounded down to two places, and leaves those that are there as they are.

    Example: surrecall gate --baseline baseline.json
    """
    one_form(as_json, markdown)
    if propose:
        if markdown or junit:
            raise UsageError("--markdown and --junit tell of a verdict, and --propose gives none", "leave them out")
        if baseline or last or strict:
            raise UsageError("--propose judges nothing", "leave --baseline, --last and --strict out")
        _propose_floors(context, evaluation, {"retrievers": retriever, "metrics": metric}, k, question_set, force, as_json)
        return
    for option, value in (("-r", retriever), ("-k", k), ("-m", metric), ("--set", question_set), ("--force", force)):
        if value:
            raise UsageError(f"{option} belongs to --propose", "what is judged stands in surql/corpus/floors.toml")
    if evaluation and last:
        raise UsageError("--evaluation and --last are two ways to say which one", "leave one of them out")
    where = _baseline.named(baseline) if baseline else None
    with context.open() as database, progress_bar(context, "evaluating") as advance:
        # what is none, or not in force, is said before an hour of work
        _schema.require_floors(database, context.folder)
        given = _baseline.read(database, where) if isinstance(where, Path) else where
        measured: _gate.Measured | None = None
        if evaluation:
            measured = _gate.evaluations([evaluation_id(database, one) for one in evaluation])
        elif not last:
            revision = _evaluation.git_revision(context.folder)
            measured = _gate.measure(database, note=note, trigger=trigger.value, revision=revision, jobs=jobs, progress=advance)
        told = _gate.judge(database, measured, given, strict=strict, questions=markdown or junit is not None)
        alarms = _resolution.alarms(database, database.value(_SETS))
    warnings = [*(measured.warnings if measured else []), *alarms]
    if junit is not None:
        _junit.write(junit, "surrecall gate", _ci.gate_cases(told))
    if as_json:
        _render.print_json(context.out, told)
    elif markdown:
        context.out.file.write(_ci.gate_markdown(told, [_row(row) for row in told["floors"]], warnings))
    else:
        show_gate(context, told)
    warn_all(context, {"warnings": warnings})
    if not told["holds"]:
        raise typer.Exit(ExitCode.GATE_FAILED)


def show_gate(context: Context, told: dict[str, Any]) -> None:
    """A line a floor, then what broke and why, then the verdict."""
    if told["floors"]:
        context.show(_render.table([_row(row) for row in told["floors"]], _COLUMNS))
        context.out.print()
    for fault in told["faults"]:
        say(context, fault)
    for row in told["floors"]:
        if not row["holds"]:
            say(context, f"{row['floor']}: {row['sentence']}")
    say(context, told["sentence"])


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "floor": row["floor"],
        "slice": None if row.get("by") is None else f"{row['by']} {row.get('class') or '(none)'}",
        "questions": row.get("questions"),
        "value": row.get("value"),
        "wanted": row["wanted"],
        "baseline": row.get("base"),
        # where a drop is judged on fewer questions
        "common": row.get("common") if row.get("common") != row.get("questions") else None,
        "holds": "yes" if row["holds"] else "NO",
    }


def _propose_floors(
    context: Context,
    evaluation: list[str] | None,
    options: dict[str, Any],
    k: list[str] | None,
    question_set: str | None,
    force: bool,
    as_json: bool,
) -> None:
    if evaluation and len(evaluation) > 1:
        raise UsageError("floors are proposed from one evaluation", "give --evaluation once")
    known = max(context.project.cutoffs)
    with context.open() as database, progress_bar(context, "evaluating") as advance:
        wanted = list(cutoffs(k, tuple(range(1, known + 1)))) if k else None
        row = _evaluation_to_propose(context, database, evaluation, question_set, advance)
        # floors beyond what is evaluated would be refused
        measured = [cutoff for cutoff in row["k"] if cutoff <= known]
        asked = {key: value for key, value in options.items() if value} | {"k": wanted or measured}
        proposal = _propose.propose(database, context.folder, row["id"], asked, force=force)
    if as_json:
        _render.print_json(context.out, proposal)
        return
    states = dict.fromkeys(proposal.written, "new")
    rows = [one | {"floor": one["name"], "in floors.toml": states.get(one["name"], "kept")} for one in proposal.floors]
    context.show(_render.table(rows, ("floor", "value", "minimum", "in floors.toml")))
    context.out.print()
    kept = f"; {len(proposal.kept)} were there and are kept, --force writes over them" if proposal.kept else ""
    wrote = _render.counted(len(proposal.written), "floor")
    say(context, f"wrote {wrote} to surql/corpus/floors.toml, from {_render.record_text(row['id'])}{kept}")


def _evaluation_to_propose(
    context: Context, database: Database, evaluation: list[str] | None, question_set: str | None, advance: _gate.Progress
) -> dict[str, Any]:
    """The evaluation that is named, else the newest complete one; where there is none yet, a fresh one."""
    named: RecordID | None = evaluation_id(database, evaluation[0]) if evaluation else None
    if named is None:
        newest = database.value(_NEWEST, set=question_set or "default")
        named = newest[0]["id"] if newest else None
    try:
        found = _resolution.evaluation_of(database, named, question_set, None)
    except DataError:
        options = _evaluation.Options(context.project.cutoffs, question_set=question_set or "default")
        made = _evaluation.evaluate(database, options, progress=advance)
        if made.failed:
            raise DataError("the evaluation failed, so no floor is made of it", "surrecall check says what failed") from None
        return made.row
    row: dict[str, Any] = database.value("SELECT id, k, status FROM ONLY $evaluation", evaluation=found["id"])
    if row["status"] != "complete":
        raise DataError(f"{_render.record_text(row['id'])} failed, so no floor is made of it", "surrecall evaluate measures anew")
    return row
