"""Bringing data in: questions, labels and documents from every format, whole or not at all, ids letter for letter."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy
import pytest
from surrealdb import RecordID

from conftest import fresh_settings
from surrecall import (
    Database,
    DataError,
    Options,
    SchemaError,
    SurrecallError,
    UsageError,
    _embed,
    _fields,
    _ids,
    _ingest,
    _init,
    _question_file,
    _quoting,
    _vectors,
    evaluate,
)
from surrecall._corpus import Corpus
from surrecall._document_file import Names
from surrecall._embedders import Kind
from surrecall._import_documents import ImportedDocuments, import_documents
from surrecall._import_documents import Options as DocumentOptions
from surrecall._import_labels import ImportedLabels, import_labels
from surrecall._import_questions import ImportedQuestions, import_questions
from surrecall._import_questions import Options as QuestionOptions
from surrecall._tabular import format_of
from test_cli import surrecall
from test_collection import IDS

CORPUS = Corpus("paper", "abstract", "embedding", 3)
# beside those of the collections: what a list in a cell, a quote or a line could cut
AWKWARD = (
    *IDS,
    "a|b",
    "back\\slash",
    'say "x"',
    "[x]",
    " blank ",
    "line\nend",
    "tab\tulator",
    "comma,",
    "a::b",
    "'",
    "ö\u0301",
    "\u2028",
)


class Home:
    """A database, the project folder beside it, and a folder of files."""

    def __init__(self, database: Database, project: Path) -> None:
        self.database, self.project, self.folder = database, project, project.parent

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def documents(self, name: str, content: str | bytes, **options: Any) -> ImportedDocuments:
        path = self.write(name, content)
        names = options.pop("names", Names())
        given = DocumentOptions(
            path, format_of(path, options.pop("form", None), ("jsonl", "json", "csv", "tsv")), names, **options
        )
        return import_documents(self.database, self.project, CORPUS, given)

    def questions(self, name: str, content: str | bytes, **options: Any) -> ImportedQuestions:
        path = self.write(name, content)
        form = format_of(path, options.pop("form", None), _question_file.FORMATS)
        return import_questions(self.database, self.project, CORPUS, QuestionOptions(path, form, **options))

    def labels(self, name: str, content: str | bytes, form: str | None = None, **options: Any) -> ImportedLabels:
        return import_labels(self.database, CORPUS, self.write(name, content), form, **options)

    def everything(self) -> list[Any]:
        return self.database.run("SELECT * FROM paper ORDER BY id; SELECT * FROM question ORDER BY id; SELECT * FROM import_log;")

    def grades(self) -> dict[Any, dict[Any, Any]]:
        """Labels by question and document."""
        rows = self.database.value("SELECT id, fn::labels_of(id) AS labels FROM question ORDER BY id")
        return {row["id"].id: {label["document"].id: label["grade"] for label in row["labels"]} for row in rows}


@pytest.fixture
def home(pytestconfig: pytest.Config, engine: str, tmp_path: Path) -> Iterator[Home]:
    """An empty database and a project for the table paper."""
    project = tmp_path / "project"
    project.mkdir()
    _init.init(project, CORPUS)
    with Database(fresh_settings(pytestconfig, engine)) as database:
        yield Home(database, project)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_pieces_of_a_text_come_with_what_says_so(empty: Database, tmp_path: Path, form: str) -> None:
    corpus = Corpus("paper", "abstract", None, parent="book", position="part")
    _init.init(tmp_path, corpus)

    def imported(*rows: tuple[str, str, Any, Any]) -> ImportedDocuments:
        path = tmp_path / f"docs.{form}"
        names = ("id", "text", "Book", "part")
        table = [names, *((name, text, book, "" if part is None else part) for name, text, book, part in rows)]
        lines = [dict(zip(names, row, strict=True)) for row in rows]
        path.write_text(objects(*lines) if form == "jsonl" else sheet([list(row) for row in table]), encoding="utf-8")
        return import_documents(empty, tmp_path, corpus, DocumentOptions(path, form, Names()))

    rows = [("a", "one", "manual", 1), ("b", "two", "manual", 2), ("c", "three", None, None)]
    assert (imported(*rows).documents, imported(*rows).documents_there) == (3, 3)
    stored = empty.value("SELECT record::id(id) AS id, book, part FROM paper ORDER BY id")
    assert [(row["id"], row["book"], row["part"]) for row in stored] == [
        ("a", "manual", 1),
        ("b", "manual", 2),
        ("c", None, None),
    ]
    assert empty.value("RETURN fn::document_neighbours(paper:a)") == [RecordID("paper", "b")]
    with pytest.raises(DataError, match="part is no whole number"):
        imported(("d", "four", "manual", "x"))
    with pytest.raises(DataError, match="is there with another part"):
        imported(("a", "one", "manual", 3))


@pytest.fixture
def filled(home: Home) -> Home:
    """Five documents and two questions, one label each."""
    home.documents("docs.jsonl", objects(*({"id": f"d{number}", "text": f"words of {number}"} for number in range(1, 6))))
    home.questions("q.jsonl", objects(*({"id": f"q{number}", "text": f"what {number}", "relevant": ["d5"]} for number in (1, 2))))
    return home


def objects(*rows: Any) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def sheet(rows: list[list[Any]], delimiter: str = ",") -> str:
    text = StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue()


def refused(home: Home, action: Callable[[], Any], *complaints: str, error: type[SurrecallError] = DataError) -> str:
    """The action fails with these words, and leaves everything as it was."""
    before = home.everything()
    with pytest.raises(error) as caught:
        action()
    for complaint in complaints:
        assert complaint in caught.value.text
    assert home.everything() == before
    return caught.value.text


# ids


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv"])
def test_ids_come_in_letter_for_letter_and_every_label_resolves(home: Home, form: str) -> None:
    if form in ("jsonl", "json"):
        docs: list[Any] = [{"id": name, "text": f"words of {name}"} for name in AWKWARD]
        questions: list[Any] = [{"id": name, "text": f"what {name}", "relevant": [name]} for name in AWKWARD]
        texts = [json.dumps(rows, indent=1) if form == "json" else objects(*rows) for rows in (docs, questions)]
    else:
        delimiter = "," if form == "csv" else "\t"
        cells = {
            name: json.dumps([name]) if name.startswith("[") else name.replace("\\", r"\\").replace("|", r"\|")
            for name in AWKWARD
        }
        texts = [
            sheet([["id", "text"], *([name, f"words of {name}"] for name in AWKWARD)], delimiter),
            sheet([["id", "text", "relevant"], *([name, f"what {name}", cells[name]] for name in AWKWARD)], delimiter),
        ]
    assert home.documents(f"docs.{form}", texts[0]).documents == len(AWKWARD)
    assert home.questions(f"q.{form}", texts[1]).labels == len(AWKWARD)
    assert home.grades() == {name: {name: 1} for name in AWKWARD}
    assert sorted(row.id for row in home.database.value("SELECT VALUE id FROM paper")) == sorted(AWKWARD)
    before = home.everything()
    assert home.documents(f"docs.{form}", texts[0]).documents_there == len(AWKWARD)
    assert home.questions(f"q.{form}", texts[1]).questions_there == len(AWKWARD)
    assert home.everything() == before


@pytest.mark.parametrize("form", ["trec", "tsv", "csv", "jsonl"])
def test_ids_of_digits_and_punctuation_in_labels(home: Home, form: str) -> None:
    names = [name for name in AWKWARD if name.split() == [name]] if form == "trec" else list(AWKWARD)
    home.documents("docs.jsonl", objects(*({"id": name, "text": "x"} for name in [*names, "other"])))
    home.questions("q.jsonl", objects(*({"id": name, "text": "x", "relevant": ["other"]} for name in names)))
    text = {
        "trec": "".join(f"{name} 0 {name} 1\n" for name in names),
        "tsv": sheet([["query-id", "corpus-id", "score"], *([name, name, "1"] for name in names)], "\t"),
        "csv": sheet([[name, name, "1"] for name in names]),
        "jsonl": objects(*({"question": name, "document": name, "grade": 1} for name in names)),
    }[form]
    assert home.labels(f"qrels.{form}", text).labels == len(names)
    assert home.grades() == {name: {"other": 1, name: 1} for name in names}


def test_a_number_of_json_stays_one_and_a_text_of_a_sheet_means_what_is_there(home: Home) -> None:
    home.documents("docs.jsonl", objects({"id": 7, "text": "seven"}, {"id": "7", "text": "'7'"}, {"id": 8, "text": "eight"}))
    assert home.database.value("SELECT VALUE id FROM paper ORDER BY id") == [
        RecordID("paper", 7),
        RecordID("paper", 8),
        RecordID("paper", "7"),
    ]
    home.questions(
        "q.jsonl",
        objects({"id": 1, "text": "one", "relevant": [7]}, {"id": "b", "text": "two", "judged": [{"document": "7", "grade": 2}]}),
    )
    home.questions("q.csv", "id,text,relevant\nc,three,8\n")
    assert home.grades() == {1: {7: 1}, "b": {"7": 2}, "c": {8: 1}}
    refused(
        home,
        lambda: home.questions("x.csv", "id,text,relevant\nd,four,7\n"),
        "x.csv:2: the document '7' is ambiguous: the text and the number",
    )
    refused(home, lambda: home.labels("x.tsv", "1\t7\t1\n"), "x.tsv:1: the document '7' is ambiguous")
    assert home.labels("y.tsv", "1\t8\t1\n").labels == 1
    refused(
        home,
        lambda: home.labels("x.jsonl", objects({"question": "1", "document": 8, "grade": 1})),
        "the question '1' is not in the database",
    )
    refused(home, lambda: home.documents("x.csv", "id,text\n8,other\n"), "x.csv:2: the document 8 is there with another abstract")
    assert home.documents("y.csv", "id,text\n8,eight\n").documents_there == 1


def test_an_id_that_is_printed_and_read_back_is_the_same_record(home: Home) -> None:
    ids = ["7", 7, "007", "a-b", "a b/c:d"]
    home.documents("docs.jsonl", objects(*({"id": name, "text": f"words of {name!r}"} for name in ids)))
    there = {record.id for record in home.database.value("SELECT VALUE id FROM paper")}
    assert there == set(ids)
    # written from what the database holds, and read again
    home.questions("q.jsonl", objects(*({"id": name, "text": "x", "relevant": [name]} for name in there)))
    for row in home.database.value("SELECT id, relevant[0].abstract AS text FROM question"):
        assert row["text"] == f"words of {row['id'].id!r}"


def test_a_uuid_is_found_by_its_text(home: Home) -> None:
    home.documents("docs.jsonl", objects({"id": "a", "text": "a"}))
    value = UUID("018cf5b2-8a0e-7b3a-9c1d-3f2b4a5c6d7e")
    home.database.run("CREATE $id SET abstract = 'x'", id=RecordID("paper", value))
    home.questions("q.csv", f"id,text,relevant\nq,what,{value}\n")
    home.questions("q.jsonl", objects({"id": "r", "text": "what", "relevant": [str(value)]}))
    assert home.grades() == {"q": {value: 1}, "r": {value: 1}}


@pytest.mark.parametrize(
    ("value", "texts"), [("7", ["7", 7]), ("007", ["007"]), ("-0", ["-0"]), ("-7", ["-7", -7]), ("1e5", ["1e5"])]
)
def test_the_ids_that_print_as_a_text(value: str, texts: list[Any]) -> None:
    assert _ids.meanings(value) == texts
    assert _ids.meanings("9223372036854775808") == ["9223372036854775808"]


@pytest.mark.parametrize("value", ["1.5", "true", "null", '""', "[1]", "9223372036854775808", "1e5"])
def test_what_can_be_no_id_in_json(home: Home, value: str) -> None:
    home.documents("docs.jsonl", objects({"id": "a", "text": "a"}))
    refused(home, lambda: home.documents("x.jsonl", f'{{"id": {value}, "text": "a"}}'), "x.jsonl:1: ", "id")


# label files


LABELS = {"q1": {"d1": 1, "d2": 2, "d5": 1}, "q2": {"d3": 1, "d4": 0, "d1": 3, "d5": 1}}
PAIRS = [("q1", "d1", 1), ("q1", "d2", 2), ("q2", "d3", 1), ("q2", "d4", 0), ("q2", "d1", 3)]


def label_files() -> dict[str, str | bytes]:
    tsv = "".join(f"{q}\t{d}\t{g}\n" for q, d, g in PAIRS)
    trec = "".join(f"{q} 0 {d} {g}\n" for q, d, g in PAIRS)
    sheet_text = "".join(f"{q},{d},{g}\n" for q, d, g in PAIRS)
    typed = objects(*({"question": q, "document": d, "grade": g} for q, d, g in PAIRS))
    head = "query-id\tcorpus-id\tscore\n"
    return {
        "beir.tsv": head + tsv,
        "bare.tsv": tsv,
        "order.tsv": "Score\tQUERY-ID\tDoc_ID\n" + "".join(f"{g}\t{q}\t{d}\n" for q, d, g in PAIRS),
        "crlf.tsv": (head + tsv).replace("\n", "\r\n"),
        "cr.tsv": (head + tsv).replace("\n", "\r"),
        "bom.tsv": b"\xef\xbb\xbf" + (head + tsv).encode(),
        "bare-bom.tsv": b"\xef\xbb\xbf" + tsv.encode(),
        "blank.tsv": "\n" + head + "\n \n" + tsv.replace("\n", "\n\n"),
        "trailing.tsv": tsv.replace("\n", " \t \n"),
        "spaces.tsv": tsv.replace("\t", "  "),
        "noend.tsv": (head + tsv).rstrip("\n"),
        "plain.trec": trec,
        "crlf.trec": trec.replace("\n", "\r\n"),
        "cr.trec": trec.replace("\n", "\r"),
        "tabs.trec": trec.replace(" ", "\t"),
        "double.trec": trec.replace(" ", "  "),
        "mixed.trec": trec.replace(" 0 ", "\t0  "),
        "trailing.trec": trec.replace("\n", "  \n"),
        "blank.trec": "\n\n" + trec.replace("\n", "\n \n"),
        "bom.trec": b"\xef\xbb\xbf" + trec.encode(),
        "qrels.test": trec,
        "tabs.tsv": trec.replace(" ", "\t"),
        "plain.csv": "query_id,docid,rating\n" + sheet_text,
        "bare.csv": sheet_text,
        "order.csv": "Rating,Query ID,Document\r\n" + "".join(f"{g},{q},{d}\r\n" for q, d, g in PAIRS),
        "bom.csv": b"\xef\xbb\xbfqid,docid,rating\r\n" + sheet_text.replace("\n", "\r\n").encode(),
        "quoted.csv": sheet_text.replace("d1", '"d1"'),
        "empty-cells.csv": "qid,docid,rating\n" + sheet_text.replace("\n", ",\n"),
        "plain.jsonl": typed,
        "crlf.jsonl": typed.replace("\n", "\r\n"),
        "bom.jsonl": b"\xef\xbb\xbf" + typed.encode(),
        "beir.jsonl": typed.replace("question", "query-id").replace("document", "corpus-id").replace("grade", "score"),
        "array.json": b"\xef\xbb\xbf" + json.dumps([{"qid": q, "doc_id": d, "rel": g} for q, d, g in PAIRS], indent=2).encode(),
    }


def test_labels_are_five_however_the_file_was_saved(filled: Home) -> None:
    bare = filled.database.value("SELECT id, relevant FROM question")
    for name, content in label_files().items():
        told = filled.labels(name, content)
        assert (told.labels, told.questions, told.repeated_labels) == (5, 2, 0), name
        assert filled.grades() == LABELS, name
        before = filled.everything()
        again = filled.labels(name, content)
        assert (again.labels, again.questions, again.labels_there) == (0, 0, 5), name
        assert filled.everything() == before, name
        filled.database.run("FOR $row IN $rows { UPDATE $row.id SET judged = NONE, relevant = $row.relevant }", rows=bare)
        filled.database.run("DELETE import_log")


def test_a_question_that_is_called_like_a_column(home: Home) -> None:
    home.documents("docs.jsonl", objects({"id": "corpus-id", "text": "x"}, {"id": "d", "text": "x"}))
    home.questions("q.jsonl", objects({"id": "query-id", "text": "x", "relevant": ["d"]}))
    assert home.labels("a.tsv", "query-id\tcorpus-id\t1\n").labels == 1
    assert home.labels("b.trec", "query-id 0 corpus-id 1\n").labels_there == 1


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.tsv", "q1\td1\t1\nq1\td2\t1\nq2\td1\t1\nq2\td3\n", "x.tsv:4: not three fields: 'q2\\td3'"),
        ("x.tsv", "q1  d1  1\nq2  d3\n", "x.tsv:2: not three fields"),
        ("x.trec", "q1 0 d1 1\nq1 0 d2 1\nq2 0 d1 1\nq2 d3\n", "x.trec:4: not four fields: 'q2 d3'"),
        ("x.csv", "qid,docid,rating\nq1,d1,1\n\nq2\n", "x.csv:4: not three fields: 'q2'"),
        ("x.csv", 'q1,d1,1\nq2,"d3,1\n', "x.csv:2: a cell that can't be read"),
        ("x.jsonl", '{"question": "q1", "document": "d1", "grade": 1}\n{"question": "q2"', "x.jsonl:2: no JSON"),
        ("x.jsonl", '{"question": "q1", "document": "d1", "grade": "1"}', "x.jsonl:1: a grade is a number, without quotes"),
        ("x.jsonl", '{"question": "q1", "document": "d1"}', "x.jsonl:1: the grade None is no number"),
        ("x.jsonl", '{"question": "q1", "document": "d1", "grade": 1, "more": 2}', "x.jsonl:1: an unknown field 'more'"),
        (
            "x.jsonl",
            '{"question": "q1", "question": "q2", "document": "d1", "grade": 1}',
            "x.jsonl:1: no JSON (a key is there twice",
        ),
        ("x.json", '[{"question": "q1", "document": "d1", "grade": 1},\n 7]', "x.json:2: no JSON object: '7'"),
        ("x.json", '[{"question": "q1", "document": "d1", "grade": 1}\n {"question"', "x.json:"),
        ("x.tsv", "frage\tdokument\tnote\nq1\td1\t1\n", "x.tsv:1: an unknown header: 'frage\\tdokument\\tnote'"),
        ("x.csv", "qid,docid,stars\nq1,d1,1\n", "x.csv:1: an unknown header: 'qid,docid,stars'"),
        ("x.tsv", "q1\td1\t1_0\n", "x.tsv:1: "),
        ("x.trec", "q1 0 d1 1\nq1 0 d2 1000\n", "x.trec:2: the grade '1000' is out of range"),
        ("x.trec", "q1 0 d1 1\nq3 0 d2 1\n", "x.trec:2: the question 'q3' is not in the database"),
        ("x.trec", "q1 0 d1 1\nq1 0 d9 1\n", "x.trec:2: the document 'd9' is not in the database"),
        ("x.tsv", "q1\td1\t1\nq1\td2\t2\nq1\td3\t1\nq1\td2\t0\n", "x.tsv:4: another grade than in line 2"),
        ("x.tsv", "q1\td1\t1\nq1\td1 \t2\n", "x.tsv:2: another grade than in line 1"),
        ("x.tsv", "q1\td5\t2\n", "x.tsv:1: 'd5' has the grade 1 for 'q1'; --replace would make it 2"),
        ("x.tsv", b"q1\td\xe91\t1\n", "x.tsv:1: no UTF-8 text"),
        ("x.tsv", "", "holds no label"),
    ],
)
def test_a_fault_of_a_label_file(filled: Home, name: str, content: str | bytes, complaint: str) -> None:
    refused(filled, lambda: filled.labels(name, content), complaint)


def test_a_label_given_twice(filled: Home) -> None:
    told = filled.labels("x.trec", "q1 0 d1 1\nq1 0 d1 1\nq1 0 d5 1\n")
    assert (told.labels, told.repeated_labels, told.labels_there) == (1, 1, 1)


def test_replacing_a_grade_and_what_becomes_of_the_mean(filled: Home) -> None:
    before = filled.everything()
    assert filled.labels("x.tsv", "q1\td5\t0\n", replace=True, dry_run=True).no_longer_answerable == 1
    assert filled.everything() == before
    told = filled.labels("x.tsv", "q1\td5\t0\n", replace=True)
    assert (told.replaced, told.labels, told.no_longer_answerable) == (1, 0, 1)
    told = filled.labels("y.tsv", "q1\td1\t2\nq1\td2\t0.5\n")
    assert (told.labels, told.now_answerable) == (2, 1)
    assert filled.grades()["q1"] == {"d5": 0, "d1": 2, "d2": 0.5}
    assert filled.database.value("RETURN fn::check_imports()") == []


def test_labels_that_fail_on_the_way_are_put_back(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ingest, "_SHARD", 1)
    before = filled.everything()
    honest, updates = filled.database.run, iter(range(100))

    def failing(statements: str, **variables: Any) -> list[Any]:
        if "UPDATE $row.old.id" in statements and next(updates) == 1:
            raise SurrecallError("no space left")
        return honest(statements, **variables)

    monkeypatch.setattr(filled.database, "run", failing)
    with pytest.raises(SurrecallError, match="no space left"):
        filled.labels("x.tsv", "q1\td1\t1\nq2\td1\t2\n")
    monkeypatch.undo()
    after = filled.everything()
    # that it was changed and put back stays known
    assert any(row.pop("edited", None) for rows in after for row in rows)
    assert after == before


# questions


FULL: list[dict[str, Any]] = [
    {
        "id": "full",
        "text": 'What, "quoted"\nand broken\r\nover lines?',
        "judged": [{"document": "d1", "grade": 2}, {"document": "d2", "grade": 0}, {"document": "d3", "grade": 0.5}],
        "anchors": [{"document": "d1", "phrase": "words | of"}],
        "set": "mine",
        "kind": "lexical",
        "tags": ["a|b", "c\\d"],
        "split": "heldout",
        "source": "production",
        "note": "why",
    },
    {"id": "plain", "text": "plain", "relevant": ["d1", "d2"]},
    {"id": "none", "text": "nothing answers this", "relevant": [], "answerable": False},
]
FULL_SHEET = [
    ["ID", "Question", "Relevant", "Grades", "Anchors", "Answerable", "Set", "Kind", "Tags", "Split", "Source", "Note"],
    [
        "full",
        FULL[0]["text"],
        "d1|d2|d3",
        "2|0|0.5",
        r"d1::words \| of",
        "",
        "mine",
        "lexical",
        r"a\|b|c\\d",
        "heldout",
        "production",
        "why",
    ],
    ["plain", "plain", "d1|d2", "", "", "yes", "", "", "", "", "", ""],
    ["none", "nothing answers this", "", "", "", "FALSE", "", "", "", "", "", ""],
]


def question_files() -> dict[str, str | bytes]:
    typed, text, tabs = objects(*FULL), sheet(FULL_SHEET), sheet(FULL_SHEET, "\t")
    return {
        "full.jsonl": typed,
        "bom.jsonl": b"\xef\xbb\xbf" + typed.replace("\n", "\r\n").encode(),
        "full.json": b"\xef\xbb\xbf" + json.dumps(FULL, indent=2).encode(),
        "full.csv": text,
        "bom.csv": b"\xef\xbb\xbf" + text.encode(),
        "blank.csv": text.replace("\r\nplain", "\r\n\r\n,,,,\r\n   \r\nplain").replace(",,,,\r\n   \r\n", "   \r\n"),
        "full.tsv": tabs,
        "bom.tsv": b"\xef\xbb\xbf" + tabs.encode(),
        "arrays.csv": sheet(
            [
                FULL_SHEET[0],
                [
                    *FULL_SHEET[1][:2],
                    '["d1", "d2", "d3"]',
                    "[2, 0, 0.5]",
                    json.dumps(FULL[0]["anchors"]),
                    "",
                    "mine",
                    "lexical",
                    json.dumps(FULL[0]["tags"]),
                    *FULL_SHEET[1][9:],
                ],
                *FULL_SHEET[2:],
            ]
        ),
    }


def test_questions_are_the_same_from_every_format(filled: Home) -> None:
    fields = "text, judged, relevant, answerable, anchors, set, kind, tags, split, source, note"
    told: Any = None
    filled.database.run("DELETE question")
    for name, content in question_files().items():
        dry = filled.questions(name, content, dry_run=True)
        assert (dry.questions, dry.labels, dry.dry_run) == (3, 5, True), name
        assert filled.database.value("RETURN count(SELECT VALUE id FROM question)") == 0
        imported = filled.questions(name, content)
        assert (imported.questions, imported.labels) == (3, 5), name
        rows = filled.database.value(f"SELECT id, {fields} FROM question ORDER BY id")
        told = told or rows
        assert rows == told, name
        before = filled.everything()
        again = filled.questions(name, content)
        assert (again.questions, again.questions_there) == (0, 3), name
        assert filled.everything() == before, name
        filled.database.run("DELETE question; DELETE import_log;")
    by_id = {row["id"].id: row for row in told}
    assert by_id["full"]["text"] == FULL[0]["text"]
    assert [(label["document"].id, label["grade"]) for label in by_id["full"]["judged"]] == [("d1", 2), ("d2", 0), ("d3", 0.5)]
    assert by_id["full"]["anchors"] == [{"document": RecordID("paper", "d1"), "phrase": "words | of"}]
    assert by_id["full"]["tags"] == ["a|b", "c\\d"]
    assert [by_id["full"][key] for key in ("set", "kind", "split", "source", "note")] == [
        "mine",
        "lexical",
        "heldout",
        "production",
        "why",
    ]
    assert [by_id["plain"][key] for key in ("set", "source", "answerable", "tags")] == ["default", "human", True, []]
    assert by_id["plain"].get("judged") is None
    assert (by_id["none"]["relevant"], by_id["none"]["answerable"]) == ([], False)


BEIR = objects(
    {"_id": "q1", "text": "one", "metadata": {}},
    {"_id": "q2", "text": "two", "metadata": {"a": 1}},
    {"_id": "q9", "text": "spare"},
)


def test_questions_and_their_labels_at_once(filled: Home) -> None:
    filled.database.run("DELETE question")
    for name in ("beir.tsv", "plain.trec", "plain.csv", "plain.jsonl"):
        labels = filled.write(name, label_files()[name])
        told = filled.questions("queries.jsonl", BEIR, labels=labels)
        assert (told.questions, told.labels, told.unlabelled) == (2, 5, 1)
        assert filled.grades() == {"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1, "d4": 0, "d1": 3}}
        assert filled.database.value("SELECT VALUE source FROM question") == ["imported", "imported"]
        assert filled.questions("queries.jsonl", BEIR, labels=labels).questions_there == 2
        filled.database.run("DELETE question")


def test_questions_without_labels_are_refused_with_the_next_step(filled: Home) -> None:
    told = refused(filled, lambda: filled.questions("queries.jsonl", BEIR), "3 of 3 questions", "first in line 1")
    assert "surrecall import questions" in told
    assert "--labels qrels.tsv" in told
    labels = filled.write("x.tsv", "q1\td1\t1\nq7\td1\t1\n")
    refused(
        filled,
        lambda: filled.questions("q.jsonl", BEIR, labels=labels),
        "x.tsv:2: the question 'q7' is neither in q.jsonl nor there",
    )
    labelled = objects({"id": "z", "text": "z", "relevant": ["d1"]})
    refused(filled, lambda: filled.questions("l.jsonl", labelled, labels=labels), "has labels of its own", error=UsageError)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.csv", "id,text,relevant\na,one,d1\nb,two,d2\nc,three\n", "x.csv:4: 2 fields where the header has 3: 'c,three'"),
        ("x.csv", "id,text,relevant\na,one,d1\nonly a question\n", "x.csv:3: 1 fields where the header has 3: 'only a question'"),
        ("x.csv", "id,text,relevant\na,one,d1,more\n", "x.csv:2: 4 fields where the header has 3"),
        ("x.csv", "id,text,relevent\na,one,d1\n", "x.csv:1: an unknown header: 'id,text,relevent'"),
        ("x.csv", "id,text,Text,relevant\na,one,one,d1\n", "x.csv:1: a column is there twice"),
        ("x.csv", 'id,text,relevant\na,"one,d1\n', "x.csv:2: a cell that can't be read"),
        ("x.csv", "id,text,relevant\na,one,d9\n", "x.csv:2: the document 'd9' is not in the database: 'a,one,d9'"),
        ("x.csv", "id,text,relevant,grades\na,one,d1|d2,1\n", "x.csv:2: 1 grades for 2 documents"),
        ("x.csv", "id,text,relevant,grades\na,one,d1,much\n", "x.csv:2: the grade 'much' is no number"),
        ("x.csv", "id,text,relevant\na, ,d1\n", "x.csv:2: a question without text"),
        ("x.csv", "id,text,relevant,split\na,one,d1,test\n", "x.csv:2: split is 'test', none of dev, heldout"),
        ("x.csv", "id,text,relevant,source\na,one,d1,me\n", "x.csv:2: source is 'me'"),
        ("x.csv", "id,text,relevant,answerable\na,one,d1,maybe\n", "x.csv:2: answerable is 'maybe'"),
        ("x.csv", "id,text,relevant,anchors\na,one,d1,words\n", "x.csv:2: an anchor is document::phrase"),
        ("x.csv", "id,text,relevant\na,one,d1\\d2\n", "x.csv:2: a backslash before something else"),
        ("x.csv", "id,text,relevant\na,one,[d1\n", "x.csv:2: relevant begins with [ and is no JSON array"),
        ("x.csv", "id,text,relevant\na,one,d1\na,two,d2\n", "x.csv:3: another text than in line 2"),
        ("x.csv", "id,text,relevant,grades\na,one,d1,1\na,one,d1,2\n", "x.csv:3: another grade of 'd1' than in line 2"),
        ("x.csv", "id,text,relevant\nq1,what 1,d4\n", "x.csv:2: the question 'q1' is there with other labels"),
        ("x.csv", "id,text,relevant\nq1,other,d5\n", "x.csv:2: the question 'q1' is there with another text: 'what 1'"),
        ("x.csv", "id,text,relevant,kind\nq1,what 1,d5,x\n", "x.csv:2: the question 'q1' is there with another kind"),
        ("x.jsonl", '{"id": "a", "text": "one", "relevant": ["d1"]}\n{"id": "a", "text": "x", "relevant": ["d1"]}', "x.jsonl:2: the id 'a' is there already, in line 1"),  # noqa: E501
        ("x.jsonl", '{"id": "a", "text": "one", "relevent": ["d1"]}', "x.jsonl:1: an unknown field 'relevent'"),
        ("x.jsonl", '{"id": "a", "text": "one", "relevant": "d1"}', "x.jsonl:1: relevant is no list"),
        ("x.jsonl", '{"id": "a", "text": 1, "relevant": ["d1"]}', "x.jsonl:1: text is no text"),
        ("x.jsonl", '{"id": "a", "text": "one", "judged": [{"document": "d1"}]}', "x.jsonl:1: judged holds"),
        ("x.jsonl", '{"id": "a", "text": "one", "judged": [{"document": "d1", "grade": NaN}]}', "x.jsonl:1: the grade nan is out of range"),  # noqa: E501
        ("x.jsonl", '{"id": "a", "text": "one", "judged": [{"document": "d1", "grade": 0}], "answerable": true}', "x.jsonl:1: answerable, and no grade"),  # noqa: E501
        ("x.jsonl", '{"id": "a", "text": "half \\ud800", "relevant": ["d1"]}', "x.jsonl:1: half a character"),
        ("x.jsonl", '{"id": "a", "text": "one", "relevant": ["d1"], "embedding": [0, 0, 0]}', "x.jsonl:1: a vector of zeros"),
        ("x.jsonl", '{"id": "a", "text": "one", "relevant": ["d1"], "embedding": [1, 2]}', "the question vectors have 2 numbers"),
        ("x.json", '[{"id": "a", "text": "one", "relevant": ["d1"]}', "x.json:1: no comma after"),
        ("x.jsonl", b'{"id": "a", "text": "caf\xe9", "relevant": ["d1"]}', "x.jsonl:1: no UTF-8 text"),
        ("x.csv", "", "holds no question"),
    ],
)  # fmt: skip
def test_a_fault_of_a_question_file(filled: Home, name: str, content: str | bytes, complaint: str) -> None:
    refused(filled, lambda: filled.questions(name, content), complaint)


def test_a_sheet_with_a_row_for_each_label(filled: Home) -> None:
    told = filled.questions("x.csv", 'query,docid,rating\nstar wars,d1,2\nstar wars,d2,0\n"a, b",d3,1\nstar wars,d1,2\n')
    assert (told.questions, told.labels, told.repeated_labels) == (2, 3, 1)
    grades = filled.grades()
    assert grades[_question_file.made_id("star wars")] == {"d1": 2, "d2": 0}
    assert grades[_question_file.made_id("a, b")] == {"d3": 1}
    assert filled.questions("x.csv", "query,docid,rating\nstar wars,d1,2\nstar wars,d2,0\n").questions_there == 1


def test_a_label_given_twice_in_a_row(filled: Home) -> None:
    judged = [{"document": "d1", "grade": 2}, {"document": "d1", "grade": 2}]
    rows = objects({"id": "a", "text": "x", "relevant": ["d1", "d1", "d2"]}, {"id": "b", "text": "y", "judged": judged})
    assert (filled.questions("x.jsonl", rows).labels, filled.questions("x.jsonl", rows).repeated_labels) == (3, 2)
    assert filled.questions("x.csv", "id,text,relevant,grades\nc,z,d1|d2|d1,1|0|1\n").repeated_labels == 1
    clash = objects({"id": "d", "text": "y", "judged": [{"document": "d1", "grade": 2}, {"document": "d1", "grade": 0}]})
    refused(filled, lambda: filled.questions("y.jsonl", clash), "y.jsonl:1: two grades for 'd1'")
    refused(filled, lambda: filled.questions("y.csv", "id,text,relevant,grades\nd,z,d1|d1,1|0\n"), "y.csv:2: two grades for 'd1'")


def test_questions_with_many_labels_go_in_several_statements(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ingest, "_SHARD", 6)
    rows = [{"id": f"m{number}", "text": "x", "relevant": ["d1", "d2"]} for number in range(5)]
    assert [len(shard) for shard in _ingest.shards(rows, lambda row: len(row["relevant"]))] == [2, 2, 1]
    assert filled.questions("x.jsonl", objects(*rows)).questions == 5


def test_the_id_that_is_made_of_a_text() -> None:
    assert _question_file.made_id("Star Wars?") == "star-wars-" + _question_file.made_id("Star Wars?")[-12:]
    texts = ["star wars", "Star Wars", "star wars ", "star  wars", "星", "戦", "?", "!"]
    assert len({_question_file.made_id(text) for text in texts}) == len(texts)
    assert all(_question_file.made_id(text) == _question_file.made_id(text) for text in texts)


BASIC = 'query,docid,rating\ndog,d1,3\ndog,d2,0\ncat\n"one, two",d3,1\n =sum,d4,1\n\ncow,,\ndog,d5,\n'
DETAILED = (
    "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,price\r\n"
    'T,C,8,dog,d1,1,Good dog,3,1\r\nT,C,8,dog,d2,2,"Great, dog",0,2\r\nT,C,8,dog,d5,3,x,,2\r\n'
    'T,C,8,"one, two",d3,1,x,1,\r\nT,C,8, =sum,d4,1,x,1,\r\nT,C,8,cat,d3,1,x,,\r\nT,C,8,cow,d3,1,x,,\r\n'
)


@pytest.mark.parametrize("content", [BASIC, "\ufeff" + BASIC.replace("\n", "\r\n"), DETAILED, DETAILED.replace("\r\n", "\n")])
def test_what_quepid_exports(filled: Home, content: str) -> None:
    filled.database.run("DELETE question")
    told = filled.questions("case.csv", content, form="quepid")
    assert (told.questions, told.labels, told.unlabelled) == (3, 4, 2)
    rows = filled.database.value("SELECT VALUE [text, source] FROM question")
    assert sorted(rows) == [["=sum", "imported"], ["dog", "imported"], ["one, two", "imported"]]
    assert filled.grades()[_question_file.made_id("dog")] == {"d1": 3, "d2": 0}
    assert filled.questions("case.csv", content, form="quepid").questions_there == 3


@pytest.mark.parametrize(
    "content",
    [
        "Team Name,Case Name,Case ID,Query Text,Score,Date Last Scored,Count,Notes\nT,C,8,dog,30,x,,y\n",
        "query,docid,rating\ndog\ncat\n",
    ],
)
def test_a_quepid_export_without_ratings(filled: Home, content: str) -> None:
    refused(filled, lambda: filled.questions("case.csv", content, form="quepid"), "holds no rated document", "Basic or Detailed")


def vector_files(home: Home, names: list[str], dimension: int = 3) -> dict[str, Path]:
    numpy.save(
        home.folder / "v.npy", numpy.arange(1, len(names) * dimension + 1).reshape(len(names), dimension).astype("float32")
    )
    return {"vectors": home.folder / "v.npy", "ids": home.write("v.ids.txt", "\r\n".join(names))}


def test_vectors_of_questions(filled: Home) -> None:
    rows = objects({"id": 3, "text": "x", "relevant": ["d1"]}, {"id": "b", "text": "y", "relevant": ["d1"]})
    files = vector_files(filled, ["b", "3"])
    filled.questions("x.jsonl", rows, model="m", **files)
    found = filled.database.value("SELECT VALUE [embedding, embedding_model] FROM [question:3, question:b]")
    assert found == [[[4, 5, 6], "m"], [[1, 2, 3], "m"]]
    assert filled.questions("x.jsonl", rows, model="m", vectors=files["vectors"]).questions_there == 2
    own = objects({"id": "c", "text": "z", "relevant": ["d1"], "embedding": [1, 2, 3], "embedding_model": "n"})
    filled.questions("y.jsonl", own)
    assert filled.database.value("SELECT VALUE embedding_model FROM ONLY question:c") == "n"
    refused(
        filled,
        lambda: filled.questions("z.csv", "id,text,relevant\nd,x,d1\n", **files),
        "1 of 1 questions have no vector in v.npy",
    )
    two = objects({"id": 7, "text": "x", "relevant": ["d1"]}, {"id": "7", "text": "y", "relevant": ["d1"]})
    refused(filled, lambda: filled.questions("z.jsonl", two, **vector_files(filled, ["7", "8"])), "can't tell apart")
    refused(filled, lambda: filled.questions("z.jsonl", two, ids=files["ids"]), "--vectors", error=UsageError)


def test_vectors_are_filled_in_where_there_are_none(filled: Home) -> None:
    names = ["d1", "d2", "d3", "d4", "d5"]
    docs = objects(*({"id": name, "text": f"words of {name[1]}"} for name in names))
    told = filled.documents("docs.jsonl", docs, **vector_files(filled, names))
    assert (told.documents, told.documents_there, told.vectors_filled) == (0, 5, 5)
    assert filled.database.value("SELECT VALUE embedding FROM ONLY paper:d2") == [4, 5, 6]
    assert [row.id for row in filled.database.value("RETURN fn::retrieve_vec([1, 2, 3], 1)")] == ["d1"]
    assert filled.documents("docs.jsonl", docs, **vector_files(filled, names)).vectors_filled == 0
    names.reverse()
    refused(
        filled, lambda: filled.documents("docs.jsonl", docs, **vector_files(filled, names)), "is there with another embedding"
    )
    questions = objects(*({"id": name, "text": f"what {name[1]}", "relevant": ["d5"]} for name in ("q1", "q2")))
    told_of = filled.questions("q.jsonl", questions, model="m", **vector_files(filled, ["q1", "q2"]))
    assert (told_of.questions, told_of.questions_there, told_of.vectors_filled) == (0, 2, 2)
    assert filled.database.value("SELECT VALUE embedding_model FROM question") == ["m", "m"]
    refused(filled, lambda: filled.questions("q.jsonl", questions, **vector_files(filled, ["q2", "q1"])), "with another vector")


@pytest.mark.parametrize("at", ["UPDATE $row.id MERGE", "INSERT INTO"])
def test_vectors_that_fail_on_the_way_are_taken_out(filled: Home, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    files = vector_files(filled, ["d1", "d2", "new"])
    docs = objects({"id": "d1", "text": "words of 1"}, {"id": "d2", "text": "words of 2"}, {"id": "new", "text": "x"})
    monkeypatch.setattr(_ingest, "_BATCH_WITH_INDEXES", 1)
    before = filled.everything()
    honest, statements_seen = filled.database.run, iter(range(100))

    def failing(statements: str, **variables: Any) -> list[Any]:
        if at in statements and next(statements_seen) == (1 if "UPDATE" in at else 0):
            raise SurrecallError("no space left")
        return honest(statements, **variables)

    monkeypatch.setattr(filled.database, "run", failing)
    with pytest.raises(SurrecallError, match="no space left"):
        filled.documents("x.jsonl", docs, **files)
    monkeypatch.undo()
    assert filled.everything() == before


def test_questions_that_fail_on_the_way_are_taken_out(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ingest, "_BATCH_WITHOUT_INDEXES", 1)
    before = filled.everything()
    honest, inserts = filled.database.run, iter(range(100))

    def failing(statements: str, **variables: Any) -> list[Any]:
        if "INSERT INTO question" in statements and next(inserts) == 2:
            raise SurrecallError("no space left")
        return honest(statements, **variables)

    monkeypatch.setattr(filled.database, "run", failing)
    with pytest.raises(SurrecallError, match="no space left"):
        filled.questions("full.jsonl", objects(*FULL))
    monkeypatch.undo()
    assert filled.everything() == before


# documents


def test_documents_are_the_same_from_every_format(home: Home) -> None:
    rows = [
        {"id": "a", "title": "On bees", "text": 'bees, "and"\nwasps\r\nand\tants', "vector": [1.5, 2.0, 3.0]},
        {"id": "b", "text": "no title", "vector": [0.0, 1.0, 0.0]},
    ]
    cells: list[list[Any]] = [
        ["ID", "Title", "Text", "Vector", "url"],
        *([row["id"], row.get("title", ""), row["text"], json.dumps(row["vector"]), "x"] for row in rows),
    ]
    files: dict[str, str | bytes] = {
        "d.jsonl": objects(*rows),
        "bom.jsonl": b"\xef\xbb\xbf" + objects(*rows).replace("\n", "\r\n").encode(),
        "d.json": json.dumps(rows, indent=1),
        "d.csv": sheet(cells),
        "bom.csv": b"\xef\xbb\xbf" + sheet(cells).encode(),
        "d.tsv": sheet(cells, "\t").replace("[1.5, 2.0, 3.0]", "1.5 2.0 3.0"),
        "beir.jsonl": objects(
            *({"_id": row["id"], "metadata": {}} | {k: v for k, v in row.items() if k != "id"} for row in rows)
        ),
    }
    told: Any = None
    for name, content in files.items():
        imported = home.documents(name, content)
        assert (imported.documents, imported.vectors) == (2, 2), name
        found = home.database.value("SELECT * FROM paper ORDER BY id")
        told = told or found
        assert found == told, name
        before = home.everything()
        assert home.documents(name, content).documents_there == 2
        assert home.everything() == before
        assert len(home.database.value("RETURN fn::retrieve_bm25('bees', 5)")) == 1
        home.database.run("DELETE paper; DELETE import_log;")
    assert told[0] == {"id": RecordID("paper", "a"), "title": "On bees", "abstract": rows[0]["text"], "embedding": [1.5, 2, 3]}


def test_columns_by_other_names_and_titles_that_are_searched(home: Home) -> None:
    text = 'Key,Head,Text,Body,Numbers\n1,On bees,x,small,"1, 2, 3"\n2,On ants,x,On ants and wasps,4 5 6\n'
    names = Names("Key", "Body", "Head", "Numbers")
    dry = home.documents("d.csv", text, names=names, prepend_title=True, dry_run=True)
    assert (dry.documents, dry.vectors) == (2, 2)
    assert home.database.value("INFO FOR DB")["tables"] == {}
    home.documents("d.csv", text, names=names, prepend_title=True)
    assert home.database.value("SELECT VALUE [record::id(id), title, abstract, embedding] FROM paper ORDER BY id") == [
        ["1", "On bees", "On bees\nsmall", [1, 2, 3]],
        ["2", "On ants", "On ants and wasps", [4, 5, 6]],
    ]
    refused(
        home,
        lambda: home.documents("d.csv", text, names=Names("key", "bodies")),
        "no row of d.csv has a 'bodies'",
        error=UsageError,
    )


def test_vectors_of_documents_from_a_file(home: Home) -> None:
    rows = objects({"id": 3, "text": "x"}, {"id": "b", "text": "y"})
    home.documents("x.jsonl", rows, **vector_files(home, ["b", "3"]))
    assert home.database.value("SELECT VALUE embedding FROM [paper:3, paper:b]") == [[4, 5, 6], [1, 2, 3]]
    refused(
        home,
        lambda: home.documents("y.jsonl", objects({"id": "c", "text": "z"}), **vector_files(home, ["b"])),
        "1 of 1 documents have no vector",
    )
    refused(
        home,
        lambda: home.documents("y.jsonl", objects({"id": "b", "text": "y"}), **vector_files(home, ["b"], 2)),
        "have 2 numbers",
    )


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.jsonl", '{"id": "d1"}', "x.jsonl:1: no text"),
        ("x.jsonl", '{"id": "n", "text": " "}', "x.jsonl:1: an empty document"),
        ("x.jsonl", '{"text": "x"}', "x.jsonl:1: no id"),
        ("x.jsonl", '{"id": "n", "text": "x"}\n{"id": "n", "text": "x"}', "x.jsonl:2: the id 'n' is there already, in line 1"),
        ("x.jsonl", '{"id": "n", "text": "x", "vector": [1, 2, "3"]}', "x.jsonl:1: a vector is a list of finite numbers"),
        ("x.jsonl", '{"id": "n", "text": "x", "vector": [0, 0, 0]}', "x.jsonl:1: a vector of zeros"),
        ("x.jsonl", '{"id": "n", "text": "x", "vector": [1, 2]}', "have 2 numbers, paper.embedding takes 3"),
        ("x.csv", "id,text\nn\n", "x.csv:2: 1 fields where the header has 2"),
        ("x.csv", "nummer,inhalt\nn,x\n", "x.csv:1: an unknown header"),
        ("x.jsonl", '{"id": "d1", "text": "x"}', "x.jsonl:1: the document 'd1' is there with another abstract"),
        ("x.csv", "id,text\n", "holds no document"),
    ],
)
def test_a_fault_of_a_document_file(filled: Home, name: str, content: str, complaint: str) -> None:
    refused(filled, lambda: filled.documents(name, content), complaint)


def test_a_cell_may_hold_a_whole_book(home: Home) -> None:
    assert home.documents("d.csv", sheet([["id", "text"], ["a", "word " * 60_000]])).documents == 1
    assert home.database.value("SELECT VALUE string::len(abstract) FROM ONLY paper:a") == 300_000


def test_a_title_that_the_table_has_no_field_for(home: Home) -> None:
    home.database.run("DEFINE TABLE paper SCHEMAFULL; DEFINE FIELD abstract ON paper TYPE string;")
    told = home.documents("d.jsonl", objects({"id": "a", "title": "t", "text": "x"}), dry_run=True)
    assert (told.documents, told.titles_left_out) == (1, 1)


def test_the_path_of_a_field() -> None:
    assert _quoting.parts("meta.body") == ("meta", "body")
    assert _quoting.parts("meta.`odd.name \\` x`.⟨a b⟩") == ("meta", "odd.name ` x", "a b")
    row: dict[str, Any] = {"id": 1}
    _fields.place(row, "meta.body", "x")
    _fields.place(row, "meta.more", "y")
    assert row == {"id": 1, "meta": {"body": "x", "more": "y"}}
    assert [_fields.pick(row, path) for path in ("meta.body", "meta.none", "none.body", "id.x")] == ["x", None, None, None]


def test_the_first_ten_faults_are_shown(filled: Home) -> None:
    told = refused(filled, lambda: filled.labels("x.trec", "q1 0 d1 1\n" + "q1 0 x 1\n" * 30), "30 faults", "and 20 more")
    assert "x.trec:11: " in told
    assert "x.trec:12: " not in told


# spreadsheets


def test_a_csv_however_a_spreadsheet_wrote_it(home: Home) -> None:
    home.documents("d.csv", "ID;Title;Text;Autor\r\n1;Eins;ein Wort, zwei;x\r\n;;;\r\n2;Zwei;zwei;\r\n;;;\r\n")
    assert home.database.value("SELECT VALUE [record::id(id), abstract] FROM paper ORDER BY id") == [
        ["1", "ein Wort, zwei"],
        ["2", "zwei"],
    ]
    home.questions("q.csv", "ID;Question;Relevant;Grades\nq;was, wo?;1|2;2|0\n;;;\n;;;\n")
    home.questions("r.csv", "id\ttext\trelevant\nr\tx\t1\n\t\t\n")
    home.labels("l.csv", "Query ID;Document;Rating\nr;2;1\n;;\n")
    home.labels("m.csv", "q;1;2\n")
    assert home.grades() == {"q": {"1": 2, "2": 0}, "r": {"1": 1, "2": 1}}
    # a separator inside a name that is quoted, or of no known name, parts nothing
    assert home.documents("e.csv", 'id,text,"a;b;c"\n1,"ein Wort, zwei",\n').columns_left_out == ["a;b;c"]
    refused(
        home,
        lambda: home.documents("x.csv", "id,text;title\n1,x\n"),
        "x.csv:1: a comma and a semicolon could part the columns: 'id,text;title'",
        "save the file with the other separator",
    )
    for name, content in (("x.xlsx", b"PK"), ("x.csv", b"PK\x03\x04more"), ("x.tsv", b"PK\x03\x04more")):
        refused(home, lambda name=name, content=content: home.documents(name, content), "is a file of a spreadsheet", "CSV UTF-8")  # type: ignore[misc]
        refused(home, lambda name=name, content=content: home.labels(name, content), "is a file of a spreadsheet")  # type: ignore[misc]
    told = refused(home, lambda: home.questions("x.csv", "id,text\na,b\nö,é\n".encode("latin-1")), "x.csv:3: no UTF-8 text")
    assert "save it as CSV UTF-8" in told
    assert "'ö,é'" in told


def test_columns_by_other_names_of_questions(filled: Home) -> None:
    names = _question_file.Names("Nummer", "Frage")
    filled.questions("x.csv", "Frage;Nummer;Relevant\nwas;17;d1\n", names=names)
    filled.questions("x.jsonl", objects({"nummer": "18", "frage": "wo", "relevant": ["d1"]}), names=names)
    assert filled.database.value("SELECT VALUE text FROM [question:⟨17⟩, question:⟨18⟩]") == ["was", "wo"]
    refused(
        filled,
        lambda: filled.questions("x.csv", "text,relevant\nx,d1\n", names=_question_file.Names("key")),
        "no row of x.csv has a 'key'",
        error=UsageError,
    )


def test_what_is_left_out_of_documents_is_named(home: Home) -> None:
    told = home.documents("d.csv", "id,text,author,Year\na,x,y,2\n")
    assert told.columns_left_out == ["author", "Year"]
    assert home.documents("d.jsonl", objects({"id": "b", "text": "x", "metadata": {}})).columns_left_out == ["metadata"]
    assert home.documents("d.jsonl", objects({"id": "b", "text": "x"})).columns_left_out == []


# replacing questions


def question(home: Home, name: str = "q1") -> dict[str, Any]:
    row: dict[str, Any] = home.database.value("RETURN (SELECT * FROM ONLY $id)", id=RecordID("question", name))
    return row


def test_a_sheet_that_was_edited_is_imported_again(filled: Home) -> None:
    full = "id,text,relevant,grades,kind,tags,split,source,note,set\n"
    filled.questions("q.csv", full + "a,old,d1|d2,2|0,lexical,s|t,dev,human,why,mine\nb,bee,d1,,,,,,,\n")
    edited = full + "a,new,d2|d3,1|1,,t|u,heldout,production,,\nb,bee,d1,,,,,,,\nc,sea,d3,,,,,,,\n"
    told = refused(
        filled, lambda: filled.questions("q.csv", edited), "q.csv:2: the question 'a' is there with another text: 'old'"
    )
    assert "--replace" in told
    before = filled.everything()
    for dry_run in (True, False):
        done = filled.questions("q.csv", edited, replace=True, dry_run=dry_run)
        assert (done.questions, done.replaced, done.questions_there) == (1, 1, 2)
        assert (done.labels_added, done.labels_replaced) == (1, 1)
        assert (filled.everything() == before) is dry_run
    row = question(filled, "a")
    assert [row[key] for key in ("text", "kind", "tags", "split", "source", "note", "set")] == [
        "new", "lexical", ["t", "u"], "heldout", "production", "why", "mine",
    ]  # fmt: skip
    # none is taken away
    assert filled.grades()["a"] == {"d1": 2, "d2": 1, "d3": 1}
    before = filled.everything()
    done = filled.questions("q.csv", edited, replace=True)
    assert (done.questions, done.replaced, done.questions_there) == (0, 0, 3)
    assert filled.everything() == before
    # a label without a grade says relevant and not how much; questions that are there need none
    filled.questions("r.jsonl", objects({"id": "a", "text": "new", "relevant": ["d1"]}, {"id": "q1", "text": "w"}), replace=True)
    assert (filled.grades()["a"]["d1"], question(filled)["text"]) == (2, "w")
    filled.questions("r.jsonl", objects({"id": "q1", "text": "w", "answerable": False}), replace=True)
    assert (question(filled)["answerable"], question(filled)["relevant"]) == (False, [RecordID("paper", "d5")])
    filled.questions("r.jsonl", objects({"id": "q1", "text": "w", "answerable": True}), replace=True)
    assert question(filled)["answerable"] is True
    refused(filled, lambda: filled.questions("r.csv", "id,text\nq1,w\nnew,x\n", replace=True), "1 of 2 questions", "new,x")
    other = "id,text,relevant\na,new,d1\n"
    refused(filled, lambda: filled.questions("r.csv", other, replace=True, question_set="x"), "is in the golden set mine")
    # with a file of labels
    qrels = filled.write("qrels.tsv", "q1\td5\t0\nq2\td1\t1\n")
    done = filled.questions(
        "b.jsonl", objects({"_id": "q1", "text": "w"}, {"_id": "q2", "text": "v"}), labels=qrels, replace=True
    )
    assert (done.replaced, done.labels_added, done.labels_replaced) == (2, 1, 1)
    assert (done.below_one, done.first_below_one) == (1, "q1")
    assert [question(filled, name)["source"] for name in ("q1", "q2")] == ["human", "human"]


@pytest.mark.parametrize("at", ["INSERT INTO question", "fn::settle_embeddings", "SET finished"])
def test_a_replacement_that_fails_is_taken_back(filled: Home, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    filled.questions(
        "q.jsonl", objects({"id": "v", "text": "x", "relevant": ["d1"], "embedding": [1, 2, 3], "kind": "k"}), model="m"
    )
    before = [*filled.everything(), filled.database.value("SELECT * FROM embedding_model")]
    honest = filled.database.run

    def failing(statements: str, **variables: Any) -> list[Any]:
        if at in statements:
            raise SurrecallError("no space left")
        return honest(statements, **variables)

    monkeypatch.setattr(filled.database, "run", failing)
    rows = objects(
        {"id": "v", "text": "y", "judged": [{"document": "d1", "grade": 3}], "embedding": [3, 2, 1], "kind": "l", "tags": ["t"]},
        {"id": "q1", "text": "other", "relevant": ["d1"], "note": "n"},
        {"id": "w", "text": "new", "relevant": ["d1"]},
    )
    with pytest.raises(SurrecallError, match="no space left"):
        filled.questions("q.jsonl", rows, model="n", replace=True)
    monkeypatch.undo()
    assert [*filled.everything(), filled.database.value("SELECT * FROM embedding_model")] == before


def recorded(home: Home) -> dict[str, str]:
    return {row["role"]: row["model"] for row in home.database.value("SELECT role, model FROM embedding_model")}


def test_the_model_of_imported_vectors(filled: Home) -> None:
    names = [f"d{number}" for number in range(1, 6)]
    docs = objects(*({"id": name, "text": f"words of {name[1]}"} for name in names))
    assert filled.documents("docs.jsonl", docs, model="m", **vector_files(filled, names), dry_run=True).vectors_filled == 5
    assert recorded(filled) == {}
    filled.documents("docs.jsonl", docs, model="m", **vector_files(filled, names))
    assert recorded(filled) == {"document": "m"}
    row = objects({"id": "d6", "text": "x", "vector": [1, 2, 3]})
    refused(
        filled,
        lambda: filled.documents("more.jsonl", row, model="n"),
        "paper.embedding holds vectors of m, not of n",
        error=UsageError,
    )
    assert filled.documents("more.jsonl", row).model_taken_for == "m"
    refused(filled, lambda: filled.documents("x.jsonl", docs, model="m"), "the file has none", error=UsageError)
    # vectors of another model, then those of the right one in their place
    questions = objects(*({"id": f"q{number}", "text": f"what {number}"} for number in (1, 2)))
    files = vector_files(filled, ["q1", "q2"])
    filled.questions("q.jsonl", questions, model="wrong", replace=True, **files)
    assert recorded(filled) == {"document": "m", "question": "wrong"}
    (finding,) = filled.database.value("RETURN fn::check_embeddings()")
    assert "has vectors of wrong, the documents of m" in finding["problem"]
    with pytest.raises(DataError, match="has vectors of wrong"):
        evaluate(filled.database, Options([1]))
    # whatever is asked of the embedder, the way out that it names is one
    places = _embed.places(CORPUS, filled.project, filled.database)
    for how in ({}, {"embedder": Kind.HASHING}, {"embedder": Kind.OPENAI}, {"embedder": Kind.OPENAI, "model": "wrong"}):
        with pytest.raises(UsageError) as caught:
            _embed.embed(filled.database, places, _embed.Asked(**how))
        assert "surrecall embed --all --questions-only --embedder … --model m" in caught.value.text or not how
        assert "surrecall embed --embedder … --model m goes on with it" in caught.value.text or how
    before = filled.everything()
    _embed.embed(filled.database, places, _embed.Asked(embedder=Kind.HASHING, every=True))
    assert recorded(filled) == {"document": "hashing-1", "question": "hashing-1"}
    filled.questions("q.jsonl", questions, model="wrong", replace=True, **files)
    with pytest.raises(UsageError, match=r"question\.embedding holds vectors of wrong, paper\.embedding of hashing-1") as caught:
        _embed.embed(filled.database, places, _embed.Asked())
    assert "surrecall embed --all --questions-only replaces those of the questions" in caught.value.text
    _embed.embed(filled.database, places, _embed.Asked(roles=("question",), every=True))
    assert recorded(filled) == {"document": "hashing-1", "question": "hashing-1"}
    # as it was before that
    filled.database.run(
        "FOR $row IN $rows { UPDATE $row.id CONTENT $row }; UPDATE embedding_model SET model = 'm', how = NONE", rows=before[0]
    )
    files = vector_files(filled, ["q2", "q1"])
    done = filled.questions("q.jsonl", questions, model="m", replace=True, **files)
    assert (done.replaced, recorded(filled)) == (2, {"document": "m", "question": "m"})
    assert question(filled)["embedding"] == [4, 5, 6]
    assert filled.database.value("RETURN fn::check_embeddings()") == []
    # the vectors of nobody knows which model
    filled.questions("q.jsonl", questions, replace=True, **vector_files(filled, ["q1", "q2"]))
    assert (question(filled).get("embedding_model"), recorded(filled)) == (None, {"document": "m"})
    assert filled.questions("q.jsonl", questions, model="m", replace=True, **files, dry_run=True).models_stated == 2
    filled.questions("q.jsonl", questions, model="m", replace=True, **files)
    assert recorded(filled) == {"document": "m", "question": "m"}
    # another text has no vector any more
    done = filled.questions("q.csv", "id,text\nq1,other\n", replace=True)
    assert (done.vectors_outdated, question(filled).get("embedding")) == (1, None)


def test_no_label_reaches_grade_1(filled: Home) -> None:
    low, none = {"document": "d1", "grade": 0}, {"id": "n", "text": "x", "relevant": [], "answerable": False}
    told = filled.questions(
        "x.jsonl", objects({"id": "a", "text": "x", "judged": [low]}, {"id": "b", "text": "x", "judged": [low]}, none)
    )
    assert (told.below_one, told.first_below_one) == (2, "a")
    qrels = filled.write("qrels.tsv", "c\td1\t0.5\n")
    assert filled.questions("y.jsonl", objects({"id": "c", "text": "x"}), labels=qrels).first_below_one == "c"


# what the database refuses


def test_a_table_that_needs_more_than_an_import_gives(home: Home) -> None:
    home.database.run(
        "DEFINE TABLE paper SCHEMAFULL; DEFINE FIELD abstract ON paper TYPE string ASSERT $value != 'bad';"
        "DEFINE FIELD embedding ON paper TYPE option<array<float>>;"
    )
    home.documents("d.jsonl", objects({"id": "a", "text": "x"}))
    rows = objects({"id": "b", "text": "y"}, {"id": "c", "text": "bad"})
    refused(home, lambda: home.documents("e.jsonl", rows), "e.jsonl:2: the table paper refuses the document 'c'", "and no more")
    home.database.run("DEFINE FIELD category ON paper TYPE string")
    told = refused(
        home, lambda: home.documents("e.jsonl", rows), "e.jsonl:1: the table paper refuses the document 'b'", "category"
    )
    assert "option<…>" in told
    assert home.database.value("RETURN fn::check_imports()") == []


def test_questions_of_another_table_than_the_golden_set(filled: Home) -> None:
    other = Corpus("kb_page", "body", None)
    filled.database.run("CREATE kb_page:a SET body = 'x'")
    path = filled.write("x.csv", "id,text,relevant\na,x,a\n")
    for dry_run in (True, False):
        options = QuestionOptions(path, "csv", dry_run=dry_run)
        refused(
            filled,
            lambda options=options: import_questions(filled.database, filled.project, other, options),  # type: ignore[misc]
            " evaluates paper, and its questions",
            "this project is for kb_page",
            error=SchemaError,
        )


# the commands


def test_the_commands_as_a_user_calls_them(tmp_path: Path) -> None:
    env = {"SURREAL_URL": "surrealkv://data"}

    def run(*arguments: str, code: int = 0) -> str:
        done = surrecall(*arguments, cwd=tmp_path, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    (tmp_path / "docs.jsonl").write_text(objects({"id": "a", "text": "one"}, {"id": 2, "text": "two"}))
    (tmp_path / "queries.jsonl").write_text(objects({"_id": "q", "text": "one"}))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    (tmp_path / "more.trec").write_text("q 0 2 2\n")
    (tmp_path / "noted.csv").write_text("id,text,note\na,one,x\n")
    assert "surrecall init" in run("import", "documents", "docs.jsonl", code=2)
    run("init", "--table", "paper", "--field", "abstract", "--dimension", "3")
    assert "would import 2 documents, 0 with a vector" in run("import", "documents", "docs.jsonl", "--dry-run")
    assert not (tmp_path / "data").exists()
    assert "imported 2 documents, 0 with a vector" in run("import", "documents", "docs.jsonl")
    assert "2 documents were there already" in run("import", "documents", "docs.jsonl")
    assert "next: name the documents" in run("import", "questions", "queries.jsonl", code=4)
    assert "would import 1 question, 1 label" in run("import", "questions", "queries.jsonl", "--labels", "qrels.tsv", "--dry-run")
    told = json.loads(run("import", "questions", "queries.jsonl", "--labels", "qrels.tsv", "--json"))
    assert (told["questions"], told["labels"], told["dry_run"]) == (1, 1, False)
    assert "would import 1 label, for 1 question" in run("import", "labels", "more.trec", "--dry-run")
    assert json.loads(run("import", "labels", "more.trec", "--json"))["labels"] == 1
    assert "1 labels were there already" in run("import", "labels", "more.trec")
    (tmp_path / "sheet.csv").write_text("ID;Frage;Relevant;Kind\nq;two;2;x\nlow;three;;\n")
    sheet = ("import", "questions", "sheet.csv", "--text", "Frage", "--replace")
    assert "1 of 2 questions of sheet.csv have no label" in run(*sheet, code=4)
    (tmp_path / "sheet.csv").write_text("ID;Frage;Relevant;Kind;Grades\nq;two;2;x;\nlow;three;a;;0\n")
    assert "--replace" in run(*sheet[:-1], code=4)
    assert "would replace 1 question\n" in run(*sheet, "--dry-run")
    told = run(*sheet)
    assert "imported 1 question, 1 label\nreplaced 1 question\n" in told
    assert "warning: no label reaches grade 1 for 1 question, first 'low'" in told
    assert "columns left out: note" in run("import", "documents", "noted.csv")
    assert "--format" in run("import", "questions", "qrels.trec", code=2)
    assert "one of trec" in run("import", "labels", "more.trec", "--format", "xml", code=2)
    assert "can't be read" in run("import", "labels", "nothing.tsv", code=4)


def test_what_somebody_else_wrote_meanwhile_is_never_taken_out(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of an id of the file that came in while the import ran is its writer's, and stays when the import fails."""
    rows = [{"id": f"m{number:03}", "text": "x"} for number in range(120)]
    path = filled.write("meanwhile.jsonl", objects(*rows))
    add = _ingest.batches

    def then_another_writes(found: Any, size: int) -> Any:
        for number, batch in enumerate(add(found, size)):
            yield batch
            if number == 0 and batch and isinstance(batch[0], dict) and "id" in batch[0]:
                filled.database.run("UPSERT paper:m119 SET abstract = 'written by the application'")

    before = filled.database.value("RETURN count(SELECT VALUE id FROM paper)")
    monkeypatch.setattr(_ingest, "batches", then_another_writes)
    with pytest.raises(SurrecallError):
        filled.documents("meanwhile.jsonl", path.read_bytes())
    monkeypatch.undo()
    assert filled.database.value("SELECT VALUE abstract FROM ONLY paper:m119") == "written by the application"
    assert filled.database.value("RETURN count(SELECT VALUE id FROM paper)") == before + 1
    assert filled.database.value("RETURN fn::check_imports()") == []


def test_labels_that_another_writer_adds_meanwhile_stay(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (question, *_) = filled.database.value("SELECT VALUE id FROM question ORDER BY id")
    documents = filled.database.value("SELECT VALUE id FROM paper ORDER BY id")
    labelled = filled.database.value("RETURN fn::labels_of($id).document", id=question)
    ours, theirs = [document for document in documents if document not in labelled][:2]
    shards = _ingest.shards

    def then_another_writes(found: Any, size: Any) -> Any:
        for batch in shards(found, size):
            # after it was read, and before it is written
            filled.database.run(
                "UPDATE $id SET judged = NONE, relevant = array::add(relevant, $label)", id=question, label=theirs
            )
            yield batch

    monkeypatch.setattr(_ingest, "shards", then_another_writes)
    with pytest.raises(SurrecallError, match="changed meanwhile"):
        filled.labels("late.trec", f"{question.id} 0 {ours.id} 1\n")
    monkeypatch.undo()
    now = filled.database.value("RETURN fn::labels_of($id).document", id=question)
    assert theirs in now
    assert ours not in now


def test_another_file_of_the_same_name_does_not_end_an_import_that_was_cut_off(filled: Home) -> None:
    (filled.folder / "other").mkdir()
    path = filled.write("same.jsonl", objects({"id": "s1", "text": "x"}))
    filled.database.run(
        "CREATE import_log SET source = $source, documents = 5, questions = 0", source=f"documents of {path.resolve()}"
    )
    filled.documents("other/same.jsonl", objects({"id": "s2", "text": "x"}))
    assert len(filled.database.value("RETURN fn::check_imports()")) == 1
    filled.documents("same.jsonl", path.read_bytes())
    assert filled.database.value("RETURN fn::check_imports()") == []


ODD_CELLS = {
    "half a character": ('id,text,relevant\nqs,text,"[""\\ud800""]"\n', "half a character"),
    "half a character in tags": ('id,text,relevant,tags\nqs,text,d1,"[""\\ud800""]"\n', "half a character"),
    "nested deep": ("id,text,relevant\nqs,text," + "[" * 100_000 + "\n", "is no JSON array (nested too deep)"),
    "a key twice": (
        'id,text,relevant,anchors\nqs,text,d1,"[{""document"": ""d1"", ""document"": ""d2""}]"\n',
        "a key is there twice",
    ),
}


@pytest.mark.parametrize("cell", ODD_CELLS)
def test_json_in_a_cell_that_is_none(filled: Home, cell: str) -> None:
    content, complaint = ODD_CELLS[cell]
    with pytest.raises(DataError, match=re.escape(complaint)) as refused:
        filled.questions("odd.csv", content)
    assert "odd.csv:2: " in refused.value.message


@pytest.mark.parametrize("number", ["1e-200", "1e299", "0"])
def test_vectors_that_nothing_can_be_searched_with_are_named_by_line(filled: Home, number: str, tmp_path: Path) -> None:
    """The trial says what the import says, of documents, questions and .npy alike."""
    document = f'{{"id": "tiny", "text": "t", "vector": [{number}, 0, 0]}}\n'
    question = f'{{"id": "tiny", "text": "t", "relevant": ["d1"], "embedding": [{number}, 0, 0]}}\n'
    for trial in (True, False):
        with pytest.raises(DataError, match=r"tiny\.jsonl:1: a vector of zeros, or of numbers too small or too large"):
            filled.documents("tiny.jsonl", document, dry_run=trial)
        with pytest.raises(DataError, match=r"tiny\.jsonl:1: a vector of zeros, or of numbers too small or too large"):
            filled.questions("tiny.jsonl", question, dry_run=trial)
    numpy.save(tmp_path / "v.npy", numpy.array([[1.0, 0, 0], [float(number), 0, 0]]))
    (tmp_path / "v.ids.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"row 2 \(b\) is a vector of zeros, or of numbers too small or too large"):
        _vectors.read(tmp_path / "v.npy", tmp_path / "v.ids.txt")


def test_labels_and_questions_whose_ids_are_arrays_stand_beside_others(filled: Home) -> None:
    """Rows of the user's own; no file can name such an id, and they stop no import."""
    filled.database.run(
        "CREATE paper:[1, 'a'] SET abstract = 'arr';"
        "CREATE question:with SET text = 'x', relevant = [paper:[1, 'a']];"
        "CREATE question:[1] SET text = 'y', relevant = [paper:d1];"
    )
    assert filled.labels("beside.trec", "with 0 d1 1\n").labels == 1
    labels = filled.database.value("RETURN fn::labels_of(question:with).document")
    assert [str(label.id) for label in labels] == ["[1, 'a']", "d1"]
    told = filled.questions("beside.jsonl", objects({"id": "with", "text": "z", "relevant": ["d2"]}), replace=True)
    assert (told.replaced, told.labels_added) == (1, 1)
    assert len(filled.database.value("RETURN fn::labels_of(question:with)")) == 3
