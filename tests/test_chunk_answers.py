"""What reads stored answers where retrievers gave chunks: a label is a document, and its anchors say where it is in a chunk."""

from __future__ import annotations

from typing import Any

import pytest
from surrealdb import RecordID

from endpoints import Endpoint, chat
from surrecall import Database, Options, UsageError, _audit, _judge, _llm, _pool, _retrievers, _review, evaluate
from test_anchors import BY_WORDS, CARD, PHRASE, QUESTION, anchored, cut, retrieve_from
from test_embedding import endpoint, waits  # noqa: F401  fixtures


def review(database: Database) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """The problems, and the row of the question that has an anchor."""
    found = _review.review(database, None, None)
    problems = {one["problem"]: one["rows"] for one in found.told["problems"]}
    return problems, next(row for row in found.rows if row["question"] == QUESTION)


def named(rows: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(row["question"], row.get("document")) for row in rows]


@pytest.fixture
def in_chunks(help_centre: Database) -> Database:
    """The help centre with a table of chunks, a retriever of it beside bm25, and one question with an anchor."""
    anchored(help_centre, (CARD, PHRASE))
    cut(help_centre, "chunk", 1000)
    retrieve_from(help_centre, "chunk")
    return help_centre


def test_a_review_finds_labels_by_their_anchors(in_chunks: Database) -> None:
    evaluate(in_chunks, Options([5], retrievers=["chunk"]))
    problems, row = review(in_chunks)
    stored = in_chunks.value("SELECT VALUE ranking FROM ONLY eval_answer WHERE question = $q LIMIT 1", q=QUESTION)
    rank = stored.index(RecordID("chunk", ["gift_card", 0])) + 1
    assert [(one["retriever"], one["rank"]) for one in row["last"]] == [("chunk", rank)]
    assert (row["answers"], row["hits"]) == (1, 1)
    assert (problems["never answered"], problems["never retrieved"]) == ([], [])
    # what has no anchor could not be found there, so nobody says that it was not
    in_chunks.run("UPDATE $q SET relevant += article:refund_request RETURN NONE", q=QUESTION)
    problems, row = review(in_chunks)
    assert {label["document"].id: label.get("found") for label in row["labels"]} == {"gift_card": True, "refund_request": None}
    assert problems["never retrieved"] == []
    begun = in_chunks.value("RETURN fn::review_begin({})")
    ask = "fn::review_question($begun, question:gift_voucher).last"
    assert in_chunks.value(f"RETURN (CREATE ONLY executor_probe SET v = {ask}).v", begun=begun) == row["last"]


def test_a_review_names_anchors_that_no_chunk_was_found_of(in_chunks: Database) -> None:
    in_chunks.run("DELETE chunk WHERE document = $card; CREATE chunk:[1] CONTENT $row", card=CARD, row={
        "document": CARD, "position": 0, "text": f"zzz {PHRASE.upper()}",
    })  # fmt: skip
    in_chunks.run("UPDATE $q SET text = 'refund' RETURN NONE", q=QUESTION)
    evaluate(in_chunks, Options([1], retrievers=["chunk"]))
    problems, row = review(in_chunks)
    assert [one["rank"] for one in row["last"]] == [None]
    assert named(problems["never answered"]) == [(QUESTION, None)]
    assert named(problems["never retrieved"]) == [(QUESTION, CARD)]


def test_near_misses_are_documents(in_chunks: Database, endpoint: Endpoint) -> None:  # noqa: F811
    evaluate(in_chunks, Options([3]))
    chat_of = _llm.Chat(_llm.Asked("m-1", endpoint.url))
    asked = _judge.Options(depth=3)
    planned = _judge.plan(in_chunks, chat_of, asked)
    assert {pair["document"].table_name for pair in planned.pairs} == {"article"}
    chunks = in_chunks.value("SELECT VALUE ranking.len() FROM eval_answer WHERE retriever = 'chunk'")
    assert planned.elsewhere == sum(chunks) > 0
    endpoint.always = chat({"verdict": "YES", "reason": "it says so"})
    done = _judge.judge(in_chunks, chat_of, planned, asked)
    assert done.judged == done.labels == len(planned.pairs)
    # a judgement of a chunk that is there from before is in no audit
    in_chunks.run(
        "CREATE judgement SET question = $q, document = chunk:['gift_card', 0], grade = 0, source = 'model', judge = 'm-1', "
        "prompt = '1'",
        q=QUESTION,
    )
    assert _audit.state(in_chunks, "default")["unaudited"] == done.judged
    drawn = _audit.draw(in_chunks, "default", 100, anew=False)
    assert {row["document"].table_name for row in drawn["todo"]} == {"article"}


def test_retrievers_of_chunks_are_in_no_pool(in_chunks: Database) -> None:
    with pytest.raises(UsageError, match="two retrievers or more, there is bm25, beside chunks of chunk") as caught:
        _pool.pool(in_chunks, _pool.Options())
    assert caught.value.hint == "surrecall retriever add registers another"
    bm25 = '[bm25]\ncall = "fn::search_bm25($question.text, $k)"\nreturns = "article"\n'
    call = BY_WORDS.format(table="chunk")
    entries = [
        _retrievers.entry(_retrievers.Retriever("chunk", call, "chunk")),
        _retrievers.entry(_retrievers.Retriever("chunk_doc", call, "chunk", document="$row.document")),
    ]
    in_chunks.run(_retrievers.compile_dispatcher(_retrievers.parse("\n\n".join([bm25, *entries]))))
    left_out = "chunk gives chunks, left out; its retriever chunk_doc leads to documents"
    for stored in (False, True):
        if stored:
            evaluate(in_chunks, Options([5]))
        found = _pool.pool(in_chunks, _pool.Options(k=5))
        assert sorted(found.told["retrievers"]) == ["bm25", "chunk_doc"]
        assert (found.told["evaluation"] is not None) is stored
        assert found.told["warnings"].count(left_out) == 1
        assert not any("nothing came back" in line or "were left out; give" in line for line in found.told["warnings"])
    with pytest.raises(UsageError, match="a pool is made of documents, and chunk gives chunks") as caught:
        _pool.pool(in_chunks, _pool.Options(retrievers=["bm25", "chunk"]))
    assert caught.value.hint == "its retriever chunk_doc leads to documents"
    ask = "fn::pool_chunks('chunk', NONE)"
    assert in_chunks.value(f"RETURN {ask}") is True
    assert in_chunks.value(f"RETURN (CREATE ONLY executor_probe SET v = {ask}).v") is True
