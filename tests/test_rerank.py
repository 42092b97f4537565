"""Retrievers that put the candidates of another in another order, in the database and outside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from definitions import DEFINITIONS
from endpoints import Endpoint, Request, status
from surrecall import (
    Database,
    DataError,
    Options,
    Settings,
    SurrecallError,
    UsageError,
    _files,
    _rerank,
    _retrievers,
    _seed,
    evaluate,
)
from surrecall._corpus import Corpus
from surrecall._errors import EmbeddingError
from test_cli import Run, run, target  # noqa: F401  fixtures
from test_embedding import endpoint, waits  # noqa: F401  fixtures

BASE = """
[bm25]
call = "fn::search_bm25($question.text, $k)"
returns = "article"

[vector]
call = "fn::search_vec($question.embedding, $k)"
returns = "article"

[hybrid]
call = "fn::search_hybrid($question.text, $question.embedding, $k)"
returns = "article"
"""


def registered(database: Database, **expressions: str) -> None:
    """The help centre's retrievers, and one that reranks hybrid for each expression."""
    entries = [_retrievers.entry(_retrievers.reranked(name, "hybrid", text, 6)) for name, text in expressions.items()]
    database.run(_retrievers.compile_dispatcher(_retrievers.parse("\n\n".join([BASE, *entries]))))


def ids(rows: list[Any]) -> list[str]:
    return [str(row.id) for row in rows]


@pytest.fixture
def reranking(help_centre: Database) -> Database:
    registered(
        help_centre,
        words="fn::rerank_lexical($question.text, $ids, $k)",
        mmr="fn::rerank_mmr($question.embedding, $ids, $k, 0.7)",
        reversed="$ids.reverse()",
        drops="$ids.filter(|$id| $id != article:track_order)",
        invents="array::concat([article:nowhere], $ids)",
        again="array::concat([$ids[0]], $ids)",
    )
    return help_centre


def test_a_reranker_orders_the_candidates_of_another(reranking: Database) -> None:
    pool = reranking.value("RETURN fn::retrieve('hybrid', question:money_back, 6)")
    ranking = reranking.value("RETURN fn::ranking('reversed', question:money_back, 3)")
    assert ranking["ids"] == pool[::-1][:3]
    assert ranking["pool"] == pool
    # at most the pool comes back, and what k is makes no other list
    assert reranking.value("RETURN fn::retrieve('reversed', question:money_back, 50)") == pool[::-1]
    for name in ("words", "mmr"):
        lists = [reranking.value(f"RETURN fn::ranking('{name}', question:money_back, {k})") for k in (3, 6)]
        assert lists[0]["ids"] == lists[1]["ids"][:3]
        assert sorted(ids(lists[1]["ids"])) == sorted(ids(pool))
        assert len(lists[0]["scores"]) == 3
        below = reranking.value(f"RETURN (CREATE ONLY executor_probe SET v = fn::ranking('{name}', question:money_back, 6)).v")
        assert below == lists[1]


def test_the_row_says_what_it_reranks_and_how_deep(reranking: Database) -> None:
    row = reranking.value("SELECT * FROM ONLY retriever:words")
    assert (row["reranks"], row["pool"], row["returns"], row["prefix"]) == ("hybrid", 6, "article", True)
    assert row["rerank"] == "fn::rerank_lexical($question.text, $ids, $k)"
    # its call is an expression as every other's
    reranking.run("LET $question = (SELECT * FROM ONLY question:money_back)")
    told = reranking.run_as_written(f"LET $question = (SELECT * FROM ONLY question:money_back); LET $k = 6; RETURN {row['call']}")
    assert [found["id"] for found in told[-1]] == reranking.value("RETURN fn::retrieve('words', question:money_back, 6)")


def test_the_pool_is_kept_with_the_answer(reranking: Database) -> None:
    evaluation = evaluate(reranking, Options([3], retrievers=["hybrid", "reversed"]))
    pools = reranking.value(
        "SELECT VALUE [retriever, pool] FROM eval_answer WHERE question = question:money_back ORDER BY retriever"
    )
    assert pools[0] == ["hybrid", None]
    assert pools[1] == ["reversed", reranking.value("RETURN fn::retrieve('hybrid', question:money_back, 6)")]
    assert evaluation.row["status"] == "complete"
    assert not [line for line in evaluation.warnings if "harness" in line]


def test_one_that_changes_the_recall_of_the_pool_is_a_fault_of_the_harness(reranking: Database) -> None:
    evaluation = evaluate(reranking, Options([6], retrievers=["words", "drops", "invents", "again"]))
    faults = [line for line in evaluation.warnings if "harness" in line]
    # one that repeats a candidate has no place left for another
    assert {line.partition(":")[0] for line in faults} == {"drops", "invents", "again"}
    said = "a fault of the harness, not of retrieval: for"
    assert any(
        line.startswith(f"drops: {said}") and "its reranker drops candidates, first on question:" in line for line in faults
    )
    assert any(
        line.startswith(
            f"invents: {said} 8 of 8 questions its reranker brings documents that were no candidates, first article:nowhere"
        )
        for line in faults
    )


def test_a_label_is_followed_through_the_stages_and_the_reranker(help_centre: Database) -> None:
    text = (ROOT / "surql/corpus/retrievers.toml").read_text(encoding="utf-8")
    entry = _retrievers.entry(_retrievers.reranked("backwards", "hybrid", "$ids.reverse()", 6))
    help_centre.run(_retrievers.compile_dispatcher(_retrievers.parse(f"{text}\n{entry}")))
    (first, second) = help_centre.value("RETURN fn::stage_ranks('backwards', question:money_back, 10)")
    assert [rank["stage"] for rank in first["ranks"]] == ["lexical", "vector", "fused", "reranked"]
    # labels at 4 and 5 of six candidates are 3 and 2 from behind
    assert [[rank["rank"] for rank in label["ranks"]][2:] for label in (first, second)] == [[4, 3], [5, 2]]


def test_a_reranker_of_a_reranker(help_centre: Database) -> None:
    first = _retrievers.reranked("first", "hybrid", "fn::rerank_lexical($question.text, $ids, $k)", 8)
    second = _retrievers.reranked("second", "first", "fn::rerank_mmr($question.embedding, $ids, $k, 0.5)", 4)
    text = "\n\n".join([BASE, _retrievers.entry(first), _retrievers.entry(second)])
    help_centre.run(_retrievers.compile_dispatcher(_retrievers.parse(text)))
    pool = help_centre.value("RETURN fn::retrieve('first', question:money_back, 4)")
    told = help_centre.value("RETURN fn::ranking('second', question:money_back, 4)")
    assert told["pool"] == pool
    assert sorted(ids(told["ids"])) == sorted(ids(pool))
    assert help_centre.value("RETURN fn::searches_neighbours('second')") is True
    assert help_centre.value("RETURN fn::searches_neighbours('bm25')") is False


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('[x]\nreranks = "hybrd"\nrerank = "$ids"', "reranks 'hybrd', which is none; there are: bm25, vector, hybrid, x"),
        ('[x]\nreranks = "y"\nrerank = "$ids"\n[y]\nreranks = "x"\nrerank = "$ids"', "x reranks y reranks x, in a circle"),
        ('[x]\nreranks = "hybrid"', "[x] has no rerank"),
        ('[x]\nreranks = "hybrid"\nrerank = "$ids; RETURN []"', "[x] rerank is more than one expression"),
        ('[x]\nreranks = "hybrid"\nrerank = "$ids"\npool = 0', "[x] pool is 0"),
        ('[x]\nreranks = "hybrid"\nrerank = "$ids"\nwhere = "true"', "[x] reranks, and has where"),
        ('[x]\nreranks = "hybrid"\nrerank = "$ids"\ncall = "[]"', "[x] reranks, and has call"),
        ('[x]\ncall = "[]"\nreturns = "article"\npool = 5', "[x] has pool and no reranks"),
    ],
)
def test_an_entry_that_is_none(entry: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        _retrievers.parse(f"{BASE}\n{entry}")
    assert message in caught.value.message


def test_an_entry_is_written_as_it_is_read() -> None:
    made = _retrievers.reranked("words", "hybrid", "fn::rerank_lexical($question.text, $ids, $k)", 20)
    text = _retrievers.entry(made)
    assert text.splitlines() == [
        "[words]", 'reranks = "hybrid"', 'rerank = "fn::rerank_lexical($question.text, $ids, $k)"', "pool = 20"
    ]  # fmt: skip
    # its stages are made from those of the other
    read = _retrievers.parse(f"{BASE}\n{text}")[-1]
    assert [stage.name for stage in read.stages] == ["pool", "reranked"]
    assert replace(read, stages=()) == _retrievers.reranked(
        "words", "hybrid", "fn::rerank_lexical($question.text, $ids, $k)", 20, "article"
    )


def test_the_commands(run: Run, target: Settings) -> None:  # noqa: F811
    with Database(target) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
    run("init", "--table", "article", "--field", "content", "--vector", "embedding", "--dimension", "4", "--analyzer", "help")
    said = run("retriever", "add", "words", "fn::rerank_lexical($question.text, $ids, $k)", "--reranks", "hybrid", "--pool", "6")
    assert "added words" in said.stdout
    assert "words" in run("retriever", "list").stdout
    assert json.loads(run("retriever", "list", "--json").stdout)[-1]["pool"] == 6
    run("retriever", "test", "words")
    drops = ("retriever", "add", "drops", "$ids.filter(|$id| $id != article:track_order)", "--reranks", "hybrid", "--pool", "9")
    assert "a fault of the harness: it drops candidates" in run(*drops, code=4).stderr
    invents = ("retriever", "add", "invents", "array::concat([article:nowhere], $ids)", "--reranks", "hybrid")
    assert "a fault of the harness: it brings article:nowhere, which is no candidate" in run(*invents, code=4).stderr
    run(*drops, "--force")
    assert "a fault of the harness" in run("retriever", "test", "drops", code=4).stderr
    assert "a fault of the harness" in run("evaluate", "-k", "9", "-r", "drops").stderr
    assert "reranks 'hybrid', which is none" in run("retriever", "remove", "hybrid", code=2).stderr
    run("retriever", "remove", "drops")
    run("retriever", "add", "x", "$ids", "--pool", "3", code=2)
    run("retriever", "add", "x", "$ids", "--reranks", "nope", code=2)


# outside the database


SCORES = """\
q0 Q0 a 1 0.2 x
q0 Q0 b 2 0.9 x
q0 Q0 zzz 3 5 x
q1 Q0 b 1 0.5 x
q1 Q0 a 2 0.5 x
strange Q0 a 1 1 x
"""


@pytest.fixture
def two(schema: Database) -> Database:
    """Two questions and two documents, a before b in the first stage; what is wanted is b."""
    schema.run(
        """
        CREATE article:a SET title = 'A', content = 'word', embedding = [1, 0, 0, 0];
        CREATE article:b SET content = 'word', embedding = [1, 0, 0, 0];
        FOR $n IN [0, 1] { CREATE type::record('question', 'q' + <string> $n) SET text = 'word', embedding = [1, 0, 0, 0],
          relevant = [article:b] };
        """
    )
    return schema


def outside(database: Database, **options: Any) -> _rerank.Reranked:
    given: dict[str, Any] = {"retriever": "vector", "name": "outside", "cutoffs": [1, 2], "pool": 5} | options
    return _rerank.rerank(database, None, _rerank.Options(**given))


def answers(database: Database) -> list[Any]:
    found = database.value(
        "SELECT question, ranking, scores, pool FROM eval_answer WHERE retriever = 'outside' ORDER BY question"
    )
    return [[str(row["question"].id), ids(row["ranking"]), row["scores"], ids(row["pool"])] for row in found]


def test_scores_of_a_file_put_candidates_in_order(two: Database, tmp_path: Path) -> None:
    file = tmp_path / "scores.trec"
    file.write_text(SCORES)
    done = outside(two, scores=file)
    # equal scores keep the order of the first stage; what is no candidate is brought by nobody
    assert answers(two) == [["q0", ["b", "a"], [0.9, 0.2], ["a", "b"]], ["q1", ["a", "b"], [0.5, 0.5], ["a", "b"]]]
    assert [(row["retriever"], row["k"], row["recall"]) for row in done.evaluation.runs] == [
        ("outside", 1, 0.5),
        ("outside", 2, 1),
    ]
    assert (done.candidates, done.unscored, done.known) == (4, 0, False)
    row = done.evaluation.row
    assert (row["trigger"], row["status"], row["imported"]["file"]) == ("import", "complete", "scores.trec")
    # the same scores again are the same evaluation, another pool is another
    again = outside(two, scores=file)
    assert (again.known, again.evaluation.row["id"]) == (True, row["id"])
    assert outside(two, scores=file, pool=1).known is False
    assert two.value("RETURN fn::check_history()") == []


def test_a_candidate_without_a_score_stays_behind_and_is_counted(two: Database, tmp_path: Path) -> None:
    file = tmp_path / "scores.trec"
    file.write_text("q0 Q0 b 1 0.1 x\n")
    done = outside(two, scores=file)
    assert answers(two) == [["q0", ["b", "a"], None, ["a", "b"]], ["q1", ["a", "b"], None, ["a", "b"]]]
    assert "3 of 4 candidates have no score, a fault of the harness: they stand behind the others" in done.warnings


def test_a_file_that_is_none(two: Database, tmp_path: Path) -> None:
    file = tmp_path / "scores.trec"
    for text, said in (("q0 Q0 b 1 x x\n", "is no number"), ("other Q0 b 1 1 x\n", "no score for any of 4 candidates")):
        file.write_text(text)
        with pytest.raises(DataError, match=said):
            outside(two, scores=file)
    with pytest.raises(UsageError, match="vector is a registered retriever"):
        outside(two, scores=file, name="vector")
    with pytest.raises(UsageError, match="a file of scores or an endpoint"):
        outside(two)
    assert two.value("RETURN count(SELECT VALUE id FROM evaluation)") == 0


def later_first(request: Request) -> None:
    """What stands last scores highest; given in any order, as endpoints do."""
    number = len(request.body["documents"])
    request.send(200, {"results": [{"index": place, "relevance_score": place / 10} for place in reversed(range(number))]})


def test_scores_of_which_none_is_a_finite_number_are_no_reranking(two: Database, endpoint: Endpoint) -> None:  # noqa: F811
    endpoint.always = lambda request: request.send(200, b'{"results": [{"index": 0, "relevance_score": NaN}]}')
    with pytest.raises(DataError, match="no score for any of 4 candidates"):
        outside(two, url=endpoint.url)
    assert two.value("RETURN count(SELECT VALUE id FROM evaluation)") == 0


def test_two_scores_for_one_candidate_are_refused_with_both_lines(two: Database, tmp_path: Path) -> None:
    file = tmp_path / "scores.trec"
    file.write_text("q0 Q0 b 1 0.9 x\nq0 Q0 a 2 0.5 x\nq0 Q0 b 3 0.1 x\n")
    with pytest.raises(DataError, match="another score than in line 1"):
        outside(two, scores=file)


def test_an_endpoint_is_asked_once_a_question(two: Database, endpoint: Endpoint) -> None:  # noqa: F811
    endpoint.always = later_first
    done = outside(two, url=f"{endpoint.url}/rerank", model="cross", key="sesame secret".replace(" ", "-"))
    assert [seen.body for seen in endpoint.seen] == [
        {"query": "word", "documents": ["A\nword", "word"], "top_n": 2, "model": "cross"}
    ] * 2
    assert all(seen.headers["Authorization"] == "Bearer sesame-secret" for seen in endpoint.seen)
    assert [seen.path for seen in endpoint.seen] == ["/v1/rerank"] * 2
    assert answers(two)[0] == ["q0", ["b", "a"], [0.1, 0.0], ["a", "b"]]
    assert done.evaluation.runs[0]["recall"] == 1
    assert done.evaluation.row["imported"]["file"] == f"{endpoint.url}/rerank"
    assert "sesame" not in str(two.run("SELECT * FROM evaluation; SELECT * FROM eval_answer"))


def test_an_endpoint_that_drops_documents_loses_none(two: Database, endpoint: Endpoint) -> None:  # noqa: F811
    endpoint.always = lambda request: request.send(200, {"results": [{"index": 1, "relevance_score": 0.5}]})
    done = outside(two, url=endpoint.url)
    assert [row[1] for row in answers(two)] == [["b", "a"], ["b", "a"]]
    assert done.unscored == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"data": []}, "holds no list `results`"),
        ({"results": [{"index": 7, "relevance_score": 1}]}, "names documents that were no candidates"),
        ({"results": [{"index": 0, "relevance_score": "1"}]}, "holds a relevance_score that is no number"),
        ({"results": [{"index": 0, "relevance_score": 1}] * 2}, "names a document twice"),
        ({"results": [{"index": 0, "relevance_score": 10**400}]}, "holds a relevance_score that is too large"),
    ],
)
def test_an_answer_that_is_none_stores_nothing(two: Database, endpoint: Endpoint, answer: Any, said: str) -> None:  # noqa: F811
    endpoint.always = lambda request: request.send(200, answer)
    with pytest.raises(EmbeddingError, match=said):
        outside(two, url=endpoint.url)
    assert two.value("RETURN count(SELECT VALUE id FROM evaluation)") == 0


def test_an_endpoint_that_is_busy_is_asked_again(two: Database, endpoint: Endpoint, waits: list[float]) -> None:  # noqa: F811
    endpoint.always = later_first
    endpoint.script = [status(503), status(429, Retry_After="2")]
    outside(two, url=endpoint.url)
    assert len(endpoint.seen) == 4
    assert waits[1] == 2
    endpoint.always = status(400, "no such model")
    with pytest.raises(EmbeddingError, match="answers 400: no such model"):
        outside(two, url=endpoint.url, name="other")
    with pytest.raises(UsageError, match="holds a login or a query"):
        outside(two, url="http://user:secret@127.0.0.1/rerank")


def test_the_command_that_reranks(run: Run, target: Settings, endpoint: Endpoint) -> None:  # noqa: F811
    with Database(target) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
    endpoint.always = later_first
    url = ("--reranker-url", f"{endpoint.url}/rerank", "--pool", "5", "-k", "1,5")
    said = run("rerank", "hybrid", "--name", "crossencoder", *url).stdout
    assert next(line.split()[:2] for line in said.splitlines() if line.startswith("crossencoder")) == ["crossencoder", "1"]
    assert "reranked 40 candidates of hybrid" in said
    again = run("rerank", "hybrid", "--name", "crossencoder", *url).stdout
    assert "nothing stored: these scores are evaluation:" in again
    assert "crossencoder" in run("history").stdout
    told = json.loads(run("rerank", "bm25", "--name", "other", *url, "--json").stdout)
    assert told["evaluation"]["runs"][0]["retriever"] == "other"
    run("rerank", "hybrid", "--name", "x", code=2)
    run("rerank", "hybrid", "--name", "bm25", *url, code=2)
    assert "no retriever named hybird" in run("rerank", "hybird", "--name", "x", *url, code=2).stderr


# vectors in a table of their own, no full-text index
BESIDE: dict[str, Any] = {"adopted": True, "text_indexes": (), "vector_index": "near", "vector_table": "v"}


@pytest.mark.parametrize(
    ("corpus", "rows", "words", "vectors", "text"),
    [
        (
            Corpus("paper", ("title", "body"), "vec", 2),
            "CREATE paper:1 SET title = 'Words', body = 'of a paper', vec = [1, 0]; CREATE paper:2 SET body = 'two', vec = NONE",
            [["word", "of", "a", "paper"], ["two"]],
            [[1, 0]],
            "Words\nof a paper",
        ),
        (
            Corpus("paper", "body"),
            "CREATE paper:1 SET body = 'words', title = 'T'; CREATE paper:2 SET body = 'two'",
            [["word"], ["two"]],
            None,
            "T\nwords",
        ),
        (
            Corpus("paper", "body", "vec", 2, **BESIDE, link="of", title=None),
            "CREATE paper:1 SET body = 'Some Words'; CREATE paper:2 SET body = ['two', 'parts'];"
            "CREATE v:1 SET of = paper:1, vec = [1, 0]; CREATE v:2 SET of = paper:1, vec = [0, 1]",
            [["some", "words"], ["two", "parts"]],
            [[1, 0]],
            "Some Words",
        ),
        (
            Corpus("paper", "body", "vec", 2, **BESIDE, linked_by="at"),
            "CREATE paper:1 SET body = 'words', at = v:1; CREATE paper:2 SET body = 'two'; CREATE v:1 SET vec = [1, 0]",
            [["words"], ["two"]],
            [[1, 0]],
            "words",
        ),
    ],
)
def test_what_a_reranker_reads_of_any_corpus(
    empty: Database, corpus: Corpus, rows: str, words: Any, vectors: Any, text: str
) -> None:
    empty.run("DEFINE TABLE paper SCHEMALESS; DEFINE TABLE v SCHEMALESS")
    core = [file.text for file in _files.load(ROOT) if not file.name.startswith("corpus/")]
    empty.run("\n".join([*core, *(file.text for file in corpus.render() if file.name.endswith(".surql"))]))
    empty.run(rows)
    for form in ("RETURN {}", "RETURN (CREATE ONLY executor_probe SET v = {}).v"):
        call = form.format("fn::document_words([paper:1, paper:2, paper:gone]).words")
        assert empty.value(call) == words
        if vectors is None:
            with pytest.raises(SurrecallError, match="paper has no vectors"):
                empty.value(form.format("fn::document_vectors([paper:1])"))
        else:
            assert empty.value(form.format("fn::document_vectors([paper:1, paper:2]).vector")) == vectors
        assert empty.value(form.format("fn::document_texts([paper:1]).text")) == [text]
