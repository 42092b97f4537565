"""surrecall retrieve"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from surrecall import _render
from surrecall._cli._app import Context, Json, command, cutoffs
from surrecall._cli._question import as_free_text, find_question, vector_of
from surrecall._errors import UsageError

_RETRIEVE = """
LET $ranking = fn::ranking($retriever, $question, $k);
LET $row = IF type::is_record($question) { (SELECT * FROM ONLY $question) } ELSE { $question };
LET $labels = fn::labels_for($row, $retriever, $ranking.ids, NONE).labels;
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
        asked: Any = found if known else {"text": question, "embedding": vector_of(vector)}
        with as_free_text(question, retriever, without_vector=not known and vector is None):
            rows = database.value(_RETRIEVE, retriever=retriever, question=asked, k=depths[0], title=_title(context))
    if as_json:
        _render.print_json(context.out, rows)
    elif rows:
        context.show(_render.table(rows, ("rank", "id", "score", "title", "relevant")))
    else:
        context.out.print("nothing came back")


def _title(context: Context) -> str:
    corpus = context.project.corpus
    return (corpus.title if corpus else None) or "title"
