"""Tier 5: every connection is reached, every schema looked at, every destination asked whether it may be written.

Nothing is moved or changed. Each call into a connector is bounded by time, and no text of a foreign error is shown as
it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, TypeVar

from msgspec import Struct, field

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.durations import format_duration
from pz_engine.compile.dag import CompiledProject, SinkWriteNode, SourceLoadNode
from pz_engine.config.connections_file import CONNECTIONS_FILE
from pz_engine.connectors.api import (
    Connector,
    ProbeResult,
    ReadSpec,
    Sink,
    SinkConnector,
    Source,
    SourceConnector,
    WriteProbe,
)
from pz_engine.connectors.capabilities import Capability
from pz_engine.duck.session import DuckSession, DuckSettings
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.connection import Connection
from pz_engine.model.entity import Entity
from pz_engine.model.policies import SyncMode
from pz_engine.model.run import ColumnType
from pz_engine.plan.specs import connector_config, connector_of, read_spec, write_spec
from pz_engine.validate.equipment import equip
from pz_engine.validate.failures import Failure, failure_of, failure_of_probe
from pz_engine.validate.remote_schemas import SchemaReader, SessionSetup
from pz_engine.validate.report import ValidationReport
from pz_engine.validate.time_limit import within

LIMIT = timedelta(seconds=30)
"""Longest answer to one question."""

_MOST_AT_ONCE = 32
_Result = TypeVar("_Result")
_Side = TypeVar("_Side", Source, Sink)


class ConnectivityReport(Struct, frozen=True):
    """What tier 5 found."""

    report: ValidationReport
    schemas: Mapping[str, tuple[ColumnType, ...]]
    """Columns of every entity without a contract that answered."""

    unanswered: frozenset[str]
    """Entities without a contract that did not."""


def check_connectivity(
    compiled: CompiledProject, new_setup: Callable[[], SessionSetup], *, limit: timedelta | None = None
) -> ConnectivityReport:
    """Check all effective connections at the same time.

    Args:
        compiled: a project that the other tiers found nothing wrong with.
        new_setup: makes what runs setup steps in a new session.
        limit: longest answer to one question; `LIMIT` when left out.
    """
    cancel = CancelToken()
    checks = [
        _ConnectionCheck(compiled, compiled.connections[name], new_setup, limit or LIMIT, cancel)
        for name in sorted(compiled.connections)
    ]
    with ThreadPoolExecutor(max(1, min(_MOST_AT_ONCE, len(checks)))) as pool:
        try:
            for done in [pool.submit(check.run) for check in checks]:
                done.result()
        except BaseException:
            cancel.set()
            raise
    problems = ProblemCollector()
    for check in checks:
        problems.errors.extend(check.problems.errors)
    notes = [note for check in checks for note in dict.fromkeys(check.notes)]
    schemas = {key: columns for check in checks for key, columns in check.schemas.items()}
    unanswered = frozenset[str]().union(*(check.unanswered for check in checks))
    return ConnectivityReport(ValidationReport.of(problems, notes), schemas, unanswered)


class _ConnectionCheck(Struct):
    """Everything about one connection, one question after the other."""

    compiled: CompiledProject
    connection: Connection
    new_setup: Callable[[], SessionSetup]
    limit: timedelta
    cancel: CancelToken
    problems: ProblemCollector = field(default_factory=ProblemCollector)
    notes: list[str] = field(default_factory=list)
    schemas: dict[str, tuple[ColumnType, ...]] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)

    def run(self) -> None:
        name = self.connection.name
        reads = [entity for _, entity in sorted(self.connection.entities.items()) if entity.read is not None]
        self.unanswered = {_key(name, entity) for entity in reads if entity.read and not entity.read.columns}
        connector = connector_of(self.compiled, name)
        config = connector_config(self.compiled, name)
        if self._probe(connector, config):
            if isinstance(connector, SourceConnector) and reads:
                self._read(connector, config, reads)
            if isinstance(connector, SinkConnector):
                self._write(connector, config)

    def _probe(self, connector: Connector, config: Mapping[str, Any]) -> bool:
        where = f"connection '{self.connection.name}'"
        place = (CONNECTIONS_FILE, self.connection.line)
        found = self._ask(lambda token: connector.check_connection(config, token), where, place)
        return found is not None and self._accept(found, where, place)

    def _read(self, connector: SourceConnector, config: Mapping[str, Any], reads: list[Entity]) -> None:
        where, place = f"connection '{self.connection.name}', read", (CONNECTIONS_FILE, self.connection.line)
        source = self._ask(lambda _: self._equipped(connector.open_source(config)), where, place)
        if source is None:
            return
        project = self.compiled.project
        allows_download = project is not None and project.engine.duckdb.allow_extension_download
        settings = DuckSettings(allow_unsigned_extensions=self.connection.allow_unsigned_extensions)
        with DuckSession.open(None, settings) as session:
            reader = SchemaReader(
                source,
                session,
                self.new_setup(),
                offers_scans=Capability.NATIVE_SCAN in connector.capabilities,
                needs_extensions=connector.native_only_reads or allows_download,
            )
            for entity in reads:
                self._compare(reader, entity)
        self._close(source)

    def _compare(self, reader: SchemaReader, entity: Entity) -> None:
        assert entity.read is not None
        key = _key(self.connection.name, entity)
        place = (entity.read.file, entity.read.line)
        spec = self._spec(entity)
        fetched = self._ask(lambda token: reader.fetch(spec, token), f"'{key}', read", place)
        if fetched is None:
            return
        for drift in fetched.drift:
            self.problems.add("PZ0331", f"'{key}': {drift.problem}", file=place[0], line=place[1], hint=drift.hint)
        if fetched.columns is not None:
            self.schemas[key] = fetched.columns
            self.unanswered.discard(key)

    def _write(self, connector: SinkConnector, config: Mapping[str, Any]) -> None:
        nodes = [
            node
            for node in self.compiled.nodes
            if isinstance(node, SinkWriteNode) and node.connection == self.connection.name
        ]
        if not nodes:
            return
        where, place = f"connection '{self.connection.name}', write", (CONNECTIONS_FILE, self.connection.line)
        sink = self._ask(lambda _: self._equipped(connector.open_sink(config)), where, place)
        if sink is None:
            return
        if isinstance(sink, WriteProbe):
            for node in sorted(nodes, key=lambda node: node.name):
                self._ask_to_write(sink, node)
        self._close(sink)

    def _equipped(self, side: _Side) -> _Side:
        equip(side, self.compiled, self.connection.name, self._note)
        return side

    def _close(self, side: Source | Sink) -> None:
        """Close a side; nobody is told when that fails, because everything was asked already."""
        with contextlib.suppress(Exception):
            within(self.limit, lambda _: side.close(), self.cancel)

    def _ask_to_write(self, sink: WriteProbe, node: SinkWriteNode) -> None:
        entity = self.connection.entities.get(node.entity)
        side = entity.write if entity is not None else None
        place = (side.file, side.line) if side is not None else (node.file, node.line)
        where = f"'{node.name}', write"
        found = self._ask(lambda token: sink.check_write(write_spec(node), token), where, place)
        if found is not None:
            self._accept(found, where, place)

    def _spec(self, entity: Entity) -> ReadSpec:
        for node in self.compiled.nodes:
            if isinstance(node, SourceLoadNode) and (node.connection, node.entity) == (
                self.connection.name,
                entity.name,
            ):
                return read_spec(node)
        assert entity.read is not None
        columns = {"columns": dict(entity.read.columns)} if entity.read.columns else {}
        sync = entity.read.sync
        return ReadSpec(
            self.connection.name,
            entity.name,
            {**entity.read.options, **columns},
            cursor=sync.cursor if sync is not None else None,
            change_capture=sync is not None and sync.mode is SyncMode.CDC,
            capture_slot=sync.slot if sync is not None else None,
        )

    def _ask(self, work: Callable[[CancelToken], _Result], where: str, place: tuple[str, int | None]) -> _Result | None:
        """Return the answer; None when there was none, which is then a problem."""
        try:
            return within(self.limit, work, self.cancel)
        except Exception as error:
            self._fail(failure_of(error, format_duration(self.limit)), where, place)
            return None

    def _accept(self, found: ProbeResult, where: str, place: tuple[str, int | None]) -> bool:
        if found.ok:
            self._note(found.message, where)
        else:
            self._fail(failure_of_probe(found.message), where, place)
        return found.ok

    def _fail(self, failure: Failure, where: str, place: tuple[str, int | None]) -> None:
        text = self._without_secrets(failure.message)
        self.problems.add("PZ0330", f"{where}: {text}", file=place[0], line=place[1], hint=failure.hint)

    def _note(self, text: str, where: str | None = None) -> None:
        if text:
            self.notes.append(f"{where or self.connection.name}: {self._without_secrets(text)}")

    def _without_secrets(self, text: str) -> str:
        """Take out what the connector marks as secret, in case it repeats it."""
        declared = connector_of(self.compiled, self.connection.name).connection_schema.get("properties", {})
        for key, value in self.connection.config.items():
            if isinstance(value, str) and value and declared.get(key, {}).get("writeOnly"):
                text = text.replace(value, "***")
        return text


def _key(connection: str, entity: Entity) -> str:
    return f"{connection}.{entity.name}"
