"""A connector that does what a test's script says: the engine's resilience is tested against it.

Scripts run in the test's process. Rows written are kept by entity, so a test can compare what arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from msgspec import Struct

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors import registry
from pz_engine.connectors.api import (
    BatchOptions,
    CommitResult,
    ConnectionUse,
    ConnectorInfo,
    Finding,
    ProbeResult,
    ReadHints,
    ReadSpec,
    WriteSpec,
)
from pz_engine.connectors.capabilities import Capability
from pz_engine.model.policies import Strategy
from pz_engine.resilience.operation_gate import OperationGate

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
"""What a scripted source yields unless told otherwise."""


def rows(*ids: int) -> pa.RecordBatch:
    """Return a batch of the default schema."""
    return pa.RecordBatch.from_pylist([{"id": each, "name": f"n{each}"} for each in ids], schema=SCHEMA)


class ReadCall(Struct, frozen=True):
    """One read of one partition."""

    spec: ReadSpec
    ordinal: int
    """Counts this entity's reads from 1, over all runs."""

    partition: str
    """The partition's identity."""

    gate: OperationGate | None
    cancel: CancelToken


class WriteCall(Struct, frozen=True):
    """One step of a write session: `batch` or `commit`."""

    spec: WriteSpec
    step: str
    batches: int
    """Batches taken before this step."""

    gate: OperationGate | None
    cancel: CancelToken


@dataclass
class ScriptedConnector:
    """Reads what `on_read` yields and calls `on_write` before each step of a write."""

    name: str = "scripted"
    capabilities: Capability = (
        Capability.GATED_OPERATIONS | Capability.SYNC_STATE | Capability.MERGE | Capability.REPLACE_WRITES
    )
    on_read: Callable[[ReadCall], Iterable[pa.RecordBatch]] = lambda call: [rows(1, 2)]
    on_write: Callable[[WriteCall], None] = lambda call: None
    on_close: Callable[[str], None] = lambda what: None
    """Called with `source`, `sink` or `session` when that is closed."""

    token: Callable[[ReadSpec], str | None] = lambda spec: None
    shape: str = "full"
    partitions: tuple[str, ...] = ("0",)
    """Identities, in plan order; they count when the connector declares `STABLE_PARTITION_IDS`."""

    schema: pa.Schema = SCHEMA
    abort_semantics: str = "discards_all"
    reads: list[ReadSpec] = field(default_factory=list)
    written: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Committed rows by entity; merge keys are not looked at."""

    info: ConnectorInfo = field(init=False)
    native_only_reads: bool = False
    native_only_writes: bool = False
    connection_schema: Mapping[str, Any] = field(default_factory=dict)
    read_schema: Mapping[str, Any] = field(default_factory=dict)
    write_schema: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.info = ConnectorInfo(self.name, "1.0.0", "scripted")

    def validate(self, use: ConnectionUse) -> list[Finding]:
        """Accept anything."""
        return []

    def check_connection(self, config: Mapping[str, Any], cancel: CancelToken) -> ProbeResult:
        """Answer at once."""
        return ProbeResult(True, "scripted")

    def open_source(self, config: Mapping[str, Any]) -> _Source:
        """Open a read side."""
        return _Source(self)

    def open_sink(self, config: Mapping[str, Any]) -> _Sink:
        """Open a write side."""
        return _Sink(self)

    @contextmanager
    def installed(self) -> Iterator[ScriptedConnector]:
        """Make the connector known under its name for the length of a block."""
        registry._loaded[self.name] = self
        try:
            yield self
        finally:
            del registry._loaded[self.name]


class _Gated:
    gate: OperationGate | None = None

    def use_gate(self, gate: OperationGate) -> None:
        self.gate = gate


class _Source(_Gated):
    def __init__(self, owner: ScriptedConnector) -> None:
        self._owner = owner

    def close(self) -> None:
        self._owner.on_close("source")

    def get_schema(self, spec: ReadSpec, cancel: CancelToken) -> pa.Schema:
        return self._owner.schema

    def native_scan(self, spec: ReadSpec) -> None:
        return None

    def natural_read_shape(self, spec: ReadSpec) -> str:
        return self._owner.shape

    def plan_read(self, spec: ReadSpec, hints: ReadHints, cancel: CancelToken) -> Sequence[_Partition]:
        self._owner.reads.append(spec)
        ordinal = sum(read.entity == spec.entity for read in self._owner.reads)
        kind = _CheckpointingPartition if Capability.CHECKPOINTABLE_READS in self._owner.capabilities else _Partition
        return [kind(self._owner, spec, ordinal, identity, self.gate) for identity in self._owner.partitions]


class _Partition(Struct):
    owner: ScriptedConnector
    spec: ReadSpec
    ordinal: int
    partition_id: str
    gate: OperationGate | None

    def read(self, options: BatchOptions, cancel: CancelToken) -> Iterator[pa.RecordBatch]:
        yield from self.owner.on_read(ReadCall(self.spec, self.ordinal, self.partition_id, self.gate, cancel))

    def sync_state_candidate(self) -> str | None:
        return self.owner.token(self.spec)


class _CheckpointingPartition(_Partition):
    """Offers a token after every batch: the number of batches yielded; goes on after them."""

    yielded: int = 0
    offered: int = 0

    def read(self, options: BatchOptions, cancel: CancelToken) -> Iterator[pa.RecordBatch]:
        skipped = self.yielded
        for number, batch in enumerate(super().read(options, cancel)):
            if number >= skipped:
                self.yielded += 1
                yield batch

    def try_resume_from(self, token: str) -> bool:
        if not token.startswith("batches:"):
            return False
        self.yielded = self.offered = int(token.removeprefix("batches:"))
        return True

    def checkpoint(self) -> str | None:
        if self.yielded == self.offered:
            return None
        self.offered = self.yielded
        return f"batches:{self.yielded}"


class _Sink(_Gated):
    def __init__(self, owner: ScriptedConnector) -> None:
        self._owner = owner
        self.abort_semantics = owner.abort_semantics

    def close(self) -> None:
        self._owner.on_close("sink")

    def native_copy(self, spec: WriteSpec) -> None:
        return None

    def begin_write(self, spec: WriteSpec, schema: pa.Schema, cancel: CancelToken) -> _Session:
        is_checkpointing = Capability.CHECKPOINTABLE_WRITES in self._owner.capabilities
        return (_ConfirmingSession if is_checkpointing else _Session)(self._owner, spec, self.gate)


class _Session:
    def __init__(self, owner: ScriptedConnector, spec: WriteSpec, gate: OperationGate | None) -> None:
        self._owner = owner
        self._spec = spec
        self._gate = gate
        self._batches: list[list[dict[str, Any]]] = []
        self.location = f"{spec.connection}/{spec.entity}"

    def write_batch(self, batch: pa.RecordBatch, cancel: CancelToken) -> None:
        self._owner.on_write(WriteCall(self._spec, "batch", len(self._batches), self._gate, cancel))
        self._batches.append(batch.to_pylist())

    def commit(self, cancel: CancelToken) -> CommitResult:
        self._owner.on_write(WriteCall(self._spec, "commit", len(self._batches), self._gate, cancel))
        arrived = [row for batch in self._batches for row in batch]
        kept = [] if self._spec.strategy is Strategy.REPLACE else self._owner.written.get(self._spec.entity, [])
        self._owner.written[self._spec.entity] = [*kept, *arrived]
        return CommitResult(len(arrived), len(self._batches))

    def abort(self) -> None:
        self._batches.clear()

    def close(self) -> None:
        self._owner.on_close("session")


class _ConfirmingSession(_Session):
    """Each batch is visible as soon as it is taken, and confirmed; nothing is ever undone."""

    def __init__(self, owner: ScriptedConnector, spec: WriteSpec, gate: OperationGate | None) -> None:
        super().__init__(owner, spec, gate)
        self._confirmed = 0
        self._taken = 0

    def try_resume_from(self, rows: int) -> bool:
        self._confirmed = rows
        return True

    def acknowledged_rows(self) -> int:
        return self._confirmed

    def write_batch(self, batch: pa.RecordBatch, cancel: CancelToken) -> None:
        self._owner.on_write(WriteCall(self._spec, "batch", self._taken, self._gate, cancel))
        self._taken += 1
        self._owner.written.setdefault(self._spec.entity, []).extend(batch.to_pylist())
        self._confirmed += batch.num_rows

    def commit(self, cancel: CancelToken) -> CommitResult:
        self._owner.on_write(WriteCall(self._spec, "commit", self._taken, self._gate, cancel))
        return CommitResult(self._confirmed, self._taken)
