"""Retrieval evaluation that lives inside SurrealDB.

The measuring is SurrealQL (see surql/); this package loads it, drives long work and shows results.
"""

from surrecall._database import Database
from surrecall._errors import DatabaseError, DataError, ExitCode, SchemaError, SurrecallError, UsageError
from surrecall._evaluation import Evaluation, Interrupted, Options, evaluate, resume
from surrecall._schema import Applied, Finding, apply, bundle, drift
from surrecall._settings import Settings

__all__ = [
    "Applied",
    "DataError",
    "Database",
    "DatabaseError",
    "Evaluation",
    "ExitCode",
    "Finding",
    "Interrupted",
    "Options",
    "SchemaError",
    "Settings",
    "SurrecallError",
    "UsageError",
    "apply",
    "bundle",
    "drift",
    "evaluate",
    "resume",
]

# tracebacks and help name what a user can import
for _name in __all__:
    globals()[_name].__module__ = __name__
