"""How much longer labels take to come in since they remember the text that they were given for, in alternating pairs.

    python tests/benchmarks/labels.py ../scifact --url ws://127.0.0.1:8000 --pairs 7

Questions are there, and `surrecall import labels` adds theirs; then `surrecall import questions --labels` makes both anew.
Without means with the event of question as it would be if it noted changes of labels alone. Documents have no search indexes
here, which no label touches. Then what a look at all labels takes, beside the fingerprint of the golden set, which every
evaluation works out too.

`--server PID` takes the processor time of client and server in place of the clock: on a machine that is busy with other things.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from collection import CORPUS, arguments, fresh, project, report
from surrealdb import RecordID

from surrecall import Database, _collection, _files, _import_labels, _import_questions, _ingest, _stale

BATCH = 500
BARE = """
DEFINE EVENT OVERWRITE question_labels ON question
  WHEN $event != 'CREATE' AND ($event = 'DELETE' OR $before.relevant != $after.relevant OR $before.judged != $after.judged)
  THEN {
    LET $changes = fn::label_changes(
      fn::labels_of({ relevant: $before.relevant, judged: $before.judged }),
      IF $event = 'DELETE' { [] } ELSE { fn::labels_of({ relevant: $after.relevant, judged: $after.judged }) }
    );
    fn::note_label_changes($value.id, $changes, IF $event = 'UPDATE' AND $after.edited != $before.edited { $after.edited });
  }
"""
EMPTY = "DELETE question; DELETE label_seen; DELETE label_change; DELETE import_log"


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--server", type=int, help="process of the server, to take processor time in place of the clock")
    options = parser.parse_args()

    def now() -> float:
        if options.server is None:
            return time.monotonic()
        fields = Path(f"/proc/{options.server}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    collection = _collection.read(options.collection)
    documents = [
        {"id": RecordID(CORPUS.table, row.id), "title": row.title, CORPUS.body: row.text, "embedding": row.vector}
        for row in collection.documents
    ]
    rows = [_ingest._question_row(CORPUS, question, "default", "question") for question in collection.questions]
    labels = (
        [(row["id"].id, document.id, 1) for row in rows for document in row["relevant"]]
        if "relevant" in rows[0]
        else [(row["id"].id, label["document"].id, label["grade"]) for row in rows for label in row["judged"]]
    )
    unlabelled = [{"id": row["id"], "text": row["text"], "set": "default", "answerable": False} for row in rows]
    with tempfile.TemporaryDirectory() as name, Database(fresh(options)) as database:
        questions, qrels = Path(name) / "queries.jsonl", Path(name) / "qrels.tsv"
        questions.write_text("".join(json.dumps({"id": row["id"].id, "text": row["text"]}) + "\n" for row in rows))
        qrels.write_text("query-id\tcorpus-id\tscore\n" + "".join("\t".join(map(str, label)) + "\n" for label in labels))
        database.run(_files.joined(_files.load(project())))
        for index in CORPUS.indexes:
            database.run(f"REMOVE INDEX IF EXISTS {index} ON {CORPUS.table}")
        for start in range(0, len(documents), BATCH):
            database.run("INSERT INTO paper $rows RETURN NONE", rows=documents[start : start + BATCH])
        remembering = database.value("INFO FOR TABLE question")["events"]["question_labels"].replace(
            "EVENT", "EVENT OVERWRITE", 1
        )
        took: dict[tuple[str, bool], list[float]] = {(what, on): [] for what in ("labels", "both") for on in (True, False)}
        for pair in range(options.pairs):
            for on in (True, False) if pair % 2 else (False, True):
                database.run(EMPTY)
                database.run(remembering if on else BARE)
                began = now()
                asked = _import_questions.Options(questions, "jsonl", labels=qrels)
                _import_questions.import_questions(database, project(), CORPUS, asked)
                took["both", on].append(now() - began)
                database.run(EMPTY)
                database.run("INSERT INTO question $rows RETURN NONE", rows=unlabelled)
                began = now()
                _import_labels.import_labels(database, CORPUS, qrels, None)
                took["labels", on].append(now() - began)
        report(f"import labels, {len(labels)} labels, remembering the text over not", took["labels", True], took["labels", False])
        report("import questions --labels, the same", took["both", True], took["both", False])
        database.run(remembering)
        _stale.scan(database)
        looked: list[float] = []
        hashed: list[float] = []
        for _ in range(options.pairs):
            began = now()
            _stale.scan(database)
            looked.append(now() - began)
            began = now()
            database.value("RETURN fn::golden_set_hash('default')")
            hashed.append(now() - began)
        report("a look at all labels over the fingerprint of the golden set", looked, hashed)


if __name__ == "__main__":
    main()
