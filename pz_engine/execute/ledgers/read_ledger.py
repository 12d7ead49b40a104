"""What each incremental load read from and arrived at, beside its rows, for the run that may take them over."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pz_engine.duck.session import DuckCursor
from pz_engine.execute.ledgers.partition_ledger import META_SCHEMA


class RecordedRead(Struct, frozen=True):
    """One finished read, as canonical cursor values."""

    lower: str | None = None
    """Where it began; None for a read from the start."""

    upper: str | None = None
    """Where it ended; None for a read to the end."""

    watermark: str | None = None
    """What it arrived at; None when it captured nothing."""


def record_read(cursor: DuckCursor, node_id: str, window: tuple[str, str] | None, watermark: str | None) -> None:
    """Store a finished read; the tables exist.

    Args:
        cursor: on the run's database.
        node_id: the load.
        window: lower and upper end, an open one as ''; None for a read of everything.
        watermark: what was captured, if anything.

    Raises:
        DuckStatementError: they cannot be written.
    """
    with cursor.transaction():
        for table in ("node_window", "node_watermark"):
            cursor.execute(f"delete from {META_SCHEMA}.{table} where node_id = ?", [node_id])
        if window is not None:
            cursor.execute(f"insert into {META_SCHEMA}.node_window values (?, ?, ?)", [node_id, *window])
        if watermark is not None:
            cursor.execute(f"insert into {META_SCHEMA}.node_watermark values (?, ?)", [node_id, watermark])


def recorded_reads(cursor: DuckCursor, catalog: str) -> Mapping[str, RecordedRead]:
    """Return every recorded read of a database, by node id; none when it has no ledgers.

    Raises:
        DuckStatementError: they cannot be read.
    """
    query = (
        "select count(*) from duckdb_tables() where database_name = ? and schema_name = ? "
        "and table_name in ('node_window', 'node_watermark')"
    )
    if cursor.scalar(query, [catalog, META_SCHEMA]) != 2:
        return {}
    schema = f"{catalog}.{META_SCHEMA}"
    found = cursor.rows(
        f"select node_id, w.lower, w.upper, m.value from {schema}.node_window w full join {schema}.node_watermark m using (node_id)"
    )
    return {
        str(node_id): RecordedRead(lower or None, upper or None, watermark)
        for node_id, lower, upper, watermark in found
    }
