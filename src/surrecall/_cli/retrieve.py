"""surrecall retrieve"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from surrealdb import RecordID

from surrecall import _render
from surrecall._cli._app import Context, Json, command, cutoffs
from surrecall._database import Database
from surrecall._errors import DataError, SurrecallError, UsageError

# a question is named by its id, with or without its table, or by its text; anything else is free text
_FIND = """
SELECT VALUE id FROM question WHERE <string> id = $asked OR <string> record::id(id) = $asked OR text = $asked ORDER BY id LIMIT 1
"""
_RETRIEVE = """
LET $ranking = fn::ranking($retriever, $question, $k);
LET $labels = fn::labels_of($question);
LET $relevant = $labels[WHERE grade >= 1].document;
RETURN $ranking.ids.map(|$id, $index| {
  rank: $index + 1, id: $id, score: $ranking.scores[$index], title: (SELECT VALUE type::field($title) FROM ONLY $id),
  relevant: IF $labels.len() > 0 { $id IN $relevant }
});
"""


@command("retrieve")
def retrieve(
    context: Context,
    retriever: Annotated[str, typer.Argument(help="Name of a registered retriever.")],
    question: Annotated[str, typer.Argument(help="Id or text of a question of the golden set, or free text.")],
    k: Annotated[str, typer.Option("-k", "--k", help="Documents to ask for.")] = "5",
    vector: Annotated[str | None, typer.Option("--vector", help="Vector of a free text: [0.1, 0.2, …].")] = None,
    as_json: Json = False,
) -> None:
    """Run one retriever on one question, and mark what is relevant.

    Example: surrecall retrieve hybrid rate_limit -k 3
    """
    depths = cutoffs([k], ())
    if len(depths) != 1:
        raise UsageError(f"one k belongs here, got {k!r}", "for example: -k 3")
    with context.open() as database:
        found = find_question(database, question)
        known = found is not None and vector is None
        asked: Any = found if known else {"text": question, "embedding": _vector(vector)}
        try:
            rows = database.value(_RETRIEVE, retriever=retriever, question=asked, k=depths[0], title=_title(context))
        except SurrecallError as error:
            if known or vector is not None or error.statement is None or isinstance(error, UsageError):
                raise
            raise DataError(
                f"no question has the id or text {question!r}, and free text has no vector for {retriever} ({error.message})",
                "surrecall questions lists the golden set; or give --vector",
            ) from error
    if as_json:
        _render.print_json(context.out, rows)
    elif rows:
        context.show(_render.table(rows, ("rank", "id", "score", "title", "relevant")))
    else:
        context.out.print("nothing came back")


def _title(context: Context) -> str:
    corpus = context.project.corpus
    return (corpus.title if corpus else None) or "title"


def find_question(database: Database, asked: str) -> RecordID | None:
    """The question of the golden set that has this id, with or without its table, or this text."""
    found: list[RecordID] = database.value(_FIND, asked=asked)
    return found[0] if found else None


def _vector(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        numbers = json.loads(text)
    except json.JSONDecodeError:
        numbers = None
    if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
        raise UsageError(f"--vector is no list of numbers: {text[:40]!r}", "for example: --vector '[0.1, 0.9, 0.25, 0]'")
    return [float(number) for number in numbers]
