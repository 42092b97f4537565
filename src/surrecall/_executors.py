"""The engine's two executors: a read at the top level runs on one, the body of a closure on the other.

Either can be several times faster for an expression, so the first questions are put to both, and the faster one takes the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

STREAMING, CLOSURE = "streaming", "closure"
# questions that are put to both
SAMPLE = 2
# how much faster the other must be: less is noise
_CLEARLY = 0.8


def order(index: int) -> tuple[str, str]:
    """Which of them is asked first, and then: each goes first once, so that neither gets all the warm caches."""
    return (STREAMING, CLOSURE) if index % 2 == 0 else (CLOSURE, STREAMING)


def faster(seconds: Mapping[str, Sequence[float]]) -> str:
    """The one to go on with, by how long each took for each question of the sample.

    It must be faster for every one of them: a single short call says little, and the slower one would take all the rest.
    """
    pairs = list(zip(seconds[CLOSURE], seconds[STREAMING], strict=True))
    return CLOSURE if pairs and all(closure < _CLEARLY * streaming for closure, streaming in pairs) else STREAMING
