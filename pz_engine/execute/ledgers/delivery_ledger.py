"""How much of a relation a destination has acknowledged, bound to the relation's content."""

from __future__ import annotations

from msgspec import Struct

from pz_engine.duck.session import DuckCursor
from pz_engine.execute.ledgers.fingerprint import Fingerprint
from pz_engine.execute.ledgers.partition_ledger import META_SCHEMA


class Delivery(Struct, frozen=True):
    """What a destination has confirmed."""

    rows: int
    """Leading rows, in the repeatable order, that it acknowledged."""

    fingerprint: Fingerprint
    """Of the relation they came from."""


class DeliveryLedger:
    """One sink's row of the delivery ledger; `catalog` names another attached database to read from."""

    def __init__(self, cursor: DuckCursor, node_id: str, catalog: str | None = None) -> None:
        self._cursor = cursor
        self._node_id = node_id
        self._table = f"{META_SCHEMA if catalog is None else f'{catalog}.{META_SCHEMA}'}.sink_deliveries"

    def read(self) -> Delivery | None:
        """Return what was confirmed, or None."""
        found = self._cursor.rows(
            f"select acknowledged_rows, relation_count, relation_hash from {self._table} where node_id = ?",
            [self._node_id],
        )
        if not found:
            return None
        rows, count, digest = found[0]
        return Delivery(int(rows), Fingerprint(int(count), str(digest)))

    def write(self, delivery: Delivery) -> None:
        """Replace the row in one transaction."""
        with self._cursor.transaction():
            self._cursor.execute(f"delete from {self._table} where node_id = ?", [self._node_id])
            self._cursor.execute(
                f"insert into {self._table} values (?, ?, ?, ?)",
                [self._node_id, delivery.rows, delivery.fingerprint.rows, delivery.fingerprint.digest],
            )

    def clear(self) -> None:
        """Remove the row."""
        self._cursor.execute(f"delete from {self._table} where node_id = ?", [self._node_id])
