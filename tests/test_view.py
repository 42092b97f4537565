"""Retrieval as a user of the database sees it: under its permissions, beside the full view, never mixed with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from definitions import DEFINITIONS
from surrecall import Database, DatabaseError, Options, Settings, SurrecallError, UsageError, _view, evaluate, resume
from test_cli import Run, run, target  # noqa: F401  fixtures

SECRET = "correct horse battery"
# four questions, each answered by an article of either tenant; a search that takes its two nearest before it looks who asks
TENANTS = """
DEFINE FIELD tenant ON article TYPE option<string>;
FOR $n IN [0, 1, 2, 3] {
  LET $vector = array::range(0, 4).map(|$place| IF $place = $n { 1f } ELSE { 0f });
  FOR $tenant IN ['a', 'b'] {
    CREATE type::record('article', $tenant + <string> $n) SET title = $tenant, content = 'word' + <string> $n,
      embedding = $vector, tenant = $tenant;
  };
  CREATE type::record('question', 'q' + <string> $n) SET text = 'word' + <string> $n, embedding = $vector,
    relevant = [type::record('article', 'a' + <string> $n), type::record('article', 'b' + <string> $n)];
};
CREATE article:common SET title = 'all', content = 'nothing', embedding = [1, 1, 1, 1], tenant = 'all';
DEFINE TABLE person SCHEMALESS PERMISSIONS NONE;
CREATE person:ann SET tenant = 'a', name = 'ann', pass = crypto::argon2::generate($secret);
CREATE person:nobody SET tenant = 'c', name = 'nobody', pass = crypto::argon2::generate($secret);
DEFINE ACCESS app ON DATABASE TYPE RECORD
  SIGNIN (SELECT * FROM person WHERE name = $name AND crypto::argon2::compare(pass, $pass)) DURATION FOR TOKEN 1h, FOR SESSION 1h;
ALTER TABLE article PERMISSIONS FOR select WHERE tenant = $auth.tenant OR (tenant = 'all' AND $auth.tenant != 'c');
DEFINE FUNCTION fn::nearest($qvec: any, $k: any) {
  LET $near = (SELECT id, vector::distance::knn() AS distance FROM article WHERE embedding <|2,40|> $qvec ORDER BY distance, id);
  RETURN array::slice($near.id, 0, $k);
};
DELETE retriever;
CREATE retriever:bm25 SET position = 0, returns = 'article', call = 'fn::search_bm25($question.text, $k)';
CREATE retriever:nearest SET position = 1, returns = 'article', call = 'fn::nearest($question.embedding, $k)';
DEFINE FUNCTION OVERWRITE fn::retrieve_rows($retriever: string, $question: record<question> | object, $k: any) {
  LET $question = IF type::is_record($question) { (SELECT * FROM ONLY $question) } ELSE { $question };
  IF $question = NONE { THROW 'no such question' };
  IF $retriever = 'bm25' { RETURN fn::search_bm25($question.text, $k) };
  RETURN fn::nearest($question.embedding, $k);
} COMMENT 'surrecall: test';
"""
ANN = {"name": "ann", "pass": SECRET}


def plant(database: Database) -> None:
    database.run_as_written(TENANTS, secret=SECRET)


@pytest.fixture
def tenants(schema: Database) -> Iterator[Database]:
    plant(schema)
    yield schema
    if not schema.settings.is_embedded:
        schema.run("REMOVE ACCESS IF EXISTS app ON DATABASE")


def view(database: Database, who: _view.Login, *cutoffs: int, **options: Any) -> _view.View:
    return _view.view(database, who, Options(cutoffs or (2,), **options), jobs=1, progress=lambda _done, _all: None)


def figures(told: _view.View) -> dict[str, list[Any]]:
    names = ("full", "seen", "difference", "visible", "labels", "hidden", "short")
    return {row["retriever"]: [row[name] for name in names] for row in told.rows}


def test_a_tenant_finds_half_of_what_the_owner_finds(tenants: Database) -> None:
    told = view(tenants, _view.Login("record", "app", ANN), 2)
    assert figures(told) == {
        "bm25": [1, 0.5, -0.5, 1, 8, 4, 0],
        # its two nearest are one of each tenant, and what may not be seen is left out afterwards: one, though five may be seen
        "nearest": [1, 0.5, -0.5, 1, 8, 4, 4],
    }
    assert (told.by, told.documents) == ("person:ann", 5)
    # it came last, and a gate goes by the full view all the same
    assert tenants.value("SELECT id, started FROM evaluation ORDER BY started DESC")[0]["id"] == told.evaluation.row["id"]
    assert tenants.value("RETURN fn::gate_newest($set).id", set=told.full.row["set"]) == told.full.row["id"]
    assert [(row["question"], row["text"], row["hidden"]) for row in told.hidden] == [
        (RecordID("question", f"q{n}"), f"word{n}", [RecordID("article", f"b{n}")]) for n in range(4)
    ]
    # neighbours were there, and were left out
    (line,) = told.warnings
    assert line.startswith(
        "nearest: for 4 of 4 questions person:ann was given fewer than 2 documents, though the full view has more"
    )
    assert not told.failed


def test_what_may_be_seen_and_is_not_found_is_the_retriever_s_loss(tenants: Database) -> None:
    # the two nearest of each question are now of the other tenant, so ann's own article is never looked at
    tenants.run(
        "FOR $n IN [0, 1, 2, 3] { UPDATE type::record('article', 'a' + <string> $n) SET embedding = [1, 1, 1, 0.5];"
        " CREATE type::record('article', 'c' + <string> $n) SET content = 'x', tenant = 'b', embedding = "
        "type::record('article', 'b' + <string> $n).embedding }"
    )
    told = view(tenants, _view.Login("record", "app", ANN), 2, retrievers=["nearest"])
    full, seen, _, visible, labels, hidden, short = figures(told)["nearest"]
    assert (full, seen, visible, labels, hidden, short) == (0.5, 0, 0, 8, 4, 4)


def test_the_view_is_never_taken_for_the_full_one(tenants: Database) -> None:
    told = view(tenants, _view.Login("record", "app", ANN), 2)
    assert told.full.row.get("seen") is None
    assert told.evaluation.row["seen"] == {"by": "person:ann", "access": "app", "documents": 5, "beside": told.full.row["id"]}
    names = tenants.value("SELECT VALUE [retriever, recall] FROM eval_run ORDER BY seq")
    assert names == [["bm25", 1.0], ["nearest", 1.0], ["bm25@person:ann", 0.5], ["nearest@person:ann", 0.5]]
    # the newest of all is the view's, and who does not ask for it by name gets the full one
    assert tenants.value("RETURN fn::stored_evaluation(NONE, NONE, NONE)")["id"] == told.full.row["id"]
    assert tenants.value("RETURN fn::stored_evaluation(NONE, NONE, ['bm25@person:ann'])")["id"] == told.evaluation.row["id"]
    assert tenants.value("RETURN fn::check_history()") == []
    assert tenants.value("RETURN fn::check_evaluations()") == []
    # both are compared as any two
    compared = tenants.value("RETURN fn::compare({ sides: ['bm25', 'bm25@person:ann'], k: 2 })")
    assert compared["comparisons"][0]["difference"] == -0.5


def test_cutoffs_at_calls_of_their_own(tenants: Database) -> None:
    tenants.run("UPDATE retriever SET prefix = false")
    told = view(tenants, _view.Login("record", "app", ANN), 1, 2)
    assert [(row["retriever"], row["k"], row["seen"]) for row in told.rows] == [
        ("bm25", 1, 0.5), ("bm25", 2, 0.5), ("nearest", 1, 0.5), ("nearest", 2, 0.5)
    ]  # fmt: skip
    assert [row["full"] for row in told.rows] == [0.5, 1, 0.5, 1]


def test_who_may_see_nothing(tenants: Database) -> None:
    told = view(tenants, _view.Login("record", "app", {"name": "nobody", "pass": SECRET}), 2)
    assert [(row["seen"], row["visible"], row["hidden"], row["short"]) for row in told.rows] == [(0, None, 8, 0)] * 2
    assert told.warnings[0].startswith("person:nobody may see no document at all")
    # that it found nothing says nothing of the embeddings
    assert not any("embedded by the model" in line for line in told.evaluation.warnings)
    assert len(told.hidden) == 4


def test_a_token_and_a_user_of_the_database(tenants: Database) -> None:
    with _view.opened(tenants, _view.Login("record", "app", ANN)) as user:
        session = user.value("RETURN $session")
        assert session["rd"] == RecordID("person", "ann")
    connection = tenants._connection
    # a token as the application hands it out; signing in changes the connection, so another one asks for it
    with _view.opened(tenants, _view.Login("record", "app", ANN)) as user:
        place = {"namespace": tenants.settings.namespace, "database": tenants.settings.database}
        token = user._connection.signin({**place, "access": "app", "variables": ANN}).access
    assert tenants._connection is connection
    told = view(tenants, _view.Login("token", "", token), 2, retrievers=["bm25"])
    assert (told.by, told.rows[0]["seen"]) == ("person:ann", 0.5)

    tenants.run(f"DEFINE USER reader ON DATABASE PASSWORD '{SECRET}' ROLES VIEWER")
    told = view(tenants, _view.Login("user", "reader", SECRET), 2, retrievers=["bm25"])
    # the permissions of rows are for users of the application
    assert (told.by, told.documents, told.rows[0]["seen"], told.hidden) == ("reader", 9, 1, [])


def test_a_function_that_the_user_may_not_call_is_an_error_of_each_answer(tenants: Database) -> None:
    tenants.run("ALTER FUNCTION fn::nearest PERMISSIONS NONE")
    told = view(tenants, _view.Login("record", "app", ANN), 2)
    assert told.failed
    assert told.evaluation.row["status"] == "failed"
    assert {row["retriever"]: row["errors"] for row in told.rows} == {"bm25": 0, "nearest": 4}
    assert any("nearest@person:ann: failed on 4 of 4 questions" in line for line in told.evaluation.warnings)


@pytest.mark.parametrize(
    ("kind", "name", "secret", "said"),
    [
        ("record", "app", {"name": "ann", "pass": "wrong secret"}, "refuses to sign in record:app"),
        ("record", "ap", ANN, "no access method of the database has that name; there are: app"),
        ("user", "reader", "wrong secret", "refuses to sign in user:reader"),
        ("token", "", "wrong secret", "refuses to sign in the token"),
    ],
)
def test_a_login_that_is_refused_stores_nothing(tenants: Database, kind: str, name: str, secret: Any, said: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        view(tenants, _view.Login(kind, name, secret), 2)
    assert said in caught.value.text
    assert "wrong secret" not in caught.value.text
    assert SECRET not in caught.value.text
    assert tenants.value("RETURN count(SELECT VALUE id FROM evaluation)") == 0


def test_cut_off_the_view_leaves_nothing_and_the_full_one_stays(tenants: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_view._Asked, "answers", broken)
    with pytest.raises(SurrecallError, match="interrupted; the full view is kept"):
        view(tenants, _view.Login("record", "app", ANN), 2)
    assert tenants.value("SELECT VALUE [status, seen] FROM evaluation") == [["complete", None]]
    assert tenants.value("RETURN count(SELECT VALUE id FROM eval_answer)") == 8
    # and the connection of the owner is what it was
    assert evaluate(tenants, Options([2])).runs[0]["recall"] == 1


def test_a_view_that_was_cut_off_hard_is_no_work_for_resume(tenants: Database) -> None:
    full = evaluate(tenants, Options([2]))
    row = tenants.value("RETURN fn::view_begin({ beside: $id, by: 'person:ann', documents: 5 })", id=full.row["id"])
    with pytest.raises(UsageError, match="no evaluation is unfinished"):
        resume(tenants)
    (found,) = tenants.value("RETURN fn::check_evaluations()")
    assert found["next"] == "DELETE it; surrecall evaluate --as measures the view of person:ann again"
    tenants.run("DELETE $id", id=row["id"])
    # and none is opened beside what changed since
    tenants.run("CREATE article:more SET content = 'more', embedding = [1, 0, 0, 0]")
    with pytest.raises(SurrecallError, match="the number of documents changed since evaluation:"):
        tenants.value("RETURN fn::view_begin({ beside: $id, by: 'person:ann', documents: 5 })", id=full.row["id"])


def test_what_it_is_asked_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_view.VARIABLE, raising=False)
    for given in ("ann", "record:", "record", "token:x", "user"):
        with pytest.raises(UsageError, match="names nobody"):
            _view.login(given, None)
    with pytest.raises(UsageError, match="SURRECALL_AS holds nothing to sign in with"):
        _view.login("record:app", None)
    file = tmp_path / "ann.json"
    file.write_text(SECRET)
    with pytest.raises(UsageError, match="holds no JSON object") as caught:
        _view.login("record:app", file)
    assert SECRET not in caught.value.text
    file.write_text(json.dumps(ANN))
    login = _view.login("record:app", file)
    assert login.secret == ANN
    assert SECRET not in repr(login)
    monkeypatch.setenv(_view.VARIABLE, SECRET + "\n")
    assert _view.login("user:reader", None).secret == SECRET


def test_the_command(run: Run, target: Settings) -> None:  # noqa: F811
    with Database(target) as database:
        database.run(DEFINITIONS)
        plant(database)
    secret = {"SURRECALL_AS": json.dumps(ANN)}
    done = run("evaluate", "-k", "2", "--as", "record:app", **secret)
    said = done.stdout + done.stderr
    assert SECRET not in said
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["retriever", "k", "full", "seen", "difference", "visible", "labels", "hidden", "short"] in lines
    assert ["nearest", "2", "1.000", "0.500", "-0.500", "1.000", "8", "4", "4"] in lines
    assert ["q0", "word0", "article:b0"] in lines
    assert "person:ann may see 5 of 9 documents" in done.stdout
    assert "nearest: for 4 of 4 questions person:ann was given fewer than 2 documents" in done.stderr
    told = json.loads(run("evaluate", "-k", "2", "--as", "record:app", "--json", **secret).stdout)
    assert told["view"]["by"] == "person:ann"
    assert told["view"]["hidden"][0]["hidden"] == ["article:b0"]
    assert SECRET not in json.dumps(told)
    history = run("history").stdout
    assert "bm25@person:ann" in history
    run("evaluate", "--as", "record:app", code=2)
    assert "SURRECALL_AS" in run("evaluate", "--as", "record:app", code=2).stderr
    assert "--as goes with none of" in run("evaluate", "--as", "record:app", "--resume", code=2, **secret).stderr
    run("evaluate", "--as", "record:app", code=3, SURRECALL_AS='{"name": "ann", "pass": "no"}')
    with Database(target) as database:
        kept = database.run("SELECT * FROM evaluation; SELECT * FROM eval_answer; SELECT * FROM eval_run")
        assert SECRET not in str(kept)
