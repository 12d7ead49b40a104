"""The connector contract: protocols, specs and fragments.

A connector never retries, never sleeps for backoff, never reads the environment, never logs configuration or rows,
and never imports DuckDB: it returns SQL text that the engine runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.capabilities import Capability
from pz_engine.connectors.fragments import NativeCopy, NativeScan
from pz_engine.model.policies import OnDelete, SchemaPolicy, Strategy
from pz_engine.resilience.operation_gate import OperationGate

if TYPE_CHECKING:
    import pyarrow as pa

PROTOCOL_MAJOR = 1
"""Version of this contract; a connector built for another major is refused (`PZ0306`)."""


class ConnectorInfo(Struct, frozen=True):
    """Who a connector is."""

    name: str
    version: str
    package: str = "pz-dagster"
    protocol_major: int = PROTOCOL_MAJOR


class ConnectionUse(Struct, frozen=True):
    """A connection with everything a project does with it, for offline validation."""

    connection: str
    config: Mapping[str, Any]
    reads: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """Read options per entity, `columns` merged in."""

    writes: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """Write options per entity."""

    cursors: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Cursor column of every entity that is read incrementally, where `sync` or a pipeline names one."""

    @property
    def base_dir(self) -> Path:
        """Folder that relative paths resolve against."""
        return Path(str(self.config.get("base_dir", ".")))


class Finding(Struct, frozen=True):
    """One result of a connector's own validation."""

    message: str
    code: str = "PZ0301"
    entity: str | None = None
    is_write: bool = False
    hint: str | None = None
    is_warning: bool = False
    """Reported as `PZ0364`."""


class ProbeResult(Struct, frozen=True):
    """Outcome of an online probe; a failure's message starts with `transient:` or `permanent:`."""

    ok: bool
    message: str


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """One read of one entity."""

    connection: str
    entity: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """The connector's read options; the contract is under `columns` (column to type, in order)."""

    cursor: str | None = None
    """Cursor column, set on every spec of an incremental entity, first run and probes included."""

    watermark: str | None = None
    """Canonical lower bound; ignoring it is always legal."""

    lower_inclusive: bool = False
    null_cursor: bool = False
    """Rows without a cursor value are wanted beside the bounds."""

    upper_bound: str | None = None
    """Canonical inclusive upper bound; binding for `BOUNDED_WINDOW` connectors."""

    prior_token: str | None = field(default=None, repr=False)
    change_capture: bool = False
    capture_slot: str | None = None

    @property
    def columns(self) -> Mapping[str, str] | None:
        """Return the column contract, or None."""
        declared = self.options.get("columns")
        return declared or None


class WriteAttempt(Struct, frozen=True):
    """Identity of one universal write attempt."""

    node: str
    run: str
    ordinal: int


class WriteSpec(Struct, frozen=True):
    """One write of one entity."""

    connection: str
    entity: str
    strategy: Strategy
    schema_policy: SchemaPolicy = SchemaPolicy.FAIL_ON_CHANGE
    keys: tuple[str, ...] = ()
    on_delete: OnDelete | None = None
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    attempt: WriteAttempt | None = None
    max_text_lengths: Mapping[str, int] | None = None
    has_unique_keys: bool = False
    """The rows of a merge are known to have one row per key; without it, the last one has to win."""


class ReadHints(Struct, frozen=True):
    """What the readers of an entity need; advisory."""

    columns: tuple[str, ...] | None = None
    predicate_sql: str | None = None


class BatchOptions(Struct, frozen=True):
    """Target size of one record batch."""

    target_bytes: int = 33_554_432
    max_rows: int = 122_880


class CommitResult(Struct, frozen=True):
    """What a commit made visible."""

    rows: int
    batches: int


class Partition(Protocol):
    """An independently readable part of a source."""

    def read(self, options: BatchOptions, cancel: CancelToken) -> Iterator[pa.RecordBatch]:
        """Yield record batches; raises `PzConnectorError` or `Cancelled`."""


class Source(Protocol):
    """An opened read side."""

    def get_schema(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        """Return exactly the schema that reading yields; may do I/O."""

    def native_scan(self, spec: ReadSpec) -> NativeScan | None:
        """Return the native fragment, or None; pure except for reading a local file's header."""

    def plan_read(self, spec: ReadSpec, hints: ReadHints, cancel: CancelToken) -> Sequence[Partition]:
        """Return one or more partitions; may do I/O."""

    def close(self) -> None:
        """Release everything; idempotent."""


class WriteSession(Protocol):
    """One write: open, then committed or aborted, each at most once."""

    location: str | None
    """Where the rows land, for people."""

    def write_batch(self, batch: pa.RecordBatch, cancel: CancelToken) -> None:
        """Take a batch; it belongs to the engine again on return."""

    def commit(self, cancel: CancelToken) -> CommitResult:
        """Make everything visible or nothing, where the destination allows."""

    def abort(self) -> None:
        """Clean up; must complete."""

    def close(self) -> None:
        """Release resources; aborts a session that never attempted commit."""


class Sink(Protocol):
    """An opened write side."""

    abort_semantics: str
    """`discards_all`, `best_effort` or `none`."""

    def native_copy(self, spec: WriteSpec) -> NativeCopy | None:
        """Return the native statements, or None; pure."""

    def begin_write(self, spec: WriteSpec, schema: pa.Schema, cancel: CancelToken) -> WriteSession:
        """Start a write; may do I/O."""

    def close(self) -> None:
        """Release everything; idempotent."""


class Connector(Protocol):
    """What every connector is, independent of any connection."""

    info: ConnectorInfo
    capabilities: Capability
    connection_schema: Mapping[str, Any]
    read_schema: Mapping[str, Any]
    write_schema: Mapping[str, Any]

    def validate(self, use: ConnectionUse) -> list[Finding]:
        """Apply cross-field rules offline; never raises, never touches the network."""

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        """Probe online, within 30 seconds."""


@runtime_checkable
class SourceConnector(Connector, Protocol):
    """A connector that reads."""

    native_only_reads: bool

    def open_source(self, config: Mapping[str, Any]) -> Source:
        """Open the read side; cheap, no network."""


@runtime_checkable
class SinkConnector(Connector, Protocol):
    """A connector that writes."""

    native_only_writes: bool

    def open_sink(self, config: Mapping[str, Any]) -> Sink:
        """Open the write side; cheap, no network."""


@runtime_checkable
class NaturalReadShape(Protocol):
    """A source whose natural read may be a change feed."""

    def natural_read_shape(self, spec: ReadSpec) -> str:
        """Return `full` or `feed`, from static options only."""


@runtime_checkable
class NoticeEmitter(Protocol):
    """A source or sink that has something to say about its connection."""

    def use_notices(self, callback: Callable[[str, str], None]) -> None:
        """Take a callback `(level, text)`; called once, right after open."""


@runtime_checkable
class WriteProbe(Protocol):
    """A sink that can tell whether it would be allowed to write."""

    def check_write(self, spec: WriteSpec, cancel: CancelToken) -> ProbeResult:
        """Look at the destination of one output, within 30 seconds; nothing is left behind."""


@runtime_checkable
class GatedOperations(Protocol):
    """A source or sink that runs every remote operation through a gate."""

    def use_gate(self, gate: OperationGate) -> None:
        """Take the gate of one attempt; called once, right after open and before anything else."""


@runtime_checkable
class SyncStatePartition(Protocol):
    """A partition that can be continued by a later run."""

    def sync_state_candidate(self) -> str | None:
        """Return an opaque token for the next run; asked once, after reading ended cleanly."""


@runtime_checkable
class IdentifiedPartition(Protocol):
    """A partition with an identity that is the same whenever the same spec is planned."""

    partition_id: str


@runtime_checkable
class CheckpointingPartition(Protocol):
    """A partition that can be continued in the middle."""

    def try_resume_from(self, token: str) -> bool:
        """Go on after the rows a token covers; False when the token cannot be used, never an exception."""

    def checkpoint(self) -> str | None:
        """Return a token that covers exactly the rows yielded so far, or None; never the same one twice."""


@runtime_checkable
class CheckpointingSession(Protocol):
    """A write session whose destination confirms rows before the commit."""

    def try_resume_from(self, rows: int) -> bool:
        """Go on after that many confirmed rows; False when the destination cannot."""

    def acknowledged_rows(self) -> int:
        """Return how many rows the destination has confirmed, those resumed past included."""
