"""Vectors from an endpoint that speaks OpenAI's POST /embeddings: theirs, or any server that is compatible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from surrecall._endpoint import JsonEndpoint, checked_url
from surrecall._errors import EmbeddingError

DEFAULT_ENDPOINT = "https://api.openai.com/v1"


@dataclass
class OpenAI:
    """An endpoint and a model of it. `dimension`, where it is given, is asked of the endpoint.

    `key` is sent as a bearer token when there is one, and stands in no repr, message or record; `key_name` is the variable
    that it came from. `timeout` is in seconds, for one request.
    """

    endpoint: str
    model: str
    key: str | None = field(default=None, repr=False)
    key_name: str = "OPENAI_API_KEY"
    dimension: int | None = None
    timeout: float = 120.0
    _asked: JsonEndpoint = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.endpoint = checked_endpoint(self.endpoint)
        self._asked = JsonEndpoint(
            self.endpoint,
            f"{self.endpoint}/embeddings",
            "--endpoint",
            f" to the model {self.model}",
            "check --endpoint and --model; --max-chars cuts texts too long for it, --batch asks for fewer at once",
            self.key,
            self.key_name,
            self.timeout,
        )

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, ordered by the answer's `index`.

        Tries again, with growing waits or as long as the server asks for, while it is busy, silent or cut off. Raises
        EmbeddingError when that does not help, the request is refused, or the answer is not one vector a text.
        """
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if self.dimension is not None:
            body["dimensions"] = self.dimension
        return self._vectors(self._asked.ask(body), len(texts))

    def _vectors(self, answer: Any, wanted: int) -> list[list[float]]:
        rows = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._unusable("holds no list `data` of vectors")
        if len(rows) != wanted:
            raise self._unusable(f"holds {len(rows)} vectors for {wanted} texts")
        by_index = {row.get("index"): row.get("embedding") for row in rows if type(row.get("index")) is int}
        if sorted(by_index) != list(range(wanted)):
            raise self._unusable("does not say which vector belongs to which text (index)")
        try:
            return [[_number(entry) for entry in by_index[index]] for index in range(wanted)]
        except (TypeError, OverflowError) as error:
            raise self._unusable("holds vectors that are no lists of numbers") from error

    def _unusable(self, why: str) -> EmbeddingError:
        return EmbeddingError(
            f"the answer of {self.endpoint} for the model {self.model} {why}", "check that --endpoint speaks OpenAI's /embeddings"
        )


def checked_endpoint(endpoint: str) -> str:
    """An endpoint without its last slash. Raises UsageError for one that is no http address, or might hold a secret."""
    return checked_url(endpoint, "--endpoint", DEFAULT_ENDPOINT).rstrip("/").removesuffix("/embeddings")


def _number(entry: Any) -> float:
    """A number of a vector; null is how JSON writes NaN, and is found with the vector's row."""
    if entry is None:
        return math.nan
    if type(entry) not in (int, float):
        raise TypeError
    return float(entry)
