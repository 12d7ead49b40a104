"""Starts the staging database of a run as a copy of the one it continues.

Copying the file costs a small part of copying the rows, whatever their types. Everything that is not reused is dropped
before the first node starts; its blocks are used again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from msgspec import Struct, field

from pz_engine.duck.quoting import STAGING_SCHEMA, quote_qualified
from pz_engine.duck.session import RUN_DATABASE, DuckCursor, DuckSession
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.execute.ledgers.read_ledger import RecordedRead, recorded_reads
from pz_engine.execute.prior_database import PriorDatabase


class TakenOver(Struct, frozen=True):
    """What a run's database held before its first node started."""

    tables: frozenset[str] = frozenset()
    """Tables of staging."""

    reads: Mapping[str, RecordedRead] = field(default_factory=dict)
    """What the earlier run recorded of its incremental loads, by node id."""


def open_copy(
    prior: Path,
    run_id: str,
    target: Path,
    open_database: Callable[[Path | None], DuckSession],
    names: Collection[str],
    note: Callable[[str], None],
) -> tuple[DuckSession, TakenOver] | None:
    """Open a copy of a prior run's database in which only the named tables of staging are left.

    Args:
        prior: that run's database.
        run_id: that run.
        target: the file to make; it is gone when nothing could be copied.
        open_database: opens a database file, or with None one in memory, the way the run wants it.
        names: the tables to keep.
        note: receives one sentence when nothing is copied.

    Returns:
        The session and what is there, or None when the database cannot be opened or copied.
    """
    if not _copy(prior, run_id, target, open_database, note):
        return None
    session = None
    try:
        session = open_database(target)
        with session.cursor() as cursor:
            reads = recorded_reads(cursor, RUN_DATABASE)
            return session, TakenOver(_keep_only(cursor, names), reads)
    except DuckStatementError as error:
        if session is not None:
            session.close()
        _remove(target)
        note(f"run {run_id}: nothing is taken from its staging database: {error.summary.splitlines()[0]}")
        return None


def _log_of(database: Path) -> Path:
    """Return the file of what was committed since the last checkpoint."""
    return database.with_name(f"{database.name}.wal")


def _remove(database: Path) -> None:
    database.unlink(missing_ok=True)
    _log_of(database).unlink(missing_ok=True)


def _copy(
    prior: Path,
    run_id: str,
    target: Path,
    open_database: Callable[[Path | None], DuckSession],
    note: Callable[[str], None],
) -> bool:
    """Copy the file and its log while it is held open, so that nobody else writes them."""
    try:
        with (
            open_database(None) as session,
            session.cursor() as cursor,
            PriorDatabase(prior, run_id, note).opened(cursor) as is_usable,
        ):
            if not is_usable:
                return False
            for source, copy in ((prior, target), (_log_of(prior), _log_of(target))):
                if source.exists():
                    shutil.copyfile(source, copy)
    except OSError as error:
        _remove(target)
        reason = error.strerror or type(error).__name__
        note(f"run {run_id}: nothing is taken from its staging database, which cannot be copied: {reason}")
        return False
    return True


def _keep_only(cursor: DuckCursor, names: Collection[str]) -> frozenset[str]:
    relations = cursor.rows(
        "select 'table', schema_name, table_name from duckdb_tables() where database_name = ? "
        "union all select 'view', schema_name, view_name from duckdb_views() where database_name = ? and not internal",
        [RUN_DATABASE, RUN_DATABASE],
    )
    kept = set()
    for kind, schema, name in relations:
        if kind == "table" and schema == STAGING_SCHEMA and name in names:
            kept.add(str(name))
        else:
            cursor.execute(f"drop {kind} {quote_qualified(RUN_DATABASE, schema, name)}")
    query = "select schema_name from duckdb_schemas() where database_name = ? and not internal and schema_name <> ?"
    for (schema,) in cursor.rows(query, [RUN_DATABASE, STAGING_SCHEMA]):
        cursor.execute(f"drop schema {quote_qualified(RUN_DATABASE, schema)}")
    return frozenset(kept)
