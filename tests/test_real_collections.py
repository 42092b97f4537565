"""Real collections of the field: SciFact, a documentation set, and long documents whose labels are spans.

Of SciFact 60 questions are asked; SURRECALL_SCIFACT_QUESTIONS=300 asks all.

They are not part of this repository. SURRECALL_COLLECTIONS names the folder that holds them, and then they must be there.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bm25s
import numpy
import pytest
import pytrec_eval
from surrealdb import RecordID

import chunked
from conftest import ROOT, fresh_settings
from surrecall import (
    Database,
    Evaluation,
    Options,
    _adopt,
    _collection,
    _diagnosis,
    _import_questions,
    _import_run,
    _ingest,
    _init,
    evaluate,
)
from surrecall._corpus import Corpus
from surrecall._export import runs as export_runs
from surrecall._export.output import Output
from test_adopt import nobody

CUTOFFS = (10, 100)
# the whole, 300, is run by hand
QUESTIONS = int(os.environ.get("SURRECALL_SCIFACT_QUESTIONS", "60"))
TREC = {"recall": "recall", "p": "P", "hit": "success", "ap": "map_cut", "ndcg": "ndcg_cut"}


def folder_of(name: str) -> Path:
    told = os.environ.get("SURRECALL_COLLECTIONS")
    folder = Path(told or ROOT.parent / "shared" / "collections") / name
    if not folder.is_dir():
        if told:
            pytest.fail(f"SURRECALL_COLLECTIONS has no {name}")
        pytest.skip(f"the collection {name} is not here; SURRECALL_COLLECTIONS names the folder that holds it")
    return folder


def sliced(folder: Path, into: Path, questions: int) -> Path:
    """The collection with the labels of its first questions only; the others are left out for want of a label."""
    lines = (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()
    names = list(dict.fromkeys(line.split("\t")[0] for line in lines[1:]))[:questions]
    kept = [line for line in lines[1:] if line.split("\t")[0] in names]
    (into / "qrels.tsv").write_text("\n".join([lines[0], *kept]), encoding="utf-8")
    for name in ("docs.jsonl", "queries.jsonl", "embeddings"):
        (into / name).symlink_to(folder / name)
    return into


class Loaded:
    """A collection in a database, evaluated."""

    def __init__(self, database: Database, folder: Path, project: Path) -> None:
        self.database = database
        self.collection = _collection.read(folder)
        corpus = Corpus("paper", "abstract", "embedding", 384)
        _init.init(project, corpus)
        _ingest.ingest(database, project, corpus, self.collection, folder.name, "default")
        self.evaluation: Evaluation = evaluate(database, Options(CUTOFFS))
        self.runs = {(row["retriever"], row["k"]): row for row in self.evaluation.runs}


@pytest.fixture(scope="module")
def scifact(pytestconfig: pytest.Config, engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = sliced(folder_of("scifact"), tmp_path_factory.mktemp("scifact"), QUESTIONS)
    with Database(fresh_settings(pytestconfig, engine)) as database:
        yield Loaded(database, folder, tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def documentation(pytestconfig: pytest.Config, engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = folder_of("anthropic-docs-rag")
    with Database(fresh_settings(pytestconfig, engine)) as database:
        yield Loaded(database, folder, tmp_path_factory.mktemp("project"))


def labels_of(loaded: Loaded) -> dict[str, dict[str, int]]:
    return {
        str(question.id): {str(name): int(grade) for name, grade in question.labels.items()}
        for question in loaded.collection.questions
    }


def exact(loaded: Loaded) -> dict[str, dict[str, float]]:
    """The ranking by exact cosine, as a run."""
    ids = [str(document.id) for document in loaded.collection.documents]
    documents = numpy.array([document.vector for document in loaded.collection.documents])
    documents /= numpy.linalg.norm(documents, axis=1, keepdims=True)
    runs: dict[str, dict[str, float]] = {}
    for question in loaded.collection.questions:
        scores = documents @ numpy.array(question.vector)
        runs[str(question.id)] = {ids[index]: float(scores[index]) for index in numpy.argsort(-scores)[:100]}
    return runs


def scored(run: dict[str, dict[str, float]], labels: dict[str, dict[str, int]]) -> dict[str, float]:
    """pytrec_eval's means."""
    wanted = {f"{name}_{k}" for name in TREC.values() for k in CUTOFFS}
    topics = pytrec_eval.RelevanceEvaluator(labels, wanted).evaluate(run)
    return {measure: sum(topic[measure] for topic in topics.values()) / len(labels) for measure in wanted}


def exported(loaded: Loaded, retriever: str) -> dict[str, dict[str, float]]:
    """The stored rankings, as a run; an empty one by one unjudged id, since a run leaves empty ones out."""
    rows: list[dict[str, Any]] = loaded.database.value(
        "SELECT question, ranking FROM eval_answer WHERE evaluation = $id AND retriever = $name",
        id=loaded.evaluation.row["id"],
        name=retriever,
    )
    return {
        row["question"].id: {document.id: 1000.0 - rank for rank, document in enumerate(row["ranking"])} or {"none": 1.0}
        for row in rows
    }


def equals_trec_eval(loaded: Loaded) -> None:
    labels = labels_of(loaded)
    for retriever in ("bm25", "vector", "hybrid"):
        theirs = scored(exported(loaded, retriever), labels)
        for k in CUTOFFS:
            row = loaded.runs[retriever, k]
            assert row["questions"] == len(labels)
            for ours, measure in TREC.items():
                assert row[ours] == pytest.approx(theirs[f"{measure}_{k}"], abs=1e-6), f"{retriever} {ours}@{k}"


def test_scifact_every_stored_mean_equals_trec_eval_on_the_exported_rankings(scifact: Loaded) -> None:
    assert scifact.evaluation.row["status"] == "complete"
    assert scifact.evaluation.warnings == []
    equals_trec_eval(scifact)


def test_scifact_vector_search_is_as_good_as_exact_search(scifact: Loaded) -> None:
    best = scored(exact(scifact), labels_of(scifact))
    assert scifact.runs["vector", 10]["ndcg"] == pytest.approx(best["ndcg_cut_10"], abs=0.005)
    assert scifact.runs["vector", 100]["recall"] == pytest.approx(best["recall_100"], abs=0.005)


def test_scifact_the_fusion_is_better_than_both_halves(scifact: Loaded) -> None:
    hybrid = scifact.runs["hybrid", 10]["ndcg"]
    assert hybrid > scifact.runs["bm25", 10]["ndcg"]
    assert hybrid > scifact.runs["vector", 10]["ndcg"]


def test_scifact_both_executors_give_the_same_lists(scifact: Loaded) -> None:
    questions = scifact.database.value("SELECT VALUE id FROM question ORDER BY id LIMIT 4")
    for retriever in ("bm25", "vector", "hybrid"):
        equal = scifact.database.value(
            "LET $one = (SELECT VALUE fn::ranking($name, id, 100).ids FROM $questions);"
            "LET $other = $questions.map(|$id| fn::ranking($name, $id, 100).ids);"
            "RETURN $one = $other;",
            name=retriever,
            questions=questions,
        )
        assert equal is True, retriever


def test_scifact_a_run_of_bm25s_stands_beside_our_bm25_question_by_question(scifact: Loaded, tmp_path: Path) -> None:
    ids = [document.id for document in scifact.collection.documents]
    texts = {question.id: question.text for question in scifact.collection.questions}
    quiet = {"show_progress": False}
    index = bm25s.BM25()
    corpus = [document.text for document in scifact.collection.documents]
    index.index(bm25s.tokenize(corpus, stopwords="en", **quiet), **quiet)
    found, scores = index.retrieve(bm25s.tokenize(list(texts.values()), stopwords="en", **quiet), k=100, **quiet)
    path = tmp_path / "bm25s.trec"
    path.write_text(
        "".join(
            f"{name} Q0 {ids[place]} {rank} {score:.6f} bm25s\n"
            for name, places, values in zip(texts, found, scores, strict=True)
            for rank, (place, score) in enumerate(zip(places, values, strict=True), start=1)
            if score > 0
        )
    )
    paper = Corpus("paper", "abstract", "embedding", 384)
    told = _import_run.import_run(scifact.database, paper, _import_run.Options(path, "bm25s", CUTOFFS))
    assert told.evaluation is not None
    assert (told.evaluation.row["status"], told.unknown_documents) == ("complete", 0)
    assert told.evaluation.runs[0]["ndcg"] == pytest.approx(scifact.runs["bm25", 10]["ndcg"], abs=0.1)
    verdicts = scifact.database.value(
        "LET $theirs = (SELECT question, fn::score(ranking, labels, 10).ndcg AS ndcg"
        "  FROM eval_answer WHERE evaluation = $theirs);"
        "LET $ours = (SELECT <string> question AS question, fn::score(ranking, labels, 10).ndcg AS ndcg"
        "  FROM eval_answer WHERE evaluation = $ours AND retriever = 'bm25');"
        "LET $by_question = object::from_entries($ours.map(|$row| [$row.question, $row.ndcg]));"
        "LET $pairs = (SELECT ndcg AS theirs, $by_question[<string> question] AS ours FROM $theirs);"
        "RETURN { questions: $pairs.len(), lacking: $pairs[WHERE ours = NONE].len(), wins: $pairs[WHERE theirs > ours].len(),"
        " losses: $pairs[WHERE theirs < ours].len(), ties: $pairs[WHERE theirs = ours].len() }",
        theirs=told.evaluation.row["id"],
        ours=scifact.evaluation.row["id"],
    )
    assert (verdicts["questions"], verdicts["lacking"]) == (len(texts), 0)
    assert verdicts["wins"] + verdicts["losses"] + verdicts["ties"] == len(texts)
    assert verdicts["ties"] < len(texts)
    history = scifact.database.value("SELECT VALUE retriever FROM eval_run GROUP BY retriever ORDER BY retriever")
    assert history == ["bm25", "bm25s", "hybrid", "vector"]


FOREIGN = """
DEFINE ANALYZER own_english TOKENIZERS class FILTERS lowercase, ascii, snowball(english);
DEFINE TABLE paper SCHEMAFULL;
DEFINE FIELD abstract ON paper TYPE string;
DEFINE FIELD vec ON paper TYPE array<float>;
"""
INDEXES = """
DEFINE INDEX find_words ON paper FIELDS abstract FULLTEXT ANALYZER own_english BM25;
DEFINE INDEX find_near ON paper FIELDS vec HNSW DIMENSION 384 DIST COSINE;
"""


def test_scifact_in_a_foreign_schema_has_the_same_figures(scifact: Loaded, empty: Database, engine: str, tmp_path: Path) -> None:
    """A database that holds SciFact already, under names of its own: init --adopt, import of questions and labels, evaluate."""
    empty.run(FOREIGN)
    rows = [
        {"id": RecordID("paper", document.id), "abstract": document.text, "vec": document.vector}
        for document in scifact.collection.documents
    ]
    for start in range(0, len(rows), 500):
        empty.run("INSERT INTO paper $rows RETURN NONE", rows=rows[start : start + 500])
    for index in INDEXES.strip().splitlines():
        empty.run(index.replace(";", " CONCURRENTLY;") if engine == "server" else index)
    while engine == "server" and any(
        empty.value(f"INFO FOR INDEX {name} ON paper")["building"]["status"] != "ready" for name in ("find_words", "find_near")
    ):
        time.sleep(0.1)
    corpus = _adopt.adopt(empty, _adopt.Wishes(), nobody).corpus
    assert (corpus.table, corpus.texts, corpus.vector, corpus.dimension) == ("paper", ("abstract",), "vec", 384)
    _init.init(tmp_path, corpus)
    # a third of the questions stands for all; by hand it is all of them
    folder = sliced(folder_of("scifact"), tmp_path, QUESTIONS if QUESTIONS > 60 else 20)
    vectors = next(folder.glob("embeddings/queries*.npy"))
    asked = _import_questions.Options(
        folder / "queries.jsonl", "jsonl", folder / "qrels.tsv", vectors=vectors, ids=folder / "embeddings/queries.ids.txt"
    )
    imported = _import_questions.import_questions(empty, tmp_path, corpus, asked)
    evaluation = evaluate(empty, Options(CUTOFFS))
    assert (evaluation.row["status"], evaluation.warnings) == ("complete", [])
    means = (
        "LET $answers = (SELECT ranking, labels FROM eval_answer"
        "  WHERE evaluation = $evaluation AND retriever = $name AND question IN $questions);"
        "RETURN math::mean($answers.map(|$answer| fn::score($answer.ranking, $answer.labels, $k)[$metric]));"
    )
    questions = empty.value("SELECT VALUE id FROM question ORDER BY id")
    assert len(questions) == imported.questions
    for name in ("bm25", "vector", "hybrid"):
        for metric, k in (("ndcg", 10), ("recall", 10), ("recall", 100)):
            given = {"name": name, "metric": metric, "k": k, "questions": questions}
            here = empty.value(means, evaluation=evaluation.row["id"], **given)
            there = scifact.database.value(means, evaluation=scifact.evaluation.row["id"], **given)
            # the graph of the vector index is another one in each database
            assert here == pytest.approx(there, abs=1e-12 if name == "bm25" else 0.01), (name, metric, k)


def test_scifact_is_whole(scifact: Loaded) -> None:
    assert scifact.database.value("RETURN fn::corpus_size()") == 5183
    assert scifact.database.value("RETURN fn::check()") == []


def test_documentation_figures(documentation: Loaded) -> None:
    equals_trec_eval(documentation)
    assert documentation.runs["vector", 10]["ndcg"] == pytest.approx(0.684, abs=0.005)
    hybrid = documentation.runs["hybrid", 10]["ndcg"]
    assert hybrid > documentation.runs["bm25", 10]["ndcg"]
    assert hybrid > documentation.runs["vector", 10]["ndcg"]


def every_miss_has_a_kind(loaded: Loaded) -> None:
    told = _diagnosis.misses(loaded.database, loaded.evaluation.row["id"], "hybrid", 10, None, lambda _done, _all: None)
    kinds = loaded.database.value("RETURN fn::miss_kinds().kind")
    assert {row["kind"] for row in told["rows"]} <= set(kinds)
    # as many as the stored answers say: labels that are not among the first ten
    missed = loaded.database.value(
        "SELECT VALUE labels.map(|$label| ranking.find_index($label.document) ?? 100).filter(|$at| $at >= 10).len() "
        "FROM eval_answer WHERE evaluation = $evaluation AND retriever = 'hybrid'",
        evaluation=loaded.evaluation.row["id"],
    )
    assert told["summary"]["missed"] == len(told["rows"]) == sum(missed) > 0
    assert sum(row["labels"] for row in told["summary"]["kinds"]) == sum(missed)


def test_scifact_every_miss_of_the_fusion_has_a_kind(scifact: Loaded) -> None:
    every_miss_has_a_kind(scifact)


def test_documentation_every_miss_of_the_fusion_has_a_kind(documentation: Loaded) -> None:
    every_miss_has_a_kind(documentation)


# the grades of Cranfield are 1 to 4; by hand all 225 questions
CRANFIELD = int(os.environ.get("SURRECALL_CRANFIELD_QUESTIONS", "60"))


def test_cranfield_the_table_by_retriever_equals_trec_eval_on_the_exported_run(
    pytestconfig: pytest.Config, engine: str, tmp_path: Path
) -> None:
    (tmp_path / "slice").mkdir()
    folder = sliced(folder_of("cranfield"), tmp_path / "slice", CRANFIELD)
    # two of its documents are empty, which an import refuses
    text = (folder / "docs.jsonl").read_text(encoding="utf-8")
    (folder / "docs.jsonl").unlink()
    (folder / "docs.jsonl").write_text(text.replace('"title": "", "text": ""', '"title": "", "text": "empty"'), encoding="utf-8")
    with Database(fresh_settings(pytestconfig, engine)) as database:
        loaded = Loaded(database, folder, tmp_path)
        labels = labels_of(loaded)
        assert (len(labels), loaded.evaluation.row["scale"], loaded.evaluation.warnings) == (CRANFIELD, 4, [])
        uncut = {"rr": "recip_rank", "rprec": "Rprec", "bpref": "bpref"}
        for retriever in ("bm25", "vector", "hybrid"):
            path = tmp_path / f"{retriever}.run"
            with Output() as output:
                export_runs.export(database, export_runs.Form.TREC, output.lines(path), retriever, None, None, errors=False)
            exported_run: dict[str, dict[str, float]] = {name: {"none": 1.0} for name in labels}
            for line in path.read_text(encoding="utf-8").splitlines():
                topic, _, document, _, score, _ = line.split()
                exported_run[topic].pop("none", None)
                exported_run[topic][document] = float(score)
            for rel in (1, 3):
                means = database.value(
                    "RETURN fn::means($id, $name, { k: $cutoffs, rel: $rel })",
                    id=loaded.evaluation.row["id"],
                    name=retriever,
                    cutoffs=list(CUTOFFS),
                    rel=rel,
                )
                wanted = {f"{name}_{k}" for name in TREC.values() for k in CUTOFFS} | {*uncut.values()}
                topics = pytrec_eval.RelevanceEvaluator(labels, wanted, relevance_level=rel).evaluate(exported_run)
                theirs = {name: sum(topic[name] for topic in topics.values()) / len(labels) for name in wanted}
                for row in means:
                    for ours, measure in TREC.items():
                        assert row[ours] == pytest.approx(theirs[f"{measure}_{row['k']}"], abs=1e-9), (retriever, rel, ours)
                for ours, measure in uncut.items():
                    # no list is longer than 100, and nobody has more labels
                    assert means[-1][ours] == pytest.approx(theirs[measure], abs=1e-9), (retriever, rel, ours)
                assert rel != 1 or all(row[name] == loaded.runs[retriever, row["k"]][name] for row in means for name in TREC)
        if CRANFIELD == 225:
            # the collection's own table: exact cosine .500, BM25 .516, their fusion .554
            assert loaded.runs["vector", 10]["ndcg"] == pytest.approx(0.4996, abs=0.005)
            assert loaded.runs["bm25", 10]["ndcg"] == pytest.approx(0.516, abs=0.05)
            assert loaded.runs["hybrid", 10]["ndcg"] > loaded.runs["vector", 10]["ndcg"]


class Cut:
    """Long documents, questions whose labels are spans of them, and the documents in six tables of chunks."""

    def __init__(self, database: Database, folder: Path, project: Path) -> None:
        self.database = database
        self.collection = chunked.read(folder)
        self.sample = list(self.collection.spans)[::30]
        chunked.load(database, self.collection, project, self.sample)
        self.golden_set = database.value("RETURN fn::golden_set_hash('default')")
        for chunking in chunked.CHUNKINGS:
            chunked.cut(database, self.collection, chunking)

    def holders(self, span: tuple[str, int, int], chunking: chunked.Chunking) -> list[str]:
        """Ids of the chunks that hold a span whole; white space at its ends is no part of it."""
        name, start, end = span
        text = self.collection.texts[name]
        phrase = text[start:end]
        start += len(phrase) - len(phrase.lstrip())
        end -= len(phrase) - len(phrase.rstrip())
        return [
            f"{name}_{at:05}"
            for at, begins in enumerate(chunking.starts(text))
            if begins <= start and end <= begins + chunking.size
        ]

    def times(self) -> Callable[[str], int]:
        """How often a phrase stands in all documents, white space, quotes, dashes and case aside."""
        plain = str.maketrans("‘’‚‛“”„‟–—‐‑−", "''''\"\"\"\"-----")

        def form(text: str) -> str:
            return " ".join(text.translate(plain).lower().split())

        texts = [form(text) for text in self.collection.texts.values()]
        return functools.cache(lambda phrase: sum(text.count(form(phrase)) for text in texts))


@pytest.fixture(scope="module")
def cut(pytestconfig: pytest.Config, engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cut]:
    folder = folder_of("chroma-chunking")
    with Database(fresh_settings(pytestconfig, engine)) as database:
        yield Cut(database, folder, tmp_path_factory.mktemp("project"))


def test_chroma_every_span_is_found_split_or_named_in_every_chunking(cut: Cut) -> None:
    """790 spans in six chunkings, against the characters at which they stand."""
    times = cut.times()
    spans = {name: cut.collection.spans[name] for name in cut.collection.spans}
    questions = [RecordID("question", name) for name in spans]
    for chunking in chunked.CHUNKINGS:
        rows = cut.database.value("RETURN fn::anchors_placed($table, $questions)", table=chunking.table, questions=questions)
        told = {row["question"].id: row["anchors"] for row in rows}
        assert set(told) == set(spans)
        verdicts = Counter(anchor["verdict"] for anchors in told.values() for anchor in anchors)
        assert verdicts.total() == 790
        assert set(verdicts) == {"found", "split", "ambiguous"}, verdicts
        for name, anchors in told.items():
            for span, anchor in zip(spans[name], anchors, strict=True):
                found = [chunk.id for chunk in anchor["chunks"]]
                whole = cut.holders(span, chunking)
                if times(cut.collection.phrase(span)) > 1:
                    assert anchor["verdict"] == "ambiguous", (chunking, span)
                elif whole:
                    assert (anchor["verdict"], found) == ("found", whole), (chunking, span)
                else:
                    assert anchor["verdict"] == "split", (chunking, span)
                    covers(span, chunking, found)


def covers(span: tuple[str, int, int], chunking: chunked.Chunking, found: list[str]) -> None:
    """Whether chunks hold a span together, none of them for nothing."""
    _, start, end = span
    step = chunking.size - chunking.overlap
    places = [(int(chunk.rpartition("_")[2]) * step, int(chunk.rpartition("_")[2]) * step + chunking.size) for chunk in found]
    assert places[0][0] <= start
    assert places[-1][1] >= end
    assert all(before[1] >= after[0] for before, after in itertools.pairwise(places))
    assert all(before[1] < after[0] + 2 * chunking.overlap + 1 for before, after in zip(places, places[2:], strict=False))


def test_chroma_one_golden_set_scores_two_chunkings(cut: Cut) -> None:
    fine, coarse = chunked.CHUNKINGS[3], chunked.CHUNKINGS[4]
    chunked.search(cut.database, fine, coarse)
    evaluation = evaluate(cut.database, Options([5], question_set="sample"))
    assert cut.database.value("RETURN fn::golden_set_hash('default')") == cut.golden_set
    for chunking in (fine, coarse):
        answers = cut.database.value(
            "SELECT question, ranking, labels, anchors, answerable FROM eval_answer WHERE retriever = $name ORDER BY question",
            name=chunking.table,
        )
        assert [row["question"].id for row in answers] == sorted(f"sample_{name}" for name in cut.sample)
        scored = [row for row in answers if row["answerable"]]
        assert len(scored) > 0.6 * len(answers)
        shares = [sum(label["document"] in row["ranking"][:5] for label in row["labels"]) / len(row["labels"]) for row in scored]
        run = next(row for row in evaluation.runs if (row["retriever"], row["k"]) == (chunking.table, 5))
        assert run["recall"] == pytest.approx(sum(shares) / len(shares), abs=1e-9)
        assert run["recall"] > 0.3
    told = cut.database.value(
        "RETURN fn::compare({ sides: $sides, set: 'sample', k: 5, resamples: 100 })", sides=[fine.table, coarse.table]
    )["comparisons"][0]
    assert told["questions"] + len(told["excluded"]["unlabelled"]) == len(cut.sample)
    assert told["excluded"]["relabelled"] == []
