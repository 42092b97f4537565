"""Charts of a report as SVG, drawn by Vega-Lite. Sides are told apart by shape and dash as well as by colour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from surrecall import _render
from surrecall._errors import UsageError

# as dark against white as they are light against black
_COLOURS = ["#0b7fc0", "#c95a0c", "#3d8c40", "#a64cb5", "#857400", "#c0395b"]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3]]
_GREY = "#808080"
_LABEL = 260
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Rows = Sequence[dict[str, Any]]


def measures(rows: Rows, names: Sequence[str]) -> str:
    """A point a retriever and metric, with its interval."""
    known = [row for row in rows if row.get("mean") is not None]
    figures = ("metric", "mean", "low", "high")
    values = [{"retriever": _text(row["retriever"]), **{name: row[name] for name in figures}} for row in known]
    x = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"title": None, "tickCount": 5}}
    sides = {"y": _sides(names), "color": _colour(names)}
    interval = {"x": x | {"field": "low"}, "x2": {"field": "high"}, **sides}
    mean = {"x": x | {"field": "mean"}, "shape": _shape(names), **sides}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": interval},
        {"mark": {"type": "point", "filled": True, "opacity": 1, "size": 80}, "encoding": mean},
    ]
    strips = _strips("metric", list(dict.fromkeys(row["metric"] for row in known)), layers)
    return _svg("Means of each retriever by metric, with their 95% intervals", {"data": {"values": values}, **strips})


def curve(curves: Rows, names: Sequence[str]) -> str:
    """Recall against k."""
    values = [
        {"retriever": _text(one["curve"]["retriever"]), "k": point["k"], "recall": point["recall"]}
        for one in curves
        for point in one["curve"]["rows"]
    ]
    deep = max((value["k"] for value in values), default=1) > 20
    x = {
        "field": "k",
        "type": "quantitative",
        "scale": {"type": "log" if deep else "linear", "nice": False, "zero": False},
        "axis": {"title": "k", "tickMinStep": 1, "format": "d"},
    }
    return _svg("Recall against k for each retriever", _lines(values, x, "recall", names, 270))


def history(steps: Rows, metric: str, names: Sequence[str]) -> str:
    """The metric over time; an upright line stands where something was not the same as before."""
    values = [
        {"retriever": _text(run["retriever"]), "at": step["at"].isoformat(), metric: run["value"]}
        for step in steps
        for run in step["runs"]
        if run.get("value") is not None
    ]
    x = {"field": "at", "type": "temporal", "axis": {"title": None, "tickCount": 6, "labelOverlap": True}}
    spec = _lines(values, x, metric, names, 480)
    marks = [{"at": step["at"].isoformat()} for step in steps if step["differs"]]
    if marks:
        rule = {"data": {"values": marks}, "mark": {"type": "rule", "strokeDash": [3, 3], "color": _GREY}, "encoding": {"x": x}}
        spec["layer"].insert(0, rule)
    return _svg(f"{metric} of each retriever over time", spec)


def slices(rows: Rows, metric: str, names: Sequence[str]) -> str:
    """A bar a class and retriever; the weakest has a mark."""
    values = [
        {
            "retriever": _text(row["retriever"]),
            "kind": _text(row.get("class") or "(none)"),
            "value": row[metric],
            "mark": " ◀ weakest" if row.get("farthest") else "",
        }
        for row in rows
        if not row.get("whole") and row.get(metric) is not None
    ]
    x = {"field": "value", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"title": metric, "tickCount": 5}}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "bar"}, "encoding": {"x": x, "y": _sides(names), "color": _colour(names)}},
        {"mark": {"type": "text", "align": "left"}, "encoding": {"x": x, "y": _sides(names), "text": {"field": "mark"}}},
    ]
    strips = _strips("kind", list(dict.fromkeys(value["kind"] for value in values)), layers)
    return _svg(f"{metric} by kind of question, for each retriever", {"data": {"values": values}, **strips})


def changes(rows: Rows) -> str:
    """A bar a question, to the right where it got better: a mean that moved is these questions."""
    values = [
        {"question": f"{index} {_text(row.get('text') or '')[:46]}", "a": row["a"], "b": row["b"]}
        for index, row in enumerate(rows, 1)
    ]
    transform = [
        {"calculate": "datum.b - datum.a", "as": "change"},
        {"calculate": "datum.b > datum.a ? 'better' : 'worse'", "as": "what"},
    ]
    scale = {"domain": ["better", "worse"], "range": _COLOURS[:2]}
    x = {"field": "change", "type": "quantitative", "scale": {"domain": [-1, 1]}}
    encoding = {
        "x": x | {"axis": {"title": "worse ◀  change  ▶ better", "tickCount": 5}},
        "y": {"field": "question", "type": "nominal", "sort": None, "axis": {"title": None, "labelLimit": 320}},
        "color": {"field": "what", "type": "nominal", "scale": scale, "legend": None},
    }
    drawn = {"transform": transform, "width": 220, "height": {"step": 16}, "mark": "bar", "encoding": encoding}
    return _svg("Change of each question between the two evaluations", {"data": {"values": values}, **drawn})


def kinds(rows: Rows) -> str:
    """Missed labels by kind of fault."""
    values = [{"kind": row["kind"], "labels": row["labels"]} for row in rows]
    y = {"field": "kind", "type": "nominal", "sort": None, "axis": {"title": None, "labelLimit": _LABEL}}
    x = {"field": "labels", "type": "quantitative", "axis": {"title": "labels missed", "tickMinStep": 1}}
    spec: dict[str, Any] = {
        "data": {"values": values},
        "width": 200,
        "height": {"step": 20},
        "layer": [
            {"mark": {"type": "bar", "color": _COLOURS[0]}, "encoding": {"x": x, "y": y}},
            {"mark": {"type": "text", "align": "left", "dx": 4}, "encoding": {"x": x, "y": y, "text": {"field": "labels"}}},
        ],
    }
    return _svg("Missed labels by kind of fault", spec)


def _lines(values: Rows, x: dict[str, Any], metric: str, names: Sequence[str], width: int) -> dict[str, Any]:
    y = {"field": metric, "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"title": metric, "tickCount": 5}}
    sides = {"x": x, "y": y, "color": _colour(names, legend=True)}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": sides | {"strokeDash": _dash(names)}},
        {
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 60},
            "encoding": sides | {"shape": _shape(names, legend=True)},
        },
    ]
    return {"data": {"values": values}, "width": width, "height": 240, "layer": layers}


def _sides(names: Sequence[str]) -> dict[str, Any]:
    axis = {"title": None, "labelLimit": _LABEL}
    return {"field": "retriever", "type": "nominal", "sort": list(map(_text, names)), "axis": axis}


def _strips(field: str, order: Sequence[str], layers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A strip for each value of a field, one below the other, its name above it."""
    header = {"title": None, "labelOrient": "top", "labelAnchor": "start", "labelFontWeight": "bold", "labelLimit": _LABEL}
    row = {"field": field, "type": "nominal", "sort": list(order), "header": header}
    return {"facet": {"row": row}, "spacing": 12, "spec": {"width": 230, "height": {"step": 18}, "layer": list(layers)}}


def _side(names: Sequence[str], marks: Sequence[Any], legend: bool) -> dict[str, Any]:
    shown = list(map(_text, names))
    used = [marks[index % len(marks)] for index in range(len(shown))]
    told = {"title": None, "orient": "bottom", "columns": 3, "labelLimit": _LABEL} if legend else None
    return {"field": "retriever", "type": "nominal", "scale": {"domain": shown, "range": used}, "legend": told}


def _colour(names: Sequence[str], *, legend: bool = False) -> dict[str, Any]:
    return _side(names, _COLOURS, legend)


def _shape(names: Sequence[str], *, legend: bool = False) -> dict[str, Any]:
    return _side(names, _SHAPES, legend)


def _dash(names: Sequence[str]) -> dict[str, Any]:
    return _side(names, _DASHES, True)


def _text(text: str) -> str:
    return " ".join(_render.printable(str(text)).split())


def _svg(label: str, spec: dict[str, Any]) -> str:
    """The chart as one element; what a screen reader is told is the label, and the table beside it has the figures."""
    try:
        import vl_convert
    except ImportError as error:
        raise UsageError("charts need the extra report", "pip install 'surrecall[report]'") from error
    grey = {
        "domainColor": _GREY,
        "tickColor": _GREY,
        "gridColor": _GREY,
        "gridOpacity": 0.3,
        "labelFontSize": 12,
        "titleFontSize": 12,
    }
    config = {
        "background": None,
        "view": {"stroke": None},
        "axis": grey,
        "legend": {"labelFontSize": 12},
        "header": {"labelFontSize": 12},
    }
    drawn: str = vl_convert.vegalite_to_svg(
        {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": config, **spec}
    )
    # one picture with one name; its parts would be read one by one
    plain = re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", drawn)
    return plain.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
