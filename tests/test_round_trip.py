"""What is taken out and brought in elsewhere is the same to the byte when it is taken out again, in every form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from surrealdb import RecordID

from conftest import fresh_settings
from surrecall import Database, Settings, _schema
from test_cli import surrecall
from test_export import read_qrels, read_run
from test_real_collections import TREC, folder_of

# ids that become other ids as soon as somebody parses them
STRINGS = (
    "007", "7", "1e5", "125813199042576601589342522460260755", "a-b", "x⟩y'z", "⟨⟩", "`", "\\", "a|b", "|", '"', '"a"',
    "[a]", "[", "a::b",
    "b:", ":", "https://e.org/a#b", "🙂", "paper:7", "a,b", "true", "NONE", "Ä", "'", "=1+1", "#x",
    "0189f0a0-0000-7000-8000-000000000000",
)  # fmt: skip
SPACED = ("a b/c:d", "a\tb", "a\r\nb", "a\nb", "a\rb", " a", "a ", "a\u2028b", "a\u00a0b", "a\x85b", "\ufeffx", "a\x00b")
TEXT = "LF\nCRLF\r\nCR\rtab\tsep\u2028\x85 NUL\x00 \"quotes\" 'x', comma, back\\slash | bar \ufeffmark 🙂 \\n "


class Place:
    """A database and a folder, used by the commands alone."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        folder.mkdir()
        arguments = ("--table", "paper", "--field", "abstract", "--vector", "embedding", "--dimension", "3")
        self("init", *arguments)

    def __call__(self, *arguments: str) -> str:
        settings = self.settings
        env = {"SURREAL_URL": settings.url, "SURREAL_NS": settings.namespace, "SURREAL_DB": settings.database}
        if settings.user and settings.password:
            env |= {"SURREAL_USER": settings.user, "SURREAL_PASSWORD": settings.password}
        done = surrecall(*arguments, cwd=self.folder, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout


Places = Callable[[], Place]


@pytest.fixture
def places(pytestconfig: pytest.Config, engine: str, tmp_path: Path) -> Places:
    """As many empty databases with the same project as are asked for."""
    made: list[Place] = []

    def make() -> Place:
        name = f"place{len(made)}"
        embedded = Settings(f"surrealkv://{tmp_path / name}.db")
        settings = embedded if engine == "embedded" else fresh_settings(pytestconfig, engine)
        made.append(Place(settings, tmp_path / name))
        return made[-1]

    return make


def fill(place: Place, names: tuple[Any, ...], *, vectors: bool = True) -> None:
    with Database(place.settings) as database:
        _schema.apply(database, place.folder)
        vector: dict[str, Any] = {"embedding": [0.1, 1, 1e-7]} if vectors else {}
        documents = [
            {"id": RecordID("paper", name), "abstract": f"{TEXT}{name}"}
            | vector
            | ({"title": f"{name} {TEXT}"} if number % 2 else {})
            for number, name in enumerate(names)
        ]
        documents[0] |= {"title": ""}
        database.run("INSERT INTO paper $rows RETURN NONE", rows=documents)
        rows = [
            {"id": RecordID("question", name), "text": f"{TEXT}{name}", "relevant": [RecordID("paper", name)]} | vector
            for name in names
        ]
        database.run("INSERT INTO question $rows RETURN NONE", rows=rows)
        database.run(
            "UPDATE $id SET judged = $judged, anchors = $anchors, tags = $tags, set = $text, kind = $text, split = 'heldout',"
            "source = 'production', note = $text, embedding_model = $text",
            id=rows[1]["id"],
            judged=[{"document": RecordID("paper", name), "grade": number - 2} for number, name in enumerate(names)],
            anchors=[{"document": RecordID("paper", name), "phrase": f"{TEXT}{name}"} for name in names],
            tags=[TEXT, "a|b", "[", "x"],
            text=TEXT,
        )
        database.run(
            "UPDATE $id SET relevant = $all, tags = ['a|b', 'c\\\\'], anchors = $anchors;"
            "CREATE question:zz SET text = ' no answer ', answerable = false, embedding = [1, 2, 3], source = 'generated'",
            id=rows[2]["id"],
            all=[RecordID("paper", name) for name in reversed(names)],
            anchors=[{"document": RecordID("paper", names[1]), "phrase": "x|y"}],
        )


def same(one: Place, other: Place, *arguments: str) -> None:
    """An export of two places is the same."""
    first, second = one(*arguments), other(*arguments)
    assert first
    assert first == second, arguments


def test_forms_that_tell_numbers_from_texts(places: Places) -> None:
    here, there, third = places(), places(), places()
    fill(here, (*STRINGS, *SPACED, 7, 0, -3, 2**63 - 1))
    here("export", "documents", "../d.jsonl", "--vectors")
    here("export", "questions", "../q.jsonl", "--vectors")
    here("export", "questions", "../queries.jsonl", "--format", "beir-queries")
    here("export", "labels", "../l.jsonl")
    there("import", "documents", "../d.jsonl")
    there("import", "questions", "../q.jsonl")
    for arguments in (
        ("documents", "-", "--vectors"), ("questions", "-", "--vectors"), ("questions", "-"), ("contexts", "-"),
        ("labels", "-", "--format", "jsonl"), ("questions", "-", "--format", "beir-queries"), ("questions", "-", "--set", TEXT),
    ):  # fmt: skip
        same(here, there, "export", *arguments)
    assert there("import", "questions", "../q.jsonl").startswith("imported 0 questions")
    # labels by themselves: the question that nothing answers has none, and does not come along
    third("import", "documents", "../d.jsonl")
    third("import", "questions", "../queries.jsonl", "--labels", "../l.jsonl")
    same(here, third, "export", "labels", "-", "--format", "jsonl")
    here("snapshot", "../one.snapshot")
    there("snapshot", "../other.snapshot")
    last = places()
    # in a folder that has the project already, and in one that has nothing
    last("import", "snapshot", "../one.snapshot")
    same(here, last, "snapshot", "-")


def test_forms_of_text(places: Places) -> None:
    here, there = places(), places()
    fill(here, (*STRINGS, *SPACED, 12, -3))
    here("export", "documents", "../d.csv", "--vectors")
    there("import", "documents", "../d.csv")
    same(here, there, "export", "documents", "-", "--format", "csv", "--vectors")
    for form in ("csv", "tsv"):
        here("export", "questions", f"../q.{form}")
        elsewhere = places()
        elsewhere("import", "documents", "../d.csv")
        elsewhere("import", "questions", f"../q.{form}")
        for again in ("csv", "tsv"):
            same(here, elsewhere, "export", "questions", "-", "--format", again)
        for labels in ("csv", "beir"):
            same(here, elsewhere, "export", "labels", "-", "--format", labels)
    # ids of questions in these forms are texts, and so are those of the files they belong to
    there("import", "questions", "../q.csv")
    there("export", "questions", "../queries.jsonl", "--format", "beir-queries")
    for form in ("csv", "beir"):
        name = f"../l.{form if form == 'csv' else 'tsv'}"
        there("export", "labels", name, "--format", form)
        elsewhere = places()
        elsewhere("import", "documents", "../d.csv")
        elsewhere("import", "questions", "../queries.jsonl", "--labels", name)
        same(there, elsewhere, "export", "labels", "-", "--format", form)


def test_trec_qrels(places: Places) -> None:
    here, there = places(), places()
    fill(here, (*STRINGS, 12, -3))
    here("export", "documents", "../d.jsonl")
    here("export", "questions", "../queries.jsonl", "--format", "beir-queries")
    here("export", "labels", "../l.qrels")
    there("import", "documents", "../d.jsonl")
    there("import", "questions", "../queries.jsonl", "--labels", "../l.qrels")
    same(here, there, "export", "labels", "-", "--format", "trec")


@pytest.mark.parametrize("vectors", [True, False])
def test_a_collection(places: Places, vectors: bool) -> None:
    here, there = places(), places()
    names = [name for name in (*STRINGS, *SPACED, 12, -3) if not (vectors and {"\r", "\n", "\ufeff"} & set(str(name)))]
    fill(here, tuple(names), vectors=vectors)
    with Database(here.settings) as database:
        database.run("UPDATE question SET set = 'default'; UPDATE question:zz SET embedding = NONE")
    here("export", "collection", "../one")
    there("import", "collection", "../one")
    there("export", "collection", "../other")
    files = {
        path.relative_to(here.folder.parent / "one"): path.read_bytes() for path in (here.folder.parent / "one").rglob("*.*")
    }
    assert {path.name for path in files} == {"corpus.jsonl", "queries.jsonl", "test.tsv"} | (
        {"corpus.npy", "corpus.ids.txt", "queries.npy", "queries.ids.txt"} if vectors else set()
    )
    for path, content in files.items():
        assert (here.folder.parent / "other" / path).read_bytes() == content, path
    same(here, there, "export", "documents", "-")


def test_runs(places: Places) -> None:
    here, there = places(), places()
    fill(here, (*STRINGS, 7, -3)[1:])
    here("export", "documents", "../d.jsonl")
    here("export", "questions", "../q.jsonl")
    there("import", "documents", "../d.jsonl")
    there("import", "questions", "../q.jsonl")
    with Database(here.settings) as database:
        # 7 and '7' are one id in a run
        database.run("DELETE question:⟨7⟩; DELETE question WHERE relevant CONTAINS paper:⟨7⟩; DELETE paper:⟨7⟩")
    with Database(there.settings) as database:
        database.run("DELETE question:⟨7⟩; DELETE question WHERE relevant CONTAINS paper:⟨7⟩; DELETE paper:⟨7⟩")
    here("evaluate", "-k", "3,20", "-r", "bm25")
    here("export", "run", "../ours.run", "-r", "bm25")
    there("import", "run", "../ours.run", "-r", "outside", "-k", "3,20")
    text = there("export", "run", "-", "-r", "outside")
    assert text.replace(" outside\n", " bm25\n") == (here.folder.parent / "ours.run").read_text()
    here("import", "run", "../ours.run", "-r", "outside", "-k", "3,20")
    same(here, there, "export", "run", "-", "-r", "outside")
    figures = [place("history", "-r", name, "--json") for place, name in ((here, "bm25"), (there, "outside"))]
    first, second = (
        [{key: run[key] for key in ("k", "ndcg", "ap", "rr", "recall", "p")} for run in json.loads(text)] for text in figures
    )
    assert first == second


def test_the_data_of_trec_eval(places: Places) -> None:
    folder, place = folder_of("../trec"), places()
    qrels, run = (folder / name for name in ("qrels.test", "results.test"))
    judged = [line.split() for line in qrels.read_text().splitlines() if line.strip()]
    ranked = [line.split() for line in run.read_text().splitlines()]
    for name, ids in (("docs", [row[2] for row in (*judged, *ranked)]), ("topics", [row[0] for row in judged])):
        text = "".join(json.dumps({"id": key, "text": f"text of {key}"}) + "\n" for key in dict.fromkeys(ids))
        (place.folder / f"{name}.jsonl").write_text(text)
    place("import", "documents", "docs.jsonl")
    place("import", "questions", "topics.jsonl", "--labels", str(qrels))
    place("import", "run", str(run), "-r", "STANDARD", "-k", "10,100,1000")
    place("export", "labels", "out.qrels")
    place("export", "run", "out.run", "-r", "STANDARD")
    assert sorted(line.split() for line in (place.folder / "out.qrels").read_text().splitlines()) == sorted(judged)
    # its runs have more documents than one of them is asked for
    found = read_run((place.folder / "out.run").read_text())
    assert {question: len(documents) for question, documents in found.items()} == Counter(row[0] for row in ranked)
    wanted = {f"{name}_{k}" for name in TREC.values() for k in (10, 100, 1000)}
    figures = [
        pytrec_eval.RelevanceEvaluator(read_qrels(labels), wanted).evaluate(read_run(rankings))
        for labels, rankings in (
            ((place.folder / "out.qrels").read_text(), (place.folder / "out.run").read_text()),
            ("".join(f"{' '.join(row)}\n" for row in judged), "".join(f"{' '.join(row)}\n" for row in ranked)),
        )
    ]
    assert figures[0] == figures[1]
    stored = {row["k"]: row for row in json.loads(place("history", "--json"))}
    for k, row in stored.items():
        for ours, theirs in TREC.items():
            mean = sum(topic[f"{theirs}_{k}"] for topic in figures[0].values()) / len(figures[0])
            assert row[ours] == pytest.approx(mean, abs=1e-6)
