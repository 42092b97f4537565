"""surrecall watch"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from surrecall import _render, _watch
from surrecall._cli._app import Context, Json, command
from surrecall._cli._resolution import say


@command("watch")
def watch(
    context: Context,
    run: Annotated[
        str | None, typer.Option("--run", metavar="COMMAND", help="Run this for each alert, which is JSON on its input.")
    ] = None,
    post: Annotated[
        str | None, typer.Option("--post", metavar="URL", help="POST each alert as JSON to this address; only its host is shown.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="Begin at this time, as 2026-11-30T12:00:00Z; else now.")] = None,
    once: Annotated[bool, typer.Option("--once", help="End after the first alert.")] = False,
    timeout: Annotated[float | None, typer.Option("--timeout", min=0, help="End after so many seconds; else never.")] = None,
    as_json: Json = False,
) -> None:
    """Follow evaluations that come to an end, and the alerts of those that broke a floor.

    On a server (ws://) it is told of them as they come; over http:// it looks every two seconds. The embedded engine is held by
    one process, so there nothing new can come: --since shows what there was.

    A command or an address that fails is said, and the watch goes on. With --json a line of JSON each.

    Example: surrecall watch --run 'notify-send surrecall'
    """
    command_line = None if run is None else _watch.checked_command(run)
    address = None if post is None else _watch.checked_url(post)
    start = None if since is None else _watch.since(since)
    with context.open() as database:
        if database.settings.is_embedded and (timeout is None or timeout > 0):
            context.warn(
                "the embedded engine is held by this process alone, so nothing new comes; only what --since finds is shown"
            )
            timeout = 0
        for news in _watch.follow(database, start, timeout, context.warn):
            _show(context, news, as_json)
            if news.kind != "alert":
                continue
            failures = [
                _watch.run_command(command_line, news.row) if command_line else None,
                _watch.post(address, news.row) if address else None,
            ]
            for failure in failures:
                if failure:
                    context.warn(failure)
            if once:
                return


def _show(context: Context, news: _watch.News, as_json: bool) -> None:
    row = news.row
    if as_json:
        context.out.file.write(json.dumps({"kind": news.kind} | row, ensure_ascii=False) + "\n")
        context.out.file.flush()
    elif news.kind == "alert":
        say(context, f"{_time(row['at'])} alert {row['floor']}: {row['sentence']}, {row['evaluation']}")
    else:
        said = f"{_render.counted(row['questions'], 'question')} of the set {row['set']}, {row['documents']} documents"
        say(
            context,
            f"{_time(row['finished'])} {row['id']} {row['status']}: {said}" + (f", {row['note']}" if row.get("note") else ""),
        )


def _time(text: Any) -> str:
    """To the second, as tables have it."""
    return str(text)[:19].replace("T", " ")
