"""A small JSON API over real HTTP, for tests: pages of records, credentials, quotas, and scripted trouble."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct, field


class Request(Struct, frozen=True):
    """What was asked."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


class Answer(Struct, frozen=True):
    """What is answered."""

    status: int = 200
    body: Any = None
    """A value is sent as JSON, bytes as they are."""

    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the answer begins."""

    hang_up: bool = False
    """Close the connection in the middle of the body."""


class HttpApi:
    """Serves `handler`; use it as a context manager."""

    def __init__(self, handler: Callable[[Request], Answer], *, certificate: tuple[str, str] | None = None) -> None:
        """Prepare a server on a free port of the loopback interface.

        Args:
            handler: returns the answer to a request; called from several threads.
            certificate: paths of a certificate and its key, for https.
        """
        self.handler = handler
        self.script: deque[Answer] = deque()
        """Answers that are given before the handler is asked."""

        self.requests: list[Request] = []
        self._guard = threading.Lock()
        self._scheme = "http" if certificate is None else "https"
        api = self

        class Handler(_Handler):
            owner = api

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its base address."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> HttpApi:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request."""
        with self._guard:
            self.requests.append(request)
            scripted = self.script.popleft() if self.script else None
        return scripted if scripted is not None else self.handler(request)


class _Handler(BaseHTTPRequestHandler):
    owner: HttpApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        answer = self.owner.answer(Request(parts.path, query, dict(self.headers.items())))
        time.sleep(answer.delay)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if answer.hang_up:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""
