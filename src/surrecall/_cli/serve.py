"""surrecall serve"""

from __future__ import annotations

import asyncio
import socket
from typing import Annotated

import typer

from surrecall import _who
from surrecall._cli._app import Context, command
from surrecall._cli._resolution import say
from surrecall._errors import UsageError


@command("serve")
def serve(
    context: Context,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0 takes a free one.")] = 8765,
    who: Annotated[str | None, typer.Option("--who", help="Who labels; else git's user.name, else the login.")] = None,
) -> None:
    """Serve the live page on this machine: evaluations as they end, comparisons, questions, retrievers side by side, labelling.

    It listens on 127.0.0.1 alone. The address that is printed holds a token, and only who opened it can label or evaluate. On a
    server it is told of evaluations as they end; the folder of the embedded engine is held by this process, which evaluates
    itself. Ctrl-C ends it. Needs the extra serve.

    Example: surrecall serve --who Ada
    """
    try:
        from surrecall import _serve
    except ImportError as error:
        raise UsageError("serve needs the extra serve", "pip install 'surrecall[serve,report]'") from error
    name = _who.name(who, context.folder)
    with context.open() as database:
        site = _serve.Site(database, context.folder, context.project.corpus, context.project.cutoffs, name)
        app = _serve.make_app(site)
        with socket.socket() as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listening.bind(("127.0.0.1", port))
            except OSError as error:
                raise UsageError(f"port {port} is taken: {error.strerror}", "--port 0 takes a free one") from error
            say(context, f"http://127.0.0.1:{listening.getsockname()[1]}/?token={site.token}")
            say(context, f"labels are {name}'s; Ctrl-C ends it")
            context.out.file.flush()
            asyncio.run(_serve.Server(app).serve(sockets=[listening]))
