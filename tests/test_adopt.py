"""surrecall init --adopt: an evaluation in a database that is somebody's already, and out of it again."""

from __future__ import annotations

import json
import tomllib
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

import foreign
from pytest_surrecall._servers import Server
from surrecall import (
    Database,
    Options,
    Settings,
    _adopt,
    _files,
    _init,
    _names,
    _quoting,
    _registry,
    _remove,
    _retriever_check,
    _schema,
    _settings,
    evaluate,
)
from surrecall._cli import init as _cli_init
from surrecall._corpus import Corpus
from surrecall._errors import SchemaError, SurrecallError, UsageError
from surrecall._retrievers import Retriever
from test_cli import surrecall, target  # noqa: F401


def nobody(what: str, names: object) -> str:
    raise AssertionError(f"asked for a {what} of {names}")


def connection(settings: Settings) -> list[str]:
    given = ["--url", settings.url, "--ns", settings.namespace, "--db", settings.database]
    return given + (["--user", settings.user, "--password", settings.password or ""] if settings.user else [])


@pytest.fixture
def papers(empty: Database) -> Database:
    foreign.build(empty)
    return empty


def test_what_is_found(papers: Database) -> None:
    adopted = _adopt.adopt(papers, _adopt.Wishes(), nobody)
    corpus = adopted.corpus
    assert (corpus.table, corpus.texts, corpus.vector) == ("my-papers", ("`full text`", "heading"), "`v-ec`")
    assert (corpus.dimension, corpus.distance, corpus.analyzer, corpus.reference) == (4, "COSINE", "own an", "none")
    assert (corpus.body, corpus.title) == ("`full text`", "heading")
    assert corpus.indexes == ("the words", "hw", "near")
    assert adopted.rows == 40
    assert [retriever.name for retriever in adopted.extra] == ["find"]
    refused = {own.name: own.refused for own in adopted.own if own.refused}
    assert "different list" in refused["fn::shuffled"]
    assert "more than read" in refused["fn::logged"]
    assert set(refused) == {"fn::shuffled", "fn::logged"}


def test_looking_changes_nothing(papers: Database) -> None:
    before = foreign.state(papers)
    _adopt.adopt(papers, _adopt.Wishes(), nobody)
    assert foreign.state(papers) == before


def test_from_init_to_figures_and_out_again(target: Settings, tmp_path: Path) -> None:  # noqa: F811
    with Database(target) as database:
        foreign.build(database)
        before = foreign.state(database)
    env = {"SURREAL_PASSWORD": target.password or ""}
    shown = surrecall("init", "--adopt", *connection(target), "--dry-run", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for line in (
        "found table my-papers, 40 rows",
        "found vector index near over `v-ec`, 4 numbers, COSINE",
        "found fn::find searches it: retriever find",
        "would write surql/corpus/search_vec.surql",
        "and nothing on my-papers; surrecall remove takes all of it out again",
    ):
        assert line in shown.stdout
    assert not list(tmp_path.glob("surql/**/*"))
    assert surrecall("init", "--adopt", *connection(target), cwd=tmp_path).returncode == 0
    # the address is in the project file from here on, the password never
    assert tomllib.loads((tmp_path / "surrecall.toml").read_text())["database"]["url"] == target.url
    assert (target.password or "no password") not in (tmp_path / "surrecall.toml").read_text()
    assert surrecall("apply", cwd=tmp_path, env=env).returncode == 0
    with Database(target) as database:
        database.run(foreign.QUESTIONS)
    done = surrecall("evaluate", "-k", "5,20", "--json", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert {run["retriever"] for run in runs} == {"bm25", "vector", "hybrid", "find"}
    assert surrecall("check", cwd=tmp_path, env=env).stdout == "all is well\n"
    # an owner may do with his documents what he likes
    with Database(target) as database:
        (gone,) = database.value("DELETE `my-papers`:2 RETURN BEFORE")
        database.run("CREATE $row CONTENT $row", row=gone)
    assert surrecall("remove", cwd=tmp_path, env=env).returncode == 2
    planned = surrecall("remove", "--dry-run", cwd=tmp_path, env=env).stdout
    assert "would remove table question, 2 rows" in planned
    assert "my-papers" not in planned
    removed = surrecall("remove", "--yes", cwd=tmp_path, env=env)
    assert removed.returncode == 0, removed.stderr
    with Database(target) as database:
        assert foreign.state(database) == before
    assert "not in this database" in surrecall("remove", "--yes", cwd=tmp_path, env=env).stdout


def test_the_help_centre_without_surrecall_is_still_a_table_that_works(help_centre: Database) -> None:
    help_centre.value("RETURN fn::record_evaluation({ k: [3] })")
    removed = [removal.label for removal in _remove.remove(help_centre, _remove.plan(help_centre))]
    assert "the assertion of field embedding of table article" in removed
    info = help_centre.value("INFO FOR DB")
    assert (list(info["tables"]), list(info["functions"]), list(info["analyzers"])) == (["article"], [], ["help"])
    help_centre.run("UPDATE article:gift_card SET embedding = [1f, 0f, 0f, 0f]; DELETE article:track_order;")
    assert help_centre.value("RETURN count(SELECT VALUE id FROM article)") == 9


ONE_KIND = {
    "words": ("DEFINE INDEX w ON doc FIELDS body FULLTEXT ANALYZER an BM25;", ["bm25"]),
    "vectors": ("DEFINE INDEX v ON doc FIELDS emb HNSW DIMENSION 4 DIST EUCLIDEAN;", ["vector"]),
}


@pytest.mark.parametrize("kind", ONE_KIND)
def test_with_one_kind_of_index_there_is_that_one_retriever(empty: Database, tmp_path: Path, kind: str) -> None:
    index, names = ONE_KIND[kind]
    empty.run("DEFINE ANALYZER an TOKENIZERS class FILTERS lowercase; DEFINE TABLE doc SCHEMALESS;" + index)
    documents = [
        {"id": row["id"].id, "body": row["full text"], "emb": row["v-ec"], "title": row["heading"]} for row in foreign.rows()
    ]
    empty.run("INSERT INTO doc $rows RETURN NONE", rows=documents)
    corpus = _adopt.adopt(empty, _adopt.Wishes(), nobody).corpus
    _init.init(tmp_path, corpus)
    _schema.apply(empty, tmp_path)
    empty.run("CREATE question:a SET text = 'pear banana', relevant = [doc:1], embedding = $vector", vector=foreign.vector(1))
    assert empty.value("RETURN fn::evaluate(40)") == {"k": 40, names[0]: 1}
    assert empty.value("RETURN fn::check()") == []
    assert _schema.drift(empty, tmp_path) == []


ASIDE = {
    "the vector's row leads to the document": (
        "DEFINE TABLE vec SCHEMAFULL; DEFINE FIELD v ON vec TYPE array<float>;"
        "DEFINE FIELD paper ON vec TYPE record<`my-papers`>;",
        True,
    ),
    "the document leads to its vector's row": (
        "DEFINE TABLE vec SCHEMAFULL; DEFINE FIELD v ON vec TYPE array<float>;"
        "DEFINE FIELD `v ref` ON `my-papers` TYPE option<record<vec>>;",
        False,
    ),
}


@pytest.mark.parametrize("way", ASIDE)
def test_vectors_in_another_table(empty: Database, tmp_path: Path, way: str) -> None:
    """The same lists as with the vectors in the documents, on both executors."""
    foreign.build(empty)
    nearest = "SELECT id, vector::distance::knn() AS d FROM `my-papers` WHERE `v-ec` <|10,150|> $v ORDER BY d, id"
    near = f"SELECT VALUE id FROM ({nearest})"
    vector = [0.3, 0.1, 0.9, 0.5]
    expected = empty.value(near, v=vector)
    schema, from_the_vector = ASIDE[way]
    empty.run(f"REMOVE INDEX near ON `my-papers`; {schema} DEFINE INDEX vi ON vec FIELDS v HNSW DIMENSION 4 DIST COSINE;")
    for row in foreign.rows():
        if from_the_vector:
            # a far one as well: the nearest counts
            far = [-value for value in row["v-ec"]]
            empty.run(
                "CREATE vec SET v = $v, paper = $id; CREATE vec SET v = $far, paper = $id", v=row["v-ec"], far=far, id=row["id"]
            )
        else:
            empty.run("LET $made = (CREATE ONLY vec SET v = $v).id; UPDATE $id SET `v ref` = $made", v=row["v-ec"], id=row["id"])
    corpus = _adopt.adopt(empty, _adopt.Wishes(), nobody).corpus
    assert (corpus.vector_table, corpus.vector) == ("vec", "v")
    assert (corpus.link, corpus.linked_by) == (("paper", None) if from_the_vector else (None, "`v ref`"))
    _init.init(tmp_path, corpus)
    _schema.apply(empty, tmp_path)
    assert empty.value("RETURN fn::search_vec($v, 10).id", v=vector) == expected
    assert empty.value("RETURN [1].map(|$one| fn::search_vec($v, 10).id)[0]", v=vector) == expected
    assert empty.value("RETURN fn::check_corpus()") == []
    assert isinstance(empty.value("RETURN fn::corpus_hash()"), str)
    empty.run("CREATE `my-papers`:alone SET `full text` = 'x', heading = 'x', `v-ec` = [1f, 1f, 1f, 1f]")
    (told,) = empty.value("RETURN fn::check_corpus()")
    assert told["problem"] == "1 documents have no vector in vec, vector search can't find them"
    assert _settings.read_project_file(tmp_path).corpus == corpus


def test_several_tables_are_a_question(papers: Database) -> None:
    papers.run("DEFINE TABLE other SCHEMALESS; DEFINE INDEX o ON other FIELDS t FULLTEXT ANALYZER `own an` BM25;")
    asked: list[object] = []

    def answer(what: str, names: object) -> str:
        asked.append((what, names))
        return "other"

    assert _adopt.adopt(papers, _adopt.Wishes(), answer).corpus.table == "other"
    assert asked == [("table", ["my-papers", "other"])]
    assert _adopt.adopt(papers, _adopt.Wishes(table="my-papers"), nobody).corpus.table == "my-papers"
    with pytest.raises(UsageError, match="tables that have one: my-papers, other"):
        raise_with_hint(papers, _adopt.Wishes(table="papers"))


def raise_with_hint(database: Database, wishes: _adopt.Wishes) -> None:
    try:
        _adopt.adopt(database, wishes, nobody)
    except UsageError as error:
        raise UsageError(error.text) from error


def test_asking_on_a_terminal(target: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    with Database(target) as database:
        foreign.build(database)
        database.run("DEFINE TABLE other SCHEMALESS; DEFINE INDEX o ON other FIELDS t FULLTEXT ANALYZER `own an` BM25;")
    refused = surrecall("init", "--adopt", *connection(target), cwd=tmp_path)
    assert refused.returncode == 2
    assert "there are several to choose from: my-papers, other" in refused.stderr
    assert "--table" in refused.stderr
    monkeypatch.setattr(_cli_init, "_somebody_can_answer", lambda: True)
    for answers, chosen in (("x\n9\n2\n", "other"), ("my-papers\n", "my-papers")):
        done = surrecall("init", "--adopt", "--force", *connection(target), cwd=tmp_path, answers=answers)
        assert done.returncode == 0, done.stderr
        assert f"found table {chosen}" in done.stdout


REFERENCES = {"none": (True, 1), "unset": (True, 0), "reject": (False, 1)}


@pytest.mark.parametrize("reference", REFERENCES)
def test_what_becomes_of_labels_when_their_owner_deletes_a_document(papers: Database, tmp_path: Path, reference: str) -> None:
    goes, labels = REFERENCES[reference]
    _init.init(tmp_path, _adopt.adopt(papers, _adopt.Wishes(reference=reference), nobody).corpus)
    _schema.apply(papers, tmp_path)
    papers.run("CREATE question:a SET text = 'x', answerable = false, embedding = [1, 0, 0, 0], relevant = [`my-papers`:1]")
    if goes:
        papers.run("DELETE `my-papers`:1")
    else:
        with pytest.raises(SurrecallError, match="reference"):
            papers.run("DELETE `my-papers`:1")
    assert len(papers.value("SELECT VALUE relevant FROM ONLY question:a")) == labels
    told = [row["problem"] for row in papers.value("RETURN fn::check_questions()")]
    assert told == (["has the label `my-papers`:1, which does not exist"] if reference == "none" else [])


def test_several_vector_fields_are_a_question(papers: Database) -> None:
    papers.run("DEFINE FIELD small ON `my-papers` TYPE option<array<float>>")
    papers.run("DEFINE INDEX s ON `my-papers` FIELDS small HNSW DIMENSION 2")
    assert _adopt.adopt(papers, _adopt.Wishes(vector="small"), nobody).corpus.dimension == 2
    assert _adopt.adopt(papers, _adopt.Wishes(vector="v-ec"), nobody).corpus.dimension == 4
    assert _adopt.adopt(papers, _adopt.Wishes(), lambda _what, names: names[1]).corpus.vector == "small"
    with pytest.raises(UsageError, match="`v-ec`, small"):
        raise_with_hint(papers, _adopt.Wishes(vector="none"))


def test_only_the_fields_that_were_named(papers: Database) -> None:
    assert _adopt.adopt(papers, _adopt.Wishes(fields=["full text"]), nobody).corpus.indexes == ("the words", "near")
    with pytest.raises(UsageError, match="fields that have one: heading, `full text`"):
        raise_with_hint(papers, _adopt.Wishes(fields=["year"]))


def test_a_database_without_an_index_is_refused(empty: Database) -> None:
    empty.run("DEFINE TABLE doc; DEFINE INDEX i ON doc FIELDS x;")
    with pytest.raises(UsageError, match=r"no table of .* has a full-text index"):
        _adopt.adopt(empty, _adopt.Wishes(), nobody)


TAKEN = """
DEFINE TABLE question SCHEMAFULL;
DEFINE FIELD text ON question TYPE string;
CREATE question:theirs SET text = 'a row of somebody else';
DEFINE FUNCTION fn::search_vec($v: array) { RETURN $v };
DEFINE FUNCTION fn::score($v: array) { RETURN $v };
"""
RENAMED = (("question", "golden_question"), ("fn::search_vec", "fn::surrecall_search_vec"), ("fn::score", "fn::surrecall_score"))


THEIRS = """
DEFINE TABLE notes SCHEMALESS COMMENT 'surrecall: what we learned from it';
DEFINE TABLE quoted SCHEMALESS PERMISSIONS FOR select WHERE note != "COMMENT 'surrecall: x'";
DEFINE FUNCTION fn::tricky() { RETURN "COMMENT 'surrecall: not ours'" };
DEFINE FUNCTION fn::honest() { RETURN 1 } COMMENT 'surrecall: mine all the same';
DEFINE TABLE thing SCHEMAFULL;
DEFINE FIELD c ON thing TYPE option<string> ASSERT $value = NONE OR string::len($value) > 3 COMMENT 'see fn::score( for it';
DEFINE FIELD d ON thing TYPE option<string> DEFAULT ' ASSERT ' ASSERT $value NOT IN ['a COMMENT b', 'c'];
CREATE notes:one SET text = 'precious';
CREATE quoted:one;
"""


def test_what_users_wrote_is_never_taken_for_ours(papers: Database, tmp_path: Path) -> None:
    papers.run(THEIRS)
    before = foreign.state(papers)
    _init.init(tmp_path, _adopt.adopt(papers, _adopt.Wishes(table="my-papers"), nobody).corpus)
    _schema.apply(papers, tmp_path)
    labels = {removal.label for removal in _remove.plan(papers).removals}
    assert not labels & {"table notes", "table quoted", "fn::tricky", "fn::honest"}
    assert _remove.plan(papers).users == []
    _remove.remove(papers, _remove.plan(papers))
    assert foreign.state(papers) == before


USES = {
    "fn::mine": "DEFINE FUNCTION fn::mine($a: array) { RETURN fn::score($a, [], 1) }",
    "field v of table thing": (
        "DEFINE TABLE thing; DEFINE FIELD v ON thing TYPE option<array<float>> ASSERT $value = NONE OR ($value[0] >= 0 AND "
        "fn::usable_vector($value, 4))"
    ),
    "field q of table thing": "DEFINE TABLE thing; DEFINE FIELD q ON thing TYPE option<record<question>>",
}


@pytest.mark.parametrize("user", USES)
def test_what_users_built_on_ours_is_named_and_keeps_it(papers: Database, tmp_path: Path, user: str) -> None:
    _init.init(tmp_path, _adopt.adopt(papers, _adopt.Wishes(table="my-papers"), nobody).corpus)
    _schema.apply(papers, tmp_path)
    papers.run(USES[user])
    before = foreign.state(papers)
    with pytest.raises(UsageError, match="would be left without what it uses") as refused:
        _remove.remove(papers, _remove.plan(papers))
    assert user in refused.value.message
    assert foreign.state(papers) == before
    assert _remove.remove(papers, _remove.plan(papers), force=True)
    assert "question" not in papers.value("INFO FOR DB")["tables"]


def test_an_unfinished_evaluation_is_not_removed_from_under_its_driver(papers: Database, tmp_path: Path) -> None:
    _init.init(tmp_path, _adopt.adopt(papers, _adopt.Wishes(), nobody).corpus)
    _schema.apply(papers, tmp_path)
    papers.run(foreign.QUESTIONS)
    papers.run("RETURN fn::evaluation_begin({ k: [5] })")
    with pytest.raises(UsageError, match="is unfinished, and may be running"):
        _remove.remove(papers, _remove.plan(papers))
    assert _remove.remove(papers, _remove.plan(papers), force=True)


def test_a_function_of_theirs_under_a_name_of_ours_stays_theirs(papers: Database, tmp_path: Path) -> None:
    """Ours goes by another name; what calls the name is the user's, in the trial, in the registry and in what runs."""
    body = "{ RETURN SELECT VALUE id FROM `my-papers` ORDER BY id DESC LIMIT $k }"
    papers.run(f"DEFINE FUNCTION fn::search_bm25($q: string, $k: int) {body}")
    adopted = _adopt.adopt(papers, _adopt.Wishes(names=(("fn::search_bm25", "fn::our_bm25"), ("question", "golden"))), nobody)
    _init.init(tmp_path, adopted.corpus, extra=adopted.extra)
    papers.settings = replace(papers.settings, names=_settings.read_project_file(tmp_path).names)
    _schema.apply(papers, tmp_path)
    last = papers.value("SELECT VALUE id FROM `my-papers` ORDER BY id DESC LIMIT 3")
    assert papers.value("RETURN fn::retrieve('search_bm25', { text: 'apple' }, 3)") == last
    assert papers.value("RETURN retriever:search_bm25.call") == "fn::search_bm25($question.text, $k)"
    for number, (where, document) in enumerate(((None, None), ("true", None), ("true", "$row"))):
        mine = Retriever(f"r{number}", "fn::search_bm25($question.text, $k)", "my-papers", where=where, document=document)
        verdict = _retriever_check.check(papers, mine, [{"text": "apple"}], 3, adopted.corpus)
        assert (verdict.faults, verdict.ranking) == ([], last)
        _registry.add(papers, tmp_path, mine)
        assert papers.value(f"RETURN fn::retrieve('r{number}', {{ text: 'apple' }}, 3)") == last
    assert _schema.drift(papers, tmp_path) == []


def test_two_projects_in_one_database_are_refused(papers: Database, tmp_path: Path) -> None:
    papers.run("DEFINE TABLE book SCHEMALESS; DEFINE INDEX o ON book FIELDS t FULLTEXT ANALYZER `own an` BM25;")
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    _init.init(first, _adopt.adopt(papers, _adopt.Wishes(table="my-papers"), nobody).corpus)
    _schema.apply(papers, first)
    papers.run(foreign.QUESTIONS)
    before = foreign.state(papers)
    _init.init(second, Corpus("book", "t", adopted=True, text_indexes=["o"], analyzer="own an", names={"question": "bq"}))
    with pytest.raises(SchemaError, match="has surrecall under other names"):
        _schema.apply(papers, second)
    with pytest.raises(SchemaError, match="evaluates my-papers"):
        _adopt.adopt(papers, _adopt.Wishes(table="book"), nobody)
    _init.init(third, Corpus("book", "t", adopted=True, text_indexes=["o"], analyzer="own an"))
    with pytest.raises(SchemaError, match="my-papers"):
        _schema.apply(papers, third)
    # and names that were changed by hand, without the files
    with (first / "surrecall.toml").open("a") as file:
        file.write('\n[names]\nquestion = "golden"\n')
    with pytest.raises(SchemaError, match="was written for the names of surrecall itself"):
        _schema.apply(papers, first)
    assert foreign.state(papers) == before


def test_functions_that_could_do_more_than_read_are_not_tried(papers: Database) -> None:
    papers.run("DEFINE API '/hit' FOR post THEN { CREATE hits; RETURN { status: 200, body: [] } }; DEFINE SEQUENCE sq;")
    for name, block in {
        "by_api": "RETURN api::invoke('/hit', { method: 'post' }).body",
        "by_sequence": "LET $n = sequence::nextval('sq'); RETURN []",
        "by_sleep": "LET $n = sleep(1s); RETURN []",
        "by_insert": "insert into hits { a: 1 }; RETURN []",
        "by_another": "RETURN fn::logged($q, $k)",
    }.items():
        papers.run(f"DEFINE FUNCTION fn::{name}($q: string, $k: int) {{ {block} }}")
    before = foreign.state(papers)
    refused = {own.name for own in _adopt.adopt(papers, _adopt.Wishes(), nobody).own if "more than read" in (own.refused or "")}
    assert refused >= {"fn::by_api", "fn::by_sequence", "fn::by_sleep", "fn::by_insert", "fn::by_another"}
    assert foreign.state(papers) == before


def test_functions_whose_names_no_retriever_can_have(papers: Database, tmp_path: Path) -> None:
    body = "($q: string, $k: int) { RETURN SELECT VALUE id FROM `my-papers` ORDER BY id LIMIT $k }"
    for name in ("_under", "hybrid", "own::hybrid", "api::search", "api_search", "long_" * 20 + "name"):
        papers.run(f"DEFINE FUNCTION fn::{name}{body}")
    adopted = _adopt.adopt(papers, _adopt.Wishes(), nobody)
    names = [retriever.name for retriever in adopted.extra]
    assert len(set(names)) == len(names) == 7
    _init.init(tmp_path, adopted.corpus, extra=adopted.extra)
    _schema.apply(papers, tmp_path)
    assert papers.value("RETURN fn::retrieve('own_hybrid', { text: 'x' }, 2).len()") == 2


INDEXES = {
    "missing": ("", "is missing"),
    "over another field": (
        "DEFINE INDEX hw ON `my-papers` FIELDS `full text` FULLTEXT ANALYZER `own an` BM25",
        "of another kind",
    ),
    "a plain one": ("DEFINE INDEX hw ON `my-papers` FIELDS heading", "of another kind"),
}


@pytest.mark.parametrize("change", INDEXES)
def test_an_index_that_is_no_longer_what_was_adopted(papers: Database, tmp_path: Path, change: str) -> None:
    _init.init(tmp_path, _adopt.adopt(papers, _adopt.Wishes(), nobody).corpus)
    _schema.apply(papers, tmp_path)
    papers.run(foreign.QUESTIONS)
    papers.run(f"REMOVE INDEX hw ON `my-papers`; {INDEXES[change][0]}")
    (told,) = papers.value("RETURN fn::check_corpus()")
    assert INDEXES[change][1] in told["problem"]
    assert told["next"] == "DEFINE INDEX OVERWRITE hw ON `my-papers` FIELDS heading FULLTEXT ANALYZER `own an` BM25"
    with pytest.raises(SchemaError, match="index hw on my-papers is"):
        evaluate(papers, Options([5]))
    papers.run(told["next"])
    assert evaluate(papers, Options([5])).row["status"] == "complete"


def test_a_distance_that_was_changed(papers: Database, tmp_path: Path) -> None:
    _init.init(tmp_path, _adopt.adopt(papers, _adopt.Wishes(), nobody).corpus)
    _schema.apply(papers, tmp_path)
    papers.run("DEFINE INDEX OVERWRITE near ON `my-papers` FIELDS `v-ec` HNSW DIMENSION 4 DIST EUCLIDEAN")
    assert [row["subject"] for row in papers.value("RETURN fn::check_corpus()")] == ["index near"]


@pytest.mark.parametrize("name", ["🎉", "a`b", "c\\d", "e'f", 'g"h', "group", "ö ü", "x" * 200])
def test_table_names_of_every_kind(empty: Database, tmp_path: Path, name: str) -> None:
    quoted = _quoting.identifier(name)
    empty.run(
        f"DEFINE ANALYZER an TOKENIZERS class FILTERS lowercase; DEFINE TABLE {quoted} SCHEMALESS;"
        f"DEFINE INDEX w ON {quoted} FIELDS body FULLTEXT ANALYZER an BM25;"
    )
    empty.run(f"CREATE {quoted}:one SET body = 'apple pear'; CREATE {quoted}:two SET body = 'fig'")
    corpus = _adopt.adopt(empty, _adopt.Wishes(), nobody).corpus
    assert corpus.table == name
    _init.init(tmp_path, corpus)
    assert _settings.read_project_file(tmp_path).corpus == corpus
    _schema.apply(empty, tmp_path)
    empty.run("CREATE question:a SET text = 'fig', relevant = [type::record($table, 'two')]", table=name)
    assert empty.value("RETURN fn::evaluate(1)") == {"k": 1, "bm25": 1}
    assert empty.value("RETURN fn::check()") == []
    assert _schema.drift(empty, tmp_path) == []
    _remove.remove(empty, _remove.plan(empty))
    assert list(empty.value("INFO FOR DB")["tables"]) == [name]


def test_a_table_that_the_engine_can_not_print_stands_in_nobody_s_way(papers: Database, tmp_path: Path) -> None:
    papers.run("DEFINE TABLE strange SCHEMALESS; DEFINE FIELD `select` ON strange TYPE option<string>;")
    _init.init(tmp_path, _adopt.adopt(papers, _adopt.Wishes(), nobody).corpus)
    _schema.apply(papers, tmp_path)
    assert _schema.drift(papers, tmp_path) == []
    assert _remove.remove(papers, _remove.plan(papers))


def test_a_database_that_is_not_there_is_not_made_by_looking(server: Server, tmp_path: Path) -> None:
    if server.is_embedded:
        pytest.skip("the embedded engine has a database for whoever opens it")
    settings = server.settings(f"n{uuid.uuid4().hex}", "nowhere")
    done = surrecall("init", "--adopt", "--dry-run", *connection(settings), cwd=tmp_path)
    assert done.returncode == 2
    assert f"has no namespace {settings.namespace}" in done.stderr
    assert "--ns names another; there are: " in done.stderr
    with Database(replace(settings, namespace="probe", database="probe")) as database:
        assert settings.namespace not in database.value("INFO FOR ROOT")["namespaces"]


def test_names_that_are_taken_are_refused_with_both_definitions(papers: Database) -> None:
    papers.run(TAKEN)
    before = foreign.state(papers)
    with pytest.raises(SchemaError) as refused:
        _adopt.adopt(papers, _adopt.Wishes(), nobody)
    message = refused.value.text
    assert "DEFINE FUNCTION fn::score($v: array) { RETURN $v }" in message
    assert "surrecall: all metrics of one ranking" in message
    for old, new in RENAMED:
        assert f"--rename {old}={new.replace('golden_', 'surrecall_')}" in message
    assert foreign.state(papers) == before


def test_with_other_names_everything_works_beside_theirs(papers: Database, tmp_path: Path) -> None:
    papers.run(TAKEN)
    theirs = papers.value("SELECT * FROM question")
    corpus = _adopt.adopt(papers, _adopt.Wishes(names=RENAMED), nobody).corpus
    _init.init(tmp_path, corpus)
    project = _settings.read_project_file(tmp_path)
    assert dict(project.names) == dict(RENAMED)
    papers.settings = replace(papers.settings, names=project.names)
    _schema.apply(papers, tmp_path)
    # a user of the database writes the names that are there, surrecall's own statements its own
    papers.run_as_written(foreign.QUESTIONS.replace("question:", "golden_question:"))
    assert papers.value("RETURN fn::evaluate(40).vector") > 0
    assert papers.value("RETURN fn::score([], [], 1).recall") == 0
    assert papers.run_as_written("RETURN fn::score([5])")[-1] == [5]
    assert papers.run_as_written("SELECT * FROM question")[-1] == theirs
    rows = papers.value("RETURN fn::record_evaluation({ k: [5] })")
    assert len(rows) == 3
    assert papers.value("RETURN fn::check()") == []
    assert _schema.drift(papers, tmp_path) == []
    assert _schema.apply(papers, tmp_path).changed == 0


def test_every_name_of_ours_can_be_another_one(papers: Database, tmp_path: Path) -> None:
    """All the tables and functions at once: whatever is missed by the renaming is not found."""
    plain = tmp_path / "plain"
    _init.init(plain, _adopt.adopt(papers, _adopt.Wishes(), nobody).corpus)
    _schema.apply(papers, plain)
    papers.run(foreign.QUESTIONS)
    expected = evaluate(papers, Options([5, 20]))
    _remove.remove(papers, _remove.plan(papers))

    names = {name: f"our_{name}" for name in _names.TABLES}
    names |= {name: f"fn::ours::{name.removeprefix('fn::')}" for name in _files.our_functions()}
    other = tmp_path / "other"
    _init.init(other, _adopt.adopt(papers, _adopt.Wishes(names=tuple(names.items())), nobody).corpus)
    papers.settings = replace(papers.settings, names=names)
    _schema.apply(papers, other)
    info = papers.run_as_written("INFO FOR DB")[-1]
    ours = [name for name in (*info["tables"], *info["functions"]) if name.startswith(("our_", "ours::"))]
    assert len(ours) > 70
    assert set(info["tables"]) - set(ours) == {"my-papers"}
    assert set(info["functions"]) - set(ours) == {"find", "shuffled", "logged", "sum"}
    papers.run(foreign.QUESTIONS)
    evaluation = evaluate(papers, Options([5, 20]))
    means, others = (
        [{key: run[key] for key in run if isinstance(run[key], float) and not key.endswith("_ms")} for run in told.runs]
        for told in (evaluation, expected)
    )
    assert means == others
    assert evaluation.row["status"] == "complete"
    assert papers.value("RETURN fn::check()") == []
    assert _schema.drift(papers, other) == []
    with pytest.raises(SurrecallError, match="is readonly"):
        papers.run("UPDATE eval_run SET recall = 1")
    assert len(_remove.remove(papers, _remove.plan(papers))) > 70
    assert set(papers.value("INFO FOR DB")["tables"]) == {"my-papers"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("question", "no pair"),
        ("questions=x", "no questions"),
        ("question=my-table", "can't be named"),
        ("question=retriever", "another name of surrecall's"),
        ("fn::score=score", "can't be named"),
        ("fn::nothing=fn::x", "no fn::nothing"),
    ],
)
def test_other_names_that_can_not_be(given: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        _adopt.renames([given])
    with pytest.raises(UsageError, match="two names"):
        _adopt.renames(["question=x", "retriever=x"])
