"""Floors from what was measured, written into floors.toml of a project and applied, together or not at all."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surrealdb import RecordID

from surrecall import _files, _floors, _schema, _toml_tables
from surrecall._database import Database
from surrecall._errors import DataError, UsageError

_PROPOSED = "RETURN fn::floors_proposed($evaluation, $options)"


@dataclass(frozen=True)
class Proposal:
    """Floors from an evaluation: `floors` rows of fn::floors_proposed, `written` and `kept` their names.

    What is kept stood in the file before, and was left as it is.
    """

    evaluation: RecordID
    floors: list[dict[str, Any]]
    written: list[str]
    kept: list[str]


def propose(database: Database, project: Path, evaluation: RecordID, options: dict[str, Any], *, force: bool = False) -> Proposal:
    """Write floors from an evaluation; `options` as fn::floors_proposed takes them. One that is there stays, unless `force`.

    Raises DataError when the evaluation measured nothing that could be a floor, UsageError where the folder has no surql/corpus.
    """
    rows: list[dict[str, Any]] = database.value(_PROPOSED, evaluation=evaluation, options=options)
    if not rows:
        raise DataError(
            "nothing measured is above 0.01, so there is no floor to propose", "surrecall evaluate shows what there is"
        )
    floors = [_floors.Floor(row["name"], _entries(row)) for row in rows]
    written = put(database, project, floors, force=force)
    return Proposal(evaluation, rows, written, [floor.name for floor in floors if floor.name not in written])


def put(database: Database, project: Path, floors: Sequence[_floors.Floor], *, force: bool = False) -> list[str]:
    """Write floors into floors.toml of a project and apply; the names of those that were written.

    One that is there stays as it is unless `force`. A failure leaves all as it was.
    """
    path = project / "surql" / _files.FLOORS_FILE
    if not path.parent.is_dir():
        raise UsageError(
            "this folder has no surql/corpus, so there is no floors.toml to write into",
            "surrecall init, or surrecall init --adopt for a database that is there",
        )
    # bytes, so that line ends and a byte-order mark stay what they are
    before = {file: file.read_bytes() if file.is_file() else None for file in (path, path.with_suffix(".surql"))}
    text = (before[path] or b"").decode("utf-8")
    try:
        there = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} can't be read: {error}", "mend the line it names") from error
    chosen = [floor for floor in floors if force or floor.name not in there]
    if not chosen:
        return []
    for floor in chosen:
        text = _toml_tables.put(text, floor.name, _floors.entry(floor), path.name)
    try:
        path.write_bytes(text.encode("utf-8"))
        _schema.apply(database, project)
    except BaseException:
        for file, content in before.items():
            if content is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(content)
        raise
    return [floor.name for floor in chosen]


def _entries(row: dict[str, Any]) -> dict[str, Any]:
    entries: dict[str, Any] = {"retriever": row["retriever"], "metric": row["metric"], "k": row["k"], "minimum": row["minimum"]}
    return entries if row["set"] == "default" else entries | {"set": row["set"]}
