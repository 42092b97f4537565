"""Retrievers that put the candidates of another in another order, in the database and outside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import ROOT
from surrecall import Database, Options, Settings, UsageError, _files, _retrievers, _seed, evaluate
from test_cli import Run, run, target  # noqa: F401  fixtures

BASE = """
[bm25]
call = "fn::search_bm25($question.text, $k)"
returns = "article"

[vector]
call = "fn::search_vec($question.embedding, $k)"
returns = "article"

[hybrid]
call = "fn::search_hybrid($question.text, $question.embedding, $k)"
returns = "article"
"""


def registered(database: Database, **expressions: str) -> None:
    """The help centre's retrievers, and one that reranks hybrid for each expression."""
    entries = [_retrievers.entry(_retrievers.reranked(name, "hybrid", text, 6)) for name, text in expressions.items()]
    database.run(_retrievers.compile_dispatcher(_retrievers.parse("\n\n".join([BASE, *entries]))))


def ids(rows: list[Any]) -> list[str]:
    return [str(row.id) for row in rows]


@pytest.fixture
def reranking(help_centre: Database) -> Database:
    registered(
        help_centre,
        words="fn::rerank_lexical($question.text, $ids, $k)",
        mmr="fn::rerank_mmr($question.embedding, $ids, $k, 0.7)",
        reversed="$ids.reverse()",
        drops="$ids.filter(|$id| $id != article:track_order)",
        invents="array::concat([article:nowhere], $ids)",
        again="array::concat([$ids[0]], $ids)",
    )
    return help_centre


def test_a_reranker_orders_the_candidates_of_another(reranking: Database) -> None:
    pool = reranking.value("RETURN fn::retrieve('hybrid', question:money_back, 6)")
    ranking = reranking.value("RETURN fn::ranking('reversed', question:money_back, 3)")
    assert ranking["ids"] == pool[::-1][:3]
    assert ranking["pool"] == pool
    # at most the pool comes back, and what k is makes no other list
    assert reranking.value("RETURN fn::retrieve('reversed', question:money_back, 50)") == pool[::-1]
    for name in ("words", "mmr"):
        lists = [reranking.value(f"RETURN fn::ranking('{name}', question:money_back, {k})") for k in (3, 6)]
        assert lists[0]["ids"] == lists[1]["ids"][:3]
        assert sorted(ids(lists[1]["ids"])) == sorted(ids(pool))
        assert len(lists[0]["scores"]) == 3
        below = reranking.value(f"RETURN (CREATE ONLY executor_probe SET v = fn::ranking('{name}', question:money_back, 6)).v")
        assert below == lists[1]


def test_the_row_says_what_it_reranks_and_how_deep(reranking: Database) -> None:
    row = reranking.value("SELECT * FROM ONLY retriever:words")
    assert (row["reranks"], row["pool"], row["returns"], row["prefix"]) == ("hybrid", 6, "article", True)
    assert row["rerank"] == "fn::rerank_lexical($question.text, $ids, $k)"
    # its call is an expression as every other's
    reranking.run("LET $question = (SELECT * FROM ONLY question:money_back)")
    told = reranking.run_as_written(f"LET $question = (SELECT * FROM ONLY question:money_back); LET $k = 6; RETURN {row['call']}")
    assert [found["id"] for found in told[-1]] == reranking.value("RETURN fn::retrieve('words', question:money_back, 6)")


def test_the_pool_is_kept_with_the_answer(reranking: Database) -> None:
    evaluation = evaluate(reranking, Options([3], retrievers=["hybrid", "reversed"]))
    pools = reranking.value(
        "SELECT VALUE [retriever, pool] FROM eval_answer WHERE question = question:money_back ORDER BY retriever"
    )
    assert pools[0] == ["hybrid", None]
    assert pools[1] == ["reversed", reranking.value("RETURN fn::retrieve('hybrid', question:money_back, 6)")]
    assert evaluation.row["status"] == "complete"
    assert not [line for line in evaluation.warnings if "harness" in line]


def test_one_that_changes_the_recall_of_the_pool_is_a_fault_of_the_harness(reranking: Database) -> None:
    evaluation = evaluate(reranking, Options([6], retrievers=["words", "drops", "invents", "again"]))
    faults = [line for line in evaluation.warnings if "harness" in line]
    # the other names stand for all that is right with a reranker
    assert {line.partition(":")[0] for line in faults} == {"drops", "invents"}
    said = "a fault of the harness, not of retrieval: for"
    assert any(
        line.startswith(f"drops: {said}") and "its reranker drops candidates, first on question:" in line for line in faults
    )
    assert any(
        line.startswith(
            f"invents: {said} 8 of 8 questions its reranker brings documents that were no candidates, first article:nowhere"
        )
        for line in faults
    )


def test_a_reranker_of_a_reranker(help_centre: Database) -> None:
    first = _retrievers.reranked("first", "hybrid", "fn::rerank_lexical($question.text, $ids, $k)", 8)
    second = _retrievers.reranked("second", "first", "fn::rerank_mmr($question.embedding, $ids, $k, 0.5)", 4)
    text = "\n\n".join([BASE, _retrievers.entry(first), _retrievers.entry(second)])
    help_centre.run(_retrievers.compile_dispatcher(_retrievers.parse(text)))
    pool = help_centre.value("RETURN fn::retrieve('first', question:money_back, 4)")
    told = help_centre.value("RETURN fn::ranking('second', question:money_back, 4)")
    assert told["pool"] == pool
    assert sorted(ids(told["ids"])) == sorted(ids(pool))
    assert help_centre.value("RETURN fn::searches_neighbours('second')") is True
    assert help_centre.value("RETURN fn::searches_neighbours('bm25')") is False


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('[x]\nreranks = "hybrd"\nrerank = "$ids"', "reranks 'hybrd', which is none; there are: bm25, vector, hybrid, x"),
        ('[x]\nreranks = "y"\nrerank = "$ids"\n[y]\nreranks = "x"\nrerank = "$ids"', "x reranks y reranks x, in a circle"),
        ('[x]\nreranks = "hybrid"', "[x] has no rerank"),
        ('[x]\nreranks = "hybrid"\nrerank = "$ids"\npool = 0', "[x] pool is 0"),
        ('[x]\nreranks = "hybrid"\nrerank = "$ids"\nwhere = "true"', "[x] reranks, and has where"),
        ('[x]\nreranks = "hybrid"\nrerank = "$ids"\ncall = "[]"', "[x] reranks, and has call"),
        ('[x]\ncall = "[]"\nreturns = "article"\npool = 5', "[x] has pool and no reranks"),
    ],
)
def test_an_entry_that_is_none(entry: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        _retrievers.parse(f"{BASE}\n{entry}")
    assert message in caught.value.message


def test_an_entry_is_written_as_it_is_read() -> None:
    made = _retrievers.reranked("words", "hybrid", "fn::rerank_lexical($question.text, $ids, $k)", 20)
    text = _retrievers.entry(made)
    assert text.splitlines() == [
        "[words]", 'reranks = "hybrid"', 'rerank = "fn::rerank_lexical($question.text, $ids, $k)"', "pool = 20"
    ]  # fmt: skip
    assert _retrievers.parse(f"{BASE}\n{text}")[-1] == _retrievers.reranked(
        "words", "hybrid", "fn::rerank_lexical($question.text, $ids, $k)", 20, "article"
    )


def test_the_commands(run: Run, target: Settings) -> None:  # noqa: F811
    with Database(target) as database:
        database.run(_files.joined(_files.load(ROOT)))
        _seed.seed(database)
    run("init", "--table", "article", "--field", "content", "--vector", "embedding", "--dimension", "4", "--analyzer", "help")
    said = run("retriever", "add", "words", "fn::rerank_lexical($question.text, $ids, $k)", "--reranks", "hybrid", "--pool", "6")
    assert "added words" in said.stdout
    assert "words" in run("retriever", "list").stdout
    assert json.loads(run("retriever", "list", "--json").stdout)[-1]["pool"] == 6
    run("retriever", "test", "words")
    drops = ("retriever", "add", "drops", "$ids.filter(|$id| $id != article:track_order)", "--reranks", "hybrid", "--pool", "9")
    assert "a fault of the harness: it drops candidates" in run(*drops, code=4).stderr
    invents = ("retriever", "add", "invents", "array::concat([article:nowhere], $ids)", "--reranks", "hybrid")
    assert "a fault of the harness: it brings article:nowhere, which is no candidate" in run(*invents, code=4).stderr
    run(*drops, "--force")
    assert "a fault of the harness" in run("retriever", "test", "drops", code=4).stderr
    assert "a fault of the harness" in run("evaluate", "-k", "9", "-r", "drops").stderr
    assert "reranks 'hybrid', which is none" in run("retriever", "remove", "hybrid", code=2).stderr
    run("retriever", "remove", "drops")
    run("retriever", "add", "x", "$ids", "--pool", "3", code=2)
    run("retriever", "add", "x", "$ids", "--reranks", "nope", code=2)
