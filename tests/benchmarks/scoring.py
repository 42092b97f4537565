"""How long it takes to score stored rankings in the database, beside reading them out and scoring them there, in rounds.

    python tests/benchmarks/scoring.py --url ws://127.0.0.1:8000 --pairs 3

10,000 rankings of depth 100 with one to ten graded labels each; recall, P, success, MAP and nDCG at 10, 50 and 100. The clients
read the rows as they are stored, with record ids, and give pytrec_eval, ir_measures or ranx what they want; with --texts they
read ids as texts, which the database has to make, and which takes half the time. ranx compiles itself before its first figure;
its time is taken after that.
"""

from __future__ import annotations

import argparse
import random
import uuid
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ir_measures
import pytrec_eval
from collection import report, seconds
from surrealdb import Duration, RecordID

from surrecall import Database, Settings, _evaluation, _files

ROOT = Path(__file__).parents[2]
DEPTH = 100
CUTOFFS = (10, 50, 100)
TREC = {"recall": "recall", "p": "P", "hit": "success", "ap": "map_cut", "ndcg": "ndcg_cut"}
RANX = {"recall": "recall", "p": "precision", "hit": "hit_rate", "ap": "map", "ndcg": "ndcg"}
READ = """
SELECT question, ranking, labels
FROM eval_answer WHERE evaluation = evaluation:bench AND retriever = 'bench' AND depth = 100 AND question > $after
ORDER BY question LIMIT 1000
"""
READ_TEXTS = """
SELECT record::id(question) AS question, ranking.map(|$id| record::id($id)) AS ranking,
  labels.map(|$label| [record::id($label.document), $label.grade]) AS labels
FROM eval_answer WHERE evaluation = evaluation:bench AND retriever = 'bench' AND depth = 100 AND question > $after
ORDER BY question LIMIT 1000
"""
Labels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]
Means = dict[str, float]


def fill(database: Database, rankings: int) -> None:
    """Rankings and labels at random, about half of the labels found."""
    database.run(_files.joined(_files.load(ROOT)))
    chance = random.Random(8)
    documents = [f"document{number}" for number in range(5000)]
    questions = [RecordID("question", f"question{number:05}") for number in range(rankings)]
    database.run(
        "CREATE evaluation:bench SET k = $k, depth = $depth, questions = $questions, scale = 3,"
        " calls = [{ retriever: 'bench', depth: $depth }], corpus = { documents: 5000 }, golden_set = ''",
        k=list(CUTOFFS),
        depth=DEPTH,
        questions=questions,
    )
    for start in range(0, rankings, 250):
        rows = []
        for question in questions[start : start + 250]:
            ranking = chance.sample(documents, DEPTH)
            found = chance.sample(ranking, chance.randint(0, 5))
            labels = dict.fromkeys([*found, *chance.sample(documents, chance.randint(1, 5))])
            rows.append(
                {
                    "evaluation": RecordID("evaluation", "bench"),
                    "retriever": "bench",
                    "question": question,
                    "depth": DEPTH,
                    "ranking": [RecordID("article", name) for name in ranking],
                    "scores": [float(DEPTH - rank) for rank in range(DEPTH)],
                    "labels": [{"document": RecordID("article", name), "grade": chance.randint(0, 3)} for name in labels],
                    "answerable": True,
                    "took": Duration(0),
                    "status": "ok",
                }
            )
        database.run("INSERT INTO eval_answer $rows RETURN NONE", rows=rows)


def in_the_database(connections: Sequence[Database]) -> Means:
    """As surrecall evaluate does it: one connection takes all cutoffs, several share them, the deepest first."""
    parts = [list(CUTOFFS)] if len(connections) == 1 else [[k] for k in sorted(CUTOFFS, reverse=True)]
    free = SimpleQueue[Database]()
    for connection in connections:
        free.put(connection)

    def work(cutoffs: list[int]) -> list[dict[str, Any]]:
        database = free.get()
        (tally,) = database.value(
            "RETURN fn::tally_begin(evaluation:bench, 'bench', { k: $k, metrics: $metrics })", k=cutoffs, metrics=list(TREC)
        )
        rows: list[dict[str, Any]] = database.value(
            "RETURN fn::tally_means([$tally])", tally=_evaluation.tallied(database, tally)
        )
        free.put(database)
        return rows

    with ThreadPoolExecutor(len(connections)) as threads:
        rows = [row for some in threads.map(work, parts) for row in some]
    return {f"{name}@{row['k']}": row[name] for row in rows for name in TREC}


def read(database: Database) -> tuple[Labels, Run]:
    labels: Labels = {}
    run: Run = {}
    after = RecordID("question", "")
    while rows := database.value(READ, after=after):
        for row in rows:
            name = row["question"].id
            labels[name] = {label["document"].id: label["grade"] for label in row["labels"]}
            run[name] = {document.id: float(DEPTH - rank) for rank, document in enumerate(row["ranking"])}
        after = rows[-1]["question"]
    return labels, run


def read_texts(database: Database) -> tuple[Labels, Run]:
    labels: Labels = {}
    run: Run = {}
    after = RecordID("question", "")
    while rows := database.value(READ_TEXTS, after=after):
        for row in rows:
            labels[row["question"]] = dict(row["labels"])
            run[row["question"]] = {name: float(DEPTH - rank) for rank, name in enumerate(row["ranking"])}
        after = RecordID("question", rows[-1]["question"])
    return labels, run


def by_pytrec_eval(labels: Labels, run: Run) -> Means:
    cutoffs = ",".join(map(str, CUTOFFS))
    topics = pytrec_eval.RelevanceEvaluator(labels, {f"{name}.{cutoffs}" for name in TREC.values()}).evaluate(run).values()
    return {
        f"{ours}@{k}": sum(topic[f"{name}_{k}"] for topic in topics) / len(topics) for ours, name in TREC.items() for k in CUTOFFS
    }


def by_ir_measures(labels: Labels, run: Run) -> Means:
    named = {"recall": "R", "p": "P", "hit": "Success", "ap": "AP", "ndcg": "nDCG"}
    measures = {f"{ours}@{k}": ir_measures.parse_measure(f"{name}@{k}") for ours, name in named.items() for k in CUTOFFS}
    told = ir_measures.calc_aggregate(measures.values(), labels, run)
    return {name: told[measure] for name, measure in measures.items()}


def by_ranx(labels: Labels, run: Run) -> Means:
    import ranx

    measures = {f"{name}@{k}": f"{ours}@{k}" for ours, name in RANX.items() for k in CUTOFFS}
    told = ranx.evaluate(ranx.Qrels(labels), ranx.Run(run), list(measures))
    return {measures[name]: float(value) for name, value in told.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="ws://127.0.0.1:8000")
    parser.add_argument("--user", default="root")
    parser.add_argument("--password", default="root")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--texts", action="store_true", help="the clients read ids as texts")
    parser.add_argument("--jobs", type=int, default=1, help="connections that score in the database")
    parser.add_argument("--rankings", type=int, default=10_000)
    options = parser.parse_args()
    name = "bench" + uuid.uuid4().hex
    clients: dict[str, Callable[[Labels, Run], Means]] = {"pytrec_eval": by_pytrec_eval, "ir_measures": by_ir_measures}
    with ExitStack() as stack:
        database = stack.enter_context(Database(Settings(options.url, name, name, options.user, options.password)))
        fill(database, options.rankings)
        connections = [database, *(stack.enter_context(database.another()) for _ in range(options.jobs - 1))]
        ours = in_the_database(connections)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                print(f"ranx, the first time: {seconds(lambda: by_ranx(*read_texts(database))):.1f} s", flush=True)
            clients["ranx"] = by_ranx
        except ImportError as error:
            print(f"without ranx: {error}")
        for client, score in clients.items():
            theirs = score(*read_texts(database))
            worst = max(abs(ours[key] - theirs[key]) for key in ours)
            print(f"{client}: no figure differs by more than {worst:.1e}", flush=True)
        reading = read_texts if options.texts else read
        times: dict[str, list[float]] = {key: [] for key in ("ours", "reading", *clients)}
        for _ in range(options.pairs):
            times["ours"].append(seconds(lambda: in_the_database(connections)))
            times["reading"].append(seconds(lambda: reading(database)))
            for client, score in clients.items():
                times[client].append(seconds(lambda score=score: score(*reading(database))))  # type: ignore[misc]
        for client in ("reading", *clients):
            told: Any = times[client]
            report(f"in the database over {client}", times["ours"], told)
        database.run("REMOVE DATABASE $name".replace("$name", name))


if __name__ == "__main__":
    main()
