"""Vectors from a sentence-transformers model on this machine; comes with the extra `sentence-transformers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrecall._errors import EmbeddingError, UsageError


class SentenceTransformers:
    """A model by its name on the Hugging Face hub, or its folder. `dimension` shortens its vectors, where it is given.

    Raises UsageError without the package, EmbeddingError when the model can't be loaded.
    """

    def __init__(self, model: str, batch: int, dimension: int | None = None) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise UsageError(
                "sentence-transformers is not installed",
                "pip install 'surrecall[sentence-transformers]', or --embedder openai with an endpoint of your own",
            ) from error
        self.model = model
        self._batch = batch
        try:
            self._encoder: Any = SentenceTransformer(model, truncate_dim=dimension)
        except (OSError, ValueError, RuntimeError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise EmbeddingError(
                f"the model {model} can't be loaded: {reason}", "check --model, and the way to the hub"
            ) from error

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, as the model gives it: not normalised, unless the model does."""
        try:
            matrix = self._encoder.encode(
                list(texts), batch_size=self._batch, normalize_embeddings=False, show_progress_bar=False, convert_to_numpy=True
            )
        except RuntimeError as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise EmbeddingError(f"the model {self.model} failed: {reason}", "a smaller --batch needs less memory") from error
        return [[float(number) for number in vector] for vector in matrix.tolist()]
