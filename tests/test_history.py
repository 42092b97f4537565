"""The history: appended only, chained by hash, and honest about what went round its events."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from conftest import fresh_settings
from definitions import DEFINITIONS
from surrecall import Database, SurrecallError

APPEND = "CREATE eval_run SET retriever = $name, k = 3, recall = 0.5, questions = 8"


def history(database: Database) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = database.value("SELECT * FROM eval_run ORDER BY seq, id")
    return rows


def problems(database: Database) -> list[str]:
    return [f"{row['subject']} {row['problem']}" for row in database.value("RETURN fn::check_history()")]


@pytest.fixture
def runs(schema: Database) -> Database:
    """A database with three runs a, b, c."""
    for name in ("a", "b", "c"):
        schema.run(f"CREATE eval_run:{name} SET retriever = '{name}', k = 3, recall = 0.5, questions = 8")
    return schema


def test_runs_are_chained_in_the_order_they_came(runs: Database) -> None:
    rows = history(runs)
    assert [row["seq"] for row in rows] == [1, 2, 3]
    assert [row["previous"] for row in rows] == ["", rows[0]["hash"], rows[1]["hash"]]
    assert problems(runs) == []


def test_several_rows_in_one_statement_are_chained_too(runs: Database) -> None:
    runs.run(
        "INSERT INTO eval_run [{ retriever: 'd', k: 1, recall: 1, questions: 1 },"
        " { retriever: 'e', k: 1, recall: 0, questions: 1 }]"
    )
    assert [row["seq"] for row in history(runs)] == [1, 2, 3, 4, 5]
    assert problems(runs) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE eval_run SET recall = 1",
        "UPDATE eval_run:b SET note = 'x'",
        "UPDATE eval_run:b MERGE { recall: 1 }",
        "UPDATE eval_run:b CONTENT { at: time::now(), set: 'default', retriever: 'b', k: 3, recall: 1, questions: 8 }",
        "UPSERT eval_run:b SET retriever = 'b', k = 3, recall = 1, questions = 8",
        "INSERT INTO eval_run { id: 'b', retriever: 'b', k: 3, recall: 1, questions: 8 } ON DUPLICATE KEY UPDATE recall = 1",
        "UPDATE eval_run:b PATCH [{ op: 'replace', path: '/recall', value: 1 }]",
        "UPDATE eval_run:b REPLACE { at: time::now(), set: 'default', retriever: 'b', k: 3, recall: 1, questions: 8 }",
        "UPDATE ONLY eval_run:b SET recall = 1, seq = 9, hash = 'x'",
        "UPDATE eval_run:b UNSET note, k",
        "BEGIN; UPDATE eval_run:b SET recall = 1; COMMIT;",
        "LET $runs = (SELECT VALUE id FROM eval_run); FOR $run IN $runs { UPDATE $run SET recall = 1 }",
        "DELETE eval_run",
        "DELETE eval_run:b",
        "DELETE ONLY eval_run:b RETURN BEFORE",
        "DELETE eval_run WHERE recall < 1",
        "LET $runs = (SELECT VALUE id FROM eval_run); FOR $run IN $runs { DELETE $run }",
    ],
)
def test_no_ordinary_statement_changes_a_run(runs: Database, statement: str) -> None:
    def state() -> list[Any]:
        return [history(runs), runs.value("SELECT * FROM eval_trend ORDER BY id"), runs.value("SELECT * FROM eval_chain")]

    before = state()
    with pytest.raises(SurrecallError, match=r"append-only|is readonly|Couldn't coerce"):
        runs.run(statement)
    assert state() == before
    assert problems(runs) == []


def test_a_transaction_that_a_client_holds_open_changes_no_run(runs: Database) -> None:
    """There a statement that an event refused keeps what it wrote; READONLY refuses before. A DELETE shows in the chain."""
    if not runs.holds_transactions:
        with pytest.raises(SurrecallError, match="is readonly"):
            runs.run("BEGIN; UPDATE eval_run:b SET recall = 1; COMMIT;")
        return
    before = history(runs)
    told = _held(runs, "UPDATE eval_run:b SET recall = 1", "UPDATE eval_run:b SET note = 'other'")
    assert ["is readonly" in text for text in told] == [True, True]
    assert history(runs) == before
    (told_last,) = _held(runs, "DELETE eval_run:b")
    assert "append-only" in told_last
    assert history(runs) == before or problems(runs)


def _held(database: Database, *statements: str) -> list[str]:
    """What each statement of a transaction says that is committed in spite of it."""
    with database.another() as other:
        connection: Any = other._connection
        transaction = connection.begin()
        answers = [connection.query_raw(statement, {}, None, transaction) for statement in statements]
        connection.commit(transaction)
    return [str(answer) for answer in answers]


def test_creating_the_same_run_again_raises_and_keeps_the_first(runs: Database) -> None:
    before = history(runs)
    with pytest.raises(SurrecallError, match="already exists"):
        runs.run("CREATE eval_run:b SET retriever = 'b', k = 3, recall = 1, questions = 8")
    assert history(runs) == before
    assert problems(runs) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE eval_run:b SET recall = 1f", "eval_run:b was changed or written round its event"),
        ("UPDATE eval_run:c SET k = 1", "eval_run:c was changed or written round its event"),
        ("UPDATE eval_run:a SET note = 'x'", "eval_run:a was changed or written round its event"),
        ("UPDATE eval_run:b SET at = time::now() - 9d", "eval_run:b was changed or written round its event"),
        ("UPDATE eval_run:b SET ndcg = 0.5f", "eval_run:b was changed or written round its event"),
        ("UPDATE eval_run:b SET recall = 1f", "eval_trend is not what eval_run gives"),
        ("DELETE eval_run:c", "eval_trend is not what eval_run gives"),
        ("DELETE eval_run:b", "eval_run:c does not follow the run before it"),
        ("DELETE eval_run:a", "eval_run:b does not follow the run before it"),
        ("DELETE eval_run:c", "eval_run the newest run is not the one that was written last"),
        (
            "CREATE eval_run:d SET retriever = 'd', k = 3, recall = 1f, questions = 8, at = time::now(), set = 'default'",
            "eval_run:d was changed or written round its event",
        ),
    ],
)
def test_what_went_round_the_events_is_named(runs: Database, statement: str, found: str) -> None:
    runs.run(f"OPTION IMPORT; {statement};")
    assert any(problem.startswith(found) for problem in problems(runs)), problems(runs)


def test_a_row_rewritten_with_its_guards_removed_is_named(runs: Database) -> None:
    runs.run("REMOVE EVENT eval_run_append_only ON eval_run; DEFINE FIELD OVERWRITE recall ON eval_run TYPE float;")
    runs.run("UPDATE eval_run:b SET recall = 1")
    assert history(runs)[1]["recall"] == 1
    assert problems(runs)[0].startswith("eval_run:b was changed")


def test_many_writers_at_once_make_one_chain(pytestconfig: pytest.Config, engine: str) -> None:
    settings = fresh_settings(pytestconfig, engine)
    if settings.is_embedded:
        # one process, one connection: writers can only take turns
        with Database(settings) as database:
            database.run(DEFINITIONS)
            for number in range(20):
                database.run(APPEND, name=str(number))
            assert len(history(database)) == 20
            assert problems(database) == []
        return
    with Database(settings) as database:
        database.run(DEFINITIONS)

        def write(writer: int) -> None:
            with Database(settings) as own:
                for number in range(10):
                    while True:
                        try:
                            own.run(APPEND, name=f"{writer}-{number}")
                        except SurrecallError as error:
                            assert "conflict" in error.message.lower()
                        else:
                            break

        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert [row["seq"] for row in history(database)] == list(range(1, 41))
        assert problems(database) == []
