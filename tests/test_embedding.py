"""surrecall embed: vectors for what lacks one, never of two models, never zeros, and nothing lost when it is cut off."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
import threading
import time
import types
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy
import pytest
from surrealdb import RecordID

from conftest import fresh_settings
from endpoints import Endpoint, broken_off, changed, cut_off, rows, shuffled, slow, status
from surrecall import (
    Database,
    DatabaseError,
    DataError,
    Options,
    Settings,
    SurrecallError,
    UsageError,
    _embed,
    _embedding_rows,
    _files,
    _init,
    _schema,
    evaluate,
)
from surrecall._corpus import Corpus
from surrecall._embedders import Embedder, Kind
from surrecall._embedders.hashing import Hashing
from surrecall._embedders.openai import OpenAI, checked_endpoint
from surrecall._endpoint import _asked_wait
from test_cli import environment, surrecall

DIMENSION = 8
CORPUS = Corpus("paper", ("abstract",), "vec", DIMENSION)
IDS = ("007", "7", "a-b", "x⟩y'z", "https://e.org/a#b", "🙂", 7)
# the key of every test; it may stand nowhere
KEY = "sk-so-secret-0123456789"
OPENAI = ("--embedder", "openai", "--model", "m-1")


@dataclass
class Desk:
    """A project with a database that outlives a command."""

    folder: Path
    settings: Settings

    @property
    def env(self) -> dict[str, str]:
        given = self.settings
        login = {"SURREAL_USER": given.user, "SURREAL_PASSWORD": given.password} if given.user and given.password else {}
        return {"SURREAL_URL": given.url, "SURREAL_NS": given.namespace, "SURREAL_DB": given.database, **login}

    def run(self, *arguments: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = surrecall(*arguments, cwd=self.folder, env=self.env | more)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def embed(self, *arguments: str, code: int = 0, **more: str) -> str:
        """What is said of it, in one line."""
        done = self.run("embed", *arguments, code=code, **more)
        return " ".join((done.stdout + done.stderr).split())

    def value(self, statements: str, **variables: Any) -> Any:
        with Database(self.settings) as database:
            return database.value(statements, **variables)

    def vectors(self) -> list[Any]:
        return [
            row for table in ("paper", "question") for row in self.value(f"SELECT id, vec, embedding FROM {table} ORDER BY id")
        ]

    def without(self) -> list[int]:
        """How many documents and questions lack a vector."""
        return [
            self.value("RETURN count(SELECT VALUE id FROM paper WHERE vec = NONE)"),
            self.value("RETURN count(SELECT VALUE id FROM question WHERE embedding = NONE)"),
        ]

    def recorded(self) -> dict[str, Any]:
        return {f"{row['table']}.{row['field']}": row for row in self.value("SELECT * FROM embedding_model")}


def fill(database: Database, folder: Path) -> None:
    """Seven documents and three questions, none with a vector."""
    database.run(_files.joined(_files.load(folder)))
    for name in IDS:
        row = {"title": f"title {name}", "abstract": f"words of {name}"}
        database.run("CREATE $id CONTENT $row", id=RecordID("paper", name), row=row)
    for name in ("one", "two", "three"):
        database.run("CREATE $id SET text = $t, relevant = [paper:⟨a-b⟩]", id=RecordID("question", name), t=f"question {name}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    here = tmp_path / "here"
    here.mkdir()
    _init.init(here, CORPUS)
    return here


@pytest.fixture
def desk(pytestconfig: pytest.Config, engine: str, tmp_path: Path, folder: Path) -> Desk:
    embedded = engine == "embedded"
    settings = Settings(f"surrealkv://{tmp_path / 'data'}") if embedded else fresh_settings(pytestconfig, engine)
    with Database(settings) as database:
        fill(database, folder)
    return Desk(folder, settings)


@pytest.fixture
def filled(empty: Database, folder: Path) -> Database:
    """The same in a database that is open."""
    fill(empty, folder)
    return empty


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint(DIMENSION)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between tries, which are not waited for."""
    waited: list[float] = []
    monkeypatch.setattr("surrecall._endpoint.sleep", waited.append)
    return waited


# the built-in embedder


def test_hashing_gives_the_same_numbers_everywhere() -> None:
    pinned = {
        "how do I get my money back": [0.1491, -0.7454, 0.2981, 0.2981, 0.4472, -0.1491, 0.0, 0.1491],
        "Übergröße": [-0.6, -0.2, 0.4, 0.0, 0.2, 0.0, -0.6, -0.2],
        "U\u0308BERGRÖSSE": [-0.6, -0.2, 0.4, 0.0, 0.2, 0.0, -0.6, -0.2],
        "": [0, -1, 0, 0, 0, 0, 0, 0],
        "???": [0, 0, 0, 0, 1, 0, 0, 0],
        "🙂 🙂": [-1, 0, 0, 0, 0, 0, 0, 0],
    }
    for text, numbers in pinned.items():
        assert Hashing(8).embed([text])[0] == pytest.approx(numbers, abs=6e-5), text


def test_hashing_is_the_same_whatever_unicode_a_python_knows() -> None:
    """Each character with its neighbours, assigned late or not at all; this came out on Unicode 13 to 15.1."""
    texts = ["".join(map(chr, range(start, start + 12))) for start in range(1, 0x20000, 12)]
    assert sha256(repr(Hashing(64).embed(texts)).encode()).hexdigest()[:16] == "2b36ec4c7b69ea7e"


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 384])
def test_hashing_is_never_zero_and_always_of_length_one(dimension: int) -> None:
    texts = [
        "",
        " ",
        "a",
        "b c",
        "\ud800",
        "the the",
        "…",
        "x" * 5000,
        "\x00",
        "ａｂ",
        "日本語 の 文",
        *map(chr, range(32, 1200, 7)),
    ]
    for text, vector in zip(texts, Hashing(dimension).embed(texts), strict=True):
        assert len(vector) == dimension
        assert math.hypot(*vector) == pytest.approx(1), text


def test_hashing_brings_texts_with_common_words_together() -> None:
    one, two, other = Hashing(256).embed(["refund of my money", "money refunds", "install the printer driver"])
    assert sum(a * b for a, b in zip(one, two, strict=True)) > 0.3 > sum(a * b for a, b in zip(one, other, strict=True))


def test_a_vector_is_usable_here_when_it_is_in_the_database(schema: Database) -> None:
    for length in (0.0, 1e-16, 0.9e-15, 1.1e-15, 1.0, 0.9e15, 1.1e15, 1e300, math.nan, -math.nan, math.inf, -math.inf):
        usable = schema.value("RETURN fn::usable_vector($v, 2)", v=[0.0, length])
        assert (_embed._fault([0.0, length], 2) is None) == usable, length
    assert _embed._fault([1.0], 2) == "1 numbers where 2 belong"


# from nothing to an evaluation


def test_a_question_of_ones_own_is_embedded_and_evaluated(desk: Desk) -> None:
    assert "to embed: 3 of 3 questions, 7 of 7 documents; nothing was stored" in desk.embed("--dry-run")
    assert "no embedder is named, and none is recorded" in desk.embed(code=2)
    assert desk.embed("--embedder", "hashing") == "embedded 3 questions and 7 documents with hashing-1, 8 numbers each"
    # title and text, as BM25 reads them
    assert desk.value("SELECT VALUE vec FROM ONLY paper:⟨7⟩") == Hashing(8).embed(["title 7\nwords of 7"])[0]
    with Database(desk.settings) as database:
        database.run(
            "CREATE question:mine SET text = 'title of a-b', relevant = [paper:⟨a-b⟩];"
            "CREATE paper SET title = 'Bees', abstract = 'Bees and wasps';"
        )
    assert "has no embedding" in " ".join(desk.run("check", code=4).stdout.split())
    # no option: as the last time
    assert desk.embed() == "embedded 1 question and 1 document with hashing-1, 8 numbers each"
    assert desk.embed() == "nothing to embed: 4 questions and 8 documents have their vectors"
    assert desk.value("SELECT VALUE vec FROM ONLY paper WHERE title = 'Bees'") == Hashing(8).embed(["Bees and wasps"])[0]
    assert "complete" in desk.run("evaluate", "-k", "3").stdout
    assert desk.run("check").stdout == "all is well\n"
    assert set(desk.value("SELECT VALUE embedding_model FROM question")) == {"hashing-1"}
    row = desk.recorded()["paper.vec"]
    assert (row["model"], row["dimension"], row["embedded"], row["role"]) == ("hashing-1", 8, 8, "document")
    assert row["first"] < row["last"]
    told = json.loads(desk.run("embed", "--json").stdout)
    assert [part["asked"] for part in told["filled"]] == [0, 0]


def test_only_some_of_the_rows(desk: Desk) -> None:
    with Database(desk.settings) as database:
        database.run("UPDATE question:two SET set = 'other'")
    assert "embedded 1 question with hashing-1" in desk.embed("-e", "hashing", "--questions-only", "--set", "other")
    assert desk.without() == [7, 2]
    assert "embedded 7 documents with" in desk.embed("--documents-only")
    assert desk.without() == [0, 2]
    assert "to embed with hashing-1: 2 of 3 questions, 0 of 7 documents" in desk.embed("--dry-run", "-e", "hashing")
    assert "to embed with hashing-1: 0 of 7 documents" in desk.embed("--dry-run", "--documents-only")


def test_the_help_centre_without_a_project(schema: Database, tmp_path: Path) -> None:
    where = _embed.places(None, tmp_path, schema)
    assert [(place.label, place.dimension) for place in where] == [("question.embedding", 4), ("article.embedding", 4)]


def test_a_corpus_that_is_not_known_or_has_no_vectors(schema: Database, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"has no \[corpus\]"):
        _embed.places(None, folder, schema)
    with pytest.raises(UsageError, match="has no vector field"):
        _embed.places(Corpus("paper", "a"), folder, schema)
    aside = Corpus("paper", "a", "v", 4, adopted=True, vector_table="vectors", link="paper")
    with pytest.raises(UsageError, match="the vectors of paper are in vectors"):
        _embed.places(aside, folder, schema)
    several = Corpus("paper", ("title", "abstract", "keys"), "v", 4)
    assert _embed.places(several, folder, schema)[1].texts == ("abstract", "keys")
    assert [place.table for place in _embed.places(aside, folder, schema, ["question"])] == ["question", "vectors"]


NONSENSE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--questions-only", "--documents-only"), "leave nothing"),
    (("--all", "--set", "default"), "--set names some"),
    (("--all", "--same-model"), "would keep"),
    (("-e", "hashing", "--set", "nosuch"), "there are: default"),
    (("-e", "openai"), "needs --model"),
    (("-e", "sentence-transformers"), "needs --model"),
    (("-e", "hashing", "--model", "x"), "has no model x"),
    ((*OPENAI, "--endpoint", "localhost:8080"), "is no address"),
    ((*OPENAI, "--endpoint", "http://[x/v1"), "is no address"),
    ((*OPENAI, "--endpoint", f"http://me:{KEY}@localhost/v1"), "holds a login or a query"),
    ((*OPENAI, "--endpoint", f"http://localhost/v1?key={KEY}"), "holds a login or a query"),
)


def test_options_that_make_no_sense(desk: Desk) -> None:
    for arguments, complaint in NONSENSE:
        shown = desk.embed(*arguments, code=2)
        assert complaint in shown
        assert KEY not in shown
    assert desk.without() == [7, 3]


# an endpoint


def test_an_endpoint_whose_answers_are_in_any_order(desk: Desk, endpoint: Endpoint) -> None:
    shown = desk.embed(*OPENAI, "--endpoint", endpoint.url + "/", "--batch", "2", OPENAI_API_KEY=KEY)
    assert shown == "embedded 3 questions and 7 documents with m-1, 8 numbers each"
    for name in IDS:
        vector = desk.value("SELECT VALUE vec FROM ONLY $id", id=RecordID("paper", name))
        assert vector == Hashing(8).embed([f"title {name}\nwords of {name}"])[0], name
    assert {request.path for request in endpoint.seen} == {"/v1/embeddings"}
    assert {request.headers["Authorization"] for request in endpoint.seen} == {f"Bearer {KEY}"}
    assert {tuple(request.body) for request in endpoint.seen} == {("model", "input")}
    assert max(len(request.body["input"]) for request in endpoint.seen) == 2
    assert desk.recorded()["question.embedding"]["how"] == {"embedder": "openai", "endpoint": endpoint.url, "dimensions": False}
    # once more: nobody is asked; without an option the recorded endpoint is taken
    asked = len(endpoint.seen)
    desk.embed()
    assert len(endpoint.seen) == asked
    with Database(desk.settings) as database:
        database.run("CREATE paper:new SET abstract = 'new'")
    desk.embed("--max-chars", "2", "--dimensions")
    assert endpoint.seen[-1].body == {"model": "m-1", "input": ["ne"], "dimensions": 8}
    assert endpoint.seen[-1].headers["Authorization"] is None
    assert desk.recorded()["paper.vec"]["how"]["max_chars"] == 2


def test_a_key_goes_nowhere_that_the_database_alone_names(desk: Desk, endpoint: Endpoint) -> None:
    desk.embed(*OPENAI, "--endpoint", endpoint.url)
    endpoint.seen = []
    shown = desk.embed("--all", OPENAI_API_KEY=KEY, code=2)
    assert f"the endpoint {endpoint.url} is named by the database alone, and OPENAI_API_KEY holds a key" in shown
    assert endpoint.seen == []
    desk.embed("--all", "--endpoint", endpoint.url, OPENAI_API_KEY=KEY)
    assert {request.headers["Authorization"] for request in endpoint.seen} == {f"Bearer {KEY}"}


def test_a_login_in_netrc_is_not_sent(desk: Desk, endpoint: Endpoint, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login me password {KEY}\n")
    desk.embed(*OPENAI, NETRC=str(netrc), OPENAI_BASE_URL=endpoint.url)
    desk.embed("--all", NETRC=str(netrc), MINE="other-key", OPENAI_BASE_URL=endpoint.url, code=0)
    desk.embed("--all", "--key-env", "MINE", NETRC=str(netrc), MINE="other-key", OPENAI_BASE_URL=endpoint.url)
    assert {request.headers["Authorization"] for request in endpoint.seen} == {None, "Bearer other-key"}


@pytest.mark.parametrize(
    ("script", "least", "most"),
    [
        ([status(429, Retry_After="7")], [7], [7]),
        ([status(503, Retry_After="0")], [0], [0]),
        ([status(429, Retry_After="soon")], [0.3], [0.7]),
        ([status(500), status(500)], [0.3, 0.7], [0.7, 1.3]),
        ([cut_off], [0.3], [0.7]),
        ([broken_off], [0.3], [0.7]),
        ([lambda request: request.send(200, b"<html>busy</html>")], [0.3], [0.7]),
        ([lambda request: request.connection.close()], [0.3], [0.7]),
        ([slow(1.0)], [0.3], [0.7]),
        ([status(502)] * 6, [0.3, 0.7, 1.5, 3, 6, 12], [0.7, 1.3, 2.5, 5, 10, 20]),
    ],
)
def test_what_passes_is_tried_again(
    endpoint: Endpoint, waits: list[float], script: list[Any], least: list[float], most: list[float]
) -> None:
    embedder = OpenAI(endpoint.url, "m", KEY, timeout=0.3)
    embedder.embed(["first"])
    endpoint.script = list(script)
    assert embedder.embed(["a", "b"]) == Hashing(8).embed(["a", "b"])
    assert len(waits) == len(least)
    assert all(low <= wait <= high for low, wait, high in zip(least, waits, most, strict=True)), waits


def test_a_date_to_wait_for() -> None:
    assert _asked_wait("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert (_asked_wait("Wed, 21 Oct 2099 07:28:00 GMT") or 0) > 1e6
    assert [_asked_wait(text) for text in (None, "", "nan", "inf", "-3", "1.5")] == [None, None, None, None, 0, 1.5]


FAILING: tuple[tuple[Any, str, int], ...] = (
    (status(500, f"sorry, {KEY}"), "answers 500: sorry, …, 7 times", 3),
    (status(429, Retry_After="86400"), "asks to be left alone for 86400 s", 3),
    (status(400, f"too long {KEY}"), "answers 400 to the model m-1: too long …", 3),
    (status(401, "Incorrect key sk-so-***6789"), "the key in OPENAI_API_KEY is not accepted; 0 of 10", 3),
    (status(302, Location="http://127.0.0.1:9/"), "answers 302", 3),
    (lambda request: request.send(404, b"nothing here"), "answers 404 to the model m-1;", 3),
    (lambda request: request.send(200, {"error": "x"}), "holds no list `data` of vectors", 3),
    (lambda request: request.send(200, [1]), "holds no list `data` of vectors", 3),
    (lambda request: request.send(200, {"data": ["x"]}), "holds no list `data` of vectors", 3),
    (changed(lambda vectors: vectors[:-1]), "vectors for 1 texts", 3),
    (changed(lambda vectors: [*vectors, vectors[0]]), "holds 2 vectors for 1 texts", 3),
    (lambda request: request.send(200, {"data": [{"embedding": v} for v in request.vectors()]}), "which text (index)", 3),
    (changed(lambda vectors: ["AAAA" for _ in vectors]), "no lists of numbers", 3),
    (changed(lambda vectors: [["1"] * 8 for _ in vectors]), "no lists of numbers", 3),
    (changed(lambda vectors: [[10**400] * 8 for _ in vectors]), "no lists of numbers", 3),
    (changed(lambda vectors: [v[:5] for v in vectors]), "gives vectors of 5 numbers, question.embedding takes 8", 4),
    (cut_off, "gave an answer that is no JSON, or is cut off, 7 times", 3),
)


def test_what_does_not_pass_stores_nothing(desk: Desk, endpoint: Endpoint, waits: list[float]) -> None:
    before = desk.vectors()
    for always, complaint, code in FAILING:
        endpoint.always = always
        shown = desk.embed(*OPENAI, "--endpoint", endpoint.url, OPENAI_API_KEY=KEY, code=code)
        assert complaint in shown
        assert "next: " in shown
        assert "secret" not in shown
        assert "6789" not in shown
        if code == 4:
            assert "surrecall init --dimension 5" in shown
        assert len(waits) in (0, 6)
        waits.clear()
    assert desk.vectors() == before
    assert desk.recorded() == {}


def test_an_endpoint_that_is_not_there(desk: Desk, endpoint: Endpoint, waits: list[float]) -> None:
    shown = desk.embed(*OPENAI, "--endpoint", "http://127.0.0.1:9/v1", code=3)
    assert "http://127.0.0.1:9/v1 can't be reached, 3 times; 0 of 10 embedded and kept" in shown
    endpoint.always = status(401)
    assert "MINE holds no key" in desk.embed(*OPENAI, "--endpoint", endpoint.url, "--key-env", "MINE", code=3)
    shown = desk.embed(*OPENAI, "--endpoint", endpoint.url, OPENAI_API_KEY=f"{KEY}\n{KEY}", code=2)
    assert "OPENAI_API_KEY holds no key" in shown
    assert KEY not in shown
    assert len(waits) == 2
    assert checked_endpoint("https://h/v1/embeddings/") == "https://h/v1"


def spoilt(text: str, vector: Any) -> Callable[[Any], None]:
    """Another vector for one of the texts."""

    def answer(request: Any) -> None:
        vectors = request.vectors()
        request.send(200, rows([vector if text in asked else v for asked, v in zip(request.body["input"], vectors, strict=True)]))

    return answer


UNUSABLE: tuple[tuple[list[Any], str], ...] = (
    ([0.0] * 8, "a vector of zeros"),
    ([1e-30] + [0.0] * 7, "a vector of zeros"),
    ([math.nan] * 8, "a vector with NaN or infinity"),
    ([None] * 8, "a vector with NaN or infinity"),
    ([math.inf] + [0.0] * 7, "a vector with NaN or infinity"),
    ([1.0] * 7, "7 numbers where 8 belong"),
    ([], "0 numbers where 8 belong"),
)


def test_a_vector_that_can_not_be_used_is_never_stored(desk: Desk, endpoint: Endpoint) -> None:
    for vector, complaint in UNUSABLE:
        desk.value("UPDATE paper SET vec = NONE")
        endpoint.always = spoilt("words of a-b", vector)
        shown = desk.embed(*OPENAI, "--endpoint", endpoint.url, code=4)
        assert f"m-1 left 1 without a usable vector; nothing was stored for them paper:⟨a-b⟩ got {complaint}" in shown
        assert desk.without() == [1, 0]
    # only that one is asked for again
    endpoint.always, endpoint.seen = shuffled, []
    assert "embedded 0 questions and 1 document" in desk.embed()
    assert set(endpoint.texts) == {"title a-b\nwords of a-b"}


def test_nothing_but_zeros_is_given_up(desk: Desk, endpoint: Endpoint) -> None:
    with Database(desk.settings) as database:
        database.run("FOR $n IN 0..40 { CREATE paper SET abstract = 'more ' + <string> $n }")
    endpoint.always = changed(lambda vectors: [[0.0] * 8 for _ in vectors])
    shown = desk.embed(*OPENAI, "--endpoint", endpoint.url, "--documents-only", "--batch", "6", code=4)
    assert "m-1 left 12 without a usable vector" in shown
    # one to try, two batches
    assert len(endpoint.seen) == 3
    assert desk.recorded() == {}


def test_the_key_stands_nowhere(desk: Desk, endpoint: Endpoint, waits: list[float]) -> None:
    assert KEY not in repr(OpenAI(endpoint.url, "m", KEY))
    endpoint.script = [shuffled, status(500, KEY)]
    shown = desk.embed(*OPENAI, "--endpoint", endpoint.url, OPENAI_API_KEY=KEY)
    endpoint.always = status(400, f"bad {KEY}")
    shown += desk.embed("--all", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=endpoint.url, code=3)
    shown += desk.run("check", OPENAI_API_KEY=KEY).stdout
    assert KEY not in shown
    assert waits
    with Database(desk.settings) as database:
        tables = database.value("INFO FOR DB")["tables"]
        everything = str([database.value(f"SELECT * FROM {table}") for table in tables])
    assert endpoint.url in everything
    assert KEY not in everything


# cut off


def start(desk: Desk, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "surrecall", "embed", *arguments]
    return subprocess.Popen(
        command, cwd=desk.folder, env=environment(desk.env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_cut_off_in_the_middle_and_resumed(desk: Desk, endpoint: Endpoint, how: signal.Signals, code: int) -> None:
    endpoint.always = slow(0.15)
    process = start(desk, *OPENAI, "--endpoint", endpoint.url, "--batch", "2")
    # the try, two batches of questions, one of documents; the next is on its way
    wait_for(lambda: len(endpoint.seen) >= 5)
    process.send_signal(how)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code, out + err
    if how == signal.SIGINT:
        assert "interrupted; 5 embedded and kept, 5 of 10 left" in " ".join(err.split())
        assert "surrecall embed goes on" in err
    assert desk.without() == [5, 0]
    endpoint.always, endpoint.seen = shuffled, []
    assert "embedded 0 questions and 5 documents with m-1" in desk.embed()
    # one of them to try the model
    assert (len(endpoint.texts), len(set(endpoint.texts))) == (6, 5)
    assert desk.without() == [0, 0]
    assert desk.recorded()["paper.vec"]["embedded"] == 7


class Meddling:
    """A model during whose first calls something else happens."""

    def __init__(self, *events: Callable[[], Any], model: str = "m-1") -> None:
        self.model = model
        self.events = list(events)
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.texts += texts
        if self.events:
            self.events.pop(0)()
        return Hashing(DIMENSION).embed(texts)


def embed_with(database: Database, with_model: Embedder, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> _embed.Embedded:
    with monkeypatch.context() as patch:
        patch.setattr(_embed, "_embedder", lambda *_: with_model)
        where = [_embedding_rows.Place("question", "question", ("text",), "embedding", DIMENSION),
                 _embedding_rows.Place("document", "paper", ("abstract",), "vec", DIMENSION)]  # fmt: skip
        return _embed.embed(database, where, _embed.Asked(**{"embedder": Kind.OPENAI, "model": with_model.model, **asked}))


def nothing() -> None:
    return


def test_rows_that_change_while_they_are_embedded(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    meddling = Meddling(
        nothing,  # the try
        lambda: filled.run(
            "DELETE paper:⟨007⟩; UPDATE paper:⟨7⟩ SET abstract = 'other words'; UPDATE paper:⟨a-b⟩ SET vec = [1,2,3,4,5,6,7,8];"
        ),
    )
    done = embed_with(filled, meddling, monkeypatch, roles=("document",))
    assert done.filled[0].embedded == 5
    assert filled.value("RETURN record::exists(paper:⟨007⟩)") is False
    # neither the old text's vector, nor one over what somebody else stored
    assert filled.value("SELECT VALUE vec FROM ONLY paper:⟨7⟩") == Hashing(8).embed(["title 7\nother words"])[0]
    assert filled.value("SELECT VALUE vec FROM ONLY paper:⟨a-b⟩") == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_row_that_never_stands_still_is_given_up(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    meddling = Meddling(nothing, *[lambda: filled.run("UPDATE paper:⟨7⟩ SET abstract += '!'")] * 3)
    with pytest.raises(DatabaseError, match="paper:⟨7⟩ takes no vector"):
        embed_with(filled, meddling, monkeypatch, roles=("document",))
    assert filled.value("RETURN count(SELECT VALUE id FROM paper WHERE vec = NONE)") == 1


def test_a_second_one_at_the_same_time(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    second = Meddling()
    first = Meddling(nothing, lambda: embed_with(filled, second, monkeypatch))
    done = embed_with(filled, first, monkeypatch)
    assert [part.embedded for part in done.filled] == [0, 0]
    assert filled.value("SELECT VALUE embedded FROM embedding_model ORDER BY role") == [7, 3]


def test_a_second_one_with_another_model(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither had stored anything when both began; the one that stores last is refused."""
    first = Meddling(nothing, lambda: embed_with(filled, Meddling(model="m-2"), monkeypatch, roles=("question",)))
    with pytest.raises(UsageError, match=r"question\.embedding holds vectors of m-2, not of m-1"):
        embed_with(filled, first, monkeypatch)
    assert set(filled.value("SELECT VALUE embedding_model FROM question")) == {"m-2"}


def test_a_row_that_refuses_its_vector_is_named(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.run("OPTION IMPORT; UPDATE question:two SET split = 'other';")
    with pytest.raises(DataError, match=r"question:two refuses its vector: .*split"):
        embed_with(filled, Meddling(), monkeypatch)


# two models


def test_another_model_is_refused_unless_every_vector_is_replaced(desk: Desk, endpoint: Endpoint) -> None:
    desk.embed("-e", "hashing")
    before = desk.vectors()
    other = (*OPENAI, "--endpoint", endpoint.url)
    for arguments in (other, (*other, "--documents-only"), (*other, "--questions-only"), (*other, "--dry-run")):
        shown = desk.embed(*arguments, code=2)
        assert re.search(r"(question.embedding|paper.vec) holds vectors of hashing-1, not of m-1", shown)
        assert "--all" in shown
    assert "prefix" in desk.embed("--prefix-document", "passage: ", code=2)
    assert (desk.vectors(), endpoint.seen) == (before, [])
    prefixes = ("--prefix-query", "query: ", "--prefix-document", "passage: ")
    assert "embedded 3 questions and 7 documents with m-1" in desk.embed(*other, *prefixes, "--all")
    assert "query: question one" in endpoint.texts
    assert "passage: title 7\nwords of 7" in endpoint.texts
    row = desk.recorded()["paper.vec"]
    assert (row["model"], row["prefix"], row["embedded"], "next" in row) == ("m-1", "passage: ", 7, False)
    # and goes on with the prefixes
    with Database(desk.settings) as database:
        database.run("CREATE paper:new SET abstract = 'new'")
    desk.embed()
    assert endpoint.texts[-1] == "passage: new"
    assert desk.run("check").stdout == "all is well\n"


def test_a_replacement_that_was_cut_off(desk: Desk, endpoint: Endpoint, waits: list[float]) -> None:
    desk.embed("-e", "hashing")
    desk.run("evaluate", "-k", "3", "-r", "vector")
    # the try, two batches of questions, two of documents, then no more
    endpoint.script = [shuffled] * 5
    endpoint.always = status(500)
    replace = (*OPENAI, "--endpoint", endpoint.url, "--batch", "2", "--all")
    assert "7 of 10 embedded and kept" in desk.embed(*replace, code=3)
    assert len(waits) == 6
    shown = " ".join(desk.run("evaluate", "-k", "3", code=4).stderr.split())
    assert "paper.vec is being filled with vectors of m-1 in place of the others" in shown
    with pytest.raises(DataError, match="vectors of two models"), Database(desk.settings) as database:
        database.value("RETURN fn::evaluate(3)")
    shown = " ".join(desk.run("check", code=4).stdout.split())
    assert "surrecall embed finishes it" in shown.replace("paper.vec ", "")
    assert "are being replaced by those of m-1, not of hashing-1" in desk.embed("-e", "hashing", code=2)
    endpoint.always, endpoint.seen = shuffled, []
    assert "to embed with m-1: 7 of 7 documents" in desk.embed("--dry-run")
    assert "embedded 3 documents with m-1" in desk.embed()
    # one of them to try the model, from the first document
    assert len(endpoint.texts) == 4
    assert desk.recorded()["paper.vec"]["embedded"] == 7
    assert {row["model"] for row in desk.recorded().values()} == {"m-1"}
    desk.run("evaluate", "-k", "3")
    assert desk.run("check").stdout == "all is well\n"


def test_a_replacement_begun_and_then_another(desk: Desk, endpoint: Endpoint, waits: list[float]) -> None:
    desk.embed("-e", "hashing")
    endpoint.script = [shuffled] * 3
    endpoint.always = status(500)
    desk.embed(*OPENAI, "--endpoint", endpoint.url, "--batch", "2", "--all", code=3)
    assert waits
    assert "embedded 3 questions and 7 documents with hashing-1" in desk.embed("-e", "hashing", "--all")
    assert set(desk.value("SELECT VALUE embedding_model FROM question")) == {"hashing-1"}
    assert desk.run("check").stdout == "all is well\n"


def test_documents_that_come_in_while_every_vector_is_replaced(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    embed_with(filled, Meddling(model="m-0"), monkeypatch)
    meddling = Meddling(
        nothing, nothing, lambda: filled.run("CREATE paper:0 SET abstract = 'early'; CREATE paper:z SET abstract = 'late'")
    )
    done = embed_with(filled, meddling, monkeypatch, every=True, batch=3)
    assert done.filled[1].embedded == 9
    assert filled.value("RETURN count(SELECT VALUE id FROM paper WHERE vec = NONE)") == 0


def test_a_document_without_text(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.run("CREATE paper:blank SET abstract = ' '; CREATE paper:head SET abstract = '', title = 'Head';")
    done = embed_with(filled, Meddling(), monkeypatch, max_chars=9)
    assert (done.filled[1].embedded, done.filled[1].without_text, done.filled[1].cut) == (8, 1, 7)
    assert filled.value("SELECT VALUE vec FROM ONLY paper:head") == Hashing(8).embed(["Head"])[0]
    done = embed_with(filled, Meddling(), monkeypatch, every=True)
    assert (done.filled[1].embedded, done.filled[1].without_text) == (8, 1)
    # with a vector of the model that is replaced it can't stay
    filled.run("UPDATE paper:blank SET vec = [1,0,0,0,0,0,0,0]")
    with pytest.raises(DataError, match="paper:blank has a vector and no text"):
        embed_with(filled, Meddling(model="m-2"), monkeypatch, every=True)
    assert [row["kind"] for row in filled.value("RETURN fn::check_embeddings()")] == ["embedding"]
    filled.run("UPDATE paper:blank SET abstract = 'text'")
    embed_with(filled, Meddling(model="m-2"), monkeypatch)
    assert filled.value("RETURN fn::check_embeddings()") == []


def test_what_was_left_out_is_said(desk: Desk) -> None:
    with Database(desk.settings) as database:
        database.run("CREATE paper:blank SET abstract = ' '")
    shown = desk.embed("-e", "hashing", "--max-chars", "10")
    assert "warning: 3 questions cut at --max-chars" in shown
    assert "warning: 7 documents cut at" in shown
    assert "warning: 1 document without text" in shown


def test_vectors_of_an_unknown_model(desk: Desk) -> None:
    with Database(desk.settings) as database:
        database.run("UPDATE paper:⟨7⟩ SET vec = [1,0,0,0,0,0,0,0]; UPDATE question:one SET embedding = [1,0,0,0,0,0,0,0];")
    assert "question.embedding holds 1 vector whose model is not recorded" in desk.embed("-e", "hashing", code=2)
    shown = desk.embed("-e", "hashing", "--documents-only", code=2)
    assert "paper.vec holds 1 vector whose model is not recorded" in shown
    assert "--same-model states that they are of hashing-1; --all replaces those of your documents for good" in shown
    assert desk.without() == [6, 2]
    # unknown is no other: it is evaluated, and check says nothing of it
    told = desk.value("RETURN fn::check_embeddings()")
    assert told == []
    assert "embedded 2 questions and 6 documents" in desk.embed("-e", "hashing", "--same-model")
    assert desk.value("SELECT VALUE vec FROM ONLY paper:⟨7⟩") == [1, 0, 0, 0, 0, 0, 0, 0]
    assert set(desk.value("SELECT VALUE embedding_model FROM question")) == {"hashing-1"}
    # new ones of nobody knows which model: of a question it is seen
    with Database(desk.settings) as database:
        database.run("CREATE question:late SET text = 'late', relevant = [paper:⟨7⟩], embedding = [1,0,0,0,0,0,0,0]")
    assert "holds 1 vector whose model" in desk.embed(code=2)
    assert "nothing to embed" in desk.embed("--same-model")
    assert desk.embed() == "nothing to embed: 4 questions and 7 documents have their vectors"


def test_questions_and_documents_of_two_models_are_not_evaluated(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    embed_with(filled, Meddling(), monkeypatch)
    filled.run("UPDATE question SET embedding_model = NONE")
    evaluate(filled, Options([3]))
    filled.run("UPDATE question SET embedding_model = 'm-2', set = 'b' WHERE id != question:one")
    evaluate(filled, Options([3]))
    with pytest.raises(DataError) as caught:
        evaluate(filled, Options([3], question_set="b"))
    assert "golden set b has vectors of m-2, the documents of m-1" in caught.value.message
    assert "surrecall embed --all --questions-only" in (caught.value.hint or "")
    filled.run("UPDATE question:two SET embedding_model = 'm-1'")
    with pytest.raises(DataError, match="golden set b has vectors of m-1 and of m-2"):
        evaluate(filled, Options([3], question_set="b"))
    assert filled.value("RETURN count(SELECT VALUE id FROM evaluation)") == 2
    # on both executors
    for statement in ("RETURN fn::check_embeddings()", "RETURN [0].map(|$x| fn::check_embeddings())[0]"):
        assert [row["subject"] for row in filled.value(statement)] == ["golden set b"]
    # replacing the questions' alone takes the documents' model
    done = embed_with(filled, Meddling(), monkeypatch, embedder=None, model=None, roles=("question",), every=True)
    assert done.model == "m-1"
    evaluate(filled, Options([3], question_set="b"))


# a table of the user's own


def test_a_foreign_table_of_any_ids_read_in_pages(empty: Database, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_embedding_rows, "_PAGE", 3)
    monkeypatch.setattr(_embedding_rows, "_STORED_AT_ONCE", 2)
    empty.run(_files.joined(_files.load(folder)))
    odd = "my papers"
    ids: list[Any] = [*IDS, uuid.UUID("018f0000-0000-7000-8000-000000000000"), -5, 10**12, "x" * 300, [1, "a"], {"a": 1}]
    empty.run("DEFINE TABLE ⟨my papers⟩ SCHEMALESS COMMENT 'mine'")
    before = empty.value("INFO FOR DB"), empty.value("INFO FOR TABLE ⟨my papers⟩")
    for name in ids:
        row = {"meta": {"the body": f"body of {name}"}, "more": ["a", "b", 7], "title": 5, "set": "x", "v": {"e": []}}
        empty.run("CREATE $id CONTENT $row", id=RecordID(odd, name), row=row)
    where = [
        _embedding_rows.Place("question", "question", ("text",), "embedding", 8),
        _embedding_rows.Place("document", odd, ("meta.the body", "more", "gone"), "v.e", 8),
    ]
    done = _embed.embed(empty, where, _embed.Asked(embedder=Kind.HASHING, batch=2))
    assert done.filled[1].embedded == len(ids)
    for name in ids:
        row = empty.value("SELECT * FROM ONLY $id", id=RecordID(odd, name))
        assert row["v"]["e"] == Hashing(8).embed([f"body of {name}\na\nb"])[0], name
    assert (empty.value("INFO FOR DB"), empty.value("INFO FOR TABLE ⟨my papers⟩")) == before
    again = _embed.embed(empty, where, _embed.Asked(embedder=Kind.HASHING, every=True, batch=2))
    assert again.filled[1].embedded == len(ids)


def test_under_other_names(pytestconfig: pytest.Config, engine: str, tmp_path: Path) -> None:
    names = {"question": "golden", "embedding_model": "made_by", "fn::require_model": "fn::require_maker"}
    corpus = replace(CORPUS, names=names)
    _init.init(tmp_path, corpus)
    with Database(replace(fresh_settings(pytestconfig, engine), names=names)) as database:
        database.run_as_written("CREATE question:quiz SET text = 'ours'; CREATE embedding_model:car SET wheels = 4;")
        _schema.apply(database, tmp_path)
        database.run("CREATE paper:a SET abstract = 'a'; CREATE question:q SET text = 'q', relevant = [paper:a];")
        where = _embed.places(corpus, tmp_path, database)
        done = _embed.embed(database, where, _embed.Asked(embedder=Kind.HASHING))
        assert [(part.field, part.embedded) for part in done.filled] == [("golden.embedding", 1), ("paper.vec", 1)]
        assert database.run_as_written("SELECT VALUE model FROM made_by; SELECT VALUE embedding_model FROM golden;") == [
            ["hashing-1", "hashing-1"],
            ["hashing-1"],
        ]
        with pytest.raises(UsageError, match=r"golden\.embedding holds vectors of hashing-1, not of m-2"):
            _embed.count(database, where, _embed.Asked(embedder=Kind.OPENAI, model="m-2"))
        _embed.embed(database, where, _embed.Asked(every=True))
        evaluate(database, Options([1]))
        database.run("UPDATE question SET embedding_model = 'm-2'")
        with pytest.raises(DataError, match="the documents of hashing-1"):
            evaluate(database, Options([1]))
        assert database.run_as_written("SELECT * OMIT id FROM question, embedding_model") == [[{"text": "ours"}, {"wheels": 4}]]


# a model on this machine


class Model:
    """What sentence_transformers.SentenceTransformer takes and gives."""

    made: ClassVar[list[tuple[str, int | None]]] = []

    def __init__(self, model_name_or_path: str, *, truncate_dim: int | None = None) -> None:
        if model_name_or_path == "nowhere/none":
            raise OSError("nowhere/none is not a local folder\nand no model of the hub")
        self.made.append((model_name_or_path, truncate_dim))

    def encode(
        self,
        sentences: list[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = False,
    ) -> numpy.ndarray[Any, Any]:
        assert (prompt_name, prompt, convert_to_numpy, show_progress_bar) == (None, None, True, False)
        assert isinstance(sentences, list)
        assert batch_size == 5
        assert not normalize_embeddings
        return numpy.array(Hashing(DIMENSION).embed(sentences), dtype="float32")


def test_a_sentence_transformers_model(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = Model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    shown = desk.embed("-e", "sentence-transformers", "-m", "nowhere/none", "--batch", "5", code=3)
    assert "the model nowhere/none can't be loaded: nowhere/none is not a local folder; 0 of 10" in shown
    Model.made.clear()
    shown = desk.embed("-e", "sentence-transformers", "-m", "all-MiniLM-L6-v2", "--batch", "5")
    assert "embedded 3 questions and 7 documents with all-MiniLM-L6-v2, 8 numbers each" in shown
    desk.embed("--batch", "5", "--all", "--dimensions")
    # loaded once a run, and not at all when there is nothing to embed
    desk.embed()
    assert Model.made == [("all-MiniLM-L6-v2", None), ("all-MiniLM-L6-v2", 8)]


def test_without_the_extra(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    shown = desk.embed("-e", "sentence-transformers", "-m", "x", code=2)
    assert "pip install 'surrecall[sentence-transformers]'" in shown


def test_a_schema_of_before(empty: Database) -> None:
    empty.run("DEFINE TABLE question")
    where = [_embedding_rows.Place("question", "question", ("text",), "embedding", 8)]
    with pytest.raises(SurrecallError, match="embedding_model") as caught:
        _embed.embed(empty, where, _embed.Asked(embedder=Kind.HASHING))
    assert caught.value.hint == "surrecall apply"
