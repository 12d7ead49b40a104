"""Tier 3: connections and entities against their connectors, offline.

Engine-owned keys are never unknown here, and a finding names keys, never values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pz_engine.base.near_miss import did_you_mean
from pz_engine.compile.dag import CompiledProject, SourceLoadNode
from pz_engine.config.connections_file import CONNECTIONS_FILE, RESERVED_KEYS
from pz_engine.config.entity_sides import READ_KEYS
from pz_engine.connectors.api import ConnectionUse, Connector, Finding
from pz_engine.connectors.registry import find_connector, known_connectors
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.exceptions import ConnectorHostError
from pz_engine.model.connection import Connection
from pz_engine.model.entity import ReadSide, WriteSide
from pz_engine.model.policies import SyncMode
from pz_engine.plan.specs import project_places
from pz_engine.validate.report import ValidationReport
from pz_engine.validate.schema_check import check_schema

_QUOTED = re.compile(r"'([^']+)'")
_PASSED_THROUGH = tuple(key for key in READ_KEYS if key not in {"columns", "sync", "retry"})


def check_connector_config(compiled: CompiledProject) -> ValidationReport:
    """Check every effective connection once, and every reserved key once per connector."""
    problems = ProblemCollector()
    checked: set[str] = set()
    for name in sorted(compiled.connections):
        connection = compiled.connections[name]
        try:
            connector = find_connector(connection.connector)
        except ConnectorHostError as error:
            problems.add(error.code, error.message, file=CONNECTIONS_FILE, line=connection.line, hint=error.hint)
            continue
        if connector is None:
            _unknown_connector(connection, problems)
            continue
        if connection.connector not in checked:
            checked.add(connection.connector)
            _check_reserved_keys(connector, problems)
        _ConnectionCheck(compiled, connection, connector, problems).run()
    return ValidationReport.of(problems)


def _unknown_connector(connection: Connection, problems: ProblemCollector) -> None:
    known = known_connectors()
    problems.add(
        "PZ0305", f"connection '{connection.name}': there is no connector '{connection.connector}'; known: "
        f"{', '.join(known)}", file=CONNECTIONS_FILE, line=connection.line,
        hint=did_you_mean(connection.connector, known) or "correct the name, or install the package that provides it",
    )  # fmt: skip


def _check_reserved_keys(connector: Connector, problems: ProblemCollector) -> None:
    declared = connector.connection_schema.get("properties", {})
    for key in RESERVED_KEYS:
        if key in declared:
            problems.add(
                "PZ0345", f"connector '{connector.info.name}' declares the connection key '{key}', which pz owns",
                hint="rename the key in the connector, or use another version of it",
            )  # fmt: skip


class _ConnectionCheck:
    """Everything about one connection."""

    def __init__(
        self, compiled: CompiledProject, connection: Connection, connector: Connector, problems: ProblemCollector
    ) -> None:
        self._compiled = compiled
        self._connection = connection
        self._connector = connector
        self._problems = problems
        self._missing: set[tuple[str | None, bool, str]] = set()

    def run(self) -> None:
        connection, connector = self._connection, self._connector
        self._schema(connector.connection_schema, connection.config, None, is_write=False)
        reads: dict[str, Mapping[str, Any]] = {}
        writes: dict[str, Mapping[str, Any]] = {}
        for entity in connection.entities.values():
            if entity.read is not None and self._can("open_source", "read", entity.name, is_write=False):
                reads[entity.name] = self._read_options(entity.read)
                self._schema(connector.read_schema, reads[entity.name], entity.name, is_write=False)
            if entity.write is not None and self._can("open_sink", "write", entity.name, is_write=True):
                writes[entity.name] = dict(entity.write.options)
                self._schema(connector.write_schema, writes[entity.name], entity.name, is_write=True)
        config = {**connection.config, **project_places(self._compiled)}
        try:
            findings = connector.validate(ConnectionUse(connection.name, config, reads, writes, self._cursors()))
        except Exception as error:
            self._add("PZ0301", f"its connector could not validate it ({type(error).__name__})", None, is_write=False)
            return
        for finding in findings:
            self._report(finding)

    def _cursors(self) -> dict[str, str]:
        """Return the cursor of every incremental read, whether `sync` or a pipeline's `watermark()` declares it."""
        found = {
            node.entity: node.incremental.cursor
            for node in self._compiled.nodes
            if isinstance(node, SourceLoadNode) and node.connection == self._connection.name and node.incremental
        }
        for entity in self._connection.entities.values():
            sync = entity.read.sync if entity.read is not None else None
            if sync is not None and sync.mode is SyncMode.INCREMENTAL and sync.cursor is not None:
                found[entity.name] = sync.cursor
        return found

    def _can(self, method: str, verb: str, entity: str, *, is_write: bool) -> bool:
        if hasattr(self._connector, method):
            return True
        cause = f"connector {self._connection.connector} cannot {verb}"
        self._add("PZ0301", cause, entity, is_write=is_write, hint="use another connection")
        return False

    def _read_options(self, read: ReadSide) -> dict[str, Any]:
        declared = self._connector.read_schema.get("properties", {})
        options = {
            key: value for key, value in read.options.items() if key in declared or key not in _PASSED_THROUGH
        }  # fmt: skip
        if read.columns:
            options["columns"] = dict(read.columns)
        return options

    def _schema(
        self, schema: Mapping[str, Any], options: Mapping[str, Any], entity: str | None, *, is_write: bool
    ) -> None:
        if "columns" in options and "columns" not in schema.get("properties", {}):
            options = {key: value for key, value in options.items() if key != "columns"}
        for finding in check_schema(schema, options):
            if finding.missing is not None:
                self._missing.add((entity, is_write, finding.missing))
            self._add("PZ0301", finding.cause, entity, is_write=is_write, hint=finding.hint, option=finding.path)

    def _report(self, finding: Finding) -> None:
        for entity, is_write, name in self._missing:
            if (entity, is_write) == (finding.entity, finding.is_write) and f"'{name}'" in finding.message:
                return  # the schema already said that this option is missing
        self._add(
            "PZ0364" if finding.is_warning else finding.code, finding.message, finding.entity, is_write=finding.is_write,
            hint=finding.hint, option=self._named_option(finding), is_warning=finding.is_warning,
        )  # fmt: skip

    def _named_option(self, finding: Finding) -> str:
        """Return the option that a connector's own words name in quotes, if it is one that was declared."""
        side = self._side(finding.entity, is_write=finding.is_write)
        declared = self._connection.config if side is None else side.options
        return next((name for name in _QUOTED.findall(finding.message) if name.partition(".")[0] in declared), "")

    def _add(
        self,
        code: str,
        cause: str,
        entity: str | None,
        *,
        is_write: bool,
        hint: str | None = None,
        option: str = "",
        is_warning: bool = False,
    ) -> None:
        side = self._side(entity, is_write=is_write)
        file = side.file if side is not None else CONNECTIONS_FILE
        line = (side or self._connection).line_of(option)
        name = self._connection.name
        where = f"connection '{name}'" if entity is None else f"'{name}.{entity}', {'write' if is_write else 'read'}"
        record = self._problems.warn if is_warning else self._problems.add
        record(code, f"{where}: {cause}", file=file, line=line, hint=hint)

    def _side(self, entity: str | None, *, is_write: bool) -> ReadSide | WriteSide | None:
        found = self._connection.entities.get(entity) if entity is not None else None
        if found is None:
            return None
        return found.write if is_write else found.read
