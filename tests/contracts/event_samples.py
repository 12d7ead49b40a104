"""One filled event of every type, with a fixed clock, shared by the event contract tests."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from pz_engine.events import types
from pz_engine.model.run import (
    ChannelTimings,
    ColumnType,
    DeliveryReport,
    NodeError,
    NodeKind,
    NodeResult,
    NodeStatus,
    OperationCounts,
    PartitionCounts,
    RunStatus,
)

RUN_ID = "20261104T061500250Z-1b3c"
START = datetime(2026, 11, 4, 6, 15, 0, 251999, tzinfo=timezone.utc)


def at(index: int) -> dict[str, Any]:
    """Return the envelope of the n-th event."""
    return {"at": START + timedelta(milliseconds=index), "run_id": RUN_ID}


def completed(index: int, **fields: Any) -> types.NodeCompleted:
    """Return a completion; `fields` are the result's."""
    defaults: dict[str, Any] = {
        "id": "c204e9d1",
        "kind": NodeKind.PIPELINE,
        "name": "tickets_clean",
        "status": NodeStatus.SUCCESS,
        "rows": 1840,
        "duration_ms": 37,
    }
    return types.NodeCompleted(**at(index), result=NodeResult(**{**defaults, **fields}))


SAMPLES: tuple[types.RunEvent, ...] = (
    types.RunStarted(
        **at(0),
        project_name="helpdesk",
        node_count=2,
        nodes=(
            types.NodeReference("5b1c77aa", NodeKind.SOURCE_LOAD, "src_shop__tickets"),
            types.NodeReference("c204e9d1", NodeKind.PIPELINE, "tickets_clean"),
        ),
    ),
    types.NodeQueued(**at(1), node_id="5b1c77aa"),
    types.NodeStarted(**at(2), node_id="5b1c77aa", kind=NodeKind.SOURCE_LOAD, node_name="src_shop__tickets"),
    types.NodeProgress(
        **at(3), node_id="5b1c77aa", node_name="src_shop__tickets", rows=20480, bytes=1048576, batches=10
    ),
    types.RetryScheduled(
        **at(4),
        node_id="5b1c77aa",
        node_name="src_shop__tickets",
        attempt=2,
        max_attempts=3,
        delay_ms=1104,
        reason="IO Error: connection reset after 30 s",
    ),
    types.LossyIntegerInferenceDetected(
        **at(5), node_id="5b1c77aa", connection="shop", entity="tickets", columns=("order_ref",)
    ),
    types.AmbiguousDateInferenceDetected(
        **at(6), node_id="5b1c77aa", connection="shop", entity="tickets", columns=("sold", "paid"), format="%d/%m/%Y"
    ),
    types.SourceDriftDetected(
        **at(6),
        node_id="5b1c77aa",
        connection="shop",
        entity="tickets",
        policy="warn",
        changes=(
            types.ColumnChange("added", "note", None, "VARCHAR"),
            types.ColumnChange("removed", "legacy", "BIGINT", None),
            types.ColumnChange("retyped", "day", "VARCHAR", "DATE"),
        ),
        observed=(ColumnType("day", "DATE"), ColumnType("note", "VARCHAR")),
        hints_hash="5FEC",
    ),
    types.MergeKeyDuplicatesDetected(
        **at(7), node_id="e87f0013", output="tickets", keys=("id", "day"), duplicate_groups=3, extra_rows=5
    ),
    types.BreakerStateChanged(
        **at(8),
        instance="conn:shop",
        old_state="closed",
        new_state="open",
        trigger="5 consecutive transient failures",
        cool_down_ms=30000,
    ),
    types.ConnectorLog(**at(8), level="warn", connection="shop", message="pinned to 'server-7'"),
    completed(
        9,
        id="5b1c77aa",
        kind=NodeKind.SOURCE_LOAD,
        name="src_shop__tickets",
        duration_ms=1742,
        timings=ChannelTimings(11, 640),
        ops=OperationCounts(19, 1, 2050),
        partitions=PartitionCounts(4, 4, 2, 1),
        provenance="reused",
        caught_up=False,
        rejected=4,
    ),
    completed(10, rows=None),
    completed(
        11,
        id="aa00aa00",
        kind=NodeKind.CHECK,
        name="check_tickets_clean_not_null_id",
        status=NodeStatus.FAILED,
        rows=2,
        error=NodeError("PZ0510", "check not_null on staging.tickets_clean: 2 violations: {id=NULL, name=Ann}"),
    ),
    completed(
        12,
        id="e87f0013",
        kind=NodeKind.SINK_WRITE,
        name="crm.tickets",
        status=NodeStatus.FAILED,
        rows=0,
        duration_ms=4410,
        error=NodeError("PZ0501", "HTTP Error: KeyError: server answered 500 three times"),
        delivery=DeliveryReport("none", 600, 0),
    ),
    types.NodeCompleted(
        **at(13),
        result=NodeResult("f00dcafe", NodeKind.PIPELINE, "totals", NodeStatus.SKIPPED, 0, 0),
        blocked_by=("crm.tickets",),
    ),
    types.RunCompleted(
        **at(14), status=RunStatus.COMPLETED_WITH_FAILURES, succeeded=2, failed=2, skipped=1, duration_ms=1890
    ),
    types.RetentionSwept(**at(15), runs_swept=3, bytes_freed=1288490189, failures=0),
)
