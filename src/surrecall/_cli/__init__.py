"""The command line: `surrecall`, also `python -m surrecall`. One module a command."""

from __future__ import annotations

import sys
import traceback
from io import TextIOWrapper

from surrecall._cli import (
    advise,
    ann,
    apply,
    baseline_export,
    baseline_list,
    baseline_set,
    blame,
    bundle,
    check,
    compare,
    confirm,
    curve,
    demo,
    embed,
    evaluate,
    explain,
    export_collection,
    export_contexts,
    export_documents,
    export_history,
    export_labels,
    export_questions,
    export_run,
    gate,
    history,
    import_collection,
    import_documents,
    import_labels,
    import_questions,
    import_run,
    import_snapshot,
    ingest_policy,
    init,
    misses,
    prune,
    questions,
    relabel,
    remove,
    rerank,
    retrieve,
    retriever_add,
    retriever_list,
    retriever_remove,
    retriever_test,
    score,
    seed,
    snapshot,
    split,
    sweep,
    trend,
    triage,
    watch,
    whatif,
)
from surrecall._cli._app import app
from surrecall._errors import ExitCode

__all__ = [
    "advise",
    "ann",
    "app",
    "apply",
    "baseline_export",
    "baseline_list",
    "baseline_set",
    "blame",
    "bundle",
    "check",
    "compare",
    "confirm",
    "curve",
    "demo",
    "embed",
    "evaluate",
    "explain",
    "export_collection",
    "export_contexts",
    "export_documents",
    "export_history",
    "export_labels",
    "export_questions",
    "export_run",
    "gate",
    "history",
    "import_collection",
    "import_documents",
    "import_labels",
    "import_questions",
    "import_run",
    "import_snapshot",
    "ingest_policy",
    "init",
    "main",
    "misses",
    "prune",
    "questions",
    "relabel",
    "remove",
    "rerank",
    "retrieve",
    "retriever_add",
    "retriever_list",
    "retriever_remove",
    "retriever_test",
    "score",
    "seed",
    "snapshot",
    "split",
    "sweep",
    "trend",
    "triage",
    "watch",
    "whatif",
]


def main() -> None:
    """Entry point."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # an id or text that the terminal has no letters for is shown escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception:
        # a fault of surrecall's own; 1 would say that a gate failed
        traceback.print_exc()
        sys.exit(ExitCode.DATABASE)
