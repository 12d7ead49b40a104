"""One DuckDB database for a run, one cursor per working thread.

The main database is in memory and the run's file is attached as `pz_run`, because a file called `staging.duckdb`
opened directly would make `staging.x` ambiguous between catalog and schema. Settings that a cursor does not inherit
are applied whenever one is made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
from msgspec import Struct

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.duck.instance import DuckInstance
from pz_engine.duck.quoting import STAGING_SCHEMA, quote_identifier, quote_literal
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.model.run import ColumnType

RUN_DATABASE = "pz_run"
"""Catalog name of the run's database."""


class DuckSettings(Struct, frozen=True):
    """Settings of a session; None leaves DuckDB's default."""

    memory_limit: str | None = None
    threads: int | None = None
    temp_directory: Path | None = None
    allow_unsigned_extensions: bool = False


class DuckSession:
    """An open database; close it, or use it as a context manager."""

    def __init__(self, instance: DuckInstance, *, owns_instance: bool) -> None:
        self._instance = instance
        self._owns_instance = owns_instance
        self._connection = instance.connection

    @classmethod
    def open(cls, database: Path | None, settings: DuckSettings, instance: DuckInstance | None = None) -> DuckSession:
        """Open a database file, or one in memory when `database` is None, with the schema `staging`.

        Args:
            database: the file.
            settings: of the whole instance, while the session is open and after.
            instance: what to open it in, one session at a time; a new one without it.

        Raises:
            DuckStatementError: the file cannot be opened or a setting is refused.
        """
        if instance is None or settings.allow_unsigned_extensions:  # that one has to be set from the start
            instance = DuckInstance(allow_unsigned_extensions=settings.allow_unsigned_extensions)
            session = cls(instance, owns_instance=True)
        else:
            session = cls(instance, owns_instance=False)
        try:
            with session.cursor(use_run_database=False) as cursor:
                for name in ("threads", "memory_limit", "temp_directory"):
                    value = getattr(settings, name)
                    if value is not None:
                        cursor.execute(f"set global {name} = {quote_literal(str(value))}")
                    elif not session._owns_instance:
                        cursor.execute(f"reset global {name}")
                target = ":memory:" if database is None else str(database)
                cursor.execute(f"attach {quote_literal(target)} as {quote_identifier(RUN_DATABASE)}")
                cursor.execute(f"create schema if not exists {RUN_DATABASE}.{STAGING_SCHEMA}")
                cursor.execute("set global TimeZone = 'UTC'")
        except BaseException:
            session.close()
            raise
        return session

    def cursor(self, cancel: CancelToken | None = None, *, use_run_database: bool = True) -> DuckCursor:
        """Make a cursor for the calling thread; setting `cancel` interrupts its running statement."""
        raw = self._connection.cursor()
        if use_run_database:
            raw.execute(f"use {RUN_DATABASE}")
        return DuckCursor(raw, cancel)

    def close(self) -> None:
        """Close the database, and a new instance with everything attached to it; safe to call twice.

        The database is left as its last commit made it, log and all: a checkpoint would write every row group again that
        is not full, which takes up to half the time of landing it.
        """
        with contextlib.suppress(DuckStatementError, duckdb.Error), self.cursor(use_run_database=False) as cursor:
            cursor.execute("pragma disable_checkpoint_on_shutdown")
            try:
                cursor.execute(f"detach database if exists {quote_identifier(RUN_DATABASE)}")
            finally:
                cursor.execute("pragma enable_checkpoint_on_shutdown")
        if self._owns_instance:
            self._instance.close()

    def __enter__(self) -> DuckSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class DuckCursor:
    """A cursor of one thread; a result being streamed owns it until the stream ends."""

    def __init__(self, raw: duckdb.DuckDBPyConnection, cancel: CancelToken | None = None) -> None:
        self.raw = raw
        """The driver's cursor, for sibling modules of this package only."""

        self._cancel = cancel
        self._unregister = cancel.on_cancel(raw.interrupt) if cancel is not None else lambda: None

    def execute(self, sql: str, parameters: Sequence[object] | None = None) -> None:
        """Run a statement.

        Raises:
            Cancelled: the token was set before or while it ran.
            DuckStatementError: DuckDB refused or failed the statement.
        """
        if self._cancel is not None:
            self._cancel.raise_if_set()
        with self._translating():
            if parameters is None:
                self.raw.execute(sql)
            else:
                self.raw.execute(sql, parameters)

    def rows(self, sql: str, parameters: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        """Run a query and return all its rows."""
        self.execute(sql, parameters)
        with self._translating():
            return self.raw.fetchall()

    def scalar(self, sql: str, parameters: Sequence[object] | None = None) -> Any:
        """Run a query and return the first column of its first row, or None without a row."""
        found = self.rows(sql, parameters)
        return found[0][0] if found else None

    def statement_kinds(self, sql: str) -> tuple[str, ...]:
        """Parse a text without running it and return the kind of each statement, for example `SELECT`.

        Raises:
            DuckStatementError: the text does not parse.
        """
        with self._translating():
            return tuple(statement.type.name for statement in self.raw.extract_statements(sql))

    def changed_rows(self, sql: str) -> int:
        """Run a statement that reports how many rows it wrote."""
        count = self.scalar(sql)
        return int(count) if count is not None else 0

    def count(self, relation: str) -> int:
        """Count the rows of a quoted relation."""
        return int(self.scalar(f"select count(*) from {relation}"))

    def describe(self, query: str) -> tuple[ColumnType, ...]:
        """Return the columns a query would give, without running it."""
        return tuple(ColumnType(str(row[0]), str(row[1])) for row in self.rows(f"describe {query}"))

    @contextlib.contextmanager
    def _translating(self) -> Iterator[None]:
        """Turn the driver's exceptions into ours; a failure after the token was set is the interrupt's doing."""
        try:
            yield
        except duckdb.InterruptException:
            raise Cancelled from None
        except duckdb.Error as error:
            if self._cancel is not None and self._cancel.is_set():
                raise Cancelled from None
            raise DuckStatementError.from_duckdb(error) from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit on success; roll back on any exception, cancellation included."""
        self.execute("begin transaction")
        try:
            yield
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                self.raw.execute("rollback")
            raise
        self.execute("commit")

    def close(self) -> None:
        """Release the cursor; safe to call twice."""
        self._unregister()
        with contextlib.suppress(duckdb.Error):
            self.raw.close()

    def __enter__(self) -> DuckCursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
