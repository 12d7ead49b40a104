"""Arrow batches in and out: shapes, widened types, exact values, complete streams."""

# ruff: noqa: DTZ001 - wall-clock times are naive on purpose

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.duck.egress import copy_source, stream_batches, write_schema
from pz_engine.duck.ingest import ROW_GROUP, BatchInsert, create_landing_table
from pz_engine.errors.exceptions import PzConnectorError, PzExecutionError

UTC = dt.timezone.utc
MOMENT = dt.datetime(2026, 3, 4, 5, 6, 7, 8, tzinfo=UTC)


def _insert(cursor, batch, schema):
    insert = BatchInsert(cursor, "staging.t", schema)
    return insert.add(batch) + insert.flush()


def _land(cursor, array, contract=None):
    batch = pa.RecordBatch.from_arrays([array], names=["c"])
    (column,) = create_landing_table(cursor, "staging.t", batch.schema, contract)
    _insert(cursor, batch, batch.schema)
    return column.type, [row[0] for row in cursor.rows("select c from staging.t")]


@pytest.mark.parametrize(
    ("array", "duck_type", "values"),
    [
        (pa.array([1, None], pa.int8()), "INTEGER", [1, None]),
        (pa.array([1], pa.uint16()), "INTEGER", [1]),
        (pa.array([2**31], pa.uint32()), "BIGINT", [2**31]),
        (pa.array([2**64 - 1], pa.uint64()), "DECIMAL(38,0)", [Decimal(2**64 - 1)]),
        (pa.array([1.5], pa.float32()), "DOUBLE", [1.5]),
        (pa.array([Decimal("1.50")], pa.decimal128(10, 2)), "DECIMAL(10,2)", [Decimal("1.50")]),
        (pa.array(["x"], pa.large_string()), "VARCHAR", ["x"]),
        (pa.array(["x"], pa.string_view()), "VARCHAR", ["x"]),
        (pa.array(["x", "y", None]).dictionary_encode(), "VARCHAR", ["x", "y", None]),
        (pa.array([True]), "BOOLEAN", [True]),
        (pa.array([dt.date(2026, 3, 4)]), "DATE", [dt.date(2026, 3, 4)]),
        (pa.array([MOMENT], pa.timestamp("us", "UTC")), "TIMESTAMP", [MOMENT.replace(tzinfo=None)]),
        (pa.array([MOMENT], pa.timestamp("us", "Asia/Kolkata")), "TIMESTAMP", [MOMENT.replace(tzinfo=None)]),
        (pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("ns")), "TIMESTAMP", [MOMENT.replace(tzinfo=None)]),
        (pa.array([1], pa.timestamp("s")), "TIMESTAMP", [dt.datetime(1970, 1, 1, 0, 0, 1)]),
    ],
)
def test_arrow_types_land_without_loss(cursor, array, duck_type, values):
    """Narrow types are widened; instants land as UTC wall-clock times."""
    assert _land(cursor, array) == (duck_type, values)


@pytest.mark.parametrize(
    ("array", "contract", "duck_type", "value"),
    [
        (pa.array([5], pa.int32()), "tinyint", "TINYINT", 5),
        (pa.array([Decimal(2**64 - 1)], pa.decimal128(38, 0)), "ubigint", "UBIGINT", 2**64 - 1),
        (pa.array([Decimal(-(10**30))], pa.decimal128(38, 0)), "hugeint", "HUGEINT", -(10**30)),
        (pa.array(["05:06"]), "time", "TIME", dt.time(5, 6)),
        (pa.array([MOMENT], pa.timestamp("us", "UTC")), "timestamptz", "TIMESTAMP WITH TIME ZONE", MOMENT),
        (pa.array([0.1], pa.float64()), "float", "FLOAT", pytest.approx(0.1)),
    ],
)
def test_contract_gives_the_landing_type(cursor, array, contract, duck_type, value):
    """Types without an Arrow twin arrive as a wider one and are cast on insert."""
    assert _land(cursor, array, {"c": contract}) == (duck_type, [value])


def test_value_beyond_its_landing_type_is_refused(cursor):
    """Naming column and type, not the value."""
    with pytest.raises(PzConnectorError, match="column 'c' holds a value that TINYINT cannot take") as caught:
        _land(cursor, pa.array([300], pa.int32()), {"c": "tinyint"})
    assert "300" not in str(caught.value)


def test_nanoseconds_are_refused_not_cut(cursor):
    """On the way in and on the way out."""
    with pytest.raises(PzConnectorError, match="column 'c'"):
        _land(cursor, pa.array([1], pa.timestamp("ns")))
    cursor.execute("create table staging.n as select timestamp_ns '2026-01-01 00:00:00.000000001' as c")
    schema = write_schema(cursor, "staging.n")
    with pytest.raises(PzConnectorError, match="finer than microseconds"):
        list(stream_batches(cursor, "staging.n", schema, batch_bytes=1 << 20))


@pytest.mark.parametrize("array", [pa.array([[1]]), pa.array([b"x"]), pa.array([1], pa.duration("s"))])
def test_other_arrow_types_are_refused(cursor, array):
    """By name, with a way out."""
    with pytest.raises(PzConnectorError, match="column 'c'") as caught:
        _land(cursor, array)
    assert caught.value.hint


@pytest.mark.parametrize("expression", ["[1]", "time '01:00'", "'x'::blob", "{'a': 1}", "interval 1 day"])
def test_other_duck_types_do_not_leave(cursor, expression):
    """The cast to make is named."""
    cursor.execute(f"create table staging.t as select {expression} as c")
    with pytest.raises(PzConnectorError, match="column 'c'") as caught:
        write_schema(cursor, "staging.t")
    assert "varchar" in caught.value.hint


def test_batch_of_another_shape_lands_nothing(cursor):
    """Binding is by position, so both shapes are listed instead."""
    announced = pa.schema([("a", pa.int32()), ("b", pa.string())])
    create_landing_table(cursor, "staging.t", announced, None)
    for batch in (
        pa.RecordBatch.from_pydict({"a": pa.array([1], pa.int32())}),
        pa.RecordBatch.from_pydict({"b": pa.array(["x"]), "a": pa.array([1], pa.int32())}),
    ):
        with pytest.raises(PzConnectorError, match="was announced"):
            _insert(cursor, batch, announced)
    assert cursor.count("staging.t") == 0


def test_names_of_a_batch_do_not_matter(cursor):
    """Only types and positions do, and repeated names are no problem."""
    announced = pa.schema([("a", pa.int32()), ("b", pa.int32())])
    create_landing_table(cursor, "staging.t", announced, None)
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.int32()), pa.array([2], pa.int32())], names=["x", "x"])
    assert _insert(cursor, batch, announced) == 1
    assert cursor.rows("select a, b from staging.t") == [(1, 2)]


def test_batches_land_in_whole_row_groups(cursor):
    """Rows wait for others up to a size, keep their order, and the last ones land at the end."""
    schema = pa.schema([("a", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
    create_landing_table(cursor, "staging.t", schema, None)
    insert = BatchInsert(cursor, "staging.t", schema)
    landed, start = [], 0
    for rows in (50_000, 72_880, 60_000, 200_000, 0, 1):
        values = pa.array(range(start, start + rows), pa.int64())
        landed.append(
            insert.add(pa.RecordBatch.from_arrays([values, values.cast(schema.field(1).type)], schema=schema))
        )
        start += rows
    assert landed == [0, ROW_GROUP, 0, 2 * ROW_GROUP, 0, 0]
    assert insert.flush() == start - 3 * ROW_GROUP
    assert insert.flush() == 0
    assert cursor.rows("select count(*), bool_and(a = rowid and epoch_us(t) = a) from staging.t") == [(start, True)]


def test_large_batches_do_not_wait(cursor):
    """Neither does one that makes those that wait too large."""
    schema = pa.schema([("a", pa.string())])
    create_landing_table(cursor, "staging.t", schema, None)
    insert = BatchInsert(cursor, "staging.t", schema, most_waiting_bytes=1000)
    batch = pa.RecordBatch.from_arrays([pa.array(["x" * 600])], schema=schema)
    assert [insert.add(batch) for _ in range(3)] == [0, 2, 0]
    assert insert.flush() == 1


def test_a_time_zone_of_a_dictionary_or_a_second_is_kept(cursor):
    """Every way a moment may arrive lands as its time in UTC."""
    second = pa.array([60], pa.timestamp("s", "Asia/Kolkata"))
    assert _land(cursor, second) == ("TIMESTAMP", [dt.datetime(1970, 1, 1, 0, 1)])
    coded = pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "Asia/Kolkata")).dictionary_encode()
    assert _land(cursor, coded) == ("TIMESTAMP", [MOMENT.replace(tzinfo=None), None, MOMENT.replace(tzinfo=None)])
    moments = pa.array([MOMENT, None], pa.timestamp("us", "Asia/Kolkata"))
    assert _land(cursor, moments, {"c": "timestamptz"}) == ("TIMESTAMP WITH TIME ZONE", [MOMENT, None])


def test_stream_is_complete_and_bounded(cursor):
    """Every row leaves once, in batches near the asked size."""
    cursor.execute("create table staging.t as select i, repeat('x', 200) as t from range(20000) r(i)")
    schema = write_schema(cursor, "staging.t")
    batches = list(stream_batches(cursor, "staging.t", schema, batch_bytes=200_000, expected_rows=20_000))
    assert sum(batch.num_rows for batch in batches) == 20_000
    assert all(batch.schema.equals(schema) for batch in batches)
    assert max(batch.nbytes for batch in batches) < 800_000


def test_ordered_stream_can_skip(cursor):
    """Resumable sinks get a repeatable order."""
    cursor.execute("create table staging.t as select (i * 7919) % 1000 as k from range(1000) r(i)")
    schema = write_schema(cursor, "staging.t")
    batches = stream_batches(cursor, "staging.t", schema, batch_bytes=1 << 20, is_ordered=True, skip_rows=990)
    assert pa.Table.from_batches(batches).column("k").to_pylist() == list(range(990, 1000))


def test_disturbed_stream_fails_instead_of_ending_early(cursor):
    """DuckDB ends it without a word when its cursor runs anything else."""
    cursor.execute("create table staging.t as select i from range(300000) r(i)")
    schema = write_schema(cursor, "staging.t")
    batches = stream_batches(cursor, "staging.t", schema, batch_bytes=1 << 16, expected_rows=300_000)
    next(batches)
    cursor.execute("select 1")
    with pytest.raises(PzExecutionError, match="of 300000 rows"):
        list(batches)


def test_cancelled_stream_raises(session):
    """Before its statement runs."""
    cancel = CancelToken()
    with session.cursor(cancel) as cursor:
        cursor.execute("create table staging.t as select 1 as i")
        schema = write_schema(cursor, "staging.t")
        cancel.set()
        with pytest.raises(Cancelled):
            next(stream_batches(cursor, "staging.t", schema, batch_bytes=1 << 16))


def test_wide_integers_become_decimals_where_asked(cursor):
    """DuckDB would write them to parquet as doubles."""
    cursor.execute("create table staging.t as select 1::hugeint as h, 2::uhugeint as u, 3 as i")
    source = copy_source(cursor, "staging.t", decimal_hugeint=True)
    assert [column.type for column in cursor.describe(f"select * from {source}")] == [
        "DECIMAL(38,0)",
        "DECIMAL(38,0)",
        "INTEGER",
    ]
    assert copy_source(cursor, "staging.t", decimal_hugeint=False) == "staging.t"
    cursor.execute("create table staging.p as select 3 as i")
    assert copy_source(cursor, "staging.p", decimal_hugeint=True) == "staging.p"
