"""A user who may read but not write: every command that writes says so, before a model is asked and in place of a success."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import fresh_settings
from definitions import DEFINITIONS
from endpoints import Endpoint
from surrecall import Database, Options, _init, _seed, _writer, evaluate
from surrecall._corpus import Corpus
from test_cli import surrecall
from test_embedding import endpoint, waits  # noqa: F401  fixtures

MODEL = ("--model", "m-1", "--yes", "--endpoint")
COMMANDS: Sequence[tuple[tuple[str, ...], str]] = (
    (("evaluate", "-k", "3"), "evaluation"),
    (("relabel", "late_parcel", "track_order", "--grade", "2"), "label"),
    (("confirm", "--all"), "confirmation"),
    (("review", "--read", "money_back"), "reading"),
    (("label", "--from", "filled.csv"), "judgement"),
    (("split",), "split"),
    (("audit", "--out", "sheet.csv"), "audit"),
    (("audit", "--from", "sheet.csv"), "verdict"),
    (("audit", "--accept"), "label"),
    (("baseline", "set", "main"), "baseline"),
    (("prune", "--keep-days", "1"), "deletion"),
    (("ingest-policy", "article", "--mode", "record"), "policy"),
    (("embed", "--embedder", "hashing", "--all", "--yes"), "vector"),
    (("rerank", "bm25", "--name", "other", "--scores", "run.txt"), "evaluation"),
    (("import", "run", "run.txt", "-r", "other"), "import"),
    (("chunking", "add", "piece"), "chunking"),
    (("chunking", "remove", "piece"), "change"),
    (("import", "documents", "documents.jsonl"), "import"),
    (("chunk", "article", "--into", "small"), "chunk"),
    (("import", "questions", "questions.jsonl"), "import"),
    (("import", "labels", "qrels.tsv"), "import"),
    (("judge", *MODEL), "judgement"),
    (("draft", *MODEL), "draft"),
)


def test_nobody_is_told_that_something_was_stored(
    pytestconfig: pytest.Config,
    engine: str,
    tmp_path: Path,
    endpoint: Endpoint,  # noqa: F811
) -> None:
    settings = fresh_settings(pytestconfig, engine)
    if settings.is_embedded:
        pytest.skip("the embedded engine has no login")
    with Database(settings) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
        evaluate(database, Options([3]))
        database.run("DEFINE TABLE piece; CREATE piece:1 SET document = article:gift_card, text = 'a', position = 0")
        # a change of somebody else's, and a stale label to confirm
        database.run(
            "RETURN fn::label_edit({ question: question:late_parcel, document: article:gift_card, grade: 0, who: 'Ada' })"
        )
        database.run("UPDATE article:track_order SET content += ' more'; RETURN fn::label_scan((SELECT VALUE id FROM question))")
        database.run("DEFINE USER v ON DATABASE PASSWORD 'v' ROLES VIEWER")
        before = [database.value(f"SELECT * FROM {table} ORDER BY id") for table in ("question", "label_change", "import_log")]
        (tmp_path / "filled.csv").write_text("question,document,grade\nlate_parcel,refund_request,2\n", encoding="utf-8")
        (tmp_path / "qrels.tsv").write_text("late_parcel\trefund_request\t1\n", encoding="utf-8")
        (tmp_path / "documents.jsonl").write_text('{"id": "new", "text": "a new one"}', encoding="utf-8")
        (tmp_path / "run.txt").write_text("late_parcel Q0 track_order 1 1.0 other\n", encoding="utf-8")
        question = {"id": "new", "text": "a new one", "relevant": ["gift_card"]}
        (tmp_path / "questions.jsonl").write_text(json.dumps(question), encoding="utf-8")
        environment = {
            "SURREAL_URL": settings.url, "SURREAL_NS": settings.namespace, "SURREAL_DB": settings.database,
            "SURREAL_USER": "v", "SURREAL_PASSWORD": "v", "OPENAI_BASE_URL": endpoint.url,
        }  # fmt: skip
        _init.init(tmp_path, Corpus("article", "content", "embedding", 4, analyzer="help"))
        for command, what in COMMANDS:
            asked = (*command, endpoint.url) if command[-1] == "--endpoint" else command
            done = surrecall(*asked, cwd=tmp_path, env=environment)
            said = " ".join(done.stderr.split())
            assert done.returncode == 3, (command, done.stdout + done.stderr)
            assert f"the database stored no {what}" in said, (command, said)
            assert "this user may read but not write; take one that may (--user)" in said, command
            assert done.stdout == "", command
        assert endpoint.seen == []
        assert not (tmp_path / "sheet.csv").exists()
        after = [database.value(f"SELECT * FROM {table} ORDER BY id") for table in ("question", "label_change", "import_log")]
        assert after == before
        # what only reads goes on
        for reads in (("pool",), ("review",), ("confirm",), ("split", "--dry-run"), ("judge", *MODEL, endpoint.url, "--dry-run")):
            done = surrecall(*reads, cwd=tmp_path, env=environment)
            assert done.returncode == 0, done.stdout + done.stderr


def test_whoever_may_write_leaves_no_trace_of_being_asked(help_centre: Database) -> None:
    before = help_centre.value("SELECT * FROM import_log")
    _writer.require_writer(help_centre, "label")
    assert help_centre.value("SELECT * FROM import_log") == before
    help_centre.run("REMOVE TABLE import_log")
    _writer.require_writer(help_centre, "label")
    assert "import_log" not in help_centre.value("INFO FOR DB")["tables"]
