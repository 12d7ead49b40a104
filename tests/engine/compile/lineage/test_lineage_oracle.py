"""Random queries against two oracles: how they were built, and what DuckDB computes when a column's values change."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lineage_projects import trace
from query_generator import TABLES, Generator, Query

from pz_engine.compile.lineage.values import ColumnLineage
from pz_engine.compile.sql_tree import render_faithfully
from pz_engine.duck.introspect import SqlParser

TYPES = {name: dict.fromkeys(columns, "INTEGER") for name, columns in TABLES.items()}
UNTYPED = dict.fromkeys(TABLES)
ROWS = 9
CHECKS = list(HealthCheck)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Three small tables in which values repeat, so that joins and groups have something to do."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("create schema staging")
    for number, (name, columns) in enumerate(TABLES.items()):
        listed = ", ".join(f"((i * {3 + at + number} + {at}) % {5 + at})::int as {c}" for at, c in enumerate(columns))
        connection.execute(f"create table base_{name} as select {listed} from range({ROWS}) r(i)")
        connection.execute(f"create view staging.{name} as select * from base_{name}")
    yield connection
    connection.close()


def values(connection: duckdb.DuckDBPyConnection, query: Query) -> list[list[object]]:
    """Return each output column as a sorted list."""
    rows = connection.execute(query.sql).fetchall()
    return [sorted((row[at] for row in rows), key=repr) for at in range(len(query.columns))]


def build(data: st.DataObject) -> tuple[Query, Generator]:
    generator = Generator(lambda choices: data.draw(st.sampled_from(choices)))
    return generator.statement(), generator


def spelled_anew(sql: str) -> str:
    parser = SqlParser()
    try:
        tree = parser.parse(sql)
        return (render_faithfully(parser, tree) if tree is not None else None) or sql
    finally:
        parser.close()


def edges(column: ColumnLineage) -> set[str] | None:
    return None if column.sources is None else {f"{source.node}.{source.column}" for source in column.sources}


def test_edges_are_those_a_query_was_built_from_or_unknown(database: duckdb.DuckDBPyConnection) -> None:
    """No edge is wrong, none is missing, hardly any is unknown; names and their order are DuckDB's."""
    known = total = 0

    @settings(max_examples=150, suppress_health_check=CHECKS)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        nonlocal known, total
        query, _ = build(data)
        columns = trace(spelled_anew(query.sql) if data.draw(st.booleans()) else query.sql, TYPES).columns
        described = [row[0] for row in database.execute(f"describe select * from ({query.sql})").fetchall()]
        assert [column.name for column in columns] == described, query.sql
        for column, expected in zip(columns, query.columns, strict=True):
            assert edges(column) in (None, expected.taint), query.sql
        known += sum(column.sources is not None for column in columns)
        total += len(columns)

    check()
    assert known > 0.98 * total > 98


@settings(max_examples=80, suppress_health_check=CHECKS)
@given(st.data())
def test_without_known_columns_edges_are_right_or_unknown_too(data: st.DataObject) -> None:
    """What cannot be told without the columns of a source is unknown, never guessed."""
    query, _ = build(data)
    columns = trace(query.sql, UNTYPED).columns
    if [column.name for column in columns] != ["*"]:
        for column, expected in zip(columns, query.columns, strict=True):
            assert column.name.lower() == expected.text.lower()
            assert edges(column) in (None, expected.taint), query.sql


def test_a_column_that_changes_with_another_has_an_edge_from_it(database: duckdb.DuckDBPyConnection) -> None:
    """Changing the values of a column that decides about no rows changes only outputs with an edge from it."""
    changes = 0

    @settings(max_examples=120, suppress_health_check=CHECKS)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        nonlocal changes
        query, generator = build(data)
        columns = trace(query.sql, TYPES).columns
        before = values(database, query)
        for name in sorted({f"{t}.{c}" for t, names in TABLES.items() for c in names} - generator.deciding):
            after = changed_values(database, query, *name.split("."))
            for column, old, new in zip(columns, before, after, strict=True):
                if old != new:
                    changes += 1
                    assert column.sources is None or name in (edges(column) or ()), query.sql

    check()
    assert changes > 10


def changed_values(connection: duckdb.DuckDBPyConnection, query: Query, table: str, column: str) -> list[list[object]]:
    """Run a query over other values of one column."""
    view = f"create or replace view staging.{table} as select"
    connection.execute(f"{view} * replace ({column} * 11 + 7 as {column}) from base_{table}")
    try:
        return values(connection, query)
    finally:
        connection.execute(f"{view} * from base_{table}")
