"""DuckDB's own parser and binder, for SQL that is only looked at.

A database behind them is in memory, has one thread, cannot reach files or the network, and is opened on first use.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pz_engine.duck.quoting import STAGING_SCHEMA, quote_identifier, quote_literal, staging_relation
from pz_engine.model.run import ColumnType

if TYPE_CHECKING:
    import duckdb

    from pz_engine.duck.instance import DuckInstance

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,
}


_SESSION_FUNCTIONS = frozenset({"getvariable", "current_setting", "version"})
"""Called consistent by DuckDB, but telling what the session or the installed version is."""

MAX_PARSED_LENGTH = 200_000
"""Longest text whose syntax tree is looked at; a tree is some hundred times as large as its text."""


class SqlParser:
    """Parses, renders and knows functions; for one thread, and to be closed unless it was given an instance."""

    def __init__(self, instance: DuckInstance | None = None) -> None:
        self._instance = instance
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._parsed: dict[str, str | None] = {}
        self._deterministic: frozenset[str] | None = None

    def parse(self, sql: str) -> dict[str, Any] | None:
        """Return the syntax tree of one query, or None when it is no single query or does not parse.

        Texts that are too long or nest too deep to be looked at have no tree either. The tree is the caller's own and
        may be changed.
        """
        if sql not in self._parsed:
            self._parsed[sql] = self._serialize(sql) if len(sql) <= MAX_PARSED_LENGTH else None
        text = self._parsed[sql]
        try:
            return None if text is None else json.loads(text)
        except RecursionError:
            return None

    def is_one_query(self, sql: str) -> bool:
        """Tell whether a text is one query, whether or not it has a tree."""
        import duckdb

        if self.parse(sql) is not None:
            return True
        try:
            kinds = [statement.type.name for statement in self._connect().extract_statements(sql)]
        except duckdb.Error:
            return False
        return kinds == ["SELECT"] or (kinds == ["CREATE", "SELECT"] and "pivot" in sql.lower())

    @staticmethod
    def token_offsets(sql: str) -> list[int]:
        """Return where each word, sign and literal starts, in bytes of UTF-8; comments are left out."""
        import duckdb

        return [offset for offset, _ in duckdb.tokenize(sql)]

    def render(self, tree: dict[str, Any]) -> str | None:
        """Return a tree as SQL, in DuckDB's own spelling and without comments, or None when it cannot be rendered."""
        import duckdb

        try:
            row = self._call("json_deserialize_sql", json.dumps(tree))
        except duckdb.Error:
            return None
        return None if row is None else str(row[0])

    def render_expression(self, expression: dict[str, Any]) -> str | None:
        """Return an expression's tree as SQL."""
        tree = self.parse("SELECT 1")
        if tree is None:
            return None
        tree["statements"][0]["node"]["select_list"] = [expression]
        text = self.render(tree)
        return None if text is None else text.removeprefix("SELECT ")

    def is_deterministic(self, function: str) -> bool:
        """Tell whether a function, under the given name, always gives the same result for the same arguments."""
        if self._deterministic is None:
            rows = (
                self._connect()
                .execute("select distinct function_name from duckdb_functions() where stability = 'CONSISTENT'")
                .fetchall()
            )
            self._deterministic = frozenset(str(row[0]) for row in rows)
        return function.lower() in self._deterministic - _SESSION_FUNCTIONS

    def close(self) -> None:
        """Release the database; safe to call twice, and the parser may be used again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            import duckdb

            self._connection = (
                self._instance.connection.cursor()
                if self._instance is not None
                else duckdb.connect(":memory:", config=_CONFIG)
            )
        return self._connection

    def _call(self, function: str, text: str) -> tuple[Any, ...] | None:
        # A literal rather than a parameter: for each parameter the driver looks for optional packages on disk.
        return self._connect().execute(f"select {function}({quote_literal(text)})").fetchone()

    def _serialize(self, sql: str) -> str | None:
        import duckdb

        try:
            row = self._call("json_serialize_sql", sql)
        except duckdb.Error:
            return None
        if row is None:
            return None
        text = str(row[0])
        try:
            tree = json.loads(text)
        except RecursionError:
            return None
        return None if tree["error"] or len(tree["statements"]) != 1 else text


class EmptyTables:
    """Tables of staging without rows, so that the binder can tell what a query over them gives; to be closed."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None

    def create(self, name: str, columns: Sequence[ColumnType]) -> bool:
        """Make a table of known columns; False when they cannot be those of a table."""
        listed = ", ".join(f"{quote_identifier(column.name)} {column.type}" for column in columns)
        return self._succeeds(f"create table {staging_relation(name)} ({listed})")

    def define(self, name: str, query: str) -> tuple[ColumnType, ...] | None:
        """Make the table that a query over the others gives and return its columns; None when it is refused."""
        relation = staging_relation(name)
        if not self._succeeds(f"create table {relation} as select * from (\n{query}\n) limit 0"):
            return None
        rows = self._connect().execute(f"describe {relation}").fetchall()
        return tuple(ColumnType(str(row[0]), str(row[1])) for row in rows)

    def close(self) -> None:
        """Release the database; safe to call twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            import duckdb

            self._connection = duckdb.connect(":memory:", config=_CONFIG)
            self._connection.execute(f"create schema {STAGING_SCHEMA}")
        return self._connection

    def _succeeds(self, statement: str) -> bool:
        import duckdb

        with contextlib.suppress(duckdb.Error):
            self._connect().execute(statement)
            return True
        return False
