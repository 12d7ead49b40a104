"""What is particular to DuckDB files: paths, aliases, bounds and schema policies."""

from __future__ import annotations

import re

import pytest

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ConnectionUse, ReadSpec, WriteSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.connectors.toolkit.aliases import session_name
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import SchemaPolicy, Strategy
from pz_engine.testing.connector_suite_driver import ConnectorHarness, land_natively, landed_rows, write_natively


@pytest.fixture
def harness(tmp_path):
    return ConnectorHarness(find_connector("duckdb"), {"path": "w.duckdb", "base_dir": str(tmp_path)}, "ware-house")


def _source(tmp_path, path="w.duckdb"):
    return find_connector("duckdb").open_source({"path": path, "base_dir": str(tmp_path)})


def test_similar_connection_names_get_different_aliases():
    """The hash is of the name as written."""
    names = {session_name("duckdb", name) for name in ("prod-db", "prod_db", "prod.db")}
    assert len(names) == 3
    assert all(name.startswith("pz_duckdb_prod_db_") for name in names)


def test_missing_file_is_refused_and_not_created(tmp_path):
    """Attaching would make an empty database."""
    with pytest.raises(PzConnectorError, match=r"database 'w\.duckdb' does not exist") as caught:
        _source(tmp_path).native_scan(ReadSpec("w", "t"))
    assert caught.value.code == "PZ0353"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [".pz/x.duckdb", ".pz/runs/1/staging.duckdb", "a/../.pz/x.duckdb"])
def test_engine_folder_is_refused(tmp_path, path):
    """Offline, when planning and when probing."""
    connector = find_connector("duckdb")
    config = {"path": path, "base_dir": str(tmp_path)}
    (finding,) = connector.validate(ConnectionUse("w", config))
    assert ".pz/" in finding.message
    with pytest.raises(PzConnectorError):
        connector.open_sink(config).native_copy(WriteSpec("w", "t", Strategy.APPEND))
    assert connector.check_connection(config, CancelToken()).message.startswith("permanent:")


def test_one_table_has_one_identity(tmp_path):
    """Through any connection, path and spelling that means it."""
    (tmp_path / "alias.duckdb").symlink_to(tmp_path / "w.duckdb")

    def identity(path, entity, connection="w"):
        sink = find_connector("duckdb").open_sink({"path": path, "base_dir": str(tmp_path)})
        return sink.native_copy(WriteSpec(connection, entity, Strategy.REPLACE)).identity

    same = {identity(path, entity) for path in ("w.duckdb", "./w.duckdb", "alias.duckdb") for entity in ("T", "main.t")}
    assert same == {identity("w.duckdb", "t", "other")}
    assert identity("w.duckdb", "s.t") not in same
    assert identity("v.duckdb", "t") not in same


def test_missing_folder_is_a_clear_error(tmp_path):
    """The line to type is given."""
    sink = find_connector("duckdb").open_sink({"path": "no/w.duckdb", "base_dir": str(tmp_path)})
    with pytest.raises(PzConnectorError, match=r"the folder of database 'no/w\.duckdb' does not exist") as caught:
        sink.native_copy(WriteSpec("w", "t", Strategy.APPEND))
    assert "folder" in caught.value.hint


@pytest.mark.parametrize(("content", "ok"), [(None, True), (b"not a database", False)])
def test_probe_reads_the_magic(tmp_path, content, ok):
    """A missing file will be created; another kind of file is permanent."""
    if content is not None:
        (tmp_path / "w.duckdb").write_bytes(content)
    result = find_connector("duckdb").check_connection({"path": "w.duckdb", "base_dir": str(tmp_path)}, CancelToken())
    assert result.ok is ok


def test_probe_accepts_a_database(harness, cursor, tmp_path):
    """Eight bytes in."""
    write_natively(cursor, harness, "t", "select 1 as k", Strategy.APPEND)
    cursor.execute(f"checkpoint {session_name('duckdb', 'ware-house')}")
    assert find_connector("duckdb").check_connection(harness.config, CancelToken()).ok


def test_fragment_without_bounds_is_the_table(harness, cursor, tmp_path):
    """A cursor alone adds no predicate; every part is quoted and the profile's name is unquoted."""
    write_natively(cursor, harness, "t", "select 1 as k", Strategy.APPEND)
    scan = _source(tmp_path).native_scan(ReadSpec("ware-house", "t", cursor="k"))
    alias = session_name("duckdb", "ware-house")
    assert scan.fragment == f'"{alias}"."main"."t"'
    assert scan.table == f"{alias}.main.t"
    assert scan.bounds_pushed


def test_bounds_are_pushed_as_literals(harness, cursor, tmp_path):
    """Digits bare, timestamps quoted with a blank for the T."""
    write_natively(cursor, harness, "t", "select 1 as k", Strategy.APPEND)
    source = _source(tmp_path)
    spec = ReadSpec("w", "t", cursor="k", watermark="5", lower_inclusive=True, upper_bound="-7.50", null_cursor=True)
    assert source.native_scan(spec).fragment.endswith('where (("k" >= 5 and "k" <= -7.50) or "k" is null))')
    spec = ReadSpec("w", "t", cursor="k", watermark="2026-01-02T03:04:05.000000")
    assert source.native_scan(spec).fragment.endswith("""where "k" > '2026-01-02 03:04:05.000000')""")


@pytest.mark.parametrize("entity", ["a.b.c", "", ".t", "t."])
def test_entities_are_a_table_or_a_schema_and_a_table(entity):
    """Anything else is a finding."""
    (finding,) = find_connector("duckdb").validate(ConnectionUse("w", {"path": "w.duckdb"}, reads={entity: {}}))
    assert finding.code == "PZ0344"


def test_schema_must_exist(harness, cursor):
    """Schemas are never created."""
    from pz_engine.duck.statement_error import DuckStatementError

    with pytest.raises(DuckStatementError):
        write_natively(cursor, harness, "sales.orders", "select 1 as k", Strategy.REPLACE)
    cursor.execute(f'create schema "{session_name("duckdb", "ware-house")}".sales')
    write_natively(cursor, harness, "sales.orders", "select 1 as k", Strategy.REPLACE)
    land_natively(cursor, harness, "sales.orders")
    assert landed_rows(cursor) == [(1,)]


def test_contract_prunes_and_casts_without_loss(harness, cursor):
    """A table's columns take the declared types, or the read fails."""
    write_natively(cursor, harness, "t", "select 7::bigint as k, 2.5::double as x, 'a' as v", Strategy.APPEND)
    land_natively(cursor, harness, "t", {"k": "int"})
    assert landed_rows(cursor) == [(7,)]
    with pytest.raises(PzConnectorError, match="column 'x'"):
        land_natively(cursor, harness, "t", {"x": "int"})


@pytest.mark.parametrize("strategy", [Strategy.APPEND, Strategy.MERGE])
@pytest.mark.parametrize(
    ("policy", "query", "problem"),
    [
        (SchemaPolicy.FAIL_ON_CHANGE, "select 2 as k, 'b' as v, 1 as extra", "no column 'extra'"),
        (SchemaPolicy.FAIL_ON_CHANGE, "select 2::bigint as k, 'b' as v", "'k' as INTEGER, the pipeline writes BIGINT"),
        (SchemaPolicy.ADDITIVE, "select 2 as k, 'b' as v, 1 as extra", None),
        (SchemaPolicy.ADDITIVE, "select 2::bigint as k, 'b' as v", "'k' as INTEGER, the pipeline writes BIGINT"),
        (SchemaPolicy.EVOLVE, "select 2::bigint as k, 'b' as v, 1.5 as extra", None),
        (SchemaPolicy.EVOLVE, "select 'two' as k, 'b' as v", "'k' as INTEGER, the pipeline writes VARCHAR"),
    ],
)
def test_schema_policy_decides_what_a_changed_column_does(harness, cursor, strategy, policy, query, problem):
    """A refusal names column, both types and a remedy, and leaves the table as it was."""
    write_natively(cursor, harness, "t", "select 1 as k, 'a' as v", Strategy.APPEND)
    if problem is None:
        write_natively(cursor, harness, "t", query, strategy, ("k",), policy)
        land_natively(cursor, harness, "t")
        assert [row[:2] for row in landed_rows(cursor)] == [(1, "a"), (2, "b")]
        return
    with pytest.raises(PzConnectorError, match=problem) as caught:
        write_natively(cursor, harness, "t", query, strategy, ("k",), policy)
    assert re.match(r"(set schema_policy: (additive|evolve), or )?(cast|leave) '\w+' ", caught.value.hint)
    land_natively(cursor, harness, "t")
    assert landed_rows(cursor) == [(1, "a")]


def test_surplus_target_columns_get_their_default(harness, cursor):
    """The table may have more than the pipeline writes."""
    write_natively(cursor, harness, "t", "select 1 as k, 'a' as v, 5 as more", Strategy.APPEND)
    write_natively(cursor, harness, "t", "select 'b' as v, 2 as k", Strategy.APPEND)
    land_natively(cursor, harness, "t")
    assert landed_rows(cursor) == [(1, "a", 5), (2, "b", None)]


def test_batches_are_refused(harness, tmp_path):
    """These tables are DuckDB's alone."""
    (tmp_path / "w.duckdb").touch()
    with pytest.raises(PzConnectorError) as caught:
        _source(tmp_path).get_schema(ReadSpec("w", "t"), CancelToken())
    assert caught.value.code == "PZ0312"
