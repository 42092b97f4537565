"""Trends: the view that is kept up with the history, fn::trend, the statements of docs/trends.md, and the command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from conftest import ROOT
from surrecall import Database, Options, Settings, SurrecallError, _schema, _trend, evaluate
from surrecall._cli import _chart
from test_cli import Run, run, seeded, target  # noqa: F401
from test_comparison import put, running

PLANT = """
CREATE corpus_change SET document = article:spam, action = 'CREATE', hash = 'x';
CREATE article:spam SET title = 'Spam', content = question:money_back.text + ' ' + question:signin.text,
  embedding = question:money_back.embedding;
"""

_RUN = """
CREATE eval_run CONTENT {
  retriever: $retriever, k: $k, recall: $recall, questions: $questions, at: <datetime> $at, evaluation: $evaluation, ndcg: $ndcg,
  set: $set
}
"""
VIEW = "SELECT * FROM eval_trend ORDER BY day, retriever, k, set, questions, golden_set"


def write(database: Database, at: str, recall: float, **more: Any) -> None:
    """A run as somebody writes it by hand, or of an evaluation that is given."""
    row: dict[str, Any] = {
        "retriever": "hybrid",
        "k": 3,
        "questions": 8,
        "evaluation": None,
        "ndcg": None,
        "set": "default",
    } | more
    with running(database, row["evaluation"]) if row["evaluation"] is not None else nullcontext():
        database.run(_RUN, at=at, recall=recall, **row)


def trend(database: Database, **options: Any) -> dict[str, Any]:
    """What fn::trend gives, found equal on both executors and in shards."""
    told: dict[str, Any] = database.value("RETURN fn::trend($options)", options=options)
    below = database.value("RETURN (CREATE ONLY executor_probe SET value = fn::trend($options)).value", options=options)
    assert without_none(told) == without_none(below)
    asked = {("question_set" if name == "set" else name): value for name, value in options.items()}
    if isinstance(options.get("zone"), str | None):
        assert _trend.trend(database, _trend.Trend(**asked)) == told
    return told


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def points(told: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row.get(name) for name in names) for row in told["rows"]]


def test_the_view_never_mixes_sets_sizes_or_labels(schema: Database) -> None:
    one = put(schema, {"hybrid": {"q1": 1.0}})
    other = put(schema, {"hybrid": {"q1": 1.0}}, golden_set="other labels")
    for recall, more in (
        (0.2, {}),
        (0.4, {}),
        (0.6, {"questions": 40}),
        (0.7, {"set": "second"}),
        (0.8, {"k": 5}),
        (0.9, {"retriever": "bm25"}),
        (0.3, {"evaluation": one}),
        (0.5, {"evaluation": one}),
        (1.0, {"evaluation": other}),
    ):
        write(schema, "2026-03-01T12:00:00Z", recall, **more)
    write(schema, "2026-03-01T23:59:59.999Z", 0.6)
    write(schema, "2026-03-02T00:00:00Z", 0.0)
    rows = schema.value(VIEW)
    assert sorted(
        (row["day"].day, row["retriever"], row["k"], row["set"], row["questions"], row["golden_set"] or "", row["runs"])
        for row in rows
    ) == [
        (1, "bm25", 3, "default", 8, "", 1),
        (1, "hybrid", 3, "default", 8, "", 3),
        (1, "hybrid", 3, "default", 8, "golden", 2),
        (1, "hybrid", 3, "default", 8, "other labels", 1),
        (1, "hybrid", 3, "default", 40, "", 1),
        (1, "hybrid", 3, "second", 8, "", 1),
        (1, "hybrid", 5, "default", 8, "", 1),
        (2, "hybrid", 3, "default", 8, "", 1),
    ]
    (three,) = [row for row in rows if row["runs"] == 3]
    assert (three["recall"], three["lowest"], three["highest"]) == (pytest.approx(0.4), 0.2, 0.6)
    assert schema.value("RETURN fn::check_trend()") == []


def test_the_view_follows_every_run_and_no_failed_write(help_centre: Database) -> None:
    evaluate(help_centre, Options([1, 3]))
    evaluate(help_centre, Options([1, 3]))
    assert {row["runs"] for row in help_centre.value(VIEW)} == {2}
    assert len(help_centre.value(VIEW)) == 6
    before = help_centre.value(VIEW)
    for statement in (
        "BEGIN; CREATE eval_run SET retriever = 'x', k = 3, recall = 0.5, questions = 8; THROW 'no'; COMMIT;",
        "CREATE eval_run SET retriever = 'x', k = 3, recall = 2, questions = 8",
        "UPDATE eval_run SET recall = 1",
        "DELETE eval_run",
        "UPDATE eval_trend SET recall = 1",
        "DELETE eval_trend",
        "CREATE eval_trend SET recall = 1",
    ):
        with pytest.raises(SurrecallError):
            help_centre.run(statement)
    assert help_centre.value(VIEW) == before


def test_a_view_that_missed_runs_is_named_and_made_anew(help_centre: Database) -> None:
    evaluate(help_centre, Options([3]))
    help_centre.run(
        "OPTION IMPORT; CREATE eval_run:late SET retriever = 'x', k = 3, recall = 0.5f, questions = 8, at = time::now(),"
        " set = 'default'"
    )
    assert len(help_centre.value(VIEW)) == 3
    assert [row["subject"] for row in help_centre.value("RETURN fn::check_trend()")] == ["eval_trend"]
    assert "eval_trend" in [row["subject"] for row in help_centre.value("RETURN fn::check()")]
    _schema.apply(help_centre, ROOT)
    assert len(help_centre.value(VIEW)) == 4
    assert help_centre.value("RETURN fn::check_trend()") == []
    # and of another definition
    before = help_centre.value(VIEW)
    help_centre.run(
        "REMOVE TABLE eval_trend;"
        "DEFINE TABLE eval_trend AS SELECT k, count() AS n FROM eval_run GROUP BY k COMMENT 'surrecall: old'"
    )
    assert [found.subject for found in _schema.drift(help_centre, ROOT)] == ["table eval_trend"]
    assert _schema.apply(help_centre, ROOT).changed == 1
    assert help_centre.value(VIEW) == before
    assert _schema.apply(help_centre, ROOT).changed == 0
    # it is kept up again
    help_centre.run("CREATE eval_run SET retriever = 'x', k = 3, recall = 0.7, questions = 8")
    assert help_centre.value("RETURN fn::check_trend()") == []
    assert {row["runs"] for row in help_centre.value(VIEW) if row["retriever"] == "x"} == {2}


def test_what_changed_between_points_is_said(schema: Database) -> None:
    first = put(schema, {"hybrid": {"q1": 1.0}})
    grown = put(schema, {"hybrid": {"q1": 1.0}}, corpus={"documents": 11, "hash": "more"}, definitions="others", golden_set="new")
    newer = put(
        schema,
        {"hybrid": {"q1": 1.0}},
        corpus={"documents": 11, "hash": "more"},
        definitions="others",
        golden_set="new",
        engine="4.0",
    )
    write(schema, "2026-03-01T10:00:00Z", 0.8, evaluation=first)
    write(schema, "2026-03-02T10:00:00Z", 0.9, evaluation=first)
    write(schema, "2026-03-03T10:00:00Z", 0.5, evaluation=grown, questions=40)
    write(schema, "2026-03-04T10:00:00Z", 0.5, evaluation=newer, questions=40)
    write(schema, "2026-03-05T10:00:00Z", 0.7, questions=40)
    told = trend(schema)
    assert points(told, "day", "value", "questions", "golden_set", "changed", "known") == [
        ("2026-03-01", 0.8, 8, "golden", [], True),
        ("2026-03-02", 0.9, 8, "golden", [], True),
        ("2026-03-03", 0.5, 40, "new", ["40 questions after 8", "the corpus", "the golden set", "the definitions"], True),
        ("2026-03-04", 0.5, 40, "new", ["the engine (3.2.4, 4.0)"], True),
        ("2026-03-05", 0.7, 40, None, [], False),
    ]
    assert told["sentences"] == [
        "points stand on different numbers of questions: 8, 40; do not read one against the other",
        "2 states of the labels: compare (surrecall compare) tells what changed on common questions",
        "2026-03-03: 40 questions after 8, the corpus, the golden set, the definitions",
        "2026-03-04: the engine (3.2.4, 4.0)",
    ]
    assert told["warnings"] == ["1 run written by hand, of which corpus, labels and definitions are not known"]


def test_what_changed_and_changed_back_within_a_day_has_changed(schema: Database) -> None:
    first = put(schema, {"hybrid": {"q1": 1.0}})
    other = put(schema, {"hybrid": {"q1": 1.0}}, definitions="others")
    for hour, evaluation in ((1, first), (2, other), (3, first)):
        write(schema, f"2026-03-01T0{hour}:00:00Z", hour / 10, evaluation=evaluation)
    (row,) = trend(schema)["rows"]
    assert (row["runs"], row["changed"]) == (3, ["the definitions"])
    assert (row["value"], row["lowest"], row["highest"]) == (pytest.approx(0.2), 0.1, 0.3)


def test_other_metrics_and_runs_without_them(schema: Database) -> None:
    write(schema, "2026-03-01T10:00:00Z", 0.8, ndcg=0.7)
    write(schema, "2026-03-02T10:00:00Z", 0.8)
    told = trend(schema, metric="ndcg")
    assert points(told, "day", "value") == [("2026-03-01", 0.7)]
    assert told["warnings"][0] == "1 run without ndcg (written by hand), in no point"
    assert trend(schema, metric="err")["sentences"] == ["no run in this time"]


def test_rows_have_one_order(schema: Database) -> None:
    for retriever in ("vector", "bm25", "hybrid"):
        for set_name in ("second", "default"):
            for at in ("2026-03-02T10:00:00Z", "2026-03-01T11:00:00Z", "2026-03-01T10:00:00Z"):
                for questions in (9, 8):
                    write(schema, at, 0.5, retriever=retriever, set=set_name, questions=questions)
    told = points(trend(schema), "retriever", "set", "day", "questions")
    assert len(told) == 24
    assert told == sorted(told, key=lambda one: one[:3])
    # of one day the row that came first stands first, and 9 was written before 8
    assert [one[3] for one in told] == [9, 8] * 12
    assert points(trend(schema, set="second", retriever="bm25"), "set", "retriever") == [("second", "bm25")] * 4


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        (None, ["2026-03-28", "2026-03-29"]),
        ("UTC", ["2026-03-28", "2026-03-29"]),
        ("+02:00", ["2026-03-29"]),
        ("-05:30", ["2026-03-28"]),
        (
            [{"since": "2026-03-29T01:00:00Z", "offset": "+02:00"}, {"since": "2025-10-26T01:00:00Z", "offset": "+01:00"}],
            ["2026-03-29"],
        ),
    ],
)
def test_a_day_is_a_day_of_the_zone(schema: Database, zone: Any, days: list[str]) -> None:
    write(schema, "2026-03-28T23:30:00Z", 0.8)
    write(schema, "2026-03-29T00:30:00Z", 0.8)
    assert [row["day"] for row in trend(schema, zone=zone)["rows"]] == days


def test_days_of_a_named_zone_begin_at_its_midnight(schema: Database) -> None:
    """Berlin: the clock goes from 2 to 3 on 2026-03-29, so that day begins at 23:00 UTC and the next one at 22:00."""
    for at in ("2026-03-28T22:59:59Z", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z"):
        write(schema, at, 0.8)
    zone = _trend.zone(schema, "Europe/Berlin")
    assert isinstance(zone, list)
    assert [(one["since"].isoformat(), one["offset"]) for one in zone[1:3]] == [
        ("2026-03-29T01:00:00+00:00", "+02:00"),
        ("2026-10-25T01:00:00+00:00", "+01:00"),
    ]
    assert points(trend(schema, zone=zone), "day", "runs") == [("2026-03-28", 1), ("2026-03-29", 2), ("2026-03-30", 1)]
    for day, begins in (("2026-03-29", "2026-03-28T23:00:00"), ("2026-03-30", "2026-03-29T22:00:00")):
        told = trend(schema, zone=zone, since=day)
        assert told["since"].isoformat() == f"{begins}+00:00"
    assert points(trend(schema, zone=zone, since="2026-03-29", until="2026-03-30"), "day", "runs") == [("2026-03-29", 2)]
    assert _trend.zone(schema, "Asia/Kathmandu")[0]["offset"] == "+05:45"  # type: ignore[index]


def test_days_count_today(schema: Database) -> None:
    now = datetime.now(UTC)
    for back in (0, 1, 2, 40):
        write(schema, (now - timedelta(days=back)).isoformat(), 0.8)
    assert [len(trend(schema, days=days)["rows"]) for days in (1, 2, 30, 100)] == [1, 2, 3, 4]
    # what one row of the index gives, another does not take
    assert len(trend(schema, since=now - timedelta(days=1))["rows"]) == 2
    assert len(trend(schema, until=now - timedelta(days=1))["rows"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrik": "recall"}, "a trend has no option metrik; it takes metric, k, by"),
        ({"metric": "recal"}, "no metric named recal"),
        ({"by": "set"}, "a trend is by kind, tag, source or split, got set"),
        ({"k": 0}, "k must be a whole number"),
        ({"k": 7}, "no run at k 7; there are runs at 3"),
        ({"days": 0}, "days is a whole number of 1 or more, got 0"),
        ({"days": 3, "since": "2026-01-01"}, "a trend takes days or since, and not both"),
        ({"since": "yesterday"}, "a day is written as 2026-11-30"),
        ({"zone": "Europe/Berlin"}, "the database knows no zones by name"),
        ({"zone": "+2"}, "a zone is an offset from UTC such as +02:00"),
        ({"zone": "+19:00"}, "no zone is more than 14 hours from UTC"),
        ({"since": "2026-03-29", "until": "2026-03-29"}, "since is before until, and no day lies between"),
        ({"set": "defualt"}, "no run of a golden set named defualt; there are: default; did you mean default?"),
        ({"retriever": "hybird"}, "no run of a retriever named hybird; there are: hybrid; did you mean hybrid?"),
    ],
)
def test_what_there_is_not_is_said(schema: Database, options: dict[str, Any], message: str) -> None:
    write(schema, "2026-03-28T23:30:00Z", 0.8)
    with pytest.raises(SurrecallError) as caught:
        schema.value("RETURN fn::trend($options)", options=options)
    assert message in caught.value.text
    assert caught.value.exit_code == 2


def test_classes_come_from_the_answers(help_centre: Database) -> None:
    help_centre.run(
        "UPDATE question SET kind = 'how'; UPDATE question:signin SET kind = 'why'; UPDATE question:money_back SET kind = NONE"
    )
    done = evaluate(help_centre, Options([1, 3]))
    told = trend(help_centre, by="kind", retriever="bm25", metric="rr")
    wanted = help_centre.value(
        "RETURN fn::slices($id, 'bm25', { by: 'kind', k: 3, metrics: ['rr'], metric: 'rr' })", id=done.row["id"]
    )
    assert {(row.get("class"), row["value"], row["questions"]) for row in told["rows"]} == {
        (row["class"], row["rr"], row["questions"]) for row in wanted if not row["whole"]
    }
    assert [row.get("class") for row in told["rows"]] == [None, "how", "why"]
    help_centre.run("CREATE eval_run SET retriever = 'bm25', k = 3, recall = 0.5, questions = 8")
    assert trend(help_centre, by="kind", retriever="bm25")["warnings"] == [
        "1 run without all answers (written by hand, or pruned), so without classes"
    ]


def test_a_trend_reads_its_days_by_an_index(schema: Database) -> None:
    plan = str(
        schema.value("SELECT id FROM eval_run WHERE at >= d'2026-01-01T00:00:00Z' AND at < d'2026-02-01T00:00:00Z' EXPLAIN")
    )
    assert "eval_run_at" in plan


@pytest.fixture
def pages(help_centre: Database) -> Database:
    """The runs of the page: two evaluations a document apart, and others by hand."""
    evaluate(help_centre, Options([1, 3]))
    help_centre.run(
        "CREATE corpus_change SET document = article:new, action = 'CREATE', hash = 'x';"
        "CREATE article:new SET title = 'New', content = 'a new article', embedding = [0, 0, 0, 1]"
    )
    evaluate(help_centre, Options([1, 3]))
    write(help_centre, (datetime.now(UTC) - timedelta(days=60)).isoformat(), 0.5)
    write(help_centre, "2026-03-02T10:00:00Z", 0.25, questions=40)
    write(help_centre, "2026-02-02T10:00:00Z", 0.75)
    return help_centre


def statements() -> Iterator[tuple[str, str]]:
    """Heading and SQL of the page, block by block."""
    text = (ROOT / "docs" / "trends.md").read_text(encoding="utf-8")
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        for block in re.findall(r"```sql\n(.*?)```", part, re.DOTALL):
            yield part.partition("\n")[0], block


def test_the_statements_of_the_page(pages: Database) -> None:
    found = {heading: pages.value(block) for heading, block in statements()}
    assert set(found) == {
        "The last 30 days",
        "Before and after a date",
        "With what was ingested between two runs",
        "Only like with like",
        "Other metrics, classes and zones",
    }
    last = found["The last 30 days"]
    assert {(row["retriever"], row["questions"], row["runs"]) for row in last} == {
        (name, 8, 2) for name in ("bm25", "hybrid", "vector")
    }
    assert all(row["day"] > datetime.now(UTC) - timedelta(days=30) for row in last)
    around = found["Before and after a date"]
    mine = [(row["questions"], row["after"], row["runs"], row["recall"]) for row in around if row["retriever"] == "hybrid"]
    assert mine[:3] == [(8, False, 1, 0.75), (8, True, 1, 0.5), (8, True, 2, pytest.approx(0.8333333333333334))]
    assert (40, True) in {(row["questions"], row["after"]) for row in around}
    ingested = found["With what was ingested between two runs"]
    assert [(row["written"], row["documents"]) for row in ingested if row["evaluation"] is not None] == [
        (0, []),
        (1, [pages.value("RETURN article:new")]),
    ]
    alike = found["Only like with like"]
    assert {row["questions"] for row in alike} == {8}
    assert {row["golden_set"] for row in alike} == {pages.value("RETURN fn::golden_set_hash('default')")}
    assert {row["metric"] if "metric" in row else row["retriever"] for row in found["Other metrics, classes and zones"]} == {
        "hybrid"
    }


def test_a_chart_of_days(schema: Database) -> None:
    del schema
    days = [f"2026-03-{day:02}" for day in range(1, 31)]
    for width in (20, 40, 80):
        lines = _chart.chart("recall@3", {"a": {1: 0.0, 15: 0.5, 30: 1.0}}, width, days, {15})
        assert max(map(len, lines)) <= max(width, 29)
        assert lines[-1].split()[0] == "2026-03-01"
        assert lines[-1].endswith("2026-03-30")
        mark, point = lines[-2].index("^"), lines[6].index("a")
        assert mark == point
    assert _chart.chart("recall@3", {"a": {1: 0.5}}, 80, days[:1])[-1] == "     2026-03-01"


def test_the_command(seeded: Run, target: Settings) -> None:  # noqa: F811
    assert "no run in this time" in seeded("trend").stdout
    seeded("evaluate", "-k", "1,3")
    with Database(target) as database:
        write(database, (datetime.now(UTC) - timedelta(days=5)).isoformat(), 0.5, questions=40)
    shown = seeded("trend", "-r", "hybrid")
    assert shown.stdout.startswith("recall@3   h hybrid")
    assert "points stand on different numbers of questions: 8, 40; do not read one against the other" in shown.stdout
    assert "8 questions after 40" in shown.stdout
    assert "^" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 95
    assert all(len(line) <= 80 for line in shown.stdout.splitlines() if not line.startswith("points"))
    assert "1 run written by hand" in shown.stderr
    told = json.loads(seeded("trend", "--zone", "Europe/Berlin", "--json").stdout)
    assert {row["retriever"] for row in told["rows"]} == {"bm25", "hybrid", "vector"}
    assert told["k"] == 3
    assert "hybrid (none)" in seeded("trend", "--by", "kind", "--days", "2").stdout
    assert "no zone is named Mars" in seeded("trend", "--zone", "Mars", code=2).stderr
    assert "did you mean hybrid?" in seeded("trend", "-r", "hybird", code=2).stderr
    assert "a trend takes days or since" in seeded("trend", "--days", "3", "--since", "2026-01-01", code=2).stderr


def test_what_the_page_shows(seeded: Run, target: Settings) -> None:  # noqa: F811
    printed = re.findall(r"```text\n(.*?)```", (ROOT / "docs" / "trends.md").read_text(encoding="utf-8"), re.DOTALL)

    def said(text: str) -> str:
        """Without what differs each time: moments, ids of evaluations, the blanks that fill a line."""
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "MOMENT", text)
        return "\n".join(line.rstrip() for line in re.sub(r"\b[a-z0-9]{20}\b", "ID", text).splitlines())

    with Database(target) as database:
        for day, recall, questions in (
            ("2026-02-02", 0.875, 8),
            ("2026-02-09", 0.854, 8),
            ("2026-02-16", 0.833, 8),
            ("2026-02-16", 0.875, 8),
            ("2026-03-02", 0.62, 40),
            ("2026-03-16", 0.65, 40),
        ):
            write(database, f"{day}T10:00:00Z", recall, questions=questions)
        first = evaluate(database, Options([1, 3])).row["id"]
        database.run(PLANT)
        second = evaluate(database, Options([1, 3])).row["id"]
    shown = [
        seeded("trend", "-r", "hybrid", "-k", "3", "--since", "2026-02-01", "--until", "2026-03-20"),
        seeded("blame", f"evaluation:{first.id}", f"evaluation:{second.id}", "-r", "bm25", "-k", "3"),
        seeded("prune", "--keep-days", "0", "--dry-run"),
    ]
    assert [said(one.stdout).rstrip() for one in shown] == [said(text).rstrip() for text in printed]
