"""What stands behind each address of the live page. It reads and writes through the functions that the commands call."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surrecall import _comparison, _diagnosis, _embed, _evaluation, _pool, _render, _report, _writer
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import SurrecallError, UsageError
from surrecall._retry import retried
from surrecall._serve import codes
from surrecall._serve.asked import Asked, Done, Filled, Whole
from surrecall._serve.news import News
from surrecall._serve.store import Store

_GRADES = {"relevant": 2, "partly": 1, "not": 0}
_LISTED = 50

_EVALUATIONS = """
SELECT id, started, status, set, note, trigger, corpus.documents AS documents, questions.len() AS questions, k FROM evaluation
WHERE seen = NONE ORDER BY started DESC, id DESC LIMIT 50
"""
_RUNS = "SELECT evaluation, retriever, k, recall, seq FROM eval_run WHERE evaluation IN $evaluations ORDER BY seq"
_RETRIEVERS = "RETURN (SELECT id, position FROM retriever ORDER BY position, id).map(|$row| record::id($row.id))"
_SETS = "RETURN (SELECT set FROM question GROUP BY set ORDER BY set).set"
_QUESTIONS = """
SELECT id, text, kind, relevant.len() AS labels FROM question WHERE set = $set ORDER BY id LIMIT $limit START $start
"""
_COUNT = "RETURN count(SELECT VALUE id FROM question WHERE set = $set)"
_NEXT = "RETURN (SELECT VALUE id FROM question WHERE set = $set AND id > $id ORDER BY id LIMIT 1)[0]"
_VIEW = "RETURN fn::label_view($question, $document)"
_ANSWER = "RETURN fn::label_answer($answer)"
_LISTS = """
LET $ranking = fn::ranking($retriever, $question, $k);
RETURN $ranking.ids.map(|$id, $index| {
  rank: $index + 1, id: $id, score: $ranking.scores[$index], title: fn::document_facts($id).title
});
"""


@dataclass
class Answers:
    """A method for each address; `corpus`, `cutoffs` and `folder` are the project's, `who` labels."""

    store: Store
    news: News
    folder: Path
    corpus: Corpus | None
    cutoffs: tuple[int, ...]
    who: str
    _running: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def home(self, _asked: Asked) -> Filled:
        with self.store.open() as database:
            names, sets = database.value(_RETRIEVERS), database.value(_SETS)
            return Filled("home.html", {"evaluations": _evaluations(database), "retrievers": names, "sets": sets})

    def evaluations(self, _asked: Asked) -> Filled:
        """The table alone, for a page that is open."""
        with self.store.open() as database:
            return Filled("evaluations.html", {"evaluations": _evaluations(database)})

    def report(self, asked: Asked) -> Whole:
        with self.store.open() as database:
            wanted = asked.record("evaluation", database.table("evaluation"))
            about = _report.Asked(evaluation=wanted, retriever=asked.options.get("retriever") or None)
            return Whole(_report.page(_report.gather(database, about)))

    def compare(self, asked: Asked) -> Filled:
        options = asked.options
        with self.store.open() as database:
            table = database.table("evaluation")
            sides = [asked.record(side, table) or options.get(side, "") for side in ("a", "b")]
            comparison = _comparison.Comparison(
                sides=sides,
                retriever=options.get("retriever") or None,
                metric=options.get("metric") or None,
                k=asked.number("k", 1) if options.get("k") else None,
            )
            told = _comparison.compare(database, comparison)
        (one,) = told["comparisons"]
        return Filled("compare.html", {"told": told, "one": one, "chart": _report.changes_chart(one)})

    def question(self, asked: Asked) -> Filled:
        with self.store.open() as database:
            wanted = asked.record("id", database.table("question"))
            if wanted is None:
                raise UsageError("no question is named", "choose one under Label")
            name = asked.options.get("retriever") or _diagnosis.last_retriever(database)
            told = _diagnosis.diagnose(database, name, wanted, asked.number("k", max(self.cutoffs)))
            return Filled("question.html", {"told": told, "retrievers": database.value(_RETRIEVERS), "retriever": name})

    def attempt(self, asked: Asked) -> Filled:
        """Free text by two retrievers side by side."""
        text = asked.options.get("text", "").strip()
        k = asked.number("k", 10)
        with self.store.open() as database:
            names = database.value(_RETRIEVERS)
            chosen = [asked.options.get("a") or names[0], asked.options.get("b") or names[-1]] if names else []
            sides = [self._tried(database, name, text, k) for name in chosen] if text else []
        return Filled("try.html", {"text": text, "retrievers": names, "sides": sides, "k": k})

    def label(self, asked: Asked) -> Filled:
        """The questions of a set, or one with its candidates."""
        with self.store.open() as database:
            wanted = asked.record("question", database.table("question"))
            if wanted is None:
                return _questions(database, asked)
            (row,) = _pool.pool(database, _pool.Options(question=wanted)).rows
            views = [
                database.value(_VIEW, question=wanted, document=(one["open"] or [one["document"]])[0])
                for one in row["candidates"]
            ]
            question_set = database.value("RETURN $id.set", id=wanted)
            following = database.value(_NEXT, set=question_set, id=wanted)
        candidates = [{"one": one, "view": view} for one, view in zip(row["candidates"], views, strict=True)]
        facts = {"row": row, "question": wanted, "candidates": candidates, "next": following, "who": self.who}
        return Filled("label.html", facts)

    def judge(self, asked: Asked) -> Done:
        """A click: stored by the function that the terminal session calls."""
        grade = asked.entry("grade")
        if grade not in _GRADES:
            raise UsageError(f"no grade is named {grade!r}", "relevant, partly or not")
        with self.store.open() as database:
            question = codes.record(asked.entry("question"), database.table("question"))
            documents = [codes.record(text) for text in asked.form.get("document", [])]
            if not documents:
                raise UsageError("no document is named", "follow a link of the page")
            if not asked.entry("hash"):
                raise UsageError("what was read is not named", "open the page again")
            answer = {
                "question": question,
                "documents": documents,
                "grade": _GRADES[grade],
                "who": self.who,
                "retrievers": asked.form.get("retriever", []),
                "hash": asked.entry("hash"),
            }
            _writer.require_writer(database, "judgement")
            told = retried(lambda: database.value(_ANSWER, answer=answer))
        self.news.tell("label", {"question": _render.record_text(question)})
        said = {"grade": grade, "labels": told["labels"], "documents": len(told["documents"])}
        return Done(said, f"/label?question=~{codes.code(question)}")

    def evaluate(self, asked: Asked) -> Done:
        """Begin an evaluation in the background; one at a time."""
        question_set = asked.entry("set", "default")
        with self.store.open() as database:
            there = database.value(_SETS)
        if question_set not in there:
            raise UsageError(f"there is no golden set {question_set!r}", f"there are: {', '.join(there) or 'none'}")
        if not self._running.acquire(blocking=False):
            raise UsageError("an evaluation is running", "wait until it stands in the table")
        threading.Thread(target=self._evaluate, args=(question_set,), daemon=True).start()
        return Done({"started": True}, "/", 202)

    def _evaluate(self, question_set: str) -> None:
        try:
            with self.store.open() as database:
                done = _evaluation.evaluate(database, _evaluation.Options(self.cutoffs, question_set=question_set))
            if self.store.is_embedded:
                # a server tells of it by itself
                row = {"id": done.row["id"], "status": done.row["status"], "set": question_set}
                self.news.tell("evaluation", _render.jsonable(row))
        except SurrecallError as error:
            self.news.tell("problem", {"text": error.text})
        finally:
            self._running.release()

    def _tried(self, database: Database, name: str, text: str, k: int) -> dict[str, Any]:
        """One side; what it can't answer is said in its place, and the other side stands."""
        try:
            question = {"text": text, "embedding": self._vector(database, text)}
            return {"retriever": name, "rows": database.value(_LISTS, retriever=name, question=question, k=k)}
        except SurrecallError as error:
            return {"retriever": name, "problem": error.text, "rows": []}

    def _vector(self, database: Database, text: str) -> list[float] | None:
        if self.corpus is None or self.corpus.vector is None:
            return None
        where = _embed.places(self.corpus, self.folder, database, ("question",))
        made = _embed.vector_of(database, where, text, _embed.Asked(roles=("question",)))
        return made[0] if made else None


def _evaluations(database: Database) -> list[dict[str, Any]]:
    rows = database.value(_EVALUATIONS)
    shown: dict[str, list[dict[str, Any]]] = {}
    for run in database.value(_RUNS, evaluations=[row["id"] for row in rows]):
        shown.setdefault(str(run["evaluation"]), []).append(run)
    return [row | {"runs": shown.get(str(row["id"]), [])} for row in rows]


def _questions(database: Database, asked: Asked) -> Filled:
    sets = database.value(_SETS)
    question_set = asked.options.get("set") or (sets[0] if sets else "default")
    number = asked.number("page", 1)
    rows = database.value(_QUESTIONS, set=question_set, limit=_LISTED, start=(number - 1) * _LISTED)
    every = database.value(_COUNT, set=question_set)
    facts = {"rows": rows, "set": question_set, "sets": sets, "number": number, "every": every}
    return Filled("questions.html", facts | {"pages": max(1, -(-every // _LISTED))})
