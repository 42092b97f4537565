"""Curves as characters: readable without colour, in any width, also in a file."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from string import ascii_lowercase

# one row a tenth
_HEIGHT = 11
_AXIS = 5
# where several curves share a place
_SHARED = "*"

Points = Mapping[int, float]


def letters(names: Sequence[str]) -> dict[str, str]:
    """A letter for each curve: the first of its name that is free, else the next of the alphabet."""
    given: dict[str, str] = {}
    for name in names:
        free = [letter for letter in (*name.lower(), *ascii_lowercase) if letter.isascii() and letter.isalpha()]
        given[name] = next((letter for letter in free if letter not in given.values()), "?")
    return given


def chart(
    title: str, curves: Mapping[str, Points], width: int, days: Sequence[str] = (), marks: Collection[int] = ()
) -> list[str]:
    """Lines of a chart of values in [0,1] over k from 1, at most `width` columns wide.

    With `days` the places from 1 are those days, which stand below the axis; `marks` are places with a ^ below it.

    Every k has a column where there is room; else a column stands for several, of which it shows the last. Values lie on the
    nearest tenth.
    """
    last = len(days) or max((k for points in curves.values() for k in points), default=1)
    columns = max(1, width - _AXIS - 1)
    # a few cutoffs are spread out, many share columns
    spread = max(1, min(columns // last, 6))
    per_column = math.ceil(last / columns)
    used = math.ceil(last / per_column) * spread
    grid = [[" "] * used for _ in range(_HEIGHT)]
    for name, letter in letters(list(curves)).items():
        for k, value in sorted(curves[name].items()):
            if k % per_column and k != last and k + 1 in curves[name]:
                continue
            row, column = _HEIGHT - 1 - round(value * (_HEIGHT - 1)), (math.ceil(k / per_column) - 1) * spread
            grid[row][column] = letter if grid[row][column] in (" ", letter) else _SHARED
    legend = "  ".join(f"{letter} {name}" for name, letter in letters(list(curves)).items())
    rows = [f"{(_HEIGHT - 1 - place) / (_HEIGHT - 1):.1f} |{''.join(cells)}".rstrip() for place, cells in enumerate(grid)]
    marked = {(math.ceil(place / per_column) - 1) * spread for place in marks}
    below = [f"     {''.join('^' if column in marked else ' ' for column in range(used))}".rstrip()] if marks else []
    ticks = _days(days, used) if days else _ticks(last, per_column, spread, used)
    return [f"{title}   {legend}", *rows, f"    +{'-' * used}", *below, ticks]


def _days(days: Sequence[str], used: int) -> str:
    """The first day below the axis, and the last where there is room for it."""
    room = used - len(days[0]) - len(days[-1])
    return (
        f"     {days[0]}{' ' * room}{days[-1]}"
        if len(days) > 1 and room > 0
        else f"     {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "")
    )


def _ticks(last: int, per_column: int, spread: int, used: int) -> str:
    """The k below the axis: the first, the last, and as many between as have room."""
    line = [" "] * max(used, len(str(last)))
    step = max(1, round(last / 8))
    wanted = [last, 1, *range(step, last, step)]
    for k in wanted:
        label = str(k)
        start = min((math.ceil(k / per_column) - 1) * spread, len(line) - len(label))
        around = line[max(0, start - 1) : start + len(label) + 1]
        if all(cell == " " for cell in around):
            line[start : start + len(label)] = label
    return f"  k  {''.join(line)}".rstrip()
