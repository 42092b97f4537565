"""surrecall import run"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from surrecall import _evaluation, _import_run, _render, _resolution, _run_file
from surrecall._cli._app import Context, Json, command, corpus_of, cutoffs, import_app, progress_bar
from surrecall._cli._resolution import warn_all
from surrecall._cli.evaluate import show_evaluation
from surrecall._database import Database

_PRUNED = "RETURN fn::pruned_answers($evaluation) > 0"


@command("run", group=import_app)
def import_run(
    context: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rankings: a TREC run, .jsonl or .csv.")],
    retriever: Annotated[str, typer.Option("--retriever", "-r", help="Name of the system that made them.")],
    form: Annotated[
        _run_file.Form | None, typer.Option("--format", help="trec, jsonl or csv; else that of the extension, else trec.")
    ] = None,
    k: Annotated[list[str] | None, typer.Option("-k", "--k", help="Cutoffs: 1,3,5; else those of surrecall.toml.")] = None,
    question_set: Annotated[str, typer.Option("--set", help="Golden set.")] = "default",
    note: Annotated[str | None, typer.Option("--note", help="Kept with the runs.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and store nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Measure the rankings of an outside system and append the figures to the history.

    A TREC run has lines of question, Q0, document, rank, score, name. Its order is trec_eval's: the highest score first, scores
    compared as 32-bit floats, and of equal scores the document whose id is last byte by byte; the rank column is not looked at.

    JSON Lines ({"question", "ranking": [ids, best first], "scores"}) and CSV (question, document, rank, score) are those that
    surrecall export run writes. They hold any id, and their order is that of the list, or of the ranks; a CSV without ranks is
    ordered as a TREC run.

    Where a question was searched for several times, as an agent does, JSON Lines hold {"question", "searches": [[ids], [ids]]}
    and CSV a column search, counted from 1. What a question's searches found is one set of evidence, measured as one ranking:
    search after search, each document at its first sighting (fn::evidence).

    A question of the golden set that the file leaves out counts as 0 in every mean. A document that the corpus does not have
    counts as not relevant. A file that shares no question or no document with the database is refused. The same file again
    changes nothing.

    Example: surrecall import run bm25s.trec --retriever bm25s -k 10,100
    """
    corpus = corpus_of(context)
    options = _import_run.Options(
        path=file,
        retriever=retriever,
        cutoffs=cutoffs(k, context.project.cutoffs),
        question_set=question_set,
        note=note,
        revision=_evaluation.git_revision(context.folder),
        form=form or _run_file.form_of(file),
        dry_run=dry_run,
    )
    with context.open() as database, progress_bar(context, "importing") as advance:
        imported = _import_run.import_run(database, corpus, options, advance)
        told = _told(database, imported, context.project.prompt_k)
    if as_json:
        _render.print_json(context.out, _render.jsonable(imported) | {"resolution": told})
    else:
        if imported.evaluation is not None:
            show_evaluation(context, imported.evaluation, resolution=told)
        if imported.known and imported.evaluation is not None:
            name = _render.record_text(imported.evaluation.row["id"])
            context.out.print(f"nothing imported: this file is {name} already", markup=False, highlight=False, soft_wrap=True)
        what = "document" if options.form is _run_file.Form.JSONL else "line"
        did = "would import" if dry_run and not imported.known else "imported" if not imported.known else "it has"
        context.out.print(
            f"{did} {_render.counted(imported.lines, what)}, {imported.questions - imported.unanswered} of "
            f"{_render.counted(imported.questions, 'question')} answered",
            highlight=False,
        )
    for warning in imported.warnings:
        context.warn(warning)
    warn_all(context, told)


def _told(database: Database, imported: _import_run.ImportedRun, prompt_k: int | None) -> dict[str, Any] | None:
    """What the figures stand on, as evaluate says it; None for a trial, and for a file that was imported and pruned since."""
    evaluation = imported.evaluation
    if evaluation is None or not evaluation.runs or database.value(_PRUNED, evaluation=evaluation.row["id"]):
        return None
    names = list(dict.fromkeys(run["retriever"] for run in evaluation.runs))
    return _resolution.resolution(database, evaluation.row["id"], names, prompt_k)
