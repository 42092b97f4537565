"""Near misses that a language model judges. What is one, and what a verdict makes of the labels, the database says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from surrecall import _llm, _writer
from surrecall._database import Database
from surrecall._evaluation import Interrupted
from surrecall._retry import retried

_BEGIN = "RETURN fn::near_misses_begin($set)"
_THRESHOLD = "RETURN fn::require_threshold($set, $threshold)"
_PAIRS = "RETURN fn::near_misses($evaluation, $questions, $options)"
_TEXTS = "RETURN fn::judge_texts($pairs, $most)"
_KEEP = "RETURN fn::model_verdict($said)"
_SHARD = 25
_TRIES = 2
# of an answer, for the estimate: a word and a sentence
_ANSWER_TOKENS = 60

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to judge: documents among the first `depth` of any retriever, at most `limit` a question."""

    question_set: str = "default"
    depth: int = 10
    limit: int = 5
    threshold: int | None = None
    again: bool = False
    max_chars: int = 6000


@dataclass(frozen=True)
class Plan:
    """The pairs to ask about and what that takes; `elsewhere` counts results that are no documents, and so are left out."""

    evaluation: Any
    pairs: list[dict[str, Any]]
    cut: int
    elsewhere: int
    estimate: _llm.Estimate


@dataclass
class Judged:
    """What was said, by grade, how many labels it made, how many of grade 0, and how many pairs have no verdict."""

    set: str
    evaluation: Any
    model: str
    prompt: str
    threshold: int
    pairs: int = 0
    yes: int = 0
    part: int = 0
    no: int = 0
    labels: int = 0
    not_relevant: int = 0
    refused: int = 0
    malformed: int = 0
    usage: _llm.Usage = field(default_factory=_llm.Usage)

    @property
    def judged(self) -> int:
        """The pairs that have a verdict."""
        return self.pairs - self.refused - self.malformed


def plan(database: Database, chat: _llm.Chat, options: Options, progress: Progress = lambda _done, _all: None) -> Plan:
    """Find near misses in the answers of the newest evaluation. Raises DataError where there is none."""
    prompt = _llm.prompt("judge")
    begun = database.value(_BEGIN, set=options.question_set)
    asked = {"depth": options.depth, "limit": options.limit, "again": prompt.version if options.again else None}
    pairs: list[dict[str, Any]] = []
    elsewhere = 0
    for start in range(0, len(begun["questions"]), _SHARD):
        questions = begun["questions"][start : start + _SHARD]
        found = database.value(_PAIRS, evaluation=begun["evaluation"], questions=questions, options=asked)
        pairs += found["pairs"]
        elsewhere += found["elsewhere"]
        progress(start + len(questions), len(begun["questions"]))
    characters = cut = 0
    for texts in _shards(database, pairs, options.max_chars):
        characters += sum(len(prompt.text) + len(_user(row)) for row in texts)
        cut += sum(row["cut"] for row in texts)
    return Plan(begun["evaluation"], pairs, cut, elsewhere, chat.estimate(len(pairs), characters, _ANSWER_TOKENS))


def settle(database: Database, options: Options) -> int:
    """The threshold of the set, stored with it. Raises DataError for another one than it has, once there are judgements.

    Raises DatabaseError for a user who may not write, so that nothing is sent that could not be stored.
    """
    _writer.require_writer(database, "judgement")
    threshold: int = database.value(_THRESHOLD, set=options.question_set, threshold=options.threshold)
    return threshold


def judge(
    database: Database, chat: _llm.Chat, planned: Plan, options: Options, progress: Progress = lambda _done, _all: None
) -> Judged:
    """Ask about each pair of a plan, and keep each verdict as it comes; labels are only added.

    Raises DataError before anything is sent for a threshold other than the set's. Cut off, it keeps what is stored, and the same
    call asks only about the others.
    """
    prompt = _llm.prompt("judge")
    threshold = settle(database, options)
    done = Judged(options.question_set, planned.evaluation, chat.asked.model, prompt.version, threshold)
    try:
        for texts in _shards(database, planned.pairs, options.max_chars):
            for row in texts:
                _one(database, chat, prompt, row, done)
                progress(done.pairs, len(planned.pairs))
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"interrupted; {done.pairs} of {len(planned.pairs)} pairs are done and stored",
            "the same command goes on",
            by_user=True,
        ) from error
    return done


def _shards(database: Database, pairs: list[dict[str, Any]], most: int) -> Any:
    for start in range(0, len(pairs), _SHARD):
        yield database.value(_TEXTS, pairs=pairs[start : start + _SHARD], most=most)


def _user(row: dict[str, Any]) -> str:
    return _llm.tagged({"question": row["text"], "document": row["passage"]})


def _one(database: Database, chat: _llm.Chat, prompt: _llm.Prompt, row: dict[str, Any], done: Judged) -> None:
    for _ in range(_TRIES):
        reply = chat.ask(prompt.text, _user(row))
        content = reply.content or {}
        said = {
            "question": row["question"],
            "document": row["document"],
            "verdict": content.get("verdict"),
            "reason": content.get("reason"),
            "model": reply.model,
            "prompt": prompt.version,
        }
        kept = None if reply.refused else _keep(database, said)
        usable = kept is not None or reply.refused
        done.usage.add(reply, usable=usable)
        if usable:
            break
    done.pairs += 1
    done.model = reply.model
    if kept is None:
        done.refused += reply.refused
        done.malformed += not reply.refused
        return
    done.yes += kept["grade"] == 2
    done.part += kept["grade"] == 1
    done.no += kept["grade"] == 0
    label = kept.get("label")
    done.labels += label is not None and label >= 1
    done.not_relevant += label is not None and label < 1


def _keep(database: Database, said: dict[str, Any]) -> dict[str, Any] | None:
    kept: dict[str, Any] | None = retried(lambda: database.value(_KEEP, said=said))
    return kept
