"""Text becomes a value only when it means exactly that value."""

# ruff: noqa: DTZ001 - wall-clock times are naive on purpose

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pz_engine.duck.checked_casts import CastFailure, TextType, checked_cast, failed_cast, fits, narrowed_float, recast
from pz_engine.duck.statement_error import DuckStatementError

TYPES = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UBIGINT", "HUGEINT", "DECIMAL(10,2)", "DECIMAL(38,9)", "DATE", "TIME",
    "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "DOUBLE", "FLOAT", "BOOLEAN", "UUID",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(alphabet="0123456789+-.eE_ :/TZ,", max_size=24),
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.datetimes().map(lambda moment: moment.isoformat(sep=" ")),
    st.dates().map(lambda day: day.strftime("%d/%m/%Y")),
    st.times().map(str),
)
RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _cast(cursor, text, target):
    return cursor.rows(f"select {checked_cast('x', target, 'c')}, {fits('x', target)} from (select ? as x)", [text])[0]


@RELAXED
@given(text=TEXTS, name=st.sampled_from(TYPES), is_inferred=st.booleans())
def test_cast_agrees_with_its_own_test(cursor, text, name, is_inferred):
    """A text passes `fits` exactly when the cast yields a value; otherwise the marker names column and type."""
    target = TextType(name, is_inferred=is_inferred)
    ok = cursor.scalar(f"select {fits('x', target)} from (select ? as x)", [text])
    if ok:
        assert _cast(cursor, text, target)[0] is not None
        return
    with pytest.raises(DuckStatementError) as caught:
        cursor.rows(f"select {checked_cast('x', target, 'c')} from (select ? as x)", [text])
    failure = failed_cast(caught.value.raw)
    assert failure is not None
    assert (failure.column, failure.type) == ("c", name)


@RELAXED
@given(value=st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_every_integer_survives(cursor, value):
    """Whatever is written plainly arrives."""
    for is_inferred in (False, True):
        assert _cast(cursor, str(value), TextType("BIGINT", is_inferred=is_inferred)) == (value, True)


@RELAXED
@given(text=st.from_regex(r"-?(0|[1-9][0-9]{0,7})(\.[0-9]{0,4})?", fullmatch=True))
def test_decimals_pass_exactly_when_nothing_is_cut(cursor, text):
    """As many fraction digits as the scale has, or fewer."""
    digits = text.partition(".")[2]
    if len(digits) <= 2:
        assert _cast(cursor, text, TextType("DECIMAL(10,2)")) == (Decimal(text), True)
    else:
        assert cursor.scalar(f"select {fits('x', TextType('DECIMAL(10,2)'))} from (select ? as x)", [text]) is False


@RELAXED
@given(
    moment=st.datetimes(min_value=dt.datetime(1, 1, 1), max_value=dt.datetime(9999, 12, 31)),
    separator=st.sampled_from(" T"),
    zone=st.sampled_from(("", "Z", "+00", "+00:00", " UTC")),
)
def test_iso_timestamps_survive(cursor, moment, separator, zone):
    """With either separator and every spelling of UTC."""
    text = moment.isoformat(sep=separator) + zone
    assert _cast(cursor, text, TextType("TIMESTAMP")) == (moment, True)


@pytest.mark.parametrize(
    ("text", "date_format", "value"),
    [
        ("03/04/2026", "%d/%m/%Y", dt.date(2026, 4, 3)),
        ("3.4.2026", "%d.%m.%Y", dt.date(2026, 4, 3)),
        ("03/04/2026", "%m/%d/%Y", dt.date(2026, 3, 4)),
        ("03/04/26", "%d/%m/%Y", None),
        ("03/04/2026 10:00", "%d/%m/%Y", None),
    ],
)
def test_formats_demand_the_whole_text_and_four_digits_of_the_year(cursor, text, date_format, value):
    """`strptime` alone would take a year of two digits as the first century."""
    target = TextType("DATE", date_format)
    assert cursor.scalar(f"select {fits('x', target)} from (select ? as x)", [text]) is (value is not None)
    if value is not None:
        assert _cast(cursor, text, target)[0] == value


@pytest.mark.parametrize("text", ["007", "+7", "7.0", "1e3", "1_000", "0x1F"])
def test_inferred_integers_are_stricter(cursor, text):
    """Nobody asked for a number, so a spelling it would lose keeps the column text."""
    assert (
        cursor.scalar(f"select {fits('x', TextType('BIGINT', is_inferred=True))} from (select ? as x)", [text]) is False
    )


@pytest.mark.parametrize(
    ("text", "passes"), [("1.5", True), ("1234567890.123456789", False), ("123456789012345678", True)]
)
def test_json_decimals_of_more_digits_than_a_double_are_refused(cursor, text, passes):
    """DuckDB's json reader has already rounded them."""
    target = TextType("DECIMAL(38,9)", is_json=True)
    assert cursor.scalar(f"select {fits('x', target)} from (select ? as x)", [text]) is passes


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        ("7::bigint", "BIGINT", "INTEGER", 7),
        ("2.0::double", "DOUBLE", "INTEGER", 2),
        ("date '2026-01-02'", "DATE", "TIMESTAMP", dt.datetime(2026, 1, 2)),
        ("1.50::decimal(10,4)", "DECIMAL(10,4)", "DECIMAL(10,2)", Decimal("1.50")),
        ("'7'", "VARCHAR", "INTEGER", 7),
        ("7", "INTEGER", "VARCHAR", "7"),
        ("null::bigint", "BIGINT", "INTEGER", None),
    ],
)
def test_recast_keeps_values(cursor, value, source, target, expected):
    """Typed sources are cast to their contract when nothing is lost."""
    assert cursor.scalar(f"select {recast('x', source, target, 'c')} from (select {value} as x)") == expected


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        ("2.5::double", "DOUBLE", "INTEGER"),
        ("2147483648::bigint", "BIGINT", "INTEGER"),
        ("timestamp '2026-01-02 03:00:00'", "TIMESTAMP", "DATE"),
        ("1.505::decimal(10,4)", "DECIMAL(10,4)", "DECIMAL(10,2)"),
        ("9007199254740993::bigint", "BIGINT", "DOUBLE"),
    ],
)
def test_recast_refuses_losses(cursor, value, source, target):
    """With the marker."""
    with pytest.raises(DuckStatementError) as caught:
        cursor.rows(f"select {recast('x', source, target, 'c')} from (select {value} as x)")
    assert failed_cast(caught.value.raw).column == "c"


@RELAXED
@given(
    text=st.one_of(
        st.floats(allow_nan=False).map(repr),
        st.from_regex(r"-?[0-9]{1,45}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    ),
    name=st.sampled_from(("DOUBLE", "FLOAT")),
)
def test_numbers_neither_overflow_nor_vanish(cursor, text, name):
    """A double passes exactly when it is finite, and zero only for a text of zeros."""
    value = cursor.scalar(f"select cast(? as {name})", [text])
    holds = "inf" in text or (math.isfinite(value) and (value != 0 or Decimal(text) == 0))
    assert cursor.scalar(f"select {fits('x', TextType(name))} from (select ? as x)", [text]) is holds


@pytest.mark.parametrize(("value", "expected"), [(0.1, True), (0.0, True), (None, True), (1e39, False), (1e-50, False)])
def test_typed_doubles_are_rounded_to_floats_in_range_only(cursor, value, expected):
    """Batches of other connectors pass here."""
    query = f"select {narrowed_float('x', 'c')} from (select ?::double as x)"
    if expected:
        assert cursor.rows(query, [value]) == cursor.rows("select ?::float", [value])
        return
    with pytest.raises(DuckStatementError) as caught:
        cursor.rows(query, [value])
    assert failed_cast(caught.value.raw) == CastFailure("c", "FLOAT")


def test_marker_survives_odd_column_names(cursor):
    """Quotes and bars are part of the name."""
    name = 'it\'s |odd| "x"'
    with pytest.raises(DuckStatementError) as caught:
        cursor.rows(f"select {checked_cast('x', TextType('INTEGER'), name)} from (select 'a' as x)")
    assert failed_cast(caught.value.raw).column == name
