"""Lambdas whose parameters are called like tables, columns, structs and aliases, against what DuckDB computes."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from lineage_projects import trace

TYPES = {
    "e": {"a": "INTEGER", "b": "INTEGER", "s": "STRUCT(a INTEGER, b INTEGER)", "l": "INTEGER[]"},
    "o": {"b": "INTEGER", "t": "STRUCT(a INTEGER, z INTEGER)"},
}
FIRST = {"a": "5", "b": "7", "s": "{'a': 50, 'b': 60}", "l": "[1, 2]", "t": "{'a': 70, 'z': 80}"}
OTHER = {"a": "105", "b": "107", "s": "{'a': 150, 'b': 160}", "l": "[101, 102]", "t": "{'a': 170, 'z': 180}"}

NAMES = st.sampled_from(["t", "T", "s", "S", "a", "A", "b", "l", "e", "o", "q", "z", "staging", "memory"])
FIELDS = st.sampled_from(["a", "b", "A", "z", "s.a", "e.a", "staging.e.a", "t.a", "a.b"])
FROM = ["staging.e t", "staging.e", "staging.e s", "staging.e t, staging.o", "staging.o t join staging.e q on true",
        "(select a as z, s as q, l from staging.e) t", "staging.e z semi join staging.o on true"]  # fmt: skip
LISTS = st.sampled_from(["[1]", "l", "[{'a': 1, 'b': 2}]", "[s]", "[{'s': {'a': 1}, 'e': {'a': 2}}]", "[a, b]"])


@st.composite
def terms(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    name = draw(st.sampled_from(names) | NAMES)
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return name
    return f"{name}['a']" if kind == 1 else f"{name}.{draw(FIELDS)}"


@st.composite
def lambdas(draw: st.DrawFn, outer: tuple[str, ...] = ()) -> str:
    first, second = draw(NAMES), draw(NAMES)
    kind = draw(st.integers(0, 5))
    names = (*outer, first, second) if kind in (2, 5) else (*outer, first)
    body = draw(terms(names))
    if draw(st.integers(0, 2)) == 0:
        body = f"coalesce({body}::varchar, {draw(terms(names))}::varchar)"
    elif not outer and draw(st.integers(0, 3)) == 0:
        body = draw(lambdas(names))
    values = draw(LISTS)
    if kind == 0:
        return f"list_transform({values}, {first} -> {body})"
    if kind == 1:
        return f"list_transform({values}, lambda {first}: {body})"
    if kind == 2:
        return f"list_transform({values}, ({first}, {second}) -> {body})"
    if kind == 3:
        return f"[{body} for {first} in {values}]"
    if kind == 4:
        return f"list_filter({values}, {first} -> {body}::varchar < '2')"
    return f"list_reduce([1, 2, 3], ({first}, {second}) -> {body}::int)"


@st.composite
def queries(draw: st.DrawFn) -> str:
    item = draw(lambdas())
    if draw(st.integers(0, 3)) == 0:
        item = f"(select {item} from staging.o)" if draw(st.booleans()) else f"(select {item})"
    before = f"{draw(terms(('a', 't')))} as {draw(NAMES)}, " if draw(st.integers(0, 2)) == 0 else ""
    return f"select {before}{item} as w from {draw(st.sampled_from(FROM))}"


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A schema of views of one row each."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("create schema staging")
        for table in TYPES:
            show(connection, table)
        yield connection


def show(connection: duckdb.DuckDBPyConnection, table: str, changed: str | None = None) -> None:
    """Fill a table; one column may have other values."""
    values = ", ".join(
        f"{(OTHER if name == changed else FIRST)[name]}::{kind} as {name}" for name, kind in TYPES[table].items()
    )
    connection.execute(f"create or replace view staging.{table} as select {values}")


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(sql=queries())
def test_an_output_that_changes_with_a_column_has_its_edge_or_is_unknown(
    database: duckdb.DuckDBPyConnection, sql: str
) -> None:
    """Whatever DuckDB takes a name for, lineage tells no other column, and none too few."""
    try:
        before = database.execute(sql).fetchall()
    except duckdb.Error:
        event("refused")
        return
    described = [row[0] for row in database.execute(f"describe {sql}").fetchall()]
    typed, untyped = trace(sql, dict(TYPES)).columns, trace(sql, dict.fromkeys(TYPES)).columns
    assert [column.name for column in typed] == described
    event(f"known {typed[-1].sources is not None}")
    for table, columns in TYPES.items():
        for name in columns:
            show(database, table, name)
            after = database.execute(sql).fetchall()
            show(database, table)
            for lineage in (typed, untyped):
                for at, column in enumerate(lineage if lineage[0].name != "*" else ()):
                    if before[0][at] != after[0][at] and column.sources is not None:
                        assert (table, name) in {(s.node, s.column.lower()) for s in column.sources}, sql


def test_parameters_of_their_own_name_stay_known() -> None:
    """Only a doubt makes a column unknown."""
    sql = "select list_transform(l, p -> p + a) as w, list_transform([s], p -> p.b) as v, [x * 2 for x in l] as u"
    found = [column.sources for column in trace(f"{sql} from staging.e t", dict(TYPES)).columns]
    assert [sorted(source.column for source in sources or ()) for sources in found] == [["a", "l"], ["s"], ["l"]]
