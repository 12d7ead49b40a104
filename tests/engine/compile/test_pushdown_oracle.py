"""Reading only what is pushed never changes a result: random queries over random rows, run both ways."""

from __future__ import annotations

import os
from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from pz_engine.compile.pushdown import analyse_reader, combine_hints
from pz_engine.duck.introspect import SqlParser

EXAMPLES = int(os.environ.get("PZ_FUZZ", "0")) or 200
PARSER = SqlParser()
CONTRACT = ("id", "a", "s", "u")
STRUCTS = st.sampled_from(["n", "x", "y", "t", "staging"])
"""Names of the column that holds a struct; some are also aliases of tables."""

ROWS = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, None]), st.sampled_from([1, 2, None]), st.sampled_from(["p", "q", None]),
              st.sampled_from([1, 2, None]), st.sampled_from([5, 6, None])),
    max_size=6,
)  # fmt: skip
OTHERS = st.lists(
    st.tuples(st.sampled_from([1, 2, 4, None]), st.sampled_from([1, 7, None]), st.sampled_from(["p", None])), max_size=5
)

SINGLE = ["staging.t", "staging.t x", "staging.t as s", "(staging.t x)", "staging.t x, unnest([1, 2]) v(w)",
          "staging.t x join lateral (select x.a + 1 as w) l on true"]  # fmt: skip
JOINED = [
    f"{left} {kind} join {right} {on}"
    for left, right in [("staging.t x", "staging.o y"), ("staging.o y", "staging.t x"), ("staging.t x", "staging.t y")]
    for kind in ("inner", "left", "right", "full")
    for on in ("on x.id = y.id", "on x.id = y.id and x.a > 1", "using (id)", "using (id, s)")
] + [
    "staging.t x semi join staging.o y on x.id = y.id", "staging.t x anti join staging.o y on x.id = y.id",
    "staging.o y anti join staging.t x on x.id = y.id", "staging.t x natural join staging.o y",
    "staging.t x cross join staging.o y", "staging.t x, staging.o y", "staging.t x positional join staging.o y",
    "staging.t x asof left join staging.o y on x.id >= y.id", "staging.t x left join (select * from staging.o) y on x.id = y.id",
    "staging.t x left join staging.o y on x.id = y.id full join staging.o w on w.id = x.id", "q y left join staging.t x on x.id = y.id",
    "staging.o y left join (staging.t x join staging.o w on x.id = w.id) on y.id = x.id", "q y join staging.t x using (id)",
]  # fmt: skip
BARE = st.sampled_from(
    [
        "id",
        "a",
        "s",
        "n",
        "u",
        "id",
        "a",
        "s",
        "u",
        "ID",
        "n.f",
        "x.f",
        "t.f",
        "staging.f",
        "t.a",
        "staging.t.s",
        "x.a",
        "s.a",
        "c",
    ]
)
QUALIFIED = st.sampled_from(
    [
        "x.id",
        "x.a",
        "x.s",
        "x.n",
        "x.u",
        "x.id",
        "x.a",
        "x.s",
        "x.u",
        "x.A",
        "x.n.f",
        "x.f",
        "y.f",
        "t.f",
        "y.id",
        "y.s",
        "y.s",
        "y.id",
        "y.b",
        "u",
        "id",
    ]
)


def conditions(column: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    odd = st.sampled_from(["exists (select 1 from staging.o)", "x.a in (select b from staging.o)", "random() >= 0",
                           "x.a > (select min(id) from staging.t)", "current_date is not null"])  # fmt: skip
    test = st.one_of(
        st.tuples(column, st.sampled_from([">", "=", "<>", "<="]), st.sampled_from(["'1'", "'2'", "'p'"])).map(
            lambda part: f"{part[0]}::varchar {part[1]} {part[2]}"
        ),
        column.map(lambda name: f"{name} is null"),
        column.map(lambda name: f"coalesce({name}::varchar, 'z') <> 'p'"),
        column.map(lambda name: f"{name}::varchar in ('p', '1')"),
        st.tuples(column, column).map(lambda pair: f"{pair[0]}::varchar = {pair[1]}::varchar"),
        st.just("true") | odd,
    )
    return st.recursive(
        test,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: f"{pair[0]} and {pair[1]}"),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]} or {pair[1]})"),
            inner.map(lambda text: f"not ({text})"),
            st.tuples(inner, inner, inner).map(lambda part: f"case when {part[0]} then {part[1]} else {part[2]} end"),
        ),
        max_leaves=4,
    )


def items(column: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    odd = st.sampled_from(["*", "x.*", "y.*", "x.* exclude (a)", "* replace (1 as a)", "c::varchar", "x", "(select x.a)",
                           "(select max(id) from staging.t)", "columns('i.*')", "rowid is not null",
                           "list_transform([1], lambda e: e + x.a)"])  # fmt: skip
    plain = st.one_of(
        column,
        column.map(lambda name: f"{name} as c"),
        st.tuples(column, st.sampled_from(["a", "id", "s", "b"])).map(lambda pair: f"{pair[0]} as {pair[1]}"),
        column.map(lambda name: f"coalesce({name}::varchar, '-')"),
        column.map(lambda name: f"rank() over (order by {name})"),
        column.map(lambda name: f"case when {name} is null then 1 end"),
        st.sampled_from(["count(*) over ()", "1"]),
    )
    return st.integers(0, 9).flatmap(lambda roll: odd if roll == 0 else plain)


def aggregates(column: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(["count(*)", "count(x)"]),
        column.map(lambda name: f"count({name})"),
        column.map(lambda name: f"count(distinct {name})"),
        st.tuples(column, conditions(column)).map(lambda pair: f"count({pair[0]}) filter ({pair[1]})"),
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    is_single = draw(st.integers(0, 2)) == 0
    source, column = draw(st.sampled_from(SINGLE if is_single else JOINED)), BARE if is_single else QUALIFIED
    where = f" where {draw(conditions(column))}" if draw(st.integers(0, 3)) else ""
    behind = ""
    if draw(st.integers(0, 3)) == 0:
        keys = draw(st.lists(column, max_size=2))
        chosen = [*keys, *draw(st.lists(aggregates(column), min_size=1, max_size=2))]
        behind = f" group by {', '.join(keys)}" if keys else ""
        behind += f" having {draw(aggregates(column))} >= 1" if draw(st.integers(0, 3)) == 0 else ""
    else:
        chosen = draw(st.lists(items(column), min_size=1, max_size=3))
        behind = draw(st.sampled_from([""] * 8 + [" order by 1", " order by c", " order by all"]))
        behind += f" qualify {draw(column)} is not null" if draw(st.integers(0, 9)) == 0 else ""
    head = draw(st.sampled_from(["select", "select", "select distinct"]))
    query = f"{head} {', '.join(chosen)} from {source}{where}{behind}"
    needs_cte = source.startswith("q ") or draw(st.integers(0, 6)) == 0
    query = f"with q as (select id, b, s from staging.o) {query}" if needs_cte else query
    return f"{query} union all select 1" if draw(st.integers(0, 20)) == 0 else query


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the tables as they are, and as they are read."""
    with duckdb.connect(config={"threads": 1}) as opened:
        opened.execute("create schema full_; create schema pruned")
        yield opened


@given(
    sql=queries(),
    rows=ROWS,
    others=OTHERS,
    cursor=st.sampled_from([None, "u", "id"]),
    has_contract=st.booleans(),
    struct=STRUCTS,
)
@settings(max_examples=EXAMPLES, deadline=None,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])  # fmt: skip
def test_pruned_reads_give_the_same_rows(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    rows: list[tuple[object, ...]],
    others: list[tuple[object, ...]],
    cursor: str | None,
    has_contract: bool,
    struct: str,
) -> None:
    """With only the pushed columns, and only the rows of the pushed predicate, every query gives what it gave."""
    values = ", ".join(str(row).replace("None", "null") for row in [*rows, (1, 1, "p", 1, 5)])
    connection.execute(
        f"create or replace table full_.t as select id::int id, a::int a, s::varchar s, {{'f': n}} {struct}, u::int u "
        f"from (values {values}) v(id, a, s, n, u)"
    )
    values = ", ".join(str(row).replace("None", "null") for row in [*others, (1, 1, "p")])
    connection.execute(f"create or replace table full_.o as select * from (values {values}) v(id, b, s)")
    try:
        expected = connection.execute(sql.replace("staging.", "full_.")).fetchall()
    except duckdb.Error:
        event("refused")
        return
    reader = analyse_reader(PARSER.parse(sql), "t", cursor, (*CONTRACT, struct) if has_contract else (), PARSER)
    hints = combine_hints([reader], cursor)
    event(f"columns {hints.columns is not None}, predicate {hints.predicate_sql is not None}")
    columns = "*" if hints.columns is None else ", ".join(hints.columns)
    kept = "" if hints.predicate_sql is None else f" where {hints.predicate_sql}"
    connection.execute(f"create or replace table pruned.t as select {columns} from full_.t{kept}")
    connection.execute("create or replace table pruned.o as from full_.o")
    found = connection.execute(sql.replace("staging.", "pruned.")).fetchall()
    assert sorted(map(repr, found)) == sorted(map(repr, expected)), hints


@pytest.mark.parametrize(
    "sql",
    [
        "select x.a from staging.t x left join staging.o y using (id) where x.s = 'p'",
        "select a from staging.t where s = 'p' and n.f = 1",
        "select x.a from staging.o y right join staging.t x on x.id = y.id where x.a = 1 and y.b = 7",
    ],
)
def test_the_oracle_meets_pushed_predicates(sql: str) -> None:
    """The test above would be empty if nothing were pushed."""
    assert analyse_reader(PARSER.parse(sql), "t", None, (*CONTRACT, "n"), PARSER).predicate_sql is not None
