"""What the first k cost in a prompt: of documents and of chunks, stored with each run."""

from __future__ import annotations

import json

import pytest

from surql_cases import both_executors
from surrecall import Database
from test_cli import Run, run, seeded, target  # noqa: F401


def test_a_document_costs_its_title_and_its_text(help_centre: Database) -> None:
    (row, *_) = help_centre.value("SELECT id, title, content FROM article ORDER BY id")
    for way in both_executors("RETURN fn::text_chars($ids)"):
        assert help_centre.value(way, ids=[row["id"]]) == len(f"{row['title']}\n{row['content']}")
        # as often as it stands there
        assert help_centre.value(way, ids=[row["id"]] * 2) == 2 * len(f"{row['title']}\n{row['content']}")
        assert help_centre.value(way, ids=[]) == 0


def test_a_chunk_costs_its_own_text(help_centre: Database) -> None:
    help_centre.run(
        "CREATE chunking:piece SET corpus = 'article', text = 'body';"
        "CREATE piece:1 SET body = 'äöü 😀'; CREATE piece:2 SET body = NONE;"
        "CREATE stranger:1 SET body = 'unknown';"
    )
    for way in both_executors("RETURN fn::text_chars([piece:1, piece:2, piece:1])"):
        assert help_centre.value(way) == 10
    for way in both_executors("RETURN fn::text_chars([piece:1, stranger:1])"):
        assert help_centre.value(way) is None


def test_the_mean_is_over_the_questions_and_grows_with_k(help_centre: Database) -> None:
    runs = help_centre.value("RETURN fn::record_evaluation({ k: [1, 3], retrievers: ['bm25'] })")
    (evaluation,) = help_centre.value("SELECT VALUE id FROM evaluation")
    answers = help_centre.value("SELECT ranking FROM eval_answer WHERE answerable")
    texts = {
        row["id"].id: len(row["text"]) for row in help_centre.value("RETURN fn::document_texts((SELECT VALUE id FROM article))")
    }
    for run_, k in zip(runs, (1, 3), strict=True):
        mean = sum(texts[one.id] for answer in answers for one in answer["ranking"][:k]) / len(answers)
        assert (run_["prompt_chars"], run_["prompt_tokens"]) == (pytest.approx(mean), pytest.approx(mean / 4))
        for way in both_executors("RETURN fn::prompt_at($e, 'bm25', $k)"):
            told = help_centre.value(way, e=evaluation, k=k)
            assert told == {"k": k, "questions": len(answers), "chars": pytest.approx(mean), "tokens": pytest.approx(mean / 4)}
    assert help_centre.value("RETURN fn::prompt_at($e, 'vector', 3)", e=evaluation) is None
    assert help_centre.value("RETURN fn::check_history()") == []


def test_a_long_list_is_priced_on_some_questions(help_centre: Database) -> None:
    help_centre.run("RETURN fn::record_evaluation({ k: [100], retrievers: ['bm25'] })")
    (evaluation,) = help_centre.value("SELECT VALUE id FROM evaluation")
    assert help_centre.value("RETURN fn::prompt_at($e, 'bm25', 100).questions", e=evaluation) == 5


def test_it_stands_beside_the_figures(seeded: Run) -> None:  # noqa: F811
    shown = seeded("evaluate", "-k", "3", "-r", "bm25", "-r", "hybrid").stdout
    assert "tokens of the first k (estimated)" in shown
    told = json.loads(seeded("compare", "bm25", "hybrid", "--json").stdout)["comparisons"][0]
    kept = {row["retriever"]: row for row in json.loads(seeded("history", "--json").stdout)}
    for side in ("a", "b"):
        row = kept[told[side]["name"]]
        assert told[side]["prompt"] == {"chars": row["prompt_chars"], "tokens": row["prompt_tokens"]}
        assert told[side]["prompt"]["chars"] > 0
