"""What looking anchors up adds to an evaluation: 472 questions with 790 anchors over the finest of six chunkings, by BM25.

    python tests/benchmarks/anchors.py ../chroma-chunking --url ws://127.0.0.1:8000 --pairs 3

Each round looks the anchors up as for the first time, then where nothing has changed since, then evaluates (which looks again).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from collection import fresh, report, seconds

import chunked
from surrecall import Database, Options, _anchors, evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path, help="folder with docs.jsonl, queries.jsonl and spans.jsonl")
    parser.add_argument("--url", default="ws://127.0.0.1:8000")
    parser.add_argument("--user", default="root")
    parser.add_argument("--password", default="root")
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    finest = chunked.CHUNKINGS[1]
    first: list[float] = []
    again: list[float] = []
    whole: list[float] = []
    with Database(fresh(options)) as database:
        collection = chunked.read(options.collection)
        chunked.load(database, collection, Path(tempfile.mkdtemp(prefix="surrecall-bench-")))
        chunked.cut(database, collection, finest)
        chunked.search(database, finest)

        def place() -> None:
            _anchors.place(database, "default", [finest.table])

        for _ in range(options.pairs):
            database.run("DELETE anchor_place")
            first.append(seconds(place))
            again.append(seconds(place))
            whole.append(seconds(lambda: evaluate(database, Options([10], [finest.table]))))
    report(f"anchors looked up for the first time over an evaluation of {finest.table}", first, whole)
    report("looked up where nothing has changed over the same", again, whole)


if __name__ == "__main__":
    main()
