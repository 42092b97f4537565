"""surrecall history"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from surrealdb import RecordID

from surrecall import _render, _resolution
from surrecall._cli._app import LARGEST, Context, Json, command
from surrecall._cli._resolution import By, ByOption, say, show_slices, warn_all
from surrecall._database import Database

_HISTORY = """
LET $runs = (SELECT * FROM eval_run WHERE ($retriever = NONE OR retriever = $retriever) AND ($k = NONE OR k = $k)
  AND ($set = NONE OR set = $set)
  ORDER BY seq DESC);
RETURN {
  runs: $runs.slice(0, $limit),
  found: $runs.len(),
  retrievers: (SELECT VALUE retriever FROM eval_run GROUP BY retriever ORDER BY retriever),
  cutoffs: (SELECT VALUE k FROM eval_run GROUP BY k ORDER BY k),
  sets: (SELECT VALUE set FROM eval_run GROUP BY set ORDER BY set),
  failed: (SELECT VALUE id FROM $runs.evaluation WHERE status = 'failed'),
  pruned: (SELECT VALUE evaluation FROM eval_prune GROUP BY evaluation),
  chunked: (SELECT VALUE id FROM chunking LIMIT 1).len() > 0,
};
"""
_STEPS = "RETURN fn::history_steps($runs)"
_COLUMNS = (
    "at",
    "set",
    "retriever",
    "k",
    "rel",
    "recall",
    "rr",
    "ndcg",
    *_render.TOOK,
    _render.TOKENS,
    "questions",
    "errors",
    "state",
    "note",
)
# more would push the figures out of sight
_LISTED = 5
# the table has no room for more; --json has all
_SLICED, _METRICS = ("recall",), ("recall", "hit", "rr", "ndcg")


@command("history")
def history(
    context: Context,
    retriever: Annotated[str | None, typer.Option("-r", "--retriever", help="Only this retriever.")] = None,
    k: Annotated[int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Only this cutoff.")] = None,
    question_set: Annotated[str | None, typer.Option("--set", help="Only this golden set; else all.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=LARGEST, help="Newest rows to show.")] = 30,
    by: ByOption = None,
    as_json: Json = False,
) -> None:
    """Read the history, newest first: one row a retriever and cutoff of every evaluation.

    `median` and `95th` are milliseconds a question, inside the database, where a retriever was asked here;
    `tokens`, shown where there are chunk tables, are those of the first k texts in a prompt, estimated at four characters each.

    Below it is said on how many questions the figures stand, by how much one label moves them, and what the newest of these
    evaluations can tell. With --by each run is read by class of question, from its stored answers; a run that was written by
    hand has none.

    Example: surrecall history --retriever hybrid -k 3
    """
    with context.open() as database:
        told = database.value(_HISTORY, retriever=retriever, k=k, limit=limit, set=question_set)
        rows, found, pruned = told["runs"], told["found"], told["pruned"]
        sliced = _sliced(database, rows, by, pruned) if by else None
        stands: dict[str, Any] = database.value(_STEPS, runs=[row["id"] for row in rows]) if rows else {"warnings": []}
        newest = _newest(database, rows, k or context.project.prompt_k, pruned)
    if as_json:
        _render.print_json(context.out, sliced if by else rows)
        return
    if rows:
        if by and sliced is not None:
            show_slices(context, sliced, by, _SLICED, before=("at",))
        else:
            context.show(_render.table([_shown(row, rows, told) for row in rows], _COLUMNS))
        if found > len(rows):
            say(context, f"the newest {len(rows)} of {found} runs; --limit {found} shows all")
        context.out.print()
        for line in _evaluations(rows):
            say(context, line)
        for sentence in [*stands["sentences"], *(newest["sentences"][1:] if newest else [])]:
            say(context, sentence)
    elif told["retrievers"]:
        names, cutoffs = ", ".join(told["retrievers"]), ", ".join(map(str, told["cutoffs"]))
        say(context, f"no such run; there are runs of {names} at {cutoffs}, of the sets {', '.join(told['sets'])}")
    else:
        context.out.print("no run yet; next: surrecall evaluate")
    warn_all(context, stands, sliced)


def _shown(row: dict[str, Any], rows: list[dict[str, Any]], told: dict[str, Any]) -> dict[str, Any]:
    """A run as the table has it: what is the same for all of them, or nothing to speak of, is left blank."""
    same = {name for name in ("set", "rel") if len({other.get(name) for other in rows}) == 1}
    shown = {name: value for name, value in row.items() if name not in same}
    took = _render.took({"median": row.get("median_ms"), "p95": row.get("p95_ms")})
    # to the minute: the figures need the room
    return (
        shown
        | took
        # where all return the same documents, k says as much
        | (_render.tokens(row.get("prompt_tokens")) if told["chunked"] else {})
        | {
            "at": f"{row['at']:%Y-%m-%d %H:%M}",
            "errors": row.get("errors") or None,
            "state": "failed" if row.get("evaluation") in told["failed"] else None,
        }
    )


def _evaluations(rows: list[dict[str, Any]]) -> list[str]:
    """The evaluations of some runs by id, as surrecall compare takes them, newest first."""
    ids = {_render.record_text(row["evaluation"]): _render.cell(row["at"]) for row in rows if row.get("evaluation")}
    lines = [f"{name}, {at}" for name, at in ids.items()]
    return lines[:_LISTED] + ([f"and {len(lines) - _LISTED} more evaluations; --json has all"] if len(lines) > _LISTED else [])


def _newest(database: Database, rows: list[dict[str, Any]], k: int | None, pruned: list[RecordID]) -> dict[str, Any] | None:
    """What the newest evaluation among some runs can tell; None where all were written by hand, or pruned."""
    evaluation = next((row["evaluation"] for row in rows if row.get("evaluation") and row["evaluation"] not in pruned), None)
    if evaluation is None:
        return None
    names = dict.fromkeys(row["retriever"] for row in rows if row.get("evaluation") == evaluation)
    return _resolution.resolution(database, evaluation, list(names), k)


def _sliced(database: Database, runs: list[dict[str, Any]], by: By, pruned: list[RecordID]) -> dict[str, Any]:
    """The runs by class, and what their means hide; runs without answers are left out, and said."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        if run.get("evaluation") and run["evaluation"] not in pruned:
            options = {"by": by.value, "k": run["k"], "metrics": list(_METRICS), "rel": run.get("rel")}
            told = _resolution.slice_rows(database, run["evaluation"], run["retriever"], options)
            rows += [{"at": run["at"]} | row for row in told]
    sliced = _resolution.verdicts(database, rows)
    without = sum(1 for run in runs if not run.get("evaluation"))
    thinned = sum(1 for run in runs if run.get("evaluation") in pruned)
    if thinned:
        sliced["warnings"].append(f"{_render.counted(thinned, 'run')} whose answers were pruned, so without classes")
    if without:
        sliced["warnings"].append(f"{_render.counted(without, 'run')} without stored answers, so without classes")
    return sliced
