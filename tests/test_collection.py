"""Collections in the BEIR form: read whole or not at all, what is wrong named by file and line, ids kept letter for letter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from surrealdb import RecordID

from conftest import fresh_settings
from surrecall import (
    Database,
    DataError,
    Options,
    SchemaError,
    SurrecallError,
    UsageError,
    _collection,
    _files,
    _ingest,
    _init,
    _schema,
    _settings,
    evaluate,
)
from surrecall._corpus import Corpus
from test_cli import surrecall

CORPUS = Corpus("paper", "abstract", "embedding", 3)
# ids that become other ids as soon as somebody parses them
IDS = (
    "007",
    "7",
    "1e5",
    "125813199042576601589342522460260755",
    "a-b",
    "a-c",
    "a b/c:d",
    "x⟩y'z",
    "https://e.org/a#b",
    "paper:7",
    "🙂",
)


def write(folder: Path, **files: Any) -> Path:
    """A collection: `docs`, `queries`, `qrels` and vectors, as files."""
    folder.mkdir(exist_ok=True)
    docs = files.get("docs", [{"id": name, "title": f"title {name}", "text": f"words of {name}"} for name in IDS])
    queries = files.get("queries", [{"id": f"q-{name}", "text": f"words of {name}"} for name in IDS])
    qrels = files.get("qrels", [(f"q-{name}", name, 1) for name in IDS])
    header = "query-id\tdoc-id\trelevance\n"
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in docs), encoding="utf-8")
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries), encoding="utf-8")
    (folder / "qrels.tsv").write_text(header + "".join(f"{q}\t{d}\t{g}\n" for q, d, g in qrels), encoding="utf-8")
    if files.get("vectors", True):
        generator = numpy.random.default_rng(5)
        for name, rows in (("docs", docs), ("queries", queries)):
            numpy.save(folder / f"{name}.npy", generator.normal(size=(len(rows), files.get("dimension", 3))).astype("float32"))
            (folder / f"{name}.ids.txt").write_text("\n".join(row["id"] for row in rows), encoding="utf-8")
    return folder


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    return write(tmp_path / "collection")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    _init.init(folder, CORPUS)
    return folder


@pytest.fixture
def database(pytestconfig: pytest.Config, engine: str) -> Iterator[Database]:
    with Database(fresh_settings(pytestconfig, engine)) as opened:
        yield opened


def ingest(database: Database, project: Path, folder: Path, *, dry_run: bool = False) -> _ingest.Imported:
    return _ingest.ingest(database, project, CORPUS, _collection.read(folder), folder.name, "default", dry_run=dry_run)


def stored(database: Database, *tables: str) -> list[int]:
    return [database.value(f"RETURN count(SELECT VALUE id FROM {table})") for table in tables]


def test_ids_are_kept_letter_for_letter_and_every_label_resolves(database: Database, project: Path, collection: Path) -> None:
    imported = ingest(database, project, collection)
    assert (imported.documents, imported.questions, imported.labels) == (len(IDS), len(IDS), len(IDS))
    assert sorted(row.id for row in database.value("SELECT VALUE id FROM paper")) == sorted(IDS)
    pairs = database.value("SELECT VALUE [record::id(id), record::id(relevant[0])] FROM question")
    assert sorted(pairs) == sorted([f"q-{name}", name] for name in IDS)
    evaluation = evaluate(database, Options([len(IDS)]))
    assert {row["recall"] for row in evaluation.runs if row["retriever"] == "vector"} == {1.0}
    assert database.value("RETURN fn::check()") == []


SHAPES = {
    "names that need quoting": Corpus("my `odd` paper", "full text", "v-ec.of", 3),
    "words of the language": Corpus("select", "value", "from", 3),
    "two text fields": Corpus("paper", ["title", "abstract"], "embedding", 3),
    "no vectors": Corpus("paper", "abstract"),
    "a field of an object": Corpus("paper", "meta.body", "meta.vector", 3),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_of_other_shapes(database: Database, tmp_path: Path, shape: str) -> None:
    """init, import, evaluate and check; twice, since the second time rows are compared with what is there."""
    corpus = SHAPES[shape]
    _init.init(tmp_path, corpus)
    assert _settings.read_project_file(tmp_path).corpus == replace(corpus, analyzer=corpus.analyzer_name)
    folder = write(tmp_path / "collection", vectors=corpus.vector is not None)
    collection = _collection.read(folder)
    for added in (len(IDS), 0):
        imported = _ingest.ingest(database, tmp_path, corpus, collection, "shape", "default")
        assert (imported.documents, imported.questions) == (added, added)
    evaluation = evaluate(database, Options([len(IDS)]))
    assert {row["retriever"] for row in evaluation.runs} == ({"bm25", "vector", "hybrid"} if corpus.vector else {"bm25"})
    assert {row["recall"] for row in evaluation.runs} == {1.0}
    assert database.value("RETURN fn::check()") == []
    assert _schema.drift(database, tmp_path) == []


def test_a_trial_says_what_would_be_imported_and_stores_nothing(
    database: Database, project: Path, collection: Path, tmp_path: Path
) -> None:
    told = ingest(database, project, collection, dry_run=True)
    assert (told.documents, told.questions, told.documents_there) == (len(IDS), len(IDS), 0)
    assert database.value("INFO FOR DB")["tables"] == {}
    assert ingest(database, project, collection) == told
    told = ingest(database, project, collection, dry_run=True)
    assert (told.documents, told.questions, told.documents_there) == (0, 0, len(IDS))
    shown = surrecall(
        "import", "collection", str(collection), "--dry-run", "--url", f"surrealkv://{tmp_path / 'no'}", cwd=project
    )
    assert shown.returncode == 0, shown.stderr
    assert f"would import {len(IDS)} documents" in shown.stdout
    assert not (tmp_path / "no").exists()


def test_a_second_import_changes_nothing(database: Database, project: Path, collection: Path) -> None:
    ingest(database, project, collection)
    before = database.run("SELECT * FROM paper; SELECT * FROM question;")
    again = ingest(database, project, collection)
    assert (again.documents, again.questions, again.documents_there, again.questions_there) == (0, 0, len(IDS), len(IDS))
    assert database.run("SELECT * FROM paper; SELECT * FROM question;") == before


def test_more_documents_come_in_beside_those_that_are_there(database: Database, project: Path, tmp_path: Path) -> None:
    docs = [{"id": str(number), "text": f"words of {number}"} for number in range(8)]
    qrels = [("q", "0", 1)]
    queries = [{"id": "q", "text": "words"}]
    ingest(database, project, write(tmp_path / "one", docs=docs[:4], queries=queries, qrels=qrels))
    imported = ingest(database, project, write(tmp_path / "two", docs=docs, queries=queries, qrels=qrels, vectors=False))
    assert (imported.documents, imported.documents_there) == (4, 4)
    assert len(database.value("RETURN fn::retrieve_bm25('words', 20)")) == 8


def test_grades_become_judgements(database: Database, project: Path, tmp_path: Path) -> None:
    docs = [{"id": name, "text": name} for name in "abc"]
    labels = [("q", "a", 2), ("q", "b", 0), ("q", "c", 0.5), ("none", "b", 0)]
    queries = [{"id": "q", "text": "a"}, {"id": "none", "text": "b"}]
    ingest(database, project, write(tmp_path / "graded", docs=docs, queries=queries, qrels=labels))
    row = database.value("SELECT relevant, judged, answerable, source FROM ONLY question:q")
    assert [document.id for document in row["relevant"]] == ["a"]
    assert [(label["document"].id, label["grade"]) for label in row["judged"]] == [("a", 2), ("b", 0), ("c", 0.5)]
    assert (row["answerable"], row["source"]) == (True, "imported")
    assert database.value("SELECT VALUE answerable FROM ONLY question:none") is False


def test_beir_names_and_a_title_that_the_text_repeats(database: Database, project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": "1", "title": "On bees", "text": "On bees and wasps"}, {"_id": "2", "title": "On ants", "text": "small"}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "bees", "metadata": {}}\n{"_id": "spare", "text": "x"}\n')
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    imported = ingest(database, project, folder)
    assert (imported.documents, imported.questions, imported.unlabelled) == (2, 1, 1)
    assert database.value("SELECT VALUE abstract FROM paper ORDER BY abstract") == ["On ants\nsmall", "On bees and wasps"]


@pytest.mark.parametrize(
    "text",
    [
        "query-id\tcorpus-id\tscore\nq-7\t7\t1\nq-007\t007\t1\nq-1e5\t1e5\t1\n",
        "q-7\t7\t1\nq-007\t007\t1\nq-1e5\t1e5\t1\n",
        "q-7 7 1\nq-007 007 1\nq-1e5 1e5 1\n",
        "SCORE\tCorpus-ID\tQuery-ID\n1\t7\tq-7\n1\t007\tq-007\n1\t1e5\tq-1e5\n",
        "query-id\tcorpus-id\tscore\r\nq-7\t7\t1\r\nq-007\t007\t1\r\nq-1e5\t1e5\t1\r\n",
        "q-7  7  1  \n\nq-007  007  1\n\n\nq-1e5  1e5  1\n\n",
        "\ufeffquery-id\tcorpus-id\tscore\nq-7\t7\t1\nq-007\t007\t1\nq-1e5\t1e5\t1",
        "\ufeffq-7\t7\t1\nq-007\t007\t1\nq-1e5\t1e5\t1",
        "q-7\t7\t1\nq-7\t7\t1\nq-007\t007\t1\nq-1e5\t1e5\t1\n",
    ],
)
def test_labels_are_three_however_the_file_was_saved(collection: Path, text: str) -> None:
    (collection / "qrels.tsv").write_bytes(text.encode())
    read = _collection.read(collection)
    assert {question.id: question.labels for question in read.questions} == {
        "q-7": {"7": 1}, "q-007": {"007": 1}, "q-1e5": {"1e5": 1},
    }  # fmt: skip


def test_numbers_of_json_stay_numbers_and_labels_of_text_mean_them(database: Database, project: Path, tmp_path: Path) -> None:
    docs: list[dict[str, Any]] = [{"id": 7, "text": "seven"}, {"id": "007", "text": "'007'"}, {"id": "8", "text": "'8'"}]
    queries = [{"id": 1, "text": "seven"}]
    folder = write(tmp_path / "typed", docs=docs, queries=queries, qrels=[("1", "7", 1), ("1", "007", 1)], vectors=False)
    ingest(database, project, folder)
    assert database.value("SELECT VALUE relevant FROM ONLY question:1") == [RecordID("paper", 7), RecordID("paper", "007")]
    assert ingest(database, project, folder).questions_there == 1
    both = write(tmp_path / "both", docs=[*docs, {"id": 8, "text": "8"}], queries=queries, qrels=[("1", "8", 1)], vectors=False)
    with pytest.raises(DataError, match=r"qrels\.tsv:2: the document '8' is ambiguous: the text and the number are both there"):
        _collection.read(both)


@pytest.mark.parametrize("name", ["qrels.tsv", "qrels.trec", "qrels/test.tsv", "qrels.txt"])
def test_labels_of_four_fields(collection: Path, name: str) -> None:
    (collection / "qrels.tsv").unlink()
    (collection / "qrels").mkdir()
    (collection / name).write_text("q-7 0 7 1\nq-007 0 007 2\nq-1e5\t0\t1e5 1\n")
    assert {question.id: question.labels for question in _collection.read(collection).questions} == {
        "q-7": {"7": 1},
        "q-007": {"007": 2},
        "q-1e5": {"1e5": 1},
    }


def spoil(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("docs.jsonl", '{"id": "7",', '{"id": "7"', "docs.jsonl:2: no JSON"),
        ("docs.jsonl", '"id": "7"', '"id": "007"', "docs.jsonl:2: the id '007' is there already, in line 1"),
        ("docs.jsonl", '"id": "7"', '"name": "7"', "docs.jsonl:2: no object with an id"),
        ("docs.jsonl", '"text": "words of 7"', '"body": "x"', "docs.jsonl:2: no text"),
        ("docs.jsonl", '"text": "words of 7"', '"text": 7', "docs.jsonl:2: no text"),
        ("docs.jsonl", '"title": "title 7", "text": "words of 7"', '"text": " "', "docs.jsonl:2: an empty document"),
        ("docs.jsonl", '"id": "7"', '"id": "8"', "docs.jsonl:2: a document without a vector"),
        ("queries.jsonl", '"text": "words of 7"', '"text": ""', "queries.jsonl:2: a question without text"),
        ("queries.jsonl", '"id": "q-7"', '"id": "q-007"', "queries.jsonl:2: the id 'q-007' is there already, in line 1"),
        ("qrels.tsv", "q-7\t7\t1", "q-8\t7\t1", "qrels.tsv:3: the question 'q-8' is in no file"),
        ("qrels.tsv", "q-7\t7\t1", "q-7\t8\t1", "qrels.tsv:3: the document '8' is in no file"),
        ("qrels.tsv", "q-7\t7\t1", "q-7\t7", "qrels.tsv:3: not three fields"),
        ("qrels.tsv", "q-7\t7\t1", "q-7\t7\tyes", "qrels.tsv:3: the grade 'yes' is no number"),
        ("qrels.tsv", "q-7\t7\t1", "q-7\t7\tnan", "qrels.tsv:3: the grade 'nan' is out of range"),
        ("qrels.tsv", "q-7\t7\t1", "q-007\t007\t2", "qrels.tsv:3: another grade than in line 2"),
        ("qrels.tsv", "query-id\tdoc-id\trelevance", "frage\tdokument\tnote", "qrels.tsv:1: an unknown header"),
        ("docs.ids.txt", "a-b\n", "", "11 vectors, docs.ids.txt 10 ids"),
        ("docs.ids.txt", "a-b\n", "a-c\n", "the id 'a-c' is there twice"),
    ],
)
def test_a_fault_is_named_by_file_and_line(collection: Path, name: str, old: str, new: str, complaint: str) -> None:
    spoil(collection, name, old, new)
    with pytest.raises(DataError) as caught:
        _collection.read(collection)
    assert complaint in caught.value.message
    assert caught.value.hint


def test_the_first_ten_faults_are_shown_and_the_rest_counted(collection: Path) -> None:
    (collection / "docs.jsonl").write_text("{\n" * 25)
    with pytest.raises(DataError) as caught:
        _collection.read(collection)
    assert "docs.jsonl:10: " in caught.value.message
    assert "docs.jsonl:11: " not in caught.value.message
    assert "more" in caught.value.message


@pytest.mark.parametrize("missing", ["docs.jsonl", "queries.jsonl", "qrels.tsv", "docs.ids.txt"])
def test_a_missing_file(collection: Path, missing: str) -> None:
    (collection / missing).unlink()
    with pytest.raises(DataError, match=missing):
        _collection.read(collection)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        _collection.read(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00garbage", b"PK\x03\x04"])
def test_a_damaged_vector_file(collection: Path, content: bytes) -> None:
    (collection / "docs.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"docs\.npy is no \.npy file"):
        _collection.read(collection)


_TOO_SMALL, _NOT_FINITE = "a vector of zeros, or of numbers too small or too large", "a vector with NaN or infinity"


@pytest.mark.parametrize(
    ("value", "wrong"),
    [(0.0, _TOO_SMALL), (1e-30, _TOO_SMALL), (1e30, _TOO_SMALL), (float("nan"), _NOT_FINITE), (float("inf"), _NOT_FINITE)],
)
def test_vectors_of_zeros_or_nan(collection: Path, value: float, wrong: str) -> None:
    matrix = numpy.load(collection / "docs.npy")
    matrix[1] = value
    numpy.save(collection / "docs.npy", matrix)
    with pytest.raises(DataError, match=rf"row 2 \(7\) is {wrong}$"):
        _collection.read(collection)


def test_vectors_of_another_dimension(database: Database, project: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the document vectors have 5 numbers, paper\.embedding takes 3"):
        ingest(database, project, write(tmp_path / "five", dimension=5))
    assert database.value("INFO FOR DB")["tables"] == {}


def test_text_that_is_no_utf_8(collection: Path) -> None:
    (collection / "queries.jsonl").write_bytes(b'{"id": "q", "text": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"queries\.jsonl:1: no UTF-8 text"):
        _collection.read(collection)


def test_an_id_that_is_there_with_another_text_is_refused(database: Database, project: Path, collection: Path) -> None:
    ingest(database, project, collection)
    before = database.run("SELECT * FROM paper; SELECT * FROM question; SELECT * FROM import_log;")
    spoil(collection, "docs.jsonl", '"text": "words of 7"', '"text": "other words"')
    with pytest.raises(DataError, match="is there with another content"):
        ingest(database, project, collection)
    assert database.run("SELECT * FROM paper; SELECT * FROM question; SELECT * FROM import_log;") == before


@pytest.mark.parametrize("batch", [0, 1])
def test_a_failure_on_the_way_leaves_nothing(
    database: Database, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(_ingest, "_BATCH_WITHOUT_INDEXES", 6)
    ingest(
        database,
        project,
        write(tmp_path / "first", docs=[{"id": "0", "text": "a"}], queries=[{"id": "q", "text": "a"}], qrels=[("q", "0", 1)]),
    )
    before = database.run("SELECT * FROM paper; SELECT * FROM question; SELECT * FROM import_log;")
    monkeypatch.setattr(_ingest, "_BATCH_WITH_INDEXES", 6)
    honest, inserts = database.run, iter(range(100))

    def failing(statements: str, **variables: Any) -> list[Any]:
        if statements.startswith("INSERT INTO paper") and next(inserts) == batch:
            raise SurrecallError("no space left")
        return honest(statements, **variables)

    monkeypatch.setattr(database, "run", failing)
    with pytest.raises(SurrecallError, match="no space left"):
        ingest(database, project, write(tmp_path / "second"))
    monkeypatch.undo()
    assert database.run("SELECT * FROM paper; SELECT * FROM question; SELECT * FROM import_log;") == before


def test_an_import_that_was_cut_off_is_named_and_finished_by_the_next(
    database: Database, project: Path, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, inserts = database.run, iter(range(100))

    def gone(statements: str, **variables: Any) -> list[Any]:
        if statements.startswith("INSERT INTO paper") or next(inserts) > 1000:
            # nothing answers any more, so nothing can be taken out either
            monkeypatch.setattr(database, "run", lambda *_, **__: (_ for _ in ()).throw(SurrecallError("gone")))
            honest(statements, **variables)
            raise SurrecallError("gone")
        return honest(statements, **variables)

    monkeypatch.setattr(database, "run", gone)
    with pytest.raises(SurrecallError, match="gone"):
        ingest(database, project, collection)
    monkeypatch.undo()
    assert stored(database, "paper", "question") == [len(IDS), 0]
    with pytest.raises(DataError, match="the import of collection is unfinished"):
        evaluate(database, Options([3]))
    told = [row["subject"] for row in database.value("RETURN fn::check_imports()")]
    assert told == ["collection"]
    database.run("CREATE import_log SET source = 'collection', documents = 1, questions = 1")
    assert len(database.value("RETURN fn::check_imports()")) == 1
    imported = ingest(database, project, collection)
    assert (imported.documents_there, imported.questions) == (len(IDS), len(IDS))
    assert database.value("RETURN fn::check_imports()") == []
    assert {finding["kind"] for finding in database.value("RETURN fn::check()")} == set()


def test_from_an_empty_directory_to_the_table(collection: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    env = {"SURREAL_URL": "surrealkv://data"}
    done = surrecall("init", "--table", "paper", "--field", "abstract", "--dimension", "3", cwd=here)
    assert done.returncode == 0, done.stderr
    done = surrecall("import", "collection", str(collection), cwd=here, env=env)
    assert done.stdout == "imported 11 documents, 11 questions, 11 labels\n", done.stderr
    shown = surrecall("evaluate", cwd=here, env=env).stdout
    assert "vector      5" in shown
    assert "hybrid     20" in shown
    assert surrecall("check", cwd=here, env=env).stdout == "all is well\n"
    assert len(json.loads(surrecall("history", "--json", cwd=here, env=env).stdout)) == 6


def test_import_outside_a_project_is_usage(collection: Path, tmp_path: Path) -> None:
    done = surrecall("import", "collection", str(collection), "--url", "mem://", cwd=tmp_path)
    assert done.returncode == 2
    assert "surrecall init" in done.stderr


def test_init_writes_over_nothing(tmp_path: Path) -> None:
    arguments = ("init", "--table", "paper", "--dimension", "3")
    assert surrecall(*arguments, cwd=tmp_path).returncode == 0
    before = {path: path.read_text() for path in tmp_path.rglob("*.*")}
    done = surrecall(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert {path: path.read_text() for path in tmp_path.rglob("*.*")} == before
    assert surrecall(*arguments, "--force", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--table", ""), "is no name"),
        (("--field", "a..b"), "is no field"),
        (("--table", "question"), "is a table of surrecall's own"),
        (("--field", "title"), "three fields"),
        (("--vector", "content"), "given twice"),
        (("--distance", "cosinus"), "COSINE, EUCLIDEAN"),
        (("--dimension", "0"), "1 to 65536"),
        (("--pool", "0"), "1 to 10000"),
    ],
)
def test_init_with_names_that_make_no_sense(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    given = {"--table": "paper", "--dimension": "3"} | {arguments[0]: arguments[1]}
    done = surrecall("init", *(part for pair in given.items() for part in pair), cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("distance", ["COSINE", "EUCLIDEAN", "MANHATTAN", "CHEBYSHEV"])
def test_every_distance_ranks_the_nearest_first(database: Database, tmp_path: Path, distance: str) -> None:
    corpus = Corpus("paper", "abstract", "embedding", 2, distance)
    _init.init(tmp_path, corpus)
    database.run("\n".join(file.text for file in _files.load(tmp_path)))
    database.run(
        "CREATE paper:far SET abstract = 'a', embedding = [1, -1]; CREATE paper:near SET abstract = 'a', embedding = [1, 3];"
        "CREATE paper:same SET abstract = 'a', embedding = [10, 20];"
    )
    rows = database.value("RETURN fn::search_vec([10, 20], 3)")
    assert [row["id"].id for row in rows] == ["same", "near", "far"]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)


def test_the_database_of_another_corpus_is_refused(help_centre: Database, project: Path, collection: Path) -> None:
    before = help_centre.run("SELECT * FROM question; INFO FOR DB;")
    with pytest.raises(SchemaError, match="this database evaluates article") as caught:
        ingest(help_centre, project, collection)
    assert "--db" in (caught.value.hint or "")
    assert help_centre.run("SELECT * FROM question; INFO FOR DB;") == before


def test_indexes_whose_build_was_cut_off_are_built_anew(database: Database, project: Path, collection: Path) -> None:
    ingest(database, project, collection)
    database.run("REMOVE INDEX paper_words ON paper")
    imported = ingest(database, project, collection)
    assert imported.documents_there == len(IDS)
    assert database.value("RETURN fn::check()") == []


def test_a_build_that_stands_still_is_given_up(
    database: Database, project: Path, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ingest, "_STALLED", 0.2)
    monkeypatch.setattr(_ingest, "_building", lambda *_: [("indexing", "5"), ("ready", "")])
    with pytest.raises(SchemaError, match="the indexes of paper could not be built: indexing 5"):
        ingest(database, project, collection)
    monkeypatch.undo()
    assert stored(database, "paper", "question", "import_log") == [0, 0, 0]
    assert ingest(database, project, collection).documents == len(IDS)


def test_a_collection_without_vectors_says_so(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    env = {"SURREAL_URL": "surrealkv://data"}
    folder = write(tmp_path / "bare", vectors=False)
    surrecall("init", "--table", "paper", "--field", "abstract", "--dimension", "3", cwd=here)
    done = surrecall("import", "collection", str(folder), cwd=here, env=env)
    assert "warning: the collection has no vectors" in done.stderr
    told = surrecall("check", cwd=here, env=env)
    assert told.returncode == 4
    assert "and 6 more" in " ".join(told.stdout.split())
    assert surrecall("evaluate", "-r", "bm25", cwd=here, env=env).returncode == 0


def test_a_zero_vector_among_six_never_takes_a_slot(database: Database, tmp_path: Path) -> None:
    _init.init(tmp_path, Corpus("paper", "abstract", "embedding", 2))
    database.run("\n".join(file.text for file in _files.load(tmp_path)))
    vectors = [[1, 0], [0.9, 0.1], [0.1, 0.9], [0, 1], [0.5, 0.5], [0.2, 0.8]]
    for number, vector in enumerate(vectors):
        database.run("CREATE type::record('paper', $id) SET abstract = 'a', embedding = $v", id=f"d{number}", v=vector)
    with pytest.raises(SurrecallError, match="a vector of zeros"):
        database.run("CREATE paper:zero SET abstract = 'a', embedding = [0, 0]")
    database.run("OPTION IMPORT; INSERT INTO paper { id: paper:zero, abstract: 'a', embedding: [0f, 0f] };")
    assert [row.id for row in database.value("RETURN fn::retrieve_vec([0, 1], 3)")] == ["d3", "d2", "d5"]
    assert [row["subject"] for row in database.value("RETURN fn::check_corpus()")] == ["paper:zero"]
