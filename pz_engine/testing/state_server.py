"""A state endpoint over real HTTP: the protocol that `state.backend: http` speaks, in memory.

Hosts that offer such an endpoint can compare theirs with it. Answers can be scripted to try what a client does when the
endpoint misbehaves.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import unquote

from msgspec import Struct, field


class ScriptedAnswer(Struct, frozen=True):
    """An answer that is sent instead of the real one."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    applies: bool = False
    """Do what was asked first, as when an answer is lost on its way."""


class _Entry(Struct):
    payload: str
    version: int


class StateServer:
    """Serves one run's state below `url`; use it as a context manager."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token
        self.script: deque[ScriptedAnswer] = deque()
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and headers of everything asked."""

        self.uses_weak_tags = False
        self.leaves_out_tags = False
        self._guard = threading.Lock()
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._tombstones: dict[tuple[str, str], int] = {}
        server = self

        class Handler(_Handler):
            owner = server

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """The base address of the one run this server knows."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/runs/r1"

    def payload(self, scope: str, key: str) -> str | None:
        """Return what is stored, as text."""
        with self._guard:
            entry = self._entries.get((scope, key))
        return entry.payload if entry is not None else None

    def put(self, scope: str, key: str, payload: str) -> None:
        """Store something behind every client's back."""
        with self._guard:
            self._store((scope, key), payload)

    def __enter__(self) -> StateServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> ScriptedAnswer:
        """Return the answer to one request."""
        with self._guard:
            self.requests.append((method, path, dict(headers)))
            scripted = self.script.popleft() if self.script else None
            if scripted is not None and not scripted.applies:
                return scripted
            real = self._handle(method, path, headers, body)
            return scripted or real

    def _handle(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> ScriptedAnswer:
        if self.token is not None and headers.get("Authorization") != f"Bearer {self.token}":
            return ScriptedAnswer(401)
        prefix, _, rest = path.partition("/runs/r1/")
        scope, has_key, encoded = rest.partition("/")
        if prefix or scope not in ("watermarks", "sync-state", "schemas") or "/" in encoded:
            return ScriptedAnswer(404)
        if not has_key:
            return self._list(scope)
        place = (scope, unquote(encoded))
        if method == "GET":
            entry = self._entries.get(place)
            return (
                ScriptedAnswer(204) if entry is None else ScriptedAnswer(200, self._tag(entry), entry.payload.encode())
            )
        if method == "DELETE":
            removed = self._entries.pop(place, None)
            if removed is not None:
                self._tombstones[place] = removed.version
            return ScriptedAnswer(204)
        return self._swap(place, headers.get("If-Match"), body)

    def _swap(self, place: tuple[str, str], if_match: str | None, body: bytes) -> ScriptedAnswer:
        entry = self._entries.get(place)
        if if_match is None and entry is not None:
            return ScriptedAnswer(409, self._tag(entry))
        if if_match is not None and (entry is None or if_match != f'"{entry.version}"'):
            return ScriptedAnswer(412)
        return ScriptedAnswer(200 if entry is not None else 201, self._tag(self._store(place, body.decode())))

    def _store(self, place: tuple[str, str], payload: str) -> _Entry:
        entry = self._entries.get(place)
        version = entry.version if entry is not None else self._tombstones.get(place, 0)
        self._entries[place] = _Entry(payload, version + 1)
        return self._entries[place]

    def _list(self, scope: str) -> ScriptedAnswer:
        entries = [
            {"key": key, "payload": entry.payload, "version": entry.version}
            for (stored, key), entry in reversed(self._entries.items())
            if stored == scope
        ]
        return ScriptedAnswer(200, {}, json.dumps({"entries": entries}).encode())

    def _tag(self, entry: _Entry) -> dict[str, str]:
        if self.leaves_out_tags:
            return {}
        return {"ETag": f'{"W/" if self.uses_weak_tags else ""}"{entry.version}"'}


class _Handler(BaseHTTPRequestHandler):
    owner: StateServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.owner.answer(self.command, self.path, dict(self.headers.items()), body)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if answer.status != 204:
            self.wfile.write(answer.body)
