"""Writes one staged relation to its destination, natively or through Arrow batches."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from msgspec import Struct

from pz_engine.base.cancellation import Cancelled
from pz_engine.base.fault_points import fault_point
from pz_engine.compile.dag import SinkWriteNode
from pz_engine.connectors.api import WriteAttempt, WriteSession
from pz_engine.duck.egress import stream_batches, write_schema
from pz_engine.duck.quoting import staging_relation
from pz_engine.events.types import NodeProgress
from pz_engine.execute.context import Attempt
from pz_engine.execute.delivery import ResumableDelivery, carry_over, resumable
from pz_engine.execute.gates.merge_keys import guard_merge_keys
from pz_engine.execute.native_write import committed_files, prepare_copy, run_copy
from pz_engine.execute.opened import close_quietly, open_sink
from pz_engine.execute.outcome import Execution, WriteFailure
from pz_engine.model.policies import Strategy
from pz_engine.model.run import ChannelTimings, DeliveryReport, ExecutionStrategy
from pz_engine.plan.specs import write_spec

_PROGRESS_EVERY = 10
_DISCARDS_ALL = "discards_all"


def write_sink(attempt: Attempt, node: SinkWriteNode) -> Execution:
    """Run one attempt.

    Raises:
        NodeFailure: a guard refused before anything was touched.
        PzConnectorError: the connector failed.
        WriteFailure: a universal write failed; says what may be visible.
        DuckStatementError: a statement failed.
        Cancelled: the node was cancelled.
    """
    has_unique_keys = guard_merge_keys(attempt, node, staging_relation(node.pipeline))
    if attempt.context.plan.by_id[node.id].strategy is ExecutionStrategy.NATIVE_COPY:
        return _copy(attempt, node, has_unique_keys=has_unique_keys)
    return _stream(attempt, node)


def _copy(attempt: Attempt, node: SinkWriteNode, *, has_unique_keys: bool) -> Execution:
    context, cursor = attempt.context, attempt.cursor
    copy = prepare_copy(context, cursor, node, has_unique_keys=has_unique_keys)
    rows = run_copy(cursor, node, copy)
    return Execution(
        rows=rows,
        columns=cursor.describe(f"select * from {staging_relation(node.pipeline)}"),
        row_count=rows if node.strategy is Strategy.REPLACE else None,
        location=context.shown_location(copy.location),
        bytes=sum(committed_files(copy)) if copy.finalizations else None,
    )


class _Stream(Struct):
    """Counters of one universal write."""

    rows: int = 0
    bytes: int = 0
    batches: int = 0
    in_flight: int = 0
    producer_stall: float = 0.0
    consumer_stall: float = 0.0

    @property
    def timings(self) -> ChannelTimings:
        return ChannelTimings(int(self.producer_stall * 1000), int(self.consumer_stall * 1000))


def _stream(attempt: Attempt, node: SinkWriteNode) -> Execution:
    context, cursor = attempt.context, attempt.cursor
    relation = staging_relation(node.pipeline)
    expected = cursor.count(relation)
    columns = cursor.describe(f"select * from {relation}")
    schema = write_schema(cursor, relation)
    counters = _Stream()
    carry_over(attempt, node, relation)
    with open_sink(context, node) as opened:
        sink = opened.sink
        spec = write_spec(node, WriteAttempt(node.id, context.run_id, attempt.ordinal))
        session = sink.begin_write(spec, schema, attempt.cancel)
        resumed: ResumableDelivery | None = None
        try:
            resumed = resumable(attempt, node, relation, session)
            _drain(attempt, node, session, schema, counters, expected, resumed)
            attempt.cancel.raise_if_set()
        except BaseException as error:
            fault_point("before_abort")
            _abort(session)
            if resumed is not None:
                resumed.keep()
            if isinstance(error, Cancelled) or not isinstance(error, Exception):
                raise
            raise WriteFailure(error, _delivery(sink.abort_semantics, counters, resumed), counters.timings) from None
        try:
            fault_point("before_sink_commit")
            committed = session.commit(attempt.cancel)
            fault_point("after_sink_commit")
        except Exception as error:
            if resumed is not None:
                resumed.keep()
            raise WriteFailure(error, _delivery(sink.abort_semantics, counters, resumed), counters.timings) from None
        finally:
            close_quietly(context, node, session.close)
        ops = opened.ops
    skipped = 0
    if resumed is not None:
        resumed.forget()
        skipped = resumed.resumed_rows
    return Execution(
        rows=committed.rows,
        columns=columns,
        row_count=committed.rows if node.strategy is Strategy.REPLACE else None,
        timings=counters.timings,
        ops=ops,
        delivery=DeliveryReport(sink.abort_semantics, committed.rows, skipped) if skipped else None,
        location=context.shown_location(session.location),
        bytes=counters.bytes,
    )


def _abort(session: WriteSession) -> None:
    """Clean up to the end; what went wrong first is what is reported."""
    with contextlib.suppress(Exception):
        session.abort()
    with contextlib.suppress(Exception):
        session.close()


def _drain(
    attempt: Attempt,
    node: SinkWriteNode,
    session: WriteSession,
    schema: Any,
    counters: _Stream,
    expected: int,
    resumed: ResumableDelivery | None,
) -> None:
    """Hand every staged row to the session; a stream that ends early is a failure, not a short delivery."""
    context = attempt.context
    skipped = resumed.resumed_rows if resumed is not None else 0
    batches = iter(
        stream_batches(
            attempt.cursor,
            staging_relation(node.pipeline),
            schema,
            batch_bytes=context.engine.batch_bytes,
            is_ordered=resumed is not None,
            skip_rows=skipped,
            expected_rows=expected - skipped,
        )
    )
    while True:
        attempt.cancel.raise_if_set()
        waiting = time.monotonic()
        batch = next(batches, None)
        pulled = time.monotonic()
        counters.producer_stall += pulled - waiting
        if batch is None:
            return
        counters.in_flight = batch.num_rows
        session.write_batch(batch, attempt.cancel)
        counters.consumer_stall += time.monotonic() - pulled
        counters.rows, counters.in_flight = counters.rows + batch.num_rows, 0
        counters.bytes += batch.nbytes
        counters.batches += 1
        if resumed is not None:
            resumed.look()
        fault_point("after_write_batch")
        if counters.batches % _PROGRESS_EVERY == 0:
            context.publisher.emit(
                NodeProgress,
                node_id=node.id,
                node_name=node.name,
                rows=counters.rows,
                bytes=counters.bytes,
                batches=counters.batches,
            )


def _delivery(semantics: str, counters: _Stream, resumed: ResumableDelivery | None) -> DeliveryReport | None:
    """Say what may be visible: exact where the destination confirms rows, else a bound that includes the batch in flight."""
    if semantics == _DISCARDS_ALL:
        return None
    if resumed is not None:
        return DeliveryReport(semantics, resumed.acknowledged_rows, resumed.resumed_rows)
    return DeliveryReport(semantics, counters.rows + counters.in_flight, 0)
