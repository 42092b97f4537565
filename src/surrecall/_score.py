"""Scoring a file of rankings by a file of labels: in an engine inside this process, with nothing stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surrecall import _files, _ids, _ingest, _label_file, _run_file
from surrecall._database import Database
from surrecall._errors import DataError
from surrecall._faults import Faults
from surrecall._render import counted
from surrecall._settings import Settings

_BEGIN = "RETURN fn::score_begin($options)"
_PART = "RETURN fn::score_part($tally, $questions, $each)"
_MEANS = "RETURN fn::tally_means([$tally])"
# what scores a ranking, and needs no table
_PURE = ("core/score/", "core/metric/", "core/file/", "core/evaluation/tally", "core/evaluation/repeats_in", "core/import/listed")

Progress = _ingest.Progress


@dataclass(frozen=True)
class Options:
    """A file of rankings, a file of labels, and how to read them.

    `metrics` None is all; `only_answered` leaves out the questions that the run has not, which else count as 0; `form` is that of
    the run, None the one that its ending names.
    """

    run: Path
    qrels: Path
    cutoffs: Sequence[int]
    metrics: Sequence[str] | None = None
    rel: int | float = 1
    only_answered: bool = False
    per_question: bool = False
    form: _run_file.Form | None = None


@dataclass(frozen=True)
class Scored:
    """Means, one row a cutoff, and where asked the figures of each question and cutoff.

    Counts are of the questions of the labels, how many of them the run has not, and of questions of the run that have no label.
    """

    means: list[dict[str, Any]]
    per_question: list[dict[str, Any]]
    questions: int
    unanswered: int
    unknown_questions: int
    warnings: list[str]

    @property
    def answered(self) -> int:
        """Questions of the labels that the run has."""
        return self.questions - self.unanswered


@contextmanager
def engine() -> Iterator[Database]:
    """A database in memory with the functions that score, and nothing else."""
    files = [file for file in _files.core({}) if file.name.startswith(_PURE)]
    with Database(Settings("mem://")) as database:
        database.run_as_written(_files.joined(files))
        yield database


def score(database: Database, options: Options, progress: Progress = lambda _done, _all: None) -> Scored:
    """Score every question of the labels. `database` needs the functions of `engine`.

    Raises DataError for lines that can't be read, or when the files share no question or no document.
    """
    faults = Faults("scored")
    silent: list[_ids.Name] = []
    lines = _run_file.read(options.run, options.form or _run_file.form_of(options.run), faults, silent)
    labels = _label_file.read(options.qrels, None, faults)
    _refuse_twins(options, lines, labels, faults)
    meant = {name: [_key(name, lines, labels)] for label in labels for name in (label.question, label.document)}
    grades = _label_file.gather(options.qrels, labels, meant, meant, faults).grades
    faults.raise_if_any("mend these lines, then score again")
    for path, there in ((options.run, lines or silent), (options.qrels, labels)):
        if not there:
            raise DataError(
                f"{path} holds no line", _run_file.FORMS if path is options.run else "qrels: question 0 document grade"
            )
    listed: dict[Any, list[dict[str, Any]]] = {}
    keys: dict[_ids.Name, Any] = {}
    for line in lines:
        question, document = (
            keys[name] if name in keys else keys.setdefault(name, _key(name, lines, labels))
            for name in (line.question, line.document)
        )
        listed.setdefault(question, []).append(line.listed(document))
    for name in silent:
        listed.setdefault(_key(name, lines, labels), [])
    _require_overlap(options, listed, grades)
    _require_relevant(options, grades)
    asked = [question for question in grades if question in listed or not options.only_answered]
    tally = database.value(
        _BEGIN,
        options={
            "k": list(options.cutoffs),
            "metrics": None if options.metrics is None else list(options.metrics),
            "rel": options.rel,
            "grades": list(dict.fromkeys(grade for judged in grades.values() for grade in judged.values())),
        },
    )
    rows: list[dict[str, Any]] = []
    unlabelled = done = 0
    for shard in _ingest.shards(asked, lambda question: len(listed.get(question, ())) + len(grades[question])):
        questions = [
            {
                "lines": listed.get(question, []),
                "labels": [{"document": document, "grade": grade} for document, grade in grades[question].items()],
            }
            for question in shard
        ]
        told = database.value(_PART, tally=tally, questions=questions, each=options.per_question)
        tally, unlabelled, done = told["tally"], unlabelled + told["unlabelled"], done + len(shard)
        rows += _rows(shard, tally, told["scores"])
        progress(done, len(asked))
    told = Scored(
        means=database.value(_MEANS, tally=tally),
        per_question=rows,
        questions=len(grades),
        unanswered=sum(question not in listed for question in grades),
        unknown_questions=sum(question not in grades for question in listed),
        warnings=[],
    )
    return replace(told, warnings=_warnings(told, options, unlabelled))


def _rows(shard: Sequence[Any], tally: Mapping[str, Any], scores: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Question by question, the figures at each cutoff."""
    return [
        {"question": question, "k": k} | {metric: by_question[place][metric] for metric in tally["metrics"]}
        for place, question in enumerate(shard)
        for k, by_question in zip(tally["cutoffs"], scores, strict=False)
    ]


def _warnings(told: Scored, options: Options, unlabelled: int) -> list[str]:
    found = []
    if told.unanswered:
        then = "and were left out" if options.only_answered else "and count as 0 (--only-answered leaves them out)"
        found.append(f"{told.unanswered} of {told.questions} questions are not in the run, {then}")
    if told.unknown_questions:
        found.append(f"left out: {counted(told.unknown_questions, 'question')} of the run without a label")
    if unlabelled:
        without = f"{counted(unlabelled, 'question')} without a label of grade {options.rel} or more"
        found.append(f"{without}: 0 in every mean, but for lower grades in nDCG, ERR and RBP")
    if told.means and told.means[-1]["repeats"]:
        found.append(f"{counted(told.means[-1]['repeats'], 'repeat')} of a document in a ranking; only the first sighting counts")
    return found


def _key(name: _ids.Name, lines: Sequence[_run_file.Line], labels: Sequence[_label_file.Label]) -> Any:
    """What an id is compared by: where one of the files has texts only, by how it prints."""
    return name.value if lines and labels and lines[0].question.typed and labels[0].question.typed else str(name)


def _refuse_twins(options: Options, lines: Sequence[_run_file.Line], labels: Sequence[_label_file.Label], faults: Faults) -> None:
    """The number 7 and the text '7' of one file can't be told apart by another that has texts only."""
    if not lines or not labels or lines[0].question.typed == labels[0].question.typed:
        return
    path, typed = (options.run, lines) if lines[0].question.typed else (options.qrels, labels)
    for kind in ("question", "document"):
        seen: dict[str, _ids.Name] = {}
        for line in typed:
            name = getattr(line, kind)
            if seen.setdefault(str(name), name) != name:
                faults.add(
                    path,
                    line.line,
                    f"the {kind} {name.shown} is ambiguous, since {seen[str(name)].shown} is there; only JSON tells them apart",
                    line.content,
                )


def _require_overlap(
    options: Options, listed: Mapping[Any, Sequence[Mapping[str, Any]]], grades: Mapping[Any, Mapping[Any, Any]]
) -> None:
    """Refuse files that are not of one collection: every figure would be 0, and look like a bad system."""
    run, qrels = options.run.name, options.qrels.name
    if not any(question in grades for question in listed):
        raise DataError(
            f"no question in common: {run} has {len(listed)}, for example {_sample(listed)}; "
            f"{qrels} has {len(grades)}, for example {_sample(grades)}",
            "compare the ids",
        )
    found = dict.fromkeys(row["document"] for question, rows in listed.items() if question in grades for row in rows)
    judged = dict.fromkeys(document for labels in grades.values() for document in labels)
    if found and not any(document in judged for document in found):
        raise DataError(
            f"no document in common: {run} has {len(found)}, for example {_sample(found)}; "
            f"{qrels} has {len(judged)}, for example {_sample(judged)}",
            "compare the ids: nothing that the run found is judged, so there is nothing to score",
        )


def _require_relevant(options: Options, grades: Mapping[Any, Mapping[Any, Any]]) -> None:
    """Refuse labels of which none is relevant: every figure would be 0, and nothing was measured."""
    highest = max(grade for judged in grades.values() for grade in judged.values())
    if highest < options.rel:
        raise DataError(
            f"{options.qrels.name} has no label of grade {options.rel} or more, the highest is {highest}",
            f"--rel {highest} counts it as relevant" if highest > 0 else "label what is relevant",
        )


def _sample(names: Mapping[Any, Any]) -> str:
    return " and ".join(repr(name) for name in list(names)[:2])
