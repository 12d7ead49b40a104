"""`state:` with its environment defaults.

An explicit key always wins over its variable; credentials come only from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pz_engine.base.near_miss import did_you_mean
from pz_engine.config.located import Located, Table, as_bool, as_int, as_text
from pz_engine.config.reporter import Reporter
from pz_engine.model.connection import Connection
from pz_engine.model.project import StateSettings

STATE_BACKENDS = ("local", "sqlserver", "postgres", "http")
"""Known backends."""

_SQL_KEYS = ("backend", "connection", "schema", "artifacts", "events")
_KEYS = {
    "local": ("backend",),
    "sqlserver": _SQL_KEYS,
    "postgres": _SQL_KEYS,
    "http": ("backend", "artifacts", "events", "url", "timeout_seconds"),
}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def parse_state(node: Located | None, env: Mapping[str, str], report: Reporter) -> StateSettings:
    """Read the block and apply the environment; problems are `PZ0124` and `PZ0125`."""
    if node is not None and not isinstance(node, Table):
        report.add(
            "PZ0124", "state must be a mapping", line=node.line,
            hint="write state: {backend: local}; credentials belong in the environment",
        )  # fmt: skip
        return StateSettings()
    reader = _Reader(node or Table({}), env, report)
    backend, origin = reader.backend()
    if backend is None:
        return StateSettings()
    reader.refuse_stray_keys(backend)
    if backend == "local":
        return StateSettings(origin=origin)
    if backend == "http":
        return reader.http(origin)
    return reader.sql(backend, origin)


def check_state_connection(
    settings: StateSettings, connections: Mapping[str, Connection] | None, report: Reporter, line: int | None
) -> None:
    """Check that a SQL backend's named connection exists and has the backend's connector (`PZ0125`).

    Args:
        settings: the resolved settings.
        connections: None when they could not be loaded; nothing is checked then.
        report: receives the problem.
        line: the line of `state.connection`.
    """
    if settings.connection is None or connections is None:
        return
    found = connections.get(settings.connection)
    if found is None:
        report.add(
            "PZ0125", f"state.connection names '{settings.connection}', which does not exist", line=line,
            hint=did_you_mean(settings.connection, connections) or "declare it in connections.yml",
        )  # fmt: skip
    elif found.connector != settings.backend:
        report.add(
            "PZ0125",
            f"state.connection '{found.name}' uses connector {found.connector}, but the backend is {settings.backend}",
            line=line, hint=f"name a connection whose connector is {settings.backend}",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Reader:
    table: Table
    env: Mapping[str, str]
    report: Reporter

    def backend(self) -> tuple[str | None, str]:
        node = self.table.get("backend")
        origin = "default"
        if node is not None:
            text, origin = as_text(node), "project.yml"
        else:
            text = self._variable("PZ_STATE_BACKEND")
            origin = "PZ_STATE_BACKEND" if text else "default"
            text = text or "local"
        if text in STATE_BACKENDS:
            return text, origin
        place = "state.backend" if node is not None else "PZ_STATE_BACKEND"
        self.report.add(
            "PZ0124", f"{place} must be one of {', '.join(STATE_BACKENDS)}", line=self.table.line_of("backend"),
            hint=did_you_mean(text or "", STATE_BACKENDS) or "write backend: local",
        )  # fmt: skip
        return None, origin

    def refuse_stray_keys(self, backend: str) -> None:
        for key in self.table.entries:
            if key == "token":
                self._bad(key, "state.token may not be written in a file", "set PZ_STATE_TOKEN instead")
            elif key not in _KEYS[backend]:
                hint = did_you_mean(key, _KEYS[backend]) or f"keys of {backend}: {', '.join(_KEYS[backend])}"
                self._bad(key, f"state has a key '{key}' that backend {backend} does not know", hint)

    def sql(self, backend: str, origin: str) -> StateSettings:
        connection_node, schema_node = self.table.present("connection"), self.table.present("schema")
        connection, schema = as_text(connection_node), as_text(schema_node)
        for key, node, text in (("connection", connection_node, connection), ("schema", schema_node, schema)):
            if node is not None and not text:
                self._bad(key, f"state.{key} must be text", f"write {key}: <name>")
        artifacts = self._flag("artifacts", "PZ_STATE_ARTIFACTS", default=True)
        events = self._flag("events", "PZ_STATE_EVENTS", default=False)
        if events and not artifacts:
            self._bad("events", "state.events needs state.artifacts", "write artifacts: true, or remove events")
        secret = self._variable("PZ_STATE_CONNECTION_STRING")
        if connection is None and secret is None and connection_node is None:
            self.report.add(
                "PZ0125", f"state backend {backend} has no connection", line=self.table.line_of("backend"),
                hint="write connection: <name> below state, or set PZ_STATE_CONNECTION_STRING",
            )  # fmt: skip
        return StateSettings(
            backend, origin, connection, schema or self._variable("PZ_STATE_SCHEMA") or "pz", artifacts, events,
            connection_string=secret,
        )  # fmt: skip

    def http(self, origin: str) -> StateSettings:
        for key, variable in (("artifacts", "PZ_STATE_ARTIFACTS"), ("events", "PZ_STATE_EVENTS")):
            if self._flag(key, variable, default=False):
                self._bad(key, f"state.{key} is not available with backend http", f"remove {key}")
        node = self.table.present("url")
        url = as_text(node) if node is not None else self._variable("PZ_STATE_URL")
        line = self.table.line_of("url")
        if not url:
            self.report.add(
                "PZ0125", "state backend http has no url", line=line, hint="write url: https://..., or set PZ_STATE_URL"
            )
        elif not _is_http_url(url):
            self.report.add(
                "PZ0125", "the state url is not an absolute http or https address", line=line,
                hint="write url: https://<host>/<path>",
            )  # fmt: skip
        token = self._variable("PZ_STATE_TOKEN")
        if token and url and url.lower().startswith("http://"):
            self.report.problems.warn(
                "PZ0530", "the state token would travel over plain http", file=self.report.file, line=line,
                hint="use an https url",
            )  # fmt: skip
        return StateSettings("http", origin, url=url, timeout_seconds=self._timeout(), token=token)

    def _timeout(self) -> int:
        node = self.table.present("timeout_seconds")
        if node is not None:
            seconds = as_int(node)
        else:
            text = self._variable("PZ_STATE_TIMEOUT_SECONDS")
            if text is None:
                return 30
            seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
        if seconds is None or seconds < 1:
            self._bad("timeout_seconds", "state.timeout_seconds must be a whole number of at least 1", "write 30")
            return 30
        return seconds

    def _flag(self, key: str, variable: str, *, default: bool) -> bool:
        node = self.table.present(key)
        if node is not None:
            value = as_bool(node)
            if value is None:
                self._bad(key, f"state.{key} must be true or false", f"write {key}: {str(default).lower()}")
            return default if value is None else value
        text = self._variable(variable)
        if text is None:
            return default
        value = _BOOLEANS.get(text.strip().lower())
        if value is None:
            self._bad(key, f"{variable} must be true or false", f"set {variable}=true or unset it")
            return default
        return value

    def _variable(self, name: str) -> str | None:
        value = self.env.get(name, "")
        return value if value.strip() else None

    def _bad(self, key: str, cause: str, hint: str) -> None:
        self.report.add("PZ0124", cause, line=self.table.line_of(key), hint=hint)


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def state_connection_line(node: Located | None) -> int | None:
    """Return the line of `state.connection`, when it is written."""
    return node.line_of("connection") if isinstance(node, Table) and "connection" in node.entries else None
