"""The `http` connector: JSON pages of HTTP services."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ConnectionUse, ConnectorInfo, Finding, ProbeResult
from pz_engine.connectors.builtin.http.options import (
    CONNECTION_SCHEMA,
    READ_SCHEMA,
    WRITE_SCHEMA,
    connection_problems,
    read_problems,
)
from pz_engine.connectors.capabilities import Capability
from pz_engine.errors.exceptions import PzConnectorError

if TYPE_CHECKING:
    from pz_engine.connectors.builtin.http.source import HttpSource


class HttpConnector:
    """Reads pages; see the protocols in `pz_engine.connectors` for what each member promises."""

    info = ConnectorInfo("http", "1")
    capabilities = (
        Capability.BOUNDED_WINDOW
        | Capability.SYNC_STATE
        | Capability.GATED_OPERATIONS
        | Capability.STABLE_PARTITION_IDS
        | Capability.CHECKPOINTABLE_READS
    )
    connection_schema = CONNECTION_SCHEMA
    read_schema = READ_SCHEMA
    write_schema = WRITE_SCHEMA
    native_only_reads = False

    def validate(self, use: ConnectionUse) -> list[Finding]:
        """Check the address, bindings, pointers and what options mean together."""
        found = [
            Finding(problem.message, problem.code, hint=problem.hint) for problem in connection_problems(use.config)
        ]
        for entity, options in use.reads.items():
            found += [
                Finding(f"entity '{entity}': {problem.message}", problem.code, entity, hint=problem.hint)
                for problem in read_problems(options, sync_cursor=use.cursors.get(entity), auth=use.config.get("auth"))
            ]
        return found

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        """Ask for `check_path`, or without one find out whether somebody listens."""
        from pz_engine.connectors.builtin.http.transport import Settings, Transport

        problem = next(connection_problems(config), None)
        if problem is not None:
            return ProbeResult(False, f"permanent: {problem.message}")
        settings = Settings.of(config)
        if "check_path" not in config:
            return _listens(settings.base_url.host, settings.base_url.port or _port_of(settings.base_url.scheme))
        transport = Transport(settings)
        try:
            transport.get(settings.address(str(config["check_path"])), cancel)
        except PzConnectorError as error:
            return ProbeResult(False, f"{'transient' if error.is_transient else 'permanent'}: {error.message}")
        finally:
            transport.close()
        return ProbeResult(True, f"GET {config['check_path']} was answered")

    def open_source(self, config: Mapping[str, Any]) -> HttpSource:
        """Open the read side."""
        from pz_engine.connectors.builtin.http.source import HttpSource

        return HttpSource(config)


def _listens(host: str, port: int) -> ProbeResult:
    try:
        with socket.create_connection((host, port), timeout=20):
            return ProbeResult(True, f"{host} accepts connections; what it answers is seen at run time")
    except OSError as error:
        return ProbeResult(False, f"transient: {host} cannot be reached: {error.strerror or type(error).__name__}")


def _port_of(scheme: str) -> int:
    return 443 if scheme == "https" else 80
