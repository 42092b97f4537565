"""What if: what documents would change, by question, and nothing of it stays."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from conftest import ROOT, fresh_settings
from surrecall import (
    Database,
    DataError,
    Settings,
    SurrecallError,
    UsageError,
    _files,
    _import_documents,
    _names,
    _seed,
    _tabular,
    _whatif,
)
from surrecall._corpus import Corpus
from surrecall._document_file import FORMATS, Names
from test_cli import surrecall
from test_guard import BAD_LINE, CSV, GOOD_LINE, HARMLESS, PLANTED, everything, floor, home

__all__ = ["home"]

CORPUS = Corpus("article", "content", "embedding", 4, analyzer="help")
HEAD = "id,title,text,embedding,delete\n"


@pytest.fixture(params=["", "http"])
def centre(request: pytest.FixtureRequest, help_centre: Database, engine: str) -> Any:
    """The help centre, evaluated; over each way to a server, since each undoes in its own."""
    help_centre.run("RETURN fn::record_evaluation({ k: [1, 3] })")
    if request.param == "http" and engine == "server":
        settings = replace(help_centre.settings, url=help_centre.settings.url.replace("ws://", "http://"))
        with Database(settings) as database:
            assert not database.holds_transactions
            yield database
        return
    # the embedded engine has one way only, which is that of http
    assert help_centre.holds_transactions == (engine == "server")
    yield help_centre


def tried(database: Database, folder: Path, content: str, name: str = "docs.csv", **options: Any) -> _whatif.WhatIf:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    documents = _import_documents.Options(path, _tabular.format_of(path, None, FORMATS), Names())
    given = {"cutoffs": (1, 3)} | options
    return _whatif.whatif(database, CORPUS, _whatif.Options(documents, **given))


def means(told: _whatif.WhatIf, side: str) -> dict[tuple[str, int], float]:
    return {(row["retriever"], row["k"]): row[side] for row in told.report["rows"]}


def recorded(database: Database, options: str = "{ k: [1, 3] }") -> dict[tuple[str, int], float]:
    rows = database.value(f"RETURN fn::record_evaluation({options})")
    return {(row["retriever"], row["k"]): row["recall"] for row in rows}


def test_it_says_what_an_evaluation_would_say_and_leaves_everything_to_the_byte(centre: Database, tmp_path: Path) -> None:
    asked = "RETURN fn::retrieve_vec([0.0, 0.05, 0.95, 0.05], 3); RETURN fn::retrieve_bm25('429 account parcel', 10)"
    before, lists = everything(centre), centre.run(asked)
    told = tried(centre, tmp_path, HEAD + BAD_LINE.rstrip() + ",\n" + GOOD_LINE.rstrip() + ",\n")
    assert everything(centre) == before
    assert centre.run(asked) == lists
    assert (told.added, told.replaced, told.deleted, told.unchanged, told.forbidden) == (2, 0, 0, 0, [])
    assert told.report["documents"] == {"before": 10, "after": 12}
    assert means(told, "before") == pytest.approx(recorded(centre))
    centre.run("INSERT INTO article $rows", rows=[PLANTED, HARMLESS])
    assert means(told, "after") == pytest.approx(recorded(centre))
    (hybrid,) = [row for row in told.report["rows"] if (row["retriever"], row["k"]) == ("hybrid", 3)]
    assert hybrid["fixed"] == []
    (fell,) = hybrid["broke"]
    assert fell["question"] == RecordID("question", "signin")
    assert fell["text"] == "I can't get into my account"
    assert (fell["before"], fell["after"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert hybrid["difference"] == pytest.approx(-1 / 24)
    assert (hybrid["questions"], hybrid["left_out"]) == (8, 0)


def test_the_figures_before_are_of_the_corpus_as_it_is_and_not_of_the_history(centre: Database, tmp_path: Path) -> None:
    # since the last evaluation
    centre.run("INSERT INTO article $rows", rows=[PLANTED])
    told = tried(centre, tmp_path, HEAD + "planted,,,,true\n")
    assert told.deleted == 1
    assert means(told, "before")["hybrid", 3] == pytest.approx(0.7916666667)
    assert means(told, "after")["hybrid", 3] == pytest.approx(0.8333333333)
    (fixed,) = [row["fixed"] for row in told.report["rows"] if (row["retriever"], row["k"]) == ("hybrid", 3)]
    assert [row["text"] for row in fixed] == ["I can't get into my account"]
    assert centre.value("RETURN record::exists(article:planted)")


def test_a_delete_that_a_label_forbids_is_named_and_the_rest_is_tried(centre: Database, tmp_path: Path) -> None:
    before = everything(centre)
    told = tried(centre, tmp_path, HEAD + "track_order,,,,true\npayment_method,,,,yes\n" + GOOD_LINE.rstrip() + ",no\n")
    assert everything(centre) == before
    assert (told.added, told.deleted) == (1, 0)
    assert [row["document"].id for row in told.forbidden] == ["track_order", "payment_method"]
    assert told.forbidden[0]["questions"] == [
        {"question": RecordID("question", "late_parcel"), "text": "my parcel hasn't arrived yet"}
    ]
    assert "ON DELETE REJECT" in told.forbidden[0]["reason"]
    assert told.report["documents"] == {"before": 10, "after": 11}


def test_a_document_that_is_there_is_replaced_and_keeps_what_the_file_does_not_say(centre: Database, tmp_path: Path) -> None:
    told = tried(centre, tmp_path, "id,text\napi_rate_limits,zebra\n")
    assert (told.added, told.replaced, told.stale_vectors, told.without_vector) == (0, 1, 1, 0)
    # no words any more, and the vector as it was
    assert means(told, "after")["bm25", 3] < means(told, "before")["bm25", 3]
    assert means(told, "after")["vector", 3] == means(told, "before")["vector", 3]
    same = tried(centre, tmp_path, "id,title\napi_rate_limits,API rate limits and 429 errors\n")
    assert (same.added, same.replaced, same.unchanged) == (0, 1, 0)


def test_what_is_there_as_in_the_file_changes_nothing(centre: Database, tmp_path: Path) -> None:
    row = centre.value("SELECT title, content AS text, embedding FROM ONLY article:gift_card")
    told = tried(centre, tmp_path, json.dumps([{"id": "gift_card", **row}]), "docs.json")
    assert (told.replaced, told.unchanged) == (0, 1)
    assert means(told, "before") == means(told, "after")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("docs.csv", HEAD + "planted,,,,TRUE\nzebra,Zebras,zebra stripes,0 0 0 1,\n"),
        ("docs.csv", "id;Delete;text\nplanted;1;left as it was\nzebra;0;zebra\n"),
        ("docs.tsv", "id\ttext\tdelete\nplanted\t\tyes\nzebra\tzebra\tno\n"),
        ("docs.jsonl", '{"id": "planted", "delete": true}\n{"id": "zebra", "text": "zebra", "delete": false}\n'),
        ("docs.json", '[{"id": "planted", "delete": true}, {"id": "zebra", "text": "zebra"}]'),
    ],
)
def test_the_mark_of_a_delete_in_every_format(help_centre: Database, tmp_path: Path, name: str, content: str) -> None:
    help_centre.run("INSERT INTO article $rows", rows=[PLANTED])
    told = tried(help_centre, tmp_path, content, name)
    assert (told.added, told.deleted) == (1, 1)
    assert told.report["documents"] == {"before": 11, "after": 11}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("docs.csv", HEAD + "nobody,,,,true\n", "docs.csv:2: there is no document 'nobody' to delete"),
        ("docs.csv", HEAD + "a,A,words,,\nb,B,words,,maybe\n", "docs.csv:3: delete is 'maybe', neither true nor false"),
        ("docs.jsonl", '{"id": "a", "delete": 2}\n', "docs.jsonl:1: delete is '2', neither true nor false"),
        ("docs.csv", HEAD + "a,,,,\n", "docs.csv:2: no text"),
        ("docs.csv", HEAD, "holds no document"),
        ("docs.csv", HEAD + GOOD_LINE.rstrip() + ",\na,Bees,words,,\n", "docs.csv:3: the document 'a' is refused: Found 'Bees'"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(help_centre: Database, tmp_path: Path, name: str, content: str, said: str) -> None:
    help_centre.run("DEFINE FIELD OVERWRITE title ON article TYPE option<string> ASSERT $value != 'Bees'")
    before = everything(help_centre)
    with pytest.raises(DataError) as wrong:
        tried(help_centre, tmp_path, content, name)
    assert said in wrong.value.message
    assert everything(help_centre) == before


def test_what_can_not_be_asked_is_said_as_elsewhere(centre: Database, tmp_path: Path) -> None:
    line = HEAD + GOOD_LINE.rstrip() + ",\n"
    with pytest.raises(UsageError, match="no retriever named bm52"):
        tried(centre, tmp_path, line, retrievers=["bm52"])
    with pytest.raises(UsageError, match="no metric named recal"):
        tried(centre, tmp_path, line, metric="recal")
    with pytest.raises(DataError, match="no question in the golden set other"):
        tried(centre, tmp_path, line, question_set="other")
    with pytest.raises(UsageError, match="501 changes are more than the 500"):
        tried(centre, tmp_path, "id,text\n" + "".join(f"d{n},words of {n}\n" for n in range(501)))


def test_a_floor_before_is_of_this_moment_too(centre: Database, tmp_path: Path) -> None:
    floor(centre, "hybrid", minimum=0.5)
    centre.run("INSERT INTO article $rows", rows=[PLANTED])
    told = tried(centre, tmp_path, HEAD + "planted,,,,true\n")
    (row,) = told.report["floors"]
    assert (row["before"], row["after"]) == (pytest.approx(0.7916666667), pytest.approx(0.8333333333))
    # what a drop would be measured from
    assert row["baseline"] == pytest.approx(0.8333333333)


def test_it_says_which_floors_would_break_and_no_guard_stands_in_its_way(centre: Database, tmp_path: Path) -> None:
    floor(centre, "hybrid", minimum=0.8)
    floor(centre, "deeper", k=10, minimum=0.8)
    centre.run("UPSERT ingest_policy:article SET mode = 'guard'")
    before = everything(centre)
    told = tried(centre, tmp_path, HEAD + BAD_LINE.rstrip() + ",\n")
    assert everything(centre) == before
    # what these answers do not reach is not judged
    (row,) = told.report["floors"]
    assert (row["floor"], row["fault"]) == ("hybrid", "0.792 is below the minimum of 0.8")
    assert [one["text"] for one in row["fell"]] == ["I can't get into my account"]


def test_a_label_that_a_delete_would_take_is_left_out_and_counted(help_centre: Database, tmp_path: Path) -> None:
    unset = Corpus("article", "content", "embedding", 4, analyzer="help", reference="unset")
    help_centre.run(next(file.text for file in unset.render() if file.name == "question.surql"))
    help_centre.run("FOR $id IN (SELECT VALUE id FROM question) { UPDATE $id SET relevant = relevant }")
    before = everything(help_centre)
    told = tried(help_centre, tmp_path, HEAD + "enable_2fa,,,,true\n")
    assert everything(help_centre) == before
    assert (told.deleted, told.forbidden) == (1, [])
    assert {row["left_out"] for row in told.report["rows"]} == {1}
    assert {row["questions"] for row in told.report["rows"]} == {7}


def test_a_retriever_that_fails_on_a_question_is_told(centre: Database, tmp_path: Path) -> None:
    line = HEAD + GOOD_LINE.rstrip() + ",\n"
    centre.run("UPDATE question:late_parcel SET embedding = NONE")
    if centre.holds_transactions:
        told = tried(centre, tmp_path, line)
        assert {(row["retriever"], row["question"].id) for row in told.report["errors"]} == {
            ("vector", "late_parcel"),
            ("hybrid", "late_parcel"),
        }
        assert {row["questions"] for row in told.report["rows"]} == {7, 8}
    else:
        # one statement goes through or does not
        with pytest.raises(DataError, match="a vector of 4 numbers belongs here"):
            tried(centre, tmp_path, line)
    assert not centre.value("RETURN record::exists(article:zebra)")


def test_the_function_alone_changes_nothing(centre: Database) -> None:
    before = everything(centre)
    changes = [{"id": PLANTED["id"], "values": {key: value for key, value in PLANTED.items() if key != "id"}}]
    with pytest.raises(SurrecallError, match=r"what if, nothing is stored: .*broke: \[\{ after: 0\.3"):
        centre.run("RETURN fn::whatif($changes, { k: [3] }, 'recall')", changes=changes)
    assert everything(centre) == before


def test_a_transaction_that_is_left_by_an_error_leaves_nothing(help_centre: Database) -> None:
    if not help_centre.holds_transactions:
        # one statement is its own transaction there
        with pytest.raises(SurrecallError):
            help_centre.run("BEGIN; INSERT INTO article $rows; THROW 'x'; COMMIT;", rows=[HARMLESS])
    else:
        with pytest.raises(KeyboardInterrupt), help_centre.undone() as inside:  # noqa: PT012
            inside.run("INSERT INTO article $rows", rows=[HARMLESS])
            assert inside.value("RETURN record::exists(article:zebra)")
            assert not help_centre.value("RETURN record::exists(article:zebra)")
            # a statement that fails does not end it
            with pytest.raises(SurrecallError):
                inside.run("INSERT INTO article $rows", rows=[PLANTED | {"embedding": [0, 0, 0, 0]}])
            assert inside.value("RETURN record::exists(article:zebra)")
            raise KeyboardInterrupt
    assert not help_centre.value("RETURN record::exists(article:zebra)")


def test_other_names_of_tables_are_seen_through(pytestconfig: pytest.Config, engine: str, tmp_path: Path) -> None:
    names = {"question": "golden", "eval_guard": "our_lock", "fn::guard": "fn::our_guard"}
    settings = replace(fresh_settings(pytestconfig, engine), names=names)
    with Database(settings) as database:
        database.run_as_written("\n".join(_names.rename(file.text, names) for file in _files.load(ROOT)))
        _seed.seed(database)
        told = tried(database, tmp_path, HEAD + BAD_LINE.rstrip() + ",\ntrack_order,,,,true\n")
        assert means(told, "after")["hybrid", 3] == pytest.approx(0.7916666667)
        assert [row["text"] for row in told.forbidden[0]["questions"]] == ["my parcel hasn't arrived yet"]
        floor(database, "hybrid", minimum=0.8)
        with pytest.raises(SurrecallError, match="the guard refuses"):
            database.run("BEGIN; INSERT INTO article $rows RETURN NONE; RETURN fn::guard(); COMMIT;", rows=[PLANTED])
        assert database.value("RETURN fn::guard()")["note"] is None


def test_the_command(home: tuple[Settings, Path, dict[str, str]]) -> None:
    settings, project, env = home
    (project / "docs.csv").write_text(HEAD + BAD_LINE.rstrip() + ",\ntrack_order,,,,true\n", encoding="utf-8")
    with Database(settings) as database:
        before = everything(database)
    shown = surrecall("whatif", "docs.csv", "-k", "3", cwd=project, env=env)
    assert shown.returncode == 0, shown.stderr
    assert "hybrid     3          8   0.833  0.792      -0.042      0      1" in shown.stdout
    assert re.search(r"^hybrid +3 +signin +I can't get into my account +0\.667 +0\.333$", shown.stdout, re.MULTILINE)
    assert "hybrid: 0.792 is below the minimum of 0.8" in shown.stdout
    assert "track_order  my parcel hasn't arrived yet" in shown.stdout
    assert "10 documents now, 11 with the change; nothing is stored" in shown.stdout
    assert max(len(line.rstrip()) for line in shown.stdout.splitlines()) <= 80
    told = json.loads(surrecall("whatif", "docs.csv", "-k", "1,3", "--json", cwd=project, env=env).stdout)
    assert [(row["retriever"], row["k"]) for row in told["report"]["rows"]] == [
        (name, k) for name in ("bm25", "vector", "hybrid") for k in (1, 3)
    ]
    assert told["forbidden"][0]["document"] == "article:track_order"
    missing = surrecall("whatif", "nowhere.csv", cwd=project, env=env)
    assert missing.returncode == 4
    with Database(settings) as database:
        assert everything(database) == before


def test_a_table_that_is_not_there_sends_to_apply(tmp_path: Path) -> None:
    env = {"SURREAL_URL": f"surrealkv://{tmp_path / 'x.db'}"}
    init = ("init", "--table", "article", "--field", "content", "--vector", "embedding", "--dimension", "4", "--analyzer", "help")
    assert surrecall(*init, cwd=tmp_path, env=env).returncode == 0
    with Database(Settings(env["SURREAL_URL"])):
        pass
    (tmp_path / "docs.csv").write_text(CSV + GOOD_LINE, encoding="utf-8")
    refused = surrecall("whatif", "docs.csv", cwd=tmp_path, env=env)
    assert refused.returncode == 3
    assert "surrecall apply" in refused.stderr


def test_the_table_of_the_documentation(home: tuple[Settings, Path, dict[str, str]]) -> None:
    _, project, env = home
    text = (ROOT / "docs" / "guard.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    (file,) = [part for part in blocks if part.startswith("id,title,text,embedding,delete")]
    (shown,) = [part for part in blocks if part.startswith("recall\n")]
    assert "surrecall whatif docs.csv -k 3\n" in text
    (project / "docs.csv").write_text(file, encoding="utf-8")
    printed = surrecall("whatif", "docs.csv", "-k", "3", cwd=project, env=env).stdout
    assert "\n".join(line.rstrip() for line in printed.splitlines()) == shown.rstrip()
