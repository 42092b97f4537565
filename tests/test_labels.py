"""Labels: edited by one function, every change leaves a row, a judgement becomes a label by the threshold of its set."""

from __future__ import annotations

import pytest
from surrealdb import RecordID

from surrecall import Database, SurrecallError

_EDIT = "RETURN fn::label_edit($edit)"
_JUDGE = "RETURN fn::judge($judgement, $change)"
_LABELS = "RETURN fn::labels_of($question)"
_QUESTION = RecordID("question", "money_back")


def _article(key: str) -> RecordID:
    return RecordID("article", key)


def _edit(database: Database, key: str, grade: float | None, why: str | None = None) -> object:
    edit = {"question": _QUESTION, "document": _article(key), "grade": grade, "who": " Ada ", "why": why}
    return database.value(_EDIT, edit=edit)


def _judge(database: Database, key: str, grade: int, *, change: bool = False) -> object:
    judgement = {
        "question": _QUESTION,
        "document": _article(key),
        "grade": grade,
        "source": "model",
        "judge": "m1",
        "prompt": "1",
    }
    return database.value(_JUDGE, judgement=judgement, change=change)


def _changes(database: Database) -> list[tuple[object, ...]]:
    rows = database.value("SELECT document, before, after, who, why, at FROM label_change ORDER BY at, document")
    return [(str(row["document"].id), row.get("before"), row.get("after"), row["who"], row.get("why")) for row in rows]


def test_plain_labels_stay_plain_until_a_grade_is_not_one(help_centre: Database) -> None:
    before = help_centre.value("SELECT VALUE relevant FROM ONLY $question", question=_QUESTION)
    assert _edit(help_centre, "gift_card", 1, "read it")
    row = help_centre.value("SELECT relevant, judged FROM ONLY $question", question=_QUESTION)
    assert row.get("judged") is None
    assert {str(label.id) for label in row["relevant"]} == {str(label.id) for label in before} | {"gift_card"}
    assert _edit(help_centre, "track_order", 0)
    row = help_centre.value("SELECT relevant, judged FROM ONLY $question", question=_QUESTION)
    grades = {str(label["document"].id): label["grade"] for label in row["judged"]}
    assert grades == {str(label.id): 1 for label in before} | {"gift_card": 1, "track_order": 0}
    assert "track_order" not in {str(label.id) for label in row["relevant"]}
    assert _changes(help_centre) == [("gift_card", None, 1, "Ada", "read it"), ("track_order", None, 0, "Ada", None)]


def test_the_same_again_changes_nothing(help_centre: Database) -> None:
    assert _edit(help_centre, "gift_card", 1)
    assert _edit(help_centre, "gift_card", 1) is None
    assert len(_changes(help_centre)) == 1


def test_the_last_label_stays_and_what_is_not_there_is_refused(help_centre: Database) -> None:
    labels = help_centre.value(_LABELS, question=_QUESTION)
    for label in labels[1:]:
        _edit(help_centre, str(label["document"].id), None)
    last = str(labels[0]["document"].id)
    for key, grade, said in (
        (last, None, "the last relevant document"),
        (last, 0, "the last relevant document"),
        ("nowhere", 1, "does not exist"),
        (last, 5000, "between -1000 and 1000"),
    ):
        with pytest.raises(SurrecallError, match=said) as caught:
            _edit(help_centre, key, grade)
        assert caught.value.exit_code == 4
    assert help_centre.value(_LABELS, question=_QUESTION) == labels[:1]


def test_a_label_changed_by_plain_surrealql_leaves_a_row_of_its_own(help_centre: Database) -> None:
    _edit(help_centre, "gift_card", 1, "read it")
    help_centre.run("UPDATE $question SET relevant -= $document", question=_QUESTION, document=_article("gift_card"))
    help_centre.run("UPDATE $question SET kind = 'factual'", question=_QUESTION)
    rows = _changes(help_centre)
    assert [(row[0], row[1], row[2], row[4]) for row in rows] == [
        ("gift_card", None, 1, "read it"),
        ("gift_card", 1, None, None),
    ]
    # it is not put down to whoever edited before
    assert rows[1][3] != "Ada"
    with pytest.raises(SurrecallError, match="is not edited"):
        help_centre.run("UPDATE label_change SET who = 'Eve'")


def test_a_question_that_is_deleted_leaves_its_labels_in_the_log(help_centre: Database) -> None:
    labels = help_centre.value(_LABELS, question=_QUESTION)
    help_centre.run("DELETE $question", question=_QUESTION)
    assert [(row[0], row[1], row[2]) for row in _changes(help_centre)] == [
        (str(label["document"].id), 1, None) for label in sorted(labels, key=lambda label: str(label["document"].id))
    ]


@pytest.mark.parametrize(("threshold", "grade", "label"), [(None, 2, 1), (None, 1, None), (None, 0, 0), (1, 1, 1)])
def test_a_judgement_is_a_label_from_the_threshold_of_the_set(
    help_centre: Database, threshold: int | None, grade: int, label: int | None
) -> None:
    if threshold is not None:
        help_centre.run("CREATE golden_set:default SET threshold = $threshold", threshold=threshold)
    scale = help_centre.value("RETURN fn::golden_set_scale('default')")
    row = _judge(help_centre, "gift_card", grade)
    assert isinstance(row, dict)
    assert row.get("label") == label
    assert row["hash"]
    grades = {str(entry["document"].id): entry["grade"] for entry in help_centre.value(_LABELS, question=_QUESTION)}
    assert grades.get("gift_card") == label
    assert help_centre.value("RETURN fn::golden_set_scale('default')") == scale


def test_a_model_only_adds_and_a_person_may_change(help_centre: Database) -> None:
    labelled = str(help_centre.value(_LABELS, question=_QUESTION)[0]["document"].id)
    _edit(help_centre, "gift_card", 1)
    row = _judge(help_centre, labelled, 0)
    assert isinstance(row, dict)
    assert row.get("label") is None
    assert {entry["grade"] for entry in help_centre.value(_LABELS, question=_QUESTION)} == {1}
    _judge(help_centre, labelled, 0, change=True)
    grades = {str(entry["document"].id): entry["grade"] for entry in help_centre.value(_LABELS, question=_QUESTION)}
    assert grades[labelled] == 0
    assert grades["gift_card"] == 1
