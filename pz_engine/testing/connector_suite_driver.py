"""Moves rows through a connector the way a run does, without a run: DuckDB on one side, the connector on the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.fault_points import fault_point
from pz_engine.connectors.api import (
    BatchOptions,
    Connector,
    ReadHints,
    ReadSpec,
    SinkConnector,
    SourceConnector,
    WriteSpec,
)
from pz_engine.connectors.fragments import SOURCE_PLACEHOLDER, AttachStep, ExtensionStep, NativeCopy, SetupStep
from pz_engine.duck.checked_scan import recover_scan, resolve_scan
from pz_engine.duck.egress import copy_source, stream_batches, write_schema
from pz_engine.duck.extensions import load_extension
from pz_engine.duck.ingest import BatchInsert, create_landing_table
from pz_engine.duck.quoting import quote_identifier, quote_literal
from pz_engine.duck.schema_policies import reconcile
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.model.policies import SchemaPolicy, Strategy

OUTGOING = "staging.pz_suite_outgoing"
"""Relation that writes are taken from."""

LANDED = "staging.pz_suite_landed"
"""Relation that reads land in."""


class ConnectorHarness(Struct, frozen=True):
    """What the suite must know about one connector to drive it."""

    connector: Connector
    config: Mapping[str, Any]
    """Connection configuration, `base_dir` included."""

    connection: str = "target"
    write_options: Mapping[str, Any] = field(default_factory=dict)
    read_options: Callable[[str], Mapping[str, Any]] = lambda _entity: {}
    """Read options under which the named entity gives back what was written to it."""

    needs_contract: bool = False
    """The format keeps no types, so reading back needs `columns`."""

    keeps_empty_text: bool = True
    """An empty string comes back as one, not as NULL."""

    keeps_long_decimals: bool = True
    """Decimals of more than 15 digits survive; where they do not, reading them must fail."""

    directory: Path | None = None
    """Folder in which everything the connector writes lies, when it is local."""

    origin: str | None = None
    """`module:function` that builds this harness from a folder, for tests that kill a process."""

    @property
    def can_read(self) -> bool:
        """Tell whether the connector has a read side."""
        return isinstance(self.connector, SourceConnector)

    @property
    def can_write(self) -> bool:
        """Tell whether the connector has a write side."""
        return isinstance(self.connector, SinkConnector)

    def read_spec(self, entity: str, contract: Mapping[str, str] | None = None, **bounds: Any) -> ReadSpec:
        """Return the spec that reads an entity back."""
        options = dict(self.read_options(entity))
        if contract:
            options["columns"] = dict(contract)
        return ReadSpec(self.connection, entity, options, **bounds)

    def write_spec(
        self,
        entity: str,
        strategy: Strategy,
        keys: Sequence[str] = (),
        policy: SchemaPolicy = SchemaPolicy.FAIL_ON_CHANGE,
    ) -> WriteSpec:
        """Return the spec that writes an entity."""
        return WriteSpec(self.connection, entity, strategy, policy, tuple(keys), options=self.write_options)


def write_natively(
    cursor: DuckCursor,
    harness: ConnectorHarness,
    entity: str,
    query: str,
    strategy: Strategy,
    keys: Sequence[str] = (),
    policy: SchemaPolicy = SchemaPolicy.FAIL_ON_CHANGE,
) -> int | None:
    """Write a query's rows through the native copy; None when the connector offers none."""
    assert isinstance(harness.connector, SinkConnector)
    sink = harness.connector.open_sink(harness.config)
    copy = sink.native_copy(harness.write_spec(entity, strategy, keys, policy))
    sink.close()
    if copy is None:
        return None
    cursor.execute(f"create or replace table {OUTGOING} as {query}")
    set_up(cursor, copy.setup)
    return _run_copy(cursor, copy, policy)


def write_batches(
    cursor: DuckCursor,
    harness: ConnectorHarness,
    entity: str,
    query: str,
    strategy: Strategy,
    *,
    batch_bytes: int = 1 << 20,
) -> int:
    """Write a query's rows through a session and return what its commit reports."""
    assert isinstance(harness.connector, SinkConnector)
    cancel = CancelToken()
    cursor.execute(f"create or replace table {OUTGOING} as {query}")
    schema = write_schema(cursor, OUTGOING)
    sink = harness.connector.open_sink(harness.config)
    session = sink.begin_write(harness.write_spec(entity, strategy), schema, cancel)
    try:
        for batch in stream_batches(cursor, OUTGOING, schema, batch_bytes=batch_bytes):
            session.write_batch(batch, cancel)
        return session.commit(cancel).rows
    finally:
        session.close()
        sink.close()


def land_natively(
    cursor: DuckCursor,
    harness: ConnectorHarness,
    entity: str,
    contract: Mapping[str, str] | None = None,
    /,
    **bounds: Any,
) -> bool:
    """Land an entity through its native scan; False when the connector offers none."""
    assert isinstance(harness.connector, SourceConnector)
    source = harness.connector.open_source(harness.config)
    spec = harness.read_spec(entity, contract, **bounds)
    scan = source.native_scan(spec)
    source.close()
    if scan is None:
        return False
    if scan.verify is not None:
        scan.verify()
    set_up(cursor, scan.setup)
    resolved = resolve_scan(cursor, scan, contract)
    while True:
        query = resolved.sql if scan.bounds_pushed else _bounded(resolved.sql, spec)
        try:
            cursor.execute(f"create or replace table {LANDED} as {query}")
        except DuckStatementError as error:
            again = recover_scan(cursor, scan, contract, resolved, error)
            if again is None:
                raise
            resolved = again
        else:
            return True


def land_batches(cursor: DuckCursor, harness: ConnectorHarness, entity: str, contract: Mapping[str, str] | None) -> int:
    """Land an entity through its partitions and return the number of partitions."""
    assert isinstance(harness.connector, SourceConnector)
    cancel = CancelToken()
    source = harness.connector.open_source(harness.config)
    spec = harness.read_spec(entity, contract)
    schema = source.get_schema(spec, cancel)
    create_landing_table(cursor, LANDED, schema, contract)
    partitions = source.plan_read(spec, ReadHints(), cancel)
    insert = BatchInsert(cursor, LANDED, schema)
    for partition in partitions:
        for batch in partition.read(BatchOptions(), cancel):
            insert.add(batch)
    insert.flush()
    source.close()
    return len(partitions)


def landed_rows(cursor: DuckCursor) -> list[tuple[Any, ...]]:
    """Return what landed last, in a stable order."""
    return cursor.rows(f"select * from {LANDED} order by all")


def set_up(cursor: DuckCursor, steps: Sequence[SetupStep]) -> None:
    """Run the setup steps of a fragment."""
    for step in steps:
        if isinstance(step, ExtensionStep):
            load_extension(cursor, step.name, allow_download=False)
        elif isinstance(step, AttachStep):
            options = f" ({', '.join(step.options)})" if step.options else ""
            path, alias = quote_literal(step.path), quote_identifier(step.alias)
            cursor.execute(f"attach if not exists {path} as {alias}{options}")
        else:
            cursor.execute(step.sql)


def _run_copy(cursor: DuckCursor, copy: NativeCopy, policy: SchemaPolicy) -> int:
    source = copy_source(cursor, OUTGOING, decimal_hugeint=copy.decimal_hugeint)
    for move in copy.finalizations:
        move.final.parent.mkdir(parents=True, exist_ok=True)
    try:
        rows = 0
        with cursor.transaction() if copy.is_transactional else contextlib.nullcontext():
            if copy.target_table is not None:
                reconcile(cursor, copy.target_table, f"select * from {OUTGOING}", policy)
            for statement in copy.statements:
                rows = cursor.changed_rows(statement.replace(SOURCE_PLACEHOLDER, source))
        fault_point("before_rename")
        for move in copy.finalizations:
            move.temporary.replace(move.final)
    except BaseException:
        for move in copy.finalizations:
            move.temporary.unlink(missing_ok=True)
        raise
    return rows


def _bounded(query: str, spec: ReadSpec) -> str:
    """Wrap a query in the bounds, as a run does for connectors that leave them to it."""
    if spec.cursor is None:
        return query
    cursor = quote_identifier(spec.cursor)
    conditions = []
    if spec.watermark is not None:
        conditions.append(f"{cursor} {'>=' if spec.lower_inclusive else '>'} {quote_literal(spec.watermark)}")
    if spec.upper_bound is not None:
        conditions.append(f"{cursor} <= {quote_literal(spec.upper_bound)}")
    if not conditions:
        return query
    condition = " and ".join(conditions)
    if spec.null_cursor:
        condition = f"({condition}) or {cursor} is null"
    return f"select * from ({query}) where {condition}"
