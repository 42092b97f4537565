"""Editing files of TOML tables: one table put in or taken out, the rest, comments included, left as it is."""

from __future__ import annotations

import re
import tomllib

from surrecall._errors import UsageError

_HEADER = re.compile(r"^[ \t]*\[[^\[\r\n][^\r\n]*\][ \t]*(#[^\r\n]*)?\r?$", re.MULTILINE)


def put(text: str, name: str, entry: str, source: str) -> str:
    """The text with one table more, at its end, or in the place of the one of that name.

    `entry` is the table as it is to stand there, `source` the name of the file. Raises UsageError when the file is written in a
    way that can't be edited.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    made = entry.replace("\n", end)
    block = _block(text, name)
    before, after = (text[: block[0]], text[block[1] :]) if block else (f"{text.rstrip()}{end}{end}", "")
    changed = f"{before}{made}{end}{after}"
    return _checked(changed, text, name, tomllib.loads(made)[name], source)


def taken_out(text: str, name: str, source: str) -> str:
    """The text without one table. Raises UsageError when the file can't be edited."""
    block = _block(text, name)
    changed = text if block is None else text[: block[0]] + text[block[1] :].lstrip("\r\n")
    return _checked(changed, text, name, None, source)


def _block(text: str, name: str) -> tuple[int, int] | None:
    """Where the lines of a table are: from its header to its last entry; what stands before the next header is that one's."""
    headers = [(match.start(), match[0].strip()) for match in _HEADER.finditer(text)]
    for index, (start, header) in enumerate(headers):
        if list(tomllib.loads(header.partition("#")[0])) == [name]:
            stop = headers[index + 1][0] if index + 1 < len(headers) else len(text)
            lines = text[start:stop].splitlines(keepends=True)
            while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
                lines.pop()
            return start, start + sum(map(len, lines))
    return None


def _checked(changed: str, before: str, name: str, wanted: object, source: str) -> str:
    """The changed text, once it is sure that it says what it should and nothing else."""
    expected = tomllib.loads(before.removeprefix("\ufeff")) | {name: wanted}
    if wanted is None:
        del expected[name]
    try:
        if tomllib.loads(changed.removeprefix("\ufeff")) == expected:
            return changed
    except tomllib.TOMLDecodeError:
        pass
    raise UsageError(f"{source} writes {name} in a way that is not edited here", "edit it by hand, then surrecall apply")
