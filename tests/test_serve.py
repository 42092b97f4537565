"""The live page: it reads and writes through the database's functions, in a real browser, and only for who holds the token."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests as http
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from surrealdb import RecordID

from browser import accessibility_faults, chromium, complaints, look, requests
from surrecall import Database, Options, _serve, evaluate
from surrecall._errors import UsageError
from surrecall._serve import codes

_HOSTILE = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'> \x1b[31m"


Form = Mapping[str, str | list[str]]


@dataclass(frozen=True)
class Served:
    """A page that is served: its address, its token, and the database behind it."""

    url: str
    token: str
    database: Database

    def get(self, path: str, **more: object) -> http.Response:
        return http.get(self.url + path, timeout=60, **more)  # type: ignore[arg-type]

    def post(
        self, path: str, form: Mapping[str, str | list[str]], *, token: str | None = None, origin: str | None = None
    ) -> http.Response:
        cookies = {"surrecall_token": self.token if token is None else token}
        headers = {"accept": "application/json", "origin": self.url if origin is None else origin}
        return http.post(self.url + path, data=form, cookies=cookies, headers=headers, timeout=60, allow_redirects=False)


@contextmanager
def serving(database: Database, who: str = "Ada") -> Iterator[Served]:
    """The page on a free port, in a thread."""
    site = _serve.Site(database, Path.cwd(), None, (1, 3, 5), who)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = _serve.Server(_serve.make_app(site))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", site.token, database)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()


@pytest.fixture
def served(help_centre: Database) -> Iterator[Served]:
    help_centre.run("UPDATE question:late_parcel SET text = text + $hostile", hostile=_HOSTILE)
    help_centre.run("UPDATE article:gift_card SET title = $hostile", hostile=_HOSTILE)
    evaluate(help_centre, Options((1, 3, 5), note=_HOSTILE))
    evaluate(help_centre, Options((1, 3, 5)))
    with serving(help_centre) as page:
        yield page


def _until(browser: webdriver.Chrome, holds: Callable[[webdriver.Chrome], bool]) -> None:
    """Wait for what the page is to show."""
    WebDriverWait(browser, 60).until(holds)


def _stored(browser: webdriver.Chrome) -> int:
    return sum("Stored" in said.text for said in browser.find_elements(By.CSS_SELECTOR, ".said"))


def _listed(browser: webdriver.Chrome) -> int:
    return int(browser.execute_script("return document.querySelectorAll('#evaluations tbody tr').length"))


def _question(key: str) -> str:
    return "~" + codes.code(RecordID("question", key))


def _paths(served: Served) -> list[str]:
    first, second = served.database.value("SELECT VALUE id FROM evaluation ORDER BY started")
    sides = f"a=~{codes.code(first)}&b=~{codes.code(second)}"
    return [
        "/", f"/compare?{sides}&retriever=hybrid", "/compare?a=bm25&b=hybrid", f"/question?id={_question('late_parcel')}&k=3",
        "/try?text=parcel&a=bm25&b=bm25&k=3", "/label", f"/label?question={_question('late_parcel')}",
        f"/report?evaluation=~{codes.code(first)}",
    ]  # fmt: skip


def test_every_page_in_a_browser(served: Served) -> None:
    with chromium() as browser:
        look(browser, f"{served.url}/?token={served.token}", 1280)
        # the token is out of the address
        assert browser.current_url == f"{served.url}/"
        for path in _paths(served):
            for width, dark in ((360, True), (1280, False)):
                look(browser, served.url + path, width, dark=dark)
                assert "owned" not in browser.title
                assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), path
                assert accessibility_faults(browser) == [], path
                assert complaints(browser) == [], path
        asked = {urlsplit(url).netloc for url in requests(browser) if not url.startswith("data:")}
        assert asked == {urlsplit(served.url).netloc}


def test_labelling_by_clicks_and_by_keyboard_ends_in_rows(served: Served) -> None:
    page = f"{served.url}/label?question={_question('late_parcel')}"
    with chromium() as browser, chromium() as second:
        for one in (browser, second):
            look(one, f"{served.url}/?token={served.token}", 1280)
            look(one, page, 1280)
        forms = browser.find_elements(By.CSS_SELECTOR, "form.judge")
        others = second.find_elements(By.CSS_SELECTOR, "form.judge")
        assert len(forms) == len(others) > 3
        # one clicks from above, the other goes by the keyboard from below, at the same time
        forms[0].find_element(By.CSS_SELECTOR, "button[value=not]").click()
        others[-1].find_element(By.CSS_SELECTOR, "button[value=relevant]").send_keys(Keys.ENTER)
        others[-2].find_element(By.CSS_SELECTOR, "button").send_keys("p")
        forms[1].find_element(By.CSS_SELECTOR, "button[value=relevant]").click()
        for one in (browser, second):
            _until(one, lambda now: _stored(now) == 2)
    rows = served.database.value("SELECT grade, judge, source, document, label, at FROM judgement ORDER BY at, document")
    assert sorted(row["grade"] for row in rows) == [0, 1, 2, 2]
    assert {(row["judge"], row["source"]) for row in rows} == {("Ada", "person")}
    labels = {str(one["document"]): one["grade"] for one in served.database.value("RETURN fn::labels_of(question:late_parcel)")}
    for row in rows:
        # partly is below the threshold of the set, and adds no label
        assert labels.get(str(row["document"])) == {0: 0, 1: None, 2: 1}[row["grade"]]
    assert labels["article:track_order"] == 1


def test_an_evaluation_appears_on_an_open_page(served: Served) -> None:
    with chromium() as browser:
        look(browser, f"{served.url}/?token={served.token}", 1280)
        assert _listed(browser) == 2
        browser.find_element(By.CSS_SELECTOR, "form[action='/evaluate'] button").click()
        _until(browser, lambda now: _listed(now) == 3)
        if not served.database.settings.is_embedded:
            # and one that somebody else ran
            evaluate(served.database, Options((3,), note="from elsewhere"))
            _until(browser, lambda now: _listed(now) == 4)
            assert "An evaluation of default came to an end" in browser.find_element(By.ID, "news").text
        assert complaints(browser) == []


def test_only_the_holder_of_the_token_writes_and_only_from_this_page(served: Served) -> None:
    read = served.database.value("RETURN fn::document_hash(article:gift_card)")
    form = {
        "question": codes.code(RecordID("question", "late_parcel")),
        "document": codes.code(RecordID("article", "gift_card")),
        "grade": "relevant",
        "hash": read,
    }
    assert served.post("/label", form, token="guessed").status_code == 403
    assert served.post("/label", form, token="").status_code == 403
    assert served.post("/label", form, origin="http://evil.example").status_code == 403
    assert served.post("/label", form, origin="").status_code == 403
    assert served.post("/evaluate", {}, token="guessed").status_code == 403
    assert served.database.value("SELECT VALUE id FROM judgement") == []
    # a foreign name that leads to this machine
    assert served.get("/", headers={"host": "evil.example:80"}).status_code == 421
    answer = served.get("/")
    assert answer.status_code == 200
    assert served.token not in answer.text
    assert 'form method="post"' not in answer.text
    assert "reading only" in answer.text
    assert answer.headers["x-frame-options"] == "DENY"
    assert "script-src 'nonce-" in answer.headers["content-security-policy"]
    assert served.post("/label", form).json() == {"grade": "relevant", "labels": 1, "documents": 1}


def test_bad_requests_say_what_to_do(served: Served) -> None:
    question, document = codes.code(RecordID("question", "late_parcel")), codes.code(RecordID("article", "gift_card"))
    read = served.database.value("RETURN fn::document_hash(article:gift_card)")
    good: dict[str, str | list[str]] = {"question": question, "document": document, "grade": "relevant", "hash": read}
    changes: tuple[tuple[Form, str], ...] = (
        ({"grade": "great"}, "no grade is named 'great'"),
        ({"question": document}, "no id of this page"),
        ({"question": "!!"}, "no id of this page"),
        ({"document": []}, "no document is named"),
        ({"question": codes.code(RecordID("question", "nope"))}, "no such question"),
        ({"document": codes.code(RecordID("article", "nope"))}, "is gone"),
        ({"hash": "0" * 64}, "changed since it was shown"),
        ({"hash": ""}, "what was read is not named"),
    )
    for change, said in changes:
        answer = served.post("/label", {**good, **change})
        assert answer.status_code == 400
        assert said in answer.json()["error"]
    assert served.database.value("SELECT VALUE id FROM judgement") == []
    for path, said in (
        ("/report?evaluation=~nonsense", "no id of this page"),
        ("/compare?a=nope&b=bm25", "no retriever named nope"),
        ("/question", "no question is named"),
        ("/label?page=0", "no whole number"),
        ("/try?text=parcel&a=nope&b=vector&k=3", "no retriever named nope"),
    ):
        assert said in served.get(path).text
    unknown = served.post("/evaluate", {"set": "nope"})
    assert (unknown.status_code, unknown.json()["error"]) == (400, "there is no golden set 'nope'")
    assert served.post("/label", {"question": "x" * 200_000}).status_code == 413
    assert served.get("/nowhere").status_code == 404
    with pytest.raises(UsageError):
        codes.record("")


@pytest.mark.parametrize("key", ["a b", 7, "7", "⟨x⟩", "a/b:c?d#e&f", ["a", 1], ""])
def test_ids_go_through_an_address_unchanged(key: object) -> None:
    record = RecordID("question", key)  # type: ignore[arg-type]
    assert codes.record(codes.code(record), "question") == record
    assert re.fullmatch(r"[\w-]+", codes.code(record))


def test_the_command_ends_by_control_c(tmp_path: Path) -> None:
    """The address that is printed opens the page, and Ctrl-C ends it while a page is open."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SURREAL_", "SURRECALL_"))}
    environment = clean | {"SURREAL_URL": "surrealkv://recall.db"}
    surrecall = [sys.executable, "-m", "surrecall"]
    for words in (["apply"], ["seed"]):
        subprocess.run([*surrecall, *words], cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=120)
    process = subprocess.Popen(
        [*surrecall, "serve", "--port", "0", "--who", "Ada"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", address)
        with http.Session() as session:
            for _ in range(100):
                try:
                    page = session.get(address, timeout=30)
                    break
                except http.ConnectionError:
                    time.sleep(0.1)
            assert 'action="/evaluate"' in page.text
            # a page that is open does not hold its end up
            opened = session.get(address.partition("?")[0] + "events", stream=True, timeout=30)
            assert next(opened.iter_lines()) == b": here"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) in (0, 130)
        assert "Traceback" not in process.stdout.read()
    finally:
        process.kill()
        process.stdout.close()
