"""Blame: which documents came above a label, what is known of them, and that no more is said than is known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from surrealdb import RecordID

from surrecall import Database, DataError, Options, Settings, SurrecallError, _blame, evaluate
from test_cli import Run, run, seeded, target  # noqa: F401
from test_trend import PLANT, without_none

_PUT = """
LET $made = (CREATE ONLY evaluation CONTENT {
  k: [1, 3], depth: 5, status: 'complete', started: <datetime> $started, finished: <datetime> $started + 1m,
  questions: $rankings.keys().map(|$name| type::record('question', $name)),
  calls: $retrievers.map(|$name| { retriever: $name, depth: 5 }),
  corpus: { documents: 10, hash: $corpus }, golden_set: 'golden', definitions: $definitions, engine: '3.2.4'
});
LET $answers = $retrievers.map(|$retriever| $rankings.entries().map(|$pair| {
  evaluation: $made.id, retriever: $retriever, question: type::record('question', $pair[0]), depth: 5, ranking: $pair[1],
  labels: $labels.map(|$document| { document: $document, grade: 1 }), answerable: true, took: 0ns, status: 'ok'
})).flatten();
INSERT INTO eval_answer $answers RETURN NONE;
RETURN $made.id;
"""
_CHANGE = "CREATE corpus_change SET document = $document, action = $action, at = <datetime> $at, hash = 'x'"
DAY = "2026-03-0{}T10:00:00Z"


def doc(name: str) -> RecordID:
    return RecordID("article", name)


def put(database: Database, day: int, rankings: dict[str, str], **more: Any) -> RecordID:
    """A complete evaluation of that day of March; a ranking is a letter a document, best first, the label is `l`."""
    given = {"retrievers": ["one"], "corpus": f"corpus {day}", "definitions": "same", "labels": ["l"]} | more
    made: RecordID = database.value(
        _PUT,
        started=DAY.format(day),
        rankings={name: [doc(letter) for letter in ranking] for name, ranking in rankings.items()},
        **given | {"labels": [doc(letter) for letter in given["labels"]]},
    )
    return made


def change(database: Database, day: int, letter: str, action: str = "CREATE") -> None:
    database.run(_CHANGE, document=doc(letter), action=action, at=DAY.format(day))


def blame(database: Database, a: RecordID, b: RecordID, **options: Any) -> dict[str, Any]:
    """What fn::blame gives, found equal on both executors and in shards."""
    told: dict[str, Any] = database.value("RETURN fn::blame($a, $b, $options)", a=a, b=b, options=options)
    below = database.value(
        "RETURN (CREATE ONLY executor_probe SET value = fn::blame($a, $b, $options)).value", a=a, b=b, options=options
    )
    assert without_none(told) == without_none(below)
    assert _blame.blame(database, a, b, **options) == told
    return told


def row_of(told: dict[str, Any]) -> dict[str, Any]:
    (row,) = told["rows"]
    assert isinstance(row, dict)
    return row


@pytest.fixture
def here(schema: Database) -> Database:
    """The documents that rankings name."""
    schema.run("INSERT INTO article $rows RETURN NONE", rows=[{"id": letter, "content": letter} for letter in "labcdef"])
    return schema


def test_what_was_written_in_between_is_named(here: Database) -> None:
    a = put(here, 1, {"q": "labcd"})
    change(here, 1, "f")
    change(here, 2, "e")
    change(here, 3, "a", "UPDATE")
    b = put(here, 4, {"q": "eabld"})
    change(here, 5, "b", "UPDATE")
    # at k 1 its place was taken by one
    (label,) = row_of(blame(here, a, b, k=1))["labels"]
    assert (label["document"], label["rank_a"], label["rank_b"], label["state"]) == (doc("l"), 1, 4, "no change recorded")
    assert [one["document"] for one in label["above"]] == [doc("e")]
    # at k 3 all that stands above it now and did not before
    told = blame(here, a, b, k=3)
    (label,) = row_of(told)["labels"]
    assert [(one["document"], one["rank"], one["before"]) for one in label["above"]] == [
        (doc("e"), 1, None),
        (doc("a"), 2, 2),
        (doc("b"), 3, 3),
    ]
    assert [one["sentence"] for one in label["above"]] == [
        "article:e entered the ranking at 1; written 2026-03-02 10:00:00 UTC",
        "article:a is at 2 as before, now above the label; changed 2026-03-03 10:00:00 UTC",
        "article:b is at 3 as before, now above the label; no change of it is recorded in between",
    ]
    # of the first there is a change at its own start, which it may not have seen; what came after the second is none of it
    assert told["changes"] == 2
    assert told["sentences"] == [
        "1 question fell in recall@3",
        "2 changes of the corpus recorded between the two",
        "above labels that fell: 2 documents written or changed in between; that it came there is known,"
        " that it is the cause is not",
        "not the same for the two: the corpus",
    ]
    assert "caus" not in json.dumps([label["sentence"] for label in row_of(told)["labels"]])


def test_where_no_change_is_recorded_it_is_said(here: Database) -> None:
    a = put(here, 1, {"q": "labcd"})
    b = put(here, 2, {"q": "eabcd"})
    told = blame(here, a, b, k=3)
    (label,) = row_of(told)["labels"]
    assert told["changes"] is None
    assert label["state"] == "unknown"
    assert label["sentence"] == "article:l was at 1 and did not come back; whether the document itself changed is not known"
    assert label["above"][0]["sentence"] == "article:e entered the ranking at 1; when it was written is not known"
    assert "when a document was written is not known" in told["sentences"][1]
    # an equal fingerprint says that there was nothing to record
    c = put(here, 3, {"q": "abcd"}, corpus="corpus 1", definitions="others")
    told = blame(here, a, c, k=3)
    assert (told["changes"], row_of(told)["labels"][0]["state"]) == (0, "unchanged")
    assert told["sentences"] == [
        "1 question fell in recall@3",
        "the corpus is the same",
        "not the same for the two: the definitions",
    ]
    d = put(here, 4, {"q": "abcd"}, definitions=None)
    assert blame(here, a, d, k=3)["sentences"][-1] == "whether the definitions changed is not known"


def test_a_label_that_changed_or_went(here: Database) -> None:
    a = put(here, 1, {"q": "lfabc"}, labels=["l", "f"])
    change(here, 2, "l", "UPDATE")
    change(here, 2, "f", "DELETE")
    here.run("DELETE article:f")
    b = put(here, 3, {"q": "abcld"}, labels=["l", "f"])
    labels = row_of(blame(here, a, b, k=3))["labels"]
    assert [(one["document"].id, one["state"], one["rank_b"]) for one in labels] == [("l", "changed", 4), ("f", "gone", None)]
    assert [one["sentence"] for one in labels] == [
        "article:l was at 1 and is at 4; the document itself was changed 2026-03-02 10:00:00 UTC",
        "article:f was at 2 and did not come back; the document is gone",
    ]


def test_only_questions_that_fell_the_largest_fall_first(here: Database) -> None:
    two = {"labels": ["l", "f"], "retrievers": ["two", "one"]}
    a = put(here, 1, {"half": "lfabc", "all": "lfabc", "same": "lfabc", "rose": "abcde", "other": "lfabc"}, **two)
    b = put(here, 2, {"half": "labcf", "all": "abcde", "same": "lfabc", "rose": "lfabc", "another": "abcde"}, **two)
    told = blame(here, a, b, k=3)
    assert [(row["retriever"], row["question"].id, row["a"], row["b"]) for row in told["rows"]] == [
        ("one", "all", 1.0, 0.0),
        ("one", "half", 1.0, 0.5),
        ("two", "all", 1.0, 0.0),
        ("two", "half", 1.0, 0.5),
    ]
    assert told["sentences"][0] == "4 questions fell in recall@3, counted for each retriever"
    assert {row["retriever"] for row in blame(here, a, b, k=3, retriever="two")["rows"]} == {"two"}
    # by another metric a label that is lower within the first k is a fall
    assert [row["question"].id for row in blame(here, a, b, k=5, metric="ndcg", retriever="one")["rows"]] == ["all", "half"]
    assert blame(here, a, b, k=5, retriever="one")["rows"][0]["question"].id == "all"
    assert blame(here, b, put(here, 3, {"all": "lfabc"}, **two), k=3)["sentences"][0] == "no question fell in recall@3"


def test_a_fall_without_a_lower_label(here: Database) -> None:
    a = put(here, 1, {"q": "l"})
    b = put(here, 2, {"q": "labc"})
    told = row_of(blame(here, a, b, k=3, metric="precision"))
    assert told["labels"] == []
    assert told["sentence"].startswith("every label that came back stands where it stood, or higher")


def test_what_is_refused(here: Database) -> None:
    a, b = put(here, 1, {"q": "l"}), put(here, 2, {"q": "a"})
    lonely = put(here, 3, {"q": "a"}, retrievers=["two"])
    for first, second, options, message in (
        (a, b, {"metrik": "x"}, "blame has no option metrik"),
        (a, a, {}, "blame takes two evaluations"),
        (b, a, {}, "blame takes the earlier evaluation first"),
        (a, b, {"k": 9}, "k must be 5 or less"),
        (a, b, {"retriever": "tow"}, "no retriever named tow in both evaluations; there are: one"),
        (a, b, {"metric": "recal"}, "no metric named recal"),
        (a, lonely, {}, "have no retriever in common"),
        (a, RecordID("evaluation", "x"), {}, "no evaluation evaluation:x"),
    ):
        with pytest.raises(SurrecallError) as caught:
            here.value("RETURN fn::blame($a, $b, $options)", a=first, b=second, options=options)
        assert message in caught.value.text
    with pytest.raises(DataError, match="no question in common"):
        here.value("RETURN fn::blame($a, $b, {})", a=a, b=put(here, 4, {"q": "a"}, labels=["f"]))


def test_a_planted_article_is_found(help_centre: Database) -> None:
    a = evaluate(help_centre, Options([1, 3])).row["id"]
    help_centre.run(PLANT)
    b = evaluate(help_centre, Options([1, 3])).row["id"]
    told = blame(help_centre, a, b, retriever="bm25")
    assert [(row["question"].id, row["a"]) for row in told["rows"]] == [("expired_card", 1.0), ("signin", pytest.approx(2 / 3))]
    for row in told["rows"]:
        for label in row["labels"]:
            assert [one["document"] for one in label["above"]] == [doc("spam")]
            assert label["above"][0]["created"] is not None
    assert "entered the ranking at 1; written" in told["rows"][0]["labels"][0]["above"][0]["sentence"]


def test_changes_are_read_by_an_index(schema: Database) -> None:
    for statement, index in (
        (
            "SELECT at, action, id FROM corpus_change WHERE document = $d AND at > $from AND at <= $to ORDER BY at, id",
            "corpus_change_document",
        ),
        ("SELECT VALUE id FROM corpus_change WHERE at > $from AND at <= $to", "corpus_change_at"),
    ):
        plan = schema.value(f"LET $from = time::now() - 1d; LET $to = time::now(); {statement} EXPLAIN", d=doc("x"))
        assert index in str(plan)


def test_the_command(seeded: Run, target: Settings) -> None:  # noqa: F811
    def evaluated() -> str:
        return str(json.loads(seeded("evaluate", "-k", "1,3", "--json").stdout)["row"]["id"])

    a = evaluated()
    with Database(target) as database:
        database.run(PLANT)
    b = evaluated()
    shown = seeded("blame", a, b, "-k", "3").stdout
    assert "bm25, expired_card: my card expired\n  recall@3 1.000 -> 0.000\n" in shown
    assert "    article:spam entered the ranking at 1; written 20" in shown
    assert "not the same for the two: the corpus" in shown
    assert json.loads(seeded("blame", a, b, "--json").stdout)["k"] == 3
    assert "blame takes the earlier evaluation first" in seeded("blame", b, a, code=2).stderr
    assert "no evaluation evaluation:x" in seeded("blame", a, "x", code=2).stderr
    assert "did you mean bm25?" in seeded("blame", a, b, "-r", "bm52", code=2).stderr
