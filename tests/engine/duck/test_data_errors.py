"""What DuckDB says about data is shown without the data, whatever statement it comes from."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pz_engine.base.redact import sanitize

SENTINEL = "Q7ZX"
NUMBER = "170117"
STATEMENTS = [
    "select strptime('Q7ZX', '%Y')",
    "select strptime('2026', '%Q7ZX')",
    "select error('Q7ZX')",
    "select error('Could not find Q7ZX: 170117')",
    "select regexp_matches(s, 'Q7ZX[') from (select 'a' s)",
    "select regexp_replace('a', '(Q7ZX', 'b')",
    "select s similar to 'Q7ZX(' from (select 'x' s)",
    "select json_extract('Q7ZX{', '$.a')",
    'select \'{"a": "Q7ZX\'::json',
    'select json_transform_strict(\'{"a":"Q7ZX"}\', \'{"a":"INTEGER"}\')',
    "select json_structure('Q7ZX')",
    "select cast(x as decimal(3, 1)) from (values (170117.5)) t(x)",
    "select cast(x as tinyint) from (values (170117)) t(x)",
    "select 9223372036854775807 + 170117",
    "select make_date(170117, 13, 45)",
    "select chr(-170117)",
    "insert into t values (1, 'Q7ZX', 'u')",
    "insert into t values (170117, 'a', 'u'), (170117, 'b', 'v')",
    "insert into t values (1, 'a', 'Q7ZX'), (2, 'b', 'Q7ZX')",
    "select date_trunc('Q7ZX', timestamp '2026-01-01')",
    "select '\\xQ7ZX'::blob",
    "select from_base64('Q7ZX!')",
    "select time '25:Q7ZX'",
    "select timezone('Q7ZX', now())",
    "select list_sort([1], 'Q7ZX')",
    "select format('{Q7ZX}', 1)",
    "select printf('%Q7ZX', 1)",
    "select map(['Q7ZX', 'Q7ZX'], [1, 2])",
    "select 'Q7ZX'::uuid",
    "select '[Q7ZX'::int[]",
    "select {'a': 'Q7ZX'}::struct(a int)",
    "select array_extract([1], 'Q7ZX')",
]
CASTS = [
    "integer",
    "bigint",
    "double",
    "decimal(9, 2)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "boolean",
]
CASTS += ["uuid", "json", "blob", "bit", "integer[]", "struct(a integer)", "enum('a', 'b')"]


def refusal(statement: str, parameters: list[str] | None = None) -> str | None:
    """Return the message of a statement, or None when DuckDB ran it."""
    with duckdb.connect() as connection:
        connection.execute("create table t (id bigint primary key, s varchar check (s <> 'Q7ZX'), u varchar unique)")
        try:
            connection.execute(statement, parameters).fetchall()
        except duckdb.Error as error:
            return str(error)
    return None


@pytest.mark.parametrize("statement", STATEMENTS)
def test_message_of_a_failed_statement_holds_no_value(statement: str) -> None:
    """Literals and rows are gone, the kind of error and its sense stay, and doing it again changes nothing."""
    raw = refusal(statement)
    assert raw is not None
    shown = sanitize(raw)
    assert SENTINEL not in shown
    assert NUMBER not in shown
    assert " Error: " in shown
    assert sanitize(shown) == shown


@given(
    kind=st.sampled_from(CASTS),
    before=st.text("abc'\"` \n\r\t:{}[],;\\0", max_size=6),
    after=st.text("abc'\"` \n\r\t:{}[],;\\0", max_size=6),
    text=st.sampled_from([SENTINEL, f"{SENTINEL} to INT32 {SENTINEL}", f'column "{SENTINEL}"', f"LINE 1: {SENTINEL}"]),
)
@example(kind="decimal(9, 2)", before='"', after="'", text=SENTINEL)
@example(kind="date", before="'", after='"', text=SENTINEL)
def test_no_cast_shows_the_text_it_refused(kind: str, before: str, after: str, text: str) -> None:
    """Quotes, line ends and texts that look like the message itself do not let a cell through."""
    raw = refusal(f"select cast(? as {kind})", [f"{before}{text}{after}"])
    if raw is not None:
        assert SENTINEL not in sanitize(raw), raw


@pytest.mark.parametrize(
    "cell", ["Q7ZX", '"Q7ZX, and ""more"""', "'Q7ZX", '"a\nQ7ZX"', 'Error when converting column "Q7ZX"']
)
@pytest.mark.parametrize("options", ["", ", strict_mode = false", ", auto_detect = false", ", parallel = false"])
def test_no_csv_error_shows_a_cell(tmp_path: Path, cell: str, options: str) -> None:
    """The file, the line and the column stay; the line's text and the cell go."""
    path = tmp_path / "rows.csv"
    path.write_text(f"a,b\n1,x\n{cell},2\n", encoding="utf-8")
    raw = refusal(
        f"select * from read_csv('{path}', header = true, columns = {{'a': 'integer', 'b': 'varchar'}}{options})"
    )
    assert raw is not None
    assert SENTINEL not in sanitize(raw), raw


def test_names_of_columns_and_tables_stay() -> None:
    """A message about the statement is of use only with the names in it."""
    assert 'column "amont"' in sanitize(refusal("select amont from t") or "")
    assert "Table with name nowhere" in sanitize(refusal("select * from nowhere") or "")


def arrow_failures() -> list[Exception]:
    """Return what Arrow raises over values that do not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    moments = pa.array([170117_500_000], pa.timestamp("us", "UTC"))
    calls = [
        lambda: moments.cast(pa.timestamp("s")),
        lambda: pa.array([170117.5]).cast(pa.int32()),
        lambda: pa.array([170117]).cast(pa.int8()),
        lambda: pa.array(["Q7ZX"]).cast(pa.int32()),
        lambda: pa.array(["Q7ZX"]).cast(pa.timestamp("us")),
        lambda: pa.array([SENTINEL], pa.int32()),
        lambda: pa.array([b"Q7ZX"], pa.int32()),
        lambda: pa.array([170117 << 64]),
        lambda: pc.strptime(pa.array(["Q7ZX"]), format="%Y", unit="s"),
        lambda: csv.read_csv(pa.BufferReader(b"a,b\n1,2\n170117,Q7ZX,3\n")),
    ]
    found: list[Exception] = []
    for call in calls:
        with pytest.raises((pa.ArrowException, OverflowError)) as caught:
            call()
        found.append(caught.value)
    return found


def test_no_arrow_error_shows_the_value_it_refused() -> None:
    """Wherever an exception of a library is shown, its kind is, and at most a sentence about types."""
    from pz_engine.errors.unexpected import diagnose
    from pz_engine.validate.failures import failure_of

    for error in arrow_failures():
        raw = f"{type(error).__name__}: {error}"
        for shown in (sanitize(raw), diagnose(error).message, failure_of(error, "1s").message):
            assert SENTINEL not in shown, raw
            assert NUMBER not in shown, raw
            assert type(error).__name__ in shown
        assert sanitize(sanitize(raw)) == sanitize(raw)
