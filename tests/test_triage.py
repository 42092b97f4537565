"""A wrong answer of production: retrieval or generation, and the question kept for good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from endpoints import Endpoint
from surrecall import Database, DataError, Options, Settings, SurrecallError, UsageError, _embed, _triage, evaluate
from surrecall._embedders import Kind
from test_cli import Run, run, seeded, target  # noqa: F401  fixtures
from test_embedding import endpoint  # noqa: F401  fixture

# a folder without a project: the help centre
NOWHERE = Path("nowhere")
MONEY = "how do I get my money back"


def asked(database: Database, text: str, *expected: str, **options: Any) -> _triage.Triaged:
    return _triage.triage(database, None, NOWHERE, _triage.Options(text, expected, **options))


def questions(database: Database, text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = database.value("SELECT * FROM question WHERE text = $text", text=text)
    return rows


def test_never_in_the_context_is_retrieval(help_centre: Database) -> None:
    told = asked(help_centre, MONEY, "refund_request", "cancel_subscription", k=3).verdict
    assert (told["verdict"], told["retriever"], told["k"], told["depth"]) == ("RETRIEVAL", "hybrid", 3, 100)
    assert [(row["document"].id, row["rank"], row["reached"]) for row in told["expected"]] == [
        ("refund_request", 4, False),
        ("cancel_subscription", 5, False),
    ]
    assert [document.id for document in told["context"]] == ["return_item", "track_order", "api_rate_limits"]
    assert told["sentence"] == (
        "RETRIEVAL: 2 of 2 expected documents never reached the first 3 of hybrid: article:refund_request is at rank 4, "
        "article:cancel_subscription is at rank 5"
    )


def test_in_the_context_is_generation(help_centre: Database) -> None:
    told = asked(help_centre, MONEY, "refund_request", "cancel_subscription", k=5).verdict
    assert told["verdict"] == "GENERATION"
    assert told["sentence"] == "GENERATION: hybrid brought all 2 expected documents into the first 5, at rank 4, 5"
    one = asked(help_centre, MONEY, "refund_request", k=4).verdict
    assert one["sentence"] == "GENERATION: hybrid brought the expected document into the first 4, at rank 4"
    # of two that are needed one was there
    half = asked(help_centre, MONEY, "refund_request", "cancel_subscription", k=4).verdict
    assert half["verdict"] == "RETRIEVAL"
    assert (
        "1 of 2 expected documents never reached the first 4 of hybrid: article:cancel_subscription is at rank 5"
        in half["sentence"]
    )


def test_beyond_what_was_looked_at(help_centre: Database) -> None:
    told = asked(help_centre, MONEY, "refund_request", k=3, depth=3).verdict
    assert told["expected"][0].get("rank") is None
    assert told["sentence"].endswith("article:refund_request is not among the first 3")
    # BM25 finds no word of it
    told = asked(help_centre, "stop", "gift_card", k=3, retriever="bm25").verdict
    assert told["sentence"].endswith("article:gift_card is not among the first 100")


def test_below_a_write_and_by_the_id_of_a_question(help_centre: Database) -> None:
    call = "fn::triage(NONE, question:money_back, [article:refund_request], { k: 3 })"
    told = help_centre.value(f"RETURN {call}")
    assert told["verdict"] == "RETRIEVAL"
    assert help_centre.value(f"RETURN (CREATE ONLY executor_probe SET v = {call}).v") == told


def test_a_retriever_whose_list_at_k_is_another_is_asked_at_k(help_centre: Database) -> None:
    help_centre.run("UPDATE retriever:bm25 SET prefix = false")
    help_centre.run("""
      DEFINE FUNCTION OVERWRITE fn::retrieve_rows($retriever: string, $question: record<question> | object, $k: any) {
        RETURN IF $k = 3 { [article:gift_card] } ELSE { [article:refund_request, article:gift_card] };
      } COMMENT 'surrecall: test'""")
    told = asked(help_centre, MONEY, "refund_request", "gift_card", k=3, retriever="bm25").verdict
    assert [(row["document"].id, row["rank"], row["reached"]) for row in told["expected"]] == [
        ("refund_request", 1, False),
        ("gift_card", 1, True),
    ]
    assert told["verdict"] == "RETRIEVAL"


def test_the_question_stays_for_good(help_centre: Database) -> None:
    text = "where is my parcel hiding"
    before = len(evaluate(help_centre, Options([3], retrievers=["bm25"])).row["questions"])
    done = asked(help_centre, text, "track_order", k=3, retriever="bm25", add=True, kind="factual", note="ticket 7")
    assert done.added is not None
    assert done.added["added"] is True
    (row,) = questions(help_centre, text)
    assert row["id"] == done.added["question"]
    assert (row["source"], row["set"], row["kind"], row["note"], row["answerable"]) == (
        "production", "default", "factual", "ticket 7", True
    )  # fmt: skip
    assert row["relevant"] == [RecordID("article", "track_order")]
    assert done.added["embedded"] is False
    # measured from now on, and a second report of it is the same question
    assert len(evaluate(help_centre, Options([3], retrievers=["bm25"])).row["questions"]) == before + 1
    again = asked(help_centre, text, "track_order", k=3, retriever="bm25", add=True)
    assert again.added == {"question": row["id"], "added": False, "embedded": False}
    with pytest.raises(DataError, match="without the label article:gift_card"):
        asked(help_centre, text, "gift_card", k=3, retriever="bm25", add=True)
    assert questions(help_centre, text) == [row]
    # another set may ask it too
    assert asked(help_centre, text, "track_order", retriever="bm25", add=True, question_set="failures").added["added"] is True  # type: ignore[index]
    assert len(questions(help_centre, text)) == 2


def test_without_a_vector_it_says_what_is_missing(help_centre: Database, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="the question has no vector, which this retriever needs, and no embedder is recorded"
    ) as caught:
        asked(help_centre, "something new", "gift_card", k=3, add=True)
    assert "--vector FILE" in (caught.value.hint or "")
    assert questions(help_centre, "something new") == []
    file = tmp_path / "v.json"
    file.write_text("[0.1, 0.85, 0.45, 0.1]")
    done = asked(help_centre, "something new", "refund_request", k=3, retriever="vector", vector=file, add=True)
    assert (done.verdict["verdict"], done.added and done.added["embedded"]) == ("GENERATION", True)
    (row,) = questions(help_centre, "something new")
    assert row["embedding"] == [0.1, 0.85, 0.45, 0.1]
    for text, error in (("[0, 0, 0, 0]", DataError), ("nothing", DataError), ("[1]", DataError)):
        file.write_text(text)
        with pytest.raises(error):
            asked(help_centre, "something else", "refund_request", k=3, retriever="vector", vector=file)
    with pytest.raises(UsageError, match="can't be read"):
        asked(help_centre, "something else", "refund_request", vector=tmp_path / "gone.json")


def test_the_recorded_embedder_makes_the_vector(help_centre: Database) -> None:
    where = _embed.places(None, NOWHERE, help_centre)
    _embed.embed(help_centre, where, _embed.Asked(embedder=Kind.HASHING, every=True))
    done = asked(help_centre, "request a refund", "refund_request", k=10, retriever="vector", add=True)
    assert done.added is not None
    assert done.added["embedded"] is True
    (row,) = questions(help_centre, "request a refund")
    (how,) = help_centre.value("SELECT * FROM embedding_model WHERE role = 'question'")
    assert row["embedding_model"] == how["model"]
    # and it is among the others of that model: nothing is refused
    assert evaluate(help_centre, Options([3])).row["status"] == "complete"


@pytest.fixture
def served(help_centre: Database, endpoint: Endpoint) -> Endpoint:  # noqa: F811
    endpoint.dimension = 4
    where = _embed.places(None, NOWHERE, help_centre)
    _embed.embed(help_centre, where, _embed.Asked(embedder=Kind.OPENAI, model="m", endpoint=endpoint.url, every=True))
    return endpoint


def test_a_recorded_endpoint_is_asked_once(help_centre: Database, served: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    before = len(served.texts)
    asked(help_centre, "request a refund", "refund_request", retriever="vector")
    assert served.texts[before:] == ["request a refund"]


def test_ids_that_are_none(help_centre: Database) -> None:
    with pytest.raises(DataError, match="no article has the id 'refund'"):
        asked(help_centre, MONEY, "refund")
    with pytest.raises(DataError, match="no article has the id 'article:refund_request'") as caught:
        asked(help_centre, MONEY, "article:refund_request")
    assert caught.value.hint == "give the id alone: --expected refund_request"
    help_centre.run("CREATE article:7 SET content = 'x', embedding = [1, 0, 0, 0]; CREATE article:⟨7⟩ SET content = 'y'")
    with pytest.raises(DataError, match="the id '7' is that of 2 records"):
        asked(help_centre, MONEY, "7")
    for call, said in (
        ("fn::triage(NONE, question:money_back, [article:gone], NONE)", "the label article:gone does not exist"),
        ("fn::triage('hybird', question:money_back, [article:gift_card], NONE)", "did you mean hybrid"),
        ("fn::triage(NONE, question:money_back, [article:gift_card], { pool: 3 })", "triage has no option pool"),
        ("fn::triage(NONE, question:money_back, [], NONE)", "a question needs at least one label"),
    ):
        with pytest.raises(SurrecallError) as failed:
            help_centre.value(f"RETURN {call}")
        assert said in failed.value.text, call


def test_the_command(seeded: Run, target: Settings) -> None:  # noqa: F811
    said = seeded("triage", MONEY, "--expected", "refund_request", "-e", "cancel_subscription", "-k", "3").stdout
    assert [line.split() for line in said.splitlines()[:3]] == [
        ["expected", "rank", "reached"],
        ["refund_request", "4", "no"],
        ["cancel_subscription", "5", "no"],
    ]
    assert "RETRIEVAL: 2 of 2 expected documents never reached the first 3 of hybrid" in said
    told = json.loads(seeded("triage", MONEY, "-e", "refund_request", "--json").stdout)
    assert told["verdict"]["verdict"] == "GENERATION"
    assert told["verdict"]["k"] == 8
    assert told["added"] is None
    done = seeded("triage", "a parcel", "-e", "track_order", "-r", "bm25", "--add")
    assert "added question:" in done.stdout
    assert "has no vector" in done.stderr
    # blanks around it make no other question
    assert "it is there already: question:" in seeded("triage", " a parcel ", "-e", "track_order", "-r", "bm25", "--add").stdout
    assert "no article has the id 'nope'" in seeded("triage", MONEY, "-e", "nope", code=4).stderr
    seeded("triage", MONEY, code=2)
    seeded("triage", " ", "-e", "track_order", code=2)
    with Database(target) as database:
        assert [row["source"] for row in questions(database, "a parcel")] == ["production"]
