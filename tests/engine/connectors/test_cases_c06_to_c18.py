"""Line ends, folders, zero rows, merges, zones, locks and one bad file among good ones."""

# ruff: noqa: DTZ001 - wall-clock times are naive on purpose

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time

import pytest

from pz_engine.connectors.registry import find_connector
from pz_engine.duck.session import DuckSession, DuckSettings
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy
from pz_engine.testing.connector_suite_driver import ConnectorHarness, land_natively, landed_rows, write_natively

MARK = b"\xef\xbb\xbf"
CONTRACT = {"customer_id": "int", "name": "varchar"}
EXPECTED = [(1, "Ann"), (2, "Bo"), (3, "Cy"), (4, "Di")]


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("second", [b"3,Cy\r\n4,Di\n", b"3,Cy\n4,Di\r\n", b"3,Cy\r4,Di", b'3,"Cy"\r\n"4",Di'])
def test_marks_and_mixed_line_ends_reach_neither_names_nor_values(put, land, tier, declared, second):
    """A spreadsheet export and a file of two systems read as one entity (C06)."""
    if tier == "universal" and not declared:
        pytest.skip("batches need a contract")
    put("a.csv", MARK + b"customer_id,name\r\n1,Ann\r\n2,Bo\r\n")
    put("b.csv", b"customer_id,name\n" + second)
    assert land("*.csv", tier=tier, columns=CONTRACT if declared else None) == EXPECTED
    assert list(land.types) == ["customer_id", "name"]


def test_line_breaks_inside_quotes_are_kept_in_mixed_files(put, land):
    """Only the ends of records are line ends (C06)."""
    put("m.csv", b'k,v\r\n1,"a\r\nb"\n2,"c\nd"\r\n')
    assert land("m.csv") == [(1, "a\r\nb"), (2, "c\nd")]


def test_ragged_row_in_a_mixed_file_is_found(put, land):
    """The tolerant reader is used only after every record was counted (C06, C04)."""
    put("m.csv", b"k,v\r\n1,a\n2,b,c\r\n")
    with pytest.raises(PzConnectorError, match="line 3: expected 2 fields, found 3"):
        land("m.csv")


def test_unreadable_file_is_named(put, land):
    """The good file beside it is not blamed (C06)."""
    put("a.csv", "k,v\n1,x\n")
    put("b.csv", b"k,v\n2,\xff\xfe\n")
    with pytest.raises(PzConnectorError, match=r"file 'b\.csv', line 2"):
        land("*.csv")


@pytest.mark.parametrize(("encoding", "codec"), [("utf-16", "utf-16"), ("latin-1", "latin-1")])
@pytest.mark.parametrize("tier", ["native", "universal"])
def test_other_encodings_are_decoded(put, land, tier, encoding, codec):
    """Names and values arrive as text whatever the bytes (C06)."""
    put("e.csv", "k,grün\r\n1,ö\r\n".encode(codec))
    assert land("e.csv", tier=tier, encoding=encoding, columns={"grün": "varchar", "k": "int"}) == [("ö", 1)]


def test_pattern_without_match_fails_naming_pattern_and_connection(land):
    """A quiet day is an error unless the author says otherwise (C07)."""
    with pytest.raises(PzConnectorError, match=r"connection 'files': path 'landing/\*\.csv' matches no file"):
        land("landing/*.csv")


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize("options", [{}, {"format": "json"}, {"format": "parquet"}])
def test_pattern_without_match_may_be_zero_rows(land, tier, options):
    """`on_empty: zero_rows` gives the declared columns and types (C07)."""
    if tier == "universal" and options:
        pytest.skip("read by DuckDB only")
    assert land("x/*.csv", tier=tier, on_empty="zero_rows", columns={"a": "int", "d": "decimal(10,2)"}, **options) == []
    assert land.types == {"a": "INTEGER", "d": "DECIMAL(10,2)"}


def _sales(put, extra=()):
    for region, day in (
        ("010", "2026-03-01"),
        ("abc", "2026-03-02"),
        ("__HIVE_DEFAULT_PARTITION__", "2026-03-03"),
        *extra,
    ):
        put(f"sales/region={region}/day={day}/part.csv", "id,amount\n1,2.50\n")


def test_partition_columns_stay_text_without_a_contract(put, land):
    """`010` keeps its zero, the default partition is NULL, and one more folder changes no type (C07)."""
    _sales(put)
    rows = land("sales/*/*/*.csv")
    assert [row[2] for row in rows] == ["010", "abc", None]
    before = land.types
    _sales(put, extra=[("7", "2026-03-04")])
    land("sales/*/*/*.csv")
    assert land.types == before
    assert before["region"] == before["day"] == "VARCHAR"


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_partition_columns_take_the_type_of_a_contract(put, land, tier):
    """Folder values are checked like any other text (C07)."""
    _sales(put)
    contract = {"region": "varchar", "day": "date", "id": "int"}
    assert land("sales/*/*/*.csv", tier=tier, columns=contract)[0] == ("010", dt.date(2026, 3, 1), 1)


def test_partition_folders_can_be_ignored(put, land):
    """`hive_partitioning: false` reads only what the files hold (C07)."""
    _sales(put)
    land("sales/*/*/*.csv", hive_partitioning=False)
    assert list(land.types) == ["id", "amount"]


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_header_only_file_is_an_empty_entity(put, land, tier, ending):
    """Columns keep their declared types on the empty day (C08)."""
    put("stock.csv", f"sku,stock{ending}")
    assert land("stock.csv", tier=tier, columns={"sku": "varchar", "stock": "int"}) == []
    assert land.types == {"sku": "VARCHAR", "stock": "INTEGER"}


def test_header_only_file_without_contract_is_text(put, land):
    """Nothing to infer from means text, not an error (C08)."""
    put("stock.csv", "sku,stock\n")
    assert land("stock.csv") == []
    assert land.types == {"sku": "VARCHAR", "stock": "VARCHAR"}


@pytest.mark.parametrize(
    ("options", "lacks"), [({}, "not even a header line"), ({"format": "json"}, "it has no object at all")]
)
def test_zero_byte_file_without_contract_is_refused(put, land, options, lacks):
    """No column is invented, and the message speaks of the format (C08)."""
    put("none.csv", "")
    with pytest.raises(PzConnectorError, match=f"is empty, {lacks}"):
        land("none.csv", **options)


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_zero_byte_file_is_refused_under_a_contract_unless_allowed(put, land, tier):
    """A file that was cut off is not an empty day (C08)."""
    put("none.csv", "")
    with pytest.raises(PzConnectorError, match="is empty, not even a header line"):
        land("none.csv", tier=tier, columns={"sku": "varchar"})
    assert land("none.csv", tier=tier, columns={"sku": "varchar"}, on_empty="zero_rows") == []


@pytest.mark.parametrize("name", ["csv", "tsv", "parquet", "json"])
def test_zero_rows_still_make_a_file(cursor, tmp_path, name):
    """The file exists with its columns, and a replace empties what was there (C08)."""
    harness = ConnectorHarness(
        find_connector("localfiles"),
        {"base_dir": str(tmp_path)},
        write_options={"format": name},
        read_options=lambda entity: {"format": name, "path": f"{entity}/{entity}.{name}"},
    )
    query = "select 1::hugeint as id, 1.5::decimal(10,2) as amount"
    assert write_natively(cursor, harness, "out", query, Strategy.REPLACE) == 1
    assert write_natively(cursor, harness, "out", f"{query} where false", Strategy.REPLACE) == 0
    land_natively(cursor, harness, "out", {"id": "hugeint", "amount": "decimal(10,2)"})
    assert landed_rows(cursor) == []


def test_last_staged_row_of_a_key_survives(cursor, tmp_path):
    """The same input gives the same survivor, first load or later ones (C13)."""
    harness = ConnectorHarness(find_connector("duckdb"), {"path": "w.duckdb", "base_dir": str(tmp_path)})
    changes = "select * from (values ('A1', 120), ('A1', 100), ('A1', 140), ('B7', 5)) t(account, balance)"
    for _ in range(2):
        assert write_natively(cursor, harness, "accounts", changes, Strategy.MERGE, ("account",)) == 2
        land_natively(cursor, harness, "accounts")
        assert landed_rows(cursor) == [("A1", 140), ("B7", 5)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_naive_times_stay_naive_and_instants_stay_instants(put, land, monkeypatch, zone):
    """Also the hour that does not exist in some zones, whatever the machine's zone (C15)."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    put(
        "s.csv", "id,a,b\n1,2026-03-29 02:30:00,2026-03-29T02:30:00Z\n2,2026-10-25 01:30:00,2026-10-25T01:30:00+02:00\n"
    )
    rows = land("s.csv")
    assert land.types == {"id": "BIGINT", "a": "TIMESTAMP", "b": "TIMESTAMP WITH TIME ZONE"}
    assert rows[0][1] == dt.datetime(2026, 3, 29, 2, 30)
    assert rows[1][2].astimezone(dt.timezone.utc) == dt.datetime(2026, 10, 24, 23, 30, tzinfo=dt.timezone.utc)
    monkeypatch.undo()
    time.tzset()


def test_locked_database_is_transient_and_names_path_and_process(tmp_path):
    """Another process holds the file: worth trying again (C16)."""
    path = tmp_path / "held.duckdb"
    code = "import duckdb,sys; c=duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline().strip() == "held"
        with DuckSession.open(None, DuckSettings()) as session, session.cursor() as cursor:
            with pytest.raises(DuckStatementError) as caught:
                cursor.execute(f"attach '{path}' as w")
            assert caught.value.is_transient
            assert str(path) in caught.value.summary
            assert str(holder.pid) in caught.value.summary
    finally:
        holder.communicate(timeout=10)
    assert path.exists()


def test_bad_file_fails_alone(put, land):
    """One entity's failure says which file, and the others still load (C18)."""
    put("good.csv", "id,name\n1,ok\n")
    put("bad.csv", "id,name\nnot-a-number,bad\n")
    contract = {"id": "int", "name": "varchar"}
    assert land("good.csv", columns=contract) == [(1, "ok")]
    with pytest.raises(PzConnectorError, match=r"file 'bad\.csv', line 2: column 'id'") as caught:
        land("bad.csv", columns=contract)
    assert "not-a-number" not in str(caught.value)
    assert land("good.csv", columns=contract) == [(1, "ok")]
