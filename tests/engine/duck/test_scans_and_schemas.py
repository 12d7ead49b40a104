"""Scan counts, schema policies, inference lints, rejects and extensions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pz_engine.connectors.api import ReadSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.duck import extensions
from pz_engine.duck.checked_scan import resolve_scan
from pz_engine.duck.inference_lints import ambiguous_dates, lossy_integer_columns
from pz_engine.duck.rejects import forget_rejects, land_rejects
from pz_engine.duck.scan_counts import ScanCount, collect, enable
from pz_engine.duck.schema_policies import reconcile, table_columns, widened_type
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import SchemaPolicy


def test_counts_are_what_each_scan_delivered(cursor, tmp_path):
    """Tables and files of one statement are told apart."""
    (tmp_path / "a.csv").write_text("k\n1\n2\n3\n")
    cursor.execute("create table staging.t as select i as k from range(10) r(i)")
    enable(cursor)
    scan = f"read_csv('{tmp_path}/a.csv', header=true, auto_detect=false, columns={{'k': 'INTEGER'}})"
    cursor.execute(f"create table staging.u as select k from staging.t union all select k from {scan}")
    counts = {count.operator: count for count in collect(cursor)}
    assert counts["SEQ_SCAN"].table == "pz_run.staging.t"
    assert counts["SEQ_SCAN"].rows == 10
    assert counts["READ_CSV"].rows == 3
    assert counts["READ_CSV"].reads_files([tmp_path / "a.csv"])


@pytest.mark.parametrize(
    ("listed", "total", "files", "same"),
    [
        (("/d/b.csv", "/d/a.csv"), 2, ["/d/a.csv", "/d/b.csv"], True),
        (("/d/a", "b.csv"), 1, ["/d/a, b.csv"], True),
        (("/d/a.csv",), 1, ["/d/a.csv", "/d/b.csv"], False),
        (("/d/a.csv", "..."), 9, [f"/d/{name}.csv" for name in "abcdefghi"], True),
        (("/d/a.csv", "..."), 9, [f"/d/{name}.csv" for name in "abcdefgh"], False),
        (("/d/z.csv", "..."), 9, [f"/d/{name}.csv" for name in "abcdefghi"], False),
        ((), 0, ["/d/a.csv"], False),
    ],
)
def test_files_of_a_profile_are_compared_as_a_set(listed, total, files, same):
    """Order, separators in names and DuckDB's short list are allowed for."""
    count = ScanCount("READ_CSV", listed, None, 1, total)
    assert count.reads_files([Path(name) for name in files]) is same


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("INTEGER", "BIGINT", "BIGINT"),
        ("BIGINT", "SMALLINT", "BIGINT"),
        ("UINTEGER", "INTEGER", "BIGINT"),
        ("TINYINT", "UBIGINT", "HUGEINT"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("INTEGER", "DOUBLE", "DOUBLE"),
        ("BIGINT", "DOUBLE", None),
        ("DECIMAL(10,2)", "DECIMAL(6,4)", "DECIMAL(12,4)"),
        ("DECIMAL(10,2)", "BIGINT", "DECIMAL(21,2)"),
        ("DECIMAL(38,2)", "DECIMAL(38,9)", None),
        ("HUGEINT", "DECIMAL(10,2)", None),
        ("VARCHAR", "INTEGER", None),
        ("DATE", "TIMESTAMP", None),
    ],
)
def test_widening_holds_every_value_of_both(left, right, expected):
    """Or there is no such type."""
    assert widened_type(left, right) == expected
    assert widened_type(right, left) == expected


def test_reconcile_leaves_a_missing_target_to_the_writer(cursor):
    """Creating it is the write's business."""
    reconcile(cursor, '"staging"."none"', "select 1 as k", SchemaPolicy.FAIL_ON_CHANGE)
    assert table_columns(cursor, '"staging"."none"') == ()


def test_reconcile_alters_within_the_transaction(cursor):
    """A failed write takes its alterations back."""
    cursor.execute("create table staging.t as select 1::integer as k")
    with pytest.raises(RuntimeError), cursor.transaction():  # noqa: PT012 - the rollback is what is tested
        reconcile(cursor, '"staging"."t"', "select 1::bigint as k, 'x' as \"new one\"", SchemaPolicy.EVOLVE)
        assert [tuple(column) for column in table_columns(cursor, '"staging"."t"')] == [
            ("k", "BIGINT"),
            ("new one", "VARCHAR"),
        ]
        raise RuntimeError
    assert [tuple(column) for column in table_columns(cursor, '"staging"."t"')] == [("k", "INTEGER")]


@pytest.mark.parametrize(
    ("values", "is_lossy"),
    [
        ("(9007199254740994), (1), (null)", True),
        ("(9007199254740992), (1)", False),
        ("(9007199254740994), (1.5)", False),
        ("(9007199254740994::double), ('nan'::double)", False),
        ("(1e300), (1)", False),
        ("(null)", False),
    ],
)
def test_lossy_integers_are_whole_and_large(cursor, values, is_lossy):
    """Fractions, infinities and magnitudes beyond any integer type are not ids."""
    cursor.execute(f"create table staging.t as select c::double as c from (values {values}) v(c)")
    assert lossy_integer_columns(cursor, "staging.t") == (("c",) if is_lossy else ())


@pytest.mark.parametrize(("day", "is_ambiguous"), [("2026-03-12", True), ("2026-03-13", False), (None, False)])
def test_ambiguous_dates_have_no_day_above_twelve(cursor, day, is_ambiguous):
    """And at least one value."""
    value = "null" if day is None else f"'{day}'"
    cursor.execute(f"create table staging.t as select {value}::date as d")
    assert bool(ambiguous_dates(cursor, "staging.t", {"d": "%d/%m/%Y"})) is is_ambiguous
    assert ambiguous_dates(cursor, "staging.t", {}) == ()


def _reject_scan(tmp_path, content):
    (tmp_path / "r.csv").write_bytes(content)
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    return source.native_scan(ReadSpec("files", "r", {"ragged": "reject"}))


def test_rejected_rows_are_counted_and_kept(cursor, tmp_path):
    """Each once, with file, line and text, and the others land."""
    scan = _reject_scan(tmp_path, b"a,b\n1,2\n3\n4,5,6,7\n8,9\n")
    resolved = resolve_scan(cursor, scan, None)
    forget_rejects(cursor)
    cursor.execute(f"create table staging.t as {resolved.sql}")
    assert land_rejects(cursor, 'staging."t__rejects"') == 2
    assert cursor.rows("select line, row_text from staging.t__rejects") == [(3, "3"), (4, "4,5,6,7")]
    assert cursor.count("staging.t") == 2
    forget_rejects(cursor)
    assert land_rejects(cursor, 'staging."t__rejects"') == 0


def test_only_ragged_rows_may_be_rejected(cursor, tmp_path):
    """Bytes that are no text fail the load all the same."""
    scan = _reject_scan(tmp_path, b"a,b\n1,2\n3,\xff\n")
    with pytest.raises(PzConnectorError, match=r"file 'r\.csv', line 3 holds bytes that are not text"):
        resolve_scan(cursor, scan, {"a": "varchar", "b": "varchar"})


def test_built_in_extensions_are_always_there(cursor):
    """Nothing is loaded or downloaded for them."""
    assert extensions.is_available("parquet")
    extensions.load_extension(cursor, "icu", allow_download=False)


def test_missing_extension_names_the_extra(cursor, monkeypatch, tmp_path):
    """The line to type, instead of a download."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(extensions, "_packaged_file", lambda _: None)
    assert not extensions.is_available("sqlite_scanner")
    with pytest.raises(PzConnectorError) as caught:
        extensions.load_extension(cursor, "sqlite_scanner", allow_download=False)
    assert caught.value.code == "PZ0311"
    assert caught.value.hint == 'pip install "pz-dagster[sqlite]"'
