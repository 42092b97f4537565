"""What the database said, as the error it is for the user: its kind, and so its exit code, and the next step."""

from __future__ import annotations

import re
from pathlib import Path

from surrecall import _files
from surrecall._errors import DatabaseError, DataError, GuardError, SchemaError, SurrecallError, UsageError

_NO_FUNCTION = re.compile(r"(?:Function|The function) 'fn::([^']+)' (?:not found|does not exist)")
_APPLY = "surrecall apply"
_REFUSAL = "the guard refuses this transaction"
_AFTER_REFUSAL = "nothing of it is stored; surrecall whatif FILE shows what documents would change, question by question"
_BEGUN = "another import of this run has just begun; surrecall history shows it when it is done"
_LOGIN = "give --user and SURREAL_PASSWORD (or SURREAL_USER and SURREAL_PASSWORD)"

# how a text begins: what it is, and the next step where the text itself does not end with one
_CAUSES: tuple[tuple[re.Pattern[str], type[SurrecallError], str | None], ...] = tuple(
    (re.compile(pattern, re.DOTALL), kind, hint)
    for pattern, kind, hint in (
        (
            r"why is asked of documents|k must be |k is at most |rel is the |max is the highest |p is a probability ",
            UsageError,
            None,
        ),
        (r"no label of the golden set .* has a grade of |no metric named ", UsageError, None),
        (r"the label .* does not exist|a question needs at least one label", DataError, None),
        (r"a pool (is|takes) |a review takes ", UsageError, None),
        (r"the document .* (is gone|changed since it was shown)", DataError, None),
        (r"the labels of .* changed meanwhile, so the answer", DataError, None),
        (r"nothing to audit: |an audit has no |a threshold is kept |no evaluation of the golden set ", DataError, None),
        (r"a threshold is |a verdict is ", UsageError, None),
        (r"a split takes ", UsageError, None),
        (r"a label is (edited|confirmed) by |stale labels are listed by ", UsageError, None),
        (r"no label of .{1,200} is |the document .{1,200} is gone, so its label ", DataError, None),
        (r"that is the last relevant document of |a grade is a number between", DataError, None),
        (r"k = \d+ is more than the pool", UsageError, None),
        (r"no retriever named |no kind of fault named |\S+ is a registered retriever", UsageError, None),
        (r"no metric named |no evaluation |(compare|sweep|triage) (takes|has|needs) |slices (are|have) ", UsageError, None),
        (r"nothing to (compare|read): |no baseline is made of ", DataError, None),
        (r"no baseline named |gate (takes|has) |\S+ has no run", UsageError, None),
        (r"evaluation:.{1,80} was pruned: |.{1,80} was pruned: \d+ of its answers", DataError, None),
        (
            r"a trend (has|is|takes) |a zone is |no zone is |days is a |a day is written |since is before until|"
            r"no run (at|of) |blame (has|takes) ",
            UsageError,
            None,
        ),
        (
            r"Database index `evaluation_import_once` already contains",
            DataError,
            "another import of this run has just begun; look at surrecall history",
        ),
        (r"a question of that text is in the golden set ", DataError, None),
        (r"chunking (takes|has|needs) ", UsageError, None),
        (r"no such question", UsageError, "surrecall questions lists them"),
        (r"the import of .* is unfinished", DataError, None),
        (r"vectors of two models: ", DataError, None),
        (r".{1,200} holds vectors of |the vectors of .* are being replaced", UsageError, None),
        (r"no question (in|of) the golden set|no answerable question", DataError, None),
        (r"Incorrect arguments for function fn::usable_vector", DataError, "a vector holds numbers only; embed it again"),
        (r"a vector of ", DataError, None),
        (r"(index|full-text index|vector index) .* is ", SchemaError, None),
        (r"no retriever is registered", SchemaError, None),
        (r"fn::guard can not judge", DatabaseError, None),
        (r"There was no suitable index supporting the expression", SchemaError, _APPLY),
        (r"The table '.*' does not exist", SchemaError, _APPLY),
        (r".*No space left on device", DatabaseError, "make room on the disk, then try again"),
        (r"Anonymous access not allowed", DatabaseError, _LOGIN),
    )
)


def explain(text: str, statement: int | None = None) -> SurrecallError:
    """The error for a text of the database. Our own functions end theirs with the next step, after a semicolon."""
    missing = _NO_FUNCTION.match(text)
    if missing:
        ours = missing[1] in {Path(file.name).stem for file in _files.load(_files.packaged("surql").parent)}
        step = _APPLY if ours else "define it, or mend the call in retrievers.toml"
        return SchemaError(f"the function fn::{missing[1]} does not exist", step, statement)
    if text.startswith(_REFUSAL):
        # whole: each floor that breaks is a part of it
        return GuardError(text, _AFTER_REFUSAL, statement)
    for pattern, kind, hint in _CAUSES:
        if pattern.match(text):
            message, _, told = text.partition("; ")
            return kind(message, hint or told or None, statement)
    return DatabaseError(text, None, statement)
