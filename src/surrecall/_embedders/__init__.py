"""What turns texts into vectors. One module an embedder; each has a `model`, the name that is recorded with its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol


class Kind(StrEnum):
    """The embedders there are."""

    OPENAI = "openai"
    SENTENCE_TRANSFORMERS = "sentence-transformers"
    HASHING = "hashing"


class Embedder(Protocol):
    """Anything that gives one vector a text, in the order of the texts."""

    @property
    def model(self) -> str:
        """The name that is recorded with the vectors; equal names mean comparable vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """As many vectors as texts. Raises EmbeddingError when there are none to be had."""
        ...
