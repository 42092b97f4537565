"""What makes retrieval slow or wrong: found where it is planted, gone when its statements are run, not found elsewhere."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

import foreign
from surql_cases import both_executors
from surrecall import Database, Settings, _adopt, _advise, _files, _init, apply
from surrecall._corpus import Corpus
from test_cli import Run, run, seeded, target  # noqa: F401

DIMENSION = 128
CORPUS = Corpus("paper", "abstract", "embedding", DIMENSION)
WORDS = [a + b for a in ("bar", "kel", "mon", "tas", "vil") for b in ("ado", "ine", "osk", "ump", "yth")]


def vector(seed: int, size: int = DIMENSION) -> list[float]:
    source = random.Random(seed)
    return [source.gauss(0, 1) for _ in range(size)]


def build(database: Database, corpus: Corpus, texts: list[str], asked: list[str]) -> None:
    """Papers of these texts, and questions labelled with the papers of the same number, under indexes that are built."""
    files = [*_files.core({}), *corpus.render()]
    database.run("\n".join(file.text for file in files if not file.name.endswith(".toml")))
    database.run(f"REMOVE INDEX {corpus.words[0].name} ON paper")
    rows = [
        {"id": RecordID("paper", place), "abstract": text, "embedding": vector(place, corpus.dimension)}
        for place, text in enumerate(texts)
    ]
    database.run("INSERT INTO paper $rows RETURN NONE", rows=rows)
    # rows that came in under a vector index are looked through one by one for a while, whatever ef is
    database.run("REBUILD INDEX paper_embedding ON paper")
    # an index over rows that are there is built faster than it grows
    database.run(next(file.text for file in corpus.render() if file.name == f"{corpus.words[0].name}.surql"))
    questions = [
        {
            "id": RecordID("question", place),
            "text": text,
            "embedding": rows[place]["embedding"],
            "relevant": [RecordID("paper", place)],
        }
        for place, text in enumerate(asked)
    ]
    database.run("INSERT INTO question $rows RETURN NONE", rows=questions)


def planted(database: Database) -> None:
    """Function words in every text, and identifiers in some."""
    texts = [
        f"the {WORDS[i % 25]} of the {WORDS[i // 25]} and of it in a list, {WORDS[i % 25]}-{i}." + f" {i}" * (i % 3)
        for i in range(250)
    ]
    asked = [f"what in the {WORDS[i % 25]} of a {WORDS[i // 25]}, and {WORDS[i % 25]}-{i}?" for i in range(30)]
    build(database, CORPUS, texts, asked)


def adopted_as(database: Database, wishes: _adopt.Wishes) -> Corpus:
    return _adopt.adopt(database, wishes, lambda _what, names: names[0]).corpus


def kinds(found: _advise.Advised) -> dict[str, _advise.Advice]:
    """The findings by kind; of several retrievers' ties the first."""
    return {finding.kind: finding for finding in reversed(found.findings)}


def test_words_of_every_document_vectors_beside_texts_and_identifiers(empty: Database, tmp_path: Path) -> None:
    planted(empty)
    empty.run_as_written(
        "DEFINE FUNCTION fn::mine($v: array) { RETURN SELECT VALUE id FROM paper WHERE embedding <|100,20|> $v }"
    )
    before = foreign.state(empty)
    first = kinds(_advise.advise(empty, CORPUS, 5))
    assert foreign.state(empty) == before
    words = first["any-term"]
    assert {"the", "of", "and", "in", "."} <= set(words.figures["drop"])
    assert not set(WORDS) & set(words.figures["drop"])
    assert words.figures["share"] == 1
    assert "the median question matches 100% of 250 documents" in words.measured
    assert words.figures["effect"]["questions"] == 15
    assert "are taken apart" in first["split-identifiers"].measured
    both = first["split-identifiers"]
    assert both.commands[0] == "run these in place of those of any-term, whose words they drop too"
    assert "|of|" in both.statements[0]
    (literal,) = first["ef-below-k"].figures["literals"]
    assert (literal["k"], literal["ef"]) == (100, 20)
    assert 20 <= literal["returned"] < 100
    beside = first["vector-beside-text"]
    assert beside.figures["ratio"] >= 1.3

    # each as it stands, in the order of the findings
    empty.run_as_written("\n".join(words.statements))
    second = kinds(_advise.advise(empty, CORPUS, 5))
    assert "any-term" not in second
    apart = second["split-identifiers"]
    one = next(row for row in apart.figures["split"] if row["held"] == 1)
    assert one["matched"] > 1
    assert len(one["tokens"]) == 2
    empty.run_as_written("\n".join(apart.statements))
    rows = empty.value("RETURN fn::search_bm25($name, 10)", name=f"{WORDS[17]}-17")
    assert [row["id"].id for row in rows] == [17]
    # the stop words are gone still, and words are found as before
    assert empty.value("RETURN fn::search_bm25('the of', 10)") == []
    assert len(empty.value("RETURN fn::search_bm25($word, 10)", word=WORDS[3])) == 10

    asked = [0, 7, 21]
    nearest = "RETURN fn::search_vec($v, 10)"
    lists = [[row["id"] for row in empty.value(nearest, v=vector(place))] for place in asked]
    # a table of the user's own of that name is left alone, and no vector goes that was not copied
    empty.run_as_written("DEFINE TABLE paper_vector SCHEMAFULL; DEFINE FIELD name ON paper_vector TYPE string;")
    (guarded,) = [statement for statement in beside.statements if statement.startswith("UPDATE ")]
    with_vector = "RETURN count(SELECT VALUE id FROM paper WHERE embedding != NONE)"
    before = empty.value(with_vector)
    empty.run_as_written(guarded)
    assert empty.value(with_vector) == before > 0
    assert any("paper_vector2" in text for text in kinds(_advise.advise(empty, CORPUS, 5))["vector-beside-text"].statements)
    empty.run_as_written("REMOVE TABLE paper_vector")

    empty.run_as_written("\n".join(beside.statements))
    _init.init(tmp_path, CORPUS)
    removed, adopted, applied = (shlex.split(step) for step in beside.commands[:3])
    assert (removed[0], adopted[:3], applied) == ("rm", ["surrecall", "init", "--adopt"], ["surrecall", "apply"])
    for name in removed[1:]:
        (tmp_path / name).unlink()
    corpus = adopted_as(empty, _adopt.Wishes("paper", ["abstract"], None, 100, "reject", ()))
    assert (corpus.vector_table, corpus.link) == ("paper_vector", "document")
    _init.init(tmp_path, corpus, force=True)
    apply(empty, tmp_path)
    assert [[row["id"] for row in empty.value(nearest, v=vector(place))] for place in asked] == lists
    assert empty.value("SELECT VALUE id FROM paper WHERE embedding != NONE") == []
    last = kinds(_advise.advise(empty, corpus, 5))
    assert not {"any-term", "split-identifiers", "vector-beside-text", "no-vector", "zero-vectors"} & set(last)


def test_nothing_is_found_where_nothing_is_wrong(empty: Database) -> None:
    corpus = Corpus("paper", "abstract", "embedding", 4)
    # each of another length, so that no two score the same
    texts = [" ".join([WORDS[i % 25], *(f"{WORDS[j % 23]}{WORDS[j % 19]}" for j in range(i + 20))]) for i in range(60)]
    build(empty, corpus, texts, WORDS[:10])
    found = _advise.advise(empty, corpus, 2)
    # a fusion of ranks ties where a document is as far up in one list as another in the other
    assert [finding.kind for finding in found.findings if finding.subject != "retriever hybrid"] == []
    assert found.warnings == []
    assert len(found.looked) == 8


def test_vectors_and_indexes_that_are_not_as_they_should_be(help_centre: Database) -> None:
    corpus = Corpus("article", "content", "embedding", 4, analyzer="help")
    clean = kinds(_advise.advise(help_centre, corpus, 3))
    faults = {"zero-vectors", "no-vector", "two-indexes", "ef-below-k", "index-not-ready"}
    assert not faults & set(clean)
    first, second = help_centre.value("SELECT VALUE id FROM article ORDER BY id LIMIT 2")
    help_centre.run("OPTION IMPORT; UPDATE $id SET embedding = [0, 0, 0, 0]", id=first)
    help_centre.run("UPDATE $id SET embedding = NONE", id=second)
    help_centre.run_as_written("DEFINE INDEX other ON article FIELDS embedding HNSW DIMENSION 4 DIST EUCLIDEAN")
    help_centre.run_as_written(
        "DEFINE FUNCTION fn::mine($v: array) { RETURN SELECT VALUE id FROM article WHERE embedding <|8,3|> $v }; "
        "DEFINE FUNCTION fn::exact($v: array) { RETURN SELECT VALUE id FROM article WHERE embedding <|8,COSINE|> $v };"
    )
    found = kinds(_advise.advise(help_centre, corpus, 3))
    assert faults - set(found) == {"index-not-ready"}
    assert found["zero-vectors"].figures == {"vectors": 1}
    assert found["no-vector"].measured == f"1 of 10 documents have no vector: article:{second.id}"
    assert found["two-indexes"].figures["indexes"] == ["article_embedding", "other"]
    assert found["ef-below-k"].subject == "fn::mine"
    (literal,) = found["ef-below-k"].figures["literals"]
    assert (literal["k"], literal["ef"]) == (8, 3)
    assert literal["returned"] <= 8
    for kind in ("zero-vectors", "two-indexes", "ef-below-k"):
        help_centre.run_as_written("\n".join(found[kind].statements))
    mended = kinds(_advise.advise(help_centre, corpus, 3))
    assert faults & set(mended) == {"no-vector"}
    assert mended["no-vector"].figures == {"documents": 2}
    assert len(help_centre.value("RETURN fn::mine([0, 1, 0, 0])")) == 8

    help_centre.run("REMOVE INDEX article_words ON article")
    missing = _advise.advise(help_centre, corpus, 3)
    assert kinds(missing)["index-not-ready"].commands == ["surrecall apply"]
    assert "words of the questions" not in missing.looked


def test_two_vector_indexes_on_a_field(empty: Database) -> None:
    """What the finding says of them: which one a search takes, and that it can be named."""
    rows = [{"id": RecordID("d", place), "v": vector(place, 24)} for place in range(400)]
    empty.run("INSERT INTO d $rows RETURN NONE", rows=rows)
    for name, setting in (("a", "EFC 2 M 2"), ("b", "EFC 200 M 24")):
        empty.run_as_written(f"DEFINE INDEX {name} ON d FIELDS v HNSW DIMENSION 24 DIST COSINE {setting}")

    def ids(index: str, way: str) -> list[Any]:
        text = f"(SELECT VALUE id FROM d {index} WHERE v <|10,12|> $q)"
        return sorted(row.id for row in empty.value(way.format(text), q=vector(1000, 24)))

    streaming, closure = "RETURN {}", "RETURN [$q].map(|$q| {})[0]"
    assert ids("", streaming) == ids("WITH INDEX b", streaming) == ids("WITH INDEX b", closure)
    assert ids("", closure) == ids("WITH INDEX a", closure) == ids("WITH INDEX a", streaming)
    assert ids("", streaming) != ids("", closure)


def test_equal_scores_on_both_sides_of_the_cut(schema: Database) -> None:
    rankings = "[{ scores: [3, 2, 2] }, { scores: [3, 0, 0] }, { scores: [3, 2, 1] }, { scores: [3, 2] }, { scores: NONE }]"
    for way in both_executors(f"RETURN fn::advise_ties({rankings}, 2)"):
        assert schema.value(way) == {"questions": 5, "tied": 2, "zero": 1}
    for way in both_executors(f"RETURN fn::advise_ties({rankings}, 1)"):
        assert schema.value(way) is None


def test_ties_of_a_retriever_are_named(help_centre: Database) -> None:
    corpus = Corpus("article", "content", "embedding", 4, analyzer="help")
    help_centre.run("UPDATE article SET content = 'one text for all' RETURN NONE")
    help_centre.run("UPDATE question SET text = 'a text' RETURN NONE")
    found = [finding for finding in _advise.advise(help_centre, corpus, 3).findings if finding.subject == "retriever bm25"]
    assert [finding.kind for finding in found] == ["ties-at-the-cut"]
    assert found[0].figures == {"questions": 8, "tied": 8, "zero": 8}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Why ERR-4012, and v2.3.1? See user_id.", ["err-4012", "user_id", "v2.3.1"]),
        ("a well-known state-of-the-art, 3.5 of 10,000 on 2024-05-01 (IL-6)", ["il-6"]),
        ("", []),
    ],
)
def test_what_is_an_identifier(schema: Database, text: str, names: list[str]) -> None:
    for way in both_executors("RETURN fn::identifiers_of([$text], 10)"):
        assert schema.value(way, text=text) == names


def test_words_of_texts(schema: Database) -> None:
    for way in both_executors("RETURN fn::frequent_words(['The cat of v2.3', 'the DOG, the'], 3)"):
        assert [(row["word"], row["texts"]) for row in schema.value(way)] == [("the", 2), ("3", 1), ("cat", 1)]


def test_a_database_that_is_somebody_s(empty: Database, tmp_path: Path) -> None:
    foreign.build(empty)
    corpus = adopted_as(empty, _adopt.Wishes("my-papers", ["full text"], None, 100, "none", ()))
    _init.init(tmp_path, corpus)
    apply(empty, tmp_path)
    empty.run(foreign.QUESTIONS)
    before = foreign.state(empty)
    found = _advise.advise(empty, corpus, 3)
    assert foreign.state(empty) == before
    assert found.warnings == []
    assert {"words of the questions", "vectors beside the texts", "ties at k = 3"} <= set(found.looked)


def test_ctrl_c_leaves_nothing(empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(empty)
    before = foreign.state(empty)

    def interrupted(*_given: object, **_more: object) -> None:
        raise KeyboardInterrupt

    for moment in ("words", "copies"):
        with monkeypatch.context() as patch:
            if moment == "words":
                # a function to count by is there
                patch.setattr(_advise._Adviser, "_each", interrupted)
            else:
                patch.setattr(_advise, "_READ", "RETURN $ids")
                patch.setattr(_advise, "_ROUNDS", type("Interrupted", (), {"__index__": interrupted})())
            with pytest.raises(KeyboardInterrupt):
                _advise.advise(empty, CORPUS, 5)
        assert foreign.state(empty) == before


def test_the_command(seeded: Run, target: Settings, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "here/surrecall.toml").write_text(
        '[corpus]\ntable = "article"\ntext = "content"\nvector = "embedding"\ndimension = 4\nanalyzer = "help"\n'
    )
    with Database(target) as database:
        database.run("UPDATE (SELECT VALUE id FROM article ORDER BY id LIMIT 1) SET embedding = NONE")
    shown = seeded("advise", "-k", "3").stdout
    assert "no-vector  article" in shown
    assert "measured: 1 of 10 documents have no vector" in shown
    assert "then: surrecall embed" in shown
    assert "looked at: indexes, vectors of the documents" in shown
    told = json.loads(seeded("advise", "-k", "3", "--json").stdout)
    assert "no-vector" in [finding["kind"] for finding in told["findings"]]
