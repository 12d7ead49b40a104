"""Connectors of another distribution, as far as reaching out goes; each does one thing wrong, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pz_engine.connectors import (
    Cancelled,
    CancelToken,
    Capability,
    ConnectionUse,
    ConnectorInfo,
    Finding,
    ProbeResult,
    PzConnectorError,
    ReadSpec,
    WriteSpec,
)

RELEASED = threading.Event()
"""Set at the end of a test, so that no call of a connector outlives it."""

ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int16()),
        ("big", pa.uint64()),
        ("at", pa.timestamp("us", "UTC")),
        ("note", pa.string()),
    ]
)
CLOCKED = ARROW.append(pa.field("clock", pa.time64("us")))


class Quiet:
    """Answers everything, has nothing to read natively, and remembers what it was given."""

    info = ConnectorInfo("quiet", "1.0", "pz-foreign")
    capabilities = Capability.GATED_OPERATIONS
    connection_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {"url": {"type": "string"}, "password": {"type": "string", "writeOnly": True}},
    }
    read_schema: Mapping[str, Any] = {}
    write_schema: Mapping[str, Any] = {}
    native_only_reads = False
    native_only_writes = False

    def validate(self, use: ConnectionUse) -> list[Finding]:
        return []

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        return ProbeResult(True, "server 15.2")

    def open_source(self, config: Mapping[str, Any]) -> Quiet:
        return type(self)()

    def open_sink(self, config: Mapping[str, Any]) -> Quiet:
        return type(self)()

    def use_gate(self, gate: Any) -> None:
        self.gate = gate

    def use_notices(self, callback: Any) -> None:
        self.say = callback

    def native_scan(self, spec: ReadSpec) -> None:
        raise AssertionError("a connector without NATIVE_SCAN is not asked")

    def get_schema(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        self.say("info", "host key is 'abc'")
        return self.gate.execute("quiet.schema", True, lambda: self.schema_of(spec, cancel), cancel)

    def schema_of(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        if spec.entity == "gone":
            raise PzConnectorError("table 'gone' does not exist", is_transient=False, hint="correct the name")
        return CLOCKED if spec.entity == "clocked" else ARROW

    def check_write(self, spec: WriteSpec, cancel: CancelToken) -> ProbeResult:
        return ProbeResult(True, "")

    def close(self) -> None:
        pass


class Hanging(Quiet):
    """Never answers a probe, and does not look at its token."""

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        RELEASED.wait(30)
        return ProbeResult(True, "")


class Slow(Quiet):
    """Hangs on the entity `stuck`, and stops when told to."""

    def schema_of(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        if spec.entity == "stuck":
            cancel.wait(30)
            raise Cancelled
        return ARROW


class Raising(Quiet):
    """Lets exceptions of its driver out, with everything in them."""

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        raise ValueError(f"login failed for 'ada', password={config['password']} at line 7")


class Leaking(Quiet):
    """Repeats its password where it should not."""

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        return ProbeResult(False, f"transient: cannot reach db as ada:{config['password']}@host")


class Unopened(Quiet):
    """Cannot be opened, for want of a driver."""

    def open_source(self, config: Mapping[str, Any]) -> Quiet:
        raise PzConnectorError("driver missing", is_transient=False, hint="pip install driver")


class Forbidding(Quiet):
    """May be read but not written."""

    def check_write(self, spec: WriteSpec, cancel: CancelToken) -> ProbeResult:
        return ProbeResult(False, f"permanent: may not insert into '{spec.entity}'")
