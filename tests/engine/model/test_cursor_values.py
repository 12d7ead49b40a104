"""Canonical cursor values: spelling, comparing, literals, windows."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.model.contract_types import CONTRACT_TYPE_NAMES, cursor_type_of_contract, duck_type_of
from pz_engine.model.cursor_values import (
    CURSOR_TYPES,
    add_window,
    canonicalize,
    compare,
    cursor_type_of,
    duck_literal,
    typed_null,
    window_is_valid,
)


@pytest.mark.parametrize(
    ("cursor_type", "text", "expected"),
    [
        ("int", "7", "7"),
        ("int", "+7", "7"),
        ("bigint", "-0", "0"),
        ("bigint", "9" * 40, "9" * 40),
        ("bigint", "1_000", None),
        ("bigint", " 1", None),
        ("bigint", "", None),
        ("bigint", "٣", None),
        ("decimal", "12.50", "12.50"),
        ("decimal", "+12.50", "12.50"),
        ("decimal", "-0.0", "0.0"),
        ("decimal", "1e3", None),
        ("date", "2026-02-28", "2026-02-28"),
        ("date", "2026-02-30", None),
        ("date", "2026-2-3", None),
        ("timestamp", "2026-01-02", "2026-01-02T00:00:00.000000"),
        ("timestamp", "2026-01-02T03:04:05", "2026-01-02T03:04:05.000000"),
        ("timestamp", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500000"),
        ("timestamp", "2026-01-02Z", None),
        ("timestamp", "2026-01-02T03:04:05+00:00", None),
        ("timestamp", "2026-01-02T25:00:00", None),
        ("timestamp", "2026-01-02 03:04:05", None),
        ("varchar", "x", None),
    ],
)
def test_texts_have_one_canonical_spelling(cursor_type, text, expected):
    """Each accepted text becomes its one spelling, and everything else is refused."""
    assert canonicalize(cursor_type, text) == expected


@given(st.integers())
def test_integers_survive_and_canonical_is_stable(number):
    """An integer of any size keeps its value, and a canonical text is its own canonical form."""
    text = canonicalize("bigint", str(number))
    assert int(text) == number
    assert canonicalize("bigint", text) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6), st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_compare_by_value(left, right):
    """Decimals compare exactly, whatever their scale."""
    a, b = format(left, "f"), format(right, "f")
    expected = (Decimal(a) > Decimal(b)) - (Decimal(a) < Decimal(b))
    assert compare("decimal", canonicalize("decimal", a), canonicalize("decimal", b)) == expected


@given(st.datetimes(), st.datetimes())
def test_timestamps_compare_as_instants(left, right):
    """Canonical timestamps sort like the instants they name."""
    a = canonicalize("timestamp", left.isoformat(timespec="microseconds"))
    b = canonicalize("timestamp", right.isoformat(timespec="microseconds"))
    assert compare("timestamp", a, b) == (left > right) - (left < right)


@pytest.mark.parametrize(
    ("cursor_type", "value"),
    [
        ("int", "-5"),
        ("bigint", "9223372036854775807"),
        ("decimal", "12.50"),
        ("date", "2026-01-31"),
        ("timestamp", "2026-01-31T23:59:59.999999"),
    ],
)
def test_literals_are_read_by_duckdb_as_the_same_value(cursor_type, value):
    """A literal has the cursor's type, and DuckDB reads the very value."""
    landed, text = duckdb.sql(
        f"select typeof(v), v::varchar from (select {duck_literal(cursor_type, value)} v)"
    ).fetchone()
    assert cursor_type_of(landed) in {cursor_type, "bigint" if cursor_type == "bigint" else cursor_type}
    assert text.replace(" ", "T") == value


def test_typed_nulls_bind_in_arithmetic():
    """A typed NULL can be subtracted from, which a bare one cannot."""
    assert duckdb.sql(f"select {typed_null('timestamp')} - interval 2 hour").fetchone() == (None,)
    for cursor_type in CURSOR_TYPES:
        assert duckdb.sql(f"select {typed_null(cursor_type)}").fetchone() == (None,)


@pytest.mark.parametrize(
    ("duckdb_type", "expected"),
    [
        ("INTEGER", "int"),
        ("BIGINT", "bigint"),
        ("DECIMAL(18,2)", "decimal"),
        ("DATE", "date"),
        ("TIMESTAMP", "timestamp"),
        ("TIMESTAMP WITH TIME ZONE", "timestamp"),
        ("TIMESTAMP_NS", "timestamp"),
        ("SMALLINT", None),
        ("HUGEINT", None),
        ("VARCHAR", None),
        ("DOUBLE", None),
    ],
)
def test_landed_types_map_to_cursor_types(duckdb_type, expected):
    """Only types that order exactly can be cursors."""
    assert cursor_type_of(duckdb_type) == expected


@pytest.mark.parametrize(
    ("cursor_type", "window", "expected"),
    [
        ("int", "10", True),
        ("int", "0", False),
        ("int", "+5", False),
        ("int", "1d", False),
        ("decimal", "3", True),
        ("decimal", "1.5", False),
        ("date", "2d", True),
        ("date", "48h", True),
        ("date", "36h", False),
        ("timestamp", "90s", True),
        ("timestamp", "0s", False),
        ("timestamp", "5", False),
    ],
)
def test_windows_fit_their_cursor(cursor_type, window, expected):
    """A window is a positive whole number for numbers and a duration for instants; days for dates."""
    assert window_is_valid(cursor_type, window) is expected


@given(st.dates(max_value=date(9000, 1, 1)), st.integers(1, 1000))
def test_date_windows_add_days(start, days):
    """A window of days moves a date by as many."""
    assert add_window("date", start.isoformat(), f"{days}d") == (start + timedelta(days=days)).isoformat()


@given(st.datetimes(max_value=datetime(9000, 1, 1)), st.integers(1, 10**9))  # noqa: DTZ001 - cursors carry no zone
def test_timestamp_windows_add_their_duration(start, milliseconds):
    """A window moves an instant by its duration, to the microsecond."""
    value = start.isoformat(timespec="microseconds")
    expected = (start + timedelta(milliseconds=milliseconds)).isoformat(timespec="microseconds")
    assert add_window("timestamp", value, f"{milliseconds}ms") == expected


def test_windows_end_at_the_last_instant():
    """A window that leaves the calendar ends at its last value."""
    assert add_window("date", "9999-12-30", "10d") == "9999-12-31"
    assert add_window("timestamp", "9999-12-31T00:00:00.000000", "10d") == "9999-12-31T23:59:59.999999"
    assert add_window("bigint", "9" * 40, "1") == "1" + "0" * 40


def test_every_contract_type_exists_in_duckdb():
    """Each contract type names a type that DuckDB can create."""
    for name in CONTRACT_TYPE_NAMES:
        duck_type = duck_type_of(name.replace("p,s", "18,4"))
        assert duckdb.sql(f"select typeof(null::{duck_type})").fetchone()[0] in {duck_type, '"NULL"'}


@pytest.mark.parametrize("name", ["INT", "integer", "decimal(39,2)", "decimal(2,3)", "decimal(x,y)", "text", ""])
def test_other_type_names_are_refused(name):
    """Names are lowercase and exact, and a decimal's scale fits its precision."""
    assert duck_type_of(name) is None
    assert cursor_type_of_contract(name) is None
