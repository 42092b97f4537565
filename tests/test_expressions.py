"""Reading an expression that a user wrote: one, reading only, and what stands in it outside texts and comments."""

from __future__ import annotations

import pytest

from surrecall import _expressions


@pytest.mark.parametrize(
    "expression",
    [
        "fn::search($question.text, $k)",
        "fn::search($question.text, $k);",
        "{ LET $a = 1; RETURN $a }",
        "(SELECT id FROM article WHERE title = 'a; b')",
        "fn::search($k) -- then; this",
        "[1, /* ; */ 2]",
        'fn::f("a;b", `c;d`, ⟨e;f⟩)',
    ],
)
def test_one_expression(expression: str) -> None:
    assert _expressions.is_one(expression)


@pytest.mark.parametrize(
    "expression", ["fn::a(); THROW 'b'", "fn::a($x);RETURN $x", "[]; DELETE article", "fn::a() } ; DELETE article; {"]
)
def test_more_than_one_expression(expression: str) -> None:
    assert not _expressions.is_one(expression)


@pytest.mark.parametrize("expression", ["DELETE article", "delete/**/article:x", "{ UPDATE article SET a = 1 }", "(CREATE a)"])
def test_what_writes(expression: str) -> None:
    assert _expressions.writes(expression) == expression.strip("({ ").split()[0].split("/")[0].upper()


@pytest.mark.parametrize("expression", ["fn::delete_old()", "'DELETE article'", "-- DELETE article", "$question.update", "[]"])
def test_what_does_not_write(expression: str) -> None:
    assert _expressions.writes(expression) is None
