"""A database that is somebody's already: its own names, some of which need quoting, and its own search functions."""

from __future__ import annotations

import math
from typing import Any

from surrealdb import RecordID

from surrecall import Database

TABLE = "my-papers"
SCHEMA = """
DEFINE ANALYZER `own an` TOKENIZERS class FILTERS lowercase, snowball(english);
DEFINE TABLE `my-papers` SCHEMAFULL;
DEFINE FIELD `full text` ON `my-papers` TYPE string;
DEFINE FIELD heading ON `my-papers` TYPE string;
DEFINE FIELD `v-ec` ON `my-papers` TYPE array<float>;
DEFINE INDEX `the words` ON `my-papers` FIELDS `full text` FULLTEXT ANALYZER `own an` BM25;
DEFINE INDEX hw ON `my-papers` FIELDS heading FULLTEXT ANALYZER `own an` BM25;
DEFINE INDEX near ON `my-papers` FIELDS `v-ec` HNSW DIMENSION 4 DIST COSINE;
DEFINE FUNCTION fn::find($query: string, $limit: int) {
  RETURN SELECT VALUE id FROM (
    SELECT id, search::score(1) AS s FROM `my-papers` WHERE `full text` @1,OR@ $query ORDER BY s DESC, id LIMIT $limit
  );
};
DEFINE FUNCTION fn::shuffled($query: string, $limit: int) {
  RETURN SELECT VALUE id FROM `my-papers` ORDER BY rand() LIMIT $limit;
};
DEFINE FUNCTION fn::logged($query: string, $limit: int) { CREATE log; RETURN [] };
DEFINE FUNCTION fn::sum($a: int, $b: int) { RETURN $a + $b };
"""
WORDS = (
    "apple",
    "pear",
    "banana",
    "cherry",
    "date",
    "elder",
    "fig",
    "grape",
    "honey",
    "iris",
    "jade",
    "kiwi",
    "lemon",
    "mango",
    "nut",
    "olive",
)
QUESTIONS = """
CREATE question:first SET text = 'apple fig', embedding = [0.1, 0.2, 0.3, 1], relevant = [`my-papers`:1, `my-papers`:`a b/3`];
CREATE question:second SET text = 'kiwi mango', embedding = [0.5, 0.2, 0.3, 1], relevant = [`my-papers`:11];
"""


def vector(index: int) -> list[float]:
    return [math.sin(index), math.cos(index), math.sin(2 * index), 1.0]


def rows() -> list[dict[str, Any]]:
    return [
        {
            "id": RecordID(TABLE, index if index % 3 else f"a b/{index}"),
            "full text": " ".join(WORDS[(index * step) % 16] for step in range(1, 6)),
            "heading": WORDS[index % 16],
            "v-ec": vector(index),
        }
        for index in range(40)
    ]


def build(database: Database) -> None:
    """Forty papers under two full-text indexes and a vector index, a function that searches, and three that are no searches."""
    database.run(SCHEMA)
    database.run("INSERT INTO `my-papers` $rows RETURN NONE", rows=rows())


def state(database: Database) -> list[Any]:
    """All that the database holds, as the engine tells it."""
    info = database.value("INFO FOR DB STRUCTURE")
    for table in info["tables"]:
        del table["id"]  # a counter of the engine's
    parts = [
        [
            database.value(f"INFO FOR TABLE `{table['name']}` STRUCTURE"),
            database.value(f"SELECT * FROM `{table['name']}` ORDER BY id"),
        ]
        for table in info["tables"]
    ]
    return [info, *parts]
