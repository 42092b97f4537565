"""The built-in embedder: words and character trigrams, hashed into a vector. No model, for demos and tests.

The same text gives the same vector everywhere: blake2b, whole-number sums, and of Unicode only what is settled for good, the
characters of version 3.2, whose tables every Python carries beside its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from unicodedata import normalize, ucd_3_2_0

# a word that two texts share says more than a trigram they share
_WORD, _TRIGRAM = 3, 1


class Hashing:
    """Vectors of `dimension` numbers (1 or more), of length 1. Close where texts share words or parts of words."""

    # the number rises with any change of the vectors: those of two versions can't be compared
    model = "hashing-1"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, never zeros."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        sums = [0] * self.dimension
        for feature, weight in _features(text):
            place, sign = self._place(feature)
            sums[place] += sign * weight
        if not any(sums):
            # no word in it, or they cancel out: the whole text is the one feature
            place, sign = self._place(f"text {text}")
            sums[place] = sign
        length = math.sqrt(sum(number * number for number in sums))
        return [number / length for number in sums]

    def _place(self, feature: str) -> tuple[int, int]:
        digest = blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
        return (number >> 1) % self.dimension, 1 if number & 1 else -1


def _features(text: str) -> Iterator[tuple[str, int]]:
    """Each word, and each three characters of it with its ends marked, with their weights."""
    for word in _words(text):
        yield f"word {word}", _WORD
        padded = f"^{word}$"
        for start in range(len(padded) - 2):
            yield f"part {padded[start : start + 3]}", _TRIGRAM


def _words(text: str) -> list[str]:
    if not text.isascii():
        # a run of settled characters at a time: beside younger ones the result depends on the Python
        runs = ((settled, "".join(run)) for settled, run in groupby(text, _is_settled))
        text = "".join(normalize("NFC", run) if settled else run for settled, run in runs)
    return "".join(map(_folded, text)).split()


@lru_cache(maxsize=4096)
def _is_settled(char: str) -> bool:
    return ucd_3_2_0.category(char) != "Cn"


@lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    """A character of a word in lower case; a blank for one that parts words; what is younger than the tables as it is."""
    if not _is_settled(char):
        return char
    return char.casefold() if ucd_3_2_0.category(char)[0] in "LMN" else " "
