"""How `localfiles` finds, binds, names and publishes files."""

from __future__ import annotations

import errno
import re

import pytest

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.fault_points import InjectedFault
from pz_engine.connectors.api import ReadHints, ReadSpec, WriteSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.connectors.toolkit.os_errors import as_connector_error
from pz_engine.duck.checked_scan import resolve_scan
from pz_engine.duck.scan_counts import collect, enable
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy
from pz_engine.testing.connector_suite_driver import ConnectorHarness, write_batches, write_natively


def _harness(root, **options):
    return ConnectorHarness(find_connector("localfiles"), {"base_dir": str(root)}, write_options=options)


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_columns_bind_by_header_name(put, land, tier):
    """A contract in another order than the header swaps nothing, nor do files with different orders."""
    put("a1.csv", "price,qty\n1.5,2\n")
    put("a2.csv", "qty,price,note\n3,4.5,x\n")
    assert land("a*.csv", tier=tier, columns={"qty": "int", "price": "double"}) == [(2, 1.5), (3, 4.5)]
    assert land("a2.csv", tier=tier, columns={"price": "double"}) == [(4.5,)]


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_header_names_match_without_regard_to_case(put, land, tier):
    """DuckDB's names do, so the contract's spelling wins."""
    put("a.csv", "ID,Name\n1,x\n")
    assert land("a.csv", tier=tier, columns={"name": "varchar", "id": "int"}) == [("x", 1)]
    assert list(land.types) == ["name", "id"]


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_contract_column_missing_from_the_header_is_refused(put, land, tier):
    """In any of the files, with a near miss."""
    put("a1.csv", "qty\n1\n")
    put("a2.csv", "qtty\n1\n")
    with pytest.raises(PzConnectorError, match=r"column 'qty' is not in the header of file 'a2\.csv'") as caught:
        land("a*.csv", tier=tier, columns={"qty": "int"})
    assert caught.value.code == "PZ0353"
    assert "qtty" in caught.value.hint


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_path_without_a_file_comes_with_a_next_step(land, tmp_path, tier):
    """A folder in place of a file is told apart from nothing at all."""
    (tmp_path / "in").mkdir()
    with pytest.raises(PzConnectorError, match=r"path 'none\.csv' matches no file") as caught:
        land("none.csv", tier=tier, columns={"k": "int"})
    assert "on_empty: zero_rows" in caught.value.hint
    with pytest.raises(PzConnectorError, match="path 'in' is a folder, not a file") as caught:
        land("in", tier=tier, columns={"k": "int"})
    assert "path: in/*" in caught.value.hint


def test_files_with_different_columns_need_a_contract(put, land):
    """No column of any file is lost in silence."""
    put("a1.csv", "k\n1\n")
    put("a2.csv", "k,extra\n2,x\n")
    with pytest.raises(PzConnectorError, match="has a column 'extra'"):
        land("a*.csv")
    assert land("a*.csv", columns={"k": "int"}) == [(1,), (2,)]


def test_repeated_header_names_are_told_apart(put, land):
    """Without a contract they get numbers; a contract naming one is refused."""
    put("a.csv", "k,v,V,\n1,2,3,4\n")
    assert land("a.csv") == [(1, 2, 3, 4)]
    assert list(land.types) == ["k", "v", "V_1", "column3"]
    with pytest.raises(PzConnectorError, match="more than one column 'v'"):
        land("a.csv", columns={"v": "int"})


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize("header", ["a,A", "a,a", "A, a "])
def test_contract_column_that_a_header_repeats_is_refused(put, land, tier, header):
    """Neither tier takes the first one in silence."""
    put("t.csv", f"{header}\n1,2\n")
    with pytest.raises(PzConnectorError, match=r"file 't\.csv' has more than one column 'a'") as caught:
        land("t.csv", tier=tier, columns={"a": "int"})
    assert caught.value.code == "PZ0353"


def test_number_of_readers_is_told(put, tmp_path):
    """Files with another order of columns get a reader of their own, so their rows cannot be counted in one scan."""
    put("a1.csv", "k,v\n1,2\n")
    put("a2.csv", "v,k\n2,1\n")
    put("a3.csv", "k,v\n1,2\n")
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    assert source.native_scan(ReadSpec("files", "x", {"path": "a*.csv"})).readers == 2
    assert source.native_scan(ReadSpec("files", "x", {"path": "a1.csv"})).readers == 1


def test_odd_names_are_quoted(put, land):
    """Quotes, blanks and semicolons in headers and paths are text, and wildcards in a matched name are not expanded."""
    put("odd [1] o'x.csv", "a\"b;--,it's\n1,2\n")
    header = put("odd [1] o'x.csv", '"a""b;--",it\'s\n1,2\n')
    assert header.exists()
    assert land("odd [1] o'x.csv") == [(1, 2)]
    assert list(land.types) == ['a"b;--', "it's"]
    assert land("odd ?1] *.csv", columns={'a"b;--': "int"}) == [(1,)]


def test_matches_come_in_ordinal_order_and_temporaries_never_match(put, tmp_path):
    """Unfinished output and hidden files are not data."""
    for name in ("b.csv", "a.csv", "B.csv", ".pz-native-1.csv", ".pz-tmp-1/c.csv", ".hidden.csv"):
        put(name, "k\n1\n")
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    scan = source.native_scan(ReadSpec("files", "x", {"path": "*.csv"}))
    assert [path.name for path in scan.files] == ["B.csv", "a.csv", "b.csv"]
    assert len(source.native_scan(ReadSpec("files", "x", {"path": "*/*.csv", "on_empty": "fail"})).files) == 0


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_links_multiply_no_rows(put, land, tmp_path, tier):
    """Two links to a parent, a link to a folder and one to a file: each real file is read once."""
    put("in/a/1.csv", "k\n1\n")
    put("in/2.csv", "k\n2\n")
    put("in/c/deep/3.csv", "k\n3\n")
    put("in/.hidden/4.csv", "k\n4\n")
    (tmp_path / "in/a/up").symlink_to(tmp_path / "in")
    (tmp_path / "in/a/again").symlink_to(tmp_path / "in")
    (tmp_path / "in/b").symlink_to(tmp_path / "in/c")
    (tmp_path / "in/twin.csv").symlink_to(tmp_path / "in/2.csv")
    for path in ("**/*.csv", "in/**/*.csv", "in/**", "**/in/**/*.csv"):
        assert land(path, tier=tier, columns={"k": "int"}) == [(1,), (2,), (3,)], path
    assert land("in/**/deep/*.csv", tier=tier, columns={"k": "int"}) == [(3,)]
    assert land("in/*/up/*.csv", tier=tier, columns={"k": "int"}) == [(2,)]


def test_scan_is_recognised_in_the_profile(put, cursor, tmp_path):
    """Also with more files than a profile lists, and with separators in their names."""
    for number in range(8):
        put(f"f{number}, x.csv", "k\n1\n2\n")
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    scan = source.native_scan(ReadSpec("files", "x", {"path": "f*.csv", "columns": {"k": "int"}}))
    resolved = resolve_scan(cursor, scan, {"k": "int"})
    enable(cursor)
    cursor.execute(f"create table staging.t as {resolved.sql}")
    (count,) = collect(cursor)
    assert count.rows == 16
    assert count.reads_files(scan.files)
    assert not count.reads_files(scan.files[1:])


def test_default_locations(put, land, tmp_path):
    """A read looks for `<entity>.<format>`, a write makes a folder named after the entity."""
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path), "root": "in"})
    put("in/orders.tsv", "k\n1\n")
    assert source.native_scan(ReadSpec("files", "orders", {"format": "tsv"})).files == (tmp_path / "in" / "orders.tsv",)
    sink = find_connector("localfiles").open_sink({"base_dir": str(tmp_path), "root": "out"})
    copy = sink.native_copy(WriteSpec("files", "orders", Strategy.REPLACE))
    assert copy.location == str(tmp_path / "out" / "orders" / "orders.parquet")


def test_two_names_of_one_output_have_one_identity(tmp_path):
    """However the path is spelled; appends never meet."""
    (tmp_path / "out").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "out")
    sink = find_connector("localfiles").open_sink({"base_dir": str(tmp_path)})

    def identity(strategy, path):
        return sink.native_copy(WriteSpec("files", "log", strategy, options={"path": path})).identity

    same = {identity(Strategy.REPLACE, path) for path in ("out", "./out/", "alias", str(tmp_path / "out"))}
    assert same == {str((tmp_path / "out/log.parquet").resolve())}
    assert identity(Strategy.REPLACE, "other") not in same
    assert identity(Strategy.APPEND, "out") is None


def test_append_draws_a_new_name_each_time(tmp_path):
    """32 hex digits, so nothing is overwritten."""
    sink = find_connector("localfiles").open_sink({"base_dir": str(tmp_path)})
    spec = WriteSpec("files", "log", Strategy.APPEND, options={"format": "csv", "compression": "gzip"})
    names = {sink.native_copy(spec).finalizations[0].final.name for _ in range(2)}
    assert len(names) == 2
    assert all(re.fullmatch(r"log-[0-9a-f]{32}\.csv\.gz", name) for name in names)


def test_temporary_is_in_the_final_folder_without_a_data_extension(tmp_path):
    """A rename across file systems is not atomic, and a reader's pattern must not see the file."""
    sink = find_connector("localfiles").open_sink({"base_dir": str(tmp_path)})
    (move,) = sink.native_copy(WriteSpec("files", "log", Strategy.REPLACE)).finalizations
    assert move.temporary.parent == move.final.parent
    assert re.fullmatch(r"\.pz-native-[0-9a-f]+\.tmp", move.temporary.name)


@pytest.mark.parametrize("tier", ["native", "universal"])
def test_failed_rename_leaves_the_old_file_and_no_temporary_data(cursor, tmp_path, monkeypatch, tier):
    """Dying right before publishing changes nothing."""
    harness = _harness(tmp_path, format="csv")
    write = write_natively if tier == "native" else write_batches
    write(cursor, harness, "o", "select 1 as k", Strategy.REPLACE)
    monkeypatch.setenv("PZ_FAULT", "before_rename=raise")
    with pytest.raises(InjectedFault):
        write(cursor, harness, "o", "select 2 as k", Strategy.REPLACE)
    assert (tmp_path / "o" / "o.csv").read_text() == "k\n1\n"
    assert [path.name for path in (tmp_path / "o").glob("*")] == ["o.csv"] or tier == "universal"


def test_both_tiers_write_the_same_csv_bytes(cursor, tmp_path):
    """Nobody can tell from the file who wrote it."""
    query = """
        select 1 as i, 'a,"b"' as t, '' as empty, null::varchar as nothing, true as f, 1e20::double as x, 0.1::double y,
        1.50::decimal(10,3) as d, date '2026-03-04' as day, timestamp '2026-03-04 05:06:07.5' as ts,
        timestamp '2026-03-04 05:06:07' as whole, timestamptz '2026-03-04 05:06:07+00' as tz, 12::hugeint as h,
        'line\nbreak' as lines, '1e5' as number_like
    """
    write_natively(cursor, _harness(tmp_path / "n", format="csv"), "o", query, Strategy.REPLACE)
    write_batches(cursor, _harness(tmp_path / "u", format="csv"), "o", query, Strategy.REPLACE)
    assert (tmp_path / "u/o/o.csv").read_text() == (tmp_path / "n/o/o.csv").read_text()


def test_both_tiers_write_the_same_floats(cursor, tmp_path):
    """A FLOAT has the shortest text that is this FLOAT, not that of the double it travels as."""
    query = """
        select cast(x as float) as f, x as d from (values (0.1::double), (-0.0), (1e7), (123456789), (1e15), (1e16), (1e17), (3.4e38),
        (1e-5), (0.0001234), (1e-45), ('inf'), (null), ('nan'), (0.1 + 0.2)) v(x)
    """
    write_natively(cursor, _harness(tmp_path / "n", format="csv"), "o", query, Strategy.REPLACE)
    write_batches(cursor, _harness(tmp_path / "u", format="csv"), "o", query, Strategy.REPLACE)
    text = (tmp_path / "n/o/o.csv").read_text()
    assert (tmp_path / "u/o/o.csv").read_text() == text
    assert text.splitlines()[1] == "0.1,0.1"


def test_both_tiers_write_the_same_parquet_types(cursor, tmp_path):
    """Wall-clock times stay naive, instants stay instants, wide integers stay exact."""
    query = """
        select 12345678901234567891::hugeint as h, timestamp '2026-03-04 05:06:07' as ts,
        timestamptz '2026-03-04 05:06:07+00' as tz, 1.5::decimal(10,2) as d, 'x' as t
    """
    write_natively(cursor, _harness(tmp_path / "n"), "o", query, Strategy.REPLACE)
    write_batches(cursor, _harness(tmp_path / "u"), "o", query, Strategy.REPLACE)
    files = [f"select * from read_parquet('{tmp_path}/{tier}/o/o.parquet')" for tier in ("n", "u")]
    assert cursor.describe(files[0]) == cursor.describe(files[1])
    assert cursor.rows(files[0]) == cursor.rows(files[1])
    assert cursor.rows(f"select h::varchar from ({files[0]})") == [("12345678901234567891",)]


def test_ndjson_text_is_strict(cursor, tmp_path):
    """Nulls are written, non-finite numbers become null, instants end in Z."""
    query = "select 1 as k, 'nan'::double as x, null::varchar as n, timestamp '2026-03-04 05:06:07' as ts, 'é\"' as t"
    write_batches(cursor, _harness(tmp_path, format="json"), "o", query, Strategy.REPLACE)
    expected = '{"k":1,"x":null,"n":null,"ts":"2026-03-04T05:06:07.000000Z","t":"é\\""}\n'
    assert (tmp_path / "o/o.json").read_text() == expected


def test_files_per_partition_groups_files(put, tmp_path):
    """Partitions together hold every file once, in order."""
    for number in range(5):
        put(f"f{number}.csv", "k\n1\n")
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    options = {"path": "f*.csv", "columns": {"k": "int"}, "files_per_partition": 2}
    partitions = source.plan_read(ReadSpec("files", "x", options), ReadHints(), CancelToken())
    assert [[path.name for path in partition.files] for partition in partitions] == [
        ["f0.csv", "f1.csv"],
        ["f2.csv", "f3.csv"],
        ["f4.csv"],
    ]


@pytest.mark.parametrize(("number", "transient"), [(errno.ESTALE, True), (errno.EIO, True), (errno.ENOENT, False)])
def test_only_passing_errors_are_transient(number, transient):
    """Network file systems recover; a missing file does not."""
    assert as_connector_error(OSError(number, "text"), "reading").is_transient is transient
