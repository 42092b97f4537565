"""surrecall demo"""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from surrecall import _render, _schema, _seed, _walk
from surrecall._cli._app import Context, Json, command
from surrecall._database import Database
from surrecall._settings import Settings

_NEXT = (
    "Next: surrecall apply --url surrealkv://recall.db keeps it in a folder; then seed, evaluate and history, same --url.",
    "On a server: docker-compose up -d, set SURREAL_URL, SURREAL_USER and SURREAL_PASSWORD, and run the same commands.",
)


@command("demo", connects=False)
def demo(context: Context, as_json: Json = False) -> None:
    """The whole walk on the help centre: questions, retrievers, metrics, what broke and why, the fix, the history.

    Needs no server, no account, no key: it runs on the embedded engine, in memory, and leaves nothing behind.

    Example: surrecall demo
    """
    # the packaged files, whatever project the command was called in
    nowhere = Path(__file__).parent
    with Database(Settings(url="mem://")) as database:
        _schema.apply(database, nowhere)
        _seed.seed(database)
        if as_json:
            shown = [
                {"step": done.step.number, "title": done.step.title, "results": done.results} for done in _walk.run(database)
            ]
            _render.print_json(context.out, shown)
            return
        for done in _walk.run(database):
            context.out.print(Text(f"\n{done.step.number}. {done.step.title}", style="bold"))
            context.out.print(Text(done.step.explanation))
            context.out.print(Text(_indented(done.step.statements), style="dim"), soft_wrap=False)
            for result in done.results:
                context.show(_render.result(result))
    context.out.print()
    for line in _NEXT:
        context.out.print(Text(line))


def _indented(statements: str) -> str:
    return "\n".join(f"  {line}" for line in statements.splitlines())
