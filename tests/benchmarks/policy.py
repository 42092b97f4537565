"""How much longer documents take to insert in mode record of the ingest policy than without one, in alternating pairs.

    python tests/benchmarks/policy.py ../scifact --url ws://127.0.0.1:8000 --pairs 5

Both indexes are there, documents are inserted fifty at a time, as `surrecall import documents` does. What a server does in the
background meanwhile is in the figure, what comes after the last insert is not; there are no questions, so no evaluation runs.
"""

from __future__ import annotations

import time

from collection import CORPUS, arguments, fresh, project, report
from surrealdb import RecordID

from surrecall import Database, Settings, _collection, _files

BATCH = 50


def insert(settings: Settings, rows: list[dict[str, object]], *, record: bool) -> float:
    """Seconds for all documents."""
    with Database(settings) as database:
        database.run(_files.joined(_files.load(project())))
        if record:
            database.run("UPSERT ingest_policy:paper SET mode = 'record'")
        began = time.monotonic()
        for start in range(0, len(rows), BATCH):
            database.run("INSERT INTO paper $rows RETURN NONE", rows=rows[start : start + BATCH])
        took = time.monotonic() - began
        noted = database.value("RETURN count(SELECT VALUE id FROM corpus_change)")
        if noted != (len(rows) if record else 0):
            raise SystemExit(f"{noted} changes were noted of {len(rows)}")
        # whatever is under way in the background would burden the next one
        while record and not database.value("RETURN !fn::ingest_held() AND (SELECT VALUE id FROM ingest_step LIMIT 1).len() = 0"):
            time.sleep(0.2)
        return took


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--documents", type=int, default=10_000, help="at most so many of the collection")
    options = parser.parse_args()
    rows: list[dict[str, object]] = [
        {"id": RecordID(CORPUS.table, row.id), "title": row.title, CORPUS.body: row.text, "embedding": row.vector}
        for row in _collection.read(options.collection).documents[: options.documents]
    ]
    recorded: list[float] = []
    plain: list[float] = []
    for pair in range(options.pairs):
        for record in (True, False) if pair % 2 else (False, True):
            (recorded if record else plain).append(insert(fresh(options), rows, record=record))
    report(f"{len(rows)} documents in mode record over mode off", recorded, plain)


if __name__ == "__main__":
    main()
