"""surrecall report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surrecall import _render, _report
from surrecall._cli._app import LARGEST, Context, Json, command, progress_bar
from surrecall._cli._resolution import evaluation_id, say
from surrecall._errors import UsageError


@command("report")
def report(
    context: Context,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("report.html"),
    evaluation: Annotated[str | None, typer.Option("--evaluation", help="Of this one; else of the newest complete one.")] = None,
    against: Annotated[
        str | None, typer.Option("--against", help="Compared with this evaluation; else with the one before.")
    ] = None,
    retriever: Annotated[
        str | None, typer.Option("-r", "--retriever", help="Whose misses and changes are told; else the last registered.")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Cutoff; else the largest.")] = None,
    metric: Annotated[str, typer.Option("--metric", "-m", help="Of slices, changes and history.")] = "recall",
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set; else default.")] = None,
    questions: Annotated[int, typer.Option("--questions", min=0, help="How many questions unfold, the worst first.")] = 300,
    why: Annotated[bool, typer.Option("--why/--no-why", help="Ask the retriever's lists why labels were missed.")] = True,
    as_json: Json = False,
) -> None:
    """Write what an evaluation found as one page of HTML: verdict, figures with intervals, changes, history, misses, questions.

    The file needs no network and no script, reads on a phone, on paper and by a screen reader, and stays under 2 MB: of a large
    golden set the worst questions unfold to their rankings. Everything but the reasons of misses comes from stored answers.
    Needs the extra report.

    Example: surrecall report --retriever hybrid -o report.html
    """
    with context.open() as database, progress_bar(context, "reading") as advance:
        asked = _report.Asked(
            evaluation=None if evaluation is None else evaluation_id(database, evaluation),
            against=None if against is None else evaluation_id(database, against),
            question_set=question_set,
            retriever=retriever,
            k=k,
            metric=metric,
            questions=questions,
            why=why,
        )
        facts = _report.gather(database, asked, advance)
    text = _report.page(facts)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}", "name a file in a folder that is there") from error
    size = len(text.encode())
    if as_json:
        _render.print_json(context.out, {"file": str(out), "bytes": size})
    else:
        say(context, f"wrote {out}, {size // 1000} kB, {len(facts.questions)} of {facts.all_questions} questions unfold")
