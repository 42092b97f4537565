"""A recorded evaluation: facts, means, history; what fails, what is empty, what is refused beforehand."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from conftest import fresh_settings
from definitions import DEFINITIONS
from surrecall import (
    Database,
    DatabaseError,
    DataError,
    Evaluation,
    Options,
    SchemaError,
    SurrecallError,
    UsageError,
    _seed,
    evaluate,
)

MEANS = ("recall", "precision", "p", "hit", "rr", "ap", "ndcg", "judged")


def run(database: Database, *cutoffs: int, **options: Any) -> Evaluation:
    return evaluate(database, Options(cutoffs or (3,), **options))


def define_retriever(database: Database, name: str, call: str, prefix: bool = True) -> None:
    """A registry of one retriever, as its generated file would define it."""
    database.run(
        f"""
        DELETE retriever;
        CREATE retriever CONTENT {{ id: $name, position: 0, call: $call, returns: 'article', prefix: $prefix }};
        DEFINE FUNCTION OVERWRITE fn::retrieve_rows($retriever: string, $question: record<question> | object, $k: any) {{
          LET $question = IF type::is_record($question) {{ (SELECT * FROM ONLY $question) }} ELSE {{ $question }};
          RETURN {call};
        }} COMMENT 'surrecall: test';
        """,
        name=name,
        call=call,
        prefix=prefix,
    )


def stored(database: Database, table: str) -> int:
    return int(database.value(f"RETURN count(SELECT VALUE id FROM {table})"))


def test_the_driver_and_the_one_statement_record_the_same(help_centre: Database) -> None:
    driven = run(help_centre, 1, 3, 5).runs
    told = help_centre.value("RETURN fn::record_evaluation({ k: [1, 3, 5] })")
    keys = ("retriever", "k", "questions", "errors", "empty", "repeats", *MEANS)
    assert [[row[key] for key in keys] for row in driven] == [[row[key] for key in keys] for row in told]
    assert len(driven) == 9


def test_the_facts_are_stored(help_centre: Database) -> None:
    evaluation = run(help_centre, 1, 5)
    answers = help_centre.value(
        "SELECT * FROM eval_answer WHERE retriever = 'bm25' AND question = question:money_back AND evaluation = $id",
        id=evaluation.row["id"],
    )
    (answer,) = answers
    assert [str(doc.id) for doc in answer["ranking"]] == ["return_item", "track_order", "api_rate_limits"]
    assert [round(score, 2) for score in answer["scores"]] == [2.46, 1.27, 1.15]
    assert answer["labels"] == [
        {"document": RecordID("article", "refund_request"), "grade": 1},
        {"document": RecordID("article", "cancel_subscription"), "grade": 1},
    ]
    assert answer["status"] == "ok"
    assert answer["depth"] == 5
    assert answer["took"].elapsed > 0


def test_any_metric_can_be_had_from_stored_answers(help_centre: Database) -> None:
    evaluation = run(help_centre, 1, 3, 5)
    for row in evaluation.runs:
        scores = help_centre.value(
            "SELECT VALUE fn::score(ranking, labels, $k) FROM eval_answer WHERE evaluation = $id AND retriever = $name",
            id=evaluation.row["id"],
            name=row["retriever"],
            k=row["k"],
        )
        for metric in MEANS:
            assert row[metric] == pytest.approx(sum(score[metric] for score in scores) / 8, abs=1e-12)


def test_the_evaluation_says_what_was_in_force(help_centre: Database) -> None:
    first = run(help_centre, note="before", revision="abc", trigger="ci").row
    assert (first["status"], first["trigger"], first["note"], first["revision"]) == ("complete", "ci", "before", "abc")
    assert first["engine"] == help_centre.version
    assert first["corpus"]["documents"] == 10
    again = run(help_centre).row
    prints = ("corpus", "golden_set", "definitions", "engine")
    assert [again[key] for key in prints] == [first[key] for key in prints]

    help_centre.run("UPDATE article:gift_card SET content += ' Enjoy.'")
    assert run(help_centre).row["corpus"]["hash"] != first["corpus"]["hash"]
    help_centre.run("UPDATE question:gift_voucher SET relevant += article:payment_method")
    assert run(help_centre).row["golden_set"] != first["golden_set"]
    help_centre.run("DEFINE FUNCTION OVERWRITE fn::mine() { RETURN 2 }")
    assert run(help_centre).row["definitions"] != first["definitions"]


def test_running_twice_appends_and_leaves_the_first_alone(help_centre: Database) -> None:
    run(help_centre, 3, note="nightly")
    first = help_centre.value("SELECT * FROM eval_run ORDER BY seq")
    define_retriever(help_centre, "bm25", "fn::search_bm25($question.text, 1)")
    run(help_centre, 3, note="nightly")
    run(help_centre, 3, note="nightly")
    rows = help_centre.value("SELECT * FROM eval_run ORDER BY seq")
    assert rows[: len(first)] == first
    assert [row["seq"] for row in rows] == [1, 2, 3, 4, 5]
    assert len({str(row["evaluation"]) for row in rows}) == 3


def test_a_question_without_an_answer_stays_in_the_mean(help_centre: Database) -> None:
    help_centre.run(
        "DELETE question;"
        "CREATE question:a SET text = '429', relevant = [article:api_rate_limits];"
        "CREATE question:b SET text = 'voucher', relevant = [article:gift_card];"
        "CREATE question:c SET text = 'zeppelin', relevant = [article:track_order];"
    )
    evaluation = run(help_centre, 3, retrievers=["bm25"])
    (row,) = evaluation.runs
    assert (row["questions"], row["empty"]) == (3, 1)
    for metric in ("recall", "hit", "rr", "ap", "ndcg"):
        assert row[metric] == pytest.approx(2 / 3)
    assert evaluation.warnings == ["bm25: nothing came back for 1 of 3 questions; they count as 0"]
    silent = help_centre.value("SELECT VALUE question FROM eval_answer WHERE status = 'empty'")
    assert silent == [RecordID("question", "c")]


def test_an_unanswerable_question_is_asked_and_in_no_mean(help_centre: Database) -> None:
    before = run(help_centre, 3).runs
    help_centre.run("CREATE question SET text = 'who won the cup', embedding = [0, 1, 0, 1], answerable = false")
    evaluation = run(help_centre, 3)
    assert [row["recall"] for row in evaluation.runs] == [row["recall"] for row in before]
    assert {row["questions"] for row in evaluation.runs} == {8}
    assert len(evaluation.row["questions"]) == 9


def test_unanswerable_questions_are_reported_by_themselves(help_centre: Database) -> None:
    assert run(help_centre, 3).unanswerable == []
    help_centre.run(
        "CREATE question:cup SET text = 'where is my refund', embedding = [0, 1, 0, 1], answerable = false;"
        "CREATE question:silent SET text = 'zzz', embedding = [0, 1, 0, 1], answerable = false;"
    )
    evaluation = run(help_centre, 1, 3)
    assert evaluation.warnings == []
    told = {(row["retriever"], row["k"]): row for row in evaluation.unanswerable}
    assert list(told) == [(name, k) for name in ("bm25", "vector", "hybrid") for k in (1, 3)]
    for (name, k), row in told.items():
        shares = (0.5, 0.5) if name == "bm25" else (0, 1)
        assert (row["questions"], row["nothing"], row["something"]) == (2, *shares), (name, k)
    # the best score where there is no answer, and where there is one
    answers = help_centre.value(
        "SELECT answerable, scores FROM eval_answer WHERE evaluation = $id AND retriever = 'bm25'",
        id=evaluation.row["id"],
    )
    tops = {of: [row["scores"][0] for row in answers if row["answerable"] is of and row["scores"]] for of in (True, False)}
    assert len(tops[False]) == 1
    assert told["bm25", 3]["top_score"] == pytest.approx(tops[False][0])
    assert told["bm25", 3]["answerable_top_score"] == pytest.approx(sum(tops[True]) / len(tops[True]))
    # one that fails is neither silent nor noisy
    help_centre.run("UPDATE question:silent SET embedding = NONE")
    assert {row["retriever"]: row["questions"] for row in run(help_centre, 3).unanswerable}["vector"] == 1
    # one list a cutoff, and no scores
    define_retriever(help_centre, "odd", "IF $k > 1 { [article:gift_card] } ELSE { [] }", prefix=False)
    odd = run(help_centre, 1, 3).unanswerable
    assert [(row["k"], row["nothing"], row.get("top_score")) for row in odd] == [(1, 1, None), (3, 0, None)]


def test_an_empty_corpus_gives_zeros_and_says_so(schema: Database) -> None:
    schema.run(
        "OPTION IMPORT; INSERT INTO question { id: question:a, text: 'a', embedding: [1f, 0f, 0f, 0f], relevant: [article:x],"
        " answerable: true, set: 'default' };"
    )
    evaluation = run(schema, 5)
    assert {row[metric] for row in evaluation.runs for metric in MEANS} == {0.0}
    assert evaluation.warnings[0] == "nothing is indexed: the corpus is empty, every figure is 0"


def test_one_question_that_fails_is_an_answer_and_not_a_dead_run(help_centre: Database) -> None:
    help_centre.run("UPDATE question:signin SET embedding = NONE")
    evaluation = run(help_centre, 3)
    assert evaluation.failed
    assert evaluation.row["status"] == "failed"
    runs = {row["retriever"]: row for row in evaluation.runs}
    assert (runs["bm25"]["questions"], runs["bm25"]["errors"]) == (8, 0)
    assert (runs["vector"]["questions"], runs["vector"]["errors"]) == (7, 1)
    (message,) = help_centre.value("SELECT VALUE message FROM eval_answer WHERE status = 'error' AND retriever = 'vector'")
    assert message.startswith("a vector of 4 numbers belongs here, got NONE")
    assert "failed on 1 of 8 questions, first on question:signin" in evaluation.warnings[0]
    assert stored(help_centre, "eval_answer") == 24


def test_a_retriever_that_always_fails_leaves_no_run(help_centre: Database) -> None:
    define_retriever(help_centre, "broken", "fn::nowhere($question.text)")
    evaluation = run(help_centre, 3)
    assert evaluation.failed
    assert evaluation.runs == []
    assert stored(help_centre, "eval_run") == 0


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ("'article:gift_card'", "gave string, not a list"),
        ("['article:gift_card']", "Expected `record` but found `'article:gift_card'`"),
        ("[{ title: 'x' }]", "Expected `record` but found `NONE`"),
        ("[NONE]", "Expected `record` but found `NONE`"),
        ("[article:gift_card, { id: article:track_order }]", "Expected `record` but found `{ id: article:track_order }`"),
        ("NONE", "gave none, not a list"),
        ("[question:signin]", "gave question:signin, but it is registered to return article"),
        ("[article:gift_card, question:signin]", "gave question:signin, but it is registered to return article"),
    ],
)
def test_what_is_no_ranking_is_an_error_and_never_a_zero(help_centre: Database, call: str, complaint: str) -> None:
    define_retriever(help_centre, "odd", call)
    evaluation = run(help_centre, 3)
    assert complaint in evaluation.warnings[0]
    assert evaluation.runs == []


def test_a_retriever_that_gives_more_than_asked_is_cut(help_centre: Database) -> None:
    define_retriever(help_centre, "all", "(SELECT id, 1 AS score FROM article ORDER BY id)")
    evaluation = run(help_centre, 2)
    assert help_centre.value("SELECT VALUE ranking.len() FROM eval_answer") == [2] * 8
    assert any("all scores equal for 8 of 8 questions" in warning for warning in evaluation.warnings)


def test_repeats_are_counted_and_earn_nothing(help_centre: Database) -> None:
    define_retriever(help_centre, "twice", "[$question.relevant[0], $question.relevant[0]]")
    evaluation = run(help_centre, 2)
    (row,) = evaluation.runs
    assert row["repeats"] == 8
    assert row["p"] == 0.5
    assert "twice: 8 documents came back more than once; only the first sighting counts" in evaluation.warnings


def test_a_retriever_whose_lists_are_no_prefixes_is_called_once_a_cutoff(help_centre: Database) -> None:
    # at 1 it has the label, at 2 it has not
    define_retriever(help_centre, "moody", "IF $k = 1 { $question.relevant } ELSE { [article:track_order] }", prefix=False)
    runs = {row["k"]: row for row in run(help_centre, 1, 2).runs}
    assert (runs[1]["hit"], runs[2]["hit"]) == (1.0, 0.125)
    assert stored(help_centre, "eval_answer") == 16


@pytest.mark.parametrize(
    ("breakage", "options", "error", "complaint"),
    [
        ("", {"retrievers": ["bm26"]}, UsageError, "no retriever named bm26"),
        ("", {"question_set": "nightly"}, DataError, "no question in the golden set nightly"),
        ("DELETE question", {}, DataError, "no question in the golden set default"),
        ("UPDATE question SET answerable = false", {}, DataError, "is answerable"),
        ("REMOVE INDEX article_words ON article", {}, SchemaError, "index article_words on article is missing"),
        ("REMOVE INDEX article_embedding ON article", {}, SchemaError, "index article_embedding on article is missing"),
        ("DELETE retriever", {}, SchemaError, "no retriever is registered"),
    ],
)
def test_what_can_be_wrong_beforehand_is_said_and_nothing_is_stored(
    help_centre: Database, breakage: str, options: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    help_centre.run(breakage + ";")
    with pytest.raises(error) as caught:
        run(help_centre, 3, **options)
    assert complaint in str(caught.value)
    assert getattr(caught.value, "hint", None)
    assert [stored(help_centre, table) for table in ("evaluation", "eval_answer", "eval_run")] == [0, 0, 0]


@pytest.mark.parametrize("k", [0, -1, 2.5, "5", None, [1]])
def test_a_cutoff_that_is_none_is_refused_by_every_function(help_centre: Database, k: Any) -> None:
    calls = (
        "fn::evaluate($k)",
        "fn::evaluate_floor($k, 1)",
        "fn::record_evaluation({ k: [3, $k] })",
        "fn::retrieve('bm25', question:signin, $k)",
        "fn::retrieve_vec(question:signin.embedding, $k)",
        "fn::score([article:gift_card], [article:gift_card], $k)",
    )
    for call in calls:
        with pytest.raises(SurrecallError, match="k must be a whole number of 1 or more, got"):
            help_centre.value(f"RETURN {call}", k=k)
    assert stored(help_centre, "evaluation") == 0


def test_an_empty_golden_set_has_no_mean(schema: Database) -> None:
    for call in ("fn::evaluate(3)", "fn::evaluate_floor(3, 1)", "fn::record_evaluation({ k: [3] })"):
        with pytest.raises(SurrecallError, match="question in the golden set default"):
            schema.value(f"RETURN {call}")


@pytest.mark.parametrize(
    ("index", "calls"),
    [
        ("article_words", ("fn::retrieve_bm25('refund', 3)", "fn::evaluate(3)")),
        (
            "article_embedding",
            ("fn::retrieve_vec([1, 0, 0, 0], 3)", "fn::retrieve_hybrid('a', [1, 0, 0, 0], 3)", "fn::evaluate(3)"),
        ),
    ],
)
def test_a_missing_index_is_an_error_in_the_functions_themselves(
    help_centre: Database, index: str, calls: tuple[str, ...]
) -> None:
    help_centre.run(f"REMOVE INDEX {index} ON article")
    for call, form in itertools.product(calls, ("RETURN {}", "RETURN [1].map(|$once| {})")):
        # below a closure the engine itself refuses a match without an index
        with pytest.raises(SurrecallError, match=f"index {index} on article is missing|no suitable index supporting"):
            help_centre.value(form.format(call))


def test_a_zero_vector_that_slipped_in_takes_no_slot(help_centre: Database) -> None:
    wanted = help_centre.value("RETURN fn::retrieve_vec([0, 1, 0, 0], 3)")
    help_centre.run(
        "REMOVE FIELD embedding ON article; DEFINE FIELD embedding ON article TYPE option<array<float>>;"
        "CREATE article:aaa SET title = 'z', content = 'z', embedding = [0, 0, 0, 0];"
        "CREATE article:aab SET title = 'z', content = 'z', embedding = [0, 0, 0, NaN];"
    )
    assert help_centre.value("RETURN fn::retrieve_vec([0, 1, 0, 0], 3)") == wanted
    problems = help_centre.value("RETURN fn::check_corpus()")
    assert [row["subject"] for row in problems] == ["article:aaa", "article:aab"]


@pytest.mark.parametrize("order", list(itertools.permutations(("d1", "d2", "d3"))), ids="".join)
def test_equal_scores_have_one_order_whatever_was_inserted_first(schema: Database, order: tuple[str, ...]) -> None:
    for name in order:
        schema.run(
            "CREATE type::record('article', $name) SET title = $name, content = 'the same words', embedding = [1, 0, 0, 0]",
            name=name,
        )
    schema.run("CREATE question:q SET text = 'same words', embedding = [1, 0, 0, 0], relevant = [article:d3]")
    for _ in range(5):
        for retriever in ("bm25", "vector", "hybrid"):
            score = schema.value("RETURN fn::score(fn::retrieve($name, question:q, 3), question:q.relevant, 3)", name=retriever)
            assert (score["rr"], score["ndcg"]) == (pytest.approx(1 / 3), 0.5)


def test_bm25_scores_of_zero_keep_one_order_and_warn(schema: Database) -> None:
    texts = ["apple banana cherry apple apple banana", "cherry date elderberry fig", "apple grape apple"]
    for number, text in enumerate(texts, 1):
        schema.run(
            "CREATE type::record('article', $id) SET title = '', content = $text, embedding = [1, 0, 0, 0]",
            id=f"d{number}",
            text=text,
        )
    schema.run("CREATE question:q SET text = 'apple', embedding = [1, 0, 0, 0], relevant = [article:d3]")
    tied = schema.value("RETURN fn::search_bm25('apple', 5)")
    assert [(str(row["id"].id), row["score"]) for row in tied] == [("d1", 0.0), ("d3", 0.0)]
    assert "bm25: all scores equal for 1 of 1 questions, so their order is by id alone" in run(schema, 3).warnings

    for number in range(16):
        schema.run("CREATE article SET title = $title, content = 'nothing to do with fruit'", title=str(number))
    ranked = schema.value("RETURN fn::search_bm25('apple', 5)")
    assert [str(row["id"].id) for row in ranked] == ["d3", "d1"]
    assert [row["score"] for row in ranked] == pytest.approx([2.848350, 2.565557], abs=1e-6)


def test_the_mean_does_not_depend_on_the_order_of_questions(help_centre: Database) -> None:
    before = run(help_centre, 3).runs
    rows = help_centre.value("SELECT id, text, embedding, relevant FROM question ORDER BY id DESC")
    help_centre.run("DELETE question; FOR $row IN $rows { CREATE $row.id CONTENT $row };", rows=rows)
    assert [[row[m] for m in MEANS] for row in run(help_centre, 3).runs] == [[row[m] for m in MEANS] for row in before]


def test_completing_needs_every_answer(help_centre: Database) -> None:
    begun = help_centre.value("RETURN fn::evaluation_begin({ k: [3] })")
    with pytest.raises(SurrecallError, match="has 0 of 24 answers"):
        help_centre.value("RETURN fn::evaluation_complete($id)", id=begun["id"])
    assert stored(help_centre, "eval_run") == 0
    unfinished = help_centre.value("RETURN fn::check_evaluations()")
    assert [row["subject"] for row in unfinished] == [help_centre.value("RETURN <string> $id", id=begun["id"])]


def test_a_finished_evaluation_can_not_be_completed_again(help_centre: Database) -> None:
    done = run(help_centre, 3).row["id"]
    with pytest.raises(SurrecallError, match="only a running evaluation can be completed"):
        help_centre.value("RETURN fn::evaluation_complete($id)", id=done)
    assert stored(help_centre, "eval_run") == 3


def test_a_server_that_goes_away_leaves_no_run(server: Any, help_centre: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    del server
    calls = iter(range(100))
    honest = help_centre.run

    def flaky(statements: str, **variables: Any) -> list[Any]:
        # the look at the labels, begin and one shard get through
        if next(calls) >= 4:
            raise DatabaseError("stopped answering")
        return honest(statements, **variables)

    monkeypatch.setattr(help_centre, "run", flaky)
    with pytest.raises(SurrecallError, match="stopped answering"):
        run(help_centre, 3)
    monkeypatch.undo()
    assert stored(help_centre, "eval_run") == 0
    assert [row["kind"] for row in help_centre.value("RETURN fn::check_evaluations()")] == ["evaluation"]


def test_an_index_that_is_still_being_built_is_not_measured(help_centre: Database) -> None:
    help_centre.run("REMOVE INDEX article_embedding ON article")
    rows = [{"title": str(n), "content": f"words {n}", "embedding": [1.0, n / 3000, 0.5, 0.25]} for n in range(3000)]
    for start in range(0, 3000, 500):
        help_centre.run("INSERT INTO article $rows RETURN NONE", rows=rows[start : start + 500])
    help_centre.run("DEFINE INDEX article_embedding ON article FIELDS embedding HNSW DIMENSION 4 DIST COSINE CONCURRENTLY")
    refused = 0
    while help_centre.value("INFO FOR INDEX article_embedding ON article")["building"]["status"] != "ready":
        for attempt in (lambda: run(help_centre, 3), lambda: help_centre.value("RETURN fn::evaluate(3)")):
            try:
                attempt()
            except SchemaError as error:
                assert "index article_embedding on article is " in error.message
                refused += 1
    assert refused > 0
    ready = help_centre.value("SELECT VALUE recall FROM eval_run WHERE retriever = 'vector'")
    # whatever was measured was measured over the whole index, where the 3,000 others crowd the labels out
    assert len(set(ready)) <= 1
    assert run(help_centre, 3).row["status"] == "complete"


def test_facts_are_not_edited(help_centre: Database) -> None:
    done = run(help_centre, 3)
    for statement in (
        "UPDATE eval_answer SET ranking = labels.document",
        "UPDATE evaluation SET corpus.documents = 99",
        "DELETE evaluation",
    ):
        with pytest.raises(SurrecallError):
            help_centre.run(statement)
    assert help_centre.value("SELECT * FROM ONLY $id", id=done.row["id"]) == done.row


@pytest.mark.parametrize(
    ("meanwhile", "changed"),
    [
        ("UPDATE question:signin SET relevant = [article:gift_card]", ["the golden set"]),
        ("UPDATE question:signin SET answerable = false", ["the golden set"]),
        ("DELETE question:signin", ["the golden set"]),
        ("DEFINE FUNCTION OVERWRITE fn::mine() { RETURN 1 }", ["the definitions"]),
    ],
)
def test_a_golden_set_or_definition_that_changes_meanwhile_leaves_no_figure(
    help_centre: Database, meanwhile: str, changed: list[str]
) -> None:
    once = iter([meanwhile])

    def interfere(_done: int, _total: int) -> None:
        help_centre.run(next(once, "RETURN 1"))

    evaluation = evaluate(help_centre, Options([3]), progress=interfere)
    assert (evaluation.row["status"], evaluation.row["changed"]) == ("failed", changed)
    assert evaluation.runs == []
    assert stored(help_centre, "eval_run") == 0
    assert f"{changed[0]} changed while it ran, so there are no figures; evaluate again" in evaluation.warnings
    assert any("the newest, failed" in row["problem"] for row in help_centre.value("RETURN fn::check_evaluations()"))


def test_a_document_that_comes_in_meanwhile_is_said(help_centre: Database) -> None:
    once = iter(["CREATE article SET title = 'x', content = 'x', embedding = [1, 0, 0, 0]"])

    def interfere(_done: int, _total: int) -> None:
        help_centre.run(next(once, "RETURN 1"))

    evaluation = evaluate(help_centre, Options([3]), progress=interfere)
    assert evaluation.row["status"] == "complete"
    assert "the number of documents changed while it ran" in evaluation.warnings


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("{ retrievers: [] }", "no retriever is asked for"),
        ("{ cutoffs: [1] }", "an evaluation has no option cutoffs; it takes k, retrievers"),
        ("{ k: [] }", "k must be a whole number of 1 or more, or a list of them, got none"),
        ("{ k: 'x' }", "k must be a whole number"),
    ],
)
def test_options_that_make_no_sense(help_centre: Database, options: str, complaint: str) -> None:
    with pytest.raises(SurrecallError) as caught:
        help_centre.value(f"RETURN fn::record_evaluation({options})")
    assert complaint in caught.value.text
    assert stored(help_centre, "evaluation") == 0


def test_one_cutoff_needs_no_list(help_centre: Database) -> None:
    assert [row["k"] for row in help_centre.value("RETURN fn::record_evaluation({ k: 2 })")] == [2, 2, 2]


def test_several_evaluations_at_once_are_all_kept(pytestconfig: pytest.Config, engine: str) -> None:
    settings = fresh_settings(pytestconfig, engine)
    with Database(settings) as database:
        database.run(DEFINITIONS)
        _seed.seed(database)
        if settings.is_embedded:
            # one process and one connection: they can only follow each other
            for _ in range(3):
                evaluate(database, Options([1, 3]))
        else:

            def work() -> None:
                with Database(settings) as own:
                    evaluate(own, Options([1, 3]))

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert database.value("SELECT VALUE status FROM evaluation") == ["complete"] * 3
        assert stored(database, "eval_run") == 18
        assert database.value("RETURN fn::check()") == []


def test_git_revision_of_a_folder_that_is_none(tmp_path: Path) -> None:
    from surrecall._evaluation import git_revision

    assert git_revision(tmp_path) is None


def test_usage_errors_are_errors_of_ours() -> None:
    assert UsageError("a", "b").exit_code == 2
