"""Dated folders: the fewest patterns of a window, files per folder, exact rows."""

# ruff: noqa: DTZ001 - wall-clock times are naive on purpose

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pz_engine.connectors.api import ReadSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.connectors.toolkit.date_paths import cover, moment_of, strftime_format
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy
from pz_engine.testing.connector_suite_driver import ConnectorHarness, land_natively, landed_rows, write_batches

TEMPLATES = ("{yyyy}", "{yyyy}/{MM}", "y={yyyy}/m={MM}/d={dd}", "{yy}{MM}{dd}/{HH}.csv", "{yyyy}/{MM}/{dd}/{HH}/{mm}")
MOMENTS = st.datetimes(min_value=dt.datetime(1999, 12, 1), max_value=dt.datetime(2004, 3, 31))


def test_window_is_covered_by_hours_a_day_and_hours():
    """14 hours, one day, 13 hours."""
    patterns = cover("{yyyy}/{MM}/{dd}/{HH}*.parquet", dt.datetime(2026, 7, 11, 10), dt.datetime(2026, 7, 13, 12))
    assert len(patterns) == 28
    assert patterns[0] == "2026/07/11/10*.parquet"
    assert patterns[14] == "2026/07/12/*.parquet"
    assert patterns[-1] == "2026/07/13/12*.parquet"


@settings(max_examples=100, deadline=None)
@given(
    template=st.sampled_from(TEMPLATES),
    start=MOMENTS,
    length=st.timedeltas(min_value=dt.timedelta(0), max_value=dt.timedelta(days=40)),
    share=st.floats(min_value=0, max_value=1),
)
def test_every_moment_of_the_window_is_covered(template, start, length, share):
    """And no bucket is named twice."""
    import fnmatch

    patterns = cover(template, start, start + length)
    path = (start + length * share).strftime(strftime_format(template))
    assert any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
    assert len(set(patterns)) == len(patterns)


@pytest.mark.parametrize(
    ("text", "moment"), [("2026-07-11T10:20:30.5", dt.datetime(2026, 7, 11, 10, 20, 30)), ("17", None)]
)
def test_only_dates_and_timestamps_prune(text, moment):
    """A numeric cursor says nothing about folders."""
    assert moment_of(text) == moment


@pytest.fixture
def hours(put):
    """A file per hour of two days, one hour missing."""
    for day in (11, 12):
        for hour in range(24):
            if (day, hour) != (11, 5):
                put(f"in/2026/07/{day}/{hour:02}.csv", f"at\n2026-07-{day} {hour:02}:30:00\n")
    put("in/2026/07/11/notes.txt", "x")


def _source(tmp_path):
    return find_connector("localfiles").open_source({"base_dir": str(tmp_path)})


@pytest.mark.usefixtures("hours")
def test_only_folders_of_the_window_are_read(cursor, tmp_path):
    """One empty hour does not fail the others, and the rows are cut exactly."""
    options = {"path": "in/{yyyy}/{MM}/{dd}/{HH}.csv", "columns": {"at": "timestamp"}}
    bounds = {"cursor": "at", "watermark": "2026-07-11T04:00:00.000000", "upper_bound": "2026-07-11T07:15:00.000000"}
    scan = _source(tmp_path).native_scan(ReadSpec("files", "x", options, **bounds))
    assert [path.name for path in scan.files] == ["04.csv", "06.csv", "07.csv"]
    harness = ConnectorHarness(
        find_connector("localfiles"), {"base_dir": str(tmp_path)}, read_options=lambda _: {"path": options["path"]}
    )
    land_natively(cursor, harness, "x", {"at": "timestamp"}, **bounds)
    assert [row[0].hour for row in landed_rows(cursor)] == [4, 6]


@pytest.mark.usefixtures("hours")
@pytest.mark.parametrize("extra", [{}, {"watermark": "2026-07-11T04:00:00.000000"}])
def test_open_windows_read_every_folder(tmp_path, extra):
    """Nothing is left out without both ends."""
    spec = ReadSpec("files", "x", {"path": "in/{yyyy}/{MM}/{dd}/{HH}.csv"}, cursor="at", **extra)
    assert len(_source(tmp_path).native_scan(spec).files) == 47


@pytest.mark.usefixtures("hours")
def test_rows_without_a_cursor_may_be_anywhere(tmp_path):
    """When they are wanted, no folder is left out."""
    bounds = {"watermark": "2026-07-11T04:00:00.000000", "upper_bound": "2026-07-11T05:00:00.000000"}
    options = {"path": "in/{yyyy}/{MM}/{dd}/{HH}.csv"}
    spec = ReadSpec("files", "x", options, cursor="at", null_cursor=True, **bounds)
    assert len(_source(tmp_path).native_scan(spec).files) == 47


def test_window_without_any_folder_is_zero_rows_under_a_contract(land, tmp_path):
    """And a permanent error naming the window without one."""
    bounds = {"cursor": "at", "watermark": "2026-07-11T04:00:00", "upper_bound": "2026-07-11T05:00:00"}
    options = {"path": "in/{yyyy}/{MM}.csv"}
    assert (
        _source(tmp_path)
        .native_scan(ReadSpec("files", "x", options, **bounds))
        .nothing_to_read.message.endswith("between 2026-07-11T04:00:00 and 2026-07-11T05:00:00 matches no file")
    )
    declared = {**options, "columns": {"at": "timestamp"}}
    assert _source(tmp_path).native_scan(ReadSpec("files", "x", declared, **bounds)).nothing_to_read is None


def _harness(tmp_path, **options):
    return ConnectorHarness(find_connector("localfiles"), {"base_dir": str(tmp_path)}, write_options=options)


@pytest.mark.parametrize("kind", ["timestamp", "date", "timestamptz"])
@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_rows_land_in_the_folder_of_their_date(cursor, tmp_path, kind, name):
    """One file per folder; writing again replaces them; other folders stay."""
    harness = _harness(tmp_path, path="out/{yyyy}/{MM}", partition_by="d", format=name)
    query = "select i, (timestamp '2026-01-30' + to_days(i::integer))::{} as d from range({}) r(i)".format
    assert write_batches(cursor, harness, "sales", query(kind, 60), Strategy.REPLACE, batch_bytes=1000) == 60
    assert write_batches(cursor, harness, "sales", query(kind, 2), Strategy.REPLACE) == 2
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert files == [f"out/2026/{month}/sales.{name}" for month in ("01", "02", "03")]
    reader = f"read_{name}"
    assert cursor.scalar(f"select count(*) from {reader}('{tmp_path}/out/2026/01/sales.{name}')") == 2
    assert cursor.scalar(f"select count(*) from {reader}('{tmp_path}/out/2026/02/sales.{name}')") == 28


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
@pytest.mark.parametrize(
    ("moment", "folder"),
    [
        ("2026-01-02 23:59:59.5", "2026/01/02"),
        ("1969-12-31 23:59:59.999999", "1969/12/31"),
        ("1970-01-01 00:00:00.000001", "1970/01/01"),
        ("0999-03-01 00:00:00.25", "0999/03/01"),
    ],
)
def test_a_fraction_of_a_second_belongs_to_the_second_it_is_in(cursor, tmp_path, kind, moment, folder):
    """The folder is that of the moment's day, and the value is written whole."""
    harness = _harness(tmp_path, path="out/{yyyy}/{MM}/{dd}", partition_by="d", format="csv")
    write_batches(cursor, harness, "sales", f"select '{moment}'::{kind} as d", Strategy.REPLACE)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert str(file.relative_to(tmp_path)) == f"out/{folder}/sales.csv"
    assert file.read_text().splitlines()[1].removesuffix("+00") == moment


@pytest.mark.parametrize(
    ("options", "query", "problem"),
    [
        ({"partition_by": "d"}, "select timestamp 'infinity' as d", "outside the years 1 to 9999 in 1 rows"),
        ({"partition_by": "d"}, "select timestamp '-infinity' as d", "outside the years 1 to 9999 in 1 rows"),
        ({"partition_by": "d"}, "select date '10000-01-01' as d", "outside the years 1 to 9999 in 1 rows"),
        ({"partition_by": "d"}, "select 1 as k, null::date as d", "'d' is NULL in 1 rows"),
        ({"partition_by": "k"}, "select 1 as k", "'k' is int32"),
        ({"partition_by": "x"}, "select 1 as k", "'x' is not written"),
        ({"partition_by": ["a", "b"]}, "select date '2026-01-01' as a, 1 as b", "takes one column"),
        ({"partition_by": "d", "path": "out"}, "select date '2026-01-01' as d", "takes one column"),
    ],
)
def test_bad_partition_columns_are_refused(cursor, tmp_path, options, query, problem):
    """Before or while writing, and nothing stays behind."""
    harness = _harness(tmp_path, **{"path": "out/{yyyy}", **options})
    with pytest.raises(PzConnectorError, match=problem):
        write_batches(cursor, harness, "sales", query, Strategy.REPLACE)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_partitioned_write_is_not_native_and_admits_what_an_abort_may_leave(cursor, tmp_path):
    """Earlier folders cannot be taken back once publishing has begun."""
    import pyarrow as pa

    from pz_engine.base.cancellation import CancelToken

    harness = _harness(tmp_path, path="out/{yyyy}", partition_by="d")
    sink = harness.connector.open_sink(harness.config)
    spec = harness.write_spec("sales", Strategy.REPLACE)
    assert sink.native_copy(spec) is None
    sink.begin_write(spec, pa.schema([("d", pa.date32())]), CancelToken()).close()
    assert sink.abort_semantics == "best_effort"
