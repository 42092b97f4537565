"""A golden set of three kinds: 16 factual, 16 lexical and 16 conceptual questions over 48 articles, one label each.

Words find the factual and the lexical ones; a conceptual question shares its words with other articles, save one.
Vectors find the factual and the conceptual ones; the vector of a lexical question, a bare code, points elsewhere.
"""

from __future__ import annotations

import math

from surrealdb import RecordID

from surrecall import Database

KINDS = ("factual", "lexical", "conceptual")
_THINGS = (
    "pump",
    "valve",
    "boiler",
    "fan",
    "meter",
    "hose",
    "lamp",
    "filter",
    "motor",
    "sensor",
    "gasket",
    "panel",
    "relay",
    "fuse",
)
_DEEDS = ("drain", "fit", "clean", "replace", "test", "seal", "order", "ship", "store", "label", "mount", "wire", "cool", "heat")
_STATES = (
    "leaks",
    "hums",
    "sticks",
    "rusts",
    "blinks",
    "smells",
    "drips",
    "stalls",
    "rattles",
    "trips",
    "fades",
    "jams",
    "cracks",
    "warps",
)


def _words(place: int) -> tuple[str, str]:
    """What no other article says: a pair of words made of three."""
    return f"{_THINGS[place % 14]}{_DEEDS[place // 14]}", f"{_STATES[place % 14]}{_DEEDS[place // 14]}"


def _vector(place: float) -> list[float]:
    angle = place * math.pi / 96
    return [math.cos(angle), math.sin(angle), 0.0, 0.0]


def seed(database: Database) -> None:
    """Into a database with the help centre's definitions and no rows."""
    articles, questions = [], []
    for place in range(48):
        thing, state = _words(place)
        kind = KINDS[place % 3]
        elsewhere = (place + 24) % 48
        articles.append(
            {
                "id": RecordID("article", f"a{place:02}"),
                "title": thing,
                "content": f"when it {state} the {thing} shows e{700 + place} and stops",
                "embedding": _vector(place),
            }
        )
        foreign = " ".join(_words(elsewhere))
        text = {
            "factual": f"{thing} {state}",
            "lexical": f"e{700 + place}",
            # one of sixteen has a word of its article
            "conceptual": f"{foreign} {thing}" if place == 2 else foreign,
        }[kind]
        questions.append(
            {
                "id": RecordID("question", f"q{place:02}"),
                "text": text,
                "embedding": _vector(elsewhere if kind == "lexical" else place),
                "relevant": [RecordID("article", f"a{place:02}")],
                "kind": kind,
                "tags": ["even"] * (place % 2 == 0) + ["first"] * (place < 12),
                "split": "heldout" if place % 4 == 3 else "dev" if place % 4 else None,
                "source": "production" if place < 8 else "human",
            }
        )
    database.run(
        "INSERT INTO article $articles RETURN NONE; INSERT INTO question $questions RETURN NONE;",
        articles=articles,
        questions=[{key: value for key, value in row.items() if value is not None} for row in questions],
    )
