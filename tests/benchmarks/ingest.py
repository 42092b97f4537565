"""How long `surrecall import collection` takes beside the raw statements in their best form, in alternating pairs.

    python tests/benchmarks/ingest.py ../scifact --url ws://127.0.0.1:8000 --pairs 3

The raw form: the same table and fields, INSERT in batches of 500, both indexes defined after. Reading the files is in neither.
"""

from __future__ import annotations

from pathlib import Path

from collection import CORPUS, arguments, fresh, load, project, report, seconds
from surrealdb import RecordID

from surrecall import Database, Settings, _collection, _files


def raw(settings: Settings, collection: _collection.Collection, files: list[_files.SourceFile]) -> None:
    with Database(settings) as database:
        late = [file for file in files if Path(file.name).stem in CORPUS.indexes]
        database.run(_files.joined([file for file in files if file not in late]))
        rows = [
            {"id": RecordID("paper", row.id), "title": row.title, "abstract": row.text, "embedding": row.vector}
            for row in collection.documents
        ]
        for start in range(0, len(rows), 500):
            database.run("INSERT INTO paper $rows RETURN NONE", rows=rows[start : start + 500])
        database.run("INSERT INTO question $rows RETURN NONE", rows=[
            {
                "id": RecordID("question", row.id), "text": row.text, "embedding": row.vector,
                "relevant": [RecordID("paper", name) for name in row.labels],
            }
            for row in collection.questions
        ])  # fmt: skip
        for file in late:
            database.run(file.text)


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    collection = _collection.read(options.collection)
    files = _files.load(project())
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(options.pairs):
        ours.append(seconds(lambda: load(fresh(options), collection)))
        theirs.append(seconds(lambda: raw(fresh(options), collection, files)))
    report("import over the raw statements", ours, theirs)


if __name__ == "__main__":
    main()
