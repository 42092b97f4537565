"""Judging in a terminal: keys, marked words, going back, and what is left when it ends."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from surrealdb import RecordID

from conftest import ROOT
from surrecall import Database, Settings, _label_session, _pool
from test_cli import environment, run, seeded, target  # noqa: F401  fixtures

MONEY = RecordID("question", "money_back")


class Terminal:
    """The other end of a terminal that a command runs in."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master, self._process = master, process
        self._rest = ""

    def until(self, text: str) -> str:
        """What is shown up to a text; what comes after it is kept for the next time."""
        shown, deadline = self._rest, time.monotonic() + 30
        while text not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    shown += os.read(self._master, 65536).decode()
                except OSError as error:
                    raise AssertionError(shown) from error
        before, found, self._rest = shown.partition(text)
        return before + found

    def press(self, key: str) -> str:
        """Press a key; what is shown up to the next question."""
        os.write(self._master, key.encode())
        return self.until("quit > ")

    def end(self, key: str) -> tuple[str, int]:
        """Press a last key; what is shown then, and how it ended."""
        os.write(self._master, key.encode())
        shown, deadline = "", time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                if select.select([self._master], [], [], 0.2)[0]:
                    part = os.read(self._master, 65536)
                    if not part:
                        break
                    shown += part.decode()
            except OSError:
                # how Linux says that the other end is closed
                break
        return shown, self._process.wait(timeout=30)


@contextmanager
def terminal(settings: Settings, folder: Path, *arguments: str) -> Iterator[Terminal]:
    env = {"SURREAL_URL": settings.url, "SURREAL_NS": settings.namespace, "SURREAL_DB": settings.database, "TERM": "dumb"}
    if settings.user and settings.password:
        env |= {"SURREAL_USER": settings.user, "SURREAL_PASSWORD": settings.password}
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "surrecall", "label", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(env), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def judged(settings: Settings) -> list[tuple[str, int, str]]:
    with Database(settings) as database:
        rows = database.value("SELECT document, grade, judge, at FROM judgement ORDER BY at")
    return [(row["document"].id, row["grade"], row["judge"]) for row in rows]


@pytest.mark.usefixtures("seeded")
def test_a_session_in_a_terminal(target: Settings, tmp_path: Path) -> None:  # noqa: F811
    asked = ("--who", "Ada", "-k", "5", "--question", "money_back")
    with terminal(target, tmp_path, *asked) as screen:
        first = screen.until("quit > ")
        assert "5 candidates to judge as Ada" in first
        assert "1 of 5  question:money_back" in first
        assert "how do I get my money back" in first
        page = (ROOT / "docs/labelling.md").read_text(encoding="utf-8")
        documented = page.partition("1 of 5  ")[2].partition(" > not")[0].splitlines()
        assert len(documented) > 7
        assert [line for line in documented if line not in first] == []
        second = screen.press("n")
        assert "2 of 5" in second
        # a key that means nothing, an arrow too
        assert "?" in screen.press("x")
        assert "?" in screen.press("\x1b[A")
        assert "?" in screen.press("ß")
        assert "nothing to take back" not in screen.press("b")
        assert "2 of 5" in screen.press("n")
        assert "3 of 5" in screen.press("s")
        shown, code = screen.end("q")
        assert code == 0
        assert "judged 1 document: 1 not, 1 skipped, 1 label changed" in shown
        assert "before" in shown
    rows = judged(target)
    assert [row[1:] for row in rows] == [(0, "Ada"), (0, "Ada")]
    assert rows[0] == rows[1]
    # what was judged is not asked again, what was skipped comes last; Ctrl-C keeps what was said
    with terminal(target, tmp_path, *asked) as screen:
        again = screen.until("quit > ")
        assert "1 of 4" in again
        assert f"article:{rows[0][0]}" not in again
        # typed ahead
        screen.press("rpn")
        last = screen.until("4 of 4") + screen.until("quit > ")
        skipped = next(line for line in second.splitlines() if line.startswith("article:"))
        assert skipped.strip() in last
        shown, code = screen.end("\x03")
        assert code == 130
        assert "interrupted; 3 judgements stored" in shown
    assert [row[1] for row in judged(target)] == [0, 0, 2, 1, 0]


def session(database: Database, keys: str, *, k: int = 5, before: Any = None) -> tuple[_label_session.Session, str, list[Any]]:
    """A session with its keys; `before` is called before each key with its number."""
    found = _pool.pool(database, _pool.Options(k=k, question=MONEY, who="Ada"))
    shown = StringIO()
    pressed = iter(keys)
    count = 0

    def key() -> str:
        nonlocal count
        if before is not None:
            before(count)
        count += 1
        try:
            return next(pressed)
        except StopIteration:
            raise EOFError from None

    console = Console(file=shown, width=100, no_color=True)
    done = _label_session.run(database, console, found.unjudged, "Ada", key)
    return done, shown.getvalue(), [one.documents[0] for one in found.unjudged]


def test_words_of_the_question_are_marked_and_nothing_moves_the_cursor(help_centre: Database) -> None:
    words = " ".join(f"word{place}" for place in range(400))
    help_centre.run(
        "CREATE article:bad SET title = $title, content = $content, embedding = article:refund_request.embedding",
        title="\x1b[2Jtitle",
        content=f"\x1b[31m Money back {words} END",
    )
    _, shown, documents = session(help_centre, "m", k=10)
    assert documents[0].id == "bad" or "article:bad" not in shown
    _, shown, documents = session(help_centre, "s" * documents.index(RecordID("article", "bad")) + "m", k=10)
    assert "«Money» back" in shown or "«Money» «back»" in shown
    assert "\x1b" not in shown
    assert "more characters" in shown
    assert "END" in shown.partition("more characters")[2]


def test_back_at_the_beginning_after_a_skip_and_twice(help_centre: Database) -> None:
    labels = help_centre.value("RETURN fn::labels_of($id)", id=MONEY)
    done, shown, _ = session(help_centre, "brnsbbbbq")
    assert shown.count("nothing to take back") == 2
    assert (done.counts, done.skipped, done.labels) == ({"relevant": 0, "partly": 0, "not": 0}, 0, 0)
    assert help_centre.value("RETURN fn::labels_of($id)", id=MONEY) == labels
    # all is asked again
    assert help_centre.value("SELECT VALUE judged FROM ONLY $id", id=MONEY) is None
    _, shown, documents = session(help_centre, "")
    assert "1 of 5" in shown
    assert len(documents) == 5


def test_what_changes_while_it_runs_is_said(help_centre: Database) -> None:
    def meddle(count: int) -> None:
        first = _pool.pool(help_centre, _pool.Options(k=5, question=MONEY)).unjudged
        document = first[0].documents[0]
        if count == 0:
            help_centre.run("UPDATE $id SET content = 'New words of money'", id=document)
        elif count == 2:
            # the second one is on the screen, the third is labelled by somebody else
            help_centre.run(
                "RETURN fn::label_edit({ question: $question, document: $id, grade: 1, who: 'Eve', why: NONE })",
                question=MONEY,
                id=first[1].documents[0],
            )

    done, shown, documents = session(help_centre, "nnnq", before=meddle)
    assert f"not stored: the document article:{documents[0].id} changed since it was shown" in shown
    assert "New words of «money»" in shown
    assert f"article:{documents[2].id} was labelled meanwhile" in shown
    assert done.counts["not"] == 2


def test_a_question_or_document_that_is_gone_is_left_out(help_centre: Database) -> None:
    help_centre.run("CREATE article:gone SET content = 'my money back', embedding = question:money_back.embedding")

    def delete(_count: int) -> None:
        help_centre.run("DELETE article:gone")

    _, shown, documents = session(help_centre, "nnnnnnnnnn", k=10, before=delete)
    assert RecordID("article", "gone") in documents
    assert "article:gone is gone" in shown

    def forget(_count: int) -> None:
        help_centre.run("DELETE $id", id=MONEY)

    help_centre.run("DELETE judgement; DELETE label_reading")
    help_centre.run("UPDATE $id SET judged = NONE, relevant = [article:refund_request]", id=MONEY)
    done, shown, _ = session(help_centre, "nnnnnnnnnn", before=forget)
    assert "question:money_back is gone meanwhile, left out" in shown
    assert done.counts["not"] == 0
