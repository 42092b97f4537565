"""Two tables of chunks measured by one golden set, by chunks and by documents: docs/chunks.md as it is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from conftest import ROOT
from surrecall import Database, Settings
from test_readme import shell

PAGE = (ROOT / "docs" / "chunks.md").read_text(encoding="utf-8")


def test_the_documentation_is_run_and_shows_what_comes_out(tmp_path: Path) -> None:
    first, second = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (statements,) = re.findall(r"^```surql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shown = shell(first, tmp_path)
    assert "embedded 8 questions and 10 documents and" in shown
    with Database(Settings(f"surrealkv://{tmp_path / 'recall.db'}")) as database:
        database.run(statements)
    shown = shell(second + "surrecall compare chunk_small_bm25 chunk_large_bm25 -k 3 --json > told.json\n", tmp_path)
    lines = {line.rstrip() for line in shown.splitlines()}
    (printed,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [line for line in printed.splitlines() if line and line not in lines] == []

    (told,) = json.loads((tmp_path / "told.json").read_text())["comparisons"]
    # those without an anchor are in no figure, and no question was relabelled by another cut
    assert (told["questions"], len(told["excluded"]["unlabelled"]), told["excluded"]["relabelled"]) == (6, 2, [])
    small, large = ({row["k"]: row for row in told[side]["levels"]} for side in ("a", "b"))
    runs: Any
    with Database(Settings(f"surrealkv://{tmp_path / 'recall.db'}")) as database:
        runs = {(row["retriever"], row["k"]): row for row in database.value("SELECT * FROM eval_run")}
    for size, rows in (("small", small), ("large", large)):
        for k, row in rows.items():
            chunks, documents = runs[f"chunk_{size}_bm25", k], runs[f"chunk_{size}_bm25_doc", k]
            assert (row["chunks"], row["tokens"]) == (chunks["recall"], chunks["prompt_tokens"])
            assert (row["documents"], row["document_tokens"]) == (documents["recall"], documents["prompt_tokens"])
    assert small[3]["tokens"] < large[3]["tokens"] < large[3]["document_tokens"]
    assert told["mean_a"] == small[3]["chunks"]
    assert any("times as many tokens into the prompt as chunk_small_bm25" in warning for warning in told["warnings"])
