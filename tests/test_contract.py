"""A metric is whole or not there: function, line in fn::score, field of the history, case file, documentation, reference."""

from __future__ import annotations

import re

import pytest

import surrecall
from conftest import ROOT
from surql_cases import both_executors
from surrecall import Database

CASES = ROOT / "tests" / "cases"


def metric_functions(database: Database) -> set[str]:
    """The functions of surql/core/metric that are in force."""
    there = set(database.value("INFO FOR DB")["functions"])
    files = {path.stem for path in (ROOT / "surql/core/metric").glob("*.surql")}
    assert files <= there
    return files


def test_the_keys_of_score_are_the_metrics_in_force(schema: Database) -> None:
    keys = set(schema.value("RETURN fn::score([], [], 1)"))
    assert {name.removesuffix("_at") for name in metric_functions(schema)} == keys


def test_every_metric_is_a_field_of_the_history_bounded_to_0_and_1(schema: Database) -> None:
    fields = schema.value("INFO FOR TABLE eval_run")["fields"]
    for key in schema.value("RETURN fn::score([], [], 1)"):
        assert "$value >= 0 AND $value <= 1" in fields[key], key


def test_every_metric_is_in_the_hash_of_a_run(schema: Database) -> None:
    base = {"id": "x", "at": "x", "retriever": "x", "k": 1, "questions": 1}
    plain = schema.value("RETURN fn::run_hash($run, '')", run=base)
    for key in schema.value("RETURN fn::score([], [], 1)"):
        assert schema.value("RETURN fn::run_hash($run, '')", run=base | {key: 0.5}) != plain, key


def test_every_metric_is_recorded(help_centre: Database) -> None:
    rows = help_centre.value("RETURN fn::record_evaluation({ k: [3] })")
    for key in help_centre.value("RETURN fn::score([], [], 1)"):
        assert all(isinstance(row[key], float) for row in rows), key


def test_every_metric_has_its_case_file_and_its_reference(schema: Database) -> None:
    for name in metric_functions(schema):
        assert f"fn::{name}(" in (CASES / "metric" / f"{name}.surql").read_text(encoding="utf-8")
        text = (ROOT / "surql/core/metric" / f"{name}.surql").read_text(encoding="utf-8")
        assert re.search(r"^-- Source: ", text, re.MULTILINE), name
        comment = schema.value("INFO FOR DB")["functions"][name]
        assert re.search(r"equals .*(trec_eval|ir_measures)", comment), name


def test_an_older_run_keeps_its_hash_when_a_metric_is_added(schema: Database) -> None:
    schema.run("CREATE eval_run SET retriever = 'x', k = 3, recall = 1, questions = 8, note = 'before'")
    schema.run("DEFINE FIELD novelty ON eval_run TYPE option<float>")
    schema.run("CREATE eval_run SET retriever = 'x', k = 3, recall = 0.5, novelty = 1, questions = 8")
    assert schema.value("RETURN fn::check_history()") == []
    # and the new one is in the hash of the rows that have it
    schema.run("REMOVE EVENT eval_run_append_only ON eval_run; UPDATE eval_run SET novelty = 0.5 WHERE novelty = 1")
    (finding,) = schema.value("RETURN fn::check_history()")
    assert "its hash does not fit" in finding["problem"]


def sections() -> dict[str, str]:
    """The sections of docs/metrics.md by the name of their function."""
    text = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {match[1]: part for part in parts if (match := re.search(r"function `fn::(\w+)`", part))}


def test_every_metric_is_documented_in_one_shape(schema: Database) -> None:
    documented = sections()
    assert set(documented) == metric_functions(schema)
    for name, text in documented.items():
        for part in ("Field `", "**Formula.** ", "**Worked example.**", "**Conventions.** ", "**Elsewhere.** ", "**Source.** "):
            assert part in text, f"{name}: {part}"
        assert f"Field `{name.removesuffix('_at')}`" in text
        assert re.search(r"ir_measures `[^`]+`; trec_eval `[^`]+`", text), name
        # who has a threshold says how, who has none says so
        takes = "$least_grade" in schema.value("INFO FOR DB")["functions"][name].split(")")[0]
        assert takes == ("the threshold given last" in text), name
        assert takes or name == "judged_at" or "has no threshold of relevance" in text, name


def test_every_worked_example_of_the_documentation_is_right(schema: Database) -> None:
    for name, text in sections().items():
        (block,) = re.findall(r"```surql\n(.*?)```", text, re.DOTALL)
        examples = re.findall(r"^(RETURN .*;)\n-- (\S+)$", block, re.MULTILINE)
        assert block.count("RETURN") == len(examples) > 0, name
        for statement, value in examples:
            for way in both_executors(statement):
                assert schema.value(way) == pytest.approx(float(value), abs=5e-7), statement


def test_every_metric_is_in_the_changelog(schema: Database) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in metric_functions(schema):
        assert f"`{name}`" in changelog


def test_the_public_names_of_the_package() -> None:
    assert sorted(surrecall.__all__, key=str.lower) == sorted(
        (
            "Applied",
            "Comparison",
            "DataError",
            "Database",
            "DatabaseError",
            "Evaluation",
            "ExitCode",
            "Finding",
            "Gate",
            "Interrupted",
            "Misses",
            "Options",
            "SchemaError",
            "Settings",
            "SurrecallError",
            "Trend",
            "UsageError",
            "apply",
            "bundle",
            "compare",
            "drift",
            "evaluate",
            "gate",
            "misses",
            "resume",
            "trend",
        ),
        key=str.lower,
    )
    for name in surrecall.__all__:
        assert getattr(surrecall, name).__doc__, name
        # a reader is sent to the public name, never to a private module
        assert getattr(surrecall, name).__module__ == "surrecall", name
