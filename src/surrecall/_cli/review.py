"""surrecall review"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _render, _review, _who
from surrecall._cli._app import Context, Json, command, progress_bar
from surrecall._cli._export import Force, tell
from surrecall._cli._resolution import say
from surrecall._cli.pool import one
from surrecall._export.output import STANDARD_OUTPUT, Output

# of each problem; --json and --out have all
_SHOWN = 20


@command("review")
def review(
    context: Context,
    question_set: Annotated[str | None, typer.Option("--set", help="Golden set; else default.")] = None,
    days: Annotated[
        int | None,
        typer.Option("--days", min=0, max=36_500, help="Name labels not read for so long; else review_after, else 120."),
    ] = None,
    read: Annotated[
        list[str] | None, typer.Option("--read", help="Note that this question was read with its labels; may be repeated.")
    ] = None,
    who: Annotated[str | None, typer.Option("--who", help="Who read it; else git's user.name, else the login.")] = None,
    out: Annotated[str | None, typer.Option("--out", help="Write all of it as Markdown; - is standard output.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Read the golden set: what is wrong with it first, then every question with its labels.

    Named are questions of equal text, with equal labels or not; questions that are not of the kind they are said to be; those
    that no retriever ever answered, and those that all always answer; labels that none ever found; a set that seems labelled
    from one retriever; labels that nobody added, changed, judged or read for review_after days of surrecall.toml.

    A lexical question holds a term of a labelled passage letter for letter, a conceptual one shares no content word with any.

    Example: surrecall review --out review.md
             surrecall review --read money_back --who Ada
    """
    if read:
        name = _who.name(who, context.folder)
        with context.open() as database:
            questions = [found for asked in read if (found := one(database, asked)) is not None]
            _review.read(database, questions, name)
        if as_json:
            _render.print_json(context.out, {"read": questions, "who": name})
        else:
            say(context, f"read by {_render.printable(name)}: {', '.join(map(_render.record_text, questions))}")
        return
    with context.open() as database, progress_bar(context, "reading") as advance:
        reviewed = _review.review(database, question_set, days if days is not None else context.project.review_after, advance)
    if out is not None:
        with Output(force=force) as output:
            _review.markdown(reviewed, output.lines(out))
        problems = sum(problem["count"] > 0 for problem in reviewed.told["problems"])
        if out != STANDARD_OUTPUT:
            what = f"a review ({_render.counted(problems, 'kind')} of problems; {_review.over(reviewed.told)})"
            tell(context, out, as_json, reviewed.told, what)
        return
    if as_json:
        _render.print_json(context.out, reviewed)
        return
    for problem in reviewed.told["problems"]:
        if not problem["count"]:
            continue
        say(context, f"{problem['problem']}: {problem['count']} {problem['says']}")
        for row in problem["rows"][:_SHOWN]:
            say(context, f"  {_review.named(row)}")
        if problem["count"] > _SHOWN:
            say(context, f"  and {problem['count'] - _SHOWN} more; --json and --out have all")
    if not any(problem["count"] for problem in reviewed.told["problems"]):
        say(context, "no problem found")
    context.out.print()
    context.show(_render.table([_review.cells(row) for row in reviewed.rows], _review.COLUMNS))
    context.out.print()
    say(context, _review.over(reviewed.told))
