"""surrecall retriever add, list, remove, test: anybody's expression, tried before it is taken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import foreign
from surrecall import Database, Options, SchemaError, Settings, _adopt, _init, _registry, _retrievers, _schema, evaluate
from test_adopt import connection, nobody
from test_cli import surrecall, target  # noqa: F401

CHUNKS = """
DEFINE TABLE chunk SCHEMAFULL;
DEFINE FIELD paper ON chunk TYPE record<`my-papers`>;
DEFINE FIELD size ON chunk TYPE int;
DEFINE FIELD text ON chunk TYPE string;
DEFINE INDEX chunk_words ON chunk FIELDS text FULLTEXT ANALYZER `own an` BM25;
FOR $paper IN (SELECT id, `full text` AS text FROM `my-papers` ORDER BY id) {
  FOR $word IN string::words($paper.text) { CREATE chunk SET paper = $paper.id, size = 1, text = $word };
  CREATE chunk SET paper = $paper.id, size = 5, text = $paper.text;
};
"""
CHUNK_SEARCH = (
    "SELECT id, search::score(1) AS score FROM chunk WHERE text @1,OR@ $question.text AND size = 5"
    " ORDER BY score DESC, id LIMIT $k"
)
Cli = Callable[..., CompletedProcess[str]]


@pytest.fixture
def project(target: Settings, tmp_path: Path) -> Path:  # noqa: F811
    """A folder that has adopted the foreign database and holds two questions."""
    folder = tmp_path / "project"
    folder.mkdir()
    with Database(target) as database:
        foreign.build(database)
        _init.init(folder, _adopt.adopt(database, _adopt.Wishes(), nobody).corpus)
        _schema.apply(database, folder)
        database.run(foreign.QUESTIONS)
    return folder


@pytest.fixture
def cli(project: Path, target: Settings) -> Cli:  # noqa: F811
    def run(*arguments: str) -> CompletedProcess[str]:
        return surrecall(*arguments, *connection(target), cwd=project)

    return run


def registry(project: Path) -> str:
    return (project / "surql/corpus/retrievers.toml").read_text(encoding="utf-8")


def test_what_fails_is_refused_with_the_reason_and_changes_nothing(cli: Cli, project: Path) -> None:
    before = registry(project), (project / "surql/corpus/retrieve.surql").read_text(encoding="utf-8")
    for expression, reason in {
        "SELECT VALUE id FROM `my-papers` ORDER BY rand() LIMIT $k": "end its order with the id",
        "SELECT VALUE id FROM `my-papers`": "it gives 40 rows where 10 were asked for",
        "SELECT VALUE <string> id FROM `my-papers` LIMIT $k": "no record id",
        "SELECT VALUE heading FROM `my-papers` LIMIT $k": "no record id",
        "SELECT id, year AS score FROM question LIMIT $k": "the labels are of my-papers",
        "{ id: 5 }": "it gives object, not a list",
        "NONE": "it gives none, not a list",
        "SELECT VALUE id FROM nowhere": "does not exist",
        "fn::nothing($question.text, $k)": "does not exist",
        "SELECT VALUE FROM": "Parse error",
        "(SELECT id, <float> record::id(id) AS score FROM `my-papers`:1..=9) ORDER": "Parse error",
        "[{ id: `my-papers`:1, score: 1 }, { id: `my-papers`:2, score: 2 }]": "its scores are not best first: 2 comes after 1",
        "THROW 'the service is down'": "the service is down",
    }.items():
        done = cli("retriever", "add", "mine", expression)
        assert done.returncode == 4, (expression, done.stdout, done.stderr)
        assert reason in done.stderr, (expression, done.stderr)
        assert done.stderr.startswith("error: mine was not added")
    assert (registry(project), (project / "surql/corpus/retrieve.surql").read_text(encoding="utf-8")) == before
    assert not [line for line in cli("check").stdout.splitlines() if "probe" in line]


ODD_ROWS = {
    "[`my-papers`:1, { id: `my-papers`:2 }]": "it gives ids and rows in one list",
    "[NONE, `my-papers`:1]": "it gives NONE (none), no record id",
    "[{ score: 2 }, { id: `my-papers`:2, score: 1 }]": "it gives NONE (none), no record id",
    "[{ id: `my-papers`:1, score: NONE }, { id: `my-papers`:2, score: 2 }]": "some of its scores are no finite numbers",
    "[{ id: `my-papers`:1, score: 0f/0f }, { id: `my-papers`:2, score: 1 }]": "some of its scores are no finite numbers",
    "[`my-papers`:1, 'my-papers:2']": "no record id",
}


def test_lists_that_no_evaluation_would_take_are_refused_and_shown_when_forced(cli: Cli) -> None:
    for expression, reason in ODD_ROWS.items():
        done = cli("retriever", "add", "odd", expression)
        assert done.returncode == 4, expression
        assert reason in done.stderr, (expression, done.stderr)
    forced = cli("retriever", "add", "odd", "[`my-papers`:1, 'my-papers:2']", "--force")
    assert forced.returncode == 0, forced.stderr
    assert cli("retriever", "test", "odd").returncode == 4


def test_a_trial_writes_nothing(cli: Cli, target: Settings) -> None:  # noqa: F811
    with Database(target) as database:
        before = foreign.state(database)
    for expression in (
        "(CREATE audit SET x = $k RETURN VALUE `my-papers`:1)",
        "SELECT VALUE id FROM `my-papers` ORDER BY id LIMIT $k; DELETE `my-papers`:4",
        "SELECT VALUE id FROM `my-papers` ORDER BY id LIMIT $k } ; DELETE `my-papers`:4; { RETURN 1",
    ):
        done = cli("retriever", "add", "writer", expression)
        assert done.returncode == 4, expression
        assert "it writes (" in done.stderr
    # words in texts and names write nothing
    assert cli("retriever", "add", "reader", "array::slice(fn::find('how to DELETE it', $k), 0, $k)").returncode == 0
    assert cli("retriever", "remove", "reader").returncode == 0
    with Database(target) as database:
        after = foreign.state(database)
    assert after == before


HAND_MADE = (
    '# head\r\n\r\n[bm25]\r\ncall = "fn::search_bm25($question.text, $k)"\r\nreturns = "my-papers"\r\n\r\n'
    "# about vector: very important\r\n[vector] # here\r\ncall = '''\r\nfn::search_vec($question.embedding,\r\n$k)'''\r\n"
    'returns = "my-papers"\r\n\r\n# the end\r\n'
)


def test_a_file_edited_by_hand_keeps_comments_line_ends_and_byte_order_mark(cli: Cli, project: Path) -> None:
    path = project / "surql/corpus/retrievers.toml"
    path.write_bytes(b"\xef\xbb\xbf" + HAND_MADE.encode())
    assert cli("apply").returncode == 0
    assert cli("retriever", "add", "mine", "fn::find($question.text, $k)").returncode == 0
    added = path.read_bytes().decode()
    assert added == "\ufeff" + HAND_MADE + '\r\n[mine]\r\ncall = "fn::find($question.text, $k)"\r\nreturns = "my-papers"\r\n'
    assert cli("retriever", "remove", "bm25").returncode == 0
    assert "# about vector: very important\r\n[vector] # here\r\n" in path.read_bytes().decode()
    assert cli("retriever", "add", "vector", "fn::search_vec($question.embedding, $k)", "--force").returncode == 0
    text = path.read_bytes().decode()
    assert text.startswith("\ufeff# head\r\n\r\n# about vector: very important\r\n[vector]\r\n")
    assert "\r\n\r\n# the end\r\n" in text
    inline = "bm25 = { call = 'fn::search_bm25($question.text, $k)', returns = 'my-papers' }"
    path.write_text(f"{inline}\n[b]\ncall='[]'\nreturns='my-papers'\n")
    refused = cli("retriever", "remove", "bm25")
    assert refused.returncode == 2
    assert "edit it by hand" in refused.stderr


def test_a_failure_on_the_way_leaves_the_files_as_they_were(
    empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign.build(empty)
    _init.init(tmp_path, _adopt.adopt(empty, _adopt.Wishes(), nobody).corpus)
    _schema.apply(empty, tmp_path)
    folder = tmp_path / "surql/corpus"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def stopped(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_schema, "apply", stopped)
    with pytest.raises(KeyboardInterrupt):
        _registry.add(empty, tmp_path, _retrievers.Retriever("mine", "fn::find($question.text, $k)", "my-papers"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    monkeypatch.undo()
    with pytest.raises(SchemaError):
        _registry.add(empty, tmp_path, _retrievers.Retriever("mine", "fn::find($question.text,", "my-papers"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert _schema.drift(empty, tmp_path) == []


def test_the_application_s_own_function_a_subquery_and_an_api(cli: Cli, project: Path, target: Settings) -> None:  # noqa: F811
    with Database(target) as database:
        database.run(
            "DEFINE API '/find' FOR post THEN { RETURN { status: 200, body: fn::find($request.body.q, $request.body.k) } };"
        )
    match = "SELECT id, search::score(1) AS score FROM `my-papers` WHERE `full text` @1,OR@ $question.text"
    near = "SELECT id, vector::distance::knn() AS d FROM `my-papers` WHERE `v-ec` <|40,60|> $question.embedding"
    expressions = {
        "own": "fn::find($question.text, $k)",
        "rows": f"{match} ORDER BY score DESC, id LIMIT $k",
        "neighbours": f"SELECT VALUE id FROM ({near} ORDER BY d, id LIMIT $k)",
        "api": "api::invoke('/find', { method: 'post', body: { q: $question.text, k: $k } }).body",
    }
    for name, expression in expressions.items():
        done = cli("retriever", "add", name, expression)
        assert done.returncode == 0, (name, done.stderr)
        assert f"added {name}" in done.stdout
    done = cli("evaluate", "-k", "5", "--json")
    assert done.returncode == 0, done.stderr
    recall = {run["retriever"]: run["recall"] for run in json.loads(done.stdout)["runs"]}
    assert set(recall) == {"bm25", "vector", "hybrid", *expressions}
    assert recall["own"] == recall["rows"] == recall["api"]
    assert recall["neighbours"] == recall["vector"]
    listed = cli_without_connection("retriever", "list", "--json", cwd=project)
    assert [row["name"] for row in json.loads(listed.stdout)] == ["bm25", "vector", "hybrid", *expressions]


def cli_without_connection(*arguments: str, cwd: Path) -> CompletedProcess[str]:
    return surrecall(*arguments, cwd=cwd)


def test_forced_it_is_kept_and_every_evaluation_says_why(cli: Cli, project: Path) -> None:
    done = cli("retriever", "add", "odd", "SELECT VALUE id FROM `my-papers` ORDER BY rand() LIMIT $k", "--force")
    assert done.returncode == 0, done.stderr
    assert "warning: odd: " in done.stderr
    for _ in range(2):
        told = cli("evaluate", "-k", "5").stderr
        assert "warning: odd: the engine's two executors give different lists" in told
    tried = cli("retriever", "test", "odd")
    assert tried.returncode == 4
    assert "asked again it gives another list" in tried.stderr
    assert cli("retriever", "test", "bm25").returncode == 0
    # the file keeps its comments and order, whatever is added and taken out
    comments = [line for line in registry(project).splitlines() if line.startswith("#")]
    assert cli("retriever", "remove", "odd").returncode == 0
    assert [retriever.name for retriever in _retrievers.parse(registry(project))] == ["bm25", "vector", "hybrid"]
    assert [line for line in registry(project).splitlines() if line.startswith("#")] == comments
    assert len(comments) > 5
    unknown = cli("retriever", "remove", "hybird")
    assert unknown.returncode == 2
    assert "did you mean hybrid?" in unknown.stderr
    for name in ("bm25", "vector"):
        assert cli("retriever", "remove", name).returncode == 0
    assert "the only retriever" in cli("retriever", "remove", "hybrid").stderr
    assert cli("history").returncode == 0


def test_a_list_that_does_not_begin_the_longer_one_is_called_once_a_cutoff(cli: Cli, target: Settings) -> None:  # noqa: F811
    backwards = "array::reverse((SELECT VALUE id FROM `my-papers` ORDER BY id LIMIT $k))"
    done = cli("retriever", "add", "backwards", backwards)
    assert done.returncode == 0, done.stderr
    assert "asking for 20 changes the first 10" in done.stdout
    with Database(target) as database:
        evaluation = evaluate(database, Options([5, 20], retrievers=["backwards", "bm25"]))
    calls = [(call["retriever"], call["depth"]) for call in evaluation.row["calls"]]
    assert sorted(calls) == [("backwards", 5), ("backwards", 20), ("bm25", 20)]


def test_chunks_that_lead_to_documents(cli: Cli, target: Settings) -> None:  # noqa: F811
    """Two chunkings in one table; each document counts once, at the rank of its best chunk, as a SELECT gives it."""
    with Database(target) as database:
        database.run(CHUNKS)
    refused = cli("retriever", "add", "chunks", CHUNK_SEARCH)
    assert refused.returncode == 4
    assert "it gives chunk, and the labels are of my-papers; --document says how a row leads to one" in refused.stderr
    for size in (1, 5):
        search, way = CHUNK_SEARCH.replace("size = 5", f"size = {size}"), ["--document", "$row.id.paper"]
        done = cli("retriever", "add", f"size{size}", search, "--where", f"$row.id.size = {size}", *way)
        assert done.returncode == 0, done.stderr
        assert "dropped" not in done.stderr
    with Database(target) as database:
        question = database.value("SELECT * FROM ONLY question:first")
        for size in (1, 5):
            papers = database.value(
                "SELECT paper, id, search::score(1) AS score FROM chunk WHERE text @1,OR@ $q AND size = $size"
                " ORDER BY score DESC, id LIMIT 20",
                q=question["text"],
                size=size,
            )
            expected = list(dict.fromkeys(row["paper"] for row in papers))
            ranking = database.value("RETURN fn::ranking($name, $question, 20)", name=f"size{size}", question=question["id"])
            assert ranking["ids"] == expected
            assert len(ranking["scores"]) == len(expected)
            # small chunks may repeat their papers
            assert size == 1 or len(expected) == len(papers)
        evaluation = evaluate(database, Options([5], retrievers=["size1", "size5"]))
        assert evaluation.row["status"] == "complete"
        assert sum(run["repeats"] for run in evaluation.runs) == 0
        assert database.value("RETURN fn::check()") == []
    late = cli("retriever", "add", "late", CHUNK_SEARCH.replace("AND size = 5 ", ""), "--where", "$row.id.size = 5", *way)
    assert late.returncode == 0, late.stderr
    assert re.search(r"its condition dropped up to \d+ of the rows that came back, so fewer than k are left", late.stderr)
    wrong = cli("retriever", "add", "lost", CHUNK_SEARCH, "--document", "$row.document")
    assert wrong.returncode == 4
    assert "whose document is NONE, no record" in wrong.stderr


def test_names_and_questions_that_can_not_be(cli: Cli) -> None:
    for name in ("k", "has space", "", "-x", "é"):
        assert cli("retriever", "add", "--", name, "[]").returncode == 2, name
    taken = cli("retriever", "add", "bm25", "[]")
    assert taken.returncode == 4
    assert "there is a retriever named bm25 already" in taken.stderr
    empty = cli("retriever", "add", "nothing", "[]")
    assert empty.returncode == 0
    assert "nothing came back, so little was tried" in empty.stderr
    assert "there are: bm25, vector, hybrid, nothing" in cli("retriever", "test", "bm52").stderr
    dotted = cli("retriever", "add", "v1.2+x", "fn::find($question.text, $k)")
    assert dotted.returncode == 0, dotted.stderr
    assert cli("retriever", "test", "v1.2+x", "--question", "apple fig").returncode == 0
    assert cli("retriever", "test", "v1.2+x", "--question", "any other words").returncode == 0
    assert cli("retriever", "remove", "v1.2+x").returncode == 0


def test_a_folder_without_files_of_its_own_has_nothing_to_change(tmp_path: Path) -> None:
    done = surrecall("retriever", "add", "mine", "[]", cwd=tmp_path, env={"SURREAL_URL": "mem://"})
    assert done.returncode == 2
    assert "surrecall init" in done.stderr
