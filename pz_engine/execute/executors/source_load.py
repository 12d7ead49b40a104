"""Lands one entity as a staged table, natively or through Arrow batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pz_engine.base.fault_points import fault_point
from pz_engine.compile.dag import SourceLoadNode
from pz_engine.connectors.api import BatchOptions, Connector, Partition, SyncStatePartition
from pz_engine.connectors.capabilities import Capability
from pz_engine.duck.ingest import BatchInsert, create_landing_table
from pz_engine.duck.quoting import quote_identifier, staging_relation
from pz_engine.duck.rejects import forget_rejects, land_rejects
from pz_engine.events.types import NodeProgress
from pz_engine.execute.bounds import Bounds, plan_bounds
from pz_engine.execute.capture import capture_candidate, note_null_cursors
from pz_engine.execute.channel import Channel
from pz_engine.execute.context import Attempt, RunContext
from pz_engine.execute.gates.drift import check_drift
from pz_engine.execute.gates.inference import lint_inferred_columns
from pz_engine.execute.ledgers.read_ledger import record_read
from pz_engine.execute.native_read import prepare_scan, run_with_recovery
from pz_engine.execute.opened import open_source
from pz_engine.execute.outcome import Execution, NodeFailure
from pz_engine.execute.partitions import land_partitions
from pz_engine.execute.reuse import try_reuse
from pz_engine.execute.run_windows import drop_null_cursors, given_part_rows
from pz_engine.model.run import ExecutionStrategy, ReadShape
from pz_engine.plan.specs import read_hints

_PROGRESS_EVERY = 10


def load_source(attempt: Attempt, node: SourceLoadNode) -> Execution:
    """Run one attempt.

    Raises:
        NodeFailure: a failure with its own code.
        PzConnectorError: the connector failed.
        DuckStatementError: a statement failed.
        Cancelled: the node was cancelled; nothing is left in staging.
    """
    reused = try_reuse(attempt, node)
    if reused is not None:
        return reused
    context, cursor = attempt.context, attempt.cursor
    relation = staging_relation(node.name)
    bounds = plan_bounds(context, cursor, node)
    strategy = context.plan.by_id[node.id].strategy
    if strategy is ExecutionStrategy.NATIVE_SCAN:
        execution = _land_natively(attempt, node, relation, bounds)
    else:
        execution = _land_batches(attempt, node, relation, bounds)
    if bounds.is_given and execution.rows is not None:
        execution = replace(execution, rows=execution.rows - drop_null_cursors(cursor, node, relation, context.note))
    columns = cursor.describe(f"select * from {relation}")
    found = capture_candidate(cursor, node, relation, columns, bounds, context.note, execution.reach)
    candidate = context.windows.candidate(node.key, found, context.stored_watermarks.get(node.key), context.note)
    if execution.reach is not None and bounds.upper is None:
        context.note(
            f"{node.key}: its partitions were read at different times, so the watermark goes no further than those read "
            "first; the next run reads on from there"
        )
    if node.incremental is not None:
        context.ledgers.ensure(cursor)
        record_read(cursor, node.id, bounds.window, candidate.value if candidate is not None else None)
    note_null_cursors(cursor, node, relation, context.note)
    if bounds.is_caught_up:
        context.note(f"{node.key} is caught up: the watermark {bounds.lower} has reached until")
    fault_point("after_load")
    execution = replace(execution, columns=columns, row_count=execution.rows)
    return replace(
        execution,
        observed_schema=check_drift(attempt, node, execution),
        watermark=candidate,
        watermark_from=bounds.stored_value,
        window=bounds.slice,
        part_rows=given_part_rows(context.windows, cursor, node, relation),
        caught_up=bounds.reaches_stop,
    )


def _land_natively(attempt: Attempt, node: SourceLoadNode, relation: str, bounds: Bounds) -> Execution:
    context, cursor = attempt.context, attempt.cursor
    prepared = prepare_scan(context, cursor, node, bounds)
    if prepared.scan.rejects_ragged:
        forget_rejects(cursor)
    rows, prepared = run_with_recovery(
        context, cursor, prepared, lambda query: cursor.changed_rows(f"create or replace table {relation} as {query}")
    )
    prepared.refuse_changed_files()
    rejected = 0
    if prepared.scan.rejects_ragged:
        side_table = f"{node.name}__rejects"
        rejected = land_rejects(cursor, staging_relation(side_table))
        if rejected:
            context.note(f"{node.key}: {rejected} row(s) with another number of fields are in staging.{side_table}")
    if prepared.scan.schema_inferred and node.columns is None:
        lint_inferred_columns(attempt, node, relation, prepared.resolved.date_formats)
    return Execution(rows=rows, rejected=rejected or None)


def _land_batches(attempt: Attempt, node: SourceLoadNode, relation: str, bounds: Bounds) -> Execution:
    context, cursor = attempt.context, attempt.cursor
    with open_source(context, node) as opened:
        source, spec = opened.source, opened.spec_of(context, node, bounds)
        schema = source.get_schema(spec, attempt.cancel)
        partitions = source.plan_read(spec, read_hints(node, opened.connector.capabilities), attempt.cancel)
        _refuse_split_feed(context, node, partitions)
        if _lands_partitions(context, node, opened.connector):
            is_feed = context.plan.by_id[node.id].read_shape is ReadShape.FEED
            landed = land_partitions(attempt, node, partitions, schema, window=bounds.window, is_feed=is_feed)
            execution = Execution(rows=None, partitions=landed.counts, bytes=landed.bytes, reach=landed.reach)
        else:
            execution = _pump(attempt, node, relation, partitions, schema)
        execution = replace(execution, ops=opened.ops, sync_token=_token(partitions))
    _trim(attempt, node, relation, bounds)
    return replace(execution, rows=cursor.count(relation))


def _lands_partitions(context: RunContext, node: SourceLoadNode, connector: Connector) -> bool:
    is_captured = context.plan.by_id[node.id].read_shape is ReadShape.CDC
    return Capability.STABLE_PARTITION_IDS in connector.capabilities and not is_captured


def _pump(
    attempt: Attempt, node: SourceLoadNode, relation: str, partitions: Sequence[Partition], schema: Any
) -> Execution:
    """Read every partition at once into the landing table, all or nothing."""
    context, cursor = attempt.context, attempt.cursor
    totals = {"rows": 0, "bytes": 0, "batches": 0}

    def consume(batch: object) -> None:
        totals["rows"] += insert.add(batch)
        totals["bytes"] += int(getattr(batch, "nbytes", 0))
        totals["batches"] += 1
        fault_point("after_batch")
        if totals["batches"] % _PROGRESS_EVERY == 0:
            context.publisher.emit(NodeProgress, node_id=node.id, node_name=node.name, **totals)

    try:
        cursor.execute(f"drop table if exists {relation}")
        create_landing_table(cursor, relation, schema, node.columns)
        insert = BatchInsert(cursor, relation, schema, most_waiting_bytes=context.engine.batch_bytes)
        channel = Channel(partitions, BatchOptions(target_bytes=context.engine.batch_bytes), attempt.cancel)
        channel.drain(consume)
        insert.flush()
    except BaseException:
        _drop(attempt, relation)
        raise
    return Execution(rows=None, timings=channel.timings, bytes=totals["bytes"])


def _refuse_split_feed(context: RunContext, node: SourceLoadNode, partitions: Sequence[Partition]) -> None:
    """A token belongs to one read; it cannot speak for several."""
    shape = context.plan.by_id[node.id].read_shape
    if shape in (ReadShape.FEED, ReadShape.CDC) and len(partitions) > 1:
        raise NodeFailure(
            "PZ0316",
            f"'{node.key}' is read as {shape.value} but its connector returned {len(partitions)} partitions\n"
            "next step: declare sync: {mode: incremental} with a cursor column",
        )


def _token(partitions: Sequence[Partition]) -> str | None:
    """Ask for the token of the next run, once, after a clean read."""
    first = partitions[0] if partitions else None
    return first.sync_state_candidate() if isinstance(first, SyncStatePartition) else None


def _trim(attempt: Attempt, node: SourceLoadNode, relation: str, bounds: Bounds) -> None:
    """Delete what the slice does not contain, whatever the connector made of the bounds."""
    if bounds.is_bounded and node.incremental is not None:
        column = quote_identifier(node.incremental.cursor)
        keep_nulls = "" if bounds.wants_null_cursor else f" or {column} is null"
        attempt.cursor.execute(f"delete from {relation} where not ({bounds.condition()}){keep_nulls}")


def _drop(attempt: Attempt, relation: str) -> None:
    """Remove the landing table without the token: ingest is all or nothing."""
    with attempt.context.session.cursor() as cleanup:
        cleanup.execute(f"drop table if exists {relation}")
