"""Database.run: the first true cause, and what took effect before it."""

from __future__ import annotations

import pytest

from surrecall import Database, DatabaseError, SurrecallError

THREE = """
CREATE question:a SET text = 'a', relevant = [article:gift_card];
CREATE question:b SET text = ' ', relevant = [article:gift_card];
CREATE question:c SET text = 'c', relevant = [article:gift_card];
"""


def test_outside_a_transaction_the_statements_before_and_after_take_effect(empty: Database) -> None:
    with pytest.raises(DatabaseError, match="boom") as caught:
        empty.run("CREATE x:1; THROW 'boom'; CREATE x:2;")
    assert caught.value.statement == 1
    assert [row.id for row in empty.value("SELECT VALUE id FROM x")] == [1, 2]


def test_inside_a_transaction_nothing_does_and_the_cause_is_the_true_one(empty: Database) -> None:
    with pytest.raises(DatabaseError, match="boom"):
        empty.run("BEGIN; CREATE x:1; THROW 'boom'; CREATE x:2; COMMIT;")
    assert empty.value("INFO FOR DB")["tables"] == {}


def test_three_questions_the_second_invalid(help_centre: Database) -> None:
    with pytest.raises(SurrecallError, match="field `text`"):
        help_centre.run(f"BEGIN; {THREE} COMMIT;")
    assert help_centre.value("RETURN count(SELECT VALUE id FROM question)") == 8


def test_an_error_in_the_last_statement_is_an_error(help_centre: Database) -> None:
    with pytest.raises(SurrecallError, match="no retriever named nope") as caught:
        help_centre.run("RETURN fn::evaluate(3); RETURN fn::retrieve('nope', question:signin, 3);")
    assert caught.value.statement == 1


def test_what_does_not_parse_has_no_statement(empty: Database) -> None:
    with pytest.raises(DatabaseError, match="Parse error") as caught:
        empty.run("CREATE x:1; SELEC 1;")
    assert caught.value.statement is None
    assert empty.value("INFO FOR DB")["tables"] == {}


def test_values_are_bound_and_never_part_of_the_statement(empty: Database) -> None:
    evil = "'; REMOVE TABLE x; --"
    empty.run("CREATE x:1 SET text = $text", text=evil)
    assert empty.value("SELECT VALUE text FROM x") == [evil]
