"""Files that are taken out: what stands in them, what they refuse by name, and that they are whole or not there."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy
import pytest
import pytrec_eval
from hypothesis import example, given
from hypothesis import strategies as st
from surrealdb import RecordID

from conftest import fresh_settings
from surrecall import Database, DataError, Options, SurrecallError, UsageError, evaluate
from surrecall._export import collection, contexts, documents, history, labels, npy, questions, runs, source
from surrecall._export.output import Lines, Output
from test_cli import surrecall
from test_real_collections import TREC, scored

# ids that plain text keeps apart
IDS = (
    "007", "7", "1e5", "125813199042576601589342522460260755", "a-b", "a b/c:d", "x⟩y'z", "⟨⟩", "`", "\\", "a|b", '"', "[a]",
    "a::b", "b:",
    "https://e.org/a#b", "🙂", "paper:7", "a\tb", "a\r\nb", " a", "a ", "a\u2028b",
)  # fmt: skip
TEXT = "LF\nCRLF\r\nCR\rtab\tsep\u2028 NUL\x00 \"quotes\" 'x', comma, back\\slash | bar \ufeffmark 🙂 "


@pytest.fixture
def database(pytestconfig: pytest.Config, engine: str) -> Iterator[Database]:
    with Database(fresh_settings(pytestconfig, engine)) as opened:
        yield opened


def lines_of(write: Any, *arguments: Any, **options: Any) -> str:
    """What an export writes: `write(database, …, lines, …)` with its lines last of the first arguments."""
    file = io.BytesIO()
    *before, after = arguments
    write(*before, Lines(file), *after, **options)
    return file.getvalue().decode()


def trouble(database: Database) -> None:
    """Documents and questions with every kind of id and text."""
    rows = [{"id": RecordID("article", name), "title": name, "content": TEXT, "embedding": [1, 2, 3, 0.1]} for name in IDS]
    database.run("INSERT INTO article $rows RETURN NONE", rows=rows)
    made = [{"id": RecordID("question", name), "text": TEXT, "relevant": [RecordID("article", name)]} for name in IDS]
    database.run("INSERT INTO question $rows RETURN NONE", rows=made)
    database.run(
        "UPDATE $id SET judged = $judged, anchors = $anchors, tags = ['a|b', 'c'], set = 'other', kind = 'k', split = 'dev',"
        "source = 'production', note = $note",
        id=RecordID("question", "7"),
        judged=[{"document": RecordID("article", name), "grade": place - 1} for place, name in enumerate(IDS)],
        anchors=[
            {"document": RecordID("article", "a::b"), "phrase": "CR\rtab"},
            {"document": RecordID("article", "7"), "phrase": "x|y"},
        ],
        note=TEXT,
    )
    database.run("CREATE question:none SET text = 'x', answerable = false, tags = ['', '[']")


def test_questions(schema: Database) -> None:
    trouble(schema)
    rows = [json.loads(line) for line in lines_of(questions.export, schema, questions.Form.JSONL, ()).split("\n")[:-1]]
    assert [row["id"] for row in rows] == sorted([*IDS, "none"])
    found = {row["id"]: row for row in rows}
    assert found["a b/c:d"] == {"id": "a b/c:d", "text": TEXT, "relevant": ["a b/c:d"]}
    assert found["none"] == {"id": "none", "text": "x", "relevant": [], "answerable": False, "tags": ["", "["]}
    assert list(found["7"]) == ["id", "text", "judged", "anchors", "set", "kind", "tags", "split", "source", "note"]
    assert found["7"]["judged"] == [{"document": name, "grade": place - 1} for place, name in enumerate(IDS)]
    assert found["7"]["anchors"] == [{"document": "a::b", "phrase": "CR\rtab"}, {"document": "7", "phrase": "x|y"}]
    only = lines_of(questions.export, schema, questions.Form.JSONL, ("other",))
    assert [json.loads(line)["id"] for line in only.splitlines()] == ["7"]
    beir = [json.loads(line) for line in lines_of(questions.export, schema, questions.Form.BEIR_QUERIES, ()).split("\n")[:-1]]
    assert beir == [{"_id": row["id"], "text": row["text"]} for row in rows]
    for form, delimiter in ((questions.Form.CSV, ","), (questions.Form.TSV, "\t")):
        text = lines_of(questions.export, schema, form, ())
        header, *cells = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        assert tuple(header) == questions.COLUMNS
        table = {row[0]: dict(zip(header, row, strict=True)) for row in cells}
        assert list(table) == sorted([*IDS, "none"])
        assert {row["text"] for row in table.values()} == {TEXT, "x"}
        assert table["a|b"]["relevant"] == "a\\|b"
        assert table["\\"]["relevant"] == "\\\\"
        assert json.loads(table["[a]"]["relevant"]) == ["[a]"]
        assert json.loads(table[" a"]["relevant"]) == [" a"]
        assert json.loads(table["none"]["tags"]) == ["", "["]
        assert (table["none"]["answerable"], table["none"]["relevant"], table["7"]["tags"]) == ("false", "", "a\\|b|c")
        assert table["7"]["grades"] == "|".join(str(place - 1) for place in range(len(IDS)))
        assert json.loads(table["7"]["anchors"])[0] == {"document": "a::b", "phrase": "CR\rtab"}


def test_vectors_of_questions(help_centre: Database) -> None:
    rows = [
        json.loads(line) for line in lines_of(questions.export, help_centre, questions.Form.JSONL, (), vectors=True).splitlines()
    ]
    assert rows[0]["embedding"] == help_centre.value(
        "SELECT VALUE embedding FROM ONLY $id", id=RecordID("question", rows[0]["id"])
    )


def test_labels(schema: Database) -> None:
    trouble(schema)
    wanted = schema.value("RETURN (SELECT VALUE fn::labels_of($this).len() FROM question).reduce(|$a, $b| $a + $b)")
    rows = [json.loads(line) for line in lines_of(labels.export, schema, labels.Form.JSONL, ()).split("\n")[:-1]]
    assert len(rows) == wanted
    assert rows[0].keys() == {"question", "document", "grade"}
    for form, delimiter in ((labels.Form.CSV, ","), (labels.Form.BEIR, "\t")):
        text = lines_of(labels.export, schema, form, ())
        header, *cells = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        assert header == (["question", "document", "grade"] if form is labels.Form.CSV else ["query-id", "corpus-id", "score"])
        assert [dict(zip(rows[0], row, strict=True)) for row in cells] == [row | {"grade": str(row["grade"])} for row in rows]
    with pytest.raises(DataError, match=r"question:⟨ a⟩: TREC qrels can't hold an id") as caught:
        lines_of(labels.export, schema, labels.Form.TREC, ())
    assert "jsonl" in str(caught.value.hint)
    schema.run("DELETE question WHERE id != question:⟨007⟩")
    assert lines_of(labels.export, schema, labels.Form.TREC, ()) == "007 0 007 1\n"


def test_grades_that_are_no_whole_numbers(schema: Database) -> None:
    schema.run(
        "CREATE article:a SET content = 'a'; CREATE article:b SET content = 'b'; CREATE question:q SET text = 'x', judged ="
        "[{ document: article:a, grade: 2f }, { document: article:b, grade: 0.5 }]"
    )
    for form in (labels.Form.TREC, labels.Form.BEIR):
        with pytest.raises(DataError, match=r"question:q grades article:b 0\.5; .* hold whole numbers only") as caught:
            lines_of(labels.export, schema, form, ())
        assert "jsonl or csv" in str(caught.value.hint)
    assert lines_of(labels.export, schema, labels.Form.CSV, ()) == "question,document,grade\nq,a,2\nq,b,0.5\n"
    assert (
        lines_of(labels.export, schema, labels.Form.JSONL, ()).splitlines()[0] == '{"question": "q", "document": "a", "grade": 2}'
    )


def test_numbers_and_texts_of_the_same_letters(schema: Database) -> None:
    schema.run(
        "CREATE article:7 SET content = 'a'; CREATE article:⟨7⟩ SET content = 'b'; CREATE article:10 SET content = 'c';"
        "CREATE question:1 SET text = 'x', relevant = [article:7]; CREATE question:2 SET text = 'y', relevant = [article:10]"
    )
    rows = [json.loads(line) for line in lines_of(questions.export, schema, questions.Form.JSONL, ()).splitlines()]
    assert [(row["id"], row["relevant"]) for row in rows] == [(1, [7]), (2, [10])]
    exports: list[tuple[Any, Any]] = [(questions.export, form) for form in (questions.Form.CSV, questions.Form.TSV)]
    exports += [(labels.export, form) for form in (labels.Form.TREC, labels.Form.BEIR, labels.Form.CSV)]
    # the twin is in the way though nobody labelled it: the file would mean both
    for write, form in exports:
        with pytest.raises(DataError, match=r"article:7 and article:⟨7⟩ are two records, and one id in") as caught:
            lines_of(write, schema, form, ())
        assert "jsonl" in str(caught.value.hint)
    with pytest.raises(DataError, match="are two records"):
        lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.CSV, ())
    schema.run("DELETE article:⟨7⟩")
    assert lines_of(labels.export, schema, labels.Form.TREC, ()) == "1 0 7 1\n2 0 10 1\n"
    # as texts they have another order than as numbers
    text = lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.CSV, ())
    assert text == "id,title,text\n10,,c\n7,,a\n"
    typed = lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.JSONL, ())
    assert [json.loads(line)["id"] for line in typed.splitlines()] == [7, 10]


def test_ids_that_no_table_holds(schema: Database) -> None:
    uuid = "0189f0a0-0000-7000-8000-000000000000"
    schema.run("CREATE $id SET content = 'u'", id=RecordID("article", UUID(uuid)))
    schema.run("CREATE question:q SET text = 'x', relevant = [$id]", id=RecordID("article", UUID(uuid)))
    assert lines_of(labels.export, schema, labels.Form.TREC, ()) == f"q 0 {uuid} 1\n"
    schema.run("CREATE $id SET content = 'text'", id=RecordID("article", uuid))
    with pytest.raises(DataError, match="are two records"):
        lines_of(labels.export, schema, labels.Form.TREC, ())
    schema.run("CREATE article:[1, 'a'] SET content = 'x'; CREATE article:⟨⟩ SET content = 'x'")
    with pytest.raises(DataError, match=r"article:.* has an (empty id|id of several parts)") as caught:
        lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.JSONL, ())
    assert caught.value.hint == "surrecall snapshot holds it"


def test_what_a_cell_can_not_say(schema: Database) -> None:
    schema.run("CREATE article:a SET content = 'a'; CREATE question:q SET text = 'x', relevant = [article:a], kind = ''")
    with pytest.raises(DataError, match="question:q has a blank kind"):
        lines_of(questions.export, schema, questions.Form.CSV, ())
    assert '"kind": ""' in lines_of(questions.export, schema, questions.Form.JSONL, ())


def trec_run(database: Database, *more: Any, **options: Any) -> str:
    return lines_of(runs.export, database, runs.Form.TREC, more, **options)


def read_run(text: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        question, _, document, _, score, _ = line.split(" ")
        found.setdefault(question, {})[document] = float(score)
    return found


def read_qrels(text: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        question, _, document, grade = line.split(" ")
        found.setdefault(question, {})[document] = int(grade)
    return found


def test_trec_eval_finds_the_stored_means(help_centre: Database) -> None:
    evaluation = evaluate(help_centre, Options([10, 100]))
    qrels = read_qrels(lines_of(labels.export, help_centre, labels.Form.TREC, ()))
    for retriever in ("bm25", "vector", "hybrid"):
        means = scored(read_run(trec_run(help_centre, retriever)), qrels)
        for run in evaluation.runs:
            if run["retriever"] == retriever:
                for ours, theirs in TREC.items():
                    assert run[ours] == pytest.approx(means[f"{theirs}_{run['k']}"], abs=1e-6)


@given(
    length=st.integers(0, 12),
    scores=st.one_of(
        st.none(), st.lists(st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 1e39])), min_size=12, max_size=12)
    ),
    seed=st.randoms(use_true_random=False),
)
@example(length=2, scores=[float("nan")] * 12, seed=None)
@example(length=3, scores=[1.0] * 12, seed=None)
def test_trec_eval_reads_back_the_order(length: int, scores: list[float] | None, seed: Any) -> None:
    ranking = [f"d{number}" for number in range(length)]
    if seed is not None:
        seed.shuffle(ranking)
    written, own = runs.trec_scores(ranking, scores[:length] if scores is not None else None)
    assert len(written) == length
    if own and scores is not None:
        assert [float(score) for score in written] == scores[:length]
    run = {"q": {document: float(score) for document, score in zip(ranking, written, strict=True)}}
    for place, document in enumerate(ranking):
        found = pytrec_eval.RelevanceEvaluator({"q": {document: 1}}, {"recip_rank"}).evaluate(run)["q"]["recip_rank"]
        assert found == pytest.approx(1 / (place + 1))


TIES = """
DEFINE FUNCTION fn::tied($q: string, $k: any) { RETURN (SELECT id, 1f AS score FROM article ORDER BY id LIMIT $k) };
DEFINE FUNCTION OVERWRITE fn::retrieve_rows($retriever: string, $question: record<question> | object, $k: any) {
  LET $question = IF type::is_record($question) { (SELECT * FROM ONLY $question) } ELSE { $question };
  IF $question.text = 'how do I get my money back' { RETURN [] };
  IF $question.text = 'my card expired' AND $retriever = 'hybrid' { THROW 'no card' };
  IF $retriever = 'vector' { RETURN [article:gift_card, article:track_order, article:gift_card] };
  RETURN fn::tied($question.text, $k);
} COMMENT 'surrecall: for a test';
"""


def test_runs_with_ties_empty_answers_errors_and_repeats(help_centre: Database) -> None:
    help_centre.run(TIES)
    ours = evaluate(help_centre, Options([3, 5], ["bm25"]))
    text = trec_run(help_centre, "bm25")
    rankings = dict(help_centre.run("SELECT VALUE [record::id(question), ranking] FROM eval_answer")[0])
    # ties by id ascending are not trec_eval's, so whole numbers stand there
    assert [line.split(" ")[4] for line in text.splitlines()[:5]] == ["5", "4", "3", "2", "1"]
    back = read_run(text)
    assert "money_back" not in back
    assert {name: list(documents) for name, documents in back.items()} == {
        name: [record.id for record in ranking] for name, ranking in rankings.items() if ranking
    }
    means = scored(back, read_qrels(lines_of(labels.export, help_centre, labels.Form.TREC, ())))
    means3 = pytrec_eval.RelevanceEvaluator(
        read_qrels(lines_of(labels.export, help_centre, labels.Form.TREC, ())), {"ndcg_cut_3", "recall_5"}
    ).evaluate(back)
    assert means
    runs_of = {run["k"]: run for run in ours.runs}
    assert runs_of[3]["ndcg"] == pytest.approx(sum(row["ndcg_cut_3"] for row in means3.values()) / 8, abs=1e-6)
    assert runs_of[5]["recall"] == pytest.approx(sum(row["recall_5"] for row in means3.values()) / 8, abs=1e-6)
    exported = runs.export(help_centre, runs.Form.TREC, Lines(io.BytesIO()), "bm25")
    assert (exported.questions, exported.empty, exported.errors, exported.own_scores, exported.depth) == (7, 1, 0, 0, 5)
    with pytest.raises(UsageError, match="bm25 was not asked for 4 documents, but for 5"):
        trec_run(help_centre, "bm25", None, 4)

    evaluate(help_centre, Options([3], ["vector"]))
    with pytest.raises(DataError, match="vector gave gift_card twice for question:arrived_broken, which a TREC run can't hold"):
        trec_run(help_centre, "vector")
    row = json.loads(lines_of(runs.export, help_centre, runs.Form.JSONL, ("vector",)).splitlines()[0])
    assert row == {"question": "arrived_broken", "ranking": ["gift_card", "track_order", "gift_card"]}
    table = lines_of(runs.export, help_centre, runs.Form.CSV, ("vector",)).splitlines()
    assert table[:2] == ["question,document,rank,score", "arrived_broken,gift_card,1,"]

    failed = evaluate(help_centre, Options([3], ["hybrid"]))
    with pytest.raises(UsageError, match="no ranking of a retriever named hybrid; complete evaluations have bm25, vector"):
        trec_run(help_centre, "hybrid")
    name = str(failed.row["id"].id)
    with pytest.raises(DataError, match=r"hybrid failed on 1 of 8 questions, first on question:expired_card: no card") as caught:
        trec_run(help_centre, "hybrid", f"evaluation:{name}")
    assert caught.value.hint == "--force leaves these out"
    kept = read_run(trec_run(help_centre, "hybrid", name, errors=True))
    assert len(kept) == 6
    with pytest.raises(UsageError, match="no evaluation named nothing"):
        trec_run(help_centre, "hybrid", "nothing")
    with pytest.raises(UsageError, match=r"no ranking of a retriever named bm25; evaluation:\w+ has hybrid"):
        trec_run(help_centre, "bm25", name)


def test_no_run_yet(help_centre: Database) -> None:
    with pytest.raises(UsageError, match="no evaluation is complete") as caught:
        trec_run(help_centre, "bm25")
    assert caught.value.hint == "surrecall evaluate"
    with pytest.raises(DataError, match="the history is empty"):
        lines_of(history.export, help_centre, history.Form.CSV, ())


def test_history(help_centre: Database) -> None:
    evaluate(help_centre, Options([1, 3]))
    note = TEXT.replace("\x00", "")
    help_centre.run("CREATE eval_run SET retriever = 'by hand', k = 3, recall = 1 / 3f, questions = 8, note = $note", note=note)
    stored = help_centre.value("SELECT *, <string> at AS at FROM eval_run ORDER BY seq")
    rows = [json.loads(line) for line in lines_of(history.export, help_centre, history.Form.JSONL, ()).split("\n")[:-1]]
    cells = list(csv.DictReader(io.StringIO(lines_of(history.export, help_centre, history.Form.CSV, ()), newline="")))
    metrics = list(help_centre.value("RETURN fn::score([], [article:a], 1)"))
    for run, row, line in zip(stored, rows, cells, strict=True):
        for name in (
            *metrics,
            "retriever",
            "k",
            "at",
            "note",
            "set",
            "hash",
            "previous",
            "seq",
            "questions",
            "empty",
            "errors",
            "repeats",
        ):
            assert row.get(name) == run.get(name)
            assert line[name] == ("" if run.get(name) is None else str(run[name]))
    assert {row["evaluation"] for row in rows[:-1]} == {f"evaluation:{stored[0]['evaluation'].id}"}


def test_documents(schema: Database, tmp_path: Path) -> None:
    trouble(schema)
    schema.run("UPDATE article:⟨007⟩ SET title = NONE, embedding = NONE")
    rows = [
        json.loads(line)
        for line in lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.JSONL, ()).split("\n")[:-1]
    ]
    assert rows[0] == {"id": " a", "title": " a", "text": TEXT}
    assert rows[2] == {"id": "007", "text": TEXT}
    text = lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.CSV, (), vectors=True)
    cells = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    assert [(row["id"], row["text"]) for row in cells] == [(name, TEXT) for name in sorted(IDS)]
    assert json.loads(cells[0]["vector"]) == [1.0, 2.0, 3.0, 0.1]
    assert cells[2]["vector"] == ""
    with Output() as output:
        lines, writer = output.lines(tmp_path / "x"), npy.NpyWriter(output, tmp_path / "x.npy")
        with pytest.raises(DataError, match="article:⟨007⟩ has no vector"):
            documents.export(schema, source.HELP_CENTRE, documents.Form.JSONL, lines, npy=writer)
    schema.run("OPTION IMPORT; UPDATE article:⟨007⟩ SET content = 7")
    with pytest.raises(DataError, match=r"the content of article:⟨007⟩ is no text"):
        lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.JSONL, ())


def test_many_documents_come_in_pages_each_once(schema: Database) -> None:
    names: list[str | int] = [*range(-30, 270), *(f"n{place}" for place in range(400))]
    rows = [{"id": RecordID("article", name), "content": f"{name} " * 3000} for name in names]
    for start in range(0, len(rows), 100):
        schema.run("INSERT INTO article $rows RETURN NONE", rows=rows[start : start + 100])
    text = lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.JSONL, ())
    ids = [json.loads(line)["id"] for line in text.splitlines()]
    assert ids == [*range(-30, 270), *sorted(f"n{place}" for place in range(400))]
    assert ids == [record.id for record in schema.value("SELECT VALUE id FROM article ORDER BY id")]


def test_contexts(help_centre: Database) -> None:
    help_centre.run(
        "CREATE question:none SET text = 'x', answerable = false; CREATE question:graded SET text = 'y', judged ="
        "[{ document: article:gift_card, grade: 0 }, { document: article:track_order, grade: 2 }]"
    )
    rows = {
        row["id"]: row for row in map(json.loads, lines_of(contexts.export, help_centre, source.HELP_CENTRE, ()).splitlines())
    }
    assert rows["none"] == {"id": "none", "text": "x", "contexts": []}
    (context,) = rows["graded"]["contexts"]
    assert list(context) == ["id", "title", "text", "grade"]
    assert (context["id"], context["title"], context["grade"]) == ("track_order", "Track your order", 2)
    assert [context["id"] for context in rows["money_back"]["contexts"]] == ["refund_request", "cancel_subscription"]
    help_centre.run("OPTION IMPORT; UPDATE question:none SET relevant = [article:gone]")
    with pytest.raises(DataError, match="question:none has the label article:gone, which does not exist"):
        lines_of(contexts.export, help_centre, source.HELP_CENTRE, ())
    kept = contexts.export(help_centre, source.HELP_CENTRE, Lines(io.BytesIO()), without_missing=True)
    assert (kept.questions, kept.missing) == (10, 1)


def test_rows_that_came_in_round_the_schema(schema: Database) -> None:
    schema.run("CREATE article:a SET content = 'a'; CREATE question:q SET text = 'x', relevant = [article:a]")
    for fault, complaint in (
        ("relevant = ['article:a']", "'article:a' stands where a record belongs"),
        ("relevant = [article:a], judged = [{ document: article:a }]", "None stands where a grade belongs"),
        ("text = NONE", "question:q has no text"),
    ):
        schema.run(f"OPTION IMPORT; UPDATE question:q SET {fault}")
        for form in (questions.Form.JSONL, questions.Form.CSV):
            with pytest.raises(DataError, match=complaint):
                lines_of(questions.export, schema, form, ())
    for other in labels.Form:
        with pytest.raises(SurrecallError):
            lines_of(labels.export, schema, other, ())


def test_a_set_that_is_not_there(help_centre: Database) -> None:
    with pytest.raises(UsageError, match="no golden set named othr; there are: default"):
        lines_of(labels.export, help_centre, labels.Form.TREC, ("othr",))


def test_nothing_to_export(schema: Database) -> None:
    for write in (questions.export, labels.export):
        form: Any = questions.Form.JSONL if write is questions.export else labels.Form.TREC
        with pytest.raises(DataError, match="there is no question to export"):
            lines_of(write, schema, form, ())
    with pytest.raises(DataError, match="article holds no document"):
        lines_of(documents.export, schema, source.HELP_CENTRE, documents.Form.JSONL, ())


def test_a_collection(help_centre: Database, tmp_path: Path) -> None:
    help_centre.run("CREATE question:none SET text = 'x', answerable = false; UPDATE question:signin SET kind = 'k'")
    folder = tmp_path / "deep" / "centre"
    exported = collection.export(help_centre, source.HELP_CENTRE, folder, "default")
    assert (exported.documents, exported.questions, exported.labels, exported.vectors) == (10, 8, 12, 10)
    assert (exported.unlabelled, exported.unplaced) == (1, 1)
    assert numpy.load(folder / "corpus.npy").shape == (10, 4)
    assert (folder / "corpus.ids.txt").read_text().splitlines() == sorted((folder / "corpus.ids.txt").read_text().split())
    before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=r"holds corpus\.ids\.txt already"):
        collection.export(help_centre, source.HELP_CENTRE, folder, "default")
    collection.export(help_centre, source.HELP_CENTRE, folder, "default", force=True)
    assert {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    collection.export(help_centre, source.HELP_CENTRE, folder, "default", vectors=False, force=True)
    assert not list(folder.glob("*.npy"))
    (folder / "mine.txt").write_text("kept")
    with pytest.raises(UsageError, match=r"holds mine\.txt already") as caught:
        collection.export(help_centre, source.HELP_CENTRE, folder, "default", force=True)
    assert caught.value.hint == "name an empty folder"
    help_centre.run("UPDATE question:signin SET embedding = NONE")
    with pytest.raises(DataError, match="question:signin has no vector, where others have") as fault:
        collection.export(help_centre, source.HELP_CENTRE, tmp_path / "other", "default")
    assert "--no-vectors" in str(fault.value.hint)
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


@pytest.mark.parametrize(
    ("vectors", "kind"),
    [([[0.5, 1.0], [3.0, -0.25]], "float32"), ([[0.1, 1.0]], "float64"), ([[1e300, 1.0]], "float64"), ([[1, 2]], "float32")],
)
def test_vectors_as_a_file(tmp_path: Path, vectors: list[list[float]], kind: str) -> None:
    with Output() as output:
        writer = npy.NpyWriter(output, tmp_path / "docs.npy")
        for place, vector in enumerate(vectors):
            writer.add(f"d {place}", vector)
        writer.finish()
    found = numpy.load(tmp_path / "docs.npy")
    assert (found.dtype.name, found.tolist()) == (kind, vectors)
    assert (tmp_path / "docs.ids.txt").read_text() == "".join(f"d {place}\n" for place in range(len(vectors)))


@pytest.mark.parametrize(
    ("name", "vector", "complaint"),
    [
        ("a\nb", [1.0, 2.0], "does not fit on a line"),
        ("x", [0.0, 0.0], "all zeros"),
        ("x", [float("nan"), 1.0], "all zeros, or holds something"),
        ("x", [1.0], "has 1 numbers, those before it 2"),
        ("x", [1.0, None], "holds something that is no number"),
    ],
)
def test_vectors_that_no_file_holds(tmp_path: Path, name: str, vector: Any, complaint: str) -> None:
    def write() -> None:
        with Output() as output:
            writer = npy.NpyWriter(output, tmp_path / "docs.npy")
            writer.add("first", [1.0, 1.0])
            writer.add(name, vector)

    with pytest.raises(DataError, match=complaint):
        write()
    assert list(tmp_path.iterdir()) == []


def fail_over(target: Path, *, force: bool) -> None:
    with Output(force=force) as output:
        output.lines(target).write("half")
        raise RuntimeError


def meet_another(target: Path) -> None:
    """Write a file that somebody else writes meanwhile."""
    with Output() as output:
        output.lines(target).write("ours")
        target.write_text("theirs")


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    with pytest.raises(RuntimeError):
        fail_over(target, force=False)
    assert list(tmp_path.iterdir()) == []
    before = os.umask(0o027)
    try:
        with Output() as output:
            output.lines(target).write("whole\r\n")
    finally:
        os.umask(before)
    assert target.read_bytes() == b"whole\r\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    with pytest.raises(UsageError, match="is there already"), Output() as output:
        output.lines(target)
    with pytest.raises(RuntimeError):
        fail_over(target, force=True)
    assert target.read_bytes() == b"whole\r\n"
    (tmp_path / "link").symlink_to(target)
    with Output(force=True) as output:
        output.lines(tmp_path / "link").write("other")
    assert target.read_text() == "other"
    assert (tmp_path / "link").is_symlink()
    with pytest.raises(UsageError, match="is there already"):
        meet_another(tmp_path / "late")
    assert (tmp_path / "late").read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "late", "link"]


@pytest.mark.parametrize("name", ["nowhere/x", ".", "a.jsonl/x"])
def test_a_file_that_can_not_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"can't be written|is a folder"), Output(force=True) as output:
        output.lines(tmp_path / name)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with Output() as output:
        output.lines(tmp_path / "pipe").write("data")
    assert os.read(reader, 10) == b"data"
    os.close(reader)


def test_the_commands(tmp_path: Path) -> None:
    env = {"SURREAL_URL": f"surrealkv://{tmp_path}/a.db"}
    for command in ("apply", "seed", "evaluate"):
        assert surrecall(command, cwd=tmp_path, env=env).returncode == 0

    def run(*arguments: str) -> Any:
        return surrecall("export", *arguments, cwd=tmp_path, env=env)

    done = run("questions", "golden.csv")
    assert (done.returncode, done.stdout) == (0, "wrote 8 questions, 12 labels to golden.csv\n")
    assert (tmp_path / "golden.csv").read_text().startswith("id,text,relevant,grades,")
    again = run("questions", "golden.csv")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)
    assert json.loads(run("questions", "golden.csv", "--force", "--json").stdout) == {"questions": 8, "labels": 12}
    # data alone on standard output, what is said of it beside it
    piped = run("labels", "-", "--json")
    assert piped.stdout.splitlines()[0] == "arrived_broken 0 return_item 1"
    assert json.loads(piped.stderr) == {"questions": 8, "labels": 12, "unlabelled": 0}
    assert run("labels", "x.tsv", "--format", "beir").returncode == 0
    assert "--vectors" not in run("questions", "x.csv", "--vectors").stdout
    assert run("questions", "x.csv", "--vectors").returncode == 2
    assert run("run", "x.run").returncode == 2
    assert run("run", "x.run", "-r", "bm25").returncode == 0
    assert run("history", "history.txt").returncode == 0
    assert run("contexts", "-").stdout.count("\n") == 8
    assert "10 vectors" in run("documents", "d.jsonl", "--npy", "d.npy").stdout
    assert sorted(path.name for path in tmp_path.glob("d.*")) == ["d.ids.txt", "d.jsonl", "d.npy"]
    failed = run("documents", "e.jsonl", "--npy", "d.npy")
    assert (failed.returncode, (tmp_path / "e.jsonl").exists()) == (2, False)
    assert run("collection", "centre").returncode == 0
    (tmp_path / "surrecall.toml").write_text("k = [1]\n")
    (tmp_path / "surql" / "corpus").mkdir(parents=True)
    unknown = run("documents", "f.jsonl")
    assert (unknown.returncode, "has no [corpus]" in unknown.stderr) == (2, True)


def test_errors_have_a_next_step() -> None:
    with pytest.raises(SurrecallError) as caught:
        labels._integer(labels.Label(RecordID("question", "q"), RecordID("article", "a"), 0.5), "TREC qrels")
    assert caught.value.hint
