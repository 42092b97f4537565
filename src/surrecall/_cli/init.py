"""surrecall init"""

from __future__ import annotations

from typing import Annotated

import typer

from surrecall import _init, _render
from surrecall._cli._app import Context, Json, command
from surrecall._corpus import Corpus


@command("init", connects=False)
def init(
    context: Context,
    table: Annotated[str, typer.Option("--table", help="Table of the documents.")],
    dimension: Annotated[int, typer.Option("--dimension", help="Numbers in a vector.")],
    field: Annotated[str, typer.Option("--field", help="Field that BM25 searches.")] = "content",
    vector: Annotated[str, typer.Option("--vector", help="Field that holds the vector.")] = "embedding",
    distance: Annotated[str, typer.Option("--distance", help="COSINE, EUCLIDEAN, MANHATTAN or CHEBYSHEV.")] = "COSINE",
    analyzer: Annotated[str | None, typer.Option("--analyzer", help="Name of the analyzer; else TABLE_text.")] = None,
    pool: Annotated[int, typer.Option("--pool", help="Candidates that a search looks at, the largest k.")] = 100,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
    as_json: Json = False,
) -> None:
    """Write surrecall.toml and surql/corpus for a table of your own into this folder.

    Example: surrecall init --table paper --field abstract --vector embedding --dimension 384 --distance COSINE
    """
    corpus = Corpus(table, field, vector, dimension, distance, analyzer, pool)
    written = _init.init(context.folder, corpus, force=force)
    names = [path.relative_to(context.folder).as_posix() for path in written]
    if as_json:
        _render.print_json(context.out, names)
        return
    context.out.print(f"wrote {len(names)} files: surrecall.toml, and {len(names) - 1} in surql/corpus")
    context.out.print("next: surrecall import collection DIR, or surrecall apply and documents of your own", soft_wrap=True)
