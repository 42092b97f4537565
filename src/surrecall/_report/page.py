"""The page of a report: one file of HTML with its styles and charts in it, and nothing that a browser would fetch."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup

from surrecall import _render
from surrecall._report import charts
from surrecall._report.facts import Facts

LARGEST_PAGE = 2_000_000
_TEMPLATES = Path(__file__).parents[1] / "templates" / "report"
# of the questions that changed; the rest stands in the table
_DRAWN = 40


def page(facts: Facts) -> str:
    """The HTML of a report. Where it would be larger than LARGEST_PAGE, fewer questions are unfolded, the best ones left out."""
    shown = facts.questions
    while True:
        text = _filled(facts, shown)
        if len(text.encode()) < LARGEST_PAGE or not shown:
            return text
        shown = shown[: len(shown) * 2 // 3]


def changes_chart(comparison: dict[str, Any]) -> Markup | None:
    """The chart of the questions that changed, of a row of fn::compare; None where none did."""
    fixed, broke = comparison["fixed"][: _DRAWN // 2], comparison["broke"][: _DRAWN // 2]
    # fixed, the largest first, then broke, the largest last; SVG of Vega's, which escapes what it is given
    return Markup(charts.changes([*fixed, *reversed(broke)])) if fixed or broke else None


def _filled(facts: Facts, questions: list[dict[str, Any]]) -> str:
    return _template().render(facts=facts, questions=questions, drawn=_drawn(facts))


@lru_cache(maxsize=1)
def _template() -> Template:
    # a field that is NONE in the database is not there
    environment = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "cell": _render.cell,
        "text": _text,
        "record": _record,
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
    }
    return environment.get_template("report.html")


def _text(value: Any) -> str:
    return _render.printable(str(value))


def _record(value: Any) -> str:
    return _render.printable(_render.record_text(value))


def _drawn(facts: Facts) -> dict[str, Markup]:
    """The charts that there is something to draw for; SVG of Vega's, which escapes what it is given."""
    found: dict[str, str] = {}
    if any(row.get("mean") is not None for row in facts.measures):
        found["measures"] = charts.measures(facts.measures, facts.retrievers)
    if any(one["curve"]["rows"] for one in facts.curves):
        found["curve"] = charts.curve(facts.curves, facts.retrievers)
    if any(not row.get("whole") for row in facts.slices["rows"]):
        found["slices"] = charts.slices(facts.slices["rows"], facts.metric, facts.retrievers)
    changed = changes_chart(facts.comparison) if facts.comparison else None
    if changed is not None:
        found["changes"] = changed
    if len(facts.history) > 1:
        found["history"] = charts.history(facts.history, facts.metric, facts.retrievers)
    if facts.misses and facts.misses["summary"]["kinds"]:
        found["kinds"] = charts.kinds(facts.misses["summary"]["kinds"])
    return {name: Markup(drawn) for name, drawn in found.items()}
