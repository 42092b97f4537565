"""Rankings of outside systems: trec_eval's order and figures, in one history with our own, whole or not at all."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytrec_eval
from surrealdb import RecordID

from conftest import fresh_settings
from surrecall import (
    Database,
    DataError,
    Options,
    SurrecallError,
    UsageError,
    _import_run,
    _ingest,
    _run_file,
    _schema,
    evaluate,
    resume,
)
from surrecall._export import runs
from surrecall._export.output import Output
from surrecall._import_run import ImportedRun, import_run
from test_cli import surrecall
from test_data_in import CORPUS, Home, filled, home, objects, refused
from test_real_collections import folder_of

__all__ = ["filled", "home"]
# ours at a cutoff: trec_eval's name for the same
AT_A_CUTOFF = {"recall": "recall_", "p": "P_", "hit": "success_", "ap": "map_cut_", "ndcg": "ndcg_cut_"}
# the last with p = 0.9, as trec_eval has it
UNCUT = {"rr": "recip_rank", "ap": "map", "ndcg": "ndcg", "bpref": "bpref", "rprec": "Rprec", "rbp": "rbp"}


def run(
    home: Home, text: str | bytes, retriever: str = "outside", cutoffs: tuple[int, ...] = (1, 3), **options: Any
) -> ImportedRun:
    path = home.write(options.pop("name", "run.trec"), text)
    return import_run(home.database, CORPUS, _import_run.Options(path, retriever, cutoffs, **options))


def answers(home: Home) -> dict[Any, list[Any]]:
    rows = home.database.value("SELECT question, ranking FROM eval_answer")
    return {row["question"].id: [document.id for document in row["ranking"]] for row in rows}


def counts(home: Home) -> list[int]:
    return [
        home.database.value(f"RETURN count(SELECT VALUE id FROM {table})") for table in ("evaluation", "eval_answer", "eval_run")
    ]


def trec_figures(path: Path) -> dict[tuple[str, str], str]:
    """Measure and topic (or 'all') to the figure as trec_eval printed it."""
    fields = (line.split() for line in path.read_text().splitlines())
    return {(parts[0], parts[1]): parts[2] for parts in fields if len(parts) == 3}


def topics_of(home: Home, qrels: str) -> Path:
    """trec_eval's own topics and labels, and every document that its files name; the folder they are in."""
    folder = folder_of("../trec")
    lines = [line.split() for line in (folder / "results.test").read_text().splitlines()]
    labels = [line.split() for line in (folder / qrels).read_text().splitlines() if line.strip()]
    documents = dict.fromkeys([line[2] for line in lines] + [line[2] for line in labels])
    home.documents("docs.jsonl", objects(*({"id": name, "text": f"text {name}"} for name in documents)))
    questions = objects(*({"id": name, "text": f"topic {name}"} for name in dict.fromkeys(line[0] for line in labels)))
    told = home.questions("topics.jsonl", questions, labels=folder / qrels)
    assert (told.questions, told.labels) == (3, len(labels))
    return folder


def ours(home: Home, evaluation: Any, cutoffs: list[int], rel: int = 1) -> dict[tuple[str, str], float]:
    """Measure as trec_eval names it and topic (or 'all') to our figure."""
    figures: dict[tuple[str, str], float] = {}
    options = {"k": cutoffs, "rel": rel, "p": 0.9}
    name = home.database.value("SELECT VALUE calls[0].retriever FROM ONLY $id", id=evaluation)
    means = home.database.value("RETURN fn::means($id, $name, $options)", id=evaluation, name=name, options=options)
    for row in means:
        assert row["questions"] == 3
    topics = home.database.value(
        "SELECT <string> record::id(question) AS topic,"
        " $cutoffs.map(|$k| { k: $k, score: fn::score(ranking, labels, $k, $options) }) AS scores"
        " FROM eval_answer WHERE evaluation = $id",
        id=evaluation,
        cutoffs=cutoffs,
        options={"rel": rel, "p": 0.9},
    )
    rows = [("all", row["k"], row) for row in means]
    rows += [(row["topic"], cell["k"], cell["score"]) for row in topics for cell in row["scores"]]
    for topic, k, score in rows:
        figures |= {(f"{trec}{k}", topic): score[key] for key, trec in AT_A_CUTOFF.items()}
        if k == 1000:
            figures |= {(trec, topic): score[key] for key, trec in UNCUT.items()}
    return figures


def test_trec_eval_prints_the_same_figures_for_its_own_data(home: Home) -> None:
    """Means and topics; of the truncated run with -c, where a topic that is not in the run counts as 0."""
    folder = topics_of(home, "qrels.test")
    prints_the_same(home, folder, "results.test", "out.test.aq")
    prints_the_same(home, folder, "results.trunc", "out.test.aqc")


def prints_the_same(home: Home, folder: Path, run_file: str, printed: str) -> None:
    theirs = trec_figures(folder / printed)
    cutoffs = sorted({int(name.rpartition("_")[2]) for name, _ in theirs if name.startswith(tuple(AT_A_CUTOFF.values()))})
    imported = import_run(home.database, CORPUS, _import_run.Options(folder / run_file, run_file, cutoffs))
    assert imported.evaluation is not None
    assert imported.evaluation.row["status"] == "complete"
    assert (imported.unanswered, imported.unknown_documents) == (1 if run_file == "results.trunc" else 0, 0)
    figures = ours(home, imported.evaluation.row["id"], cutoffs)
    for row in imported.evaluation.runs:
        assert all(row[key] == figures[f"{trec}{row['k']}", "all"] for key, trec in AT_A_CUTOFF.items())
    if run_file == "results.test":
        # the means that it prints without -q
        theirs |= trec_figures(folder / "out.test")
    expected = {key: value for key, value in theirs.items() if key in figures}
    wrong = {key: (f"{figures[key]:.4f}", value) for key, value in expected.items() if f"{figures[key]:.4f}" != value}
    assert wrong == {}
    # means and topics of every measure that trec_eval prints; with -c it prints no lines for a topic that is not in the run
    per_measure = defaultdict(set)
    for name, topic in expected:
        per_measure[re.sub(r"\d+$", "", name)].add(topic)
    assert set(per_measure) == {*AT_A_CUTOFF.values(), *UNCUT.values()}
    answered = {"301", "302", "303", "all"} & {topic for _, topic in theirs}
    assert len(answered) >= 3
    assert all(answered <= found for found in per_measure.values())


def test_trec_eval_at_a_level_of_its_graded_labels(home: Home) -> None:
    """qrels.rel_level has grades from -1 to 4; pytrec_eval reads them at the level, topic by topic."""
    folder = topics_of(home, "qrels.rel_level")
    cutoffs = [5, 100, 1000]
    imported = import_run(home.database, CORPUS, _import_run.Options(folder / "results.test", "STANDARD", cutoffs))
    assert imported.evaluation is not None
    assert (imported.evaluation.row["scale"], imported.evaluation.row["rel"]) == (4, 1)
    labels: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.rel_level").read_text().splitlines():
        topic, _, document, grade = line.split()
        labels[topic][document] = int(grade)
    ranked: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (folder / "results.test").read_text().splitlines():
        topic, _, document, _, score, _ = line.split()
        ranked[topic][document] = float(score)
    names = {f"{trec}{k}" for trec in AT_A_CUTOFF.values() for k in cutoffs} | {*UNCUT.values()} - {"rbp"}
    for rel in (1, 2, 3):
        figures = ours(home, imported.evaluation.row["id"], cutoffs, rel)
        theirs = pytrec_eval.RelevanceEvaluator(dict(labels), names, relevance_level=rel).evaluate(dict(ranked))
        for topic, measures in theirs.items():
            for name, value in measures.items():
                assert figures[name, topic] == pytest.approx(value, abs=1e-9), (name, topic, rel)
        for name in names:
            mean = sum(topic[name] for topic in theirs.values()) / 3
            assert figures[name, "all"] == pytest.approx(mean, abs=1e-9), (name, rel)


def test_equal_scores_are_ordered_as_trec_eval_orders_them(filled: Home) -> None:
    # as 32-bit floats the first three are one score; d9 and z are no documents of the corpus, and byte by byte z is before ö
    scores = {"d1": "1.00000001", "d3": "1.0", "d2": "1.00000002", "d4": "0.99", "z": "1", "ö": "1", "d9": "-1e-3", "D5": "1"}
    lines = [f"q1 Q0 {name} {rank} {score} x" for rank, (name, score) in enumerate(scores.items())]
    orders = list(itertools.islice(itertools.permutations(lines), 0, 40_320, 5_041))
    wanted = ["ö", "z", "d3", "d2", "d1", "D5", "d4", "d9"]
    for number, order in enumerate(orders):
        told = run(filled, "\n".join(order), f"system{number}")
        assert told.evaluation is not None
        row = filled.database.value(
            "SELECT ranking, scores FROM ONLY eval_answer WHERE evaluation = $id AND question = question:q1 LIMIT 1",
            id=told.evaluation.row["id"],
        )
        assert [document.id for document in row["ranking"]] == wanted
        assert row["scores"] == [float(scores[name]) for name in wanted]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "  "),
        lambda text: text.replace("\n", " \t\n"),
        lambda text: "\n\n" + text.replace("\n", "\n \n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("outside", "outside and more"),
        lambda text: text.rstrip("\n"),
    ],
)  # fmt: skip
def test_a_run_is_the_same_however_the_file_was_saved(filled: Home, change: Any) -> None:
    run(filled, change("q1 Q0 d5 1 3.5 outside\nq1 Q0 d1 2 2 outside\nq2 Q0 d2 1 .5 outside\n"))
    assert answers(filled) == {"q1": ["d5", "d1"], "q2": ["d2"]}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("q1 Q0 d1 1 2 x\nq1 Q0 d1 1 2\n", "run.trec:2: not six fields"),
        ("q1 Q0 d1 1 high x\n", "run.trec:1: the score 'high' is no number"),
        ("q1 Q0 d1 1 nan x\n", "run.trec:1: the score 'nan' is no number"),
        ("q1 Q0 d1 1 1e39 x\n", "run.trec:1: the score '1e39' is no number of 32 bits"),
        (b"q1 Q0 d\xe9 1 1 x\n", "run.trec:1: no UTF-8 text"),
        ("", "holds no line"),
    ],
)
def test_a_fault_of_a_run_file(filled: Home, text: str | bytes, complaint: str) -> None:
    refused(filled, lambda: run(filled, text), complaint)
    assert counts(filled) == [0, 0, 0]


def test_a_question_without_a_line_counts_as_0(home: Home) -> None:
    home.documents("docs.jsonl", objects(*({"id": f"d{number}", "text": "x"} for number in range(3))))
    home.questions("q.jsonl", objects(*({"id": f"q{number}", "text": "x", "relevant": [f"d{number}"]} for number in range(3))))
    told = run(home, "q0 Q0 d0 1 1 x\nq1 Q0 d1 1 1 x\nq7 Q0 d1 1 1 x\n")
    assert told.evaluation is not None
    for row in told.evaluation.runs:
        means = {name: row[name] for name in ("recall", "hit", "rr", "ap", "ndcg")}
        assert means == pytest.approx(dict.fromkeys(means, 2 / 3), abs=1e-6)
        assert (row["questions"], row["empty"], row["errors"]) == (3, 1, 0)
    assert (told.unanswered, told.unknown_questions) == (1, 1)
    assert any("nothing came back for 1 of 3 questions" in line for line in told.warnings)
    assert any("1 questions of the run are not in the golden set" in line for line in told.warnings)
    assert home.database.value("SELECT VALUE status FROM eval_answer WHERE question = question:q2") == ["empty"]
    assert home.database.value("RETURN fn::check_evaluations()") == []


def test_documents_that_the_corpus_has_not_and_repeats(filled: Home) -> None:
    told = run(filled, "q1 Q0 new 1 9 x\nq1 Q0 d5 1 8 x\nq1 Q0 d5 1 7 x\nq2 Q0 d5 1 1 x\n")
    assert answers(filled)["q1"] == ["new", "d5", "d5"]
    assert told.unknown_documents == 1
    assert any("1 of 2 documents of the run are not in the corpus" in line for line in told.warnings)
    assert told.evaluation is not None
    assert [row["rr"] for row in told.evaluation.runs] == [0.5, 0.75]
    assert [row["repeats"] for row in told.evaluation.runs] == [0, 1]


def test_no_question_or_no_document_in_common(home: Home) -> None:
    home.documents("docs.jsonl", objects({"id": "d1", "text": "x"}, {"id": "d2", "text": "x"}))
    home.questions(
        "q.jsonl", objects({"id": "1.1", "text": "x", "relevant": ["d1"]}, {"id": "1.2", "text": "x", "relevant": ["d2"]})
    )
    told = refused(
        home, lambda: run(home, "1 Q0 d1 1 1 x\n2 Q0 d2 1 1 x\n"), "no question in common", "has 2, for example '1' and '2'"
    )
    assert "has 2, for example '1.1' and '1.2'" in told
    told = refused(
        home, lambda: run(home, "1.1 Q0 1 1 1 x\n1.2 Q0 2 1 1 x\n"), "no document in common", "for example '1' and '2'"
    )
    assert "paper has 2, for example 'd1' and 'd2'" in told
    refused(
        home, lambda: run(home, "1.1 Q0 d1 1 1 x\n", question_set="other"), "the golden set other has 0", "there are: default"
    )
    assert counts(home) == [0, 0, 0]


def test_ids_of_numbers_are_matched_by_how_they_print(home: Home) -> None:
    home.documents(
        "docs.jsonl",
        objects({"id": 7, "text": "x"}, {"id": "007", "text": "x"}, {"id": "8", "text": "x"}, {"id": 8, "text": "x"}),
    )
    home.questions("q.jsonl", objects({"id": 1, "text": "x", "relevant": [7, "007"]}))
    told = run(home, "1 Q0 7 1 2 x\n1 Q0 007 2 1 x\n")
    assert told.evaluation is not None
    assert told.evaluation.runs[1]["recall"] == 1
    assert answers(home) == {1: [7, "007"]}
    refused(home, lambda: run(home, "1 Q0 7 1 2 x\n1 Q0 8 2 1 x\n"), "run.trec:2: the document '8' is ambiguous")


def test_the_same_file_twice_at_one_moment_is_one_evaluation(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither sees the other's beforehand; the second to begin is refused, and the history has the first alone."""
    monkeypatch.setattr(_import_run, "_record", then_another(_import_run._record))
    with pytest.raises(DataError, match="evaluation_import_once") as refused_second:
        run(filled, "q1 Q0 d5 1 1 x\nq2 Q0 d5 1 1 x\n")
    assert "has just begun" in str(refused_second.value.hint)
    assert counts(filled)[0] == 1
    assert len(filled.database.value("SELECT * FROM eval_run WHERE k = 3")) == 1


def then_another(record: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(database: Database, request: dict[str, Any], *rest: Any) -> Any:
        # a running import of the name would be taken for one that was cut off: this one is done by then
        record(database, request, *rest)
        return record(database, request, *rest)

    return recorded


def test_runs_of_questions_whose_ids_are_arrays(filled: Home) -> None:
    filled.database.run("CREATE question:[1] SET text = 'y', relevant = [paper:d1]")
    told = run(filled, "q1 Q0 d5 1 1 x\nq2 Q0 d5 1 1 x\n")
    assert told.evaluation is not None
    assert told.evaluation.row["status"] == "complete"
    assert len(told.evaluation.row["questions"]) == told.questions


def test_the_same_file_again_changes_nothing(filled: Home) -> None:
    text = "q1 Q0 d5 1 1 x\nq2 Q0 d5 1 1 x\n"
    dry = run(filled, text, dry_run=True)
    assert (dry.evaluation, counts(filled)) == (None, [0, 0, 0])
    first = run(filled, text, note="n")
    assert first.evaluation is not None
    assert first.evaluation.row["imported"]["file"] == "run.trec"
    assert (first.evaluation.row["trigger"], first.evaluation.row["note"]) == ("import", "n")
    again = run(filled, text, name="copy.trec")
    assert again.known
    assert again.evaluation is not None
    assert again.evaluation.row == first.evaluation.row
    assert again.evaluation.runs == first.evaluation.runs
    assert counts(filled) == [1, 2, 2]
    assert run(filled, text, dry_run=True).known
    # another name, other cutoffs, another file or other labels are another evaluation
    run(filled, text, "second")
    run(filled, text, cutoffs=(1, 2))
    run(filled, text.replace(" 1 x", " 2 x"))
    filled.labels("more.tsv", "q1\td1\t1\n")
    run(filled, text)
    assert counts(filled)[0] == 5
    assert filled.database.value("RETURN fn::check_history()") == []


def test_the_name_of_a_registered_retriever_is_refused(filled: Home) -> None:
    text = "q1 Q0 d5 1 1 x\n"
    refused(
        filled, lambda: run(filled, text, "bm25"), "bm25 is a registered retriever", "for example bm25_file", error=UsageError
    )
    refused(filled, lambda: run(filled, text, "bm25", dry_run=True), "bm25 is a registered retriever", error=UsageError)
    refused(filled, lambda: run(filled, text, "my system"), "can't be the name of a retriever", error=UsageError)
    assert counts(filled) == [0, 0, 0]


def cut(home: Home, monkeypatch: pytest.MonkeyPatch, at: str, *, gone: bool) -> None:
    """The database fails at a statement; with `gone` it answers nothing any more."""
    honest = home.database.run

    def failing(statements: str, **variables: Any) -> list[Any]:
        if at in statements:
            if gone:
                monkeypatch.setattr(home.database, "run", lambda *_, **__: (_ for _ in ()).throw(SurrecallError("gone")))
            raise SurrecallError("gone")
        return honest(statements, **variables)

    monkeypatch.setattr(home.database, "run", failing)


@pytest.mark.parametrize("at", ["fn::import_answers", "fn::evaluation_run", "fn::evaluation_complete"])
def test_an_import_that_fails_leaves_nothing(filled: Home, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    cut(filled, monkeypatch, at, gone=False)
    with pytest.raises(SurrecallError, match="gone"):
        run(filled, "q1 Q0 d5 1 1 x\n")
    monkeypatch.undo()
    assert counts(filled) == [0, 0, 0]


def test_an_import_that_was_cut_off_is_named_not_resumed_and_replaced(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ingest, "_SHARD", 1)
    cut(filled, monkeypatch, "fn::evaluation_complete", gone=True)
    with pytest.raises(SurrecallError, match="gone"):
        run(filled, "q1 Q0 d5 1 1 x\n")
    monkeypatch.undo()
    assert counts(filled) == [1, 2, 0]
    (finding,) = filled.database.value("RETURN fn::check_evaluations()")
    assert "is unfinished" in finding["problem"]
    assert "import run.trec again (surrecall import run --retriever outside)" in finding["next"]
    with pytest.raises(UsageError, match="no evaluation is unfinished"):
        resume(filled.database)
    run(filled, "q1 Q0 d5 1 1 x\nq2 Q0 d1 1 1 x\n")
    assert counts(filled) == [1, 2, 2]
    assert filled.database.value("SELECT VALUE status FROM evaluation") == ["complete"]
    assert filled.database.value("RETURN fn::check_evaluations()") == []


def test_an_unanswerable_question_is_in_no_mean(filled: Home) -> None:
    filled.questions("none.jsonl", objects({"id": "none", "text": "x", "relevant": [], "answerable": False}))
    told = run(filled, "q1 Q0 d5 1 1 x\nq2 Q0 d5 1 1 x\nnone Q0 d1 1 1 x\n")
    assert told.evaluation is not None
    assert [(row["questions"], row["recall"]) for row in told.evaluation.runs] == [(2, 1), (2, 1)]
    assert counts(filled)[1] == 3


def test_a_corpus_that_changed_is_told_from_evaluations_of_our_own(filled: Home) -> None:
    evaluate(filled.database, Options([3], ["bm25"]))
    filled.database.run("UPDATE paper:d1 SET abstract = 'other words'")
    run(filled, "q1 Q0 d5 1 1 x\n")
    assert [row["subject"] for row in filled.database.value("RETURN fn::check_evaluations()")] == ["corpus"]


class Elsewhere:
    """A second database with the same documents and questions."""

    def __init__(self, config: pytest.Config, engine: str, home: Home) -> None:
        self.database = Database(fresh_settings(config, engine))
        _schema.apply(self.database, home.project)
        documents, questions = home.database.run("SELECT * FROM paper; SELECT * FROM question")
        self.database.run("INSERT INTO paper $rows RETURN NONE", rows=documents)
        self.database.run("INSERT INTO question $rows RETURN NONE", rows=questions)


def exported(database: Database, path: Path, form: str, retriever: str = "outside") -> bytes:
    with Output(force=True) as output:
        runs.export(database, runs.Form(form), output.lines(path), retriever)
    return path.read_bytes()


ODD = [
    "a b",
    " blank ",
    "line\nend",
    "comma,",
    'say "x"',
    "007",
    "a|b",
    "ö\u0301",
    "x\u2028y",
    7,
    -3,
    UUID("018cf5b2-8a0e-7b3a-9c1d-3f2b4a5c6d7e"),
]


@pytest.mark.parametrize("form", ["trec", "jsonl", "csv"])
def test_a_run_that_was_exported_comes_back_byte_by_byte(home: Home, pytestconfig: pytest.Config, engine: str, form: str) -> None:
    names: list[Any] = [name for name in ODD if form != "trec" or str(name).split() == [str(name)]]
    names = [*names, "7"] if form == "jsonl" else names
    home.documents("docs.jsonl", objects({"id": "d", "text": "x"}))
    home.database.run(
        "INSERT INTO paper $rows RETURN NONE", rows=[{"id": RecordID("paper", name), "abstract": "x"} for name in names]
    )
    rows = [{"id": RecordID("question", name), "text": "x", "relevant": [RecordID("paper", name)]} for name in names]
    home.questions("q.jsonl", objects({"id": "none", "text": "x", "relevant": ["d"]}))
    home.database.run("INSERT INTO question $rows RETURN NONE", rows=rows)
    other = Elsewhere(pytestconfig, engine, home).database
    # a ranking each: scores of its own, none, an order that is not theirs, a repeat, a document that is gone, no number
    listed: list[tuple[list[Any], list[Any] | None]] = [
        (names, [1.5 - place / 7 for place in range(len(names))]),
        (names[::-1], None),
        (names[:3], [1.0, 2.0, 1.0]),
        (["gone", names[0]], [1e-7, -0.0]),
    ]
    if form != "trec":
        listed += [
            ([names[0], names[0]], [3.0, 2.0]),
            (names[:2], [float("nan"), 1e22]),
            (names[:2], [float("nan"), float("nan")]),
        ]
    answers = [
        {
            "question": RecordID("question", name),
            "listed": [
                {
                    "document": RecordID("paper", document),
                    "score": None if scores is None else scores[place],
                    "sort_key": float(-place),
                    "name": str(document),
                }
                for place, document in enumerate(ranking)
            ],
        }
        for name, (ranking, scores) in zip(names, listed, strict=False)
    ]
    request = {"retriever": "outside", "set": "default", "k": [3], "engine": "x", "longest": 20, "file": "x", "sha256": "x"}
    row = home.database.value("RETURN fn::import_begin($options)", options=request)
    home.database.run("fn::import_answers($evaluation, $answers)", evaluation=row["id"], answers=answers)
    home.database.run("UPDATE $id SET status = 'complete'", id=row["id"])
    path = home.folder / f"out.{form}"
    first = exported(home.database, path, form)
    for _ in range(2):
        told = import_run(other, CORPUS, _import_run.Options(path, "outside", (3,)))
        assert told.unknown_documents == 1
        assert told.unanswered == len(names) + 1 - min(len(listed), len(names))
        again = home.folder / f"again.{form}"
        assert exported(other, again, form) == first
        path = again
    other.close()


def test_other_forms_of_a_run(filled: Home) -> None:
    told = run(filled, "Query_ID;doc id;Score\nq1;d1;1\nq1;d5;2,5\n".replace("2,5", "2.5"), name="run.csv")
    assert answers(filled)["q1"] == ["d5", "d1"]
    assert told.lines == 2
    filled.database.run("DELETE eval_answer")
    run(filled, "question,document,rank\nq1,d1,2\nq1,d5,1\n", "second", name="x.txt", form=_run_file.Form.CSV)
    assert answers(filled)["q1"] == ["d5", "d1"]
    assert filled.database.value("SELECT VALUE scores FROM eval_answer WHERE ranking != []") == [None]
    filled.database.run("DELETE eval_answer")
    run(filled, json.dumps([{"qid": "q1", "documents": ["d5", "d1"]}]), "third", name="run.json")
    assert answers(filled)["q1"] == ["d5", "d1"]


def test_several_searches_of_a_question_are_one_ranking(filled: Home) -> None:
    rows = objects(
        {"question": "q1", "searches": [["d9", "d1"], [], ["d1", "d5", "d2"]]}, {"question": "q2", "searches": [[], []]}
    )
    told = run(filled, rows, "agent", (1, 3, 4), name="agent.jsonl")
    assert answers(filled) == {"q1": ["d9", "d1", "d5", "d2"], "q2": []}
    assert told.evaluation is not None
    assert [row["repeats"] for row in told.evaluation.runs] == [0, 0, 0]
    # what the searches found together, q2 with nothing
    labels = filled.database.value("RETURN question:q1.relevant")
    found = [len({document.id for document in labels} & set(answers(filled)["q1"][:k])) / len(labels) / 2 for k in (1, 3, 4)]
    assert [row["recall"] for row in told.evaluation.runs] == pytest.approx(found)
    row = filled.database.value("SELECT scores, status FROM ONLY eval_answer WHERE question = question:q2 LIMIT 1")
    assert (row["scores"], row["status"]) == (None, "empty")
    assert run(filled, rows, "agent", (1, 3, 4), name="agent.jsonl").known
    filled.database.run("DELETE eval_answer")
    # lines in any order; a search of a CSV is ordered by its ranks, or by its scores
    text = "question,search,document,rank\nq1,2,d1,1\nq1,1,d1,2\nq1,10,d2,1\nq1,1,d9,1\nq1,2,d5,2\n"
    run(filled, text, "sheet", name="sheet.csv")
    assert answers(filled)["q1"] == ["d9", "d1", "d5", "d2"]
    filled.database.run("DELETE eval_answer")
    run(filled, "question,search,document,score\nq1,2,d5,9\nq1,1,d1,1\nq1,1,d9,2\n", "scored", name="scored.csv")
    assert answers(filled)["q1"] == ["d9", "d1", "d5"]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("x.jsonl", objects({"question": "q1", "searches": ["d1"]}), "x.jsonl:1: searches is no list of lists of ids"),
        ("x.jsonl", objects({"question": "q1", "searches": [[1.5]]}), "x.jsonl:1: 1.5 is no id of a document"),
        ("x.jsonl", objects({"question": "q1", "searches": [[]], "ranking": []}), "x.jsonl:1: searches beside a ranking"),
        ("x.csv", "question,search,document,rank\nq1,1,d2,1\nq1,,d1,1\n", "x.csv:3: the search None is no whole number from 1"),
        ("x.csv", "question,search,document,rank\nq1,1,d1,1\nq1,1,d2,1\n", "x.csv:3: the rank 1 of 'q1' is there already"),
        ("x.csv", "question,document\nq1,d1\n", "x.csv:2: neither a rank nor a score"),
        ("x.csv", "question,document,rank\nq1,d1,1\nq1,d2,1\n", "x.csv:3: the rank 1 of 'q1' is there already, in line 2"),
        ("x.csv", "question,document,rank\nq1,d1,0\n", "x.csv:2: the rank '0' is no whole number from 1"),
        ("x.csv", "question,document,rank,score\nq1,d1,1,high\n", "x.csv:2: the score 'high' is no number"),
        ("x.csv", "question,document,rank\n,d1,1\n", "x.csv:2: no id of a question"),
        ("x.csv", "q1 Q0 d1 1 1 x\n", "name the columns question, document, rank, score"),
        ("x.jsonl", objects({"question": "q1", "ranking": "d1"}), "x.jsonl:1: ranking is no list of ids"),
        ("x.jsonl", objects({"question": 1.5, "ranking": []}), "x.jsonl:1: no id of a question"),
        ("x.jsonl", objects({"question": "q1", "ranking": ["d1", None]}), "x.jsonl:1: None is no id of a document"),
        ("x.jsonl", objects({"question": "q1", "ranking": ["d1"], "scores": []}), "x.jsonl:1: scores is no list of a number"),
        (
            "x.jsonl",
            objects({"question": "q1", "ranking": ["d1"]}) * 2,
            "x.jsonl:2: the question 'q1' is there already, in line 1",
        ),
        ("x.run", objects({"question": "q1", "ranking": ["d1"]}), "with --format jsonl one of objects"),
        ("x.xlsx", "PK", "is a file of a spreadsheet"),
    ],
)
def test_a_fault_of_another_form(filled: Home, name: str, text: str, complaint: str) -> None:
    refused(filled, lambda: run(filled, text, name=name), complaint)


def test_the_command(tmp_path: Path) -> None:
    env = {"SURREAL_URL": "surrealkv://data"}

    def call(*arguments: str, code: int = 0) -> str:
        done = surrecall(*arguments, cwd=tmp_path, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    (tmp_path / "docs.jsonl").write_text(objects({"id": "d1", "text": "x"}, {"id": "d2", "text": "y"}))
    (tmp_path / "q.csv").write_text("id,text,relevant\nq1,x,d1\nq2,y,d2\n")
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 1 x\nq1 Q0 d9 2 .5 x\n")
    call("init", "--table", "paper", "--field", "abstract", "--dimension", "3")
    call("import", "documents", "docs.jsonl")
    call("import", "questions", "q.csv")
    assert "would import 2 lines, 1 of 2 questions answered" in call("import", "run", "run.trec", "-r", "outside", "--dry-run")
    shown = call("import", "run", "run.trec", "--retriever", "outside", "-k", "1,3", "--note", "n")
    assert "outside    1   0.500" in shown
    assert "imported 2 lines, 1 of 2 questions answered" in shown
    # what evaluate says of its figures
    assert "2 questions, one label moves recall by 0.5" in shown
    assert "smallest difference in recall@1 told: 1.981 (outside, " in shown
    assert "q2        y" in shown
    assert "warning: 2 questions: read these by hand" in shown
    assert "warning: 1 of 2 documents of the run are not in the corpus" in shown
    assert "nothing imported: this file is evaluation:" in call(
        "import", "run", "run.trec", "--retriever", "outside", "-k", "1,3"
    )
    told = json.loads(
        surrecall("import", "run", "run.trec", "-r", "outside", "-k", "1,3", "--json", cwd=tmp_path, env=env).stdout
    )
    assert (told["known"], told["lines"]) == (True, 2)
    assert told["resolution"]["questions"] == {"fewest": 2, "most": 2}
    assert len(json.loads(call("history", "--json"))) == 2
    assert "is a registered retriever" in call("import", "run", "run.trec", "--retriever", "bm25", code=2)
    (tmp_path / "other.trec").write_text("x Q0 d1 1 1 x\n")
    assert "no question in common" in call("import", "run", "other.trec", "--retriever", "outside", code=4)
