"""Questions that a language model drafts, against an endpoint that behaves and one that does not."""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import Any

import pytest
from surrealdb import RecordID

from conftest import ROOT
from endpoints import Answer, Endpoint, Request, broken_off, chat, chosen, status
from surrecall import Database, DataError, Interrupted, Options, SurrecallError, UsageError, _draft, _llm, evaluate
from surrecall._errors import EmbeddingError
from test_cli import Run, run, seeded, target  # noqa: F401  fixtures
from test_embedding import endpoint, waits  # noqa: F401  fixtures

_PASSAGE = re.compile(r"<document-\w+>\n(.*)\n</document-\w+>", re.DOTALL)
_ARTICLES = 10


def own(text: str) -> dict[str, Any]:
    """A question of its own for each passage, in no word of it."""
    name = hashlib.sha256(text.encode()).hexdigest()
    return {"paraphrase": f"Zq{name[:6]} zq{name[6:12]} zq{name[12:18]}?", "exact": None, "phrase": None}


def words(seed: str) -> str:
    """Letters that no other seed gives."""
    return hashlib.sha256(seed.encode()).hexdigest()[:9].translate(str.maketrans("0123456789", "ghijklmnop"))


def model(endpoint: Endpoint, **options: Any) -> _llm.Chat:  # noqa: F811
    return _llm.Chat(_llm.Asked("m-1", endpoint.url, **options))


def drafted(database: Database, endpoint: Endpoint, **options: Any) -> _draft.Drafted:  # noqa: F811
    asked = _draft.Options(**options)
    planned = _draft.plan(database, model(endpoint), asked)
    return _draft.draft(database, model(endpoint), planned, asked)


def stored(database: Database) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = database.value("SELECT * FROM question WHERE source = 'generated' ORDER BY id")
    return rows


def test_each_document_gives_a_question_of_a_set_of_its_own(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    passages = help_centre.value("SELECT VALUE fn::document_texts([id])[0].text FROM article")
    endpoint.always = chosen(lambda sent: own(sent) | {"phrase": _PASSAGE.findall(sent)[0].splitlines()[1][:60]})
    done = drafted(help_centre, endpoint)
    assert (done.documents, done.stored, done.held_back, done.malformed, done.model) == (_ARTICLES, _ARTICLES, [], 0, "m-1")
    rows = stored(help_centre)
    assert len({row["relevant"][0].id for row in rows}) == _ARTICLES
    assert {row["set"] for row in rows} == {"drafted"}
    assert all(row["tags"] == ["draft", "paraphrase"] for row in rows)
    assert all(row["kind"] == "conceptual" for row in rows)
    assert all(row["anchors"][0]["document"] == row["relevant"][0] for row in rows)
    assert len(help_centre.value("SELECT id FROM question WHERE set = 'default'")) == 8
    # the passage stands between tags that it can't have known, and the prompt is not mixed with it
    sent = [request.body["messages"] for request in endpoint.seen]
    assert sorted(_PASSAGE.findall(messages[1]["content"])[0] for messages in sent) == sorted(passages)
    assert {messages[0]["content"] for messages in sent} == {_llm.prompt("draft").text}
    assert all(request.body["temperature"] == 0 for request in endpoint.seen)
    log = help_centre.value("SELECT outcome, tokens, prompt FROM draft_log")
    assert {(row["outcome"], row["tokens"]["in"], row["prompt"]) for row in log} == {
        ("drafted", 100, _llm.prompt("draft").version)
    }


def test_a_phrase_of_the_title_is_no_anchor(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    """Chunks hold no title, so it would be lost in each."""
    help_centre.run(
        "UPDATE article SET title = 'Three words or four';"
        "UPDATE article:gift_card SET content = 'Three words or four, ' + content"
    )
    endpoint.always = chosen(lambda sent: own(sent) | {"phrase": "words or four"})
    drafted(help_centre, endpoint)
    rows = stored(help_centre)
    assert len(rows) == _ARTICLES
    assert [row for row in rows if row.get("anchors")] == []
    help_centre.run("DELETE draft_log; DELETE question WHERE source = 'generated'")
    endpoint.always = chosen(lambda sent: own(sent) | {"phrase": _PASSAGE.findall(sent)[0].splitlines()[1][-60:]})
    drafted(help_centre, endpoint)
    assert all(row["anchors"] for row in stored(help_centre))


def test_what_was_drafted_is_not_asked_again(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    endpoint.always = chosen(own)
    drafted(help_centre, endpoint, documents=4)
    asked = _draft.Options(documents=7)
    planned = _draft.plan(help_centre, model(endpoint), asked)
    # a larger sample begins with the smaller one
    assert (len(planned.ids), planned.done) == (3, 4)
    _draft.draft(help_centre, model(endpoint), planned, asked)
    assert len(endpoint.seen) == 7
    assert len(stored(help_centre)) == 7


def test_flagged_questions_are_held_back_unless_they_are_asked_for(
    help_centre: Database,
    endpoint: Endpoint,  # noqa: F811
) -> None:
    copy = chosen(lambda sent: {"paraphrase": " ".join(_PASSAGE.findall(sent)[0].split()[5:14]) + "?", "exact": "What is X-1?"})
    endpoint.always = copy
    done = drafted(help_centre, endpoint, documents=1)
    assert done.stored == 0
    assert [row["flags"] for row in done.held_back] == [["copies"], ["no-identifier"]]
    assert stored(help_centre) == []
    done = drafted(help_centre, endpoint, documents=1, into="all", keep_flagged=True)
    # what was held back counts for its own set only
    assert done.stored == 2
    assert [row["tags"] for row in stored(help_centre)] in (
        [["draft", "paraphrase", "copies"], ["draft", "exact", "no-identifier"]],
        [["draft", "exact", "no-identifier"], ["draft", "paraphrase", "copies"]],
    )


MALFORMED: list[Answer] = [
    chat("no JSON at all"),
    chat('{"paraphrase": "Zq zq'),
    chat({"paraphrase": ""}),
    chat({"paraphrase": ["Zq zq?"]}),
    chat({"question": "Zq zq?"}),
    chat(["Zq zq?"]),
    chat('{"paraphrase": "a?", "paraphrase": "b?"}'),
    chat('{"paraphrase": "\\ud800?"}'),
    chat('{"paraphrase": "a\\u0000b?"}'),
    chat(None),
    chat({"paraphrase": "Zq zq zq?"}, ended="length"),
]
REFUSED: list[Answer] = [
    chat(None, refusal="I can't do that."),
    chat({"paraphrase": "Zq zq zq?"}, ended="content_filter"),
    chat({"paraphrase": "I'm sorry, but I can't help with that."}),
]


def test_what_is_no_question_becomes_none(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    for number, answer in enumerate(MALFORMED + REFUSED):
        outcome = "refused" if answer in REFUSED else "malformed"
        name = f"set {number}"
        endpoint.always = answer
        done = drafted(help_centre, endpoint, documents=1, into=name)
        assert (done.stored, done.refused, done.malformed) == (0, int(outcome == "refused"), int(outcome == "malformed")), number
        assert done.usage.requests == (1 if outcome == "refused" else 2)
        assert stored(help_centre) == []
        assert help_centre.value("SELECT VALUE outcome FROM draft_log WHERE set = $name", name=name) == [outcome]
    # and it is asked again by the next run
    endpoint.always = chosen(own)
    assert drafted(help_centre, endpoint, documents=1, into="set 0").stored == 1


def test_a_question_in_another_language_is_held_back(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    endpoint.always = chat({"paraphrase": "Wie kann ich das wieder ändern, und wann ist es zu spät?"})
    done = drafted(help_centre, endpoint, documents=1)
    assert [row["flags"] for row in done.held_back] == [["other-language"]]


def test_a_second_question_of_the_same_words_is_held_back(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    endpoint.always = chat({"paraphrase": "Zqa zqb zqc zqd?"})
    done = drafted(help_centre, endpoint, documents=3)
    assert done.stored == 1
    assert [row["flags"] for row in done.held_back] == [["near-duplicate"], ["near-duplicate"]]


def test_a_busy_endpoint_is_waited_for_as_long_as_it_asks(
    help_centre: Database,
    endpoint: Endpoint,  # noqa: F811
    waits: list[float],  # noqa: F811
) -> None:
    endpoint.always = chosen(own)
    endpoint.script = [status(429, Retry_After="0.25"), status(503), cut_body, broken_off, status(429, Retry_After="3")]
    done = drafted(help_centre, endpoint, documents=2)
    assert (done.stored, done.usage.requests, done.usage.malformed) == (2, 2, 0)
    assert waits[0] == 0.25
    assert 3 in waits
    assert len(waits) == 5


def cut_body(request: Request) -> None:
    """Half of an answer, said to be whole."""
    request.send(200, json.dumps({"choices": [{"message": {"content": "{}"}}]}).encode()[:-9])


def test_an_endpoint_that_goes_away_leaves_what_is_stored(
    help_centre: Database,
    endpoint: Endpoint,  # noqa: F811
    waits: list[float],  # noqa: F811
) -> None:
    endpoint.always = status(500)
    endpoint.script = [chosen(own)] * 3
    with pytest.raises(EmbeddingError, match="answers 500") as caught:
        drafted(help_centre, endpoint, documents=6)
    assert "it goes on" in (caught.value.hint or "")
    assert len(stored(help_centre)) == 3
    assert len(waits) == 6
    endpoint.always = chosen(own)
    assert drafted(help_centre, endpoint, documents=6).documents == 3


def test_ctrl_c_keeps_what_is_stored(
    help_centre: Database,
    endpoint: Endpoint,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoint.always = chosen(own)
    ask = _llm.Chat.ask

    def pressed(chat: _llm.Chat, system: str, user: str) -> _llm.Reply:
        if len(endpoint.seen) == 2:
            raise KeyboardInterrupt
        return ask(chat, system, user)

    monkeypatch.setattr(_llm.Chat, "ask", pressed)
    with pytest.raises(Interrupted, match="2 of 5 documents are done and stored") as caught:
        drafted(help_centre, endpoint, documents=5)
    assert caught.value.exit_code == 130
    monkeypatch.undo()
    assert len(stored(help_centre)) == 2
    assert drafted(help_centre, endpoint, documents=5).documents == 3


def test_a_time_out_is_no_answer(
    help_centre: Database,
    endpoint: Endpoint,  # noqa: F811
    waits: list[float],  # noqa: F811
) -> None:
    def late(_request: Request) -> None:
        time.sleep(0.3)

    endpoint.always = late
    asked = _draft.Options(documents=1)
    hasty = model(endpoint, timeout=0.05)
    with pytest.raises(EmbeddingError, match=r"did not answer in 0\.05 s, 3 times"):
        _draft.draft(help_centre, hasty, _draft.plan(help_centre, hasty, asked), asked)
    assert len(waits) == 2
    assert help_centre.value("SELECT * FROM draft_log") == []


def test_what_a_server_does_not_know_is_left_out(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    def picky(request: Request) -> None:
        unknown = {"response_format", "temperature"} & request.body.keys()
        (status(400, f"unknown {unknown}") if unknown else chosen(own))(request)

    endpoint.always = picky
    assert drafted(help_centre, endpoint, documents=3).stored == 3
    assert len(endpoint.seen) == 5


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(401, "sk-secret is wrong"), "answers 401"),
        (status(404, "no such model"), "no such model"),
        (lambda request: request.send(200, {"hello": 1}), "holds no message"),
    ],
)
def test_an_endpoint_that_can_not_be_used_says_so(
    help_centre: Database,
    endpoint: Endpoint,  # noqa: F811
    answer: Answer,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    endpoint.always = answer
    with pytest.raises(EmbeddingError, match=said) as caught:
        drafted(help_centre, endpoint, documents=1)
    assert caught.value.exit_code == 3
    assert "sk-secret" not in caught.value.text
    assert endpoint.seen[0].headers["Authorization"] == "Bearer sk-secret"
    assert help_centre.value("SELECT * FROM draft_log") == []


def test_documents_of_every_type_and_no_boilerplate(schema: Database, endpoint: Endpoint) -> None:  # noqa: F811
    texts = {f"a{n}": " ".join(f"q{words(f'{n} {place}')}" for place in range(15 + n)) for n in range(40)}
    texts["twin"] = f"{texts['a30']} 2031"
    texts["menu"] = "\n".join(f"Menu {entry}" for entry in "abcdefghijk")
    texts["short"] = "Too short"
    rows = [
        {"id": RecordID("article", key), "section": "legal" if key in ("a0", "a1") else "help", "content": text}
        for key, text in texts.items()
    ]
    schema.run("DEFINE FIELD section ON article TYPE option<string>; INSERT INTO article $rows RETURN NONE", rows=rows)
    asked = _draft.Options(documents=10, type_field="section", min_words=10)
    planned = _draft.plan(schema, model(endpoint), asked)
    assert len(planned.ids) == 10
    assert {row["type"] for row in planned.strata} == {"legal", "help"}
    assert all(row["picked"] for row in planned.strata)
    assert {row["reason"]: row["documents"] for row in planned.skipped}.items() >= {
        "menu": 1,
        "short": 1,
        "repeated text": 1,
    }.items()
    assert {"menu", "short"}.isdisjoint(str(one.id) for one in planned.ids)
    again = _draft.plan(schema, model(endpoint), asked)
    assert again.ids == planned.ids
    other = _draft.plan(schema, model(endpoint), _draft.Options(documents=10, type_field="section", min_words=10, seed="2"))
    assert other.ids != planned.ids
    with pytest.raises(UsageError, match="no document has a text in the field colour"):
        _draft.plan(schema, model(endpoint), _draft.Options(type_field="colour"))
    with pytest.raises(UsageError, match="is no field"):
        _draft.plan(schema, model(endpoint), _draft.Options(type_field="a..b"))
    with pytest.raises(DataError, match=r"no document is fit for a question: .*short"):
        _draft.plan(schema, model(endpoint), _draft.Options(min_words=500))
    assert endpoint.seen == []


def test_a_set_that_mixes_sources_says_so(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    plain = evaluate(help_centre, Options([3], retrievers=["bm25"]))
    assert not [line for line in plain.warnings if "generated" in line]
    endpoint.always = chosen(own)
    drafted(help_centre, endpoint, documents=2, into="default")
    mixed = evaluate(help_centre, Options([3], retrievers=["bm25"]))
    assert "2 of 10 questions are generated (by m-1); surrecall evaluate --by source tells them from the others" in mixed.warnings
    endpoint.always = chosen(lambda sent: own(f"another {sent}"))
    drafted(help_centre, endpoint, documents=1)
    alone = evaluate(help_centre, Options([3], retrievers=["bm25"], question_set="drafted"))
    assert "all 1 question is generated (by m-1); no person asked them" in alone.warnings


def test_the_log_is_kept(help_centre: Database, endpoint: Endpoint) -> None:  # noqa: F811
    endpoint.always = chosen(own)
    drafted(help_centre, endpoint, documents=1)
    with pytest.raises(SurrecallError, match="is not edited"):
        help_centre.run("UPDATE draft_log SET outcome = 'malformed'")


def test_the_command(seeded: Run, endpoint: Endpoint) -> None:  # noqa: F811
    endpoint.always = chosen(own)
    where = ("--model", "m-1", "--endpoint", endpoint.url, "--documents", "4")
    done = seeded("draft", *where, "--price-in", "2", "--price-out", "8", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"4 requests to m-1 at {endpoint.url}: about " in done.stderr
    assert re.search(r"\d+ tokens sent and 640 received, \d+\.\d{4} at the prices given", done.stderr)
    assert endpoint.seen == []
    done = seeded("draft", *where, code=2)
    assert "--yes sends it" in done.stderr
    assert endpoint.seen == []
    done = seeded("draft", *where, "--yes")
    assert done.returncode == 0, done.stderr
    assert "stored 4 questions in the set drafted, source generated, from 4 documents; 0 held back" in done.stdout
    assert "4 requests, 400 tokens sent and 40 received as the endpoint counts, 0 malformed answers" in done.stdout
    done = seeded("draft", *where, "--yes", "--json")
    assert json.loads(done.stdout)["drafted"]["stored"] == 0
    assert json.loads(done.stdout)["sample"]["done"] == 4
    endpoint.always = chat("no JSON at all")
    for more in ((), ("--json",)):
        done = seeded("draft", *where, "--into", "other", "--yes", *more, code=4)
        assert "no answer of m-1 could be used, so nothing is stored: 0 refused, 4 malformed" in done.stderr


def test_the_commands_of_the_documentation(
    seeded: Run,  # noqa: F811
    endpoint: Endpoint,  # noqa: F811
) -> None:
    """Word for word; the endpoint is named by the environment."""
    page = (ROOT / "docs/drafting.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    endpoint.always = chosen(lambda sent: own(sent) if "<question-" not in sent else {"verdict": "YES", "reason": "it is"})
    for line in block.splitlines():
        done = seeded(*line.split()[1:], OPENAI_BASE_URL=endpoint.url)
    assert "fill in the column verdict" in done.stdout
