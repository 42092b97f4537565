"""How long an evaluation takes beside (a) the bare calls in a loop and (b) a plain client harness, in alternating pairs.

    python tests/benchmarks/evaluation.py ../scifact --url ws://127.0.0.1:8000 --pairs 5 --retriever vector

(a) `RETURN fn::retrieve(…)` for every question from one connection; nothing is scored or stored.
(b) one query a question from one connection, the rankings scored by pytrec_eval; nothing is stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytrec_eval
from collection import arguments, fresh, load, report, seconds

from surrecall import Database, Options, _collection, evaluate

DEPTH = 100
CUTOFFS = (10, 100)


def bare(database: Database, retriever: str) -> None:
    for question in database.value("SELECT VALUE id FROM question ORDER BY id"):
        database.value("RETURN fn::retrieve($retriever, $question, $k)", retriever=retriever, question=question, k=DEPTH)


def harness(database: Database, retriever: str) -> dict[str, Any]:
    questions = database.value("SELECT id, relevant FROM question ORDER BY id")
    run, labels = {}, {}
    for row in questions:
        name = str(row["id"].id)
        ranking = database.value("RETURN fn::retrieve($r, $q, $k)", r=retriever, q=row["id"], k=DEPTH)
        run[name] = {str(document.id): float(DEPTH - rank) for rank, document in enumerate(ranking)}
        labels[name] = {str(document.id): 1 for document in row["relevant"]}
    wanted = {f"{measure}_{k}" for measure in ("recall", "P", "success", "map_cut", "ndcg_cut") for k in CUTOFFS}
    scored: dict[str, Any] = pytrec_eval.RelevanceEvaluator(labels, wanted | {"recip_rank"}).evaluate(run)
    return scored


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--retriever", default="vector")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--questions", type=int, default=300, help="ask only the first so many")
    options = parser.parse_args()
    settings = fresh(options)
    whole = _collection.read(options.collection)
    load(settings, replace(whole, questions=whole.questions[: options.questions]))
    one: list[float] = []
    several: list[float] = []
    loops: list[float] = []
    clients: list[float] = []
    asked = Options(CUTOFFS, retrievers=[options.retriever])
    with Database(settings) as database:
        bare(database, options.retriever)
        for _ in range(options.pairs):
            one.append(seconds(lambda: evaluate(database, asked)))
            loops.append(seconds(lambda: bare(database, options.retriever)))
            several.append(seconds(lambda: evaluate(database, asked, jobs=options.jobs)))
            clients.append(seconds(lambda: harness(database, options.retriever)))
    report(f"{options.retriever}: evaluate over (a) the bare calls, one connection", one, loops)
    report(f"{options.retriever}: evaluate over (b) a client harness, one connection", one, clients)
    report(f"{options.retriever}: evaluate --jobs {options.jobs} over (b) a client harness", several, clients)


if __name__ == "__main__":
    main()
