"""Snapshots: everything in one file, printed by the engine; loaded elsewhere it is the same, or nothing is left of it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from surrealdb import RecordID

from conftest import fresh_settings
from surrecall import Database, DataError, Options, SchemaError, UsageError, _init, _inventory, _schema, evaluate
from surrecall._corpus import Corpus
from surrecall._export import source
from surrecall._export.output import Lines
from surrecall._snapshot import load, write
from surrecall._snapshot.form import Reader
from test_cli import surrecall

CORPUS = Corpus("paper", "abstract", "embedding", 3)
TEXT = (
    "LF\nCRLF\r\nCR\rtab\tseparators\u2028\u2029\x85 NUL\x00 quotes ' \" ` “ backslash \\ \\n, bars | ⟨⟩ \ufeffmark 🙂 \x1b\x7f"
)
# ids that become other ids as soon as somebody parses them
IDS: tuple[Any, ...] = (
    "007", "7", 7, 0, -3, 2**63 - 1, "1e5", "125813199042576601589342522460260755", "a-b", "a b/c:d", "x⟩y'z", "⟨⟩", "`", "\\",
    "\\`",
    '"', "a|b", "paper:7", "https://e.org/a#b", "🙂", "\ufeffx", "a\r\nb", "a\rb", "a\nb", "a\tb", "a\u2028b", "a\x00b", "",
    " ", "NONE", "null",
    "u'x'", "3f", "2024-01-01", "0189f0a0-0000-7000-8000-000000000000", UUID("0189f0a0-0000-7000-8000-000000000000"),
)  # fmt: skip
# a table as an owner has it: every kind of value, fields that change what is written, an event, definitions with line breaks
THEIRS = """
DEFINE FUNCTION fn::mine($a: string) {
  -- it has lines
  RETURN 'one
two' + $a;
} COMMENT 'mine, in
two lines';
DEFINE ANALYZER odd TOKENIZERS blank FILTERS lowercase, edgengram(2, 5) FUNCTION fn::mine;
DEFINE FIELD updated ON paper VALUE time::now();
DEFINE FIELD seen ON paper READONLY;
DEFINE FIELD more ON paper TYPE option<object> FLEXIBLE;
DEFINE FIELD `odd name` ON paper TYPE option<string>;
DEFINE FIELD cites ON paper TYPE option<array<record<paper>>>;
DEFINE INDEX by_year ON paper FIELDS more.year;
DEFINE EVENT told ON paper THEN { CREATE told SET of = $after.id };
"""
VALUES = """
UPDATE paper:7 SET cites = [paper:⟨a b/c:d⟩, paper:⟨7⟩], `odd name` = 'x', more = {
  year: 1999, decimal: 1.50dec, whole: 2f, small: 1e-300, large: 1e300, third: 1 / 3f, sum: 0.1 + 0.2, minus: -0f,
  when: d'2024-02-29T23:59:59.123456789Z', long: 1y2w3d4h5m6s7ms8us9ns, uuid: u'0189f0a0-0000-7000-8000-000000000000',
  bytes: <bytes> 'ab', nothing: NULL, set: <set> [3, 1, 1], none: <set> [], point: (1.5, -2.5), of: paper:[1, { a: 'b' }],
  line: { type: 'LineString', coordinates: [[1, 2], [3, 4]] }, span: 1..5, ids: paper:1.., empty: {}, nested: { `a b`: [[]] },
  int: 9223372036854775807,
};
"""


@pytest.fixture
def database(pytestconfig: pytest.Config, engine: str) -> Iterator[Database]:
    with Database(fresh_settings(pytestconfig, engine)) as opened:
        yield opened


@pytest.fixture
def other(pytestconfig: pytest.Config, engine: str) -> Iterator[Database]:
    with Database(fresh_settings(pytestconfig, engine)) as opened:
        yield opened


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    _init.init(folder, CORPUS)
    # where the database is, is of this place alone
    with (folder / "surrecall.toml").open("a") as file:
        file.write('[database]\nurl = "surrealkv://here.db"\nnamespace = "ours"\n')
    return folder


def fill(database: Database, project: Path) -> None:
    _schema.apply(database, project)
    database.run(THEIRS)
    rows = [
        {
            "id": RecordID("paper", name),
            "title": f"{name} {TEXT}",
            "abstract": TEXT + str(place),
            "embedding": [place + 0.1, 1, 1 / 3],
            "seen": place,
        }
        for place, name in enumerate(IDS)
    ]
    database.run("INSERT INTO paper $rows RETURN NONE", rows=rows)
    database.run("CREATE paper:[1, { a: 'b' }] SET abstract = 'x'; CREATE paper:{ a: 1 } SET abstract = 'y';")
    database.run(VALUES)
    questions = [
        {
            "id": RecordID("question", name),
            "text": TEXT + str(place),
            "relevant": [RecordID("paper", name)],
            "embedding": [1, 2.5, 1e-9],
        }
        for place, name in enumerate(IDS)
    ]
    database.run("INSERT INTO question $rows RETURN NONE", rows=questions)
    database.run(
        "UPDATE question:7 SET judged = [{ document: paper:7, grade: 1.50dec }, { document: paper:⟨7⟩, grade: -1 }], set = $set,"
        "anchors = [{ document: paper:7, phrase: $text }], kind = 'a', tags = ['x', 'y'], split = 'heldout', note = $text,"
        "source = 'production', embedding_model = 'm';"
        "CREATE question:none SET text = 'nothing answers it', answerable = false, set = $set",
        set=f"other {TEXT}",
        text=TEXT,
    )
    # a label that is stale, one that was judged, a share that is held out and a look at it
    database.run(
        "UPDATE paper:7 SET abstract += ' changed'; UPSERT golden_set:default SET heldout = 0.25;"
        "CREATE heldout_look SET set = 'default', what = 'sweep', questions = 1;"
        "CREATE judgement SET question = question:7, document = paper:7, grade = 2, source = 'person', judge = $text",
        text=TEXT,
    )


def snapshot(database: Database, project: Path, path: Path) -> Path:
    with path.open("wb") as file:
        write.write(database, project, ["paper"], Lines(file))
    return path


def state(database: Database) -> list[Any]:
    rows = database.run(
        "SELECT * FROM paper ORDER BY id; SELECT * FROM question ORDER BY id;"
        + "".join(f"SELECT * FROM {table} ORDER BY id;" for table in write.LABELS)
    )
    return [*rows, {label: found.text for label, found in _inventory.everything(database).items() if label != "table told"}]


def test_everything_comes_back_as_it_was(database: Database, other: Database, project: Path, tmp_path: Path) -> None:
    fill(database, project)
    one = snapshot(database, project, tmp_path / "one")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    loaded = load.load(other, folder, Reader(one))
    assert (loaded.documents, loaded.questions, loaded.golden_sets) == (len(IDS) + 2, len(IDS) + 1, 2)
    assert state(other) == state(database)
    assert other.value("SELECT VALUE stale.document FROM question WHERE stale != NONE")
    # not one event was fired by rows that came in this way
    assert "told" not in other.value("INFO FOR DB")["tables"]
    assert snapshot(other, folder, tmp_path / "two").read_bytes() == one.read_bytes()
    # the project came along, but not the address of the database
    assert write.project_files(folder) == write.project_files(project)
    assert "here.db" not in one.read_text() + (folder / "surrecall.toml").read_text()
    assert {found.problem for found in _schema.drift(other, folder)} == {
        found.problem for found in _schema.drift(database, project)
    }
    figures = [
        {
            (run["retriever"], run["k"]): (run["ndcg"], run["recall"])
            for run in evaluate(each, Options([1, 10], ["bm25", "vector"])).runs
        }
        for each in (database, other)
    ]
    assert figures[0] == figures[1]
    with pytest.raises(DataError, match="paper of this database holds rows already"):
        load.load(other, folder, Reader(one))
    # labels are guarded as in the place they come from
    with pytest.raises(Exception, match="Cannot delete"):
        other.run("DELETE paper:⟨007⟩")


def test_chunks_come_along(database: Database, other: Database, project: Path, tmp_path: Path) -> None:
    fill(database, project)
    registry = project / "surql" / "corpus" / "retrievers.toml"
    registry.write_text(registry.read_text() + '[pieces]\ncall = "SELECT VALUE id FROM piece LIMIT $k"\nreturns = "piece"\n')
    database.run(
        "DEFINE TABLE piece SCHEMAFULL; DEFINE FIELD of ON piece TYPE record<paper>; CREATE piece:⟨a b⟩ SET of = paper:7"
    )
    _schema.apply(database, project)
    tables = write.tables_of(database, source.Source("paper", "abstract", "embedding"))
    assert tables == ["paper", "piece"]
    with (tmp_path / "one").open("wb") as file:
        write.write(database, project, tables, Lines(file))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    load.load(other, folder, Reader(tmp_path / "one"))
    assert other.value("SELECT * FROM piece") == database.value("SELECT * FROM piece") != []


def test_a_file_that_is_not_whole_is_refused(database: Database, other: Database, project: Path, tmp_path: Path) -> None:
    fill(database, project)
    whole = snapshot(database, project, tmp_path / "whole").read_bytes()
    lines = whole.splitlines(keepends=True)
    damaged = {
        "is damaged or cut off": [whole[: len(whole) // 2], whole[:-1], b"".join(lines[:-1]), b"".join(lines[:3] + lines[4:]),
                                  whole.replace(b"LF", b"lf", 1), whole.replace(b"\n", b"\r\n"), whole + b"\n", lines[0]],
        "is no snapshot": [b"", b"\n", b"SELECT 1;\n", whole[10:]],
        "is damaged": [lines[0][:60] + b"\n", lines[0][:60]],
        "form 2": [whole.replace(b"snapshot 1", b"snapshot 2", 1)],
    }  # fmt: skip
    for complaint, contents in damaged.items():
        for content in contents:
            (tmp_path / "damaged").write_bytes(content)
            with pytest.raises(DataError, match=complaint):
                Reader(tmp_path / "damaged")
    with pytest.raises(DataError, match="can't be read"):
        Reader(tmp_path / "nothing")
    assert other.value("INFO FOR DB")["tables"] == {}


def forged(path: Path, old: str, new: str) -> Reader:
    """A snapshot that says something else than it held, and whose checksum fits."""
    content = path.read_bytes()
    assert old.encode() in content
    body = content[: content.rindex(b"-- end ")].replace(old.encode(), new.encode(), 1)
    other = path.with_name("forged")
    other.write_bytes(body + f"-- end {hashlib.sha256(body).hexdigest()}\n".encode())
    return Reader(other)


@pytest.mark.parametrize("there", [False, True])
def test_what_differs_or_fails_is_taken_back(
    database: Database, other: Database, project: Path, tmp_path: Path, there: bool
) -> None:
    fill(database, project)
    path = snapshot(database, project, tmp_path / "one")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    if there:
        _schema.apply(other, project)
        other.run("DEFINE TABLE kept; CREATE kept:1; DEFINE FUNCTION fn::kept() { RETURN 1 }; REMOVE INDEX paper_words ON paper")
    before = [other.value("INFO FOR DB"), state(other) if there else None]
    faults = {
        "fn::corpus_hash": ("{ abstract: ", "{ abstract: 'another' + "),
        "golden sets": ("relevant: [paper:`7`]", "relevant: [paper:7]"),
        "a row of paper did not come back": ("seen: 5, ", "seen: 2 + 4, "),
        "arse error": ("{ abstract", "/* { abstract"),
        "does not exist": ("relevant: [paper:`7`]", "relevant: [paper:nowhere]"),
    }
    for complaint, (old, new) in faults.items():
        with pytest.raises(Exception, match=complaint):
            load.load(other, folder, forged(path, old, new))
        assert [other.value("INFO FOR DB"), state(other) if there else None] == before
        assert list(folder.iterdir()) == []
    load.load(other, folder, Reader(path))
    assert state(other)[:2] == state(database)[:2]


def test_names_that_are_taken(database: Database, other: Database, project: Path, tmp_path: Path) -> None:
    fill(database, project)
    path = snapshot(database, project, tmp_path / "one")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    other.run("DEFINE FUNCTION fn::mine() { RETURN 'theirs' }; DEFINE TABLE paper")
    before = other.value("INFO FOR DB")
    with pytest.raises(SchemaError, match=r"fn::mine is taken by another definition(.|\n)*theirs(.|\n)*it has|two"):
        load.load(other, folder, Reader(path))
    assert other.value("INFO FOR DB") == before
    (folder / "surrecall.toml").write_text("k = [3]\n")
    with pytest.raises(UsageError, match=r"surrecall\.toml differs from the one in the snapshot"):
        load.load(other, folder, Reader(path))


def test_a_load_that_was_cut_off_is_finished_by_the_next(
    database: Database, other: Database, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database, project)
    reader = Reader(snapshot(database, project, tmp_path / "one"))
    folder = tmp_path / "elsewhere"
    folder.mkdir()

    def gone(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # as when the process is killed: nobody takes anything back
        patch.setattr(load, "_undo", lambda *_: None)
        patch.setattr(load, "_build", gone)
        with pytest.raises(KeyboardInterrupt):
            load.load(other, folder, reader)
    assert any(found["kind"] == "import" for found in other.value("RETURN fn::check()"))
    load.load(other, folder, reader)
    assert state(other) == state(database)
    assert not any(found["kind"] == "import" for found in other.value("RETURN fn::check()"))


def test_rows_that_change_while_they_are_read(database: Database, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(database, project)
    theirs = write.theirs

    def meanwhile(*arguments: Any) -> Any:
        database.run("UPDATE paper:7 SET abstract = 'other'")
        return theirs(*arguments)

    monkeypatch.setattr(write, "theirs", meanwhile)
    with pytest.raises(DataError, match="changed while they were read"):
        write.write(database, project, ["paper"], Lines(io.BytesIO()))


def test_the_database_of_a_project_file_stays_behind() -> None:
    text = 'k = [1]\r\n[database]\r\nurl = "x"\r\n\r\n# a remark\r\nuser = "y"\r\n[corpus]\r\ntable = "[database]"\r\n'
    assert write.without_database(text) == 'k = [1]\r\n[corpus]\r\ntable = "[database]"\r\n'
    assert write.without_database('[corpus]\na = 1\n[database]\nurl = "x"') == "[corpus]\na = 1\n"
    with pytest.raises(DataError, match=r"\[database\] of surrecall\.toml"):
        write.without_database('database = { url = "x" }\n')


def test_the_commands(tmp_path: Path) -> None:
    env = {"SURREAL_URL": f"surrealkv://{tmp_path}/a.db"}
    other = {"SURREAL_URL": f"surrealkv://{tmp_path}/b.db"}
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    arguments = ("--table", "paper", "--field", "abstract", "--vector", "embedding", "--dimension", "3")
    surrecall("init", *arguments, cwd=here)
    surrecall("apply", cwd=here, env=env)
    with Database(_settings(env)) as database:
        database.run(
            "CREATE paper:a SET abstract = 'x', embedding = [1, 2, 3]; CREATE question:q SET text = 'x', relevant = [paper:a],"
            "embedding = [1, 2, 3]"
        )
    assert surrecall("snapshot", "x.snapshot", cwd=here, env=env).stdout == "wrote 1 document, 1 question to x.snapshot\n"
    again = surrecall("snapshot", "x.snapshot", cwd=here, env=env)
    assert (again.returncode, "is there already" in again.stderr, "--force" in again.stderr) == (2, True, True)
    # where the database is stays as this folder says
    (there / "surrecall.toml").write_text(f'[database]\nurl = "{other["SURREAL_URL"]}"\n')
    done = surrecall("import", "snapshot", "../here/x.snapshot", cwd=there)
    assert (there / "surrecall.toml").read_text().startswith((here / "surrecall.toml").read_text())
    assert other["SURREAL_URL"] in (there / "surrecall.toml").read_text()
    assert done.returncode == 0
    assert "loaded 1 document and 1 question, equal to their source" in done.stdout
    assert surrecall("check", cwd=there, env=other).returncode == 0
    assert surrecall("snapshot", "-", cwd=there).stdout == (here / "x.snapshot").read_text()


ADOPTED = """
DEFINE ANALYZER en TOKENIZERS blank, class FILTERS lowercase, snowball(english);
DEFINE TABLE `my docs` SCHEMALESS;
DEFINE INDEX ft ON `my docs` FIELDS meta.body FULLTEXT ANALYZER en BM25;
DEFINE TABLE vec SCHEMAFULL; DEFINE FIELD of ON vec TYPE record<`my docs`>; DEFINE FIELD v ON vec TYPE array<float>;
DEFINE INDEX hx ON vec FIELDS v HNSW DIMENSION 3 DIST COSINE;
DEFINE TABLE question SCHEMALESS; CREATE question:theirs SET a = 1;
DEFINE FUNCTION fn::search_mine($q: string, $k: int) {
  RETURN (SELECT id, search::score(1) AS score FROM `my docs` WHERE meta.body @1,OR@ $q ORDER BY score DESC, id LIMIT $k)
};
DEFINE EVENT told ON `my docs` THEN { CREATE told SET of = $after.id };
FOR $n IN 0..20 {
  LET $id = type::record('my docs', IF $n % 2 = 0 { $n } ELSE { 'x ' + <string> $n });
  CREATE $id SET meta = { body: 'word' + <string> $n + ' common question fn::score' }, at = time::now();
  CREATE vec SET of = $id, v = [$n + 1, 1, 2];
};
"""


def test_an_adopted_corpus_under_other_names(tmp_path: Path) -> None:
    env = {"SURREAL_URL": f"surrealkv://{tmp_path}/a.db"}
    other = {"SURREAL_URL": f"surrealkv://{tmp_path}/b.db"}
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with Database(_settings(env)) as database:
        database.run_as_written(ADOPTED)
    (here / "q.csv").write_text("id,text,relevant\nq1,question word3,x 3\nq2,word4,4\n")
    commands = [("init", "--adopt", "--rename", "question=golden"), ("import", "questions", "q.csv"), ("snapshot", "../s.surql")]
    for arguments in commands:
        done = surrecall(*arguments, cwd=here, env=env)
        assert done.returncode == 0, done.stderr
    done = surrecall("import", "snapshot", "../s.surql", cwd=there, env=other)
    assert done.returncode == 0, done.stderr
    assert surrecall("snapshot", "-", cwd=there, env=other).stdout == (tmp_path / "s.surql").read_text()
    runs = []
    for folder, place in ((here, env), (there, other)):
        assert surrecall("evaluate", "-k", "5", "-r", "bm25", "-r", "search_mine", cwd=folder, env=place).returncode == 0
        runs.append(surrecall("export", "run", "-", "-r", "bm25", "--format", "csv", cwd=folder, env=place).stdout)
    assert runs[0] == runs[1]
    assert "q1,x 3,1," in runs[0]
    with Database(_settings(other)) as database:
        assert not {"question", "told"} & database.value("INFO FOR DB")["tables"].keys()


def _settings(env: dict[str, str]) -> Any:
    from surrecall import Settings

    return Settings(env["SURREAL_URL"])


@pytest.mark.parametrize(
    "name",
    [
        "/tmp/evil.txt",
        "../evil.surql",
        "surql/corpus/../../evil.surql",
        "surql/core/x.surql",
        "surql/corpus/.hidden.toml",
        "x.py",
    ],
)
def test_a_snapshot_writes_a_project_s_own_files_alone(name: str) -> None:
    with pytest.raises(DataError, match="none of a project"):
        load._require_names({"surrecall.toml": "", "surql/corpus/question.surql": "", name: "x"})
