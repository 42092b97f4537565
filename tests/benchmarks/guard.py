"""What the guard costs: one article into the help centre with fn::guard() before COMMIT over the same without, by pairs.

    python tests/benchmarks/guard.py --url ws://127.0.0.1:8000 --pairs 9

Floors on one retriever and on all three; then with ten times the questions, which gives the cost of a question. The articles are
taken out again, in neither time.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

from collection import fresh, median, report
from surrealdb import RecordID

from surrecall import Database, DatabaseError, _files, _seed
from surrecall._retry import retried

_ROOT = Path(__file__).parents[2]
_WITHOUT = "BEGIN; INSERT INTO article $row RETURN NONE; COMMIT;"
_WITH = "BEGIN; INSERT INTO article $row RETURN NONE; fn::guard(); COMMIT;"
_COPIES = """
FOR $copy IN array::range(1, 10) {
  FOR $row IN $rows { CREATE question CONTENT object::remove($row, 'id') RETURN NONE };
};
"""


def pairs(database: Database, count: int) -> tuple[list[float], list[float]]:
    """Seconds with and without, of as many pairs."""
    found: dict[str, list[float]] = {_WITH: [], _WITHOUT: []}
    for number in range(count + 1):
        for statement in (_WITH, _WITHOUT) if number % 2 else (_WITHOUT, _WITH):
            name = RecordID("article", f"a{number}{len(statement)}")
            row = {"id": name, "title": "Zebras", "content": "zebra stripes", "embedding": [0.0, 0.0, 0.0, 1.0]}
            took = _seconds(database, statement, row)
            # the first pair warms up
            found[statement] += [took] if number else []
            retried(partial(database.run, "DELETE $name", name=name))
    return found[_WITH], found[_WITHOUT]


def _seconds(database: Database, statement: str, row: dict[str, Any]) -> float:
    """Of the attempt that went through: what the engine does in the background for its indexes may get in between."""
    while True:
        began = time.perf_counter()
        try:
            database.run(statement, row=row)
            return time.perf_counter() - began
        except DatabaseError as error:
            if "conflict" not in error.message.lower():
                raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="ws://127.0.0.1:8000")
    parser.add_argument("--user", default="root")
    parser.add_argument("--password", default="root")
    parser.add_argument("--pairs", type=int, default=9)
    options = parser.parse_args()
    with Database(fresh(options)) as database:
        database.run("\n".join(file.text for file in _files.load(_ROOT)))
        _seed.seed(database)
        for names in (["vector"], ["bm25", "vector", "hybrid"]):
            database.run("DELETE eval_floor")
            for name in names:
                database.run("CREATE eval_floor SET retriever = $name, k = 3, minimum = 0", name=name)
            costs = []
            for rows in (8, 80):
                if rows == 80:
                    database.run(_COPIES, rows=database.value("SELECT * FROM question"))
                database.run("RETURN fn::record_evaluation({ k: [3] })")
                guarded, plain = pairs(database, options.pairs)
                report(f"{', '.join(names)}; {rows} questions: insert with the guard over insert without", guarded, plain)
                costs.append(median(guarded))
            per_question = (costs[1] - costs[0]) / 72
            print(f"  {1000 * per_question:.2f} ms a question, {per_question / median(plain):.3f} of an insert")
            database.run("DELETE question WHERE record::id(id).len() = 20")


if __name__ == "__main__":
    main()
