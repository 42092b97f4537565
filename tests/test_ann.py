"""The vector index held against exact search: what it loses, by ef and by index, and nothing of it left behind."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

import foreign
from surql_cases import both_executors
from surrecall import Database, DataError, UsageError, _ann, _files
from surrecall._corpus import Corpus
from test_cli import Run, run, seeded, target  # noqa: F401

DIMENSION = 24
CORPUS = Corpus("paper", "abstract", "embedding", DIMENSION)
WEAK = "DEFINE INDEX OVERWRITE paper_embedding ON paper FIELDS embedding HNSW DIMENSION 24 DIST COSINE EFC 2 M 2"


def vectors(number: int, seed: int) -> list[list[float]]:
    source = random.Random(seed)
    return [[source.gauss(0, 1) for _ in range(DIMENSION)] for _ in range(number)]


def papers(database: Database, corpus: Corpus = CORPUS) -> None:
    """600 papers at random places, and 12 questions whose label is the nearest of all."""
    files = [*_files.core({}), *corpus.render()]
    database.run("\n".join(file.text for file in files if not file.name.endswith(".toml")))
    rows = [{"id": RecordID("paper", i), "abstract": f"paper {i}", "embedding": v} for i, v in enumerate(vectors(600, 1))]
    database.run("INSERT INTO paper $rows RETURN NONE", rows=rows)
    for place, asked in enumerate(vectors(12, 2)):

        def near(row: dict[str, Any], asked: list[float] = asked) -> float:
            return sum(map(math.prod, zip(row["embedding"], asked, strict=True))) / math.dist(row["embedding"], [0] * DIMENSION)

        label = max(rows, key=near)["id"]
        database.run(
            "CREATE question CONTENT { id: $id, text: 'which', embedding: $v, relevant: [$label] }",
            id=place,
            v=asked,
            label=label,
        )


def test_a_weak_index_loses_what_a_larger_ef_or_another_index_finds(empty: Database) -> None:
    papers(empty)
    empty.run(WEAK)
    before = foreign.state(empty)
    done: list[tuple[int, int]] = []
    found = _ann.compare(empty, CORPUS, _ann.Options(5, efs=[5, 600], ms=[24], efcs=[200]), lambda *at: done.append(at))
    assert foreign.state(empty) == before
    rows = {(row["index"], row["ef"]): row for row in found.rows}
    assert set(rows) == {(index, ef) for index in ("M 2, EFC 2", "M 24, EFC 200") for ef in (5, 150, 600)}
    # exact search has every label first, by how they were made
    assert found.exact["recall"] == found.exact["overlap"] == 1
    weak, now, better = rows["M 2, EFC 2", 5], rows["M 2, EFC 2", 150], rows["M 24, EFC 200", 150]
    assert weak["overlap"] < 0.5
    assert weak["overlap"] <= now["overlap"] < 0.99 <= better["overlap"]
    assert better["recall"] == 1
    assert [key for key, row in rows.items() if row["in_force"]] == [("M 2, EFC 2", 150)]
    assert found.advice.startswith("ef 150, as it is, finds 0.")
    assert "take M 24, EFC 200 ef " in found.advice
    # twelve questions: exact, two indexes at three ef, and the copy
    assert done[-1] == (12 * 7 + 600, 12 * 7 + 600)
    assert all(0 < row["median"] <= row["p95"] for row in found.rows)


def test_an_index_that_loses_nothing(help_centre: Database) -> None:
    corpus = Corpus("article", "content", "embedding", 4, analyzer="help")
    found = _ann.compare(help_centre, corpus, _ann.Options(3))
    # recall@3 of vector search over the help centre
    assert all(row["overlap"] == 1 and row["recall"] == pytest.approx(0.875) for row in found.rows)
    assert "the index loses nothing, what is missed here the embedding or the labels lose" in found.advice


def test_ctrl_c_leaves_nothing(empty: Database) -> None:
    papers(empty)
    before = foreign.state(empty)
    for moment in (1, 12 * 4 + 1, 12 * 4 + 500, 12 * 4 + 600 + 1):

        def stop(done: int, _all: int, moment: int = moment) -> None:
            if done >= moment:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            _ann.compare(empty, CORPUS, _ann.Options(5, ms=[8]), stop)
        assert foreign.state(empty) == before


@pytest.mark.parametrize("way", ["link", "linked_by"])
def test_vectors_of_another_table_lead_to_their_documents(empty: Database, way: str) -> None:
    papers(empty)
    empty.run(f"""
        DEFINE TABLE near SCHEMALESS;
        DEFINE INDEX near_v ON near FIELDS v HNSW DIMENSION {DIMENSION} DIST COSINE;
        INSERT INTO near (
          SELECT type::record('near', record::id(id)) AS id, id AS document, embedding AS v FROM paper
        ) RETURN NONE;
        REMOVE INDEX paper_embedding ON paper;
        REMOVE FIELD embedding ON paper;
        DEFINE FIELD own ON paper TYPE option<record<near>>;
        UPDATE paper SET own = type::record('near', record::id(id)), embedding = NONE RETURN NONE;
    """)
    corpus = Corpus(
        "paper",
        "abstract",
        "v",
        DIMENSION,
        adopted=True,
        text_indexes=["paper_words"],
        vector_index="near_v",
        vector_table="near",
        link="document" if way == "link" else None,
        linked_by="own" if way == "linked_by" else None,
    )
    empty.run("\n".join(file.text for file in corpus.render() if not file.name.endswith(".toml")))
    found = _ann.compare(empty, corpus, _ann.Options(5, efs=[600], ms=[24]))
    assert [row["recall"] for row in found.rows if row["ef"] == 600] == [1, 1]
    assert found.exact["recall"] == 1


def test_equal_distances_are_no_loss(schema: Database) -> None:
    exact = "{ sources: [a:1, a:2], distances: [0.1, 0.5], documents: [a:1, a:2], took: 1 }"
    found = "{ sources: [a:1, a:3], distances: [0.1, 0.50000001], documents: [a:1, a:3], took: 2 }"
    for way in both_executors(f"RETURN fn::ann_answer({found}, {exact}, [a:2], 2)"):
        assert schema.value(way) == {"overlap": 1, "recall": 0, "exact": 1, "short": False, "took": 2}
    farther = found.replace("0.50000001", "0.51")
    for way in both_executors(f"RETURN fn::ann_answer({farther}, {exact}, [a:2], 2).overlap"):
        assert schema.value(way) == 0.5


def test_literals_of_a_search(schema: Database) -> None:
    text = "SELECT 1 FROM a WHERE v <|10, 40|> $q; SELECT 1 FROM a WHERE v <|5,COSINE|> $q AND w <|7,9|> $r"
    for way in both_executors("RETURN fn::knn_literals($text)"):
        assert schema.value(way, text=text) == [{"k": 10, "ef": 40}, {"k": 7, "ef": 9}]
    assert schema.value("RETURN fn::knn_literals('')") == []


def test_what_can_not_be_compared(help_centre: Database) -> None:
    with pytest.raises(UsageError, match="has no vector index"):
        _ann.compare(help_centre, Corpus("article", "content"), _ann.Options(3))
    corpus = Corpus("article", "content", "embedding", 4, analyzer="help")
    help_centre.run("UPDATE question:signin SET embedding = NONE")
    assert _ann.compare(help_centre, corpus, _ann.Options(3)).warnings == ["1 questions have no vector, and are in no figure"]
    help_centre.run("UPDATE question SET embedding = NONE")
    with pytest.raises(DataError, match="no question of the golden set default has a vector"):
        _ann.compare(help_centre, corpus, _ann.Options(3))


def test_the_command(seeded: Run, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "here/surrecall.toml").write_text(
        '[corpus]\ntable = "article"\ntext = "content"\nvector = "embedding"\ndimension = 4\nanalyzer = "help"\n'
    )
    shown = seeded("ann", "-k", "3", "--ef", "3", "--m", "4").stdout
    assert "at k = 3, 8 questions" in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 80
    told = json.loads(seeded("ann", "-k", "3", "--json").stdout)
    assert [row["in_force"] for row in told["rows"]].count(True) == 1
    assert "ef must be a whole number from 1 to 1000000, got 'x'" in seeded("ann", "--ef", "x", code=2).stderr
