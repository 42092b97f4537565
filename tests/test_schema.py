"""The files as definitions: loaded in one transaction, twice the same, all or nothing, never over somebody else's."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from surrealdb import escape_identifier

from conftest import ROOT
from surrecall import Database, SchemaError, UsageError, _files, _inventory, _retrievers, _schema
from surrecall._corpus import Corpus

FILES = _files.load(ROOT)


def everything(database: Database) -> dict[str, str]:
    """All definitions in force, and the registry."""
    info = database.value("INFO FOR DB")
    found = {f"{kind} {name}": text for kind, group in info.items() for name, text in group.items()}
    for table in info["tables"]:
        parts = database.value(f"INFO FOR TABLE {escape_identifier(table)}")
        found |= {f"{table} {kind} {name}": str(text) for kind, group in parts.items() for name, text in group.items()}
    if "tables retriever" in found:
        found["rows"] = str(database.value("SELECT * FROM retriever ORDER BY id"))
    return found


def project(folder: Path) -> Path:
    """A project of its own with the help centre's corpus files."""
    shutil.copytree(ROOT / "surql" / "corpus", folder / "surql" / "corpus")
    return folder


def test_applying_twice_changes_nothing(empty: Database) -> None:
    first = _schema.apply(empty, ROOT)
    once = everything(empty)
    again = _schema.apply(empty, ROOT)
    assert first.changed > 100
    assert (again.changed, again.left_alone) == (0, [])
    assert everything(empty) == once
    assert first.functions == sum(name.startswith("functions ") for name in once)


def test_applying_again_keeps_rows(help_centre: Database) -> None:
    before = help_centre.run("SELECT * FROM article; SELECT * FROM question; RETURN fn::evaluate(3);")
    _schema.apply(help_centre, ROOT)
    assert help_centre.run("SELECT * FROM article; SELECT * FROM question; RETURN fn::evaluate(3);") == before


def test_the_plain_files_load_one_by_one(empty: Database) -> None:
    for file in FILES:
        empty.run(file.text)
    assert _schema.drift(empty, ROOT) == []


def test_the_plain_files_load_in_one_transaction(empty: Database) -> None:
    empty.run("BEGIN;\n" + "\n".join(file.text for file in FILES) + "\nCOMMIT;")
    assert _schema.drift(empty, ROOT) == []


def test_core_loads_before_corpus_in_path_order() -> None:
    names = [file.name for file in FILES]
    assert names == sorted(names)
    assert names[0].startswith("core/")
    assert names[-1].startswith("corpus/")


def test_a_broken_file_is_named_with_its_line_and_nothing_is_applied(empty: Database, tmp_path: Path) -> None:
    broken = project(tmp_path)
    (broken / "surql/corpus/search_vec.surql").write_text("-- one\nDEFINE FUNCTION fn::x( {\n")
    with pytest.raises(SchemaError) as caught:
        _schema.apply(empty, broken)
    assert "surql/corpus/search_vec.surql" in caught.value.message
    assert "[2:" in caught.value.message
    assert empty.value("INFO FOR DB")["functions"] == {}


def test_a_statement_that_fails_is_named_and_nothing_is_applied(empty: Database, tmp_path: Path) -> None:
    broken = project(tmp_path)
    (broken / "surql/corpus/zz.surql").write_text("DEFINE FUNCTION fn::mine() { RETURN 1 };\nTHROW 'no luck';\n")
    with pytest.raises(SchemaError, match=r"surql/corpus/zz.surql \(statement 2\): no luck"):
        _schema.apply(empty, broken)
    assert empty.value("INFO FOR DB")["functions"] == {}


def test_a_failure_in_the_database_leaves_nothing_and_gives_the_true_cause(empty: Database) -> None:
    # an analyzer of that name that can't serve a full-text index, so the last statements fail where the first did not
    empty.run("DEFINE TABLE article; CREATE article SET content = 'a', embedding = [1, 2, 3];")
    with pytest.raises(SchemaError, match="Incorrect vector dimension") as caught:
        _schema.apply(empty, ROOT)
    assert "nothing was changed" in caught.value.message
    info = empty.value("INFO FOR DB")
    assert info["functions"] == {}
    assert list(info["tables"]) == ["article"]


@pytest.mark.parametrize(
    ("theirs", "name"),
    [
        ("DEFINE FUNCTION fn::score($a: int) { RETURN $a }", "fn::score"),
        ("DEFINE TABLE question SCHEMALESS COMMENT 'our quiz'", "table question"),
    ],
)
def test_a_function_or_table_of_the_user_is_never_overwritten(empty: Database, theirs: str, name: str) -> None:
    empty.run(theirs + ";")
    before = everything(empty)
    with pytest.raises(SchemaError) as caught:
        _schema.apply(empty, ROOT)
    assert caught.value.message.startswith(f"{name} is taken")
    # both definitions are shown
    assert "there: DEFINE" in caught.value.message
    assert "ours:  DEFINE" in caught.value.message
    assert caught.value.hint
    assert everything(empty) == before


def test_the_users_corpus_is_left_as_it_is(empty: Database) -> None:
    empty.run("DEFINE TABLE article SCHEMALESS COMMENT 'mine'; DEFINE ANALYZER help TOKENIZERS blank;")
    _schema.apply(empty, ROOT)
    info = empty.value("INFO FOR DB")
    assert "COMMENT 'mine'" in info["tables"]["article"]
    assert "TOKENIZERS BLANK" in info["analyzers"]["help"]


def test_drift_names_what_is_missing_changed_and_extra(schema: Database) -> None:
    schema.run(
        "REMOVE FUNCTION fn::rr;"
        "DEFINE FUNCTION OVERWRITE fn::hit_at() { RETURN 1f } COMMENT 'surrecall: mine';"
        "DEFINE FUNCTION fn::other() { RETURN 1 } COMMENT 'surrecall: old';"
        "REMOVE EVENT eval_run_append_only ON eval_run;"
        "UPDATE retriever:bm25 SET call = '[]';"
    )
    found = {finding.subject: finding.problem for finding in _schema.drift(schema, ROOT)}
    assert found == {
        "fn::rr": "is missing",
        "fn::hit_at": "is not what the files define",
        "fn::other": "is in the database, and in no file",
        "event eval_run_append_only of table eval_run": "is missing",
        "table retriever": "holds other retrievers than retrievers.toml",
    }


def test_everything_of_ours_has_a_comment(schema: Database) -> None:
    defined = _inventory.everything(schema)
    tables = {found.name for found in defined.values() if found.kind == "table" and found.is_ours}
    ours = {label: found for label, found in defined.items() if found.is_ours or found.table in tables}
    assert len(ours) > 80
    lacking = [
        name
        for name, definition in ours.items()
        # the engine adds `labels.*` and its like by itself for an array of objects
        if "COMMENT" not in definition.text and ".*" not in name and "[*]" not in name
    ]
    assert lacking == []


def test_everything_defined_is_marked_as_ours_but_the_corpus(schema: Database) -> None:
    strangers = [definition.label for definition in _inventory.functions_and_tables(schema).values() if not definition.is_ours]
    assert strangers == ["table article"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_has_a_header_and_at_most_one_public_function(file: _files.SourceFile) -> None:
    assert file.text.startswith("-- "), "no header comment"
    functions = re.findall(r"^DEFINE FUNCTION OVERWRITE (\S+?)\(", file.text, re.MULTILINE)
    if file.name == _files.DISPATCHER_FILE:
        assert functions == ["fn::retrieve_rows", "fn::retrieve_stage", "fn::retriever_keeps", "fn::retrieve"]
        return
    if file.name.startswith("core/metric/"):
        # a metric and its formula over the facts of a ranking
        assert functions[1:] == [functions[0].removesuffix("_at") + "_of"]
        functions = functions[:1]
    assert len(functions) <= 1
    if functions:
        assert Path(file.name).stem == functions[0].removeprefix("fn::")


def test_core_never_names_the_corpus() -> None:
    for file in FILES:
        if file.name.startswith("core/"):
            code = re.sub(r"^\s*--.*$", "", file.text, flags=re.MULTILINE)
            assert not re.search(r"\barticle\b", code), file.name


def test_the_dispatcher_is_what_the_registry_gives() -> None:
    registry = (ROOT / "surql" / _files.REGISTRY_FILE).read_text()
    dispatcher = (ROOT / "surql" / _files.DISPATCHER_FILE).read_text()
    assert dispatcher == _retrievers.compile_dispatcher(_retrievers.parse(registry))


def test_apply_makes_the_dispatcher_anew_when_the_registry_changed(empty: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    with (folder / "surql/corpus/retrievers.toml").open("a") as registry:
        registry.write('\n[none]\ncall = "[]"\nreturns = "article"\n')
    assert _schema.apply(empty, folder).regenerated
    assert not _schema.apply(empty, folder).regenerated
    assert _schema.drift(empty, folder) == []
    assert empty.value("RETURN fn::retrieve('none', { text: 'a' }, 1)") == []
    # back to the packaged files: the row goes with the branch
    _schema.apply(empty, ROOT)
    assert empty.value("SELECT VALUE record::id(id) FROM retriever") == ["bm25", "hybrid", "vector"]


@pytest.mark.parametrize(
    ("registry", "complaint"),
    [
        ("", "names no retriever"),
        ("[a", "can't be read"),
        ("a = 1", "a is no table"),
        ('["a b"]\ncall = "[]"\nreturns = "t"', "can't be the name"),
        ('[k]\ncall = "[]"\nreturns = "t"', "can't be the name"),
        ('["it\'s"]\ncall = "[]"\nreturns = "t"', "can't be the name"),
        ('[a]\nreturns = "t"', "has no call"),
        ('[a]\ncall = " "\nreturns = "t"', "has no call"),
        ('[a]\ncall = "[]"', "has no returns"),
        ('[a]\ncall = "[]"\nreturns = "t"\nprefix = "yes"', "prefix is 'yes'"),
        ('[a]\ncall = "[]"\nreturns = "t"\nspeed = 1', "has 'speed'; it takes call, returns, prefix"),
    ],
)
def test_a_registry_that_makes_no_sense_is_refused(registry: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        _retrievers.parse(registry)
    assert complaint in caught.value.message
    assert caught.value.hint


def test_quotes_and_backslashes_in_a_call_survive(empty: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    call = "IF $question.text = 'it\\'s \"so\" \\\\' { [] } ELSE { [] }"
    (folder / "surql/corpus/retrievers.toml").write_text(f"[odd]\ncall = '''{call}'''\nreturns = 'article'\n")
    _schema.apply(empty, folder)
    assert empty.value("SELECT VALUE call FROM ONLY retriever:odd") == call
    assert empty.value("RETURN fn::retrieve('odd', { text: 'x' }, 1)") == []


def test_the_corpus_files_are_what_init_writes_for_them() -> None:
    help_centre = Corpus("article", "content", "embedding", 4, analyzer="help")
    written = {file.name: file.text for file in help_centre.render()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "surql" / "corpus").iterdir()}
    assert written == committed


@pytest.mark.parametrize("rows", ["", "CREATE article SET content = 'a';"])
def test_a_table_that_is_there_with_or_without_rows_is_taken(empty: Database, rows: str) -> None:
    empty.run("DEFINE TABLE article;" + rows)
    _schema.apply(empty, ROOT)
    assert {finding.subject for finding in _schema.drift(empty, ROOT)} <= {"table article"}


def test_a_corpus_that_is_not_what_the_files_define_is_named_with_the_way_out(empty: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    _schema.apply(empty, folder)
    path = folder / "surql/corpus/article.surql"
    path.write_text(path.read_text().replace(", snowball(english)", ""))
    assert [finding.subject for finding in _schema.apply(empty, folder).left_alone] == ["analyzer help"]
    (finding,) = _schema.drift(empty, folder)
    assert (finding.subject, finding.next) == (
        "analyzer help",
        "REMOVE INDEX article_words ON article; REMOVE ANALYZER help; then surrecall apply, or change the file",
    )
    empty.run("REMOVE INDEX article_words ON article; REMOVE ANALYZER help;")
    assert _schema.apply(empty, folder).changed == 2
    assert _schema.drift(empty, folder) == []


def test_a_registry_that_was_not_applied_is_named(schema: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    with (folder / "surql/corpus/retrievers.toml").open("a") as registry:
        registry.write('\n[none]\ncall = "[]"\nreturns = "article"\n')
    assert [finding.subject for finding in _schema.drift(schema, folder)] == ["retrievers.toml"]


def test_a_call_that_does_not_parse_sends_to_the_registry(empty: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "surql/corpus/retrievers.toml").write_text('[odd]\ncall = "SELECT FROM"\nreturns = "article"\n')
    with pytest.raises(SchemaError) as caught:
        _schema.apply(empty, folder)
    assert "a call in retrievers.toml" in caught.value.text


def test_no_formula_needs_parentheses_that_a_stored_function_loses() -> None:
    """`8 - (4 - 2)` in a function is stored as `8 - 4 - 2`."""
    faults = [
        f"{path.relative_to(ROOT)}: {fault}"
        for folder in ("surql", "seed", "src/surrecall/templates")
        for path in sorted((ROOT / folder).rglob("*.surql"))
        for fault in lost_parentheses(re.sub(r"--.*|'[^'\n]*'", "", path.read_text(encoding="utf-8")))
    ]
    assert faults == []
    found = lost_parentheses("a - (b - c) + d / (e * f(1, 2)) - (g * h) / 2 * (i + j) - (k - l) / m + k % (l % m) - (n(1 - 2))")
    assert list(found) == ["- (b - c)", "/ (e * f(1, 2))", "% (l % m)"]


def lost_parentheses(text: str) -> Iterator[str]:
    """Right operands in parentheses whose own operator ranks equal with the one before them."""
    for match in re.finditer(r"(?<![-+*/%])([-+*/%]|\*\*) \(", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        inside = text[match.end() : end - 1]
        while (flat := re.sub(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]", "", inside)) != inside:
            inside = flat
        additive, multiplicative = re.search(r" [-+] ", inside), re.search(r" [*/%] ", inside)
        # what is followed by an operator of higher rank is that one's left operand
        binds = re.match(r"\s*[*/%]", text[end:])
        if (match[1] == "-" and additive and not binds) or (match[1] in "*/%" and multiplicative and not additive):
            yield text[match.start() : end]
