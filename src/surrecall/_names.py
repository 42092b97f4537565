"""Other names for tables and functions of surrecall's, where a database has something else under ours.

surql/core and the statements of this package are written with our own names; here they are changed, by where a name stands,
into the ones of the project. The corpus files of a project hold its names already.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from surrecall import _quoting
from surrecall._errors import UsageError

PROJECT_FILE = "surrecall.toml"
TABLES = (
    "question",
    "retriever",
    "evaluation",
    "eval_answer",
    "eval_run",
    "eval_chain",
    "import_log",
    "embedding_model",
    "miss_note",
    "chunking",
    "anchor_place",
    "anchor_twin",
    "corpus_change",
    "corpus_state",
    "ingest_lease",
    "ingest_policy",
    "ingest_step",
    "ingest_wake",
    "eval_floor",
    "eval_baseline",
    "eval_guard",
    "eval_alert",
    "eval_prune",
    "eval_trend",
    "draft_log",
    "judgement_audit",
    "golden_set",
    "heldout_look",
    "judgement",
    "label_change",
    "label_reading",
    "label_seen",
)
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FUNCTION = re.compile(r"fn::[a-z_][a-z0-9_]*(::[a-z_][a-z0-9_]*)*")
# a field or a parameter may have the name of a table; these are the places where only a table can stand
_BEFORE = (
    r"(?:\b(?:FROM|FROM ONLY|INTO|CREATE|CREATE ONLY|UPSERT|UPDATE|DELETE|DELETE FROM|ON|ON TABLE"
    r"|TABLE|TABLE OVERWRITE|TABLE IF NOT EXISTS|TABLE IF EXISTS)\s+"
    r"|\brecord<|<~|\btype::(?:record|table)\('|\btype::is_record\([^(),]*, ')"
)

Names = Mapping[str, str]


def rename(text: str, names: Names) -> str:
    """SurrealQL of ours with the names of a project."""
    if not names:
        return text
    pattern, known = _pattern(tuple(sorted(names.items())))
    return pattern.sub(
        lambda match: (match["before"] or "") + known[match["table"] or match["literal"] or match["function"]], text
    )


def check(names: Names, known_functions: frozenset[str]) -> dict[str, str]:
    """The names as they are. Raises UsageError naming the entry that can't be used."""
    ours = {*TABLES, *known_functions}
    for old, new in names.items():
        form, example = (_FUNCTION, "fn::surrecall_score") if old.startswith("fn::") else (_TABLE, "golden_question")
        if old not in ours:
            raise UsageError(f"surrecall has no {old}", f"its tables are {', '.join(TABLES)}; its functions stand in surql/")
        if (
            not isinstance(new, str)
            or not form.fullmatch(new)
            or not all(map(_quoting.is_plain, new.removeprefix("fn::").split("::")))
        ):
            raise UsageError(f"{old} can't be named {new!r}", f"for example: {example}")
        if new in ours:
            raise UsageError(f"{old} can't be named {new}, which is another name of surrecall's", f"for example: {example}")
    taken = [new for new in names.values() if list(names.values()).count(new) > 1]
    if taken:
        raise UsageError(f"two names are to become {taken[0]}", "give each a name of its own")
    return dict(names)


def told(names: Names) -> list[str]:
    """The names as a database keeps them, in fn::corpus_names: `question = golden`, `score() = our_score()`."""
    plain = {key: f"{key.removeprefix('fn::')}()" if key.startswith("fn::") else key for pair in names.items() for key in pair}
    return sorted(f"{plain[old]} = {plain[new]}" for old, new in names.items())


def of_project(folder: Path) -> dict[str, str]:
    """The entries of [names] in surrecall.toml; none when there is no file."""
    path = folder / PROJECT_FILE
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{PROJECT_FILE} can't be read: {error}", "mend the line it names") from error
    names = content.get("names", {})
    if not isinstance(names, dict):
        raise UsageError(f"{PROJECT_FILE}: names is {names!r}, no table", 'for example: [names] and question = "golden_question"')
    return names


@lru_cache(maxsize=8)
def _pattern(entries: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    known = dict(entries)
    tables = "|".join(re.escape(name) for name in known if not name.startswith("fn::")) or "(?!)"
    functions = "|".join(re.escape(name) for name in known if name.startswith("fn::")) or "(?!)"
    return (
        re.compile(
            rf"(?P<before>{_BEFORE})(?P<table>{tables})(?![\w:])"
            rf"|(?<![\w$.:'\"])(?P<literal>{tables})(?=:[a-z`⟨])"
            rf"|(?P<function>{functions})(?![\w:])"
        ),
        known,
    )
