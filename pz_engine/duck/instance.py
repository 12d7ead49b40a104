"""One DuckDB that several steps of an invocation share."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Final

import duckdb

from pz_engine.duck.statement_error import DuckStatementError

_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_persistent_secrets": False,
}


class DuckInstance:
    """One DuckDB in memory, opened on first use; starting one takes longer than most of what a small run asks of it.

    One step of an invocation after the other attaches its own database to it. Close it, or use it as a context manager.
    """

    def __init__(self, *, allow_unsigned_extensions: bool = False) -> None:
        self._config = {**_CONFIG, "allow_unsigned_extensions": True} if allow_unsigned_extensions else _CONFIG
        self._connection: duckdb.DuckDBPyConnection | None = None

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The driver's connection, for this package only.

        Raises:
            DuckStatementError: DuckDB cannot be started.
        """
        if self._connection is None:
            try:
                self._connection = duckdb.connect(":memory:", config=self._config)
                # Every statement over a set of files reads the end of each again; DuckDB drops what a changed file left.
                self._connection.execute("set global parquet_metadata_cache = true")
            except duckdb.Error as error:
                raise DuckStatementError.from_duckdb(error) from None
        return self._connection

    def close(self) -> None:
        """Close everything; safe to call twice, and what comes after starts anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(duckdb.Error):
                connection.close()

    def __enter__(self) -> DuckInstance:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
