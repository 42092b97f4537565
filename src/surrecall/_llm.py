"""Language models behind an endpoint that speaks OpenAI's POST /chat/completions: theirs, or any server that is compatible.

A model's words are data: what is not the JSON that was asked for counts as malformed, and nothing is read into it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from surrecall._embedders.openai import DEFAULT_ENDPOINT
from surrecall._endpoint import JsonEndpoint, Refused, checked_url
from surrecall._errors import EmbeddingError, UsageError

# a rule of thumb for English; other languages take more
CHARACTERS_A_TOKEN = 4
_PATH = "/chat/completions"
# what a server may not know, least needed first
_OPTIONAL = ("response_format", "temperature")
_UNKNOWN = (400, 422)
_NAME = 200


@dataclass(frozen=True)
class Asked:
    """Which model is asked, and where; prices are for a million tokens."""

    model: str
    endpoint: str | None = None
    key_name: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    price_in: float | None = None
    price_out: float | None = None


@dataclass(frozen=True)
class Prompt:
    """What a model is told, and the version that is stored with what it said: a number, and a hash that no edit escapes."""

    text: str
    version: str


@dataclass(frozen=True)
class Reply:
    """What came back: the one JSON object in it, None where it is malformed; the model as the endpoint calls it."""

    content: dict[str, Any] | None
    model: str
    refused: bool
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True)
class Estimate:
    """What a run would take, before anything is sent: tokens at four characters each, cost where prices are given."""

    endpoint: str
    model: str
    requests: int
    tokens_in: int
    tokens_out: int
    cost: float | None


@dataclass
class Usage:
    """What a run took, as the endpoint counted it."""

    requests: int = 0
    malformed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, reply: Reply, *, usable: bool) -> None:
        """Count one answer; one that is neither what was asked for nor a refusal is malformed."""
        self.requests += 1
        self.malformed += not usable
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out


def prompt(name: str, number: int = 1) -> Prompt:
    """The newest prompt of a task: draft or judge."""
    text = (files("surrecall") / "prompts" / f"{name}-{number}.txt").read_text(encoding="utf-8")
    return Prompt(text, f"{number}-{hashlib.sha256(text.encode()).hexdigest()[:8]}")


def tagged(parts: Mapping[str, str]) -> str:
    """Texts for a model, each between tags of a name that the text itself can't have known."""
    name = hashlib.sha256("\0".join(parts.values()).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return "\n".join(f"<{part}-{name}>\n{text}\n</{part}-{name}>" for part, text in parts.items())


@dataclass
class Chat:
    """A model of an endpoint. The key is sent as a bearer token when there is one, and stands in no repr, message or record."""

    asked: Asked
    endpoint: str = field(init=False)
    _endpoint: JsonEndpoint = field(init=False, repr=False)
    _left_out: list[str] = field(default_factory=list, init=False, repr=False)
    _speaks: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.asked.model.strip():
            raise UsageError("no model is named", "--model, as the endpoint calls it")
        given = self.asked.endpoint or os.environ.get("OPENAI_BASE_URL") or DEFAULT_ENDPOINT
        option = "--endpoint" if self.asked.endpoint else "OPENAI_BASE_URL"
        self.endpoint = checked_url(given, option, DEFAULT_ENDPOINT).rstrip("/").removesuffix(_PATH)
        self._endpoint = JsonEndpoint(
            self.endpoint,
            f"{self.endpoint}{_PATH}",
            option,
            f" to the model {self.asked.model}",
            f"check {option} and --model; --max-chars cuts documents too long for it",
            os.environ.get(self.asked.key_name),
            self.asked.key_name,
            self.asked.timeout,
        )

    def estimate(self, requests: int, characters: int, answer_tokens: int) -> Estimate:
        """What so many requests take: the characters of all of them, and tokens of one answer."""
        tokens_in, tokens_out = math.ceil(characters / CHARACTERS_A_TOKEN), requests * answer_tokens
        prices = (self.asked.price_in, self.asked.price_out)
        cost = None if None in prices else (tokens_in * (prices[0] or 0) + tokens_out * (prices[1] or 0)) / 1e6
        return Estimate(self.endpoint, self.asked.model, requests, tokens_in, tokens_out, cost)

    def ask(self, system: str, user: str) -> Reply:
        """What a model answers.

        Waits and tries again as JsonEndpoint does; what the server does not know (a JSON answer, a temperature) is left out from
        then on. Raises EmbeddingError where nothing is to be had.
        """
        body: dict[str, Any] = {
            "model": self.asked.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": 0,
            "response_format": {"type": "json_object"},
        }
        while True:
            try:
                answer = self._endpoint.ask({key: value for key, value in body.items() if key not in self._left_out})
                return self._reply(answer)
            except Refused as refusal:
                left = [name for name in _OPTIONAL if name not in self._left_out]
                if refusal.status not in _UNKNOWN or not left or self._speaks:
                    raise
                self._left_out.append(left[0])

    def _reply(self, answer: Any) -> Reply:
        found = answer if isinstance(answer, dict) else {}
        choices = found.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
        message = choice.get("message") if choice else None
        if not isinstance(message, dict) and not self._speaks:
            raise EmbeddingError(
                f"the answer of {self.endpoint} for the model {self.asked.model} holds no message",
                f"check that it speaks OpenAI's {_PATH}",
            )
        self._speaks = True
        message = message if isinstance(message, dict) else {}
        ended = choice.get("finish_reason") if choice else None
        text = message.get("content")
        # a list that was cut off may still be an object
        whole = ended not in ("length", "content_filter") and isinstance(text, str)
        name, usage = found.get("model"), found.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Reply(
            content=_object(text) if whole and isinstance(text, str) else None,
            model=name[:_NAME] if isinstance(name, str) and name.strip() and _is_storable(name) else self.asked.model,
            refused=bool(message.get("refusal")) or ended == "content_filter",
            tokens_in=_count(usage.get("prompt_tokens")),
            tokens_out=_count(usage.get("completion_tokens")),
        )


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, bare or in one fence; None where it is anything else, or says a thing twice."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and _is_storable(json.dumps(found, ensure_ascii=False)) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _is_storable(text: str) -> bool:
    """Whether a text is one that can be stored: half a character is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text and "\\u0000" not in text


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 10**12 else 0
