"""A review: what is wrong with a golden set, each problem named, and when its labels were read last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from surrecall import Database, Options, UsageError, _review, evaluate
from test_cli import Run, run, seeded, target  # noqa: F401  fixtures

OLD = "UPDATE question SET added = time::now() - 200d"


def problems(database: Database, days: int | None = None) -> dict[str, list[dict[str, Any]]]:
    told = _review.review(database, None, days).told
    return {one["problem"]: one["rows"] for one in told["problems"] if one["count"]}


def keys(rows: list[dict[str, Any]]) -> list[str]:
    return [row["question"].id for row in rows]


def test_a_set_without_problems_has_none(help_centre: Database) -> None:
    assert problems(help_centre) == {}
    row = _review.review(help_centre, None, None).rows[0]
    assert (row["question"].id, row["answers"], row["last"], row["labels"][0].get("found")) == ("arrived_broken", 0, [], None)


def test_a_label_is_read_when_it_is_added_changed_judged_or_reviewed(help_centre: Database) -> None:
    help_centre.run(OLD)
    unread = problems(help_centre)["unread"]
    assert len(unread) == 12
    assert {row["age"] for row in unread} == {200}
    assert "unread" not in problems(help_centre, 201)
    # changed
    edit = {"question": RecordID("question", "rate_limit"), "grade": 2, "who": "Ada", "why": None}
    help_centre.run("RETURN fn::label_edit($edit)", edit=edit | {"document": RecordID("article", "api_rate_limits")})
    # judged, by a person and by a model
    for source, question in (("person", "late_parcel"), ("model", "signin")):
        judgement = {
            "question": RecordID("question", question),
            "document": RecordID("article", "track_order" if question == "late_parcel" else "password_reset"),
            "grade": 2,
            "source": source,
            "judge": "x",
        }
        help_centre.run("RETURN fn::judge($judgement, false)", judgement=judgement)
    # reviewed
    _review.read(help_centre, [RecordID("question", "money_back")], "Ada")
    still = set(keys(problems(help_centre)["unread"]))
    assert still == {"arrived_broken", "expired_card", "gift_voucher", "signin", "stop_boxes"}
    row = next(row for row in _review.review(help_centre, None, None).rows if row["question"].id == "money_back")
    assert {label["who"] for label in row["labels"]} == {"Ada"}
    with pytest.raises(UsageError, match="no such question"):
        _review.read(help_centre, [RecordID("question", "nowhere")], "Ada")


def test_equal_questions_are_duplicates_or_contradict_each_other(help_centre: Database) -> None:
    help_centre.run("""
      CREATE question:same SET text = ' My card  EXPIRED', relevant = question:expired_card.relevant;
      CREATE question:other SET text = '429 Too many requests', relevant = [article:gift_card];
      CREATE question:elsewhere SET text = 'my card expired', relevant = [article:gift_card], set = 'other';
    """)
    found = problems(help_centre)
    assert [[one.id for one in row["questions"]] for row in found["duplicate"]] == [["expired_card", "same"]]
    assert [[one.id for one in row["questions"]] for row in found["contradiction"]] == [["other", "rate_limit"]]


def test_what_retrievers_never_and_always_answer(help_centre: Database) -> None:
    help_centre.run("""
      CREATE article:hidden SET content = 'nothing to find here at all', embedding = [0.01, 0.01, 0.01, 1];
      CREATE question:never SET text = 'zzz', embedding = [0, 0, 1, 0], relevant = [article:hidden];
      UPDATE question:late_parcel SET relevant += article:hidden;
    """)
    evaluate(help_centre, Options(cutoffs=(1, 2)))
    found = problems(help_centre)
    assert keys(found["never answered"]) == ["never"]
    lost = {(row["question"].id, row["document"].id) for row in found["never retrieved"]}
    assert {("never", "hidden"), ("late_parcel", "hidden")} <= lost
    assert ("late_parcel", "track_order") not in lost
    assert "late_parcel" in keys(found["always answered"])
    assert "rate_limit" not in keys(found["always answered"])
    # as long as the ranks of any evaluation say otherwise
    evaluate(help_centre, Options(cutoffs=(20,)))
    told = _review.review(help_centre, None, None).told
    assert (told["evaluations"], told["complete"]) == (2, 2)
    assert "never answered" not in problems(help_centre)


def test_kinds_are_verified(help_centre: Database) -> None:
    help_centre.run("""
      UPDATE question:rate_limit SET kind = 'conceptual';
      UPDATE question:money_back SET kind = 'lexical';
      UPDATE question:late_parcel SET kind = 'lexical';
      UPDATE question:signin SET kind = 'factual';
    """)
    assert keys(problems(help_centre)["kind"])[-1:] == ["rate_limit"]
    # where an anchor says which passage answers, that passage counts
    help_centre.run("UPDATE question:late_parcel SET anchors = [{ document: article:track_order, phrase: 'tell us' }]")
    assert "late_parcel" in keys(problems(help_centre)["kind"])


def test_labels_from_one_retriever_are_flagged(help_centre: Database) -> None:
    assert "one source" not in problems(help_centre)
    help_centre.run("""
      FOR $document IN (SELECT VALUE id FROM article LIMIT 5) {
        CREATE judgement SET question = question:signin, document = $document, grade = 2, source = 'person', judge = 'Ada',
          label = 1, retrievers = ['bm25'];
      };
    """)
    assert "brought by bm25 alone" in problems(help_centre)["one source"][0]["says"]


def test_below_a_write_it_is_the_same(help_centre: Database) -> None:
    evaluate(help_centre, Options(cutoffs=(1, 5)))
    begun = help_centre.value("RETURN fn::review_begin({})")
    ask = "fn::review_end($begun, [fn::review_part($begun.questions.map(|$id| fn::review_question($begun, $id)))])"
    told = help_centre.value(f"RETURN {ask}", begun=begun)
    assert help_centre.value(f"RETURN (CREATE ONLY executor_probe SET v = {ask}).v", begun=begun) == told


def test_what_it_takes(help_centre: Database) -> None:
    for options, said in (({"day": 1}, "there is no day"), ({"days": -1}, "a number of 0 or more, got -1")):
        with pytest.raises(UsageError) as caught:
            help_centre.value("RETURN fn::review_begin($options)", options=options)
        assert said in caught.value.text


def test_the_command(seeded: Run, tmp_path: Path) -> None:  # noqa: F811
    seeded("evaluate", "-k", "1,5")
    shown = seeded("review").stdout
    assert "always answered: 3 questions" in shown
    assert "set default: 8 questions, 12 labels, answers of 1 evaluation read" in shown
    told = json.loads(seeded("review", "--json", "--days", "0").stdout)
    assert next(one["count"] for one in told["told"]["problems"] if one["problem"] == "unread") == 12
    (tmp_path / "here" / "surrecall.toml").write_text("review_after = 1\n", encoding="utf-8")
    assert "unread" not in seeded("review").stdout
    (tmp_path / "here" / "surrecall.toml").write_text("review_after = 0\n", encoding="utf-8")
    assert "review_after is 0" in seeded("review", code=2).stderr
    (tmp_path / "here" / "surrecall.toml").unlink()
    assert "wrote a review" in seeded("review", "--out", "review.md").stdout
    page = (tmp_path / "here" / "review.md").read_text(encoding="utf-8")
    assert page.startswith("# Review of the golden set default\n")
    assert "| money_back | how do I get my money back | Cancel or pause a subscription, Request a refund |" in page
    assert seeded("review", "--read", "money_back", "--who", "Ada").stdout == "read by Ada: question:money_back\n"
    assert "no question has the id or text 'x'" in seeded("review", "--read", "x", code=2).stderr
    assert "no question in the golden set x" in seeded("review", "--set", "x", code=4).stderr
