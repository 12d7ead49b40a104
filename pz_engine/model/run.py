"""Words and values of a run, shared by planning, execution, events and hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from msgspec import Struct


class NodeKind(str, Enum):
    """Kinds of node, as spelled in events and plans."""

    SOURCE_LOAD = "SourceLoad"
    PIPELINE = "Pipeline"
    CHECK = "Check"
    SINK_WRITE = "SinkWrite"

    @property
    def rank(self) -> int:
        """Order among simultaneously ready nodes."""
        return list(NodeKind).index(self)

    @property
    def snake_case(self) -> str:
        """Spelling of the manifest and of `pz ls`."""
        return {"SourceLoad": "source_load", "Pipeline": "pipeline", "Check": "check", "SinkWrite": "sink_write"}[
            self.value
        ]


class NodeStatus(str, Enum):
    """How a node ended."""

    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"


class RunStatus(str, Enum):
    """How a run stands."""

    RUNNING = "running"
    SUCCESS = "success"
    COMPLETED_WITH_FAILURES = "completed_with_failures"
    FATAL = "fatal"


class ReadShape(str, Enum):
    """How a source entity is read."""

    FULL = "full"
    INCREMENTAL = "incremental"
    FEED = "feed"
    CDC = "cdc"


class ExecutionStrategy(str, Enum):
    """Data path of a node."""

    NATIVE_SCAN = "native_scan"
    NATIVE_COPY = "native_copy"
    ARROW_STREAM = "arrow_stream"
    DUCK_SQL = "duck_sql"


class ColumnType(NamedTuple):
    """A column's name and DuckDB type."""

    name: str
    type: str


class ChannelTimings(Struct, frozen=True):
    """Time each side of a bounded channel spent waiting, in whole milliseconds."""

    producer_stall_ms: int
    consumer_stall_ms: int


class DeliveryReport(Struct, frozen=True):
    """What a failed or resumed write left visible."""

    abort_semantics: str
    rows_visible: int
    resumed_rows: int


class OperationCounts(Struct, frozen=True):
    """What an operation gate counted during one attempt."""

    executed: int
    """Operations started, repeats included."""

    retried: int
    throttle_wait_ms: int
    """Time spent pacing; waits between repeats are not part of it."""


class PartitionCounts(Struct, frozen=True):
    """Partitions of a load that lands them one by one."""

    total: int
    completed: int
    """Landed before or in this attempt."""

    reused: int
    """Copied from an earlier run."""

    resumed: int
    """Continued from a checkpoint."""


class ObservedSchema(Struct, frozen=True):
    """Columns of a landed table, in table order, and a hash of what the read asked for."""

    columns: tuple[ColumnType, ...]
    hints_hash: str


class WatermarkCandidate(Struct, frozen=True):
    """A captured cursor value that may become the stored watermark."""

    cursor: str
    type: str
    value: str


class NodeError(Struct, frozen=True):
    """Why a node failed."""

    code: str
    message: str


class NodeStats(Struct, frozen=True):
    """What a host gets about a finished node beside its event; None means nobody measured it."""

    columns: tuple[ColumnType, ...] | None = None
    row_count: int | None = None
    """Exact number of rows of the node's whole relation or table."""

    strategy: ExecutionStrategy | None = None
    is_fused: bool = False
    watermark_from: str | None = None
    watermark_to: str | None = None
    window: tuple[str, str] | None = None
    """Lower end, exclusive, and upper end, inclusive, of a load that read a bounded slice."""

    part_rows: tuple[int, ...] | None = None
    """Rows of each part of the slice, when the request named parts."""

    attempts: int | None = None
    is_transient: bool | None = None
    """For a failed node: would trying again have a chance."""

    bytes: int | None = None
    location: str | None = None
    """Where a sink's rows landed: a path or a table; no credentials."""

    examined: frozenset[str] = frozenset()
    """Names of the data warnings this node was examined for in this run, whether or not one was published."""


@dataclass(frozen=True, slots=True)
class NodeResult:
    """One node's entry of `run_results.json`."""

    id: str
    kind: NodeKind
    name: str
    status: NodeStatus
    rows: int | None
    """None only for the successful pipelines nobody counted."""

    duration_ms: int
    error: NodeError | None = None
    provenance: str | None = None
    timings: ChannelTimings | None = None
    ops: OperationCounts | None = None
    partitions: PartitionCounts | None = None
    delivery: DeliveryReport | None = None
    observed_schema: ObservedSchema | None = None
    watermark: WatermarkCandidate | None = None
    caught_up: bool | None = None
    rejected: int | None = None
    sync_token: str | None = field(default=None, repr=False)
    """Opaque token that may become the stored one; in process only, never written."""

    stats: NodeStats = field(default_factory=NodeStats)
    """In process only; never written."""
