"""The live page as an application: who may ask, and where a form may write.

Bound to this machine alone. Reading is for whoever is logged in on it; what writes needs the token of the address that was
printed, from a page of this very origin, so that no other site can make a browser write.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import DatabaseError, SurrecallError, UsageError
from surrecall._serve.answers import Answers
from surrecall._serve.asked import Asked, Done, Filled, Whole
from surrecall._serve.news import News
from surrecall._serve.pages import render
from surrecall._serve.store import Store

_COOKIE = "surrecall_token"
_LARGEST_FORM = 100_000
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # not no-referrer: forms would send null for their origin
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]

Work = Callable[[Asked], Filled | Whole | Done]


@dataclass
class Site:
    """What is served: a database, the project's corpus and cutoffs, the token that writing needs, and who labels."""

    database: Database
    folder: Path
    corpus: Corpus | None
    cutoffs: tuple[int, ...]
    who: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)


def make_app(site: Site) -> Starlette:
    """The application. On a server it follows evaluations as they end; on the embedded engine it tells of its own."""
    store, news = Store(site.database), News()
    answers = Answers(store, news, site.folder, site.corpus, site.cutoffs, site.who)
    door = _Door(site.token, store.label)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if not store.is_embedded:
            news.follow(site.database)
        yield
        news.close()

    async def events(_request: Request) -> Response:
        return StreamingResponse(news.stream(), media_type="text/event-stream")

    read: dict[str, Work] = {
        "/": answers.home,
        "/evaluations": answers.evaluations,
        "/report": answers.report,
        "/compare": answers.compare,
        "/question": answers.question,
        "/try": answers.attempt,
        "/label": answers.label,
    }
    written: dict[str, Work] = {"/label": answers.judge, "/evaluate": answers.evaluate}
    routes = [Route(path, door.answer(work)) for path, work in read.items()]
    routes += [Route(path, door.answer(work), methods=["POST"]) for path, work in written.items()]
    app = Starlette(routes=[*routes, Route("/events", events)], lifespan=lifespan, middleware=[Middleware(_Guard)])
    app.state.news = news
    return app


class _Guard:
    """Answers only who asks for this machine by its name, so that no foreign name that leads here reads anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost"):
            await Response("this page is for 127.0.0.1 alone", status_code=421)(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        await self._app(scope, receive, with_headers)


@dataclass(frozen=True)
class _Door:
    """Takes requests in and gives pages out; `label` is the address of the database, without secrets."""

    token: str
    label: str

    def answer(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        """The work in a thread, and its errors as a page that says what to do."""

        async def endpoint(request: Request) -> Response:
            options = dict(request.query_params)
            if self._is_token(options.pop("token", "")):
                # out of the address, so that it stands in no history and no screenshot
                clean = RedirectResponse(request.url.path, status_code=303)
                clean.set_cookie(_COOKIE, self.token, httponly=True, samesite="strict")
                return clean
            form: dict[str, list[str]] = {}
            writes = self._is_token(request.cookies.get(_COOKIE, ""))
            if request.method == "POST":
                body = b""
                async for piece in request.stream():
                    body += piece
                    if len(body) > _LARGEST_FORM:
                        return Response("too large", status_code=413)
                form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
            asked = Asked(options, form, "application/json" in request.headers.get("accept", ""))
            if request.method == "POST" and not (writes and self._is_own(request)):
                refusal = UsageError("writing needs the token", "open the address that surrecall serve printed")
                return self._problem(asked, refusal, writes, 403)
            try:
                done = await run_in_threadpool(work, asked)
            except SurrecallError as error:
                return self._problem(asked, error, writes, 503 if isinstance(error, DatabaseError) else 400)
            if isinstance(done, Done):
                if asked.json:
                    return JSONResponse(done.told, status_code=done.status)
                return RedirectResponse(done.then, status_code=303)
            return HTMLResponse(done.text) if isinstance(done, Whole) else self._page(asked, done, writes)

        return endpoint

    def _page(self, asked: Asked, filled: Filled, writes: bool, status: int = 200) -> Response:
        nonce = secrets.token_urlsafe(16)
        more = {"nonce": nonce, "writes": writes, "label": self.label, "options": asked.options}
        policy = (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
        text = render(filled.template, filled.facts | more)
        return HTMLResponse(text, status_code=status, headers={"content-security-policy": policy})

    def _problem(self, asked: Asked, error: SurrecallError, writes: bool, status: int) -> Response:
        if asked.json:
            return JSONResponse({"error": error.message, "next": error.hint}, status_code=status)
        return self._page(asked, Filled("problem.html", {"error": error}), writes, status)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def _is_own(self, request: Request) -> bool:
        """Whether a form was sent by a page of this origin."""
        return request.headers.get("origin") == f"{request.url.scheme}://{request.headers.get('host')}"
