"""Anchors: a phrase of a document is the label, and the chunk that holds it is found anew for each chunking."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from conftest import ROOT
from surrecall import Database, Options, Settings, UsageError, _anchors, _report, _retrievers, _sweep, evaluate
from test_cli import Run, run, seeded, target  # noqa: F401  fixtures

CARD, PHRASE = RecordID("article", "gift_card"), "you can spread it over several purchases"
QUESTION = RecordID("question", "gift_voucher")
BY_WORDS = """
(SELECT VALUE id FROM (
  SELECT id, array::intersect(string::words(string::lowercase(text)), string::words($question.text)).len() AS s
  FROM {table} ORDER BY s DESC, id LIMIT $k
))
"""


def cut(database: Database, table: str, size: int, overlap: int = 0, *, register: bool = True) -> None:
    """Every article in chunks of so many characters."""
    database.run(f"DEFINE TABLE IF NOT EXISTS {table}; DELETE {table};")
    rows = [
        {"id": RecordID(table, [article["id"].id, at]), "document": article["id"], "position": at, "text": text}
        for article in database.value("SELECT id, content FROM article ORDER BY id")
        for at, start in enumerate(range(0, len(article["content"]), size - overlap))
        if (text := article["content"][start : start + size])
    ]
    database.run(f"INSERT INTO {table} $rows RETURN NONE", rows=rows)
    if register:
        _anchors.add_chunking(database, table, {})


def retrieve_from(database: Database, *tables: str) -> None:
    """A retriever of each table, of its name, beside bm25."""
    bm25 = '[bm25]\ncall = "fn::search_bm25($question.text, $k)"\nreturns = "article"\n'
    entries = [_retrievers.entry(_retrievers.Retriever(table, BY_WORDS.format(table=table), table)) for table in tables]
    database.run(_retrievers.compile_dispatcher(_retrievers.parse("\n\n".join([bm25, *entries]))))


def anchored(database: Database, *anchors: tuple[RecordID, str], question: RecordID = QUESTION) -> None:
    rows = [{"document": document, "phrase": phrase} for document, phrase in anchors]
    database.run("UPDATE $id SET anchors = $anchors RETURN NONE", id=question, anchors=rows)


def answer(database: Database, retriever: str, question: RecordID = QUESTION) -> dict[str, Any]:
    """The newest answer of a retriever to a question."""
    row: dict[str, Any] = database.value(
        "SELECT *, evaluation.started AS at FROM eval_answer WHERE retriever = $name AND question = $question"
        " ORDER BY at DESC LIMIT 1",
        name=retriever,
        question=question,
    )[0]
    return row


def holds(database: Database, chunk: RecordID, phrase: str) -> bool:
    return phrase.lower() in database.value("SELECT VALUE text FROM ONLY $id", id=chunk).lower()


def about(lines: Sequence[str], retriever: str, words: str) -> list[str]:
    return [line for line in lines if line.startswith(f"{retriever}: ") and words in line]


def test_the_label_follows_the_words_through_every_cut(help_centre: Database) -> None:
    """Moved, cut in two, gone, and twice: each is told, and none is a 0 in silence."""
    anchored(help_centre, (CARD, PHRASE))
    cut(help_centre, "chunk", 1000)
    retrieve_from(help_centre, "chunk")
    first = evaluate(help_centre, Options([5]))
    found = answer(help_centre, "chunk")
    assert found["anchors"][0]["verdict"] == "found"
    assert [label["document"] for label in found["labels"]] == [RecordID("chunk", ["gift_card", 0])]
    # what has no anchor is in no mean of a retriever of chunks, and in that of documents as ever
    assert {row["retriever"]: row["questions"] for row in first.runs} == {"bm25": 8, "chunk": 1}
    assert about(first.warnings, "chunk", "7 of 8 questions are in no mean, for want of a label among the chunks (no anchor)")
    assert first.unanswerable == []

    text = help_centre.value("SELECT VALUE content FROM ONLY $id", id=CARD)
    at = text.lower().index(PHRASE)
    cut(help_centre, "chunk", at)
    second = evaluate(help_centre, Options([5]))
    moved = answer(help_centre, "chunk")["labels"][0]["document"]
    assert holds(help_centre, moved, PHRASE)
    assert about(second.warnings, "chunk", "the anchors of 1 questions stand in other chunks than before; the labels followed")
    assert not about(evaluate(help_centre, Options([5])).warnings, "chunk", "other chunks than before")

    cut(help_centre, "chunk", at + 10)
    third = evaluate(help_centre, Options([5]))
    pieces = answer(help_centre, "chunk")
    assert [anchor["verdict"] for anchor in pieces["anchors"]] == ["split"]
    assert [label["document"].id for label in pieces["labels"]] == [["gift_card", 0], ["gift_card", 1]]
    assert about(third.warnings, "chunk", "1 anchors, of which 1 split")
    assert [row["problem"] for row in help_centre.value("RETURN fn::check_anchors()")] == [
        f"its anchor '{PHRASE}' is cut over 2 chunks of chunk"
    ]

    help_centre.run("UPDATE $id SET content = string::replace(content, 'you can spread', 'one may spread') RETURN NONE", id=CARD)
    cut(help_centre, "chunk", 1000)
    gone = evaluate(help_centre, Options([5]))
    assert [row["retriever"] for row in gone.runs] == ["bm25"]
    assert (answer(help_centre, "chunk")["unlabelled"], answer(help_centre, "chunk")["labels"]) == ("stale", [])
    assert about(gone.warnings, "chunk", "(stale): question:gift_voucher; surrecall anchors")

    help_centre.run(
        "UPDATE $id SET content = $text RETURN NONE; UPDATE article:return_item SET content += $again RETURN NONE;",
        id=CARD,
        text=text,
        again=" So\nYou CAN spread it\u00a0over several purchases.",
    )
    cut(help_centre, "chunk", 1000)
    evaluate(help_centre, Options([5]))
    twice = answer(help_centre, "chunk")
    assert (twice["unlabelled"], twice["anchors"][0]["others"]) == ("ambiguous", [RecordID("article", "return_item")])
    assert "stands in article:gift_card and in article:return_item" in str(help_centre.value("RETURN fn::check()"))


def test_one_golden_set_scores_every_chunking_and_they_can_be_compared(help_centre: Database) -> None:
    """Chunks that overlap hold a phrase more than once; recall reaches 1 when each anchor was found once."""
    for question, document, words in (
        ("gift_voucher", "gift_card", slice(3, 11)),
        ("rate_limit", "api_rate_limits", slice(8, 16)),
        ("expired_card", "payment_method", slice(2, 9)),
    ):
        text = help_centre.value("SELECT VALUE content FROM ONLY $id", id=RecordID("article", document))
        anchored(
            help_centre,
            (RecordID("article", document), " ".join(text.split()[words])),
            question=RecordID("question", question),
        )
    for table, size, overlap in (("small", 120, 80), ("large", 200, 0), ("whole", 1000, 0)):
        cut(help_centre, table, size, overlap)
    before = help_centre.value("RETURN fn::golden_set_hash('default')")
    retrieve_from(help_centre, "small", "large", "whole")
    evaluation = evaluate(help_centre, Options([1, 100]))
    assert help_centre.value("RETURN fn::golden_set_hash('default')") == before
    runs = {(row["retriever"], row["k"]): row for row in evaluation.runs}
    assert {runs[name, 100]["questions"] for name in ("small", "large", "whole")} == {3}
    assert {runs[name, 100]["recall"] for name in ("small", "whole")} == {1.0}
    overlapping = [answer(help_centre, "small", RecordID("question", name)) for name in ("gift_voucher", "rate_limit")]
    assert any(len(row["anchors"][0]["chunks"]) > 1 for row in overlapping)
    for row in overlapping:
        ranks = [row["ranking"].index(chunk) for chunk in row["anchors"][0]["chunks"]]
        assert [label["document"] for label in row["labels"]] == [row["ranking"][min(ranks)]]
    told = help_centre.value("RETURN fn::compare({ sides: ['small', 'whole'], k: 1, resamples: 100 })")["comparisons"][0]
    assert (told["questions"], len(told["excluded"]["unlabelled"]), told["excluded"]["relabelled"]) == (3, 5, [])
    assert told["mean_a"] == runs["small", 1]["recall"]
    # whatever way an answer comes, it has the same labels
    everyday = help_centre.value("RETURN fn::evaluate(100)")
    assert (everyday["small"], everyday["whole"]) == (1, 1)
    recorded = help_centre.value("RETURN fn::record_evaluation({ k: [1], retrievers: ['small'] })")
    assert recorded[0]["recall"] == runs["small", 1]["recall"]
    swept = _sweep.sweep(
        help_centre, _sweep.Options(f"array::slice({BY_WORDS.format(table='small').strip()}, 0, $x)", [1, 100], 100)
    )
    assert (swept.told["questions"], [row["recall"] for row in swept.told["values"]]) == (3, [runs["small", 1]["recall"], 1])


def test_an_anchor_that_changes_is_another_golden_set(help_centre: Database) -> None:
    """Sets without anchors keep the fingerprint that they had before there were any."""
    plain = help_centre.value("RETURN fn::golden_set_hash('default')")
    assert plain == help_centre.value(
        "RETURN crypto::sha256(<string> (SELECT id, answerable, relevant, judged FROM question ORDER BY id))"
    )
    anchored(help_centre, (CARD, PHRASE))
    one = help_centre.value("RETURN fn::golden_set_hash('default')")
    anchored(help_centre, (CARD, PHRASE + " on the page"))
    assert len({plain, one, help_centre.value("RETURN fn::golden_set_hash('default')")}) == 3
    anchored(help_centre)
    assert help_centre.value("RETURN fn::golden_set_hash('default')") == plain


def test_grades_follow_into_the_chunks_and_unanswerable_stays_apart(help_centre: Database) -> None:
    anchored(help_centre, (CARD, PHRASE))
    help_centre.run("UPDATE $id SET judged = [{ document: article:gift_card, grade: 3 }] RETURN NONE", id=QUESTION)
    help_centre.run("CREATE question:never SET text = 'who won the cup', answerable = false, embedding = [1, 0, 0, 0]")
    cut(help_centre, "chunk", 1000)
    retrieve_from(help_centre, "chunk")
    told = evaluate(help_centre, Options([5], ["chunk"]))
    assert answer(help_centre, "chunk")["labels"] == [{"document": RecordID("chunk", ["gift_card", 0]), "grade": 3}]
    assert [(row["retriever"], row["questions"]) for row in told.unanswerable] == [("chunk", 1)]
    assert answer(help_centre, "chunk", RecordID("question", "never")).get("unlabelled") is None


def test_in_a_large_corpus_check_finds_the_second_document(schema: Database) -> None:
    """A walk through the corpus is for check; evaluations go by what it noted, as long as it is so."""
    rows: list[dict[str, Any]] = [
        {
            "id": RecordID("article", f"a{number:03}"),
            "title": f"Number {number}",
            "content": f"The valve number {number} opens at {number} bar, never less, and closes again.",
            "embedding": [1.0, number / 100, 0.5, 0.1],
        }
        for number in range(201)
    ]
    rows[7]["content"] += " The valve number 5 opens at 5 bar, never less."
    schema.run("INSERT INTO article $rows RETURN NONE", rows=rows)
    five, seven = RecordID("article", "a005"), RecordID("article", "a007")
    schema.run("CREATE question:q SET text = 'when does valve 5 open', relevant = [$five], embedding = [1, 0, 0, 0]", five=five)
    anchored(schema, (five, "valve number 5 opens at 5 bar"), question=RecordID("question", "q"))
    cut(schema, "chunk", 1000)
    retrieve_from(schema, "chunk")

    def verdict() -> str:
        _anchors.place(schema, "default", ["chunk"])
        return str(schema.value("SELECT VALUE anchors[0].verdict FROM anchor_place")[0])

    assert verdict() == "found"
    _anchors.note_twins(schema)
    assert schema.value("SELECT VALUE others FROM anchor_twin") == [[seven]]
    assert verdict() == "ambiguous"
    schema.run("UPDATE $id SET content = 'Another text.' RETURN NONE", id=seven)
    assert verdict() == "found"


def test_what_is_looked_up_is_written_only_where_it_changed(help_centre: Database) -> None:
    anchored(help_centre, (CARD, PHRASE))
    cut(help_centre, "chunk", 1000)
    retrieve_from(help_centre, "chunk")
    asked = "RETURN fn::place_anchors('default', ['chunk', 'bm25'], NONE, 100)"
    assert (help_centre.value(asked)["changed"], help_centre.value(asked)["changed"]) == (1, 0)
    # a part at a time
    anchored(help_centre, (RecordID("article", "payment_method"), "card"), question=RecordID("question", "expired_card"))
    part = help_centre.value("RETURN fn::place_anchors('default', ['chunk'], NONE, 1)")
    assert (part["questions"], part["last"]) == (1, RecordID("question", "expired_card"))
    rest = help_centre.value("RETURN fn::place_anchors('default', ['chunk'], $last, 1)", last=part["last"])
    assert (rest["questions"], rest["last"]) == (1, QUESTION)


def test_a_transaction_is_guarded_by_the_chunks_that_it_would_leave(help_centre: Database) -> None:
    anchored(help_centre, (CARD, PHRASE))
    cut(help_centre, "chunk", 1000)
    retrieve_from(help_centre, "chunk")
    help_centre.run("CREATE eval_floor:words SET retriever = 'chunk', metric = 'recall', k = 5, minimum = 1")
    evaluate(help_centre, Options([5], ["chunk"]))
    # the same words in a chunk of another id: the label goes along
    moved = (
        "UPDATE chunk:['gift_card', 0] SET text = 'Nothing.';"
        " CREATE chunk:['gift_card', 1] SET document = article:gift_card, position = 1, text = $text;"
    )
    text = help_centre.value("SELECT VALUE content FROM ONLY $id", id=CARD)
    help_centre.run(f"BEGIN; {moved} fn::guard(); COMMIT;", text=text)
    assert help_centre.value("SELECT VALUE anchors[0].chunks FROM anchor_place") == [[RecordID("chunk", ["gift_card", 1])]]


@pytest.mark.parametrize(
    ("table", "fields", "words"),
    [
        ("nothing", {}, "chunking takes a table that is there, got nothing"),
        ("article", {}, "chunking takes a table of chunks, and article holds the documents themselves"),
        (
            "chunk",
            {"document": "parent"},
            "chunking needs the field that links a chunk to its article, parent of chunk holds nothing",
        ),
        ("chunk", {"text": "position"}, "chunking needs the field that holds the text of a chunk, position of chunk holds none"),
        ("chunk", {"position": "no"}, "chunking needs the field that gives the order of the chunks, no of chunk holds nothing"),
        ("chunk", {"text": "a.b"}, "chunking takes names of fields as they are, without dots, got a.b"),
    ],
)
def test_a_table_that_can_not_be_registered(help_centre: Database, table: str, fields: dict[str, str], words: str) -> None:
    cut(help_centre, "chunk", 1000, register=False)
    with pytest.raises(UsageError, match=words):
        _anchors.add_chunking(help_centre, table, fields)
    assert _anchors.tables(help_centre) == []


def test_the_commands(seeded: Run, target: Settings, tmp_path: Path) -> None:  # noqa: F811
    with Database(target) as database:
        cut(database, "chunk", 1000, register=False)
    assert "no table of chunks yet; next: surrecall chunking add TABLE" in seeded("chunking", "list").stdout
    assert "no question of the golden set default has an anchor" in seeded("anchors").stdout
    assert "chunk holds chunks of article" in seeded("chunking", "add", "chunk").stdout
    listed = json.loads(seeded("chunking", "list", "--json").stdout)
    assert [(row["table"], row["chunks"], row["text"]) for row in listed] == [("chunk", 10, "text")]
    assert "surrecall chunking add other; there are: chunk" in seeded("anchors", "--table", "other", code=2).stderr

    # a question that says only where its answer stands is labelled with these documents
    row = {
        "id": "code",
        "text": "over how many orders",
        "embedding": [0.0, 0.7, 0.2, 0.4],
        "anchors": [
            {"document": "gift_card", "phrase": PHRASE.upper().replace(" ", "  ")},
            {"document": "gift_card", "phrase": "no such words"},
        ],
    }
    seeded("init", "--table", "article", "--field", "content", "--vector", "embedding", "--dimension", "4")
    (tmp_path / "here" / "more.jsonl").write_text(json.dumps(row), encoding="utf-8")
    said = " ".join(seeded("import", "questions", "more.jsonl").stderr.split())
    assert "1 of 2 anchors do not stand in their document exactly once, and are not scored; first question:code" in said
    assert "1 of 2 anchors have fewer than 6 words or more than 20" in said
    told = json.loads(seeded("anchors", "--json").stdout)
    assert [(one["verdict"], one["table"]) for one in told] == [("found", "chunk"), ("stale", "chunk")]
    place = told[0]["place"]
    with Database(target) as database:
        assert database.value("SELECT VALUE relevant FROM ONLY question:code") == [CARD]
        text = database.value("SELECT VALUE text FROM ONLY chunk:['gift_card', 0]")
    assert text[place["from"] : place["to"]].lower() == PHRASE
    shown = seeded("anchors").stdout
    assert ("chunk: 1 found, 1 stale" in shown, PHRASE.upper() in shown) == (True, False)
    # the folder defines another analyzer than the help centre has
    problems = [row["problem"] for row in json.loads(seeded("check", "--json", code=3).stdout)]
    assert "its anchor 'no such words' does not stand in article:gift_card any more" in problems
    seeded("export", "questions", "out.jsonl")
    # a phrase of nothing visible would stand everywhere
    blank = {"id": "blank", "text": "what is blank", "embedding": [0.0, 0.7, 0.2, 0.4], "relevant": ["gift_card"]}
    blank["anchors"] = [{"document": "gift_card", "phrase": "\u00ad&shy;\u200b"}]
    (tmp_path / "here" / "blank.jsonl").write_text("\n" + json.dumps(blank), encoding="utf-8")
    said = " ".join(seeded("import", "questions", "blank.jsonl", code=4).stderr.split())
    assert "blank.jsonl" in said
    assert "an anchor whose phrase holds no visible character" in said
    lines = [json.loads(line) for line in (tmp_path / "here" / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert next(line for line in lines if line["id"] == "code")["anchors"] == row["anchors"]
    # an anchor that is too long for its place to be looked for is listed without it, and the others too
    with Database(target) as database:
        long = "word " * 1500
        database.run("UPDATE article:track_order SET content += $long", long=long)
        database.run("UPDATE chunk:['track_order', 0] SET text += $long", long=long)
        anchors = [{"document": RecordID("article", "track_order"), "phrase": long.strip()}]
        database.run("UPDATE question:late_parcel SET anchors = $anchors", anchors=anchors)
    told = json.loads(seeded("anchors", "--json").stdout)
    assert [(one["verdict"], one.get("place") is None) for one in told] == [("found", False), ("stale", True), ("found", True)]
    seeded("chunking", "remove", "chunk")
    assert "chunking has no chunk" in seeded("chunking", "remove", "chunk", code=2).stderr


def test_the_page_says_what_happens(help_centre: Database) -> None:
    """The statements of docs/anchors.md, in their order."""
    page = (ROOT / "docs" / "anchors.md").read_text(encoding="utf-8")
    tables, looked = re.findall(r"^```surql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (question,) = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    help_centre.run(tables)
    assert "surrecall chunking add half --document page --text body --position part" in page
    _anchors.add_chunking(help_centre, "half", {"document": "page", "text": "body", "position": "part"})
    anchor = json.loads(question)["anchors"][0]
    anchored(help_centre, (RecordID("article", anchor["document"]), anchor["phrase"]))
    text, place, report = help_centre.run(looked)
    assert text == '"the valve" - never less'
    assert place == {"from": 4, "to": 29}
    assert "`{ from: 4, to: 29 }`" in page
    assert [(row["verdict"], row["chunks"]) for row in report] == [("found", [RecordID("half", ["gift_card", 0])])]
    search = re.search(r"retriever add halves '([^']+)'", page)
    assert search is not None
    assert help_centre.value(f"LET $k = 3; RETURN count(({search[1]}))") == 3


def test_why_is_asked_of_documents_alone(help_centre: Database) -> None:
    """What keeps a chunk from being found is not known, and a wrong reason would be worse than none."""
    cut(help_centre, "chunk_60", 60)
    retrieve_from(help_centre, "chunk_60")
    anchored(help_centre, (CARD, PHRASE))
    evaluate(help_centre, Options((3,)))
    for call in (
        "fn::diagnose('chunk_60', $question, { k: 3 })",
        "fn::triage('chunk_60', $question, [article:gift_card], NONE)",
    ):
        with pytest.raises(UsageError, match="why is asked of documents, and chunk_60 gives rows of chunk_60") as caught:
            help_centre.value(f"RETURN {call}", question=QUESTION)
        assert caught.value.hint == "name one that leads to documents: bm25"
    # where the chunk of an anchor stands is known
    (label,) = help_centre.value("RETURN fn::stage_ranks('chunk_60', $question, 20)", question=QUESTION)
    assert label["document"].table_name == "chunk_60"
    ranking = help_centre.value("RETURN fn::retrieve('chunk_60', $question, 100)", question=QUESTION)
    (told,) = help_centre.value("RETURN fn::stage_ranks('chunk_60', $question, 100)", question=QUESTION)
    assert told["ranks"][0]["rank"] == ranking.index(label["document"]) + 1
    facts = _report.gather(help_centre, _report.Asked(retriever="chunk_60"))
    assert facts.misses is None
    assert "Why is asked of documents" in _report.page(facts)


def test_what_has_not_changed_is_not_looked_up_again_however_it_is_cut(help_centre: Database) -> None:
    cut(help_centre, "chunk_60", 60)
    retrieve_from(help_centre, "chunk_60")
    other = RecordID("question", "late_parcel")
    anchored(help_centre, (CARD, PHRASE))
    anchored(help_centre, (RecordID("article", "track_order"), "tracking"), question=other)
    look = "RETURN fn::place_anchors('default', ['chunk_60'], $after, $count).changed"
    assert help_centre.value(look, after=None, count=10) == 2
    assert [help_centre.value(look, after=after, count=1) for after in (None, QUESTION)] == [0, 0]
    # of two questions the one whose document was cut anew
    help_centre.run("UPDATE chunk_60 SET text = text + '.' WHERE document = $document RETURN NONE", document=CARD)
    assert help_centre.value(look, after=None, count=10) == 1
    assert help_centre.value(look, after=None, count=10) == 0
