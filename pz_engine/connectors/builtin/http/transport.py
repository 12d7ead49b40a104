"""One server: credentials on every request, and never a request to anybody else.

Every address is checked before it is asked: the first one, redirects, next links and stored tokens alike. Redirects are
followed here, because a client that follows them by itself would carry the credentials along.
"""

from __future__ import annotations

import contextlib
import email.utils
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final

import httpx
from msgspec import Struct

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.base.clock import SystemClock
from pz_engine.base.http_log import without_http_log
from pz_engine.connectors.builtin.http.addresses import joined, no_address, shown_server
from pz_engine.errors.exceptions import PzConnectorError

TRANSIENT_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504})
GONE: Final = 410

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_DENIED: Final = frozenset({401, 403})
_TOO_MANY: Final = 429
_SERVER_FAULTS: Final = range(500, 600)
_OK: Final = range(200, 300)
_HOPS: Final = 5
_EPOCH_RESET: Final = 10_000_000
"""A rate-limit reset above this is a time, below it a number of seconds."""

_LONGEST_WAIT: Final = timedelta(days=1)
"""Longest wait a server can ask for; more is a mistake of the server."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MOST_DIGITS: Final = 9
"""Of a number of seconds; a longer one is more than any wait."""

_MEGABYTE: Final = 1024 * 1024


class GoneError(PzConnectorError):
    """The server says that what was asked for is gone for good."""


class Response(Struct, frozen=True):
    """A successful answer."""

    url: httpx.URL
    """After redirects."""

    headers: httpx.Headers
    text: str


class Settings(Struct, frozen=True):
    """A connection's configuration, checked."""

    base_url: httpx.URL
    headers: Mapping[str, str]
    auth: Mapping[str, Any]
    timeout_seconds: int
    max_response_mb: int
    allow_hosts: frozenset[str]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        """Read a configuration that passed validation."""
        base = str(config["base_url"])
        return cls(
            httpx.URL(base if base.endswith("/") else f"{base}/"),
            {str(name): str(value) for name, value in (config.get("headers") or {}).items()},
            config.get("auth") or {},
            int(config.get("timeout_seconds", 30)),
            int(config.get("max_response_mb", 256)),
            frozenset(str(host).lower() for host in config.get("allow_hosts") or ()),
        )

    def address(self, path: str) -> httpx.URL:
        """Return a path under the whole base address."""
        return httpx.URL(f"{self.base_url}{path.removeprefix('/')}")

    def refuse_foreign(self, url: httpx.URL) -> None:
        """Check that an address is on the base address's origin or an allowed host.

        Raises:
            PzConnectorError: permanent; names the authority only.
        """
        base = self.base_url
        is_downgrade = base.scheme == "https" and url.scheme != "https"
        is_origin = (url.scheme, url.host, _port(url)) == (base.scheme, base.host, _port(base))
        is_web = url.scheme in _DEFAULT_PORTS
        if is_web and not is_downgrade and (is_origin or url.host.lower() in self.allow_hosts):
            return
        raise PzConnectorError(
            f"a request to {shown_server(url)} was not made: it is not on the connection's own server",
            is_transient=False,
            hint="name the host under allow_hosts if it may receive this connection's credentials",
        )


class Transport:
    """Asks one server; used by one thread at a time."""

    def __init__(self, settings: Settings, on_budget: Callable[[int, datetime], None] | None = None) -> None:
        """Prepare a client; nothing is connected yet.

        Args:
            settings: the connection.
            on_budget: told what the server says is left of a quota, and when it starts anew.
        """
        self._settings = settings
        self._on_budget = on_budget
        self._sockets: list[Any] = []
        auth = settings.auth
        headers = {"Accept": "application/json", **settings.headers}
        basic = None
        if auth.get("type") == "bearer":
            headers["Authorization"] = f"Bearer {auth['token']}"
        elif auth.get("type") == "basic":
            basic = httpx.BasicAuth(str(auth["user"]), str(auth["password"]))
        elif auth.get("type") == "api_key" and "header" in auth:
            headers[str(auth["header"])] = str(auth["key"])
        self._client = httpx.Client(
            headers=headers, auth=basic, timeout=settings.timeout_seconds, follow_redirects=False
        )

    def get(self, url: httpx.URL, cancel: CancelToken) -> Response:
        """Ask for an address, following redirects on the same terms.

        Raises:
            PzConnectorError: the request failed; says whether trying again has a chance, and how long to wait.
            GoneError: the server answered 410.
            Cancelled: the token was set.
        """
        current = url
        for _ in range(_HOPS + 1):
            self._settings.refuse_foreign(current)
            answer = self._get_once(current, cancel)
            if isinstance(answer, Response):
                return answer
            current = answer
        raise PzConnectorError(
            f"GET {shown(url)}: more than {_HOPS} redirects",
            is_transient=False,
            hint="point base_url or path at the last address",
        )

    def close(self) -> None:
        """Close every connection; safe to call twice."""
        self._client.close()

    def _get_once(self, url: httpx.URL, cancel: CancelToken) -> Response | httpx.URL:
        """Return the answer, or where it is to be found."""
        cancel.raise_if_set()
        forget = cancel.on_cancel(self._hang_up)
        try:
            with (
                without_http_log(),
                self._classifying(url, cancel),
                self._client.stream("GET", self._with_key(url), extensions={"trace": self._trace}) as response,
            ):
                self._report_budget(response.headers)
                if response.status_code in _REDIRECTS and "location" in response.headers:
                    return joined(url, response.headers["location"])
                if response.status_code not in _OK:
                    raise _failed(url, response)
                return Response(url, response.headers, self._read(url, response, cancel))
        finally:
            forget()

    def _with_key(self, url: httpx.URL) -> httpx.URL:
        """Add an API key that travels as a parameter; only what is sent holds it."""
        auth = self._settings.auth
        if auth.get("type") == "api_key" and "param" in auth:
            return url.copy_set_param(str(auth["param"]), str(auth["key"]))
        return url

    def _read(self, url: httpx.URL, response: httpx.Response, cancel: CancelToken) -> str:
        limit = self._settings.max_response_mb * _MEGABYTE
        content = bytearray()
        for chunk in response.iter_bytes():
            cancel.raise_if_set()
            content += chunk
            if len(content) > limit:
                raise PzConnectorError(
                    f"GET {shown(url)}: the answer is larger than {self._settings.max_response_mb} MB",
                    is_transient=False,
                    hint="ask for smaller pages, or raise max_response_mb",
                )
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise PzConnectorError(
                f"GET {shown(url)}: the answer is not UTF-8",
                is_transient=False,
                hint="ask for it with headers: { Accept: 'application/json; charset=utf-8' }, or correct the server",
            ) from None

    @contextlib.contextmanager
    def _classifying(self, url: httpx.URL, cancel: CancelToken) -> Iterator[None]:
        """Turn the client's exceptions into ours; a failure after the token was set is the hanging up."""
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            if cancel.is_set():
                raise Cancelled from None
            permanent = isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.DecodingError))
            is_transient = not (permanent or isinstance(error, httpx.LocalProtocolError) or _is_certificate(error))
            if isinstance(error.__context__, httpx.InvalidURL):  # a redirect the client itself could not read
                raise no_address() from None
            cause, hint = _cause(error)
            raise PzConnectorError(f"GET {shown(url)}: {cause}", is_transient=is_transient, hint=hint) from None

    def _trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Remember each new connection, so that a blocked read can be ended."""
        if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._sockets.append(info["return_value"])

    def _hang_up(self) -> None:
        for stream in self._sockets:
            with contextlib.suppress(OSError, AttributeError):
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def _report_budget(self, headers: httpx.Headers) -> None:
        for prefix in ("x-ratelimit-", "ratelimit-"):
            left, reset = headers.get(f"{prefix}remaining", ""), headers.get(f"{prefix}reset", "")
            if _is_count(left) and _is_count(reset):
                moment = _reset_at(int(reset))
                if moment is not None and self._on_budget is not None:
                    self._on_budget(int(left), moment)
                return


def shown(url: httpx.URL) -> str:
    """Return an address for people: its path, parameter names without values, no user."""
    names = "&".join(f"{name}=***" for name in url.params)
    return f"{url.path}{f'?{names}' if names else ''}"


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Return the wait a `Retry-After` header asks for, at most a day: whole seconds or a date; anything else is none."""
    text = headers.get("retry-after", "").strip()
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        is_long = len(digits.lstrip("0")) > _MOST_DIGITS
        wait = _LONGEST_WAIT if is_long else timedelta(seconds=int(digits))
        return timedelta(0) if text.startswith("-") else min(wait, _LONGEST_WAIT)
    try:
        moment = email.utils.parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return min(max(timedelta(0), moment - SystemClock().now()), _LONGEST_WAIT)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def _failed(url: httpx.URL, response: httpx.Response) -> PzConnectorError:
    status = response.status_code
    message = f"GET {shown(url)}: the server answered {status}"
    hint = _next_step(status)
    if status == GONE:
        return GoneError(message, is_transient=False, hint=hint)
    if status in TRANSIENT_STATUSES:
        return PzConnectorError(message, is_transient=True, retry_after=retry_after(response.headers), hint=hint)
    return PzConnectorError(message, is_transient=False, hint=hint)


def _next_step(status: int) -> str | None:
    """Return what to do about a status; None where only trying again later is left."""
    if status in _DENIED:
        return "check the credentials of the connection"
    if status == _TOO_MANY:
        return "set rate_limit on the connection to what the server allows"
    if status in TRANSIENT_STATUSES:
        return None
    if status in _SERVER_FAULTS:
        return "ask whoever runs the server"
    if status in _REDIRECTS:
        return "correct base_url or path: the server gives no address to go on to"
    return "check base_url, and path and query of the entity"


def _cause(error: Exception) -> tuple[str, str | None]:
    """Return what happened and what to do; None where only trying again later is left."""
    if isinstance(error, httpx.TimeoutException):
        return "the server did not answer in time", "raise timeout_seconds of the connection, or try again later"
    if _is_certificate(error):
        return (
            "the server's certificate is not trusted",
            "set SSL_CERT_FILE to a file with the certificate authority that signed it",
        )
    if isinstance(error, httpx.ConnectError):
        return "the server cannot be reached", None
    if isinstance(error, httpx.InvalidURL):
        return "the address cannot be used", "correct base_url, or path and query of the entity"
    if isinstance(error, httpx.DecodingError):
        return "the answer's compression is damaged", "ask for it plain with headers: { Accept-Encoding: identity }"
    return f"the connection failed ({type(error).__name__})", None


def _is_certificate(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _reset_at(reset: int) -> datetime | None:
    try:
        now = SystemClock().now()
        moment = datetime.fromtimestamp(reset, timezone.utc) if reset > _EPOCH_RESET else now + timedelta(seconds=reset)
        return min(moment, now + _LONGEST_WAIT)
    except (OverflowError, ValueError, OSError):
        return None


def _port(url: httpx.URL) -> int | None:
    return url.port or _DEFAULT_PORTS.get(url.scheme)
