"""`watermark()`: which comparisons are floors, what the guard does, and how entities fold."""

from __future__ import annotations

import duckdb
import pytest

from pz_engine.compile.watermark_sql import substitute_watermarks
from pz_engine.model.cursor_values import typed_null

W = "{{ watermark('c', 'e') }}"
S = "{{ source('c', 'e') }}"
SENTINEL = "__pz_watermark__c.e"


@pytest.fixture
def base(project):
    return project.write("connections.yml", "c: {connector: localfiles}\n")


def incremental_of(project):
    return project.compile().graph.by_name["src_c__e"].incremental


@pytest.mark.parametrize(
    ("sql", "is_inclusive"),
    [
        (f"select * from {S} where u > {W}", False),
        (f"select * from {S} where u >= {W}", True),
        (f"select * from {S} where {W} < u", False),
        (f"select * from {S} where {W} <= u", True),
        (f"select * from {S} where U >= {W} - interval 2 hour and k = 1", True),
        (f"select * from {S} where u > date_trunc('day', {W})", False),
        (f"select * from {S} where u > coalesce({W}, TIMESTAMP '2026-01-01')", False),
        (f"select * from {S} where u > {W}::timestamp", False),
        (f"select a.x from {S} a join b on a.id = b.id and a.u > {W}", False),
        (f"select a.x from b left join {S} a on a.id = b.id and a.u > {W}", False),
        (f"select x from b where exists (select 1 from {S} i where i.u > {W})", False),
        (f"with q as (select * from {S} where u > {W}) select * from q", False),
        (f"select x from {S} where u > {W} union all select 1", False),
        (f"select * from (values (1)) v(a), (select * from {S} where u > {W})", False),
    ],
)
def test_floors_are_recognised(base, sql, is_inclusive):
    """A column of the entity above a deterministic value is a floor wherever it filters for certain."""
    base.sql("p", sql)
    found = incremental_of(base)
    assert found.cursor.lower() == "u"
    assert found.is_declared_in_sql
    assert [(floor.pipeline, floor.is_inclusive, floor.keeps_null_cursor) for floor in found.floors] == [
        ("p", is_inclusive, False)
    ]
    assert SENTINEL in found.floors[0].value_sql


@pytest.mark.parametrize(
    "sql",
    [
        f"select * from {S} where u = {W}",
        f"select * from {S} where u <> {W}",
        f"select * from {S} where u in ({W})",
        f"select * from {S} where u between {W} and 5",
        f"select * from {S} where u like {W}",
        f"select * from {S} where u < {W}",
        f"select * from {S} where {W} >= u",
        f"select * from {S} where u > {W} and u <= {W}",
        f"select * from {S} where lower(u) > {W}",
        f"select * from {S} where u::date > {W}",
        f"select * from {S} where u > greatest({W}, k)",
        f"select * from {S} where u > least({W}, now())",
        f"select * from {S} where u > least({W}, current_date)",
        f"select * from {S} where u > {W} + random()",
        f"select * from {S} where u > no_such_function({W})",
        f"select * from {S} where u > age({W})",
        f"select * from {S} where u > (select {W})",
        f"select * from {S} where not (u > {W})",
        f"select * from {S} where not (u > {W} and k = 1)",
        f"select * from {S} where u > {W} or k = 1",
        f"select * from {S} where u > {W} or k is null",
        f"select * from {S}, t where u > {W}",
        f"select * from {S} a where z.u > {W}",
        f"select * from {S} a where a.u.f > {W}",
        f"select * from {S} a, staging.q b where b.u > {W}",
        f"select * from {S} a left join t on a.id = t.id and a.u > {W}",
        f"select * from {S} a(u, v) where a.u > {W}",
        f"select u > {W} from {S}",
        f"select count(*) filter (where u > {W}) from {S}",
        f"select u, count(*) from {S} group by u having u > {W}",
        f"select * from {S} qualify u > {W}",
        f"select case when u > {W} then 1 end from {S}",
        f"select * from {S} where {W} > {W}",
        f"select * from {S} where u > '2020' and {W} is not null",
        f"pivot (select * from {S} where u > {W}) on k",
        f"select * from {S} wher u > {W}",
        "select * from {{ source('c', 'other') }} where u > {{ watermark('c', 'e') }}",
        f'select "{W}" from {S}',
        f"select $${W}$$ from {S}",
        f'select u as "{W}" from {S} where u > {W}',
        f"select * from {S} where u > {W} and k < (select max(k) from {S} where u = {W})",
        f"select * from {S} where u > '{W}'",
    ],
)
def test_everything_else_is_refused(base, sql):
    """Whatever could lose rows, or cannot be understood, is PZ0224 in the pipeline's file."""
    base.sql("p", f"-- first\n{sql}")
    assert base.found() == [("PZ0224", "pipelines/p.sql:2")]


def test_or_null_is_a_floor_that_keeps_rows_without_a_cursor(base):
    """`u > v OR u IS NULL` is recognised in either order, and says that nothing may be pushed."""
    for sql in (f"select * from {S} where u > {W} or u is null", f"select * from {S} a where a.u is null or a.u > {W}"):
        base.sql("p", sql)
        assert incremental_of(base).floors[0].keeps_null_cursor


def test_a_comment_is_no_use(base):
    """A call in a comment declares nothing."""
    base.sql("p", f"select * from {S} -- where u > {W}\n")
    compiled = base.compile()
    assert compiled.graph.by_name["src_c__e"].incremental is None
    assert compiled.graph.by_name["p"].watermarks == ()


@pytest.mark.parametrize("kind", ["timestamp", "bigint"])
@pytest.mark.parametrize("tail", ["", " or u is null"])
def test_the_guard_passes_every_row_on_a_first_run(base, kind, tail):
    """With NULL every row passes, rows without a cursor included; with a value the filter is the author's."""
    value = "u >= {w}" if kind == "bigint" else "u >= {w} - interval 1 hour"
    base.sql("p", f"select k from {S} where {value.format(w=W)}{tail} order by k")
    node = base.compile().graph.by_name["p"]
    assert [use.sentinel for use in node.watermarks] == [SENTINEL]
    with duckdb.connect() as connection:
        connection.execute("create schema staging")
        rows = "(1, 10), (2, 20), (3, null)" if kind == "bigint" else "(1, '2026-01-01'), (2, '2026-01-03'), (3, null)"
        connection.execute(f"create table staging.src_c__e as select k, u::{kind} u from (values {rows}) v(k, u)")
        first = substitute_watermarks(node.sql, {SENTINEL: typed_null(kind)})
        assert connection.execute(first).fetchall() == [(1,), (2,), (3,)]
        literal = "15" if kind == "bigint" else "TIMESTAMP '2026-01-02'"
        later = substitute_watermarks(node.sql, {SENTINEL: literal})
        assert connection.execute(later).fetchall() == ([(2,), (3,)] if tail else [(2,)])


def test_an_entity_may_be_called_like_the_start_of_another(base):
    """The name of one sentinel may begin like that of another."""
    longer = "{{ source('c', 'e2') }} b where b.u > {{ watermark('c', 'e2') }}"
    base.sql("p", f"select a.k from {S} a, {longer} and a.u > {W}")
    compiled = base.compile()
    assert {use.entity for use in compiled.graph.by_name["p"].watermarks} == {"e", "e2"}


def test_two_entities_in_one_pipeline_have_their_own_floors(base):
    """A join of two increments is legal."""
    base.sql(
        "p",
        f"select * from {S} a join {{{{ source('c', 'f') }}}} b on a.id = b.id where a.u > {W} and b.v >= {{{{ watermark('c', 'f') }}}}",
    )
    compiled = base.compile()
    assert compiled.graph.by_name["src_c__e"].incremental.cursor == "u"
    assert compiled.graph.by_name["src_c__f"].incremental.cursor == "v"


def test_readers_that_all_filter_compile(base):
    """Two pipelines with the same floor are fine, and both floors are kept."""
    base.sql("p", f"select * from {S} where u > {W}").sql("q", f"select * from {S} where u >= {W}")
    assert [floor.pipeline for floor in incremental_of(base).floors] == ["p", "q"]


def test_a_reader_without_the_filter_is_named(base):
    """Each reader that lacks the filter is one PZ0226 at its source() call."""
    base.sql("p", f"select * from {S} where u > {W}").sql("q", f"select *\nfrom {S}").sql("r", f"select * from {S}")
    assert base.found() == [("PZ0226", "pipelines/q.sql:2"), ("PZ0226", "pipelines/r.sql:1")]


def test_a_reader_whose_filter_is_refused_is_not_named_twice(base):
    """One root cause gives one problem."""
    base.sql("p", f"select * from {S} where u > {W}").sql("q", f"select * from {S} where u = {W}")
    assert base.found() == [("PZ0224", "pipelines/q.sql:1")]


def test_cursors_must_agree(base):
    """Two columns in one pipeline are PZ0231, across pipelines PZ0225."""
    base.sql("p", f"select * from {S} where u > {W} and v > {W}")
    assert [code for code, _ in base.found()] == ["PZ0231"]
    base.sql("p", f"select * from {S} where u > {W}").sql("q", f"select * from {S} where v > {W}")
    assert [code for code, _ in base.found()] == ["PZ0225"]


@pytest.mark.parametrize(
    ("read", "code"),
    [
        ("sync: {mode: auto}", "PZ0315"),
        ("sync: {mode: cdc}", "PZ0315"),
        ("sync: {mode: incremental, cursor: u}", "PZ0225"),
        ("{columns: {u: date}, sync: {mode: incremental, cursor: u, max_window: 1d, initial: 2026-01-01}}", "PZ0225"),
        ("columns: {id: bigint}", "PZ0227"),
        ("columns: {u: varchar}", "PZ0227"),
    ],
)
def test_yaml_and_sql_must_not_contradict(project, read, code):
    """An explicit sync block, or a contract without a usable cursor, is refused in the pipeline's file."""
    project.write("connections.yml", f"c:\n  connector: x\n  entities:\n    e:\n      read:\n        {read}\n")
    project.sql("p", f"select * from {S} where u > {W}")
    assert project.found() == [(code, "pipelines/p.sql:1")]


def test_the_contract_types_the_cursor(project):
    """The contract's spelling and type are taken."""
    project.write(
        "connections.yml", "c:\n  connector: x\n  entities:\n    e:\n      read: {columns: {Changed: timestamp}}\n"
    )
    project.sql("p", f"select Changed from {S} where changed >= {W}")
    found = incremental_of(project)
    assert (found.cursor, found.cursor_type) == ("Changed", "timestamp")


def test_ephemerals_bring_their_filter_to_each_consumer(base):
    """A filter inside an ephemeral counts for everyone who inlines it; a mistake there is reported once."""
    base.sql("e", f"select * from {S} where u >= {W}").sidecar("e", "materialization: ephemeral\n")
    base.sql("p", "select * from {{ ref('e') }}").sql("q", "select * from {{ ref('e') }}")
    assert [floor.pipeline for floor in incremental_of(base).floors] == ["p", "q"]
    base.sql("e", f"select *\nfrom {S} where u = {W}")
    assert base.found() == [("PZ0224", "pipelines/e.sql:2")]


def test_notes_tell_what_a_filter_leaves_out(base):
    """An open floor, and a second unfiltered reading in the same pipeline, are notes."""
    base.sql("p", f"select a.x from {S} a, {S} b where a.u > {W}")
    notes = base.compile().notes
    assert len(notes) == 2
    assert "with >" in notes[1] or "with >" in notes[0]
    assert any("2 times" in note for note in notes)
