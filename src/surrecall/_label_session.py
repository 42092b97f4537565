"""Judging candidates one after the other in a terminal. What an answer does to a label is the database's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text
from surrealdb import RecordID

from surrecall import _writer
from surrecall._database import Database
from surrecall._errors import DataError, UsageError
from surrecall._keys import INTERRUPT
from surrecall._pool import Candidate
from surrecall._render import printable, record_text

_VIEW = "RETURN fn::label_view($question, $document)"
_ANSWER = "RETURN fn::label_answer($answer)"
_BACK = "RETURN fn::label_back($answer, $who)"
_SKIP = "RETURN fn::label_skip($question, $document, $who)"
_KEYS = "r relevant  p partly  n not  s skip  b back  q quit"
_GRADES = {"r": (2, "relevant"), "p": (1, "partly"), "n": (0, "not")}
_CTRL_D = "\x04"
_SHOWN = 1500
_WORD = re.compile(r"[^\W_]+")


@dataclass
class Session:
    """What was said: how many documents by grade, skipped candidates, labels that changed, questions that were touched.

    `interrupted` when Ctrl-C ended it; what had been said by then is stored.
    """

    counts: dict[str, int] = field(default_factory=lambda: {name: 0 for _, name in _GRADES.values()})
    skipped: int = 0
    labels: int = 0
    questions: list[RecordID] = field(default_factory=list)
    interrupted: bool = False


@dataclass(frozen=True)
class _Said:
    """One key: for which candidate, by what name, and what fn::label_answer gave; None for a skip."""

    place: int
    name: str
    told: dict[str, Any] | None


def run(database: Database, console: Console, candidates: Sequence[Candidate], who: str, key: Callable[[], str]) -> Session:
    """Ask for each candidate until there is none left, q, or Ctrl-C. Each answer is stored before the next is asked."""
    _writer.require_writer(database, "judgement")
    session = Session()
    try:
        _Asking(database, console, candidates, who, key, session).all()
    except KeyboardInterrupt:
        session.interrupted = True
    return session


class _Asking:
    """The candidates, where it stands among them, and what was said so far."""

    def __init__(
        self,
        database: Database,
        console: Console,
        candidates: Sequence[Candidate],
        who: str,
        key: Callable[[], str],
        session: Session,
    ) -> None:
        self._database, self._console = database, console
        self._candidates, self._who, self._key = candidates, who, key
        self._session = session
        self._said: list[_Said] = []
        self._place = 0

    def all(self) -> None:
        while self._place < len(self._candidates):
            candidate = self._candidates[self._place]
            view = self._view(candidate)
            if view is None:
                self._place += 1
                continue
            self._show(candidate, view)
            if not self._ask(candidate, view):
                return

    def _view(self, candidate: Candidate) -> dict[str, Any] | None:
        """The document as it is now; None where there is nothing to ask any more."""
        shown = candidate.documents[0]
        view: dict[str, Any] = self._database.value(_VIEW, question=candidate.question, document=shown)
        gone = record_text(shown) if not view["there"] else None if view.get("question") else record_text(candidate.question)
        if gone is not None:
            self._tell(f"{gone} is gone meanwhile, left out")
            return None
        if view.get("labelled") is not None:
            self._tell(f"{record_text(shown)} was labelled meanwhile for {record_text(candidate.question)}, left out")
            return None
        return view

    def _ask(self, candidate: Candidate, view: dict[str, Any]) -> bool:
        """One key that does something; False when that is to end."""
        while True:
            self._console.print(Text(f"{_KEYS}{'  m more' if len(view['text']) > _SHOWN else ''} > "), end="")
            pressed = self._pressed()
            if pressed in ("q", _CTRL_D):
                self._console.print("quit")
                return False
            if pressed == "m" and len(view["text"]) > _SHOWN:
                self._console.print("more")
                self._console.print(marked(view["text"], view["words"]))
            elif pressed == "b":
                self._console.print("back")
                if self._back():
                    return True
            elif pressed == "s":
                self._console.print("skip")
                self._skip(candidate)
                return True
            elif pressed in _GRADES:
                self._console.print(_GRADES[pressed][1])
                self._answer(candidate, view, pressed)
                return True
            else:
                self._console.print("?")

    def _pressed(self) -> str:
        try:
            pressed = self._key().lower()
        except EOFError:
            return "q"
        if pressed == INTERRUPT:
            raise KeyboardInterrupt
        return pressed

    def _answer(self, candidate: Candidate, view: dict[str, Any], pressed: str) -> None:
        grade, name = _GRADES[pressed]
        answer = {
            "question": candidate.question,
            "documents": candidate.documents,
            "grade": grade,
            "who": self._who,
            "retrievers": candidate.retrievers,
            "hash": view["hash"],
        }
        try:
            told = self._database.value(_ANSWER, answer=answer)
        except (DataError, UsageError) as error:
            # somebody else wrote meanwhile; what there is now is shown, or left out when it is gone
            self._tell(f"not stored: {error.text}")
            return
        self._session.counts[name] += len(told["documents"])
        self._session.labels += told["labels"]
        self._touch(candidate.question)
        self._next(_Said(self._place, name, told))

    def _skip(self, candidate: Candidate) -> None:
        self._database.run(_SKIP, question=candidate.question, document=candidate.documents[0], who=self._who)
        self._session.skipped += 1
        self._next(_Said(self._place, "skip", None))

    def _next(self, said: _Said) -> None:
        self._said.append(said)
        self._place += 1

    def _back(self) -> bool:
        """Go back to the last candidate, whose answer no longer counts; False where there is none, or it must stay."""
        if not self._said:
            self._tell("nothing to take back")
            return False
        last = self._said[-1]
        if last.told is None:
            self._session.skipped -= 1
        else:
            try:
                self._database.run(_BACK, answer=last.told, who=self._who)
            except (DataError, UsageError) as error:
                self._tell(error.text)
                return False
            self._session.counts[last.name] -= len(last.told["documents"])
            self._session.labels -= last.told["labels"]
        self._said.pop()
        self._place = last.place
        return True

    def _touch(self, question: RecordID) -> None:
        if question not in self._session.questions:
            self._session.questions.append(question)

    def _show(self, candidate: Candidate, view: dict[str, Any]) -> None:
        console, (shown, *same) = self._console, candidate.documents
        console.print()
        place = f"{self._place + 1} of {len(self._candidates)}  {record_text(candidate.question)}"
        console.print(Text(printable(place), style="dim"), soft_wrap=True)
        console.print(Text(printable(view["question"]), style="bold"))
        console.print()
        title = printable(f"{record_text(shown)}  {view.get('title') or ''}".rstrip())
        console.print(Text(title, style="bold"), soft_wrap=True)
        console.print(marked(view["text"][:_SHOWN], view["words"]))
        if len(view["text"]) > _SHOWN:
            console.print(Text(f"… {len(view['text']) - _SHOWN} more characters", style="dim"))
        if same:
            told = f"of the same text, and judged with it: {', '.join(map(record_text, same))}"
            console.print(Text(printable(told)), soft_wrap=True)
        brought = f"brought by {', '.join(candidate.retrievers)}, at best at rank {candidate.rank}"
        console.print(Text(printable(brought), style="dim"), soft_wrap=True)

    def _tell(self, text: str) -> None:
        self._console.print(Text(printable(text), style="yellow"), soft_wrap=True)


def marked(text: str, words: Sequence[str]) -> Text:
    """A text whose words of `words` stand between «», so that they are seen without colour too."""
    wanted, shown, begun = set(words), Text(), 0
    safe = printable(text)
    for match in _WORD.finditer(safe):
        if match[0].lower() in wanted:
            shown.append(safe[begun : match.start()])
            shown.append(f"«{match[0]}»", style="bold underline")
            begun = match.end()
    shown.append(safe[begun:])
    return shown
