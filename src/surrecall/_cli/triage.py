"""surrecall triage"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surrecall import _embed, _render, _triage
from surrecall._cli._app import LARGEST, Context, Json, command
from surrecall._errors import UsageError

_PROMPT = 8
_DEPTH = 100


@command("triage")
def triage(
    context: Context,
    question: Annotated[str, typer.Argument(help="What was asked, word for word.")],
    expected: Annotated[
        list[str], typer.Option("--expected", "-e", help="Id of a document that holds the answer; may be given more than once.")
    ],
    retriever: Annotated[
        str | None, typer.Option("-r", "--retriever", help="The one that served it; else hybrid, else the first.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", "--k", min=1, max=LARGEST, help="Documents in the prompt; else prompt_k, else 8.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, max=LARGEST, help="How far down to look; else 100, or the pool.")
    ] = None,
    vector: Annotated[
        Path | None, typer.Option("--vector", help="File with the question's vector, a list in JSON; else it is embedded.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Keep the question in the golden set, source production.")] = False,
    question_set: Annotated[str, typer.Option("--set", help="Golden set to add it to.")] = "default",
    kind: Annotated[str | None, typer.Option("--kind", help="Kind of question, for slices.")] = None,
    note: Annotated[str | None, typer.Option("--note", help="Kept with the question.")] = None,
    endpoint: Annotated[
        str | None, typer.Option("--endpoint", help="Where the recorded model is asked; else OPENAI_BASE_URL.")
    ] = None,
    key_env: Annotated[str, typer.Option("--key-env", help="Variable that holds the key of the endpoint.")] = "OPENAI_API_KEY",
    as_json: Json = False,
) -> None:
    """Say of a wrong answer in production whether retrieval or generation lost it.

    RETRIEVAL: an expected document never reached the first k of the retriever, and so never the prompt; its rank further down is
    shown. GENERATION: all of them were there. Ends with 0 either way.

    The vector of the question is that of the golden set, where the text stands there, else made by the embedder that surrecall
    embed recorded, or read from --vector. With --add the question is measured from now on by every evaluation; a second time
    changes nothing.

    Example: surrecall triage "how do I get my money back" --expected refund_request -k 3 --add
    """
    if not question.strip():
        raise UsageError("a question without words", "give it as it was asked")
    corpus = context.project.corpus
    options = _triage.Options(
        text=question.strip(),
        expected=expected,
        retriever=retriever,
        k=k or context.project.prompt_k or _PROMPT,
        depth=depth or (min(_DEPTH, corpus.pool) if corpus else _DEPTH),
        vector=vector,
        add=add,
        question_set=question_set,
        kind=kind,
        note=note,
        asked=_embed.Asked(roles=("question",), endpoint=endpoint, key_name=key_env),
    )
    with context.open() as database:
        done = _triage.triage(database, corpus, context.folder, options)
    if as_json:
        _render.print_json(context.out, done)
        return
    context.show(_render.table([row | {"expected": row["document"]} for row in done.verdict["expected"]], _COLUMNS))
    context.out.print()
    context.out.print(done.verdict["sentence"], soft_wrap=True, markup=False, highlight=False)
    if done.added is None:
        return
    said = "added" if done.added["added"] else "nothing added, it is there already:"
    context.out.print(f"{said} {_render.record_text(done.added['question'])}", soft_wrap=True, markup=False, highlight=False)
    if not done.added["embedded"]:
        context.warn(
            f"{_render.record_text(done.added['question'])} has no vector, and retrievers that need one fail on it; "
            "surrecall embed fills it"
        )


_COLUMNS = ("expected", "rank", "reached")
