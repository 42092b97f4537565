"""The project of a test: a database of its own with the project applied, and assertions on what its retrievers find."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from pytest_surrecall._servers import Server
from surrecall import (
    Database,
    Evaluation,
    Options,
    Settings,
    UsageError,
    _document_file,
    _question_file,
    _render,
    _settings,
    _tabular,
    apply,
    evaluate,
)
from surrecall import _import_documents as _documents
from surrecall import _import_questions as _questions
from surrecall._corpus import Corpus

_ASSERT = "RETURN fn::assertion($evaluation, $asked)"
_SHOWN = 10


@dataclass
class Project:
    """A database with a project in it, gone after the test.

    `database` runs statements (`run`, `value`), `folder` is where surrecall.toml stands. The assertions evaluate the golden set
    with one retriever, and fail with the questions that fell: their texts, where their labels stand, what came first.
    """

    database: Database
    folder: Path
    corpus: Corpus | None = None
    evaluations: list[Evaluation] = field(default_factory=list, repr=False)

    def load(self, path: str | Path) -> None:
        """Run the statements of a .surql file; a relative path is one of the project's folder. Raises SurrecallError."""
        self.database.run_as_written(self._path(path).read_text(encoding="utf-8-sig"))

    def import_documents(self, path: str | Path, form: str | None = None) -> int:
        """Add the documents of a file, as `surrecall import documents` does; the number added. Raises DataError."""
        file = self._path(path)
        options = _documents.Options(file, _tabular.format_of(file, form, _document_file.FORMATS), _document_file.Names())
        return _documents.import_documents(self.database, self.folder, self._corpus, options).documents

    def import_questions(self, path: str | Path, form: str | None = None) -> int:
        """Add the questions of a file, as `surrecall import questions` does; the number added. Raises DataError."""
        file = self._path(path)
        options = _questions.Options(file, _tabular.format_of(file, form, _question_file.FORMATS))
        return _questions.import_questions(self.database, self.folder, self._corpus, options).questions

    def evaluate(
        self, retrievers: Sequence[str] | None = None, k: Sequence[int] = (5,), *, question_set: str = "default"
    ) -> Evaluation:
        """Record one evaluation; no retrievers means all of them. Raises UsageError, SchemaError or DataError."""
        done = evaluate(self.database, Options(tuple(k), retrievers, question_set))
        self.evaluations.append(done)
        return done

    def assert_metric(
        self,
        metric: str,
        retriever: str,
        k: int,
        *,
        at_least: float,
        question_set: str = "default",
        by: str | None = None,
        one_class: str | None = None,
    ) -> float:
        """The mean of a metric at k, in [0,1]; exactly `at_least` passes, with an epsilon of 1e-9.

        `by` (kind, tag, source, split) and `one_class` ask for one class of questions. Fails the test when it is lower, or was
        not measured.
        """
        __tracebackhide__ = True
        done = self.evaluate([retriever], [k], question_set=question_set)
        asked = {"retriever": retriever, "metric": metric, "k": k, "at_least": at_least}
        asked |= {} if by is None else {"by": by, "class": one_class or ""}
        told = self.database.value(_ASSERT, evaluation=done.row["id"], asked=asked)
        if not told["holds"]:
            pytest.fail(_failure(told, done), pytrace=False)
        return float(told["value"])

    def assert_recall(self, retriever: str, k: int, *, at_least: float, question_set: str = "default") -> float:
        """Mean recall@k: found labels over labels. As assert_metric."""
        __tracebackhide__ = True
        return self.assert_metric("recall", retriever, k, at_least=at_least, question_set=question_set)

    def assert_hit(self, retriever: str, k: int, *, at_least: float, question_set: str = "default") -> float:
        """Share of questions with any label in the first k (hit rate, success@k). As assert_metric."""
        __tracebackhide__ = True
        return self.assert_metric("hit", retriever, k, at_least=at_least, question_set=question_set)

    def assert_mrr(self, retriever: str, k: int, *, at_least: float, question_set: str = "default") -> float:
        """MRR@k: mean of 1 / rank of the first label in the first k, else 0. As assert_metric."""
        __tracebackhide__ = True
        return self.assert_metric("rr", retriever, k, at_least=at_least, question_set=question_set)

    def assert_ndcg(self, retriever: str, k: int, *, at_least: float, question_set: str = "default") -> float:
        """Mean nDCG@k: gain = grade, discount log2(rank + 1), ideal from all labels cut at k. As assert_metric."""
        __tracebackhide__ = True
        return self.assert_metric("ndcg", retriever, k, at_least=at_least, question_set=question_set)

    def _path(self, path: str | Path) -> Path:
        return path if Path(path).is_absolute() and isinstance(path, Path) else self.folder / path

    @property
    def _corpus(self) -> Corpus:
        if self.corpus is None:
            raise UsageError(
                f"{self.folder} has no surrecall.toml with a [corpus]", "surrecall init, or surrecall_project in the ini file"
            )
        return self.corpus


@contextmanager
def opened(server: Server, config: pytest.Config) -> Iterator[Project]:
    """A database that nobody else uses, with the project of the session in it."""
    named = str(config.getini("surrecall_project") or "")
    folder = config.rootpath / named
    if named and not (folder / _settings.PROJECT_FILE).is_file():
        raise pytest.UsageError(f"surrecall_project is {named}, and {folder} holds no {_settings.PROJECT_FILE}")
    found = _settings.read_project_file(folder)
    name = "t" + uuid.uuid4().hex
    settings = server.settings(name, name)
    settings = Settings(settings.url, name, name, settings.user, settings.password, found.names)
    with Database(settings) as database:
        apply(database, folder)
        yield Project(database, folder, found.corpus)


def _failure(told: dict[str, Any], done: Evaluation) -> str:
    lines = [told["sentence"]]
    if told["questions"]:
        lines.append(f"{len(told['questions'])} of {len(done.row['questions'])} questions fell short:")
    lines += [line for question in told["questions"][:_SHOWN] for line in _question(question)]
    if len(told["questions"]) > _SHOWN:
        lines.append(f"  and {len(told['questions']) - _SHOWN} more")
    return "\n".join(_render.printable(line) for line in [*lines, *(f"warning: {text}" for text in done.warnings)])


def _question(told: dict[str, Any]) -> list[str]:
    labels = ", ".join(
        f"{_shown(label['document'])} at {label['rank']}"
        if label.get("rank")
        else f"{_shown(label['document'])} not in the first {told['depth']}"
        for label in told["labels"]
    )
    first = ", ".join(map(_shown, told["first"])) or "nothing came back"
    return [
        f"  {_shown(told['question'])} {told['text']!r} ({told['score']:.3f})",
        f"    labels: {labels}",
        f"    first: {first}",
    ]


def _shown(record: RecordID) -> str:
    return _render.record_text(record)
