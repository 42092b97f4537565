"""Why a label was missed: where it stands in each list, the kind of fault, and what it is told by."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from planted import CASES, K, plant
from surql_cases import both_executors
from surrecall import Database, Options, UsageError, _diagnosis, _evaluation, evaluate
from test_cli import Run, run, seeded, target

__all__ = ["run", "seeded", "target"]

MONEY_BACK = RecordID("question", "money_back")


@pytest.fixture
def planted(empty: Database, tmp_path: Path) -> Database:
    plant(empty, tmp_path)
    return empty


def test_the_lesson_shows_where_the_labels_of_money_back_were_lost(help_centre: Database) -> None:
    told = _diagnosis.diagnose(help_centre, "hybrid", MONEY_BACK, 3)
    assert [(row["rank"], row["verdict"]["kind"]) for row in told["labels"]] == [(4, "ranking"), (5, "ranking")]
    ranks = [{one["stage"]: one["rank"] for one in row["ranks"]} for row in told["labels"]]
    assert ranks == [{"lexical": None, "vector": 1, "fused": 4}, {"lexical": None, "vector": 2, "fused": 5}]
    above = [(row["document"].id, [(one["word"], round(one["score"], 2)) for one in row["words"]]) for row in told["top"][:3]]
    assert above == [
        ("return_item", [("back", 2.46)]),
        ("track_order", [("how", 1.27)]),
        ("api_rate_limits", [("how", 1.15)]),
    ]


def test_the_lesson_shows_what_another_way_of_searching_would_have_found(help_centre: Database) -> None:
    (label,) = _diagnosis.diagnose(help_centre, "vector", RecordID("question", "rate_limit"), 3)["labels"]
    assert label["verdict"]["kind"] == "ranking"
    assert [(one["stage"], one["own"], one["rank"]) for one in label["ranks"]] == [
        ("vector", True, 9),
        ("lexical", False, 1),
        ("fused", False, 3),
    ]


def test_nothing_is_missed_behind_the_floor(help_centre: Database) -> None:
    listed = "fn::retrieve_hybrid_floor(text, embedding, 3, 1.5)"
    assert help_centre.value(f"SELECT VALUE id FROM question WHERE array::complement(relevant, {listed}) != []") == []


def test_the_words_of_a_question_add_up_to_its_score(help_centre: Database) -> None:
    told = help_centre.value("SELECT VALUE fn::diagnose('bm25', id, { k: 3 }).top FROM question ORDER BY id")
    scored = [row for top in told for row in top]
    assert len(scored) > 20
    for row in scored:
        assert sum(one["score"] for one in row["words"]) == pytest.approx(row["score"], abs=1e-5), row["document"]


def test_ranks_by_stage_are_had_by_themselves_and_on_both_executors(help_centre: Database) -> None:
    told = help_centre.value("RETURN fn::stage_ranks('hybrid', question:money_back, 100)")
    assert [one["rank"] for row in told for one in row["ranks"]] == [None, 1, 4, None, 2, 5]
    again = help_centre.value("RETURN [1].map(|$one| fn::stage_ranks('hybrid', question:money_back, 100))[0]")
    assert again == told
    (stored,) = help_centre.value("CREATE kept:1 SET told = fn::stage_ranks('hybrid', question:money_back, 100)")
    assert [[one.get("rank") for one in row["ranks"]] for row in stored["told"]] == [[None, 1, 4], [None, 2, 5]]


@pytest.mark.parametrize("name", ["nosuch", ""])
def test_an_unknown_retriever_is_refused_with_those_that_exist(help_centre: Database, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        _diagnosis.diagnose(help_centre, name, MONEY_BACK, 3)
    assert refused.value.hint == "there are: bm25, vector, hybrid"


def test_every_planted_fault_is_found_with_its_evidence(planted: Database) -> None:
    found = {}
    for kind, retriever in CASES.items():
        told = _diagnosis.diagnose(planted, retriever, RecordID("question", kind), K)
        (label,) = told["labels"]
        assert label["verdict"], (kind, label)
        found[kind] = label["verdict"]["kind"]
        assert label["verdict"]["fix"]
        assert label["verdict"]["advice"]
        _evidence(kind, label)
    assert found == {kind: kind for kind in CASES}
    assert set(found) == set(planted.value("RETURN fn::miss_kinds().kind"))


def _evidence(kind: str, label: dict[str, Any]) -> None:
    """What the verdict stands on is in the output."""
    shown = label["evidence"]
    ranks = {one["stage"]: one["rank"] for one in label["ranks"] if one["own"]}
    match kind:
        case "not-in-corpus":
            assert shown["there"] is False
        case "not-indexed":
            assert shown["fault"] == "has no vec, vector search can't find it"
        case "filtered-out":
            assert shown["kept"] is False
        case "unlabelled-answer":
            assert [(one["document"].id, one["rank"]) for one in shown["answers"]] == [("unlabelled_answer_1", 1)]
        case "index-loss":
            assert (shown["exact"], ranks["vector"]) == (1, None)
        case "reranker-demotion":
            assert (ranks["fused"], ranks["reranked"]) == (1, None) or ranks["reranked"] > K
        case "near-duplicates":
            assert [one.id for one in shown["duplicates"]] == ["near_duplicates_2", "near_duplicates_3"]
        case "chunk-boundary":
            assert [(one["document"].id, one["rank"]) for one in shown["neighbours"]] == [("chunk_boundary_2", 2)]
        case "vocabulary-gap":
            assert set(ranks.values()) == {None}
        case "one-stage-only":
            assert ranks == {"vector": None}
            assert {one["stage"]: one["rank"] for one in label["ranks"]}["lexical"] == 1
        case "ranking":
            assert ranks == {"lexical": 4, "vector": 4, "fused": 4}


def test_a_heading_that_was_cut_off_from_its_text(help_centre: Database) -> None:
    """What it heads stands in another piece, and which one need not be known."""
    help_centre.run(
        "CREATE article:heading SET title = 'Refunds abroad', content = ' Refunds abroad \n', embedding = [0f, 0, 0, 1];"
        "CREATE question:heading SET text = 'abroad', embedding = [1f, 0, 0, 0], relevant = [article:heading]"
    )
    (label,) = _diagnosis.diagnose(help_centre, "vector", RecordID("question", "heading"), 2)["labels"]
    assert (label["verdict"]["kind"], label["verdict"]["why"]) == ("chunk-boundary", "it holds its title and nothing more")
    assert label["evidence"]["heading"] is True
    # nothing of it where there is text too
    help_centre.run("UPDATE article:heading SET content = 'Refunds abroad take a week'")
    (label,) = _diagnosis.diagnose(help_centre, "vector", RecordID("question", "heading"), 2)["labels"]
    assert (label["verdict"]["kind"], label["evidence"]["heading"]) == ("ranking", False)


def test_what_is_found_has_no_verdict(planted: Database) -> None:
    (label,) = _diagnosis.diagnose(planted, "hybrid", RecordID("question", "ranking"), 5)["labels"]
    assert label["rank"] == 4
    assert label["verdict"] is None


def test_misses_are_counted_by_fault_and_kind_of_question(planted: Database) -> None:
    evaluated = _evaluation.evaluate(planted, _evaluation.Options([K], ["hybrid"]))
    told = _diagnosis.misses(planted, evaluated.row["id"], "hybrid", K, None, lambda *_: None)
    summary = told["summary"]
    assert evaluated.runs[0]["recall"] == pytest.approx(summary["recall"])
    assert summary["missed"] == len(told["rows"]) == sum(row["labels"] for row in summary["kinds"])
    by_kind = {row["kind"]: row["labels"] for row in summary["kinds"]}
    assert by_kind["ranking"] >= 1
    assert by_kind["vocabulary-gap"] == 1
    for row in summary["kinds"]:
        assert sum(one["labels"] for one in row["classes"]) == row["labels"]
    assert [row["labels"] for row in summary["kinds"]] == sorted((row["labels"] for row in summary["kinds"]), reverse=True)
    # the pool holds what some list of its own holds, each question has one label
    assert summary["pool_recall"] == pytest.approx(1 - summary["never_found"] / summary["questions"])
    assert summary["never_found"] + summary["not_promoted"] == summary["missed"]


def test_a_reader_s_verdict_stands_beside_the_computed_one_and_stays(help_centre: Database) -> None:
    options = _evaluation.Options([3], ["hybrid"])
    _evaluation.evaluate(help_centre, options)
    _diagnosis.note(help_centre, MONEY_BACK, "vocabulary-gap", "first")
    _diagnosis.note(help_centre, MONEY_BACK, "ranking", "a floor under weak hits")
    later = _evaluation.evaluate(help_centre, options)
    rows = _diagnosis.misses(help_centre, later.row["id"], "hybrid", 3, None, lambda *_: None)["rows"]
    noted = {row["question"].id: row["noted"] and (row["noted"]["kind"], row["noted"]["note"]) for row in rows}
    assert noted == {"money_back": ("ranking", "a floor under weak hits"), "signin": None}
    assert help_centre.value("SELECT VALUE kind FROM miss_note ORDER BY at, id") == ["vocabulary-gap", "ranking"]
    with pytest.raises(Exception, match="not edited"):
        help_centre.run("UPDATE miss_note SET kind = 'index-loss'")
    with pytest.raises(UsageError, match="no kind of fault named rankin"):
        _diagnosis.note(help_centre, MONEY_BACK, "rankin", None)


def test_the_command_line_explains(seeded: Run) -> None:
    shown = seeded("explain", "money_back", "-r", "hybrid", "-k", "3").stdout
    assert "refund_request: ranking: at 4, below k = 3; lexical -, vector 1, fused 4; try hybrid-weights" in shown
    assert "back 2.46" in shown
    assert json.loads(seeded("explain", "money_back", "-k", "3", "--json").stdout)["retriever"] == "hybrid"
    refused = seeded("explain", "nosuch", "-r", "hybrid", code=4).stderr
    assert "no question has the id or text 'nosuch', and free text has no vector for hybrid" in refused
    assert "no label is known for it" in seeded("explain", "too many requests", "-r", "bm25", "-k", "3").stdout


def test_the_command_line_sorts_misses(seeded: Run) -> None:
    seeded("evaluate", "-k", "3", "-r", "hybrid")
    # the largest k of the evaluation where none is given
    assert (told := re.search(r"missed in (evaluation:\w+)", seeded("misses", "-r", "hybrid").stdout))
    assert told[0] in seeded("misses", "-r", "hybrid", "--evaluation", told[1]).stdout
    shown = seeded("misses", "-r", "hybrid", "-k", "3").stdout
    assert "hybrid at k = 3: 3 of 12 labels missed, of 2 of 8 questions" in shown
    assert "recall 0.833; its lists hold 1.000: 3 not promoted, 0 never found by the first stage" in shown
    assert "kept: money_back is ranking" in seeded("misses", "--set", "money_back", "ranking", "--note", "floor").stdout
    assert "ranking floor" in seeded("misses", "-r", "hybrid", "-k", "3").stdout
    assert "did you mean ranking" in seeded("misses", "--set", "money_back", "rankin", code=2).stderr


@pytest.mark.parametrize(
    ("retriever", "change", "kind"),
    [
        # in the lexical list it stands all the same
        ("hybrid", "SET embedding = NONE", "not-indexed"),
        ("vector", "SET embedding = NONE", "not-indexed"),
        ("hybrid", "SET content = ' '", "not-indexed"),
        # BM25 reads no vectors
        ("bm25", "SET embedding = NONE, content = 'in other words'", "vocabulary-gap"),
        ("vector", "SET content = ' '", "ranking"),
    ],
)
def test_what_keeps_a_document_from_a_list_is_named_where_it_is_missing(
    help_centre: Database, retriever: str, change: str, kind: str
) -> None:
    help_centre.run(
        "CREATE article:late SET title = 'Late', content = 'refunds abroad', embedding = [0f, 0, 0, 1];"
        "CREATE question:late SET text = 'back money get abroad', embedding = [1f, 0, 0, 0], relevant = [article:late]"
    )
    help_centre.run(f"UPDATE article:late {change}")
    (label,) = _diagnosis.diagnose(help_centre, retriever, RecordID("question", "late"), 1)["labels"]
    assert (label["verdict"] or {}).get("kind") == kind, label


def test_a_list_that_ends_before_the_exact_neighbour_is_no_loss_of_the_index(help_centre: Database) -> None:
    told = _diagnosis.diagnose(help_centre, "vector", RecordID("question", "rate_limit"), 3, 3)
    (label,) = [one for one in told["labels"] if one["verdict"]]
    assert (label["verdict"]["kind"], label["evidence"]["exact"]) == ("one-stage-only", None)


def test_lists_as_deep_as_the_corpus_are_said_to_say_little(help_centre: Database) -> None:
    for way in both_executors("RETURN [fn::depth_note(100), fn::depth_note(10), fn::depth_note(9)]"):
        told = help_centre.value(way)
        assert "the corpus has 10 documents and a list takes 100" in told[0]
        assert "--depth 2 tells more" in told[1]
        assert told[2] is None


def test_what_a_reranker_was_not_given_it_did_not_demote(help_centre: Database) -> None:
    fused = {"retriever": "hybrid", "stage": "fused", "own": True, "rank": 4}
    facts = {
        "document": RecordID("article", "a"), "k": 5, "depth": 100, "pool": 3, "rank": None, "there": True, "kept": True,
        "ranks": [fused, {"retriever": "hybrid", "stage": "reranked", "own": True, "rank": None}],
        "answers": [], "duplicates": [], "neighbours": [],
    }  # fmt: skip
    for way in both_executors("RETURN fn::miss_kind($facts)"):
        told = help_centre.value(way, facts=facts)
        assert (told["kind"], "of which the first 3 are reranked" in told["why"]) == ("ranking", True)
        assert help_centre.value(way, facts=facts | {"pool": 4})["kind"] == "reranker-demotion"


def test_labels_and_questions_that_changed_since_are_counted_and_in_no_kind(help_centre: Database) -> None:
    evaluation = evaluate(help_centre, Options([3], ["hybrid"])).row["id"]
    help_centre.run("UPDATE question:money_back SET relevant = [article:gift_card]; DELETE question:signin")
    told = _diagnosis.misses(help_centre, evaluation, "hybrid", 3, None, lambda _done, _all: None)
    assert (told["summary"]["missed"], told["summary"]["changed"], told["rows"]) == (3, 3, [])
