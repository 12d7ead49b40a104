"""A type is inferred only when every value seen means exactly a value of it."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pz_engine.duck.checked_casts import TextType, checked_cast, fits
from pz_engine.duck.csv_inference import (
    _DATE_FORMATS,
    _TIMESTAMP_FORMATS,
    SAMPLE_ROWS,
    _format_looks,
    infer_types,
)
from pz_engine.duck.quoting import quote_literal

RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUES = st.one_of(
    st.none(),
    st.integers(min_value=-(10**20), max_value=10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.dates().map(str),
    st.dates().map(lambda day: day.strftime("%d/%m/%Y")),
    st.datetimes().map(lambda moment: moment.isoformat(sep=" ")),
    st.sampled_from(("true", "false", "007", "+49 30", "1.2.2024", "10:30", "N/A", "-", "1_000")),
)


def _infer(cursor, values, *, whole_file=False):
    rows = ", ".join("(null)" if value is None else f"({quote_literal(value)})" for value in values)
    cursor.execute(f"create or replace table staging.texts as select c::varchar as c from (values {rows}) v(c)")
    return infer_types(cursor, "staging.texts", ["c"], whole_file=whole_file)["c"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-2", None], "BIGINT"),
        (["1", "12345678901234567891"], "HUGEINT"),
        (["1", "2.5"], "DOUBLE"),
        (["1", "007"], "VARCHAR"),
        (["+49301234"], "VARCHAR"),
        (["true", "FALSE"], "BOOLEAN"),
        (["1", "0"], "BIGINT"),
        (["2026-03-04"], "DATE"),
        (["2026-03-04", "2026-03-04 05:06:07"], "TIMESTAMP"),
        (["2026-03-04T05:06:07Z"], "TIMESTAMP WITH TIME ZONE"),
        (["2026-03-04T05:06:07Z", "2026-03-04 05:06:07"], "VARCHAR"),
        (["05:06", "05:06:07.5"], "TIME"),
        (["2026-03-04 05:06:07.1234567"], "VARCHAR"),
        (["13/04/2026", "04/13/2026"], "VARCHAR"),
        (["1_000"], "VARCHAR"),
        (["nan"], "VARCHAR"),
        ([None], "VARCHAR"),
        ([""], "VARCHAR"),
    ],
)
@pytest.mark.parametrize("whole_file", [False, True])
def test_types_of_small_columns(cursor, values, expected, whole_file):
    """Doubt means text."""
    assert _infer(cursor, values, whole_file=whole_file).type == expected


@RELAXED
@given(values=st.lists(VALUES, min_size=1, max_size=12), whole_file=st.booleans())
def test_every_value_seen_fits_the_chosen_type(cursor, values, whole_file):
    """So landing the sample can never fail or change anything."""
    target = _infer(cursor, values, whole_file=whole_file)
    misfits = cursor.scalar(f"select count(*) from staging.texts where c is not null and not ({fits('c', target)})")
    assert misfits == 0


@RELAXED
@given(
    moment=st.datetimes(),
    date=st.sampled_from([a + m + b + m + "%Y" for m in "/-." for a, b in (("%d", "%m"), ("%m", "%d"))]),
    clock=st.sampled_from(("", " %H:%M:%S", " %H:%M", " %H:%M:%S.%f", " %I:%M:%S %p", " %I:%M %p")),
    is_short=st.booleans(),
)
def test_first_look_rules_out_no_format_that_fits(cursor, moment, date, clock, is_short):
    """Whatever `strptime` takes and the checked cast lets through is still asked about."""
    text = moment.strftime((date + clock).replace("%Y", f"{moment.year:04}"))
    if is_short:
        text = re.sub(r"\b0([0-9])", r"\1", text).lower()
    for candidate in (*_DATE_FORMATS, *_TIMESTAMP_FORMATS):
        if cursor.scalar(f"select {fits('x', candidate)} from (select ? as x)", [text]):
            assert _format_looks(candidate.format).fullmatch(text), candidate.format


def test_wide_files_are_inferred_and_landed_in_little_time(cursor):
    """Time grows with the number of columns, not with its square, whatever is in them."""
    cells = ("13/04/2026 05:06:07", "1.25", "2.5e-3", "2026-03-04 05:06:07", "12", "text")

    def seconds(width):
        columns = ", ".join(f"'{cells[number % len(cells)]}' as c{number}" for number in range(width))
        cursor.execute(f"create or replace table staging.texts as select {columns} from range(50)")
        names = [f"c{number}" for number in range(width)]
        started = time.process_time()
        types = infer_types(cursor, "staging.texts", names, whole_file=False)
        casts = ", ".join(checked_cast(name, types[name], name) for name in names)
        cursor.execute(f"create or replace table staging.typed as select {casts} from staging.texts")
        return time.process_time() - started

    assert seconds(1200) < 8 * max(seconds(300), 0.2)


@RELAXED
@given(values=st.lists(st.integers(min_value=-(2**63), max_value=2**63 - 1), min_size=1, max_size=5))
def test_integers_are_inferred_as_such(cursor, values):
    """Plain whole numbers are never doubles or text."""
    assert _infer(cursor, [str(value) for value in values]) == TextType("BIGINT", is_inferred=True)


def test_values_behind_the_sample_count_only_when_the_whole_file_is_asked_for(cursor):
    """The sample is bounded; the checked cast finds what it missed."""
    cursor.execute(
        "create table staging.texts as select case when i = "
        f"{SAMPLE_ROWS + 5} then '2.5' else '1' end as c from range({SAMPLE_ROWS + 10}) r(i)"
    )
    assert infer_types(cursor, "staging.texts", ["c"], whole_file=False)["c"].type == "BIGINT"
    assert infer_types(cursor, "staging.texts", ["c"], whole_file=True)["c"].type == "DOUBLE"


def test_column_without_values_in_the_sample_gets_its_type_from_the_whole_file(cursor):
    """When something else made the load read all of it; else it is text."""
    cursor.execute(
        f"create table staging.texts as select case when i > {SAMPLE_ROWS} then '7' end as c from range({SAMPLE_ROWS + 9}) r(i)"
    )
    assert infer_types(cursor, "staging.texts", ["c"], whole_file=False)["c"].type == "VARCHAR"
    assert infer_types(cursor, "staging.texts", ["c"], whole_file=True)["c"].type == "BIGINT"
