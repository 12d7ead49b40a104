"""A value that only loosely fits its column's type is never changed."""

# ruff: noqa: DTZ001 - wall-clock times are naive on purpose

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from uuid import UUID

import pytest

from pz_engine.duck.checked_scan import resolve_scan
from pz_engine.errors.exceptions import PzConnectorError

ROWS, BAD_ROW = 20_600, 20_550
TYPES = {"order_id": "int", "qty": "int", "code": "int", "due": "date"}


def orders(delimiter: str = ",", **bad: str) -> str:
    """A long file in which one row, far behind the sample, has other spellings."""
    lines = [delimiter.join(("order_id", "qty", "code", "due"))]
    for number in range(1, ROWS + 1):
        row = {"qty": str(number % 9 + 1), "code": str(100 + number % 800), "due": "2026-03-04"}
        if number == BAD_ROW:
            row.update(bad)
        lines.append(delimiter.join((str(number), row["qty"], row["code"], row["due"])))
    return "\n".join(lines) + "\n"


LOOSE = {"qty": "2.5", "code": "007", "due": "2026-03-04 23:59:59"}


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize("name", ["orders.csv", "orders.tsv", "orders.csv.gz"])
@pytest.mark.parametrize("column", LOOSE)
def test_declared_column_fails_naming_file_line_column_and_type(put, land, tier, name, column):
    """The place is named, the value never is."""
    is_tsv = name.endswith("tsv")
    put(name, orders("\t" if is_tsv else ",", **{column: LOOSE[column]}))
    options = {"format": "tsv"} if is_tsv else {}
    with pytest.raises(PzConnectorError) as caught:
        land(name, tier=tier, columns={"order_id": "int", column: TYPES[column]}, **options)
    duck_type = {"int": "INTEGER", "date": "DATE"}[TYPES[column]]
    for part in (name, f"line {BAD_ROW + 1}", f"'{column}'", duck_type):
        assert part in caught.value.message
    assert LOOSE[column] not in str(caught.value)
    assert not caught.value.is_transient


def test_undeclared_columns_arrive_unchanged(put, land):
    """Types come from the whole file as soon as one value does not fit its first rows."""
    put("orders.csv", orders(**LOOSE))
    rows = land("orders.csv")
    assert len(rows) == ROWS
    assert rows[BAD_ROW - 1] == (BAD_ROW, 2.5, "007", dt.datetime(2026, 3, 4, 23, 59, 59))


@pytest.mark.parametrize("text", ["1e400", "1e-400"])
def test_undeclared_number_that_no_double_holds_stays_text(put, land, text):
    """In the first rows, and far behind them."""
    put("t.csv", f"v\n1.5\n{text}\n")
    assert land("t.csv") == [("1.5",), (text,)]
    put("orders.csv", orders(qty=text))
    assert land("orders.csv")[BAD_ROW - 1][1] == text


def test_undeclared_columns_of_several_files_arrive_unchanged(put, land):
    """A misfit in the second file counts like one in the first."""
    put("a.csv", "n,v\n1,1\n2,2\n")
    put("b.csv", "v,n\n007,3\n")
    assert land("*.csv") == [(1, "1"), (2, "2"), (3, "007")]


def test_rereading_is_told(put, land, cursor):
    """The note names the column that made the load read the whole file."""
    from pz_engine.connectors.api import ReadSpec
    from pz_engine.connectors.registry import find_connector
    from pz_engine.duck.checked_scan import recover_scan
    from pz_engine.duck.statement_error import DuckStatementError

    path = put("orders.csv", orders(qty="2.5"))
    source = find_connector("localfiles").open_source({"base_dir": str(path.parent)})
    scan = source.native_scan(ReadSpec("files", "orders"))
    resolved = resolve_scan(cursor, scan, None)
    with pytest.raises(DuckStatementError) as caught:
        cursor.execute(f"create table staging.t as {resolved.sql}")
    again = recover_scan(cursor, scan, None, resolved, caught.value)
    assert again.read_whole_file
    assert "'qty'" in again.note


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("decimal(10,2)", "1.5", Decimal("1.50")),
        ("decimal(10,2)", "3", Decimal("3.00")),
        ("decimal(10,2)", ".5", Decimal("0.50")),
        ("timestamp", "2026-03-04T05:06:07Z", dt.datetime(2026, 3, 4, 5, 6, 7)),
        ("timestamp", "2026-03-04 05:06:07+00", dt.datetime(2026, 3, 4, 5, 6, 7)),
        ("timestamp", "2026-03-04 05:06", dt.datetime(2026, 3, 4, 5, 6)),
        ("timestamp", "2026-03-04 05:06:07.5", dt.datetime(2026, 3, 4, 5, 6, 7, 500000)),
        ("date", "2026/3/4", dt.date(2026, 3, 4)),
        ("int", "+7", 7),
        ("int", " 7 ", 7),
        ("bigint", "-9223372036854775808", -(2**63)),
        ("hugeint", "12345678901234567891", 12345678901234567891),
        ("time", "05:06", dt.time(5, 6)),
        ("time", "5:06:07.5", dt.time(5, 6, 7, 500000)),
        ("uuid", "550E8400E29B41D4A716446655440000", UUID("550e8400-e29b-41d4-a716-446655440000")),
        ("uuid", "{550e8400-e29b-41d4-a716-446655440000}", UUID("550e8400-e29b-41d4-a716-446655440000")),
        ("boolean", "TRUE", True),
        ("double", "1e3", 1000.0),
        ("double", "inf", math.inf),
        ("double", "-Infinity", -math.inf),
        ("double", "0e400", 0.0),
        ("double", " -0.0 ", 0.0),
        ("double", "1.7976931348623157e308", 1.7976931348623157e308),
        ("double", "5e-324", 5e-324),
        ("double", "0.1234567890123456789", 0.12345678901234568),
        ("float", "3.4e38", 3.3999999521443642e38),
        ("float", "0.0", 0.0),
        ("float", "0.5", 0.5),
        ("varchar", "007", "007"),
    ],
)
def test_other_spellings_of_the_same_value_pass(put, land, tier, kind, text, value):
    """A spelling that loses nothing is no reason to fail."""
    put("t.csv", f"n,v\n1,{text}\n2,\n")
    assert land("t.csv", tier=tier, columns={"n": "int", "v": kind}) == [(1, value), (2, None)]


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "007"),
        ("int", "2.5"),
        ("int", "1e3"),
        ("int", "2147483648"),
        ("smallint", "40000"),
        ("ubigint", "-1"),
        ("decimal(10,2)", "1.005"),
        ("decimal(10,2)", "123456789.1"),
        ("decimal(10,2)", "007.5"),
        ("decimal", "0.1234567891"),
        ("date", "2026-03-04 00:00:01"),
        ("date", "2026-02-30"),
        ("time", "2026-03-04 05:06:07"),
        ("time", "25:00"),
        ("time", "05:06:07.1234567"),
        ("uuid", "550e8400-e29b-41d4-a716"),
        ("timestamp", "2026-03-04 05:06:07.1234567"),
        ("timestamp", "2026-03-04 05:06:07+02:00"),
        ("double", "1_000"),
        ("double", "1e400"),
        ("double", "-1e400"),
        ("double", "1e-400"),
        ("double", "1" * 400),
        ("double", "0." + "0" * 400 + "1"),
        ("float", "1e39"),
        ("float", "-1e-46"),
        ("float", "1" * 40),
        ("boolean", "maybe"),
    ],
)
def test_values_of_another_kind_fail(put, land, tier, kind, text):
    """Whatever the type, a text that would come back as something else is refused."""
    put("t.csv", f"n,v\n1,\n2,{text}\n")
    with pytest.raises(PzConnectorError) as caught:
        land("t.csv", tier=tier, columns={"n": "int", "v": kind})
    assert "file 't.csv', line 3: column 'v'" in caught.value.message
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind"), [("2.5", "int"), ("1.005", "decimal(10,2)"), ("1.5", "bigint"), ("1e400", "double")]
)
def test_declared_json_numbers_are_not_rounded(put, land, text, kind):
    """DuckDB's json reader rounds too; a contract makes it fail with the line."""
    put("t.json", '{"v": 1}\n{"v": ' + text + "}\n")
    with pytest.raises(PzConnectorError, match=r"'t\.json', line 2: column 'v'"):
        land("t.json", format="json", columns={"v": kind})


@pytest.mark.parametrize(
    ("value", "kind"), [("2.5::double", "int"), ("300", "tinyint"), ("timestamp '2026-03-04 01:00:00'", "date")]
)
def test_declared_parquet_columns_are_not_rounded(land, cursor, tmp_path, value, kind):
    """Casting a typed file to its contract loses nothing either."""
    cursor.execute(f"copy (select {value} as v) to '{tmp_path}/t.parquet'")
    with pytest.raises(PzConnectorError, match="column 'v'"):
        land("t.parquet", format="parquet", columns={"v": kind})


def test_line_is_physical_where_records_span_lines(put, land):
    """Quoted line breaks and blank lines above the value do not shift the line that is named."""
    put("t.csv", 'n,v\n1,"a\nb"\n\n2,"c\r\nd"\nx,e\n')
    with pytest.raises(PzConnectorError, match=r"line 7\b"):
        land("t.csv", columns={"n": "int", "v": "varchar"})


def test_value_in_a_folder_name_names_the_file_only(put, land):
    """A partition value has no line."""
    put("day=soon/t.csv", "n\n1\n")
    with pytest.raises(PzConnectorError, match=r"file 'day=soon/t\.csv': column 'day'"):
        land("*/t.csv", columns={"n": "int", "day": "date"})
