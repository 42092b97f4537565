"""surrecall seed"""

from __future__ import annotations

from surrecall import _render, _seed
from surrecall._cli._app import Context, Json, command, progress_bar
from surrecall._cli._pending import take_up


@command("seed")
def seed(context: Context, as_json: Json = False) -> None:
    """Load the help centre's ten articles and eight questions; tables that hold rows are left alone.

    Example: surrecall seed --url surrealkv://recall.db
    """
    with context.open() as database, progress_bar(context, "evaluating") as advance:
        seeded = _seed.seed(database)
        take_up(context, database, advance)
    if as_json:
        _render.print_json(context.out, seeded)
    elif seeded.added:
        context.out.print(f"seeded {seeded.articles} articles and {seeded.questions} questions")
    else:
        context.out.print(
            f"nothing seeded: there are {seeded.articles} articles and {seeded.questions} questions already",
            soft_wrap=True,
        )
