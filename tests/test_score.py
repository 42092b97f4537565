"""Files in, figures out: trec_eval's own data to the printed digits, every form of a file, and what can't be scored."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

from surrecall import Database, DataError, _run_file, _score
from test_cli import surrecall
from test_import_run import AT_A_CUTOFF, UNCUT, trec_figures
from test_real_collections import folder_of

CUTOFFS = [5, 10, 15, 20, 30, 100, 200, 500, 1000]


@pytest.fixture(scope="module")
def pure() -> Iterator[Database]:
    with _score.engine() as database:
        yield database


def figures(scored: dict[str, Any]) -> dict[tuple[str, str], float]:
    """Measure as trec_eval names it and topic (or 'all') to our figure; its rbp has another p."""
    rows = [("all", row) for row in scored["means"]] + [(row["question"], row) for row in scored["per_question"]]
    found: dict[tuple[str, str], float] = {}
    for topic, row in rows:
        found |= {(f"{trec}{row['k']}", topic): row[key] for key, trec in AT_A_CUTOFF.items()}
        if row["k"] == 1000:
            found |= {(trec, topic): row[key] for key, trec in UNCUT.items() if key != "rbp"}
    return found


def command(*arguments: str, cwd: Path, code: int = 0) -> Any:
    done = surrecall("score", *arguments, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    assert list(cwd.glob("*.db")) == []
    return done


def test_trec_eval_prints_the_same_figures(tmp_path: Path) -> None:
    folder = folder_of("../trec")
    for run, printed in (("results.test", "out.test.aq"), ("results.trunc", "out.test.aqc")):
        began = time.monotonic()
        k = ",".join(map(str, CUTOFFS))
        files = (str(folder / run), "--qrels", str(folder / "qrels.test"))
        done = command(*files, "-k", k, "--per-question", "--json", cwd=tmp_path)
        assert time.monotonic() - began < 10
        ours = figures(json.loads(done.stdout))
        theirs = trec_figures(folder / printed) | (trec_figures(folder / "out.test") if run == "results.test" else {})
        expected = {key: value for key, value in theirs.items() if key in ours}
        assert {key: f"{ours[key]:.4f}" for key in expected} == expected
        assert len(expected) > 100
        assert {name.rstrip("0123456789") for name, _ in expected} == {*AT_A_CUTOFF.values(), *UNCUT.values()} - {"rbp"}
        assert ("1 of 3 questions are not in the run, and count as 0" in done.stderr) == (run == "results.trunc")


def test_only_the_questions_of_the_run_and_a_level_of_grades(pure: Database) -> None:
    folder = folder_of("../trec")
    labels: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.rel_level").read_text().splitlines():
        topic, _, document, grade = line.split()
        labels[topic][document] = int(grade)
    ranked: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (folder / "results.trunc").read_text().splitlines():
        topic, _, document, _, score = line.split()[:5]
        ranked[topic][document] = float(score)
    names = {"recall_100", "map", "ndcg", "recip_rank", "bpref"}
    for rel in (1, 3):
        theirs = pytrec_eval.RelevanceEvaluator(dict(labels), names, relevance_level=rel).evaluate(dict(ranked)).values()
        options = _score.Options(folder / "results.trunc", folder / "qrels.rel_level", [100, 1000], rel=rel, only_answered=True)
        scored = _score.score(pure, options)
        (short, deep) = scored.means
        assert (deep["questions"], scored.questions, scored.unanswered) == (2, 3, 1)
        ours = {"recall_100": short["recall"]} | {trec: deep[key] for key, trec in UNCUT.items() if trec in names}
        assert ours == pytest.approx({name: sum(row[name] for row in theirs) / 2 for name in names}, abs=1e-9)


QRELS = "q1 0 d1 1\nq1 0 d2 2\nq2 0 d3 1\nq3 0 d4 1\n"
RUN = "q1 Q0 d2 1 9 x\nq1 Q0 d9 2 8 x\nq2 Q0 d9 1 9 x\nq2 Q0 d3 2 8 x\nq9 Q0 d1 1 1 x\n"


def written(folder: Path, **files: str) -> list[Path]:
    paths = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def scored(pure: Database, folder: Path, **files: str) -> _score.Scored:
    run, qrels = written(folder, **files)
    return _score.score(pure, _score.Options(run, qrels, (1, 2), per_question=True))


FORMS = {
    "trec": {"a_run": RUN, "a_qrels": QRELS},
    "beir": {"a_run": RUN, "a_tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t2\nq2\td3\t1\nq3\td4\t1\n"},
    "json": {
        "a_jsonl": '{"question": "q1", "ranking": ["d2", "d9"]}\n{"question": "q2", "ranking": ["d9", "d3"]}\n'
        '{"question": "q9", "ranking": ["d1"]}\n',
        "b_jsonl": "\n".join(
            json.dumps({"question": question, "document": document, "grade": grade})
            for question, document, grade in (("q1", "d1", 1), ("q1", "d2", 2), ("q2", "d3", 1), ("q3", "d4", 1))
        ),
    },
    "csv": {"a_csv": "question,document,rank\nq2,d3,2\nq1,d2,1\nq1,d9,2\nq2,d9,1\nq9,d1,1\n", "a_qrels": QRELS},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(pure: Database, tmp_path: Path, form: str) -> None:
    told = scored(pure, tmp_path, **FORMS[form])
    first, second = told.means
    assert (first["questions"], first["empty"], told.unanswered, told.unknown_questions) == (3, 1, 1, 1)
    assert (first["recall"], second["recall"]) == pytest.approx((1 / 6, 1 / 2))
    assert second["rr"] == pytest.approx(1 / 2)
    assert [(row["question"], row["k"], row["hit"]) for row in told.per_question] == [
        ("q1", 1, 1), ("q1", 2, 1), ("q2", 1, 0), ("q2", 2, 1), ("q3", 1, 0), ("q3", 2, 0),
    ]  # fmt: skip
    assert told.warnings == [
        "1 of 3 questions are not in the run, and count as 0 (--only-answered leaves them out)",
        "left out: 1 question of the run without a label",
    ]


def test_ids_are_compared_letter_for_letter(pure: Database, tmp_path: Path) -> None:
    qrels = "007 0 7 1\n7 0 1e5 1\n"
    assert scored(pure, tmp_path, a_run="007 Q0 7 1 1 x\n7 Q0 1e5 1 1 x\n", b_qrels=qrels).means[0]["recall"] == 1
    # a number of a JSON file, and how it prints
    rows = '{"question": "007", "ranking": [7]}\n{"question": 7, "ranking": ["1e5"]}\n'
    assert scored(pure, tmp_path, a_jsonl=rows, b_qrels=qrels).means[0]["recall"] == 1
    # two JSON files tell 7 from '7'
    labels = '{"question": 1, "document": 7, "grade": 1}\n{"question": 2, "document": "7", "grade": 1}\n'
    rows = '{"question": 1, "ranking": ["7"]}\n{"question": 2, "ranking": ["7", 7]}\n'
    told = scored(pure, tmp_path, a_jsonl=rows, b_jsonl=labels)
    assert [row["hit"] for row in told.per_question] == [0, 0, 1, 1]
    with pytest.raises(DataError, match=r"a\.jsonl:2: the document 7 is ambiguous, since '7' is there"):
        scored(pure, tmp_path, a_jsonl=rows, b_qrels="1 0 7 1\n2 0 7 1\n")


def test_searches_are_one_set_of_evidence(pure: Database, tmp_path: Path) -> None:
    rows = '{"question": "q1", "searches": [["d9", "d8"], ["d8", "d2", "d1"]]}\n{"question": "q2", "searches": [[], ["d3"]]}\n'
    run, qrels = written(tmp_path, a_jsonl=rows, b_qrels=QRELS)
    told = _score.score(pure, _score.Options(run, qrels, (3, 4), per_question=True))
    assert [row["recall"] for row in told.per_question] == [0.5, 1, 1, 1, 0, 0]
    assert [row["repeats"] for row in told.means] == [0, 0]


@pytest.mark.parametrize(
    ("run", "qrels", "complaints"),
    [
        (
            "1 Q0 d1 1 1 x\n2 Q0 d1 1 1 x\n",
            "1.1 0 d1 1\n1.2 0 d1 1\n",
            ("no question in common", "'1' and '2'", "'1.1' and '1.2'"),
        ),
        ("q1 Q0 x1 1 1 x\n", "q1 0 d1 1\n", ("no document in common", "a.run has 1, for example 'x1'", "b.qrels has 1")),
        (
            "q1 Q0 d1 1 high x\n",
            "q1 0 d1 1\nq1 0 d1 2\n",
            ("2 faults, nothing was scored", "a.run:1", "b.qrels:2: another grade"),
        ),
        ("", "q1 0 d1 1\n", ("a.run holds no line",)),
        ("q1 Q0 d1 1 1 x\n", "", ("b.qrels holds no line",)),
    ],
)
def test_what_can_not_be_scored_ends_with_4(tmp_path: Path, run: str, qrels: str, complaints: tuple[str, ...]) -> None:
    written(tmp_path, a_run=run, b_qrels=qrels)
    done = command("a.run", "--qrels", "b.qrels", cwd=tmp_path, code=4)
    for complaint in complaints:
        assert complaint in done.stderr
    assert done.stdout == ""


def test_the_command(tmp_path: Path) -> None:
    written(tmp_path, a_run=RUN, b_qrels=QRELS)
    (tmp_path / "surrecall.toml").write_text("k = [2]\n")
    shown = command("a.run", "--qrels", "b.qrels", cwd=tmp_path).stdout.splitlines()
    assert shown[0].split() == ["k", "recall", "hit", "precision", "p", "rr", "ap", "ndcg", "judged"]
    assert shown[1].split()[:2] == ["2", "0.500"]
    shown = command("a.run", "--qrels", "b.qrels", "-k", "1", "-m", "ap", "--per-question", "--rel", "2", cwd=tmp_path)
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["question", "k", "ap"], ["q1", "1", "1.000"], ["q2", "1", "0.000"], ["q3", "1", "0.000"], [],
        ["k", "ap"], ["1", "0.333"], ["3", "questions", "of", "b.qrels,", "2", "of", "them", "in", "a.run"],
    ]  # fmt: skip
    assert "2 questions without a label of grade 2 or more: 0 in every mean" in shown.stderr
    assert "no metric named apx" in command("a.run", "--qrels", "b.qrels", "-m", "apx", cwd=tmp_path, code=2).stderr
    assert "can't be read" in command("gone.run", "--qrels", "b.qrels", cwd=tmp_path, code=4).stderr
    told = json.loads(command("a.run", "--qrels", "b.qrels", "--only-answered", "--json", cwd=tmp_path).stdout)
    assert (told["means"][0]["questions"], told["means"][0]["recall"]) == (2, 0.75)
    assert "rbp" in told["means"][0]
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_repeats_are_counted(pure: Database, tmp_path: Path) -> None:
    told = scored(pure, tmp_path, a_run="q1 Q0 d9 1 3 x\nq1 Q0 d9 2 2 x\nq1 Q0 d1 3 1 x\n", b_qrels="q1 0 d1 1\n")
    assert [row["repeats"] for row in told.means] == [0, 1]
    assert told.warnings == ["1 repeat of a document in a ranking; only the first sighting counts"]


def test_a_form_that_is_named(tmp_path: Path) -> None:
    written(tmp_path, a_txt="question,document,rank\nq1,d1,1\n", b_qrels=QRELS)
    command("a.txt", "--qrels", "b.qrels", "--format", _run_file.Form.CSV, cwd=tmp_path)


def test_a_ranking_that_is_there_and_empty_counts_as_0(tmp_path: Path) -> None:
    """Only JSON can say that a question was asked and nothing came back."""
    (tmp_path / "q.qrels").write_text("q1 0 a 1\nq1 0 b 1\nq2 0 c 2\nq3 0 d 1\n")
    (tmp_path / "ok.jsonl").write_text('{"question":"q1","ranking":["a","x"]}\n{"question":"q2","ranking":[]}\n')
    asked = ("score", "ok.jsonl", "--qrels", "q.qrels", "-k", "3", "-m", "recall", "--only-answered", "--json")
    done = surrecall(*asked, cwd=tmp_path)
    assert json.loads(done.stdout)["means"][0]["recall"] == 0.25
    (tmp_path / "ok.jsonl").write_text('{"question":"q1","ranking":[]}\n')
    done = surrecall(*asked, cwd=tmp_path)
    (row,) = json.loads(done.stdout)["means"]
    assert (row["recall"], row["questions"]) == (0, 1)


@pytest.mark.parametrize(("rel", "grades"), [("99", (1, 2)), ("1", (0, 0)), ("1", (-1, 0))])
def test_labels_without_a_relevant_one_are_refused(tmp_path: Path, rel: str, grades: tuple[int, int]) -> None:
    (tmp_path / "q.qrels").write_text(f"q1 0 a {grades[0]}\nq1 0 b {grades[1]}\n")
    (tmp_path / "ok.run").write_text("q1 Q0 a 1 2 x\n")
    done = surrecall("score", "ok.run", "--qrels", "q.qrels", "-k", "3", "--rel", rel, cwd=tmp_path)
    assert done.returncode == 4
    assert f"no label of grade {rel} or more, the highest is {max(grades)}" in done.stderr
