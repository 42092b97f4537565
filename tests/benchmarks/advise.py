"""How much faster text search gets by what surrecall advise says, and what it costs in quality, in alternating rounds.

    python tests/benchmarks/advise.py ../scifact --url ws://127.0.0.1:8000 --pairs 3

Two databases with the same collection. One stays as surrecall import makes it; on the other the statements of any-term and of
vector-beside-text are run as they stand, through POST /sql, and the files are written anew as it says.
"""

from __future__ import annotations

import base64
import shlex
import urllib.request
from dataclasses import replace
from pathlib import Path

from collection import CORPUS, arguments, fresh, median, project

from surrecall import Database, Options, Settings, _adopt, _advise, _collection, _ingest, _init, apply, evaluate

FINDINGS = ("any-term", "vector-beside-text")


def run(settings: Settings, statements: list[str]) -> None:
    """As a client without a limit of time runs them."""
    login = base64.b64encode(f"{settings.user}:{settings.password}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "surreal-ns": settings.namespace, "surreal-db": settings.database}
    url = settings.url.replace("ws", "http", 1) + "/sql"
    request = urllib.request.Request(url, "\n".join(statements).encode(), headers | {"Accept": "application/json"})
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    if '"status":"ERR"' in text:
        raise SystemExit(text[:2000])


def mend(settings: Settings, folder: Path) -> None:
    with Database(settings) as database:
        found = {finding.kind: finding for finding in _advise.advise(database, CORPUS, 10).findings}
        print("found:", ", ".join(found), flush=True)
        for kind in FINDINGS:
            print(f"{kind}: {found[kind].measured}\n  {found[kind].expected}", flush=True)
            run(settings, found[kind].statements)
        removed, adopted = (shlex.split(step) for step in found["vector-beside-text"].commands[:2])
        for name in removed[1:]:
            (folder / name).unlink()
        asked = dict(zip(adopted[3::2], adopted[4::2], strict=False))
        wishes = _adopt.Wishes(asked["--table"], [asked["--field"]], None, int(asked["--pool"]), asked["--reference"], ())
        _init.init(folder, _adopt.adopt(database, wishes, lambda _what, names: names[0]).corpus, force=True)
        apply(database, folder)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--questions", type=int, default=100, help="ask only the first so many")
    options = parser.parse_args()
    whole = _collection.read(options.collection)
    some = replace(whole, questions=whole.questions[: options.questions])
    databases = {"before": fresh(options), "after": fresh(options)}
    for settings in databases.values():
        folder = project()
        with Database(settings) as database:
            _ingest.ingest(database, folder, CORPUS, some, "scifact", "default")
    mend(databases["after"], folder)
    took: dict[str, list[float]] = {name: [] for name in databases}
    quality: dict[str, float] = {}
    for turn in range(options.pairs):
        for name in sorted(databases, reverse=turn % 2 == 0):
            with Database(databases[name]) as database:
                done = evaluate(database, Options((10,), retrievers=["bm25", "vector"]))
                answered = "SELECT VALUE duration::nanos(took) FROM eval_answer WHERE evaluation = $e AND retriever = 'bm25'"
                took[name].append(sum(database.value(answered, e=done.row["id"])) / 1e9)
                quality |= {f"{run['retriever']} {name}": run["ndcg"] for run in done.runs}
    ratios = [before / after for before, after in zip(took["before"], took["after"], strict=True)]
    print(f"bm25, before over after: {median(ratios):.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f})")
    print({name: round(value, 4) for name, value in quality.items()})


if __name__ == "__main__":
    main()
