"""How long it takes to score stored rankings in the database, beside reading them out and scoring them there, in alternating pairs.

    python tests/benchmarks/scoring.py --url ws://127.0.0.1:8000 --pairs 3

10,000 rankings of depth 100, one to ten graded labels each; recall, P, success, MAP and nDCG at 10, 50 and 100. The clients read the rankings as
text ids, which takes a client half as long as record ids do, in pages of 1,000, and give pytrec_eval, ir_measures or ranx what they want. ranx compiles
itself before its first figure; its time is taken after that, and the first is told apart.
"""

from __future__ import annotations

import argparse
import random
import time
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import ir_measures
import pytrec_eval
from collection import report, seconds
from surrealdb import Duration, RecordID

from surrecall import Database, Settings, _files
from surrecall._files import bundled

RANKINGS, DEPTH = 10_000, 100
CUTOFFS = (10, 50, 100)
OURS = {"recall": "recall", "p": "P", "hit": "success", "ap": "map_cut", "ndcg": "ndcg_cut"}
RANX = ("recall", "precision", "hit_rate", "map", "ndcg")
SHARD = 1000
READ = """
SELECT record::id(question) AS question, ranking.map(|$id| record::id($id)) AS ranking,
  labels.map(|$label| [record::id($label.document), $label.grade]) AS labels
FROM eval_answer WHERE evaluation = evaluation:bench AND retriever = 'bench' AND depth = 100 AND question > $after
ORDER BY question LIMIT 1000
"""
