"""Partitions that have landed, and where those that have not may go on.

Every row is written in the transaction that moves the rows it accounts for. Ids and tokens of a connector live here and
nowhere else.
"""

from __future__ import annotations

import threading
from collections import Counter
from enum import Enum
from typing import Final

from msgspec import Struct

from pz_engine.duck.session import DuckCursor

META_SCHEMA: Final = "pz_meta"

_TABLES: Final = {
    "partitions_done": "node_id varchar not null, partition_id varchar not null, rows bigint not null, "
    "origin varchar not null",
    "partition_checkpoints": "node_id varchar not null, partition_id varchar not null, checkpoint varchar not null, "
    "rows bigint not null",
    "node_reach": "node_id varchar not null, reached varchar",
    "node_watermark": "node_id varchar not null, value varchar not null",
    "node_window": "node_id varchar not null, lower varchar not null, upper varchar not null",
    "sink_deliveries": "node_id varchar not null, acknowledged_rows bigint not null, relation_count bigint not null, "
    "relation_hash varchar not null",
}


class Origin(str, Enum):
    """Where the rows of a partition come from; it outlives the attempt that landed them."""

    READ = "read"
    RESUMED = "resumed"
    """Read from a checkpoint on."""

    REUSED = "reused"
    """Landed by the run that this one continues."""


class Checkpoint(Struct, frozen=True):
    """Where a partition may go on."""

    token: str
    rows: int
    """Rows of the part table that the token covers."""


class Reach(Struct, frozen=True):
    """How far along its cursor a load was known to be complete when its oldest rows were read."""

    value: str | None
    """Highest cursor value of those rows as DuckDB writes it; None when no row has one."""


class LedgerTables:
    """The ledgers of one run's database, created by the first node that needs them; safe from any thread."""

    def __init__(self) -> None:
        self._creating = threading.Lock()
        self._exist = False

    def ensure(self, cursor: DuckCursor) -> None:
        """Create what is missing, before several nodes could do so at once."""
        with self._creating:
            if self._exist:
                return
            with cursor.transaction():
                cursor.execute(f"create schema {META_SCHEMA}")
                for table, columns in _TABLES.items():
                    cursor.execute(f"create table {META_SCHEMA}.{table} ({columns})")
            self._exist = True


class PartitionLedger:
    """One node's rows of the partition ledgers; `catalog` names another attached database to read from."""

    def __init__(self, cursor: DuckCursor, node_id: str, catalog: str | None = None) -> None:
        self._cursor = cursor
        self._node_id = node_id
        self._schema = META_SCHEMA if catalog is None else f"{catalog}.{META_SCHEMA}"

    def done(self) -> dict[str, int]:
        """Return rows by partition of everything that has landed."""
        query = f"select partition_id, rows from {self._schema}.partitions_done where node_id = ?"
        return {str(partition): int(rows) for partition, rows in self._cursor.rows(query, [self._node_id])}

    def origins(self) -> Counter[Origin]:
        """Count the landed partitions by where their rows come from."""
        query = f"select origin from {self._schema}.partitions_done where node_id = ?"
        return Counter(Origin(origin) for (origin,) in self._cursor.rows(query, [self._node_id]))

    def checkpoints(self) -> dict[str, Checkpoint]:
        """Return the checkpoints of partitions that have not landed."""
        query = f"select partition_id, checkpoint, rows from {self._schema}.partition_checkpoints where node_id = ?"
        found = self._cursor.rows(query, [self._node_id])
        return {str(partition): Checkpoint(str(token), int(rows)) for partition, token, rows in found}

    def window(self) -> tuple[str, str] | None:
        """Return the slice the rows belong to, an open end as ''; None for a read of everything."""
        found = self._cursor.rows(
            f"select lower, upper from {self._schema}.node_window where node_id = ?", [self._node_id]
        )
        return (str(found[0][0]), str(found[0][1])) if found else None

    def record_window(self, window: tuple[str, str] | None) -> None:
        """Store the slice of this read."""
        self._cursor.execute(f"delete from {self._schema}.node_window where node_id = ?", [self._node_id])
        if window is not None:
            self._cursor.execute(f"insert into {self._schema}.node_window values (?, ?, ?)", [self._node_id, *window])

    def reach(self) -> Reach | None:
        """Return how far the oldest landed rows reach; None when all rows are of one reading."""
        query = f"select reached from {self._schema}.node_reach where node_id = ?"
        found = self._cursor.rows(query, [self._node_id])
        return Reach(found[0][0]) if found else None

    def record_reach(self, reach: Reach) -> None:
        """Store how far the oldest landed rows reach."""
        self._cursor.execute(f"insert into {self._schema}.node_reach values (?, ?)", [self._node_id, reach.value])

    def mark_done(self, partition: str, rows: int, origin: Origin) -> None:
        """Count a partition as landed; its checkpoint has no use any more."""
        self._delete("partitions_done", partition)
        self._delete("partition_checkpoints", partition)
        self._cursor.execute(
            f"insert into {self._schema}.partitions_done values (?, ?, ?, ?)",
            [self._node_id, partition, rows, origin.value],
        )

    def set_checkpoint(self, partition: str, checkpoint: Checkpoint) -> None:
        """Store where a partition may go on."""
        self._delete("partition_checkpoints", partition)
        self._cursor.execute(
            f"insert into {self._schema}.partition_checkpoints values (?, ?, ?, ?)",
            [self._node_id, partition, checkpoint.token, checkpoint.rows],
        )

    def forget(self, partition: str) -> None:
        """Remove everything about a partition."""
        self._delete("partitions_done", partition)
        self._delete("partition_checkpoints", partition)

    def forget_all(self) -> None:
        """Remove everything about the node."""
        for table in ("partitions_done", "partition_checkpoints", "node_reach", "node_window"):
            self._cursor.execute(f"delete from {self._schema}.{table} where node_id = ?", [self._node_id])

    def _delete(self, table: str, partition: str) -> None:
        self._cursor.execute(
            f"delete from {self._schema}.{table} where node_id = ? and partition_id = ?", [self._node_id, partition]
        )
