"""Pools: merged results of several retrievers, what nobody judged first; and the table that is filled in and read back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from surrealdb import RecordID

from conftest import ROOT
from surrecall import Database, DataError, Options, SurrecallError, UsageError, _label_table, _pool, _shards, evaluate
from surrecall._export.output import Output
from test_cli import Run, run, seeded, target  # noqa: F401  fixtures

MONEY = RecordID("question", "money_back")
TWIN = """
CREATE article:twin SET title = 'Request a REFUND', content = string::replace(article:refund_request.content, ' ', '  '),
  embedding = article:refund_request.embedding
"""


def article(key: str) -> RecordID:
    return RecordID("article", key)


def pooled(database: Database, **options: Any) -> _pool.Pooled:
    return _pool.pool(database, _pool.Options(**options))


def money(found: _pool.Pooled) -> dict[str, Any]:
    return next(row for row in found.rows if row["question"] == MONEY)


def table(database: Database, path: Path, candidates: list[_pool.Candidate]) -> list[dict[str, str]]:
    with Output(force=True) as output:
        _label_table.write(database, output.lines(path), candidates)
    return rows(path)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def filled(path: Path, lines: list[dict[str, str]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), delimiter=delimiter, lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(lines)
    return path


def test_stored_answers_and_those_asked_anew_make_the_same_pool(help_centre: Database) -> None:
    anew = pooled(help_centre, k=5)
    assert anew.told["evaluation"] is None
    done = evaluate(help_centre, Options(cutoffs=(1, 5)))
    stored = pooled(help_centre)
    assert (stored.told["evaluation"], stored.told["k"]) == (done.row["id"], 5)
    assert [row["candidates"] for row in stored.rows] == [row["candidates"] for row in anew.rows]
    assert stored.told["shares"] == anew.told["shares"]
    # every candidate by the best of its ranks, what is labelled last
    row = money(stored)
    lists = {
        name: help_centre.value("RETURN fn::retrieve($name, $question, 5)", name=name, question=MONEY)
        for name in ("bm25", "vector", "hybrid")
    }
    best: dict[str, int] = {}
    for ids in lists.values():
        for rank, document in enumerate(ids, start=1):
            best[document.id] = min(rank, best.get(document.id, rank))
    labelled = {"refund_request", "cancel_subscription"}
    wanted = sorted(best, key=lambda key: (key in labelled, best[key], key))
    assert [(one["document"].id, one["rank"]) for one in row["candidates"]] == [(key, best[key]) for key in wanted]
    assert row["unjudged"] == len(set(best) - labelled)
    for one in row["candidates"]:
        assert one["retrievers"] == sorted(name for name, ids in lists.items() if one["document"] in ids)
    share = next(share for share in stored.told["shares"] if share["retriever"] == "vector")
    assert (share["results"], share["judged"], share["share"]) == (40, 11, 11 / 40)


def test_below_a_write_it_is_the_same(help_centre: Database) -> None:
    ask = "fn::pool_question(fn::pool_begin({ k: 5 }), question:money_back)"
    told = help_centre.value(f"RETURN {ask}")
    assert help_centre.value(f"RETURN (CREATE ONLY executor_probe SET v = {ask}).v") == told


def test_fewer_than_two_retrievers_are_refused(help_centre: Database) -> None:
    with pytest.raises(UsageError, match="two retrievers or more, got bm25 alone") as caught:
        pooled(help_centre, retrievers=["bm25"])
    assert "bm25, vector, hybrid" in str(caught.value.hint)
    with pytest.raises(UsageError, match="no retriever named bm26") as caught:
        pooled(help_centre, retrievers=["bm26", "vector"])
    assert "did you mean bm25?" in str(caught.value.hint)
    help_centre.run("DELETE retriever WHERE id != retriever:bm25")
    with pytest.raises(UsageError, match="two retrievers or more, there is bm25"):
        pooled(help_centre)


def test_a_question_added_since_is_asked_anew_and_an_article_that_is_gone_is_left_out(help_centre: Database) -> None:
    help_centre.run("CREATE article:gone SET content = 'money', embedding = article:refund_request.embedding")
    evaluate(help_centre, Options(cutoffs=(5,)))
    assert article("gone") in [one["document"] for one in money(pooled(help_centre))["candidates"]]
    help_centre.run("DELETE article:gone")
    help_centre.run(
        "CREATE question:new SET text = 'gift card', embedding = question:gift_voucher.embedding, relevant = [article:gift_card]"
    )
    told = pooled(help_centre)
    assert article("gone") not in [one["document"] for one in money(told)["candidates"]]
    assert any("were left out; surrecall evaluate" in warning for warning in told.told["warnings"])
    assert any(warning.startswith("1 questions have no stored answer in ") for warning in told.told["warnings"])
    assert [row["asked"] for row in told.rows if row["question"].id == "new"] == [True]
    # one that no retriever can be asked is named
    help_centre.run("UPDATE question:new SET embedding = NONE")
    with pytest.raises(SurrecallError, match="question:new can't be asked: "):
        pooled(help_centre)


def test_results_of_another_table_are_left_out_with_a_word(help_centre: Database) -> None:
    begun = help_centre.value("RETURN fn::pool_begin({ k: 5 })") | {"table": "chunk"}
    row = help_centre.value("RETURN fn::pool_question($begun, $question)", begun=begun, question=MONEY)
    assert (row["candidates"], row["elsewhere"] > 0) == ([], True)
    told = help_centre.value("RETURN fn::pool_end($begun, [$row])", begun=begun, row=row)
    assert any("results are no rows of chunk" in warning for warning in told["warnings"])
    assert {share["share"] for share in told["shares"]} == {None}


def test_articles_of_the_same_text_stand_once_and_are_judged_together(help_centre: Database) -> None:
    help_centre.run(TWIN)
    help_centre.run("UPDATE question:money_back SET relevant = [article:cancel_subscription]")
    found = pooled(help_centre, k=10, who="Ada")
    one = next(one for one in money(found)["candidates"] if article("twin") in [one["document"], *one["same"]])
    assert {one["document"].id, one["same"][0].id} == {"twin", "refund_request"}
    answer = {
        "question": MONEY,
        "documents": one["open"],
        "grade": 2,
        "who": "Ada",
        "retrievers": one["retrievers"],
    }
    told = help_centre.value("RETURN fn::label_answer($answer)", answer=answer)
    labels = {label["document"].id for label in help_centre.value("RETURN fn::labels_of($id)", id=MONEY)}
    assert labels == {"twin", "refund_request", "cancel_subscription"}
    assert told["labels"] == 2
    kept = help_centre.value("SELECT document, judge, retrievers, label FROM judgement ORDER BY document")
    assert [(row["judge"], row["label"]) for row in kept] == [("Ada", 1), ("Ada", 1)]
    assert kept[0]["retrievers"] == one["retrievers"]
    after = _pool.again(help_centre, found, [MONEY])
    assert after.told["unjudged"] == found.told["unjudged"] - 1
    # one of the two alone is still open where the other was labelled before
    help_centre.run("UPDATE question:money_back SET relevant = [article:cancel_subscription, article:twin]; DELETE judgement")
    one = next(
        one for one in money(pooled(help_centre, k=10))["candidates"] if article("twin") in [one["document"], *one["same"]]
    )
    assert [document.id for document in one["open"]] == ["refund_request"]


def test_articles_without_a_text_are_not_taken_for_one(help_centre: Database) -> None:
    help_centre.run("""
      CREATE article:blank SET content = '', embedding = article:refund_request.embedding;
      CREATE article:bare SET content = ' ', embedding = article:refund_request.embedding;
    """)
    found = {one["document"].id: one["same"] for one in money(pooled(help_centre, k=10))["candidates"]}
    assert (found["blank"], found["bare"]) == ([], [])


def test_a_retriever_that_brings_nothing_is_named(help_centre: Database) -> None:
    help_centre.run("UPDATE question SET text = '???'")
    told = pooled(help_centre, k=3).told
    assert "nothing came back from bm25, so the pool is of the others alone" in told["warnings"]


def test_in_part_adds_no_label_and_is_not_asked_again(help_centre: Database) -> None:
    found = pooled(help_centre, k=5, question=MONEY)
    first = found.unjudged[0]
    labels = help_centre.value("RETURN fn::labels_of($id)", id=MONEY)
    answer = {"question": MONEY, "documents": first.documents, "grade": 1, "who": "Ada"}
    told = help_centre.value("RETURN fn::label_answer($answer)", answer=answer)
    assert help_centre.value("RETURN fn::labels_of($id)", id=MONEY) == labels
    assert first.documents not in [one.documents for one in pooled(help_centre, k=5, question=MONEY).unjudged]
    # taken back it is asked again
    help_centre.run("RETURN fn::label_back($answer, 'Ada')", answer=told)
    assert first.documents in [one.documents for one in pooled(help_centre, k=5, question=MONEY).unjudged]


def test_the_first_answer_to_a_question_without_one_is_taken_back(help_centre: Database) -> None:
    help_centre.run(
        "CREATE question:open SET text = 'gift card', embedding = question:gift_voucher.embedding, answerable = false"
    )
    before = help_centre.value("SELECT answerable, relevant, judged FROM ONLY question:open")
    answer = {"question": RecordID("question", "open"), "documents": [article("gift_card")], "grade": 2, "who": "Ada"}
    told = help_centre.value("RETURN fn::label_answer($answer)", answer=answer)
    assert help_centre.value("SELECT VALUE answerable FROM ONLY question:open") is True
    help_centre.run("RETURN fn::label_back($answer, 'Ada')", answer=told)
    assert help_centre.value("SELECT answerable, relevant, judged FROM ONLY question:open") == before
    changes = help_centre.value("SELECT before, after, who, why, at FROM label_change ORDER BY at")
    assert [(row.get("before"), row.get("after"), row["who"]) for row in changes] == [(None, 1, "Ada"), (1, None, "Ada")]
    # what somebody else changed meanwhile stays
    told = help_centre.value("RETURN fn::label_answer($answer)", answer=answer)
    help_centre.run("UPDATE question:open SET judged = [{ document: article:gift_card, grade: 3 }]")
    with pytest.raises(DataError, match="changed meanwhile, so the answer stays"):
        help_centre.run("RETURN fn::label_back($answer, 'Ada')", answer=told)


def test_a_document_that_changed_since_it_was_shown_is_not_judged(help_centre: Database) -> None:
    view = help_centre.value("RETURN fn::label_view($question, article:gift_card)", question=MONEY)
    answer = {"question": MONEY, "documents": [article("gift_card")], "grade": 0, "who": "Ada", "hash": view["hash"]}
    help_centre.run("UPDATE article:gift_card SET content = 'Other words'")
    with pytest.raises(DataError, match="changed since it was shown"):
        help_centre.run("RETURN fn::label_answer($answer)", answer=answer)
    help_centre.run("UPDATE question:gift_voucher SET relevant = [article:track_order]; DELETE article:gift_card")
    with pytest.raises(DataError, match="article:gift_card is gone"):
        help_centre.run("RETURN fn::label_answer($answer)", answer=answer)
    assert help_centre.value("SELECT * FROM judgement") == []


def test_the_table_goes_out_and_comes_back(help_centre: Database, tmp_path: Path) -> None:
    help_centre.run(TWIN)
    help_centre.run("UPDATE question:money_back SET relevant = [article:cancel_subscription]")
    help_centre.run("UPDATE article:gift_card SET title = '=1+1', content = '@here -1'")
    found = pooled(help_centre, k=5, question=MONEY)
    lines = table(help_centre, tmp_path / "out.csv", found.unjudged)
    assert [line["document"] for line in lines] == [str(one.documents[0].id) for one in found.unjudged]
    for line in lines:
        assert not any(value.startswith(("=", "+", "-", "@")) for value in line.values()), line
    by_key = {line["document"]: line for line in lines}
    twins = next(line for line in lines if line["same"])
    assert {twins["document"], *json.loads(twins["same"])} == {"twin", "refund_request"}
    assert by_key["gift_card"]["title"] == "'=1+1"
    twins["grade"], by_key["gift_card"]["grade"] = "Relevant", "0,0"
    by_key["gift_card"]["note"] = "'=no"
    open_line = next(line for line in lines if not line["grade"])
    open_line["grade"] = " partly "
    path = filled(tmp_path / "in.csv", lines, ";")
    judged = _label_table.read(help_centre, path, "Ada")
    assert (judged.relevant, judged.partly, judged.not_relevant, judged.there) == (2, 1, 1, 0)
    assert judged.blank == len(lines) - 3
    grades = {label["document"].id: label["grade"] for label in help_centre.value("RETURN fn::labels_of($id)", id=MONEY)}
    assert grades == {"cancel_subscription": 1, "twin": 1, "refund_request": 1, "gift_card": 0}
    assert help_centre.value("SELECT VALUE why FROM judgement WHERE document = article:gift_card") == ["=no"]
    state = help_centre.run("SELECT * FROM judgement ORDER BY at, id; SELECT * FROM label_change")
    again = _label_table.read(help_centre, path, "Ada")
    assert (again.count, again.there) == (0, 4)
    assert help_centre.run("SELECT * FROM judgement ORDER BY at, id; SELECT * FROM label_change") == state
    # somebody else says the same
    assert _label_table.read(help_centre, path, "Eve").count == 4


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("money_back,gift_card,maybe", "2: the grade 'maybe' is none of relevant, partly, not, 2, 1, 0"),
        ("money_back,gift_card,3", "2: the grade '3' is none of"),
        ("nowhere,gift_card,1", "2: no question has the id 'nowhere'"),
        ("money_back,nowhere,1", "2: no article has the id 'nowhere'"),
        ("money_back,,1", "2: a grade without a document"),
        ("money_back,article:gift_card,1", "2: no article has the id 'article:gift_card'"),
    ],
)
def test_a_table_with_a_fault_judges_nothing(help_centre: Database, tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"question,document,grade\n{line}\nmoney_back,track_order,not\n", encoding="utf-8")
    with pytest.raises(DataError, match="nothing was judged") as caught:
        _label_table.read(help_centre, path, "Ada")
    assert said in caught.value.message
    assert help_centre.value("SELECT * FROM judgement") == []


@pytest.mark.parametrize(("header", "lacks"), [("question,document,score", "grade"), ("question,grade", "document")])
def test_a_table_without_a_column_is_refused(help_centre: Database, tmp_path: Path, header: str, lacks: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(f"{header}\nmoney_back,track_order,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"no column {lacks}") as caught:
        _label_table.read(help_centre, path, "Ada")
    assert caught.value.hint == "name the columns question, document, grade"


def test_a_table_is_judged_whole_or_not_at_all(help_centre: Database, tmp_path: Path) -> None:
    path = tmp_path / "last.csv"
    path.write_text("question,document,grade\nlate_parcel,gift_card,2\nrate_limit,api_rate_limits,0\n", encoding="utf-8")
    with pytest.raises(DataError, match="the last relevant document of question:rate_limit; nothing was judged"):
        _label_table.read(help_centre, path, "Ada")
    assert help_centre.value("SELECT * FROM judgement") == []
    path.write_text("question,document,grade\nlate_parcel,gift_card,2\nlate_parcel,gift_card,0\n", encoding="utf-8")
    with pytest.raises(DataError, match="3: 'gift_card' has another grade for 'late_parcel' in line 2"):
        _label_table.read(help_centre, path, "Ada")
    # the same twice is said once
    path.write_text("question,document,grade\nlate_parcel,gift_card,2\nlate_parcel,gift_card,relevant\n", encoding="utf-8")
    assert _label_table.read(help_centre, path, "Ada").count == 1


def test_what_was_judged_before_a_fault_is_taken_back(
    help_centre: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_label_table, "_FIRST_SHARD", 1)
    monkeypatch.setattr(_shards, "_LARGEST_SHARD", 1)
    before = help_centre.value("SELECT id, judged, relevant FROM question ORDER BY id")
    path = tmp_path / "last.csv"
    lines = ("late_parcel,gift_card,2", "money_back,gift_card,0", "rate_limit,api_rate_limits,0")
    path.write_text("question,document,grade\n" + "\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match="nothing was judged"):
        _label_table.read(help_centre, path, "Ada")
    assert help_centre.value("SELECT id, judged, relevant FROM question ORDER BY id") == before
    assert help_centre.value("SELECT VALUE fn::standing_judgements(id) FROM question") == [[]] * 8
    assert help_centre.value("RETURN fn::check_imports()") == []
    # mended, it is judged
    path.write_text("question,document,grade\n" + "\n".join(lines[:2]), encoding="utf-8")
    assert _label_table.read(help_centre, path, "Ada").count == 2


def test_ids_come_back_letter_for_letter(help_centre: Database, tmp_path: Path) -> None:
    keys: list[Any] = ["007", "a-b", "a b/c:d", "=cmd", "'=x", "-1", 12]
    for key in keys:
        help_centre.run("CREATE $id SET content = <string> $id + ' words'", id=RecordID("article", key))
    candidates = [_pool.Candidate(MONEY, "t", [article(key)], 1, ["bm25"], skipped=False) for key in keys]
    lines = table(help_centre, tmp_path / "ids.csv", candidates)
    assert not any(line["document"].startswith(("=", "-")) for line in lines)
    path = filled(tmp_path / "in.csv", [line | {"grade": "2"} for line in lines])
    assert _label_table.read(help_centre, path, "Ada").count == len(keys)
    labels = [label["document"].id for label in help_centre.value("RETURN fn::labels_of($id)", id=MONEY)]
    assert all(key in labels for key in keys)
    # 12 and '12' are two records and one cell
    help_centre.run("CREATE type::record('article', '12') SET content = 'a text for an id'")
    with pytest.raises(DataError, match="two records, and one id in CSV") as caught:
        table(help_centre, tmp_path / "ids.csv", candidates)
    assert "surrecall label" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["", "plain", "=1", "'=1", "''=1", "-", "+x", "@x", "'plain", "\t1"])
def test_what_a_spreadsheet_takes_for_a_formula_is_marked(text: str) -> None:
    cell = _label_table.harmless(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t"))
    assert _label_table.plain(cell) == text


def test_the_commands(seeded: Run, tmp_path: Path) -> None:  # noqa: F811
    seeded("evaluate", "-k", "1,5")
    printed = [line.rstrip() for line in seeded("pool").stdout.splitlines()]
    page = (ROOT / "docs/labelling.md").read_text(encoding="utf-8")
    documented = page.partition("```text\n")[2].partition("```")[0].splitlines()
    assert len(documented) > 12
    assert [line for line in documented if line not in printed] == []
    told = json.loads(seeded("pool", "-r", "bm25", "-r", "vector", "--question", "money_back", "-k", "3", "--json").stdout)
    assert (told["questions"], told["k"], told["retrievers"]) == (1, 3, ["bm25", "vector"])
    assert "two retrievers or more" in seeded("pool", "-r", "bm25", code=2).stderr
    said = seeded("label", code=2).stderr
    assert "there is no terminal to ask in" in said
    assert "surrecall label --out to_label.csv" in said
    seeded("label", "--out", "to_label.csv", "--question", "money_back")
    path = tmp_path / "here" / "to_label.csv"
    filled(path, [line | {"grade": "not"} for line in rows(path)])
    shown = seeded("label", "--from", "to_label.csv", "--who", "Ada", "--question", "money_back").stdout
    assert "judged 5 documents: 5 not" in shown
    shares = [line.split() for line in shown.splitlines() if line.startswith(("bm25", "vector", "hybrid"))]
    assert [share[-1] for share in shares] == ["1.000"] * 3
    assert all(float(share[-2]) < 1 for share in shares)
    # what was judged counts, whatever can be pooled by now
    done = seeded("label", "--from", "to_label.csv", "--who", "Eve", "--set", "gone")
    assert "no judged share: no question in the golden set gone" in done.stderr
    assert "judged 5 documents: 5 not" in done.stdout
    assert "is there" in seeded("label", "--out", "to_label.csv", code=2).stderr
    assert "give one of the two" in seeded("label", "--out", "a.csv", "--from", "b.csv", code=2).stderr
    assert "--who is empty" in seeded("label", "--from", "to_label.csv", "--who", " ", code=2).stderr
