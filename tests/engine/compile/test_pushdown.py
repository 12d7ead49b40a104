"""Read hints: what is pushed, and that pushing it changes no result."""

from __future__ import annotations

import itertools

import duckdb
import pytest

from pz_engine.compile.dag import PushedHints
from pz_engine.compile.pushdown import ReaderHints, analyse_reader, combine_hints
from pz_engine.duck.introspect import SqlParser

CONTRACT = ("id", "a", "s", "n")


@pytest.fixture(scope="module")
def parser():
    parser = SqlParser()
    yield parser
    parser.close()


def hints(parser, sql, cursor=None, contract=()):
    found = analyse_reader(parser.parse(sql), "t", cursor, contract, parser)
    return (sorted(found.columns) if found.columns is not None else None), found.predicate_sql


@pytest.mark.parametrize(
    ("sql", "columns", "predicate"),
    [
        ("select id, a from staging.t where a >= 10", ["a", "id"], "(a >= 10)"),
        ("select * from staging.t where a >= 10 and lower(s) = 'x'", None, "(a >= 10) AND (lower(s) = 'x')"),
        ("select id from staging.t where a = 1 or b = 2", ["a", "b", "id"], "((a = 1) OR (b = 2))"),
        ("select count(*) from staging.t", [], None),
        ("select s, sum(a) as a from staging.t group by s having sum(a) > 1 order by a", ["a", "s"], None),
        ("select distinct on (s) id from staging.t order by b limit 3", ["b", "id", "s"], None),
        ("select id, row_number() over (partition by s order by b) n from staging.t qualify n = 1", None, None),
        ("select id from staging.t where u > '__pz_watermark__c.e' and a = 1", ["a", "id", "u"], "(a = 1)"),
        ("select id from staging.t where a > random()", ["a", "id"], None),
        ("select id from staging.t where a in (select id from staging.u)", None, None),
        ("select id, (select max(id) from staging.u) from staging.t where a = 1", None, "(a = 1)"),
        ("select id from staging.t tablesample 50% where a = 1", ["a", "id"], None),
        ("with q as (select * from staging.t) select * from q", None, None),
        ("with q as (select * from staging.t) select t.id from staging.t, q", None, None),
        ("select id from staging.t union all select 1", None, None),
        ("select a + 1 as c, c * 2 as d from staging.t", None, None),
        ("select id from staging.t join staging.u using (id)", None, None),
        ("select id from staging.t natural join staging.u", None, None),
        ("select columns('a.*') from staging.t", None, None),
        ("select x.* exclude (a) from staging.t x", None, None),
        ("select id from staging.t, staging.u", None, None),
        ("select list_transform([1], lambda e: e + a) from staging.t", None, None),
        ("select id from staging.t where a = current_date", None, None),
        ("select rowid, id from staging.t", None, None),
        ("select id, ID from staging.t where a = 1", None, "(a = 1)"),
        ("select a as id from staging.t where id = 1", None, None),
        ("select t from staging.t", None, None),
        ("select x.id from staging.t x(id, a)", None, None),
        ("pivot staging.t on a", None, None),
        ("select 1", None, None),
    ],
)
def test_only_what_is_certain_is_pushed(parser, sql, columns, predicate):
    """Columns and conditions are pushed when every reference is clear, and nothing otherwise."""
    assert hints(parser, sql) == (columns, predicate)


@pytest.mark.parametrize(
    ("sql", "columns", "predicate"),
    [
        (
            "select x.id, y.b from staging.t x join staging.u y on x.id = y.id where x.a = 1 and y.b = 2",
            ["a", "id"],
            "(a = 1)",
        ),
        ("select x.id, y.a from staging.t x, staging.t y where x.id = y.id and x.a = 1", ["a", "id"], None),
        ("select x.id from staging.u y right join staging.t x on x.id = y.id where x.a = 1", ["a", "id"], "(a = 1)"),
        ("select x.id from staging.t x full join staging.u y on x.id = y.id where x.a = 1", ["a", "id"], None),
        ("select x.id from staging.t x asof join staging.u y on x.id >= y.id where x.a = 1", ["a", "id"], None),
        ("select x.id from staging.t x positional join staging.u y where x.a = 1", ["a", "id"], None),
        ("select x.id from staging.u y left join staging.t x on x.id = y.id where x.a = 1", ["a", "id"], None),
        ("select y.*, x.id from staging.u y, staging.t x", ["id"], None),
        ("select staging.t.id from staging.t", ["id"], None),
        ("select x.n.f from staging.t x where x.n.f = 1", ["n"], None),
        ("select x.id from staging.t x left join staging.u y on x.id = y.id where x.a = 1", ["a", "id"], "(a = 1)"),
        ("select y.n, x.id from staging.u y, staging.t x where y.s = 's'", ["id"], None),
        ("select n.f, x.id from staging.u n, staging.t x", None, None),
        ("select x.f, x.id from staging.t x", None, None),
    ],
)
def test_a_qualifier_needs_a_contract(parser, sql, columns, predicate):
    """Without one, the table may have a struct that is called like an alias, so nothing is pushed."""
    assert hints(parser, sql, contract=CONTRACT) == (columns, predicate)
    assert hints(parser, sql) == (None, None)


def test_a_struct_called_like_the_table_is_not_pushed_as_its_field(project):
    """The item of each line of a JSON file has a price; the file itself has none."""
    project.write("connections.yml", "f: {connector: localfiles, root: data, entities: {j: {read: {path: j.json}}}}\n")
    project.sql("p", "select item.price as p from {{ source('f', 'j') }} as item where item.price > 1")
    assert project.compile().graph.by_name["src_f__j"].hints.is_empty


def test_a_contract_settles_names(parser):
    """With a contract, names take its spelling, and an alias is told from a column."""
    assert hints(parser, "select ID from staging.t where a = 1", contract=("Id", "a")) == (["Id", "a"], "(a = 1)")
    assert hints(parser, "select a + 1 as c, c * 2 as d from staging.t", contract=("a", "c")) == (["a", "c"], None)


def test_conditions_on_the_cursor_are_not_pushed(parser):
    """The cursor's own bound is the engine's."""
    assert hints(parser, "select id from staging.t where u > 5 and a = 1", cursor="u") == (["a", "id", "u"], "(a = 1)")


@pytest.mark.parametrize(
    ("readers", "cursor", "expected"),
    [
        ([ReaderHints(frozenset("ab")), ReaderHints(frozenset("bc"))], None, PushedHints(("a", "b", "c"))),
        ([ReaderHints(frozenset("ab"), "p"), ReaderHints(frozenset("bc"))], None, PushedHints(("a", "b", "c"))),
        ([ReaderHints(frozenset("ab"), "p")], None, PushedHints(("a", "b"), "p")),
        ([ReaderHints(None, "p")], None, PushedHints(None, "p")),
        ([ReaderHints(frozenset("ab")), ReaderHints()], "u", PushedHints()),
        ([ReaderHints(frozenset("b"))], "a", PushedHints(("a", "b"))),
        ([ReaderHints(frozenset("b"))], "B", PushedHints(("b",))),
        ([ReaderHints(frozenset())], None, PushedHints()),
        ([ReaderHints(frozenset("a")), ReaderHints(frozenset("A"))], None, PushedHints()),
    ],
)
def test_readers_are_united(readers, cursor, expected):
    """Columns are the union, all as soon as one reader needs all; a predicate needs a single reader."""
    assert combine_hints(readers, cursor) == expected


def test_two_readers_of_one_entity_share_one_node(project):
    """The union reaches the node; the filter of one reader alone is not pushed."""
    project.write("connections.yml", "c: {connector: x}\n")
    project.sql("p", "select a, b from {{ source('c', 'e') }} where a = 1").sql(
        "q", "select b, d from {{ source('c', 'e') }}"
    )
    assert project.compile().graph.by_name["src_c__e"].hints == PushedHints(("a", "b", "d"))
    project.sql("q", "select 1")
    assert project.compile().graph.by_name["src_c__e"].hints == PushedHints(("a", "b"), "(a = 1)")


def test_captured_changes_are_never_pruned(project):
    """A cdc entity gets no hints."""
    project.write("connections.yml", "c:\n  connector: x\n  entities:\n    e: {read: {sync: {mode: cdc}}}\n")
    project.sql("p", "select a from {{ source('c', 'e') }} where a = 1")
    assert project.compile().graph.by_name["src_c__e"].hints.is_empty


QUERIES = [
    f"select {select} from {tables} where {condition}"
    for tables, select, condition in itertools.product(
        [
            "staging.t x",
            "staging.t x join staging.u y on x.id = y.id",
            "staging.t x left join staging.u y on x.id = y.id",
            "staging.u y left join staging.t x on x.id = y.id",
            "staging.u y right join staging.t x on x.id = y.id and x.a > 1",
            "staging.t x full join staging.u y on x.id = y.id",
            "staging.t x semi join staging.u y on x.id = y.id",
            "staging.t x anti join staging.u y on x.id = y.id",
            "staging.u y anti join staging.t x on x.id = y.id",
            "staging.t x cross join staging.u y",
            "staging.t x asof left join staging.u y on x.id >= y.id",
        ],
        ["count(*)", "*"],
        ["x.a = 1", "x.a is null", "x.a is null or x.s = 'p'", "not (x.a > 1)", "coalesce(x.a, 1) = 1 and x.s <> 'p'"],
    )
    if "u y anti join staging.t" not in tables
] + ["select y.id from staging.u y anti join staging.t x on x.id = y.id and x.a = 1"]


@pytest.mark.parametrize("sql", QUERIES)
def test_pruned_reads_give_the_same_rows(parser, sql):
    """Reading only what is pushed changes no row, with NULLs and every kind of join."""
    columns, predicate = hints(parser, sql, contract=CONTRACT[:3])
    with duckdb.connect() as connection:
        connection.execute("create schema full_; create schema pruned")
        rows = "(1, 1, 'p'), (2, 2, 'q'), (3, null, null), (null, 1, 'q'), (4, 1, null), (2, null, 'p')"
        for schema in ("full_", "pruned"):
            connection.execute(f"create table {schema}.t as select * from (values {rows}) v(id, a, s)")
            connection.execute(
                f"create table {schema}.u as select * from (values (1, 7), (2, null), (9, 1), (null, 2)) v(id, b)"
            )
        read = f"select {', '.join(columns) if columns else '*'} from full_.t"
        connection.execute(f"create or replace table pruned.t as {read}" + (f" where {predicate}" if predicate else ""))
        everything = connection.execute(f"{sql.replace('staging', 'full_')} order by all").fetchall()
        assert connection.execute(f"{sql.replace('staging', 'pruned')} order by all").fetchall() == everything
