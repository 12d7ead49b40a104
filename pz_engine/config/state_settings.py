"""`state:` with its environment defaults.

An explicit key always wins over its variable; credentials come only from the environment, and no value of the block is
ever shown: it may be a connection string in the wrong place.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from pz_engine.base.identifiers import is_identifier
from pz_engine.config import project_keys as keys
from pz_engine.config.block_reader import BlockReader
from pz_engine.config.connections_file import ConnectionsYaml
from pz_engine.config.definitions import Key
from pz_engine.config.kinds import Malformed
from pz_engine.config.located import Located, Scalar, Table
from pz_engine.config.reporter import Reporter
from pz_engine.model.project import StateSettings

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def parse_state(node: Located | None, env: Mapping[str, str], report: Reporter) -> StateSettings:
    """Read the block and apply the environment; problems are `PZ0124` and `PZ0125`."""
    if node is not None and not isinstance(node, Table):
        BlockReader(keys.PROJECT, Table({keys.STATE.name: node}, node.line), report).read(keys.STATE)
        return StateSettings()
    # Path and code are the same for every backend; which keys may stand there is checked once the backend is known.
    written = BlockReader(keys.STATE_BLOCKS[keys.BACKEND.default], node or Table({}), report)
    reader = _Reader(written, env)
    backend, origin = reader.backend()
    if backend is None:
        return StateSettings()
    BlockReader(keys.STATE_BLOCKS[backend], written.table, report).refuse_other_keys()
    if backend == "local":
        return StateSettings(origin=origin)
    return reader.http(origin) if backend == "http" else reader.sql(backend, origin)


def check_state_connection(
    settings: StateSettings, connections: ConnectionsYaml | None, report: Reporter, line: int | None
) -> None:
    """Check that a SQL backend's named connection exists and has the backend's connector (`PZ0125`).

    Args:
        settings: the resolved settings.
        connections: None when they could not be loaded; nothing is checked then.
        report: receives the problem.
        line: the line of `state.connection`.
    """
    name = settings.connection
    if name is None or connections is None or name in connections.broken:
        return
    found = connections.connections.get(name)
    if found is None:
        shown = f"names '{name}', which does not exist" if is_identifier(name) else "is no name of a connection"
        hint = report.near_miss(name, connections.connections) if is_identifier(name) else None
        report.add("PZ0125", f"state.connection {shown}", line=line, hint=hint or "declare it in connections.yml")
    elif found.connector != settings.backend:
        report.add(
            "PZ0125",
            f"state.connection '{found.name}' uses connector {found.connector}, but the backend is {settings.backend}",
            line=line, hint=f"name a connection whose connector is {settings.backend}",
        )  # fmt: skip


class _Reader(Struct, frozen=True):
    written: BlockReader
    env: Mapping[str, str]

    def backend(self) -> tuple[str | None, str]:
        """Return the backend, None when it is unknown, and where its name comes from."""
        node = self.written.table.get(keys.BACKEND.name)
        variable = self._variable("PZ_STATE_BACKEND")
        if node is None and variable is None:
            return keys.BACKEND.default, "default"
        if node is None:
            node = Scalar(variable, None, variable or "")
            place, origin = "PZ_STATE_BACKEND", "PZ_STATE_BACKEND"
        else:
            place, origin = "state.backend", "project.yml"
        try:
            return keys.BACKEND.kind.parse(node), origin
        except Malformed:
            text = node.text if isinstance(node, Scalar) else ""
            hint = self.written.report.near_miss(text, keys.STATE_BLOCKS) or "write backend: local"
            self._bad(keys.BACKEND, f"{place} must be {keys.BACKEND.kind.wanted}", hint)
            return None, origin

    def sql(self, backend: str, origin: str) -> StateSettings:
        """Read the keys of a SQL backend."""
        connection, schema = self.written.read(keys.STATE_CONNECTION), self.written.read(keys.STATE_SCHEMA)
        artifacts = self._flag(keys.ARTIFACTS, "PZ_STATE_ARTIFACTS", default=True)
        events = self._flag(keys.EVENTS, "PZ_STATE_EVENTS", default=False)
        if events and not artifacts:
            self._bad(keys.EVENTS, "state.events needs state.artifacts", "write artifacts: true, or remove events")
        secret = self._variable("PZ_STATE_CONNECTION_STRING")
        if secret is None and self.written.present(keys.STATE_CONNECTION) is None:
            self.written.add(
                "PZ0125", f"state backend {backend} has no connection", keys.BACKEND.name,
                "write connection: <name> below state, or set PZ_STATE_CONNECTION_STRING",
            )  # fmt: skip
        schema = schema or self._variable("PZ_STATE_SCHEMA") or StateSettings().schema
        return StateSettings(backend, origin, connection, schema, artifacts, events, connection_string=secret)

    def http(self, origin: str) -> StateSettings:
        """Read the keys of the http backend."""
        for key, variable in ((keys.ARTIFACTS, "PZ_STATE_ARTIFACTS"), (keys.EVENTS, "PZ_STATE_EVENTS")):
            if self._flag(key, variable, default=False):
                self._bad(key, f"state.{key.name} is not available with backend http", f"remove {key.name}")
        is_written = self.written.present(keys.URL) is not None
        url = self.written.read(keys.URL) if is_written else self._variable("PZ_STATE_URL")
        if not url and not is_written:
            self.written.add(
                keys.URL.code,
                "state backend http has no url",
                keys.URL.name,
                "write url: https://..., or set PZ_STATE_URL",
            )
        elif url and not _is_http_url(url):
            self.written.add(
                keys.URL.code, "the state url is not an absolute http or https address", keys.URL.name,
                "write url: https://<host>/<path>",
            )  # fmt: skip
        token = self._variable("PZ_STATE_TOKEN")
        if token is not None and not (token.isascii() and token.isprintable() and token == token.strip()):
            self.written.add(
                "PZ0125", "PZ_STATE_TOKEN cannot be sent", keys.BACKEND.name,
                "set it to plain characters on one line, without blanks or a line's end around them",
            )  # fmt: skip
        if token and url and url.lower().startswith("http://"):
            self.written.report.warn(
                "PZ0530",
                f"the state token would travel over plain http{'' if is_written else ' to PZ_STATE_URL'}",
                line=self.written.table.line_of(keys.URL.name),
                hint="use an https url",
            )  # fmt: skip
        return StateSettings("http", origin, url=url, timeout_seconds=self._timeout(), token=token)

    def _timeout(self) -> int:
        default = StateSettings().timeout_seconds
        if self.written.present(keys.TIMEOUT_SECONDS) is not None:
            return self.written.read(keys.TIMEOUT_SECONDS) or default
        text = self._variable("PZ_STATE_TIMEOUT_SECONDS")
        if text is None:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else text
        try:
            return keys.TIMEOUT_SECONDS.kind.parse(Scalar(number, None, text)) or default
        except Malformed:
            wanted = keys.TIMEOUT_SECONDS.kind.wanted
            self._bad(keys.TIMEOUT_SECONDS, f"PZ_STATE_TIMEOUT_SECONDS must be {wanted}", "set it to 30, or unset it")
            return default

    def _flag(self, key: Key[bool | None], variable: str, *, default: bool) -> bool:
        if self.written.present(key) is not None:
            value = self.written.read(key)
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

    def _bad(self, key: Key[object], cause: str, hint: str) -> None:
        self.written.add(keys.STATE.code, cause, key.name, hint)


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and has_host and text.isprintable() and " " not in text


def state_connection_line(node: Located | None) -> int | None:
    """Return the line of `state.connection`, when it is written."""
    return node.line_of("connection") if isinstance(node, Table) and "connection" in node.entries else None
