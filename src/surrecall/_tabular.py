"""Rows of files: JSON Lines, a JSON array, CSV and TSV; numbered, without byte-order mark, whatever the line ends.

A row that can't be read is a fault with its file, line and content. Cells of CSV and TSV are quoted as spreadsheets quote them,
and may hold line breaks.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from surrecall import _ids
from surrecall._errors import DataError, UsageError
from surrecall._faults import Faults

# str.splitlines would also break at separators that are part of a text
_LINE_END = re.compile(r"\r\n|\n|\r")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
# what no id consists of; any other white space is a character like others
BLANKS = " \t\r\n\f\v"
_DELIMITERS = {"csv": ",", "tsv": "\t"}
# what a spreadsheet parts a CSV with, by the language it runs in
_PARTED_BY = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
# how a zip archive (xlsx, ods) and an old Excel file begin
_NO_TEXT = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# a whole document may stand in one cell; the library's own limit is 131,072 characters
_LARGEST_CELL = 2**31 - 1
# grades are asserted to lie between these
_GRADES = 1000

Columns = Mapping[str, Sequence[str]]


class Format(StrEnum):
    """How the rows of a file are written."""

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"


@dataclass(frozen=True)
class Row:
    """One row: its place, its content as it stands, and its fields by name. `typed` when numbers are told from texts."""

    line: int
    content: str
    fields: dict[str, Any]
    typed: bool

    def name(self, field: str) -> _ids.Name | None:
        """The id in a field; None when there is none, or one that can't be."""
        value = self.fields.get(field)
        if self.typed:
            return _ids.of_json(value)
        return _ids.Name(value) if value is not None and value.strip(BLANKS) else None


def format_of(path: Path, given: str | None, known: Sequence[str]) -> str:
    """The format that was asked for, else the one of the file's extension. Raises UsageError when there is neither, DataError
    for a spreadsheet's own file.
    """
    if path.suffix.lower() in _SPREADSHEETS:
        raise _spreadsheet(path)
    found = given or path.suffix.lower().lstrip(".").replace("ndjson", "jsonl")
    if found not in known:
        raise UsageError(f"the format of {path.name} is not known from its extension", f"give --format {'|'.join(known)}")
    return found


def decoded(path: Path, faults: Faults) -> str:
    """The text of a file; empty, and a fault, when it is no UTF-8. Raises DataError when it can't be read."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}", "check the path, or make it readable") from error
    if path.suffix.lower() in _SPREADSHEETS or content.startswith(_NO_TEXT):
        raise _spreadsheet(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # every byte is a character of Latin-1, and near enough to what was meant to find the place
        before, after = (_LINE_END.split(part.decode("latin-1")) for part in (content[: error.start], content[error.start :]))
        faults.add(path, len(before), "no UTF-8 text; save it as CSV UTF-8, or as UTF-8 text", before[-1] + after[0])
        return ""


def _spreadsheet(path: Path) -> DataError:
    return DataError(f"{path} is a file of a spreadsheet, and no text", "save it as CSV UTF-8 there, and import that")


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank."""
    for number, line in enumerate(_LINE_END.split(text), start=1):
        if line.strip():
            yield number, line


def number(value: Any) -> float | int | None:
    """A number of a file, whole ones as int; None for anything else, NaN and infinity included."""
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
        return None
    return int(value) if value == int(value) else value


def grade(value: Any) -> tuple[float | int, str | None]:
    """A grade, and what is wrong with it."""
    found = number(value)
    if found is None:
        out = isinstance(value, float) or str(value).strip().lower().lstrip("+-") in ("nan", "inf", "infinity")
        return 0, f"the grade {value!r} is out of range" if out else f"the grade {value!r} is no number"
    return found, None if -_GRADES < found < _GRADES else f"the grade {value!r} is out of range"


def read(
    path: Path,
    form: str,
    columns: Columns,
    faults: Faults,
    *,
    strict: bool = True,
    ragged: bool = False,
    left_out: dict[str, None] | None = None,
    required: Sequence[str] = (),
) -> list[Row]:
    """All rows of a file, their fields under the names of `columns`, each of which lists what else it goes by.

    `strict` makes a field that is not listed a fault; else it is left out, and its name put into `left_out`. `ragged` takes
    rows that end early. Raises DataError for a header that can't be made out, or lacks a column of `required`.
    """
    if form in _DELIMITERS:
        unused: dict[str, None] = {} if left_out is None else left_out
        return list(_delimited_rows(path, form, columns, faults, unused, required, strict=strict, ragged=ragged))
    rows = []
    for line, content, fields in objects(path, faults):
        called = _called(list(fields), columns)
        unknown = [key for key in fields if not called[key]]
        given = [name for name in called.values() if name]
        if unknown and strict:
            faults.add(path, line, f"an unknown field {unknown[0]!r}, of {', '.join(columns)}", content)
        elif len(set(given)) < len(given) and strict:
            faults.add(path, line, "one field by two names", content)
        else:
            # the last to be set is the name that comes first in its list
            pairs = sorted(((called[key], key) for key in fields if called[key]), key=lambda pair: -_rank(pair, columns))
            values = {name: fields[key] for name, key in pairs if name is not None and fields[key] is not None}
            if left_out is not None:
                left_out |= dict.fromkeys(unknown)
            rows.append(Row(line, content, values, typed=True))
    return rows


def objects(path: Path, faults: Faults) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The JSON objects of a file, one a line or in one array, with line and content."""
    text = decoded(path, faults)
    for line, content, value in _array(path, text, faults) if text.lstrip().startswith("[") else _json_lines(path, text, faults):
        if not isinstance(value, dict):
            faults.add(path, line, "no JSON object", content)
        elif _has_half_characters(content, value):
            faults.add(path, line, "half a character (a lone surrogate), which is no text", content)
        else:
            yield line, content, value


def delimited(path: Path, text: str, delimiter: str, faults: Faults) -> Iterator[tuple[int, str, list[str]]]:
    """The cells of each row that is not blank, with the line it begins in and its content."""
    csv.field_size_limit(_LARGEST_CELL)
    physical = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)
    reader = csv.reader(physical, delimiter=delimiter, strict=True)
    while True:
        begin = reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            content = "".join(physical[begin : reader.line_num])
            faults.add(path, begin + 1, f"a cell that can't be read ({error})", content)
            # what follows a quote that is not closed can't be told from what it holds
            return
        content = "".join(physical[begin : reader.line_num])
        # a spreadsheet writes the separators of rows that were emptied
        if any(cell.strip() for cell in cells):
            yield begin + 1, content, cells


def delimiter_of(path: Path, text: str, columns: Columns) -> str:
    """What parts the cells of a CSV: a comma, a semicolon or a tab, as its first line shows.

    Where that has several of them, the one that parts it into more of the names in `columns`. Raises DataError where that is
    none of them.
    """
    line, first = next(lines(text), (0, ""))
    bare = re.sub(r'"[^"]*"?', "", first)
    there = [delimiter for delimiter in _PARTED_BY if delimiter in bare]
    if len(there) < 2:
        return there[0] if there else ","
    known = {delimiter: sum(map(bool, _called(_parted(first, delimiter), columns).values())) for delimiter in there}
    best = [delimiter for delimiter in there if known[delimiter] == max(known.values())]
    if len(best) > 1:
        raise DataError(
            f"{path}:{line}: {' and '.join(_PARTED_BY[delimiter] for delimiter in best)} could part the columns: "
            f"{first.strip()[:200]!r}",
            "put names of columns that hold one of them between double quotes, or save the file with the other separator",
        )
    return best[0]


def _parted(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _delimited_rows(
    path: Path,
    form: str,
    columns: Columns,
    faults: Faults,
    left_out: dict[str, None],
    required: Sequence[str],
    *,
    strict: bool,
    ragged: bool,
) -> Iterator[Row]:
    text = decoded(path, faults)
    delimiter = delimiter_of(path, text, columns) if form == "csv" else _DELIMITERS[form]
    found = delimited(path, text, delimiter, faults)
    first = next(found, None)
    if first is None:
        return
    header = _header(path, first, columns, strict=strict)
    missing = [name for name in required if name not in header]
    if missing:
        raise DataError(
            f"{path}:{first[0]}: no column {' and no column '.join(missing)}: {first[1].strip()[:200]!r}",
            f"name the columns {', '.join(required)}",
        )
    left_out |= {name.strip(): None for name, meant in zip(first[2], header, strict=True) if meant is None and name.strip()}
    for line, content, cells in found:
        spare = [cell for cell in cells[len(header) :] if cell.strip()]
        if spare or (len(cells) < len(header) and not ragged):
            faults.add(path, line, f"{len(cells)} fields where the header has {len(header)}", content)
            continue
        pairs = zip(header, cells, strict=False)
        yield Row(line, content, {name: cell for name, cell in pairs if name is not None and cell != ""}, typed=False)


def _header(path: Path, first: tuple[int, str, list[str]], columns: Columns, *, strict: bool) -> list[str | None]:
    line, content, cells = first
    while cells and not cells[-1].strip():
        cells.pop()
    called = _called(cells, columns)
    header = [called[cell] for cell in cells]
    if not any(header) or (None in header and strict):
        raise DataError(
            f"{path}:{line}: an unknown header: {content.strip()[:200]!r}",
            f"name the columns {', '.join(columns)}, as many as there are",
        )
    for name in {name for name in header if name is not None}:
        places = [place for place, found in enumerate(header) if found == name]
        if len(places) > 1 and (strict or len({cells[place] for place in places}) < len(places)):
            raise DataError(f"{path}:{line}: a column is there twice: {content.strip()[:200]!r}", "leave one of the two")
        kept = min(places, key=lambda place: _rank((name, cells[place]), columns))
        header = [None if found == name and place != kept else found for place, found in enumerate(header)]
    return header


def _called(keys: Sequence[str], columns: Columns) -> dict[str, str | None]:
    """The names of `columns` that keys go by; None for a key that goes by none."""
    names = {alias: name for name, aliases in columns.items() for alias in (name, *aliases)}
    return {key: names.get(canonical(key)) for key in keys}


def _rank(pair: tuple[str | None, str], columns: Columns) -> int:
    """How near a key is to the name itself; where two keys go by one name, the nearer one is meant."""
    name, key = pair
    return [name, *columns[name or ""]].index(canonical(key))


def canonical(name: str) -> str:
    """The name of a field: `Query-ID`, `query id` and `query_id` are one."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _json_lines(path: Path, text: str, faults: Faults) -> Iterator[tuple[int, str, Any]]:
    for line, content in lines(text):
        try:
            yield line, content, _json(content)
        except ValueError as error:
            faults.add(path, line, f"no JSON ({str(error)[:60]})", content)


def _array(path: Path, text: str, faults: Faults) -> Iterator[tuple[int, str, Any]]:
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    blank = re.compile(r"[ \t\r\n]*")
    place = text.index("[") + 1
    begun, line = 0, 1
    while True:
        place = blank.match(text, place).end()  # type: ignore[union-attr]
        line += len(_LINE_END.findall(text, begun, place))
        begun = place
        if text.startswith("]", place):
            if text[place + 1 :].strip():
                faults.add(path, line, "something after the end of the array", text[place : place + 200])
            return
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            faults.add(path, line, f"no JSON ({str(error)[:60]})", text[place : place + 200])
            return
        yield line, text[place:end], value
        place = blank.match(text, end).end()  # type: ignore[union-attr]
        if text.startswith(",", place):
            place += 1
        elif not text.startswith("]", place):
            faults.add(path, line, "no comma after this object", text[begun : begun + 200])
            return


def parsed(text: str) -> Any:
    """The JSON of a cell. Raises ValueError for what is none, is nested too deep, or holds half a character."""
    value = _json(text)
    if _has_half_characters(text, value):
        raise ValueError("half a character, which no text can hold")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except ValueError as error:
        raise ValueError(str(error)[:60]) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _has_half_characters(content: str, value: Any) -> bool:
    if "\\ud" not in content.lower():
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
