"""A floor that is pushed into the read changes no result, and rows that a query cuts off are warned about."""

from __future__ import annotations

import duckdb
import pytest

from pz_engine.compile.watermark_sql import analyse_watermarks
from pz_engine.duck.introspect import SqlParser
from pz_engine.duck.quoting import quote_literal

SENTINEL = "__pz_watermark__c.o"
FLOOR = f"o.u > {quote_literal(SENTINEL)}"
O, R = "staging.o o", "staging.r r"  # noqa: E741 - the tables' names
SAME_ROWS = [
    f"select o.*, r.* from {O} join {R} on r.id = o.id where {FLOOR}",
    f"select o.*, r.* from {R} left join {O} on r.id = o.id where {FLOOR}",
    f"select o.*, r.* from {O} left join {R} on r.id = o.id where {FLOOR}",
    f"select o.*, r.* from {O} full join {R} on r.id = o.id where {FLOOR}",
    f"select o.*, r.* from {R} full join {O} using (id) where {FLOOR}",
    f"select o.* from {O} semi join {R} on r.id = o.id where {FLOOR}",
    f"select o.* from {O} anti join {R} on r.id = o.id where {FLOOR}",
    f"select r.* from {R} anti join {O} on r.id = o.id and {FLOOR}",
    f"select r.*, o.* from {R} left join {O} on r.id = o.id and {FLOOR}",
    f"select r.*, o.*, s.* from {R} left join (staging.r s left join {O} on s.id = o.id) on s.id = r.id and {FLOOR}",
    f"select r.*, o.*, s.* from ({R} left join {O} on r.id = o.id) join staging.r s on s.id = r.id and {FLOOR}",
    f"select o.*, l.* from {O}, lateral (select sum(t) as t from {R} where r.id = o.id) l where {FLOOR}",
    f"select r.*, l.* from {R}, lateral (select u from {O} where {FLOOR} and o.id = r.id order by u limit 1) l",
    f"select r.*, l.gone from {R} left join {O} on r.id = o.id, lateral (select o.u is null as gone) l where {FLOOR}",
    f"select r.* from {R} where exists (select 1 from {O} where {FLOOR} and o.id = r.id)",
    f"select r.*, (select max(u) from {O} where {FLOOR} and o.id < r.id) as m from {R}",
    f"select o.*, row_number() over (order by u) as n, sum(u) over () as s from {O} where {FLOOR}",
    f"select distinct on (id) o.* from {O} where {FLOOR} order by id, u",
    f"select count(*), id from {O} where {FLOOR} group by rollup (id) having count(*) > 0",
    f"select o.*, x from {O}, unnest([1, 2]) n(x) where {FLOOR}",
    f"select * from (select * from {O} where {FLOOR}) n asof join {R} on r.t >= n.u",
]
OTHER_ROWS = [
    f"select r.t, o.u from {R} asof join {O} on r.t <= o.u where {FLOOR}",
    f"select r.t, o.u from {R} asof left join {O} on r.t <= o.u and r.id > 0 where {FLOOR}",
    f"select r.t, o.u from {O} positional join {R} where {FLOOR}",
    f"select r.t, o.u from staging.r s join ({O} positional join {R}) on s.id = r.id where {FLOOR}",
    f"select r.t, o.u, s.t from ({R} asof join {O} on r.t <= o.u) join staging.r s on s.id = r.id and {FLOOR}",
]


@pytest.fixture(scope="module")
def parser():
    parser = SqlParser()
    yield parser
    parser.close()


def run_both_ways(sql: str) -> tuple[list[str], list[str]]:
    """Run a query over the whole table, and over only the rows above the floor."""
    found = []
    for condition in ("true", "u > 2"):
        with duckdb.connect() as connection:
            connection.execute("create schema staging")
            connection.execute(
                "create table staging.r as from (values (1, 1), (2, 2), (3, 5), (1, 5), (null, 3)) v(id, t)"
            )
            connection.execute(
                "create table staging.o as select * from (values (1, 1), (1, 3), (2, 2), (2, 5), (3, 6), (9, 7), "
                f"(null, 4), (3, null)) v(id, u) where {condition}"
            )
            rows = connection.execute(sql.replace(quote_literal(SENTINEL), "2")).fetchall()
            found.append(sorted(map(repr, rows)))
    return found[0], found[1]


@pytest.mark.parametrize("sql", SAME_ROWS)
def test_an_accepted_floor_gives_the_same_rows_when_it_is_pushed(parser, sql):
    """Reading only what is above it is what the query asked for."""
    analysis = analyse_watermarks(parser.parse(sql), {SENTINEL: "o"}, parser)
    assert (len(analysis.comparisons), analysis.violations) == (1, ())
    whole, pushed = run_both_ways(sql)
    assert whole == pushed


@pytest.mark.parametrize("sql", OTHER_ROWS)
def test_a_floor_beside_a_join_of_whole_tables_is_refused(parser, sql):
    """ASOF and POSITIONAL joins pair other rows when fewer are read."""
    whole, pushed = run_both_ways(sql)
    assert whole != pushed
    analysis = analyse_watermarks(parser.parse(sql), {SENTINEL: "o"}, parser)
    assert analysis.comparisons == ()
    assert ["ASOF or POSITIONAL" in violation.cause for violation in analysis.violations] == [True]


S, W = "{{ source('c', 'e') }}", "{{ watermark('c', 'e') }}"
CUTS = [
    f"select * from {S} where u >= {W} order by u limit 2",
    f"select * from {S} where u >= {W} offset 1",
    f"select * from {S} where u >= {W} limit 10%",
    f"select * from {S} where u >= {W} using sample 3 rows",
    f"select * from {S} tablesample 50% where u >= {W}",
    f"with q as (select * from {S} where u >= {W}), z as (select * from Q) select * from (from z limit 3)",
    f"select * from (select * from {S} where u >= {W}) x tablesample 10%",
    f"(select u from {S} where u >= {W}) union all (select 1) limit 1",
    f"from (select * from {S} where u >= {W} limit 3) order by u",
]
KEEPS = [
    f"select * from {S} where u >= {W} order by u",
    f"select * from {S} where u >= {W} and k = (select k from other order by k limit 1)",
    f"with q as (select * from other limit 3) select * from {S} e join q on q.k = e.k where e.u >= {W}",
]


BARE = "c: {connector: localfiles}\n"
IN_YAML = "c: {connector: localfiles, entities: {e: {read: {sync: {mode: incremental, cursor: u}}}}}\n"


@pytest.mark.parametrize("sql", CUTS + KEEPS)
@pytest.mark.parametrize(("connections", "value"), [(BARE, W), (IN_YAML, "1"), (BARE, "1")])
def test_rows_cut_off_an_incremental_read_are_warned_about(project, sql, connections, value):
    """With watermark() and with sync: alike; a limit elsewhere, or of a full read, is no loss."""
    project.write("connections.yml", connections).sql("p", "-- first\n" + sql.replace(W, value))
    warnings = [warning for warning in project.compile().warnings if warning.code == "PZ0233"]
    assert len(warnings) == (sql in CUTS and (connections, value) != (BARE, "1"))
    for warning in warnings:
        assert (warning.file, warning.line) == ("pipelines/p.sql", 2)
        assert "'p'" in warning.message
        assert "never read again" in warning.message
        assert "max_window" in (warning.hint or "")
