"""Labels notice when their document changes or goes, by event and by scan, and nothing but a person says that they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

import foreign
from surrecall import Database, Options, Settings, SurrecallError, _adopt, _files, _gate, _import_labels, _stale, evaluate
from surrecall._corpus import Corpus
from test_adopt import nobody, papers  # noqa: F401
from test_cli import Run, run, seeded, target  # noqa: F401

_MONEY = RecordID("question", "money_back")
_REFUND = RecordID("article", "refund_request")
_CHANGE = "UPDATE article:refund_request SET content = content + ' and more'"
_IMPORT = "OPTION IMPORT; UPDATE article:refund_request SET content = content + ' and more'"
_UNPROTECTED = """
DEFINE FIELD OVERWRITE relevant ON question TYPE array<record<article>> DEFAULT []
  VALUE IF ($this.judged ?? []).len() > 0 { array::distinct($this.judged[WHERE grade >= 1].document) } ELSE { $value.distinct() }
  ASSERT fn::require_labels(array::complement($value, $before ?? []), $value.len() = 0 AND $this.answerable != false)
"""


def _marks(database: Database, question: RecordID = _MONEY) -> dict[str, Any]:
    """The stale labels of a question by key of the document, `is` of each: None where the document is gone."""
    rows = database.value("SELECT VALUE stale FROM ONLY $question", question=question) or []
    return {str(row["document"].id): row.get("is") for row in rows}


def _hash(database: Database, document: RecordID = _REFUND) -> str:
    return str(database.value("RETURN fn::document_text_hash($document)", document=document))


@pytest.mark.parametrize("change", [_CHANGE, _IMPORT], ids=["event", "import"])
def test_a_changed_text_marks_its_labels(help_centre: Database, change: str) -> None:
    was = _hash(help_centre)
    help_centre.run(change)
    if change is _IMPORT:
        # no event ran, so only the comparison knows
        assert _marks(help_centre) == {}
        assert [row["subject"] for row in help_centre.value("RETURN fn::check_labels()")] == [
            "question:arrived_broken, label article:refund_request",
            "question:money_back, label article:refund_request",
        ]
        _stale.scan(help_centre)
    assert _marks(help_centre) == {"refund_request": _hash(help_centre)}
    (row,) = help_centre.value("SELECT VALUE stale FROM ONLY $question", question=_MONEY)
    assert row["was"] == was != row["is"]
    since = row["since"]
    # the mark keeps its day, whatever is written next, and the text that it was given for
    help_centre.run("UPDATE article:refund_request SET content = 'another text altogether'")
    (row,) = help_centre.value("SELECT VALUE stale FROM ONLY $question", question=_MONEY)
    assert (row["was"], row["since"], row["is"]) == (was, since, _hash(help_centre))


def test_what_a_person_does_not_read_marks_nothing(help_centre: Database) -> None:
    help_centre.run("UPDATE article:refund_request SET embedding = [1, 0, 0, 0]; UPDATE article:refund_request SET title = title")
    _stale.scan(help_centre)
    assert _marks(help_centre) == {}
    assert help_centre.value("RETURN fn::check_labels()") == []


@pytest.mark.parametrize("change", [_CHANGE, _IMPORT], ids=["event", "import"])
def test_a_text_that_is_as_it_was_again_is_not_stale(help_centre: Database, change: str) -> None:
    before = help_centre.value("SELECT VALUE content FROM ONLY article:refund_request")
    help_centre.run(change)
    _stale.scan(help_centre)
    assert _marks(help_centre)
    back = "UPDATE article:refund_request SET content = $before"
    help_centre.run(back if change is _CHANGE else f"OPTION IMPORT; {back}", before=before)
    _stale.scan(help_centre)
    assert _marks(help_centre) == {}


def test_a_document_that_is_gone_and_comes_back(help_centre: Database) -> None:
    help_centre.run(_UNPROTECTED)
    help_centre.run("UPDATE question:money_back SET relevant = [article:refund_request, article:gift_card]")
    (row,) = help_centre.value("DELETE article:gift_card RETURN BEFORE")
    assert _marks(help_centre) == {"gift_card": None}
    # the question can still be written, and takes no other label that is not there
    help_centre.run("UPDATE question:money_back SET note = 'x'")
    with pytest.raises(SurrecallError, match="article:nowhere does not exist"):
        help_centre.run("UPDATE question:money_back SET relevant += article:nowhere")
    with pytest.raises(SurrecallError, match="is gone, so its label can't be confirmed") as caught:
        help_centre.value("RETURN fn::label_confirm($label)", label=_label("gift_card"))
    assert (caught.value.exit_code, caught.value.hint is not None) == (4, True)
    help_centre.run("CREATE article CONTENT $row", row=row)
    _stale.scan(help_centre)
    assert _marks(help_centre) == {}


def test_a_label_that_goes_takes_its_mark_along(help_centre: Database) -> None:
    help_centre.run(_CHANGE)
    edit = {"question": _MONEY, "document": _REFUND, "grade": None, "who": "Ada", "why": None}
    help_centre.value("RETURN fn::label_edit($edit)", edit=edit)
    assert _marks(help_centre) == {}
    # one that comes again is of the text of now, and so is one that got another grade
    help_centre.value("RETURN fn::label_edit($edit)", edit=edit | {"grade": 1})
    assert _marks(help_centre) == {}
    help_centre.run(_CHANGE)
    assert _marks(help_centre)
    help_centre.value("RETURN fn::label_edit($edit)", edit=edit | {"grade": 2})
    assert _marks(help_centre) == {}
    kept = "SELECT VALUE hash FROM ONLY type::record('label_seen', [$document, $question])"
    assert help_centre.value(kept, document=_REFUND, question=_MONEY) == _hash(help_centre)
    help_centre.run("DELETE question:money_back; OPTION IMPORT; DELETE question:arrived_broken")
    assert help_centre.value("RETURN fn::labels_stale({})") == []
    assert help_centre.value("RETURN fn::forget_labels()") == 2
    there = help_centre.value("SELECT VALUE id FROM label_seen WHERE !record::exists(record::id(id)[1])")
    assert there == []


def _label(key: str, question: RecordID = _MONEY) -> dict[str, Any]:
    return {"question": question, "document": RecordID("article", key), "who": " Ada ", "why": "read it"}


def test_a_confirmed_label_is_fresh_and_says_by_whom(help_centre: Database) -> None:
    labels = help_centre.value("SELECT id, relevant, judged FROM question ORDER BY id")
    assert help_centre.value("RETURN fn::label_confirm($label)", label=_label("refund_request")) is None
    help_centre.run(_CHANGE)
    row = help_centre.value("RETURN fn::label_confirm($label)", label=_label("refund_request"))
    assert (row["before"], row["after"], row["who"], row["why"]) == (1, 1, "Ada", "read it")
    assert _marks(help_centre) == {}
    assert _marks(help_centre, RecordID("question", "arrived_broken"))
    with pytest.raises(SurrecallError, match="no label of question:money_back is article:track_order"):
        help_centre.value("RETURN fn::label_confirm($label)", label=_label("track_order"))
    _stale.scan(help_centre)
    # no label was changed by any of it
    assert help_centre.value("SELECT id, relevant, judged FROM question ORDER BY id") == labels


def test_labels_from_before_are_seen_at_the_first_look(help_centre: Database) -> None:
    help_centre.run("DELETE label_seen")
    _stale.scan(help_centre)
    assert help_centre.value("RETURN fn::labels_stale({})") == []
    help_centre.run(_IMPORT)
    _stale.scan(help_centre, "another set")
    assert _marks(help_centre) == {}
    _stale.scan(help_centre)
    assert _marks(help_centre)


def test_rows_of_any_form_do_not_stop_the_scan(help_centre: Database) -> None:
    help_centre.run(
        "OPTION IMPORT; INSERT INTO question { id: question:a, text: '', relevant: ['article:nine'] };"
        "INSERT INTO question { id: question:b, text: 'b', relevant: article:nine, judged: 7 };"
        "INSERT INTO question { id: question:c, text: 'c', relevant: [article:nine], judged: [7, { document: article:nine }] };"
    )
    _stale.scan(help_centre)
    assert _marks(help_centre, RecordID("question", "c")) == {"nine": None}


def test_every_evaluation_shows_them_and_keeps_what_it_knew(help_centre: Database) -> None:
    assert evaluate(help_centre, Options([3])).row.get("stale") is None
    hashed = help_centre.value("RETURN fn::golden_set_hash('default')")
    help_centre.run(_IMPORT)
    done = evaluate(help_centre, Options([3]))
    assert help_centre.value("RETURN fn::golden_set_hash('default')") == hashed
    assert [str(row["question"].id) for row in done.row["stale"]] == ["arrived_broken", "money_back"]
    said = "2 labels are stale, the text of the document changed since: article:refund_request of question:arrived_broken, "
    assert any(warning.startswith(said) for warning in done.warnings)
    help_centre.value("RETURN fn::label_confirm($label)", label=_label("refund_request"))
    later = help_centre.value("RETURN fn::evaluation_warnings($id)", id=done.row["id"])
    assert any(warning.startswith(said) for warning in later)
    (row, *_) = help_centre.value("RETURN fn::record_evaluation({ k: [3] })")
    assert len(help_centre.value("SELECT VALUE stale FROM ONLY $id", id=row["evaluation"])) == 1


def test_a_mark_does_not_end_an_evaluation_that_runs(help_centre: Database) -> None:
    row = help_centre.value("RETURN fn::evaluation_begin({ k: 3 })")
    help_centre.run("RETURN fn::evaluation_answers($row)", row=row)
    help_centre.run(_CHANGE)
    assert help_centre.value("RETURN fn::evaluation_complete($id)", id=row["id"])
    assert len(help_centre.value("SELECT VALUE stale FROM ONLY $id", id=row["id"])) == 2


def test_a_strict_gate_fails_on_them_by_name(help_centre: Database) -> None:
    help_centre.run("CREATE eval_floor:always CONTENT { retriever: 'bm25', metric: 'recall', k: 3, set: 'default', minimum: 0 }")
    measured = _gate.measure(help_centre)
    assert _gate.judge(help_centre, measured, strict=True)["holds"]
    help_centre.run(_IMPORT)
    assert _gate.judge(help_centre, measured)["holds"]
    told = _gate.judge(help_centre, measured, strict=True)
    assert (told["holds"], told["sentence"]) == (False, "the gate failed")
    assert [fault.partition(" is stale")[0] for fault in told["faults"]] == [
        "the label article:refund_request of question:arrived_broken",
        "the label article:refund_request of question:money_back",
    ]
    for row in _stale.stale(help_centre, {}):
        _stale.confirm(help_centre, [row], "Ada", None)
    assert _gate.judge(help_centre, measured, strict=True)["holds"]


def test_an_import_of_labels_says_who_changed_them(help_centre: Database, tmp_path: Path) -> None:
    path = tmp_path / "more.tsv"
    path.write_text("query-id\tcorpus-id\tscore\nmoney_back\tgift_card\t1\nmoney_back\trefund_request\t2\n")
    corpus = Corpus("article", "content", "embedding", 4, analyzer="help")
    _import_labels.import_labels(help_centre, corpus, path, None, replace=True)
    rows = help_centre.value("SELECT document, before, after, who, why FROM label_change ORDER BY document")
    assert [(str(row["document"].id), row.get("before"), row["after"], row["who"], row["why"]) for row in rows] == [
        ("gift_card", None, 1, "import labels", "more.tsv"),
        ("refund_request", 1, 2, "import labels", "more.tsv"),
    ]


def test_the_commands(seeded: Run, target: Settings) -> None:  # noqa: F811
    assert "0 labels stale" in seeded("confirm").stdout
    with Database(target) as database:
        database.run(_IMPORT)
    assert "question:money_back," in seeded("check", code=4).stdout
    shown = seeded("confirm").stdout
    assert "2 labels stale, 0 of documents that are gone" in shown
    assert "Request" in shown
    done = json.loads(seeded("confirm", "money_back", "--who", "Ada", "--why", "read", "--json").stdout)
    assert [row["document"] for row in done["confirmed"]] == ["article:refund_request"]
    assert "confirmed 1 label" in seeded("confirm", "--document", "refund_request").stdout
    assert "confirmed 0 labels" in seeded("confirm", "--all").stdout
    assert seeded("check").stdout == "all is well\n"
    assert "no question has the id or text" in seeded("confirm", "nobody", code=2).stderr
    assert "no article has the id 'nothing'" in seeded("confirm", "--document", "nothing", code=4).stderr

    assert (
        "no label before, grade 1 now; by Ada"
        in seeded("relabel", "money_back", "gift_card", "--grade", "1", "--who", "Ada").stdout
    )
    assert "nothing changed" in seeded("relabel", "money_back", "article:gift_card", "--grade", "1").stdout
    row = json.loads(seeded("relabel", "money_back", "gift_card", "--remove", "--why", "no", "--json").stdout)
    assert (row["before"], row["why"]) == (1, "no")
    assert "a label gets a grade or goes" in seeded("relabel", "money_back", "gift_card", code=2).stderr
    assert "is no label of question:money_back" in seeded("relabel", "money_back", "gift_card", "--remove", code=4).stderr


def test_the_commands_where_a_document_is_gone(seeded: Run, target: Settings) -> None:  # noqa: F811
    with Database(target) as database:
        database.run(_UNPROTECTED)
        database.run("UPDATE question:money_back SET relevant += article:gift_card")
        database.run("CREATE eval_floor:always CONTENT { retriever: 'bm25', metric: 'recall', k: 3, set: 'default', minimum: 0 }")
        database.run("OPTION IMPORT; DELETE article:gift_card")
    assert "the floor holds" in seeded("gate").stdout
    told = seeded("gate", "--last", "--strict", code=1).stdout
    assert "the label article:gift_card of question:money_back is gone, known since 2" in told
    assert "0 labels stale, 2 of documents that are gone" in seeded("confirm").stdout
    assert "surrecall relabel takes it away" in seeded("confirm", "money_back", code=4).stderr
    assert "grade 1 before, no label now" in seeded("relabel", "money_back", "gift_card", "--remove").stdout
    assert "1 label points at a document that is gone" in seeded("evaluate", "-k", "3").stderr


def test_a_table_of_somebody_else_s(papers: Database) -> None:  # noqa: F811
    corpus = _adopt.adopt(papers, _adopt.Wishes(), nobody).corpus
    own = "\n".join(file.text for file in corpus.render() if file.name.endswith(".surql"))
    papers.run("\n".join(file.text for file in _files.core({})) + own)
    papers.run(foreign.QUESTIONS)
    assert not any(name.startswith("surrecall") for name in papers.value("INFO FOR TABLE `my-papers`")["events"])
    (row,) = papers.value("UPDATE `my-papers`:11 SET `full text` += ' more' RETURN BEFORE")
    second = RecordID("question", "second")
    assert _marks(papers, second) == {}
    _stale.scan(papers)
    assert set(_marks(papers, second)) == {"11"}
    # a policy puts an event on the table, which sees all of it at once
    papers.run("UPSERT ingest_policy:`my-papers` SET mode = 'record'")
    papers.run("UPDATE `my-papers`:11 SET `full text` = $row.`full text`", row=row)
    assert _marks(papers, second) == {}
    papers.run("DELETE `my-papers`:11")
    assert _marks(papers, second) == {"11": None}
    papers.run("CREATE `my-papers` CONTENT $row", row=row)
    assert _marks(papers, second) == {}
    papers.run("UPDATE `my-papers`:11 SET heading = 'another'")
    assert len(_marks(papers, second)) == 1
