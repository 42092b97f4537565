"""The server of the live page."""

from __future__ import annotations

import socket

import uvicorn
from starlette.applications import Starlette


class Server(uvicorn.Server):
    """Serves an application of make_app on a socket that is bound; pages that are open don't hold its end up."""

    def __init__(self, app: Starlette) -> None:
        self._app = app
        super().__init__(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2, access_log=False))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # every page that is open holds a stream that would never end
        self._app.state.news.close()
        await super().shutdown(sockets)
