"""Chunk tables: parts of their documents letter for letter, kept up with them, and never over what is somebody else's."""

from __future__ import annotations

import json
import re
import sys
from copy import copy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import foreign
from surql_cases import both_executors
from surrecall import (
    Database,
    DatabaseError,
    DataError,
    Interrupted,
    SchemaError,
    Settings,
    UsageError,
    _chunk,
    _files,
    _init,
    _retrievers,
    _schema,
)
from surrecall._chunk import Asked, Chunked, Form
from surrecall._corpus import Corpus
from surrecall._export import source
from surrecall._export.output import Output
from surrecall._settings import read_project_file
from surrecall._snapshot import form, load, write
from test_cli import Run, run, seeded, target  # noqa: F401

ARTICLE = Corpus("article", "content", "embedding", 4, analyzer="help")
SMALL = Asked("chunk_small", max_chars=60, overlap=10)
MARKDOWN = (
    "# One\n\nIntro 😀 of it. Second — sentence.\r\n\r\n## Two\n\nCafé e\u0301, 👨‍👩‍👧 and "
    + "a long tail " * 9
    + "\n\n# Three\n\nEnd.\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the files of the help centre."""
    _init.init(tmp_path, ARTICLE)
    return tmp_path


def cut(database: Database, project: Path, asked: Asked = SMALL, corpus: Corpus = ARTICLE, **more: Any) -> Chunked:
    return _chunk.chunk(database, project, corpus, asked, **more)


def chunks(database: Database, table: str = "chunk_small") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = database.value(f"SELECT *, document.content AS whole FROM {table} ORDER BY document, position")
    return rows


def test_chunks_stand_in_their_documents_letter_for_letter(help_centre: Database, project: Path) -> None:
    help_centre.run("CREATE article:marked SET content = $text", text=MARKDOWN)
    done = cut(help_centre, project)
    assert (done.documents, done.cut, done.removed) == (11, 11, 0)
    assert done.added == done.chunks == len(chunks(help_centre))
    for row in chunks(help_centre):
        assert row["whole"][row["start"] : row["end"]] == row["text"]
        assert 0 < len(row["text"]) <= 60
    rows = [row for row in chunks(help_centre) if row["document"].id == "marked"]
    assert [row["position"] for row in rows] == list(range(len(rows)))
    # nothing but white space is in no chunk
    seen = {place for row in rows for place in range(row["start"], row["end"])}
    assert "".join(letter for place, letter in enumerate(MARKDOWN) if place not in seen).strip() == ""
    # the tail is cut with an overlap, which is one at most
    shared = [max(0, one["end"] - two["start"]) for one, two in pairwise(rows)]
    assert 0 < max(shared) <= 10


def test_plain_and_markdown_are_told_or_looked_at() -> None:
    def starts(form: Form, text: str) -> list[str]:
        splitter, _ = _chunk._settled(Asked("x", 30, 0, form), None)
        return [piece for _, piece in splitter(text).chunk_indices(text)]

    # what comes next but does not fit leaves its heading alone at the end of a chunk, except in Markdown
    text = "# A\n\nabcdefgh\n\n# B\n\nijklmnopqrstuv"
    assert starts(Form.PLAIN, text) == ["# A\n\nabcdefgh\n\n# B", "ijklmnopqrstuv"]
    assert starts(Form.MARKDOWN, text) == starts(Form.AUTO, text) == ["# A\n\nabcdefgh", "# B\n\nijklmnopqrstuv"]
    assert starts(Form.AUTO, "no #heading\n\nhere") == ["no #heading\n\nhere"]


def test_again_changes_nothing_and_what_changed_is_cut_anew(help_centre: Database, project: Path) -> None:
    ids = "article:7, article:⟨7⟩, article:['a', 1], article:u'018f6f3e-0b7a-7c11-8e6e-3b7d0d9f1a2b', article:⟨a b/c:d⟩"
    help_centre.run(f"FOR $id IN [{ids}] {{ UPSERT $id SET content = 'text of ' + <string> $id }}")
    help_centre.run("CREATE article:blank SET content = ' '")
    assert cut(help_centre, project).cut == 15
    help_centre.run("UPDATE chunk_small SET embedding = [1, 2, 3, 4]")
    before = chunks(help_centre)
    made = help_centre.value("SELECT * FROM ONLY chunking:chunk_small")
    assert (made["corpus"], made["max_chars"], made["overlap"]) == ("article", 60, 10)
    # ids that print alike are two documents
    named = help_centre.value(
        "SELECT VALUE text = 'text of ' + <string> document FROM chunk_small WHERE string::starts_with(text, 'text of')"
    )
    assert named == [True] * 5
    again = cut(help_centre, project, Asked("chunk_small"))
    assert (again.cut, again.added, again.removed, again.without_text) == (0, 0, 0, 1)
    assert chunks(help_centre) == before
    assert help_centre.value("SELECT * FROM ONLY chunking:chunk_small") == made

    help_centre.run(
        "UPDATE article:gift_card SET content = 'A zebra of a gift.'; UPDATE article:7 SET title = 'new'; DELETE article:⟨7⟩;"
        "UPDATE article:⟨a b/c:d⟩ SET content = ''; CREATE article:later SET content = 'Later on.';"
    )
    (finding,) = help_centre.value("RETURN fn::check_chunks()[WHERE string::contains(problem, 'documents')]")
    assert finding["problem"] == "of the documents 2 changed since they were cut, 1 were not cut, 2 are gone, or have no text"
    assert finding["next"] == "surrecall chunk article --into chunk_small"
    assert help_centre.value("CREATE ONLY probe SET found = fn::check_chunks()")["found"] == help_centre.value(
        "RETURN fn::check_chunks()"
    )
    done = cut(help_centre, project, Asked("chunk_small"))
    assert done.cut == 3
    after = chunks(help_centre)
    kept = ["gift_card", 7, "later", "7", "a b/c:d"]
    assert [row for row in after if row["document"].id not in kept] == [row for row in before if row["document"].id not in kept]
    assert [row["text"] for row in after if row["document"].id == "gift_card"] == ["A zebra of a gift."]
    assert not [row for row in after if row["document"].id in ("7", "a b/c:d")]
    # and both indexes know
    (found,) = help_centre.value("RETURN fn::search_chunk_small_bm25('zebra', 5)")
    assert found["document"].id == "gift_card"
    assert help_centre.value("RETURN fn::search_chunk_small_bm25('seven letters of text', 50).document")
    assert help_centre.value("RETURN fn::check_chunks()[WHERE string::contains(problem, 'documents')]") == []


def test_a_chunk_keeps_its_id_on_every_store_and_its_vector_with_its_text(project: Path) -> None:
    """The memory store refuses to delete and insert one id in one transaction."""
    with Database(Settings("mem://")) as database:
        _schema.apply(database, project)
        database.run(
            "CREATE article:one SET content = $text", text="Alpha of it. " * 4 + "Beta of it. " * 4 + "Gamma of it. " * 4
        )
        asked = Asked("chunk_small", max_chars=60)
        cut(database, project, asked)
        before = [row["text"] for row in chunks(database)]
        assert len(before) == 3
        database.run("UPDATE chunk_small SET embedding = [1, 2, 3, 4]")
        database.run("UPDATE article:one SET content = string::replace(content, 'Beta', 'Zeta')")
        done = cut(database, project, asked)
        assert (done.cut, done.added, done.removed) == (1, 3, 3)
        kept = [(row["text"] in before, "embedding" in row) for row in chunks(database)]
        assert kept == [(True, True), (False, False), (True, True)]
        # the title goes into the vector too
        database.run("UPDATE article:one SET title = 'One', content = string::slice(content, 0, 30)")
        assert cut(database, project, asked).chunks == 1
        assert [(row["position"], row["title"], "embedding" in row) for row in chunks(database)] == [(0, "One", False)]


def test_a_long_document_is_cut_in_stretches_and_written_in_parts(
    help_centre: Database, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_chunk, "_STRETCH", 300)
    monkeypatch.setattr(_chunk, "_BATCH_WITHOUT_INDEXES", 20)
    monkeypatch.setattr(_chunk, "_BATCH_WITH_INDEXES", 7)
    text = "".join(f"Sentence {number} of a long one, é😀. " + "\n\n" * (number % 5 == 0) for number in range(100))
    help_centre.run("CREATE article:zz SET content = $text", text=text)

    def fail(*_: Any, **__: Any) -> None:
        raise DatabaseError("no answer", "try again")

    # the first of a long document is the last to be written
    with monkeypatch.context() as broken:
        write_some = _chunk._Work._write
        broken.setattr(
            _chunk._Work,
            "_write",
            lambda work, one, again, rows: (fail if [row["position"] for row in rows] == [0] else write_some)(
                work, one, again, rows
            ),
        )
        with pytest.raises(Interrupted, match="no answer; 10 of 11 documents are cut and kept"):
            cut(help_centre, project)
    assert len({row["document"].id for row in chunks(help_centre)}) == 11
    assert help_centre.value("RETURN fn::check_imports().len()") == 1
    assert cut(help_centre, project).cut == 1
    assert help_centre.value("RETURN fn::check_imports()") == []
    for change in ("'New. ' + content + content", "string::slice(content, 0, 1500)"):
        help_centre.run(f"UPDATE article:zz SET content = {change}")
        assert cut(help_centre, project).cut == 1
        rows = [row for row in chunks(help_centre) if row["document"].id == "zz"]
        assert [row["position"] for row in rows] == list(range(len(rows)))
        assert all(row["whole"][row["start"] : row["end"]] == row["text"] for row in rows)
        seen = {place for row in rows for place in range(row["start"], row["end"])}
        assert "".join(letter for place, letter in enumerate(rows[0]["whole"]) if place not in seen).strip() == ""
    help_centre.run("DELETE article:zz")
    assert cut(help_centre, project).documents == 10
    assert len({row["document"].id for row in chunks(help_centre)}) == 10


def test_a_long_text_is_parted_where_it_would_be_cut_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_chunk, "_STRETCH", 40)

    def parted(text: str) -> list[str]:
        stretches = list(_chunk._stretches(text))
        assert all(text[start:].startswith(one) for start, one in stretches)
        assert "".join(one for _, one in stretches) == text
        return [one for _, one in stretches]

    assert parted("x" * 40) == ["x" * 40]
    assert parted("a" * 22 + "\n# B\n\nc\n" + "d" * 20)[1].startswith("# B")
    assert parted("a" * 22 + "\n\nb\nc. d" + "e" * 20)[1].startswith("b")
    assert parted("a" * 22 + ". bc d" + "e" * 20)[1].startswith("bc")
    assert parted("a" * 22 + " bc " + "e" * 20)[1].startswith("e")
    assert [len(one) for one in parted("x" * 100)] == [40, 40, 20]


def test_another_way_into_the_same_table_is_refused_unless_replaced(help_centre: Database, project: Path) -> None:
    cut(help_centre, project)
    before = chunks(help_centre)
    hashed = help_centre.value("RETURN fn::definitions_hash()")
    for other in (Asked("chunk_small", 61), Asked("chunk_small", overlap=0), Asked("chunk_small", form=Form.PLAIN)):
        with pytest.raises(UsageError, match="was cut with --max-chars 60 --overlap 10 --auto") as caught:
            cut(help_centre, project, other)
        assert caught.value.hint
        assert caught.value.hint.startswith("--replace")
    assert chunks(help_centre) == before
    done = cut(help_centre, project, Asked("chunk_small", 200, 0, replace=True))
    assert (done.removed, done.chunks) == (len(before), len(chunks(help_centre)))
    assert max(len(row["text"]) for row in chunks(help_centre)) > 60
    assert help_centre.value("RETURN fn::check_imports()") == []
    # an evaluation over it is of other definitions
    assert help_centre.value("RETURN fn::definitions_hash()") != hashed
    with pytest.raises(UsageError, match="leaves nothing new"):
        cut(help_centre, project, Asked("other", 10, 10))


def test_what_is_not_surrecalls_is_left_alone(help_centre: Database, project: Path) -> None:
    help_centre.run("DEFINE TABLE mine SCHEMALESS COMMENT 'notes'; CREATE mine:1 SET text = 'keep';")
    registry = (project / "surql" / _files.REGISTRY_FILE).read_bytes()
    with pytest.raises(UsageError, match="mine is a table of yours"):
        cut(help_centre, project, Asked("mine"))
    for name in ("article", "question", "eval_run", "a-b", "select", "x" * 41, ""):
        with pytest.raises(UsageError):
            cut(help_centre, project, Asked(name))
    # cut by something else, and registered for anchors alone
    help_centre.run("CREATE chunking:theirs SET corpus = 'article'")
    with pytest.raises(UsageError, match="theirs was cut by something else"):
        cut(help_centre, project, Asked("theirs"))
    # a function of theirs in the way: neither files nor database have anything of it
    help_centre.run("DEFINE FUNCTION fn::search_other_bm25() { RETURN 1 }")
    with pytest.raises(SchemaError, match="fn::search_other_bm25 is taken"):
        cut(help_centre, project, Asked("other"))
    assert not list((project / "surql/corpus").glob("*other*"))
    assert (project / "surql" / _files.REGISTRY_FILE).read_bytes() == registry
    assert "other" not in help_centre.value("INFO FOR DB")["tables"]
    assert help_centre.value("SELECT * FROM mine") == [{"id": help_centre.value("RETURN mine:1"), "text": "keep"}]


def test_without_the_library_it_says_what_to_install(
    help_centre: Database, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "semantic_text_splitter", None)
    with pytest.raises(UsageError, match="needs semantic-text-splitter") as caught:
        cut(help_centre, project)
    assert caught.value.hint == "pip install 'surrecall[chunk]'"


def test_cut_off_it_is_named_refused_and_finished(help_centre: Database, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_chunk, "_BATCH_WITHOUT_INDEXES", 10)

    def stop(_done: int, _all: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"interrupted; [1-9] of 10 documents are cut and kept") as caught:
        cut(help_centre, project, progress=stop)
    assert caught.value.hint == "surrecall chunk article --into chunk_small goes on"
    some = chunks(help_centre)
    # a document is there whole or not at all
    for document in {row["document"].id for row in some}:
        mine = [row for row in some if row["document"].id == document]
        assert mine[-1]["whole"].rstrip().endswith(mine[-1]["text"])
    (finding, *_) = help_centre.value("RETURN fn::check()")
    assert (finding["kind"], finding["subject"]) == ("import", "chunks chunk_small")
    assert finding["next"] == "surrecall chunk article --into chunk_small"
    with pytest.raises(DataError, match="chunks chunk_small is unfinished"):
        help_centre.run("RETURN fn::record_evaluation({ k: [3], retrievers: ['bm25'] })")
    with pytest.raises(SchemaError, match="full-text index chunk_small_words on chunk_small is missing"):
        help_centre.run("RETURN fn::search_chunk_small_bm25('refund', 3)")
    assert cut(help_centre, project, Asked("chunk_small")).cut < 10
    assert help_centre.value("RETURN fn::check_imports()") == []
    whole = chunks(help_centre)
    assert [row for row in whole if row in some] == some
    cut(help_centre, project, Asked("again", 60, 10))
    assert [row["text"] for row in chunks(help_centre, "again")] == [row["text"] for row in whole]
    # much work is done without the indexes, which are there again afterwards
    monkeypatch.setattr(_chunk, "_HEAVY", 0)
    help_centre.run("UPDATE article:gift_card SET content = 'A zebra of a gift.'")
    assert cut(help_centre, project, Asked("again")).cut == 1
    assert help_centre.value("RETURN fn::search_again_bm25('zebra', 5).document.id") == [
        help_centre.value("RETURN article:gift_card")
    ]


def test_searches_by_chunk_and_by_document(help_centre: Database, project: Path) -> None:
    _schema.apply(help_centre, _with_files(project))
    for way in both_executors("RETURN fn::search_chunk_small_bm25('refund', 3)"):
        with pytest.raises(SchemaError, match="chunk_small is empty, article was not cut into it") as caught:
            help_centre.value(way)
        assert caught.value.hint == "surrecall chunk article --into chunk_small"
    done = cut(help_centre, project)
    # its files were there, and are the user's
    assert (done.files, done.retrievers) == ([], [])
    for way in both_executors("RETURN fn::search_chunk_small_vec([1, 0, 0, 0], 3)"):
        with pytest.raises(SchemaError, match="no chunk has a vector"):
            help_centre.value(way)
    help_centre.run("UPDATE chunk_small SET embedding = document.embedding")
    for name in ("bm25", "vector", "hybrid"):
        given = [
            help_centre.value(way.replace("NAME", f"chunk_small_{name}"))
            for way in both_executors("RETURN fn::ranking('NAME', question:money_back, 8)")
        ]
        assert given[0] == given[-1]
        assert {one.table_name for one in given[0]["ids"]} == {"chunk_small"}
        ranked = [
            help_centre.value(way.replace("NAME", f"chunk_small_{name}_doc"))
            for way in both_executors("RETURN fn::ranking('NAME', question:money_back, 8)")
        ]
        assert ranked[0] == ranked[-1]
        # the documents of the chunks, in their order, each once
        leads = help_centre.value("RETURN array::distinct((SELECT VALUE document FROM $ids))", ids=given[0]["ids"])
        assert ranked[0]["ids"][: len(leads)] == leads
        assert len({str(one) for one in ranked[0]["ids"]}) == len(ranked[0]["ids"])
        assert ranked[0]["scores"] == sorted(ranked[0]["scores"], reverse=True)
        shorter = help_centre.value("RETURN fn::ranking($n, question:money_back, 4)", n=f"chunk_small_{name}_doc")
        assert shorter["ids"] == ranked[0]["ids"][:4]
    with pytest.raises(UsageError, match="k = 101 is more than the pool"):
        help_centre.run("RETURN fn::search_chunk_small_vec([1, 0, 0, 0], 101)")
    help_centre.run("REMOVE INDEX chunk_small_embedding ON chunk_small; REMOVE INDEX chunk_small_words ON chunk_small")
    for call, kind in (("vec([1, 0, 0, 0], 3)", "vector"), ("bm25('refund', 3)", "full-text")):
        for way in both_executors(f"RETURN fn::search_chunk_small_{call}"):
            with pytest.raises(SchemaError, match=f"{kind} index chunk_small_.* is missing"):
                help_centre.value(way)
    cut(help_centre, project, Asked("chunk_small"))
    assert help_centre.value("RETURN fn::search_chunk_small_vec([1, 0, 0, 0], 3).len()") == 3
    assert _schema.drift(help_centre, project) == []


def _with_files(project: Path) -> Path:
    written, _ = _chunk.write(project, ARTICLE, "chunk_small")
    assert len(written) == 6
    return project


def test_init_writes_what_chunk_writes(tmp_path: Path, project: Path) -> None:
    # a project from before there were chunks
    (project / "surql/corpus/chunk_sources.surql").unlink()
    _chunk.write(project, ARTICLE, "chunk_small")
    _chunk.write(project, ARTICLE, "chunk_large")
    other = tmp_path / "other"
    _init.init(other, ARTICLE, chunks=["chunk_small", "chunk_large"])
    assert (project / "surql/corpus/chunk_sources.surql").is_file()
    files = {path.name: path.read_text() for path in (project / "surql/corpus").iterdir()}
    made = {path.name: path.read_text() for path in (other / "surql/corpus").iterdir()}
    # retrieve.surql is made by apply
    left_out = ("retrievers.toml", "retrieve.surql")
    assert {name: text for name, text in files.items() if name not in left_out} == {
        name: text for name, text in made.items() if name not in left_out
    }
    assert _retrievers.parse(files["retrievers.toml"]) == _retrievers.parse(made["retrievers.toml"])


def test_an_adopted_table_with_names_of_its_own(empty: Database, tmp_path: Path) -> None:
    """A name that is quoted, a title that is searched too, and a function of ours by another name."""
    foreign.build(empty)
    corpus = Corpus(
        foreign.TABLE,
        ["`full text`", "heading"],
        "`v-ec`",
        4,
        analyzer="own an",
        adopted=True,
        text_indexes=["the words", "hw"],
        vector_index="near",
        title="heading",
        reference="none",
        names={"question": "golden", "fn::best_documents": "fn::our_documents"},
    )
    _init.init(tmp_path, corpus)
    settings = replace(empty.settings, names=corpus.names)
    # the same connection, under the names of the project
    database = copy(empty)
    database.settings = settings
    done = cut(database, tmp_path, Asked("piece", 12, 0), corpus)
    assert done.documents == 40
    database.run_as_written("UPDATE piece SET embedding = document.`v-ec`")
    for row in database.run_as_written("SELECT *, document.`full text` AS whole FROM piece")[0]:
        assert row["whole"][row["start"] : row["end"]] == row["text"]
    # a word of the heading finds it too
    assert database.run_as_written("RETURN fn::search_piece_bm25('nut', 50)[WHERE document.heading = 'nut'].len() > 0")[0]
    question = {"text": "kiwi mango", "embedding": [0.5, 0.2, 0.3, 1]}
    for name in ("piece_bm25_doc", "piece_vector_doc", "piece_hybrid_doc"):
        ids = database.value("RETURN fn::ranking($name, $question, 5).ids", name=name, question=question)
        assert len(ids) == 5
        assert {one.table_name for one in ids} == {foreign.TABLE}
    assert _schema.drift(database, tmp_path) == []


def test_from_the_command_line(seeded: Run, target: Any) -> None:  # noqa: F811
    told = seeded("chunk", "article", "--into", "chunk_small", code=2).stderr
    assert "surrecall init --table article --dimension 4 --analyzer help" in told
    seeded("init", "--table", "article", "--dimension", "4", "--analyzer", "help", "--chunks", "chunk_large")
    assert "this project evaluates article, not page" in seeded("chunk", "page", "--into", "x", code=2).stderr
    shown = seeded("chunk", "article", "--into", "chunk_small", "--max-chars", "60", "--overlap", "10").stdout
    assert "wrote 6 files into surql/corpus" in shown
    assert re.search(r"cut 10 documents into \d+ chunks\n", shown)
    told = seeded("chunk", "article", "--into", "chunk_large", "--max-chars", "200", "--json").stdout
    assert json.loads(told)["chunked"]["cut"] == 10
    assert "nothing to cut" in seeded("chunk", "article", "--into", "chunk_small").stdout
    # vectors of an unknown model are in the way, as everywhere
    seeded("embed", "--table", "chunk_small", "--embedder", "hashing", code=2)
    assert "it fills question, article, chunk_large, chunk_small" in seeded("embed", "--table", "x", code=2).stderr
    seeded("embed", "--table", "chunk_small", "--embedder", "hashing", "--same-model")
    assert "have no vector" in seeded("check", code=4).stdout
    assert "embedded" in seeded("chunk", "article", "--into", "chunk_large", "--embed").stdout
    seeded("evaluate", "-k", "3", "-r", "chunk_small_hybrid_doc", "-r", "chunk_large_hybrid_doc")
    assert seeded("check").stdout == "all is well\n"
    assert "tokens" in seeded("history").stdout.splitlines()[0]
    plan = seeded("remove", "--dry-run").stdout
    assert "would remove table chunk_small" in plan
    assert "would remove fn::search_chunk_large_vec" in plan
    seeded("remove", "--yes")
    with Database(target) as database:
        assert list(database.value("INFO FOR DB")["tables"]) == ["article"]


def test_a_snapshot_carries_chunks_and_how_they_were_cut(help_centre: Database, project: Path, tmp_path: Path) -> None:
    cut(help_centre, project)
    where = source.of_project(read_project_file(project), project)
    tables = write.tables_of(help_centre, where)
    assert tables == ["article", "chunk_small", "chunking"]
    path = tmp_path / "x.snapshot"
    with Output() as output:
        write.write(help_centre, project, tables, output.lines(path))
    with Database(Settings("mem://")) as other:
        (tmp_path / "copy").mkdir()
        load.load(other, tmp_path / "copy", form.Reader(path))
        assert chunks(other) == chunks(help_centre)
        assert other.value("SELECT * FROM chunking") == help_centre.value("SELECT * FROM chunking")
        assert cut(other, tmp_path / "copy", Asked("chunk_small")).cut == 0


def test_the_definitions_are_there_before_the_first_chunk(empty: Database, project: Path) -> None:
    """A database that starts empty, as in CI: definitions by apply, chunks by one command."""
    _chunk.write(project, ARTICLE, "chunk_small")
    _schema.apply(empty, project)
    again = _schema.apply(empty, project)
    assert again.changed == 0
    done = cut(empty, project)
    assert (done.documents, done.chunks) == (0, 0)
    assert empty.value("RETURN fn::search_chunk_small_bm25('refund', 3)") == []
