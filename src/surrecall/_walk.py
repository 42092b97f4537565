"""The walk of seed/queries.surql, cut into its steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surrecall import _files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surrecall._database import Database

_HEADLINE = re.compile(r"^-- (\d+)\. (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One step: its headline, what to see in it, and its statements."""

    number: int
    title: str
    explanation: str
    statements: str


@dataclass(frozen=True)
class StepResult:
    """A step that ran, with what its statements gave; statements that give nothing (LET, FOR) are left out."""

    step: Step
    results: list[Any]


def steps() -> list[Step]:
    """The steps of the walk in order."""
    text = _files.seed("queries").text
    heads = list(_HEADLINE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [_step(head, text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def run(database: Database) -> Iterator[StepResult]:
    """Run the steps one after the other."""
    for step in steps():
        results = database.run(step.statements)
        yield StepResult(step, [result for result in results if result is not None])


def _step(head: re.Match[str], body: str) -> Step:
    lines = body.strip().splitlines()
    prose = [line for line in lines if line.startswith("-- ")]
    statements = [line for line in lines if not line.startswith("-- ")]
    return Step(
        number=int(head[1]),
        title=head[2],
        explanation=" ".join(line.removeprefix("-- ") for line in prose),
        statements="\n".join(statements).strip(),
    )
