"""The `duckdb` connector: tables of a DuckDB database file, read and written by DuckDB itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ConnectionUse, ConnectorInfo, Finding, ProbeResult
from pz_engine.connectors.builtin.duckdb.database import DatabaseFile
from pz_engine.connectors.builtin.duckdb.tables import DuckDbSink, DuckDbSource
from pz_engine.connectors.capabilities import Capability
from pz_engine.connectors.toolkit.duck_tables import table_name
from pz_engine.connectors.toolkit.os_errors import TRANSIENT_ERRORS
from pz_engine.errors.exceptions import PzConnectorError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class DuckDbConnector:
    """Reads and writes DuckDB tables; see the protocols in `pz_engine.connectors` for what each member promises."""

    info = ConnectorInfo("duckdb", "1")
    capabilities = (
        Capability.NATIVE_SCAN
        | Capability.NATIVE_COPY
        | Capability.REPEATABLE_SCAN
        | Capability.REPLACE_WRITES
        | Capability.MERGE
        | Capability.TRANSACTIONAL
        | Capability.BOUNDED_WINDOW
        | Capability.INCLUSIVE_BOUND
    )
    connection_schema: Mapping[str, Any] = {
        "$schema": _DRAFT,
        "type": "object",
        "additionalProperties": False,
        "required": ["path"],
        "properties": {"path": {"type": "string", "minLength": 1}},
    }
    read_schema: Mapping[str, Any] = {
        "$schema": _DRAFT,
        "type": "object",
        "additionalProperties": False,
        "properties": {"columns": {"type": "object", "additionalProperties": {"type": "string"}}},
    }
    write_schema: Mapping[str, Any] = {
        "$schema": _DRAFT,
        "type": "object",
        "additionalProperties": False,
        "properties": {},
    }
    native_only_reads = True
    native_only_writes = True

    def validate(self, use: ConnectionUse) -> list[Finding]:
        """Check the path and the spelling of entities."""
        return list(self._findings(use))

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        """Look at the file's first bytes without opening it as a database."""
        cancel.raise_if_set()
        database = DatabaseFile.of(config)
        if database.refusal is not None:
            return ProbeResult(False, f"permanent: {database.refusal}")
        try:
            if not database.path.exists():
                if database.path.parent.is_dir():
                    return ProbeResult(True, f"database '{database.name}' does not exist yet and will be created")
                return ProbeResult(False, f"permanent: the folder of database '{database.name}' does not exist")
            if database.is_database():
                return ProbeResult(True, f"database '{database.name}' exists")
        except OSError as error:
            kind = "transient" if error.errno in TRANSIENT_ERRORS else "permanent"
            return ProbeResult(False, f"{kind}: database '{database.name}' cannot be read: {error.strerror}")
        return ProbeResult(False, f"permanent: '{database.name}' is not a DuckDB database")

    def open_source(self, config: Mapping[str, Any]) -> DuckDbSource:
        """Open the read side."""
        return DuckDbSource(DatabaseFile.of(config))

    def open_sink(self, config: Mapping[str, Any]) -> DuckDbSink:
        """Open the write side."""
        return DuckDbSink(DatabaseFile.of(config))

    def _findings(self, use: ConnectionUse) -> Iterator[Finding]:
        if not isinstance(use.config.get("path"), str):
            return
        refusal = DatabaseFile.of(use.config).refusal
        if refusal is not None:
            yield Finding(refusal, hint="choose another 'path'")
        for is_write, entities in ((False, use.reads), (True, use.writes)):
            for entity in entities:
                try:
                    table_name("", entity)
                except PzConnectorError as error:
                    yield Finding(error.message, error.code or "PZ0301", entity, is_write)
