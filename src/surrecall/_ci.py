"""What a gate and a comparison say in a pull request: Markdown, and cases of JUnit. The words are the database's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrecall import _markdown, _render
from surrecall._junit import Case

# more would push everything else out of a pull request
_SHOWN = 20
_FLOORS = ("floor", "slice", "questions", "value", "wanted", "baseline", "holds")
_SIDES = ("a", "b", "a mean", "b mean", "difference", "95% from", "to", "wins", "ties", "losses", "p")


def gate_markdown(told: dict[str, Any], rows: Sequence[dict[str, Any]], warnings: Sequence[str]) -> str:
    """The verdict, what broke, the questions it broke on, then all floors. `rows` are those of the terminal's table."""
    lines = [f"### {'✅' if told['holds'] else '❌'} surrecall gate: {_markdown.plain(told['sentence'])}", ""]
    lines += [f"- {_markdown.plain(fault)}" for fault in told["faults"]]
    for floor in told["floors"]:
        if not floor["holds"]:
            lines.append(f"- **{_markdown.plain(floor['floor'])}**: {_markdown.plain(floor['sentence'])}")
    for floor in told["floors"]:
        broken = floor.get("broke") or []
        if broken:
            shown = [_question(one) for one in broken[:_SHOWN]]
            more = [] if len(broken) <= _SHOWN else ["", f"the largest {_SHOWN} of {len(broken)}"]
            title = f"{_markdown.plain(floor['floor'])}: {_render.counted(len(broken), 'question')}"
            lines += ["", *_markdown.folded(title, [*_markdown.table(shown, tuple(shown[0])), *more])]
    if rows:
        lines += ["", *_markdown.table(rows, _FLOORS)]
    lines += [""] * bool(warnings) + [f"> ⚠️ {_markdown.plain(warning)}" for warning in warnings]
    return "\n".join(lines) + "\n"


def gate_cases(told: dict[str, Any]) -> list[Case]:
    """A case a floor, a case for each question that a broken one broke on, and one for what is wrong with the gate itself."""
    cases = [Case("gate", "gate", fault) for fault in told["faults"]]
    for floor in told["floors"]:
        failure = None if floor["holds"] else floor["sentence"]
        cases.append(Case(f"floor.{floor['floor']}", floor["floor"], failure))
        for one in floor.get("broke") or []:
            was = "" if one.get("was") is None else f", {one['was']:.3f} in the baseline"
            said = f"{one['score']:.3f}{was}: {one['text']}"
            name = f"{_render.record_text(one['question'])} {one['text']}"
            cases.append(Case(f"floor.{floor['floor']}", name, said, _stands(one)))
    return cases


def comparison_markdown(told: dict[str, Any], warnings: Sequence[str]) -> str:
    """The verdicts, the figures, and the questions that were fixed and that broke."""
    measure = f"{told['metric']}@{told['k']}"
    lines = [f"### surrecall compare: {_markdown.plain(measure)}", ""]
    lines += [f"- {_markdown.plain(one['verdict'])}" for one in told["comparisons"]]
    lines += ["", *_markdown.table([_sides(one) for one in told["comparisons"]], _SIDES)]
    for one in told["comparisons"]:
        of = f"{one['a']['name']} → {one['b']['name']}"
        for what in ("fixed", "broke"):
            rows = [{"question": row["question"], "text": row.get("text"), "a": row["a"], "b": row["b"]} for row in one[what]]
            if rows:
                more = [] if len(rows) <= _SHOWN else ["", f"the largest {_SHOWN} of {len(rows)}"]
                title = f"{what}: {_render.counted(len(rows), 'question')} ({_markdown.plain(of)})"
                lines += ["", *_markdown.folded(title, [*_markdown.table(rows[:_SHOWN], tuple(rows[0])), *more])]
    lines += [""] * bool(warnings) + [f"> ⚠️ {_markdown.plain(warning)}" for warning in warnings]
    return "\n".join(lines) + "\n"


def comparison_cases(told: dict[str, Any]) -> list[Case]:
    """A case a comparison, which fails where the database says that the first is better, and one a question that broke."""
    cases = []
    for one in told["comparisons"]:
        name = f"{one['a']['name']} to {one['b']['name']}"
        cases.append(Case("compare", name, one["verdict"] if one.get("better") == "a" else None))
        for row in one["broke"]:
            said = f"{told['metric']}@{told['k']} {row['a']:.3f} to {row['b']:.3f}: {row.get('text') or ''}"
            cases.append(Case(f"compare.{name}", f"{_render.record_text(row['question'])} {row.get('text') or ''}", said))
    return cases


def _question(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "question": one["text"],
        "was": one.get("was"),
        "is": one["score"],
        "labels": ", ".join(f"{_render.record_text(label['document'])} {_rank(label, one)}" for label in one["labels"]),
        "first": ", ".join(map(_render.record_text, one["first"])) or "nothing",
    }


def _stands(one: dict[str, Any]) -> str:
    labels = "\n".join(f"label {_render.record_text(label['document'])}: {_rank(label, one)}" for label in one["labels"])
    first = ", ".join(map(_render.record_text, one["first"])) or "nothing came back"
    return f"{labels}\nfirst: {first}"


def _rank(label: dict[str, Any], one: dict[str, Any]) -> str:
    return f"at {label['rank']}" if label.get("rank") else f"not in the first {one['depth']}"


def _sides(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "a": one["a"]["name"],
        "b": one["b"]["name"],
        "a mean": one["mean_a"],
        "b mean": one["mean_b"],
        **_render.difference(one),
        "p": one["p"],
    }
