"""Lands a load partition by partition, so that what has landed is never read twice.

A partition's rows and the ledger row that counts them change in one transaction. A fault of reading is one partition's
own; a fault of the engine ends them all.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from msgspec import Struct, field

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.base.fault_points import fault_point
from pz_engine.compile.dag import SourceLoadNode
from pz_engine.connectors.api import BatchOptions, CheckpointingPartition, IdentifiedPartition, Partition
from pz_engine.duck.ingest import BatchInsert, create_landing_table
from pz_engine.duck.quoting import quote_identifier, staging_relation
from pz_engine.duck.session import DuckCursor
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.execute.context import Attempt
from pz_engine.execute.ledgers.partition_ledger import Checkpoint, Origin, PartitionLedger, Reach
from pz_engine.execute.outcome import NodeFailure
from pz_engine.execute.partial_reuse import PartNames, copy_prior_partitions
from pz_engine.model.run import PartitionCounts


class _Tally(Struct):
    """What the partitions of one attempt did; shared by their threads."""

    faults: list[PzConnectorError] = field(default_factory=list)
    engine_fault: BaseException | None = None
    bytes: int = 0


class LandedPartitions(Struct, frozen=True):
    """A load whose partitions have all landed."""

    counts: PartitionCounts
    bytes: int
    reach: Reach | None = None
    """How far the oldest rows reach, when not all were read by this attempt."""


def land_partitions(
    attempt: Attempt,
    node: SourceLoadNode,
    partitions: Sequence[Partition],
    schema: Any,
    *,
    window: tuple[str, str] | None,
    is_feed: bool,
) -> LandedPartitions:
    """Land every partition that has not landed yet.

    Args:
        attempt: the attempt.
        node: the load.
        partitions: as planned.
        schema: the Arrow schema they all yield.
        window: the slice they belong to, for a windowed read.
        is_feed: its one partition is always read anew, because its token comes from a live read only.

    Raises:
        NodeFailure: `PZ0319`, identities are missing or repeated.
        PzConnectorError: some partitions could not be read; transient when all of those may pass.
        Cancelled: the node was cancelled.
    """
    identified = _identified(node, partitions)
    return _PartitionedLoad(attempt, node, identified, schema, window).run(is_feed=is_feed)


class _PartitionedLoad:
    def __init__(
        self,
        attempt: Attempt,
        node: SourceLoadNode,
        partitions: dict[str, Partition],
        schema: Any,
        window: tuple[str, str] | None,
    ) -> None:
        self._attempt = attempt
        self._node = node
        self._partitions = partitions
        self._schema = schema
        self._window = window
        self._main = staging_relation(node.name)
        self._parts = PartNames(node.id)
        self._landing = threading.Lock()
        self._tally = _Tally()
        self._stop = CancelToken(attempt.cancel)

    def run(self, *, is_feed: bool) -> LandedPartitions:
        cursor = self._attempt.cursor
        ledger = PartitionLedger(cursor, self._node.id)
        self._attempt.context.ledgers.ensure(cursor)
        self._prepare(cursor, ledger, is_feed=is_feed)
        before = ledger.done()
        reach = self._reach(cursor, ledger) if before else None
        waiting = [(identity, part) for identity, part in self._partitions.items() if identity not in before]
        self._read_all(waiting)
        self._raise_faults(len(waiting))
        origins = ledger.origins()
        counts = PartitionCounts(
            len(self._partitions), origins.total(), origins[Origin.REUSED], origins[Origin.RESUMED]
        )
        return LandedPartitions(counts, self._tally.bytes, reach)

    def _reach(self, cursor: DuckCursor, ledger: PartitionLedger) -> Reach | None:
        """Return how far the rows that landed first reach, before later ones join them.

        What came to the source since then may be missing from their partitions, wherever the later ones reach.
        """
        if self._node.incremental is None:
            return None
        known = ledger.reach()
        if known is None:
            column = quote_identifier(self._node.incremental.cursor)
            known = Reach(cursor.scalar(f"select cast(max({column}) as varchar) from {self._main}"))
            ledger.record_reach(known)
        return known

    def _prepare(self, cursor: DuckCursor, ledger: PartitionLedger, *, is_feed: bool) -> None:
        """Bring ledger and tables into a state to go on from."""
        self._drop_leftovers(cursor, ledger)
        if not ledger.done() and not ledger.checkpoints():
            create_landing_table(cursor, self._main, self._schema, self._node.columns)
            if not is_feed:
                copy_prior_partitions(self._attempt, self._node, ledger, tuple(self._partitions), self._window)
        elif is_feed or ledger.window() != self._window:
            with cursor.transaction():
                create_landing_table(cursor, self._main, self._schema, self._node.columns)
                ledger.forget_all()
        ledger.record_window(self._window)

    def _drop_leftovers(self, cursor: DuckCursor, ledger: PartitionLedger) -> None:
        """Remove segments of an attempt that ended, and parts that no checkpoint speaks for."""
        kept = {self._parts.part(identity) for identity in ledger.checkpoints()}
        query = "select table_name from duckdb_tables() where schema_name = 'staging' and database_name = current_database()"
        for (name,) in cursor.rows(query):
            if self._parts.owns(str(name)) and str(name) not in kept:
                cursor.execute(f"drop table {staging_relation(str(name))}")

    def _read_all(self, waiting: Sequence[tuple[str, Partition]]) -> None:
        if not waiting:
            return
        with ThreadPoolExecutor(min(len(waiting), os.cpu_count() or 1), thread_name_prefix="pz-part") as pool:
            for identity, partition in waiting:
                pool.submit(self._read_one, identity, partition)
        self._stop.detach()

    def _read_one(self, identity: str, partition: Partition) -> None:
        if self._stop.is_set():
            return
        try:
            with self._attempt.context.session.cursor(self._stop) as cursor:
                _PartitionLanding(self, cursor, identity, partition).land()
        except _ReadFaultError as fault:
            self._tally.faults.append(fault.cause)
        except BaseException as error:
            if self._tally.engine_fault is None or isinstance(self._tally.engine_fault, Cancelled):
                self._tally.engine_fault = error
            self._stop.set()

    def _raise_faults(self, waiting: int) -> None:
        self._attempt.cancel.raise_if_set()
        if self._tally.engine_fault is not None:
            raise self._tally.engine_fault
        faults = self._tally.faults
        if not faults:
            return
        waits = [fault.retry_after for fault in faults if fault.retry_after is not None]
        first = next((fault for fault in faults if not fault.is_transient), faults[0])
        count = (
            "" if len(self._partitions) == 1 else f"{len(faults)} of {waiting} partitions could not be read; one said: "
        )
        raise PzConnectorError(
            f"{count}{first.message}",
            is_transient=all(fault.is_transient for fault in faults),
            retry_after=max(waits, default=timedelta(0)) if waits else None,
            code=first.code,
            hint=first.hint,
        )


class _ReadFaultError(Exception):
    """Reading one partition failed; its siblings go on."""

    def __init__(self, cause: PzConnectorError) -> None:
        self.cause = cause
        super().__init__(str(cause))


class _PartitionLanding:
    """One partition's way into the main table; used by one thread."""

    def __init__(self, load: _PartitionedLoad, cursor: DuckCursor, identity: str, partition: Partition) -> None:
        self._load = load
        self._cursor = cursor
        self._identity = identity
        self._partition = partition
        self._ledger = PartitionLedger(cursor, load._node.id)
        self._part = staging_relation(load._parts.part(identity))
        self._segment = staging_relation(load._parts.segment(identity))

    def land(self) -> None:
        """Read the partition to its end and move its rows into the main table.

        Raises:
            _ReadFaultError: reading failed; rows up to the last checkpoint stay in the part table.
        """
        is_checkpointing = isinstance(self._partition, CheckpointingPartition)
        kept = self._resume() if is_checkpointing else 0
        if not kept:
            with self._cursor.transaction():
                self._create(self._part)
                self._ledger.forget(self._identity)
        if is_checkpointing:
            self._create(self._segment)
        try:
            self._read(self._segment if is_checkpointing else self._part, is_checkpointing=is_checkpointing)
        except _ReadFaultError:
            self._cursor.execute(f"drop table if exists {self._segment}")
            if not is_checkpointing or self._ledger.checkpoints().get(self._identity) is None:
                self._cursor.execute(f"drop table if exists {self._part}")
            raise
        self._finish(Origin.RESUMED if kept else Origin.READ, has_segment=is_checkpointing)

    def _resume(self) -> int:
        """Return how many rows the partition goes on from: those of a checkpoint that still holds."""
        checkpoint = self._ledger.checkpoints().get(self._identity)
        if checkpoint is None or not isinstance(self._partition, CheckpointingPartition):
            return 0
        if self._cursor.count(self._part) != checkpoint.rows or not self._partition.try_resume_from(checkpoint.token):
            return 0
        return max(checkpoint.rows, 1)

    def _create(self, relation: str) -> None:
        create_landing_table(self._cursor, relation, self._load._schema, self._load._node.columns)

    def _read(self, target: str, *, is_checkpointing: bool) -> None:
        options = BatchOptions(target_bytes=self._load._attempt.context.engine.batch_bytes)
        batches = iter(self._partition.read(options, self._load._stop))
        insert = BatchInsert(self._cursor, target, self._load._schema, most_waiting_bytes=options.target_bytes)
        while True:
            try:
                batch = next(batches, None)
            except PzConnectorError as error:
                raise _ReadFaultError(error) from None
            if batch is None:
                insert.flush()
                return
            insert.add(batch)
            with self._load._landing:
                self._load._tally.bytes += int(getattr(batch, "nbytes", 0))
            fault_point("after_batch")
            if is_checkpointing:
                insert.flush()
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Move the rows since the last checkpoint into the part, together with the new one."""
        token = self._partition.checkpoint() if isinstance(self._partition, CheckpointingPartition) else None
        if token is None:
            return
        with self._cursor.transaction():
            self._cursor.execute(f"insert into {self._part} select * from {self._segment}")
            self._create(self._segment)
            self._ledger.set_checkpoint(self._identity, Checkpoint(token, self._cursor.count(self._part)))
        fault_point("after_checkpoint")

    def _finish(self, origin: Origin, *, has_segment: bool) -> None:
        fault_point("before_partition_commit")
        with self._load._landing, self._cursor.transaction():
            if has_segment:
                self._cursor.execute(f"insert into {self._part} select * from {self._segment}")
                self._cursor.execute(f"drop table {self._segment}")
            rows = self._cursor.changed_rows(f"insert into {self._load._main} select * from {self._part}")
            self._cursor.execute(f"drop table {self._part}")
            self._ledger.mark_done(self._identity, rows, origin)
        fault_point("after_partition_commit")


def _identified(node: SourceLoadNode, partitions: Sequence[Partition]) -> dict[str, Partition]:
    """Return the partitions by their identities.

    Raises:
        NodeFailure: `PZ0319`, naming ordinals only.
    """
    found: dict[str, Partition] = {}
    for ordinal, partition in enumerate(partitions, 1):
        identity = partition.partition_id if isinstance(partition, IdentifiedPartition) else ""
        if not isinstance(identity, str) or not identity or identity in found:
            what = "has the identity of another one" if identity in found else "has no identity"
            raise NodeFailure(
                "PZ0319",
                f"partition {ordinal} of {len(partitions)} of '{node.key}' {what}\n"
                "next step: this is a fault of the connector; report it to its author",
            )
        found[identity] = partition
    return found
