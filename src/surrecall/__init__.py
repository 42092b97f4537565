"""Retrieval evaluation that lives inside SurrealDB.

The measuring is SurrealQL (see surql/); this package loads it, drives long work and shows results.
"""

from surrecall._database import Database
from surrecall._errors import DatabaseError, DataError, ExitCode, SchemaError, SurrecallError, UsageError
from surrecall._evaluation import Evaluation, Interrupted, Options, evaluate, resume
from surrecall._results import Comparison, Gate, Misses, Trend, compare, gate, misses, trend
from surrecall._schema import Applied, Finding, apply, bundle, drift
from surrecall._settings import Settings

__all__ = [
    "Applied",
    "Comparison",
    "DataError",
    "Database",
    "DatabaseError",
    "Evaluation",
    "ExitCode",
    "Finding",
    "Gate",
    "Interrupted",
    "Misses",
    "Options",
    "SchemaError",
    "Settings",
    "SurrecallError",
    "Trend",
    "UsageError",
    "apply",
    "bundle",
    "compare",
    "drift",
    "evaluate",
    "gate",
    "misses",
    "resume",
    "trend",
]

# tracebacks and help name what a user can import
for _name in __all__:
    globals()[_name].__module__ = __name__
