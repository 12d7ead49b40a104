"""Long ids, ambiguous dates, ragged rows and late json keys."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from pz_engine.connectors.api import ReadSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.duck.checked_scan import resolve_scan
from pz_engine.duck.inference_lints import AmbiguousFormat, ambiguous_dates, lossy_integer_columns
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.testing.connector_suite_driver import LANDED

REFS = (12345678901234567891, 12345678901234567892, 12345678901234567893)
FORTY_DIGITS = "1234567890123456789012345678901234567890"


def _resolve(path, cursor):
    source = find_connector("localfiles").open_source({"base_dir": str(path.parent)})
    return resolve_scan(cursor, source.native_scan(ReadSpec("files", path.stem)), None)


def test_long_ids_keep_their_digits(put, land, cursor):
    """Twenty digits are an integer, not a double (C02)."""
    put("refs.csv", "order_ref,city\n" + "".join(f"{ref},x\n" for ref in REFS))
    assert [row[0] for row in land("refs.csv")] == list(REFS)
    assert lossy_integer_columns(cursor, LANDED) == ()


def test_ids_beyond_every_integer_type_stay_text(put, land):
    """Forty digits, or long digits among fractions, are text rather than something close (C02)."""
    put("refs.csv", f"a,b\n{FORTY_DIGITS},1.5\n1,{REFS[0]}\n")
    assert land("refs.csv") == [("1", str(REFS[0])), (FORTY_DIGITS, "1.5")]


def test_json_ids_read_as_doubles_are_reported(put, land, cursor):
    """Where DuckDB has to use a double, the lint names the column (C02)."""
    put("refs.json", '{"ref": 123456789012345678901234}\n{"ref": 1}\n')
    land("refs.json", format="json")
    assert lossy_integer_columns(cursor, LANDED) == ("ref",)


def test_ambiguous_dates_are_named_once_per_format(put, land, cursor):
    """No day above 12 anywhere: dates and timestamps are each reported with their format (C03)."""
    text = "sale_id,sold_on,paid_on,booked_at\n1,03/04/2026,01/02/2026,03/04/2026 09:15:00\n2,11/12/2025,,\n"
    path = put("sales.csv", text)
    land("sales.csv")
    found = ambiguous_dates(cursor, LANDED, _resolve(path, cursor).date_formats)
    assert found == (
        AmbiguousFormat("%d/%m/%Y", ("sold_on", "paid_on")),
        AmbiguousFormat("%d/%m/%Y %H:%M:%S", ("booked_at",)),
    )


@pytest.mark.parametrize(
    ("decisive", "expected"), [("25/12/2025", dt.date(2025, 12, 25)), ("12/25/2025", dt.date(2025, 12, 25))]
)
def test_one_decisive_day_settles_the_order(put, land, cursor, decisive, expected):
    """A day above 12 decides for the whole column, and nothing is reported (C03)."""
    path = put("sales.csv", f"id,sold_on\n1,03/04/2026\n2,{decisive}\n")
    assert land("sales.csv")[1] == (2, expected)
    assert ambiguous_dates(cursor, LANDED, _resolve(path, cursor).date_formats) == ()


def test_declared_date_takes_a_decided_order_and_refuses_an_open_one(put, land):
    """A contract never guesses between day and month (C03)."""
    put("decided.csv", "d\n03/04/2026\n25/12/2025\n")
    put("open.csv", "d\n03/04/2026\n")
    assert land("decided.csv", columns={"d": "date"}) == [(dt.date(2025, 12, 25),), (dt.date(2026, 4, 3),)]
    with pytest.raises(PzConnectorError, match="line 2: column 'd'"):
        land("open.csv", columns={"d": "date"})


def test_declared_text_is_left_alone(put, land, cursor):
    """A varchar contract reads dates as they are written (C03)."""
    put("sales.csv", "d\n03/04/2026\n")
    assert land("sales.csv", columns={"d": "varchar"}) == [("03/04/2026",)]


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize("row", ["A-3,30,est", "A-3"])
@pytest.mark.parametrize("declared", [True, False])
def test_ragged_row_fails_with_file_line_and_counts(put, land, tier, row, declared):
    """Nothing is dropped and the header never moves (C04)."""
    if tier == "universal" and not declared:
        pytest.skip("batches need a contract")
    put("readings.csv", f"meter,reading\nA-1,10\nA-2,20\n{row}\nA-4,5\n")
    with pytest.raises(PzConnectorError) as caught:
        land("readings.csv", tier=tier, columns={"meter": "varchar", "reading": "int"} if declared else None)
    found = row.count(",") + 1
    assert f"file 'readings.csv', line 4: expected 2 fields, found {found}" in caught.value.message
    assert "ragged: pad" in caught.value.hint
    assert "A-3" not in str(caught.value)


def test_ragged_row_far_down_names_its_line(put, land):
    """Also behind the sample, and in the second file, and after quoted line breaks (C04)."""
    put("a.csv", "m,r\n1,2\n")
    put("b.csv", 'm,r\n"x\ny",1\n' + "1,2\n" * 30_000 + "1,2,3\n")
    with pytest.raises(PzConnectorError, match=r"file 'b\.csv', line 30004: expected 2 fields, found 3"):
        land("*.csv")


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_pad_fills_up_and_names_the_rest(put, land, tier):
    """`pad` keeps every field; under a contract only declared extras arrive (C04)."""
    put("r.csv", 'm,r\nA,1\nB\nC,3,est,x\n"D\nE",4\n')
    contract = {"m": "varchar", "r": "int", "extra_2": "varchar"}
    assert land("r.csv", tier=tier, ragged="pad", columns=contract) == [
        ("A", 1, None),
        ("B", None, None),
        ("C", 3, "x"),
        ("D\nE", 4, None),
    ]


def test_pad_without_contract_gives_every_extra_column(put, land):
    """All surplus fields become columns (C04)."""
    put("r.csv", "m,r\nA,1\nC,3,est,x\n")
    land("r.csv", ragged="pad")
    assert list(land.types) == ["m", "r", "extra_1", "extra_2"]


def test_late_json_keys_reach_the_table(put, land):
    """A key first seen behind any sample is a column (C05)."""
    records = [{"event_id": number, "kind": "sale"} for number in range(1, 20_701)]
    for record in records[20_599:]:
        record["refund_id"] = f"R{record['event_id']}"
    put("events.ndjson", "".join(json.dumps(record) + "\n" for record in records))
    rows = land("events.ndjson", format="json")
    assert sum(row[2] is not None for row in rows) == 101
    put("events.json", json.dumps(records))
    rows = land("events.json", format="json", layout="array")
    assert sum(row[2] is not None for row in rows) == 101


def test_json_keys_of_later_files_reach_the_table(put, land):
    """Every file is asked for its keys, however many there are (C05)."""
    for number in range(40):
        put(f"f{number:02}.json", json.dumps({"n": number, **({"late": True} if number == 39 else {})}) + "\n")
    rows = land("*.json", format="json")
    assert list(land.types) == ["n", "late"]
    assert (39, True) in rows


def test_parquet_columns_of_later_files_reach_the_table(land, cursor, tmp_path):
    """The same holds for parquet files with different columns."""
    cursor.execute(f"copy (select 1 as a) to '{tmp_path}/1.parquet'")
    cursor.execute(f"copy (select 2 as a, 'x' as late) to '{tmp_path}/2.parquet'")
    assert land("*.parquet", format="parquet") == [(1, None), (2, "x")]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("content", "layout", "problem"),
    [
        ('{"a": 1}\n{"a": "secret\n', "ndjson", r"line 2 is not well-formed json"),
        ('{"a": 1}\n{"a": 1, "a": "secret"}\n', "ndjson", r"line 2 has an object with the same key twice"),
        ('[{"a": "secret"}, {"a": 2}]\n', "ndjson", r"holds something else than objects|does not fit the others"),
        ('"secret"\n', "ndjson", r"holds something else than objects|does not fit the others"),
        ('{"a": "secret"}\n', "array", r"is not one JSON array"),
        ('\ufeff{"a": "secret"}\n', "ndjson", r"line 1 starts with a byte-order mark"),
    ],
)
def test_broken_json_is_named_without_its_content(put, land, content, layout, problem, declared):
    """One declared column is still a column, never the whole record's text."""
    put("b.json", content)
    with pytest.raises(PzConnectorError, match=problem) as caught:
        land("b.json", format="json", layout=layout, columns={"a": "varchar"} if declared else None)
    assert "'b.json'" in caught.value.message
    assert "secret" not in str(caught.value)
    assert caught.value.hint
