"""An endpoint of the test's own for embeddings and chat completions, that misbehaves as it is told."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from surrecall._embedders.hashing import Hashing

Answer = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    """One request; an answer is a function that writes to it."""

    server: Endpoint
    body: dict[str, Any]

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append(self)
            answer = self.server.script.pop(0) if self.server.script else self.server.always
        try:
            answer(self)
        except (BrokenPipeError, ConnectionResetError):
            return

    def vectors(self) -> list[list[float]]:
        """A vector for each text, each another one."""
        return Hashing(self.body.get("dimensions", self.server.dimension)).embed(self.body["input"])

    def send(self, status: int, content: Any, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **given}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_arguments: Any) -> None:
        return


class Endpoint(ThreadingHTTPServer):
    """Answers are taken from `script` while it lasts, then from `always`; `seen` are the requests."""

    daemon_threads = True

    def __init__(self, dimension: int) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.dimension = dimension
        self.script: list[Answer] = []
        self.always: Answer = shuffled
        self.seen: list[Request] = []
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        """Every text that was asked for, in the order of asking."""
        return [text for request in self.seen for text in request.body["input"]]


def rows(vectors: list[Any]) -> dict[str, Any]:
    """Vectors as the answer of an endpoint."""
    return {"object": "list", "data": [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]}


def shuffled(request: Request) -> None:
    """What is right, in any order."""
    answer = rows(request.vectors())
    random.Random(3).shuffle(answer["data"])
    request.send(200, answer)


def status(code: int, message: str = "no", **headers: str) -> Answer:
    return lambda request: request.send(code, {"error": {"message": message}}, **headers)


def changed(change: Callable[[list[list[Any]]], Any]) -> Answer:
    """The right vectors, spoilt."""

    def answer(request: Request) -> None:
        vectors: list[list[Any]] = request.vectors()
        spoilt = change(vectors)
        request.send(200, rows(vectors if spoilt is None else spoilt))

    return answer


def cut_off(request: Request) -> None:
    """Half an answer, said to be whole."""
    request.send(200, json.dumps(rows(request.vectors())).encode()[:-40])


def broken_off(request: Request) -> None:
    """Less than was announced."""
    request.send(200, b'{"data": [', Content_Length="5000")
    request.connection.close()


def slow(seconds: float) -> Answer:
    def answer(request: Request) -> None:
        time.sleep(seconds)
        shuffled(request)

    return answer


def chat(content: Any, *, model: str = "m-1", ended: str = "stop", refusal: str | None = None) -> Answer:
    """A chat completion; what is no text is sent as JSON."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": ended}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return lambda request: request.send(200, {"object": "chat.completion", "model": model, "choices": [choice], "usage": usage})


def chosen(answers: Callable[[str], Any]) -> Answer:
    """A chat completion that is made from what was sent by the user."""
    return lambda request: chat(answers(request.body["messages"][-1]["content"]))(request)
