"""Talks to the endpoint: one request at a time, a few polite repeats, and answers as values.

Only 204 means that nothing is stored. A 404 is an error, because an endpoint that does not know the run must not read
as empty state. Messages name the host and never the token.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from msgspec import Struct

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.base.http_log import without_http_log
from pz_engine.errors.exceptions import PzStateError

if TYPE_CHECKING:
    import httpx

_BUSY: Final = frozenset({429, 502, 503, 504})
_CONFLICT: Final = frozenset({409, 412})
_TRIES: Final = 3
_LONGEST_WAIT: Final = 30.0
_WAIT_STEP: Final = 0.2
_TAG = re.compile(r'\s*(?:W/)?"([1-9][0-9]{0,17})"\s*')


class Answer(Struct, frozen=True):
    """A usable answer."""

    status: int
    content: bytes
    version: int | None
    """From the entity tag; None when there is none that can be used."""


class ConflictError(Exception):
    """The endpoint holds another version than the one that was named.

    Args:
        is_repeat: the request had been sent before, so the other version may be its own doing.
    """

    def __init__(self, *, is_repeat: bool) -> None:
        self.is_repeat = is_repeat
        super().__init__()


class StateClient:
    """Requests below one base address; thread-safe."""

    def __init__(self, url: str, token: str | None, timeout_seconds: float, cancel: CancelToken | None = None) -> None:
        """Prepare a client; nothing is sent and nothing is connected yet.

        Args:
            url: the base address, used whole.
            token: sent as a bearer token with every request when given.
            timeout_seconds: for connecting, sending and each wait for an answer.
            cancel: ends waits between repeats.
        """
        self._base = url.rstrip("/")
        self._token = token
        self._timeout = timeout_seconds
        self._cancel = cancel or CancelToken()
        self._guard = threading.Lock()
        self._client: httpx.Client | None = None

    @property
    def host(self) -> str:
        """How messages name the endpoint."""
        return urlsplit(self._base).hostname or "?"

    def send(
        self,
        method: str,
        scope: str,
        key: str | None = None,
        *,
        accept: frozenset[int],
        content: bytes | None = None,
        if_match: int | None = None,
    ) -> Answer:
        """Send a request, again while the endpoint says it is busy.

        Args:
            method: `GET`, `PUT` or `DELETE`; everything sent is safe to repeat.
            scope: the first segment below the base address.
            key: an entry's key, encoded as one segment; None for the whole scope.
            accept: the statuses that are an answer.
            content: JSON to send.
            if_match: the version the entry must have.

        Raises:
            ConflictError: the endpoint answered 409 or 412.
            PzStateError: `PZ0518`, it cannot be reached or answered anything else.
            Cancelled: the run was cancelled while waiting.
        """
        address = f"{self._base}/{scope}" if key is None else f"{self._base}/{scope}/{quote(key, safe='')}"
        headers = {} if content is None else {"Content-Type": "application/json"}
        if if_match is not None:
            headers["If-Match"] = f'"{if_match}"'
        for attempt in range(1, _TRIES + 1):
            response = self._send_once(method, address, headers, content)
            if response.status_code not in _BUSY or attempt == _TRIES:
                break
            if self._cancel.wait(_wait_of(response.headers, attempt)):
                raise Cancelled
        if response.status_code in _CONFLICT:
            raise ConflictError(is_repeat=attempt > 1)
        if response.status_code not in accept:
            raise self.unusable(f"answered {method} of {scope} with status {response.status_code}")
        return Answer(response.status_code, response.content, _version_of(response.headers))

    def unusable(self, cause: str) -> PzStateError:
        """Return the error for an endpoint that cannot be worked with."""
        return PzStateError(
            "PZ0518",
            f"the state endpoint on {self.host} {cause}",
            hint="check state.url or PZ_STATE_URL, PZ_STATE_TOKEN, and that the endpoint is up",
        )

    def ignore_cancellation(self) -> None:
        """Go on whatever happens to the run's token."""
        self._cancel = CancelToken()

    def close(self) -> None:
        """Close every connection; safe to call twice."""
        with self._guard:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _send_once(
        self, method: str, address: str, headers: Mapping[str, str], content: bytes | None
    ) -> httpx.Response:
        import httpx

        self._cancel.raise_if_set()
        try:
            with without_http_log():
                return self._opened().request(method, address, headers=dict(headers), content=content)
        except httpx.TimeoutException:
            raise self.unusable(f"did not answer within {self._timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.unusable(f"cannot be reached ({type(error).__name__})") from None

    def _opened(self) -> httpx.Client:
        import httpx

        with self._guard:
            if self._client is None:
                headers: dict[str, Any] = {"Accept": "application/json"}
                if self._token is not None:
                    headers["Authorization"] = f"Bearer {self._token}"
                # Loading trusted certificates takes longer than a write; without TLS there is nothing to check.
                is_secure = urlsplit(self._base).scheme == "https"
                self._client = httpx.Client(
                    headers=headers, timeout=self._timeout, follow_redirects=False, verify=is_secure
                )
            return self._client


def _wait_of(headers: Mapping[str, str], attempt: int) -> float:
    """Return what the endpoint asked for in seconds, else a short growing wait."""
    asked = headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdigit():
        return min(float(asked), _LONGEST_WAIT)
    return _WAIT_STEP * attempt


def _version_of(headers: Mapping[str, str]) -> int | None:
    match = _TAG.fullmatch(headers.get("ETag", ""))
    return int(match[1]) if match is not None else None
