"""DuckDB's own parser, for SQL that is only looked at.

The database behind it is in memory, has one thread, and is opened when the first text is parsed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pz_engine.duck.quoting import quote_literal

if TYPE_CHECKING:
    import duckdb

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


class SqlParser:
    """Parses, renders and knows functions; for one thread, and to be closed."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._parsed: dict[str, str | None] = {}
        self._deterministic: frozenset[str] | None = None

    def parse(self, sql: str) -> dict[str, Any] | None:
        """Return the syntax tree of one query, or None when it is no single query or does not parse.

        The tree is the caller's own and may be changed.
        """
        if sql not in self._parsed:
            self._parsed[sql] = self._serialize(sql)
        text = self._parsed[sql]
        return None if text is None else json.loads(text)

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
        return function.lower() in self._deterministic

    def close(self) -> None:
        """Release the database; safe to call twice, and the parser may be used again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            import duckdb

            self._connection = duckdb.connect(":memory:", config=_CONFIG)
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
        tree = json.loads(text)
        return None if tree["error"] or len(tree["statements"]) != 1 else text
