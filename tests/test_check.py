"""fn::check: what the definitions promise and `surreal import` does not keep."""

from __future__ import annotations

import pytest

from conftest import ROOT
from surrecall import Database, Options, _schema, evaluate


def findings(database: Database) -> list[tuple[str, str]]:
    return [(row["subject"], row["problem"]) for row in database.value("RETURN fn::check()")]


def test_all_is_well_with_the_help_centre(help_centre: Database) -> None:
    assert findings(help_centre) == []
    assert _schema.drift(help_centre, ROOT) == []
    evaluate(help_centre, Options([3]))
    assert findings(help_centre) == []


def test_every_finding_says_what_next(schema: Database) -> None:
    schema.run("REMOVE INDEX article_words ON article")
    for row in schema.value("RETURN fn::check()"):
        assert row.keys() == {"kind", "subject", "problem", "next"}
        assert row["next"]


def test_an_empty_database_is_told_apart_from_a_healthy_one(schema: Database) -> None:
    assert findings(schema) == [
        ("article", "nothing is indexed: the table is empty"),
        ("question", "is empty: there is nothing to evaluate"),
    ]


@pytest.mark.parametrize("index", ["article_words", "article_embedding"])
def test_a_missing_index(help_centre: Database, index: str) -> None:
    help_centre.run(f"REMOVE INDEX {index} ON article")
    assert findings(help_centre) == [(f"index {index}", "is missing on article")]


def test_what_surreal_import_leaves_out(help_centre: Database) -> None:
    """One document; a question with empty text and a label that is text; one with a real label; its label then deleted."""
    evaluate(help_centre, Options([3]))
    help_centre.run(
        "OPTION IMPORT;"
        "INSERT INTO article { id: article:nine, title: 'Nine', content: 'nine', embedding: [0f, 0f, 0f, 0f] };"
        "INSERT INTO question { id: question:text, text: '', relevant: ['article:nine'] };"
        "INSERT INTO question { id: question:link, text: 'nine', relevant: [article:nine] };"
    )
    told = findings(help_centre)
    assert ("question:text", "has no text") in told
    assert ("question:text", "has the label article:nine, which is no article") in told
    for question in ("question:link", "question:text"):
        assert any(subject == question and "lacks fields that have defaults" in problem for subject, problem in told)
    assert (
        "question:link",
        "has the label article:nine, which nothing keeps from being deleted (the reference was not recorded)",
    ) in told
    assert ("article:nine", "its embedding is zeros, NaN or of another length") in told
    assert any(subject == "corpus" and "changed since the last complete evaluation" in problem for subject, problem in told)

    # nothing did keep it from being deleted
    help_centre.run("DELETE article:nine")
    assert ("question:link", "has the label article:nine, which does not exist") in findings(help_centre)


def test_a_document_that_came_in_afterwards_is_not_evaluated(help_centre: Database) -> None:
    evaluate(help_centre, Options([3]))
    help_centre.run("CREATE article SET title = 'New', content = 'new', embedding = [1, 0, 0, 0]")
    assert findings(help_centre) == [("corpus", "changed since the last complete evaluation: 10 documents then, 11 now")]
    evaluate(help_centre, Options([3]))
    assert findings(help_centre) == []


def test_labels_that_changed_since_the_last_evaluation(help_centre: Database) -> None:
    evaluate(help_centre, Options([3]))
    help_centre.run("UPDATE question:gift_voucher SET relevant += article:payment_method")
    assert findings(help_centre) == [("golden set default", "has other questions or labels than at the last complete evaluation")]


def test_a_question_without_a_vector(help_centre: Database) -> None:
    help_centre.run("UPDATE question:signin SET embedding = NONE")
    assert findings(help_centre) == [("question:signin", "has no embedding, retrievers that need one fail on it")]


def test_runs_whose_facts_are_gone(help_centre: Database) -> None:
    done = evaluate(help_centre, Options([3]))
    help_centre.run("DELETE eval_answer WHERE retriever = 'bm25'")
    name = help_centre.value("RETURN <string> $id", id=done.row["id"])
    assert findings(help_centre) == [(name, "has 16 of 24 answers, and runs stand on them")]
    help_centre.run("OPTION IMPORT; DELETE eval_answer; DELETE evaluation;")
    assert findings(help_centre) == [(name, "is gone, and runs stand on it")]


def test_documents_retrieval_can_not_find(help_centre: Database) -> None:
    help_centre.run(
        "CREATE article:blank SET title = 'x', content = ' ', embedding = [1, 0, 0, 0];"
        "CREATE article:bare SET title = 'x', content = 'x';"
    )
    assert findings(help_centre) == [
        ("article:bare", "has no embedding, vector search can't find it"),
        ("article:blank", "has no content, BM25 can't find it"),
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("INSERT INTO article { id: article:odd, content: 5, embedding: [1f, 0f, 0f, 0f] }", "has no content"),
        ("INSERT INTO article { id: article:odd, content: ['x'], embedding: [1f, 0f, 0f, 0f] }", "has no content"),
        ("INSERT INTO article { id: article:odd, content: 'x', embedding: NULL }", "has no embedding"),
        ("INSERT INTO article { id: article:odd, content: 'x', embedding: [1e-25, 0f, 0f, 0f] }", "its embedding is zeros"),
        ("INSERT INTO article { id: article:['a', 1], content: 'x', embedding: [1f, 0f, 0f, 0f] }", "has an array or object"),
        ("UPDATE question:signin SET relevant = article:gift_card", "has no label"),
        ("UPDATE question:signin SET answerable = 'yes'", "lacks fields that have defaults, or has them of another type"),
        ("UPDATE question:signin SET set = 5", "lacks fields that have defaults, or has them of another type"),
        ("UPDATE question:signin SET embedding = 'abcd'", "its embedding is zeros"),
        ("UPDATE question:signin SET embedding = NULL", "has no embedding"),
        ("UPDATE question:signin SET judged = 'x'", "its judged is no list"),
        ("UPDATE question:signin SET judged = [{ document: article:nowhere, grade: 1 }]", "which does not exist"),
        ("UPDATE question:signin SET text = 5", "has no text"),
    ],
)
def test_rows_of_any_type_are_named_and_never_stop_the_check(help_centre: Database, row: str, problem: str) -> None:
    help_centre.run(f"OPTION IMPORT; {row};")
    told = [text for subject, text in findings(help_centre) if subject.startswith(("article:", "question:signin"))]
    assert any(text.startswith(problem) or text.endswith(problem) for text in told), told


def test_a_judged_document_that_was_deleted(help_centre: Database) -> None:
    help_centre.run(
        "CREATE article:nine SET content = 'nine', embedding = [1, 0, 0, 0];"
        "UPDATE question:signin SET judged = [{ document: article:nine, grade: 0 }, { document: article:gift_card, grade: 1 }];"
        "DELETE article:nine;"
    )
    assert ("question:signin", "has the label article:nine, which does not exist") in findings(help_centre)
