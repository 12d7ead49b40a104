"""One class per run event.

Fields may be added, never taken away or renamed. `payload` gives the event's own fields in contract order with the
null-or-omitted rule of each; the envelope (`event`, `at`, `runId`) is added by the writer. Values handed to hosts in
process only are marked and never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from msgspec import Struct

from pz_engine.base.clock import format_instant
from pz_engine.model.run import ColumnType, NodeKind, NodeResult, NodeStatus, RunStatus


class RunEvent(Struct, frozen=True, kw_only=True):
    """What every event has."""

    at: datetime
    run_id: str
    name: ClassVar[str] = ""

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields in contract order."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """Return envelope and payload."""
        return {"event": self.name, "at": format_instant(self.at), "runId": self.run_id, **self.payload()}


class NodeReference(Struct, frozen=True):
    """A node as the journal lists it."""

    node_id: str
    kind: NodeKind
    name: str


class RunStarted(RunEvent, frozen=True, kw_only=True):
    """First event of a run."""

    name: ClassVar[str] = "run_started"
    project_name: str
    node_count: int
    mode: str = "run"
    """Journal only: `run`, `test` or `retry`."""

    nodes: tuple[NodeReference, ...] = ()
    """Journal only: the effective set in topological order."""

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {"projectName": self.project_name, "nodeCount": self.node_count}


class RunCompleted(RunEvent, frozen=True, kw_only=True):
    """Closes the node stream; state has not advanced yet."""

    name: ClassVar[str] = "run_completed"
    status: RunStatus
    succeeded: int
    failed: int
    skipped: int
    duration_ms: int

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {
            "status": self.status.value,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "skipped": self.skipped,
            "durationMs": self.duration_ms,
        }


class RetentionSwept(RunEvent, frozen=True, kw_only=True):
    """Old staging databases or stale work directories were removed, or could not be."""

    name: ClassVar[str] = "retention_swept"
    runs_swept: int
    bytes_freed: int
    failures: int

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {"runsSwept": self.runs_swept, "bytesFreed": self.bytes_freed, "failures": self.failures}


class BreakerStateChanged(RunEvent, frozen=True, kw_only=True):
    """A connection's circuit breaker moved."""

    name: ClassVar[str] = "breaker_state_changed"
    instance: str
    """`conn:<connection>`."""

    old_state: str
    new_state: str
    trigger: str
    cool_down_ms: int

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {
            "instance": self.instance,
            "oldState": self.old_state,
            "newState": self.new_state,
            "trigger": self.trigger,
            "coolDownMs": self.cool_down_ms,
        }


class NodeQueued(RunEvent, frozen=True, kw_only=True):
    """Journal only: a ready node starts waiting for a permit."""

    name: ClassVar[str] = "node_queued"
    node_id: str

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {"nodeId": self.node_id}


class NodeStarted(RunEvent, frozen=True, kw_only=True):
    """Once per node, whatever the number of attempts."""

    name: ClassVar[str] = "node_started"
    node_id: str
    kind: NodeKind
    node_name: str

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {"nodeId": self.node_id, "kind": self.kind.value, "name": self.node_name}


class NodeProgress(RunEvent, frozen=True, kw_only=True):
    """Every ten batches of the universal channel path; cumulative for the attempt."""

    name: ClassVar[str] = "node_progress"
    node_id: str
    node_name: str
    rows: int
    bytes: int
    batches: int

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {
            "nodeId": self.node_id,
            "name": self.node_name,
            "rows": self.rows,
            "bytes": self.bytes,
            "batches": self.batches,
        }


class RetryScheduled(RunEvent, frozen=True, kw_only=True):
    """Published before the wait; `attempt` is the one about to run."""

    name: ClassVar[str] = "retry_scheduled"
    node_id: str
    node_name: str
    attempt: int
    max_attempts: int
    delay_ms: int
    reason: str

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {
            "nodeId": self.node_id,
            "name": self.node_name,
            "attempt": self.attempt,
            "maxAttempts": self.max_attempts,
            "delayMs": self.delay_ms,
            "reason": self.reason,
        }


class MergeKeyDuplicatesDetected(RunEvent, frozen=True, kw_only=True):
    """The input of a merge holds several rows of one key; one survives."""

    name: ClassVar[str] = "merge_key_duplicates_detected"
    node_id: str
    output: str
    keys: tuple[str, ...]
    duplicate_groups: int
    extra_rows: int

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {
            "nodeId": self.node_id,
            "output": self.output,
            "keys": list(self.keys),
            "duplicateGroups": self.duplicate_groups,
            "extraRows": self.extra_rows,
        }


class LossyIntegerInferenceDetected(RunEvent, frozen=True, kw_only=True):
    """Inferred DOUBLE columns hold whole numbers beyond 2^53."""

    name: ClassVar[str] = "lossy_integer_inference_detected"
    node_id: str
    connection: str
    entity: str
    columns: tuple[str, ...]

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {
            "nodeId": self.node_id,
            "connection": self.connection,
            "entity": self.entity,
            "columns": list(self.columns),
        }


class AmbiguousDateInferenceDetected(RunEvent, frozen=True, kw_only=True):
    """The sniffed format is day- or month-first and no value decides which; one per format family."""

    name: ClassVar[str] = "ambiguous_date_inference_detected"
    node_id: str
    connection: str
    entity: str
    columns: tuple[str, ...]
    format: str

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {
            "nodeId": self.node_id,
            "connection": self.connection,
            "entity": self.entity,
            "columns": list(self.columns),
            "format": self.format,
        }


class ColumnChange(Struct, frozen=True):
    """One difference between a source's accepted and its present schema."""

    kind: str
    """`added`, `removed` or `retyped`."""

    column: str
    old_type: str | None
    new_type: str | None


class SourceDriftDetected(RunEvent, frozen=True, kw_only=True):
    """A source's columns differ from their accepted baseline."""

    name: ClassVar[str] = "source_drift_detected"
    node_id: str
    connection: str
    entity: str
    policy: str
    changes: tuple[ColumnChange, ...]
    observed: tuple[ColumnType, ...]
    """The whole present schema."""

    hints_hash: str

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {
            "nodeId": self.node_id,
            "connection": self.connection,
            "entity": self.entity,
            "policy": self.policy,
            "changes": [
                {"kind": change.kind, "column": change.column, "from": change.old_type, "to": change.new_type}
                for change in self.changes
            ],
            "observed": [{"name": column.name, "type": column.type} for column in self.observed],
            "hintsHash": self.hints_hash,
        }


class ConnectorLog(RunEvent, frozen=True, kw_only=True):
    """A connector's notice about its connection."""

    name: ClassVar[str] = "connector_log"
    level: str
    connection: str
    message: str

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        return {"level": self.level, "connection": self.connection, "message": self.message}


class NodeCompleted(RunEvent, frozen=True, kw_only=True):
    """A node's end; exactly one per node."""

    name: ClassVar[str] = "node_completed"
    result: NodeResult
    """Also carries the statistics that hosts read in process."""

    blocked_by: tuple[str, ...] = ()
    """In process only: names of the failed ancestors of a skipped node, sorted."""

    def payload(self) -> dict[str, Any]:
        """Return the event's own fields."""
        result = self.result
        failed = result.status is NodeStatus.FAILED
        fields: dict[str, Any] = {
            "nodeId": result.id,
            "kind": result.kind.value,
            "name": result.name,
            "status": result.status.value,
        }
        if result.rows is not None:
            fields["rows"] = result.rows
        fields["durationMs"] = result.duration_ms
        fields["errorCode"] = result.error.code if failed and result.error else None
        fields["errorMessage"] = result.error.message if failed and result.error else None
        timings = result.timings
        fields["timings"] = (
            {"producerStallMs": timings.producer_stall_ms, "consumerStallMs": timings.consumer_stall_ms}
            if timings
            else None
        )
        fields.update(self._optional())
        return fields

    def _optional(self) -> Mapping[str, Any]:
        result = self.result
        fields: dict[str, Any] = {}
        if result.provenance is not None:
            fields["provenance"] = result.provenance
        if result.ops is not None:
            fields["ops"] = {
                "executed": result.ops.executed,
                "retried": result.ops.retried,
                "throttleWaitMs": result.ops.throttle_wait_ms,
            }
        if result.partitions is not None:
            counts = result.partitions
            fields["partitions"] = {
                "total": counts.total,
                "completed": counts.completed,
                "reused": counts.reused,
                "resumed": counts.resumed,
            }
        if result.delivery is not None:
            fields["delivery"] = {
                "abortSemantics": result.delivery.abort_semantics,
                "rowsVisible": result.delivery.rows_visible,
                "resumedRows": result.delivery.resumed_rows,
            }
        if result.caught_up is not None:
            fields["caughtUp"] = result.caught_up
        if result.rejected is not None:
            fields["rejected"] = result.rejected
        return fields


EVENT_TYPES: tuple[type[RunEvent], ...] = (
    RunStarted,
    RunCompleted,
    RetentionSwept,
    BreakerStateChanged,
    NodeStarted,
    NodeProgress,
    RetryScheduled,
    MergeKeyDuplicatesDetected,
    LossyIntegerInferenceDetected,
    AmbiguousDateInferenceDetected,
    SourceDriftDetected,
    ConnectorLog,
    NodeCompleted,
)
"""Every event of the wire contract that this version publishes."""
