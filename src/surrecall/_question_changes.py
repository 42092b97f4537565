"""What a question of a file has other than the one that is there, and what replacing it changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from surrealdb import RecordID

from surrecall import _ids, _labels
from surrecall._question_file import Entry

# what a question may have beside its labels, and what a row without it has
_DETAILS: dict[str, Any] = {"kind": None, "tags": [], "split": None, "source": "human", "note": None}
# said of what is there: "is there with …"
_OTHER = {"tags": "other tags"}


@dataclass(frozen=True)
class Wanted:
    """A question as a file has it: the row to store, and its labels, whose grade is None where the file gives none.

    `names_set` says whether the golden set was asked for, and is not only the default.
    """

    entry: Entry
    row: dict[str, Any]
    labels: list[tuple[RecordID, float | int | None]]
    names_set: bool


@dataclass
class Change:
    """New values of fields of a question that is there, and what they are: a vector where there was none, or replacements.

    `modelled` states the model of a vector that is there. `added` and `regraded` count labels; `outdated` says that its vector is
    taken out, since it is of another text.
    """

    values: dict[str, Any] = field(default_factory=dict)
    filled: bool = False
    modelled: bool = False
    replaced: bool = False
    added: int = 0
    regraded: int = 0
    outdated: bool = False
    fault: str | None = None


def difference(wanted: Wanted, there: dict[str, Any]) -> str | None:
    """What the question that is there has other than the file says, after "is there with"; a vector only where both have one."""
    row = wanted.row
    if row["text"] != there.get("text"):
        return f"another text: {str(there.get('text'))[:60]!r}"
    if row["set"] != there.get("set"):
        return f"another set: {there.get('set')!r}"
    ours, theirs = (
        {name: grade for name, (_, grade) in _labels.graded(question).items()} for question in (row, {"relevant": [], **there})
    )
    if ours != theirs:
        return f"other labels: {len(theirs)} and not {len(ours)}" if len(ours) != len(theirs) else "other labels or grades"
    if row.get("answerable", True) != there.get("answerable", True):
        return f"answerable {str(there.get('answerable', True)).lower()}"
    for key, default in _DETAILS.items():
        if row.get(key, default) != (there.get(key) or default):
            return f"{_OTHER.get(key, f'another {key}')}: {there.get(key)!r}"
    if _phrases(row) != _phrases(there):
        return "other anchors"
    if row.get("embedding") is not None and there.get("embedding"):
        if row["embedding"] != there["embedding"]:
            return "another vector"
        if _has_other_model(row, there) and there.get("embedding_model"):
            return f"a vector of another model: {there['embedding_model']!r}"
    return None


def filling(row: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
    """Vector and model, where the question that is there has none; empty where it has, or the file gives none."""
    if row.get("embedding") is None:
        return {}
    if not there.get("embedding"):
        return {"embedding": row["embedding"], "embedding_model": row.get("embedding_model")}
    same = row["embedding"] == there["embedding"]
    return {"embedding_model": row["embedding_model"]} if same and _has_other_model(row, there) else {}


def change(wanted: Wanted, there: dict[str, Any]) -> Change:
    """What becomes of the question that is there: fields that the file gives are replaced, labels added or graded anew."""
    row, given, found = wanted.row, wanted.entry.details, Change()
    if row["text"] != there.get("text"):
        found.values["text"] = row["text"]
    if wanted.names_set and row["set"] != there.get("set"):
        if "set" not in given:
            found.fault = f"is in the golden set {there.get('set')}; give that, or name a set in the row itself"
        found.values["set"] = row["set"]
    for key, default in _DETAILS.items():
        if key in given and given[key] != (there.get(key) or default):
            found.values[key] = given[key]
    if wanted.entry.anchors and _phrases(row) != _phrases(there):
        found.values["anchors"] = row["anchors"]
    _change_labels(wanted, there, found)
    found.replaced = bool(found.values)
    filled = filling(row, there)
    found.filled, found.modelled = "embedding" in filled, bool(filled) and "embedding" not in filled
    if row.get("embedding") is not None and there.get("embedding") and row["embedding"] != there["embedding"]:
        filled = {"embedding": row["embedding"], "embedding_model": row.get("embedding_model")}
        found.replaced = True
    elif row.get("embedding") is None and "text" in found.values and there.get("embedding"):
        filled = {"embedding": None, "embedding_model": None}
        found.outdated = True
    found.values |= filled
    return found


def _change_labels(wanted: Wanted, there: dict[str, Any], found: Change) -> None:
    labels = _labels.graded(there)
    for document, grade in wanted.labels:
        had = labels.get(_ids.key(document))
        if had is None:
            found.added += 1
        # a label without a grade says relevant, and not how much
        elif had[1] == grade or (grade is None and had[1] >= 1):
            continue
        else:
            found.regraded += 1
        labels[_ids.key(document)] = (document, 1 if grade is None else grade)
    if found.added or found.regraded:
        found.values |= _labels.merged(there, list(labels.values()))
    said = wanted.entry.answerable
    if said is None:
        return
    if said and not any(grade >= 1 for _, grade in labels.values()):
        found.fault = "is said to be answerable, and has no label of grade 1 or more"
    if found.values.get("answerable", there["answerable"]) != said:
        found.values["answerable"] = said


def _has_other_model(row: dict[str, Any], there: dict[str, Any]) -> bool:
    return row.get("embedding_model") is not None and row["embedding_model"] != there.get("embedding_model")


def _phrases(row: dict[str, Any]) -> list[tuple[Any, str]]:
    return [(_ids.key(anchor["document"]), anchor["phrase"]) for anchor in row.get("anchors") or []]
