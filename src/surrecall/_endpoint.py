"""A POST of JSON to an endpoint that may be busy, silent, cut off or not let one in; secrets stand in no message."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import requests

from surrecall._errors import EmbeddingError, UsageError

_ATTEMPTS = 7
# an endpoint that never answered is more likely a wrong address than a busy server
_FIRST_ATTEMPTS = 3
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
# who asks for more is to be asked later, by another run
_LONGEST_ASKED = 300.0
_CONNECT_SECONDS = 10.0
_SHOWN = 300


class Refused(EmbeddingError):
    """The endpoint answers, and does not take the request; `status` is what it says."""

    def __init__(self, message: str, hint: str, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


class _Transient(Exception):
    """Worth another try; `wait` is what the server asked for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass
class JsonEndpoint:
    """An address that takes JSON and gives JSON.

    `endpoint` is what messages call it, `url` where it is asked, `option` the option that named it, `about` what stands behind
    the status of a refusal, and `refused` the step then. `key` is sent as a bearer token when there is one, and stands
    in no repr, message or record; `key_name` is the variable that it came from. `timeout` is in seconds, for one request.
    """

    endpoint: str
    url: str
    option: str
    about: str
    refused: str
    key: str | None = field(default=None, repr=False)
    key_name: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    goes_on: str = "check {option}, or run it again later; it goes on"
    _session: requests.Session = field(default_factory=requests.Session, init=False, repr=False)
    _answered: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self.key = (self.key or "").strip() or None
        if self.key is not None and not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            raise UsageError(f"{self.key_name} holds no key: blanks, control or foreign characters", "set it again")
        self._session.headers["User-Agent"] = f"surrecall/{version('surrecall')}"

    def ask(self, body: dict[str, Any]) -> Any:
        """The answer to a request.

        Tries again, with growing waits or as long as the server asks for, while it is busy, silent or cut off. Raises
        EmbeddingError when that does not help, or the request is refused.
        """
        attempt = 0
        while True:
            try:
                return self._post(body)
            except _Transient as problem:
                attempt += 1
                if attempt >= (_ATTEMPTS if self._answered else _FIRST_ATTEMPTS):
                    raise EmbeddingError(
                        f"{self.endpoint} {problem}, {attempt} times", self.goes_on.format(option=self.option)
                    ) from problem
                sleep(self._wait(attempt, problem.wait))

    def _post(self, body: dict[str, Any]) -> Any:
        try:
            response = self._session.post(
                self.url,
                json=body,
                auth=self._sign,
                timeout=(_CONNECT_SECONDS, self.timeout),
                # a redirect would turn the POST into a GET, and carry the texts elsewhere
                allow_redirects=False,
            )
        except requests.Timeout as error:
            raise _Transient(f"did not answer in {self.timeout:g} s") from error
        except requests.exceptions.SSLError as error:
            raise EmbeddingError(f"{self.endpoint} has a certificate that is not accepted", f"check {self.option}") from error
        except requests.ConnectionError as error:
            raise _Transient("can't be reached") from error
        except requests.exceptions.ChunkedEncodingError as error:
            raise _Transient("broke its answer off") from error
        except requests.RequestException as error:
            raise EmbeddingError(f"{self.endpoint} can't be asked ({type(error).__name__})", f"check {self.option}") from error
        self._answered = True
        status = response.status_code
        if status in (408, 409, 425, 429) or status >= 500:
            raise _Transient(f"answers {status}{self._said(response)}", _asked_wait(response.headers.get("Retry-After")))
        if status in (401, 403):
            # its text may quote a part of the key
            how = f"the key in {self.key_name} is not accepted" if self.key else f"{self.key_name} holds no key"
            raise EmbeddingError(f"{self.endpoint} answers {status}: {how}", f"set {self.key_name}, or name another by --key-env")
        if status != 200:
            raise Refused(f"{self.endpoint} answers {status}{self.about}{self._said(response)}", self.refused, status)
        try:
            return response.json()
        except (ValueError, RecursionError) as error:
            raise _Transient("gave an answer that is no JSON, or is cut off") from error

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        # set even without a key: else a login for this host in ~/.netrc would be sent
        if self.key is not None:
            request.headers["Authorization"] = f"Bearer {self.key}"
        return request

    def _wait(self, attempt: int, asked: float | None) -> float:
        """Seconds until the next try: what the server asked for, else twice as long each time, spread by chance."""
        if asked is None:
            return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (attempt - 1)) * random.uniform(0.75, 1.25)
        if asked > _LONGEST_ASKED:
            raise EmbeddingError(f"{self.endpoint} asks to be left alone for {asked:.0f} s", "run it again then; it goes on")
        return asked

    def _said(self, response: requests.Response) -> str:
        """What the server said of an error, short and without the key."""
        try:
            said = response.json()
        except (ValueError, RecursionError):
            return ""
        while isinstance(said, dict):
            said = next((said[name] for name in ("error", "message", "detail") if said.get(name)), None)
        return f": {self._redacted(said)[:_SHOWN]}" if isinstance(said, str) else ""

    def _redacted(self, text: str) -> str:
        return text.replace(self.key, "…") if self.key else text


def checked_url(url: str, option: str, example: str) -> str:
    """An address as it was given. Raises UsageError for one that is no http address, or might hold a secret."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        parts = urlsplit("")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"{option} {parts.hostname or ''} holds a login or a query, and endpoints are recorded",
            "give the address alone, the key by --key-env",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{option} {url!r} is no address", f"for example: {option} {example}")
    return url.strip()


def _asked_wait(header: str | None) -> float | None:
    """Seconds of a Retry-After, which is a number or a date; None where there is none that can be read."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            until = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = (until.astimezone(UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None
