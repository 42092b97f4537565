"""Results in Python: the rows are those of the database, a notebook shows text as text, pandas takes them over."""

from __future__ import annotations

import sys

import pytest

import surrecall
from surrecall import Database, Options, UsageError, compare, evaluate, gate, misses, trend
from surrecall._rows import Rows


@pytest.fixture
def evaluated(help_centre: Database) -> Database:
    help_centre.run("CREATE eval_floor:f CONTENT { retriever: 'hybrid', metric: 'recall', k: 3, minimum: 0.9, file: true }")
    evaluate(help_centre, Options((3, 5)))
    return help_centre


def test_the_rows_are_the_database_s(evaluated: Database) -> None:
    done = evaluate(evaluated, Options((3,), ["bm25", "hybrid"]))
    assert [(row["retriever"], row["k"], row["recall"]) for row in done.rows] == [
        (run["retriever"], run["k"], run["recall"]) for run in done.runs
    ]
    assert "hash" not in done.rows[0]
    told = compare(evaluated, "bm25", "hybrid", k=3)
    (row,) = told.rows
    (pair,) = evaluated.value("RETURN fn::compare({ sides: ['bm25', 'hybrid'], k: 3 })")["comparisons"]
    assert (row["a_mean"], row["b_mean"], row["difference"], row["p"]) == (
        pair["mean_a"], pair["mean_b"], pair["difference"], pair["p"],
    )  # fmt: skip
    assert told.verdicts == [pair["verdict"]]
    assert [one["question"] for one in told.broke] == [one["question"] for one in pair["broke"]]
    judged = gate(evaluated)
    assert (judged.holds, [one["holds"] for one in judged.rows]) == (False, [False])
    assert judged.rows[0]["value"] == pytest.approx(5 / 6)
    by_day = trend(evaluated, k=3, retriever="hybrid")
    assert [(one["retriever"], one["runs"]) for one in by_day.rows] == [("hybrid", 2)]
    missed = misses(evaluated, "hybrid", 3)
    assert missed.recall == pytest.approx(5 / 6)
    assert missed.questions == 8
    assert {one["kind"] for one in missed.rows} == {"ranking"}


def test_a_notebook_shows_text_as_text(evaluated: Database) -> None:
    evaluated.run("UPDATE question:money_back SET text = $text", text="<script>x</script> \x1b[31m & back")
    evaluate(evaluated, Options((3,)))
    shown = misses(evaluated, "hybrid", 3)._repr_html_()
    assert "&lt;script&gt;x&lt;/script&gt;" in shown
    assert "<script>" not in shown
    assert "\x1b" not in shown
    for result in (gate(evaluated), compare(evaluated, "bm25", "vector"), trend(evaluated), evaluate(evaluated, Options((3,)))):
        assert result._repr_html_().startswith("<table><thead><tr><th>")


def test_pandas_takes_them_over(evaluated: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    told = compare(evaluated, "bm25", "hybrid", "vector", every_pair=True)
    frame = told.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["difference"]) == [row["difference"] for row in told.rows]
    assert next(iter(misses(evaluated, "hybrid", 3).to_pandas()["question"])).startswith("question:")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="needs pandas"):
        told.to_pandas()


def test_every_result_is_of_one_kind() -> None:
    for name in ("Comparison", "Evaluation", "Gate", "Misses", "Trend"):
        assert issubclass(getattr(surrecall, name), Rows)
