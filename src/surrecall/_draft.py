"""Questions that a language model drafts from documents. Which documents, and what is fit, the database says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from surrealdb import RecordID

from surrecall import _llm, _quoting, _writer
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._evaluation import Interrupted
from surrecall._retry import retried
from surrecall._shards import Shards, joined

_PART = "RETURN fn::draft_part($after, $count, $options)"
_SAMPLE = "RETURN fn::draft_sample($candidates, $number)"
_OWN = "RETURN fn::draft_own($ids)"
_REPEATS = "RETURN fn::draft_repeats($ids, $start, $end)"
_TODO = "RETURN fn::draft_todo($ids, $set, $most)"
_TEXT = "RETURN fn::document_texts([$document])[0].text"
_STORE = "RETURN fn::draft_store($draft)"
_COUNT = 200
# some of a sample turn out to repeat each other
_SPARE = 1.3
_COMPARED = 50
_TRIES = 2
# of an answer, for the estimate: two questions and a phrase
_ANSWER_TOKENS = 160
_FORMS = ("paraphrase", "exact")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to draft: how many documents, which set the questions go to, what of a document is sent at most."""

    documents: int = 150
    into: str = "drafted"
    seed: str = "1"
    type_field: str | None = None
    min_words: int = 20
    max_chars: int = 6000
    keep_flagged: bool = False


@dataclass(frozen=True)
class Plan:
    """The documents to ask about and what that takes; `done` have drafts already, `strata` and `skipped` are the sample's."""

    ids: list[RecordID]
    done: int
    cut: int
    strata: list[dict[str, Any]]
    skipped: list[dict[str, Any]]
    estimate: _llm.Estimate


@dataclass
class Drafted:
    """What became of it: questions stored and held back, with their flags; documents without an answer that can be used."""

    set: str
    model: str
    prompt: str
    documents: int = 0
    stored: int = 0
    held_back: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0
    malformed: int = 0
    usage: _llm.Usage = field(default_factory=_llm.Usage)

    @property
    def nothing(self) -> bool:
        """Whether documents were asked about and no answer could be used."""
        return 0 < self.documents == self.refused + self.malformed


def plan(database: Database, chat: _llm.Chat, options: Options, progress: Progress = lambda _done, _all: None) -> Plan:
    """Choose documents. Raises DataError where none is fit for a question, UsageError for a field that no document has."""
    candidates = _candidates(database, options)
    sample = database.value(_SAMPLE, candidates=candidates, number=math.ceil(options.documents * _SPARE))
    if options.type_field is not None and not any(row["type"] for row in sample["strata"]) and sample["ids"]:
        raise UsageError(f"no document has a text in the field {options.type_field}", "--type-field names one, or leave it out")
    if not sample["ids"]:
        reasons = ", ".join(f"{row['documents']} {row['reason']}" for row in sample["skipped"]) or "the corpus is empty"
        raise DataError(f"no document is fit for a question: {reasons}", "--min-words takes shorter ones")
    own = database.value(_OWN, ids=sample["ids"])
    repeats = joined(
        Shards(len(own), progress).run(
            len(own), lambda start, end: database.value(_REPEATS, ids=own, start=start, end=end), first=_COMPARED
        )
    )
    chosen = [document for document in own if document not in repeats]
    todo = database.value(_TODO, ids=chosen[: options.documents], set=options.into, most=options.max_chars)
    skipped = [
        *sample["skipped"],
        {"reason": "lines that many share", "documents": len(sample["ids"]) - len(own)},
        {"reason": "near-duplicate", "documents": len(repeats)},
    ]
    per_request = len(_llm.prompt("draft").text) + len(_llm.tagged({"document": ""}))
    return Plan(
        ids=todo["ids"],
        done=todo["done"],
        cut=todo["cut"],
        strata=sample["strata"],
        skipped=[row for row in skipped if row["documents"]],
        estimate=chat.estimate(len(todo["ids"]), todo["characters"] + per_request * len(todo["ids"]), _ANSWER_TOKENS),
    )


def require_writer(database: Database) -> None:
    """Raise DatabaseError for a user who may not write, so that nothing is sent that could not be stored."""
    _writer.require_writer(database, "draft")


def draft(
    database: Database, chat: _llm.Chat, planned: Plan, options: Options, progress: Progress = lambda _done, _all: None
) -> Drafted:
    """Ask about each document of a plan, and store what is fit, a document a transaction.

    Cut off, it keeps what is stored, and the same call asks only about the others.
    """
    require_writer(database)
    prompt = _llm.prompt("draft")
    done = Drafted(options.into, chat.asked.model, prompt.version)
    try:
        for number, document in enumerate(planned.ids, 1):
            _one(database, chat, prompt, document, options, done)
            progress(number, len(planned.ids))
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"interrupted; {done.documents} of {len(planned.ids)} documents are done and stored",
            "the same command goes on",
            by_user=True,
        ) from error
    return done


def _candidates(database: Database, options: Options) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    try:
        type_field = None if options.type_field is None else _quoting.path(options.type_field)
    except ValueError as error:
        raise UsageError(f"--type-field {options.type_field!r} is no field", "a name, or a path: meta.section") from error
    asked = {"seed": options.seed, "min_words": options.min_words, "type_field": type_field}
    after = None
    while True:
        part = database.value(_PART, after=after, count=_COUNT, options=asked)
        found += part["candidates"]
        if len(part["candidates"]) < _COUNT:
            return found
        after = part["last"]


def _one(database: Database, chat: _llm.Chat, prompt: _llm.Prompt, document: RecordID, options: Options, done: Drafted) -> None:
    text = database.value(_TEXT, document=document)
    if text is None:
        # it went while others were asked about
        return
    reply, questions = _asked(chat, prompt, text[: options.max_chars], done.usage)
    outcome = "drafted" if questions else "refused" if reply.refused else "malformed"
    row = {
        "document": document,
        "set": options.into,
        "model": reply.model,
        "prompt": prompt.version,
        "outcome": outcome,
        "tokens": {"in": reply.tokens_in, "out": reply.tokens_out},
        "questions": questions,
        "keep_flagged": options.keep_flagged,
    }
    stored = retried(lambda: database.value(_STORE, draft=row))
    done.documents += 1
    done.model = reply.model
    done.refused += stored["outcome"] == "refused"
    done.malformed += stored["outcome"] == "malformed"
    done.stored += sum(question.get("question") is not None for question in stored["questions"])
    done.held_back += [
        {"document": document, "form": question["form"], "text": question["text"], "flags": question["flags"]}
        for question in stored["questions"]
        if question.get("question") is None
    ]


def _asked(chat: _llm.Chat, prompt: _llm.Prompt, text: str, usage: _llm.Usage) -> tuple[_llm.Reply, list[dict[str, Any]]]:
    """The last reply and the questions in it, asked once more where the first was malformed; none where both were."""
    for _ in range(_TRIES):
        reply = chat.ask(prompt.text, _llm.tagged({"document": text}))
        questions = _questions(reply.content)
        usage.add(reply, usable=bool(questions) or reply.refused)
        if questions or reply.refused:
            break
    return reply, questions


def _questions(content: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The questions of an answer; none where it is not what was asked for."""
    if content is None:
        return []
    paraphrase, exact, phrase = content.get("paraphrase"), content.get("exact"), content.get("phrase")
    if not isinstance(paraphrase, str) or not paraphrase.strip() or not (exact is None or isinstance(exact, str)):
        return []
    given = {"paraphrase": paraphrase, "exact": exact or ""}
    anchors = {"paraphrase": phrase if isinstance(phrase, str) else None}
    return [{"form": form, "text": given[form], "phrase": anchors.get(form)} for form in _FORMS if given[form].strip()]
