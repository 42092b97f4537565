"""floors.toml, gate, baseline and watch as commands, and docs/gates.md run as it is written."""

from __future__ import annotations

import json
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from endpoints import Endpoint, status
from surrecall import (
    Database,
    Options,
    SchemaError,
    Settings,
    UsageError,
    _files,
    _floors,
    _propose,
    _schema,
    _seed,
    _watch,
    evaluate,
)
from surrecall._corpus import Corpus
from test_cli import Run, run, target  # noqa: F401
from test_readme import shell

DOCS = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
KNOWN = _floors.Known(["bm25", "hybrid"], ["recall", "ndcg"], 5)
GOOD = '[a]\nretriever = "hybrid"\nk = 3\nminimum = 0.8\n'


def texts(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


def project(folder: Path) -> Path:
    shutil.copytree(ROOT / "surql" / "corpus", folder / "surql" / "corpus", dirs_exist_ok=True)
    return folder


def write(folder: Path, text: str) -> Path:
    path = folder / "surql" / "corpus" / "floors.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a", "can't be read"),
        ("a = 1", "a is no table"),
        ('["a b"]\nk = 1', "'a b' can't be the name of a floor"),
        ("[a]\nk = 1\nminimum = 1", "[a] has no retriever"),
        ('[a]\nretriever = "hybrid"\nminimum = 1', "[a] has no k"),
        ('[a]\nretriever = "hybrid"\nk = 3', "[a] asks for nothing"),
        ('[a]\nretriever = "hybird"\nk = 3\nminimum = 1', "[a] names the retriever 'hybird', which there is not"),
        (GOOD + 'metric = "recal"', "[a] names the metric 'recal', which there is not"),
        (GOOD.replace("k = 3", "k = 6"), "[a] k is 6, beyond 5, the largest that is evaluated"),
        (GOOD.replace("k = 3", "k = 0"), "[a] k is 0"),
        (GOOD.replace("k = 3", "k = true"), "[a] k is True"),
        (GOOD.replace("0.8", "1.1"), "[a] minimum is 1.1"),
        (GOOD.replace("0.8", "nan"), "[a] minimum is nan"),
        (GOOD.replace("0.8", "'0.8'"), "[a] minimum is '0.8'"),
        (GOOD + "maximum = 1", "[a] has 'maximum'; it takes retriever, metric, k"),
        (GOOD + "tolerance = 0.1", "[a] has tolerance, and no pin"),
        (GOOD + 'baseline = "main"', "[a] has baseline, and no drop"),
        (GOOD + 'by = "kind"', "[a] has by, and no class"),
        (GOOD + 'class = "x"', "[a] has class, and no by"),
        (GOOD + 'by = "mood"\nclass = "x"', "[a] by is 'mood'"),
    ],
)
def test_a_floor_that_makes_no_sense_is_refused_with_file_and_entry(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        _floors.parse(text, KNOWN)
    assert caught.value.message.startswith("floors.toml")
    assert complaint in caught.value.message


def test_floors_go_into_the_database_and_leave_it(schema: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    note = 'it\'s \\ "so" -- eval_floor'
    write(
        folder,
        GOOD
        + f'\n["b.c"]\nretriever = "bm25"\nk = 1\nmetric = "hit"\npin = 1\ntolerance = 0.00001\ndrop = 0\nbaseline = "main"\n'
        f'set = "other"\nby = "kind"\nclass = ""\nnote = {json.dumps(note)}\n',
    )
    assert [finding.subject for finding in _schema.drift(schema, folder)] == ["floors.toml"]
    first, again = _schema.apply(schema, folder), _schema.apply(schema, folder)
    assert (first.regenerated, first.rows) == ({"floors.toml": "floors.surql"}, ["eval_floor"])
    assert (again.regenerated, again.rows) == ({}, [])
    assert _schema.drift(schema, folder) == []
    a, b = schema.value("RETURN fn::floors(NONE)")
    assert a.pop("file") is True
    assert a == {
        "name": "a", "retriever": "hybrid", "metric": "recall", "k": 3, "set": "default", "minimum": 0.8,
        "tolerance": 0.02, "baseline": "last",
    }  # fmt: skip
    assert b.pop("file") is True
    assert b == {
        "name": "b.c", "retriever": "bm25", "metric": "hit", "k": 1, "set": "other", "pin": 1.0, "tolerance": 0.00001,
        "drop": 0.0, "baseline": "main", "by": "kind", "class": "", "note": note,
    }  # fmt: skip
    schema.run("UPDATE eval_floor:a SET minimum = 0.1")
    assert [(found.subject, found.problem) for found in _schema.drift(schema, folder)] == [
        ("table eval_floor", "holds other floors than floors.toml")
    ]
    write(folder, GOOD)
    _schema.apply(schema, folder)
    assert schema.value("SELECT VALUE record::id(id) FROM eval_floor") == ["a"]
    assert schema.value("SELECT VALUE minimum FROM eval_floor") == [0.8]
    # a file that is gone takes its floors along
    (folder / "surql/corpus/floors.toml").unlink()
    _schema.apply(schema, folder)
    assert schema.value("SELECT * FROM eval_floor") == []


def test_a_floor_of_a_retriever_that_goes_stops_apply(schema: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    write(folder, GOOD.replace("hybrid", "hybird"))
    before = (folder / "surql/corpus/floors.surql").read_text()
    with pytest.raises(UsageError, match=r"floors\.toml: \[a\] names the retriever 'hybird'"):
        _schema.apply(schema, folder)
    assert (folder / "surql/corpus/floors.surql").read_text() == before


def test_a_project_from_before_there_were_floors(schema: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    for name in ("floors.toml", "floors.surql"):
        (folder / "surql/corpus" / name).unlink()
    assert _schema.apply(schema, folder).regenerated == {}
    assert not (folder / "surql/corpus/floors.surql").exists()


def test_the_metrics_of_floors_are_those_of_the_database(schema: Database) -> None:
    assert sorted(schema.value("RETURN fn::metrics()")) == list(_files.metrics())


def test_init_writes_floors_with_only_comments_and_in_other_names() -> None:
    corpus = Corpus("paper", "abstract", "embedding", 4, names={"eval_floor": "our_floor"})
    files = {file.name: file.text for file in corpus.render()}
    assert all(line.startswith("#") or not line for line in files["floors.toml"].splitlines())
    assert "DELETE our_floor WHERE file = true AND id NOT IN [];" in files["floors.surql"]
    rows = _floors.compile_rows(_floors.parse(GOOD + 'note = "DELETE eval_floor"', KNOWN), corpus.names)
    assert "UPSERT type::record('our_floor', 'a') CONTENT {" in rows
    assert "note: 'DELETE eval_floor'" in rows
    # the example in the comments is a floor
    example = "\n".join(line.removeprefix("# ") for line in files["floors.toml"].partition("For example:\n#\n")[2].splitlines())
    assert _floors.parse(example, KNOWN)[0].name == "hybrid-recall-5"


def test_proposed_floors_are_rounded_down_kept_and_hold(help_centre: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    path = write(folder, "# mine\n" + GOOD.replace("[a]", "[hybrid-recall-3]").replace("0.8", "0.1") + "# the end\n")
    evaluation = evaluate(help_centre, Options([1, 3])).row["id"]
    proposal = _propose.propose(help_centre, folder, evaluation, {"k": [3], "metrics": ["recall", "ndcg"]})
    assert proposal.kept == ["hybrid-recall-3"]
    assert len(proposal.written) == 5
    text = path.read_text()
    assert text.startswith("# mine\n")
    assert "# the end\n" in text
    floors = {row["name"]: row["minimum"] for row in help_centre.value("RETURN fn::floors(NONE)")}
    assert (floors["hybrid-recall-3"], floors["bm25-recall-3"], floors["bm25-ndcg-3"]) == (0.1, 0.77, 0.64)
    assert help_centre.value("RETURN fn::gate({}).holds")
    proposal = _propose.propose(help_centre, folder, evaluation, {"k": [3]}, force=True)
    assert (len(proposal.written), proposal.kept) == (3, [])
    assert help_centre.value("RETURN eval_floor:`hybrid-recall-3`.minimum") == 0.83
    assert help_centre.value("RETURN fn::gate({}).holds")
    with pytest.raises(UsageError, match="has no run of bm25 at k = 7"):
        _propose.propose(help_centre, folder, evaluation, {"k": [7], "retrievers": ["bm25"]})
    # 0.29 is stored as a little less
    row = {"retriever": "x", "k": 1, "set": "default", "recall": 0.29, "ndcg": 0.0}
    rows = help_centre.value("RETURN fn::floors_of_run($run, ['recall', 'ndcg', 'hit'])", run=row)
    assert [(row["name"], row["minimum"]) for row in rows] == [("x-recall-1", 0.29), ("x-ndcg-1", 0.0)]


def test_floors_that_can_not_be_applied_leave_the_file_as_it_was(help_centre: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    path = write(folder, GOOD)
    floor = _floors.Floor("b", {"retriever": "nobody", "metric": "recall", "k": 3, "minimum": 0.5})
    with pytest.raises(UsageError, match="nobody"):
        _propose.put(help_centre, folder, [floor])
    assert path.read_text() == GOOD
    with pytest.raises(UsageError, match="this folder has no surql/corpus"):
        _propose.put(help_centre, tmp_path / "elsewhere", [floor])


@pytest.fixture
def centre(run: Run, target: Settings, tmp_path: Path) -> Run:  # noqa: F811
    """A project of its own with the help centre in its database, evaluated once."""
    folder = project(tmp_path / "here")
    with Database(target) as database:
        _schema.apply(database, folder)
        _seed.seed(database)
        evaluate(database, Options([1, 3, 5]))
    return run


def test_the_gate_of_a_project(centre: Run, tmp_path: Path) -> None:
    done = centre("gate", code=1)
    assert "no floor is set, so nothing is measured; surrecall gate --propose writes" in " ".join(done.stdout.split())
    assert "wrote 9 floors to surql/corpus/floors.toml" in centre("gate", "--propose").stdout
    assert "wrote 0 floors" in centre("gate", "--propose").stdout
    shown = centre("gate").stdout
    assert shown.endswith("all 9 floors hold\n")
    assert max(map(len, shown.splitlines())) <= 80
    floors = tmp_path / "here/surql/corpus/floors.toml"
    floors.write_text(floors.read_text() + '\n[high]\nretriever = "hybrid"\nk = 3\nminimum = 0.9\ndrop = 0\nbaseline = "main"\n')
    centre("apply")
    done = centre("gate", "--last", code=1)
    assert "high: recall@3 of hybrid: 0.833 is below the minimum of 0.9; has no baseline to fall from: no baseline" in " ".join(
        done.stdout.split()
    )
    told = json.loads(centre("gate", "--last", "--json", code=1).stdout)
    assert [row["floor"] for row in told["floors"] if not row["holds"]] == ["high"]
    assert "main is evaluation:" in centre("baseline", "set", "main").stdout
    assert ", before it was evaluation:" in centre("baseline", "set", "main", "--note", "again").stdout
    assert len(json.loads(centre("baseline", "list", "--json").stdout)) == 2
    assert "wrote 8 questions of evaluation:" in centre("baseline", "export", "b.json", "main").stdout
    assert "is there already" in centre("baseline", "export", "b.json", code=2).stderr
    done = centre("gate", "--last", "--baseline", "b.json", code=1)
    assert "1 of 10 floors broken" in done.stdout
    assert "no baseline" not in done.stdout
    assert "no file c.json" in centre("gate", "--last", "--baseline", "c.json", code=2).stderr
    assert "next: there are: main; did you mean main?" in centre("baseline", "export", "c.json", "mian", code=2).stderr
    assert "no evaluation evaluation:x" in centre("gate", "--evaluation", "x", code=2).stderr


def test_an_empty_set_and_a_missing_arm_end_with_1(centre: Run, target: Settings, tmp_path: Path) -> None:  # noqa: F811
    write(tmp_path / "here", GOOD + '\n[b]\nretriever = "bm25"\nk = 3\nminimum = 0\nset = "nobody"\n')
    centre("apply")
    done = centre("gate", code=1)
    assert "b: recall@3 of bm25: no question in the golden set nobody" in done.stdout
    assert "1 of 2 floors broken" in done.stdout
    with Database(target) as database:
        database.run("CREATE eval_floor:hand SET retriever = 'gone', k = 3, minimum = 0.1")
    assert "hand: recall@3 of gone: no retriever is named gone" in centre("gate", code=1).stdout
    with Database(target) as database:
        assert database.value("SELECT * FROM eval_baseline") == []


def test_options_that_do_not_go_together(centre: Run) -> None:
    assert "--propose judges nothing" in centre("gate", "--propose", "--last", code=2).stderr
    assert "-k belongs to --propose" in centre("gate", "-k", "3", code=2).stderr
    assert "two ways" in centre("gate", "--last", "--evaluation", "x", code=2).stderr


@pytest.fixture
def hook() -> Iterator[Endpoint]:
    """An address that takes what it is sent."""
    endpoint = Endpoint(4)
    endpoint.always = lambda request: request.send(200, {})
    thread = threading.Thread(target=endpoint.serve_forever, daemon=True)
    thread.start()
    yield endpoint
    endpoint.shutdown()
    endpoint.server_close()


def broken_floor(database: Database) -> None:
    database.run("CREATE eval_floor:high CONTENT { retriever: 'hybrid', k: 3, minimum: 0.9 }")


def test_watching_tells_a_command_and_an_address(centre: Run, target: Settings, tmp_path: Path, hook: Endpoint) -> None:  # noqa: F811
    with Database(target) as database:
        broken_floor(database)
        evaluate(database, Options([3], ["hybrid"], note="a note"))
    script = tmp_path / "take.py"
    script.write_text("import sys; open(sys.argv[1], 'a').write(sys.stdin.read())")
    took = tmp_path / "took"
    arguments = [
        "watch",
        "--since",
        "2020-01-01",
        "--timeout",
        "0",
        "--run",
        f"{sys.executable} {script} {took}",
        "--post",
        hook.url,
    ]
    shown = " ".join(centre(*arguments).stdout.split())
    assert "complete: 8 questions of the set default, 10 documents, a note" in shown
    assert "alert high: recall@3 of hybrid: 0.833 is below the minimum of 0.9, evaluation:" in shown
    (line,) = took.read_text().splitlines()
    payload = json.loads(line)
    assert (payload["floor"], payload["sentence"]) == ("high", "recall@3 of hybrid: 0.833 is below the minimum of 0.9")
    assert [request.body for request in hook.seen] == [payload]
    if target.password:
        assert target.password not in line
    lines = [
        json.loads(line) for line in centre("watch", "--since", "2020-01-01", "--timeout", "0", "--json").stdout.splitlines()
    ]
    assert [line["kind"] for line in lines] == ["evaluation", "evaluation", "alert"]


def test_what_fails_is_said_and_the_watch_goes_on(centre: Run, target: Settings, hook: Endpoint) -> None:  # noqa: F811
    with Database(target) as database:
        broken_floor(database)
        for _ in range(2):
            evaluate(database, Options([3], ["hybrid"]))
    hook.always = status(403)
    since = ("watch", "--since", "2020-01-01", "--timeout", "0")
    secret = hook.url + "/hooks/secret?token=secret"
    done = centre(*since, "--run", "false", "--post", secret)
    assert done.stdout.count("alert high") == 2
    assert done.stderr.count("--run ended with 1") == 2
    assert done.stderr.count("--post to 127.0.0.1 failed: 403") == 2
    assert "secret" not in done.stdout + done.stderr
    assert "--run can't be started" in centre(*since, "--run", "/no/such/command", "--once").stderr
    assert _watch.post("http://127.0.0.1:9/secret", {}, sleep=lambda _: None) == "--post to 127.0.0.1 failed: ConnectionError"
    for arguments in (["--run", ""], ["--run", "'"], ["--post", "ftp://secret"], ["--post", "secret"], ["--since", "yesterday"]):
        done = centre(*since[:1], *arguments, code=2)
        assert "secret" not in done.stderr


def test_a_busy_address_is_tried_again(hook: Endpoint) -> None:
    waits: list[float] = []
    hook.script = [status(503), status(429)]
    assert _watch.post(hook.url, {"a": 1}, sleep=waits.append) is None
    assert waits == [1.0, 2.0]
    assert len(hook.seen) == 3


def test_the_embedded_engine_says_that_nothing_new_comes(centre: Run, target: Settings) -> None:  # noqa: F811
    if target.is_embedded:
        done = centre("watch")
        assert "the embedded engine is held by this process alone" in " ".join(done.stderr.split())
        assert done.stdout == ""
    else:
        assert "embedded" not in centre("watch", "--timeout", "0.2").stderr


def test_alerts_come_as_they_happen(help_centre: Database) -> None:
    """On a server at once, by a live query; the embedded engine is held by one process, and finds them at the next look."""
    broken_floor(help_centre)
    if help_centre.settings.is_embedded:
        start = help_centre.value("RETURN time::now()")
        assert list(_watch.follow(help_centre, start, 0.0, lambda _: None)) == []
        evaluate(help_centre, Options([3], ["hybrid"]))
        kinds = [news.kind for news in _watch.follow(help_centre, start, 0.0, lambda _: None)]
        assert sorted(kinds) == ["alert", "evaluation"]
        return
    seen: list[tuple[str, float]] = []
    thread = threading.Thread(
        target=lambda: seen.extend(
            (news.kind, time.monotonic()) for news in _watch.follow(help_centre, None, 12.0, lambda _: None)
        )
    )
    with help_centre.another() as other:
        thread.start()
        # the next look without a live query is ten seconds after the first
        time.sleep(3)
        evaluate(other, Options([3], ["hybrid"]))
        finished = time.monotonic()
    thread.join(30)
    assert not thread.is_alive()
    # each once, and not at that next look
    assert sorted(kind for kind, _ in seen) == ["alert", "evaluation"]
    assert max(at for _, at in seen) - finished < 4


def test_an_alert_that_is_dated_before_the_first_look_and_seen_after_it_is_told(help_centre: Database) -> None:
    """A row takes the time at which its transaction wrote it, and is seen when that one ends."""
    broken_floor(help_centre)
    evaluate(help_centre, Options([3], ["hybrid"]))
    start = help_centre.value("RETURN time::now()")
    late = "CREATE eval_alert SET at = $at, evaluation = (SELECT VALUE id FROM evaluation)[0], floor = 'late', sentence = 'late'"
    looks: list[str] = []

    class Watched:
        """The database, into which an alert comes after the first look."""

        settings = help_centre.settings

        def value(self, statement: str, **given: Any) -> Any:
            found = help_centre.value(statement, **given)
            if not looks:
                help_centre.run(late, at=start - timedelta(seconds=1))
            looks.append(statement)
            return found

    told = [news.row["sentence"] for news in _watch.follow(Watched(), start, 1.0, lambda _: None)]  # type: ignore[arg-type]
    assert told == ["late"]


def test_the_page_is_true(tmp_path: Path) -> None:
    """docs/gates.md from top to bottom, in a folder of its own."""
    sh, shown = texts("sh"), texts("text")

    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.splitlines())

    address = {"SURREAL_URL": "surrealkv://recall.db"}
    assert shown[0].rstrip() in tidy(shell(sh[0], tmp_path))
    floors = tmp_path / "surql/corpus/floors.toml"
    floors.write_text(floors.read_text() + "\n" + texts("toml")[0])
    assert shown[1].rstrip() in tidy(shell(sh[1], tmp_path, **address))
    assert "wrote 8 questions of evaluation:" in shell(sh[3], tmp_path, **address)
    (tmp_path / "new.jsonl").write_text(texts("json")[0])
    assert tidy(shell(sh[2].rstrip() + " || echo ended with $?", tmp_path, **address)).endswith(shown[2] + "ended with 1")
    assert "all 4 floors hold" in shell(sh[4], tmp_path)


def test_the_statements_of_the_page(help_centre: Database, tmp_path: Path) -> None:
    gate, alerts, event = texts("surql")
    folder = project(tmp_path)
    (folder / "surql/corpus/on_alert.surql").write_text(event)
    write(folder, GOOD.replace("0.8", "0.9"))
    _schema.apply(help_centre, folder)
    assert _schema.drift(help_centre, folder) == []
    evaluation = evaluate(help_centre, Options([3], ["hybrid"])).row["id"]
    sentence = "recall@3 of hybrid: 0.833 is below the minimum of 0.9"
    assert [row["sentence"] for row in help_centre.value(alerts)] == [sentence]
    assert help_centre.value("SELECT text, evaluation FROM ticket") == [{"text": sentence, "evaluation": evaluation}]
    told: dict[str, Any] = help_centre.value(gate)
    assert (told["holds"], told["floors"][0]["sentence"]) == (False, sentence)


def test_a_floors_file_that_does_not_load_is_named(empty: Database, tmp_path: Path) -> None:
    folder = project(tmp_path)
    path = folder / "surql/corpus/floors.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match=r"floors\.toml can't be read"):
        _schema.apply(empty, folder)
