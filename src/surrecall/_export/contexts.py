"""Questions with the texts that answer them, so that generation can be tested by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surrecall._database import Database
from surrecall._errors import DataError
from surrecall._export import ids, source
from surrecall._export.output import Lines
from surrecall._export.pages import pages
from surrecall._render import record_text

_QUESTIONS = "id, text, fn::labels_of({ judged: judged, relevant: relevant })[WHERE grade >= 1] AS labels"


@dataclass(frozen=True)
class Exported:
    """What was written; `missing` labels lead to a document that is not there."""

    questions: int
    contexts: int
    missing: int


def export(
    database: Database, corpus: source.Source, lines: Lines, question_set: str | None = None, *, without_missing: bool = False
) -> Exported:
    """Write each question with its relevant documents; one that nothing answers has none.

    Raises DataError when a label leads nowhere, unless `without_missing` leaves such labels out.
    """
    source.require_set(database, question_set)
    questions = contexts = missing = 0
    for page in pages(database, database.table("question"), _QUESTIONS, source.IN_SET, set=question_set):
        for batch in ids.batches(page, 50):
            wanted = {source.key(label["document"]): label["document"] for row in batch for label in row["labels"]}
            there = source.documents(database, corpus, list(wanted.values()))
            for row in batch:
                found = [(label, there.get(source.key(label["document"]))) for label in row["labels"]]
                gone = [label["document"] for label, document in found if document is None]
                if gone and not without_missing:
                    raise DataError(
                        f"{record_text(row['id'])} has the label {record_text(gone[0])}, which does not exist",
                        "mend the label, or --force leaves such labels out",
                    )
                texts = [_context(label, document) for label, document in found if document is not None]
                lines.json({"id": ids.typed(row["id"]), "text": row["text"], "contexts": texts})
                questions, contexts, missing = questions + 1, contexts + len(texts), missing + len(gone)
    return Exported(questions, contexts, missing)


def _context(label: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    title = {"title": document["title"]} if document.get("title") else {}
    found = {"id": ids.typed(document["id"])} | title
    return found | {"text": document.get("text") or "", "grade": source.whole(label["grade"])}
