"""Options of `localfiles`: what is refused before anything is read or written."""

from __future__ import annotations

import pytest

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ConnectionUse, ReadSpec, WriteSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy


def _findings(reads=None, writes=None, **config):
    use = ConnectionUse("files", {"base_dir": "/data", **config}, reads=reads or {}, writes=writes or {})
    return find_connector("localfiles").validate(use)


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ({"format": "xml"}, "PZ0361", "csv, json, parquet, tsv"),
        ({"format": "json", "delimiter": ";"}, "PZ0362", "delimiter"),
        ({"format": "tsv", "delimiter": ";"}, "PZ0362", "delimiter"),
        ({"delimiter": ";;"}, "PZ0362", "delimiter"),
        ({"delimiter": '"'}, "PZ0362", "delimiter"),
        ({"delimiter": "é"}, "PZ0362", "delimiter"),
        ({"layout": "array"}, "PZ0362", "layout"),
        ({"format": "json", "layout": "rows"}, "PZ0362", "ndjson, array"),
        ({"encoding": "ebcdic"}, "PZ0362", "utf-8, utf-16, latin-1"),
        ({"format": "parquet", "encoding": "utf-8"}, "PZ0362", "encoding"),
        ({"compression": "lz4"}, "PZ0362", "auto, none, gzip, zstd"),
        ({"format": "parquet", "compression": "zstd"}, "PZ0362", "compression"),
        ({"ragged": "ignore"}, "PZ0362", "fail, pad, reject"),
        ({"format": "json", "ragged": "pad"}, "PZ0362", "ragged"),
        ({"on_empty": "skip"}, "PZ0362", "fail, zero_rows"),
        ({"on_empty": "zero_rows"}, "PZ0362", "columns"),
        ({"columns": {"a": "blob"}}, "PZ0362", "'a'"),
        ({"path": "../other/x.csv"}, "PZ0365", ".."),
        ({"path": "a/../../x.csv"}, "PZ0365", ".."),
    ],
)
def test_bad_read_options_are_findings(options, code, word):
    """Each names the option, or lists what is allowed, and says what to do."""
    (finding,) = _findings(reads={"orders": options})
    assert (finding.code, finding.entity, finding.is_write) == (code, "orders", False)
    assert word in finding.message
    assert finding.hint


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"format": "avro"}, "PZ0361"),
        ({"compression": "lz4"}, "PZ0362"),
        ({"format": "csv", "compression": "snappy"}, "PZ0362"),
        ({"delimiter": ";"}, "PZ0362"),
        ({"path": ".."}, "PZ0365"),
    ],
)
def test_bad_write_options_are_findings(options, code):
    """The write side has its own defaults and choices."""
    (finding,) = _findings(writes={"orders": options})
    assert (finding.code, finding.is_write) == (code, True)


def test_all_problems_are_found_at_once():
    """One pass reports every entity."""
    findings = _findings(
        reads={"a": {"format": "xml"}, "b": {"delimiter": "", "encoding": "x"}}, writes={"c": {"path": ".."}}
    )
    assert [finding.entity for finding in findings] == ["a", "b", "b", "c"]


def test_absolute_and_contained_paths_are_fine():
    """An absolute path ignores the root; `..` inside it is harmless."""
    assert _findings(reads={"a": {"path": "/elsewhere/x.csv"}, "b": {"path": "x/../y.csv"}}) == []


@pytest.mark.parametrize(
    ("entity", "options", "root"),
    [
        ("orders", {"path": ".pz/runs"}, "."),
        ("orders", {"path": "out/../.pz"}, "."),
        ("orders", {"path": "."}, ".pz/state"),
        ("orders", {"path": "linked/x"}, "."),
        ("orders", {"path": ".pz/{yyyy}/{MM}", "partition_by": "day"}, "."),
        (".pz", {}, "."),
    ],
)
def test_nothing_is_written_among_runs_and_state(tmp_path, entity, options, root):
    """The engine cleans there; refused offline and again when a path is only known at run time."""
    (tmp_path / ".pz").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / ".pz")
    (finding,) = _findings(writes={entity: options}, base_dir=str(tmp_path), root=root)
    assert (finding.code, finding.entity, finding.is_write) == ("PZ0301", entity, True)
    assert f"path '{options.get('path', entity)}'" in finding.message
    assert finding.hint
    if "partition_by" not in options:
        sink = find_connector("localfiles").open_sink({"base_dir": str(tmp_path), "root": root})
        with pytest.raises(PzConnectorError, match="which the engine owns") as caught:
            sink.native_copy(WriteSpec("files", entity, Strategy.REPLACE, options=options))
        assert caught.value.code == "PZ0301"


def test_reading_runs_and_state_is_fine(tmp_path):
    """Only writes are refused."""
    assert _findings(reads={"x": {"path": ".pz/target/*.json", "format": "json"}}, base_dir=str(tmp_path)) == []


def test_same_rules_hold_at_run_time(tmp_path):
    """Options that only a call site declares are refused before a file is touched."""
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    with pytest.raises(PzConnectorError) as caught:
        source.native_scan(ReadSpec("files", "orders", {"format": "json", "ragged": "pad"}))
    assert caught.value.code == "PZ0362"
    sink = find_connector("localfiles").open_sink({"base_dir": str(tmp_path)})
    with pytest.raises(PzConnectorError) as caught:
        sink.native_copy(WriteSpec("files", "orders", Strategy.REPLACE, options={"path": "../x"}))
    assert caught.value.code == "PZ0365"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"format": "parquet", "columns": {"a": "int"}}, "PZ0312"),
        ({"format": "json", "columns": {"a": "int"}}, "PZ0312"),
        ({"format": "json", "layout": "array", "columns": {"a": "int"}}, "PZ0361"),
        ({}, None),
    ],
)
def test_batches_exist_for_delimited_files_with_a_contract_only(tmp_path, options, code):
    """Everything else says which option stands in the way."""
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    with pytest.raises(PzConnectorError) as caught:
        source.get_schema(ReadSpec("files", "orders", options), CancelToken())
    assert caught.value.code == code
    assert not caught.value.is_transient


def test_array_layout_is_not_written_in_batches(tmp_path):
    """It is DuckDB's alone (`PZ0361`)."""
    import pyarrow as pa

    sink = find_connector("localfiles").open_sink({"base_dir": str(tmp_path)})
    spec = WriteSpec("files", "orders", Strategy.REPLACE, options={"format": "json", "layout": "array"})
    with pytest.raises(PzConnectorError) as caught:
        sink.begin_write(spec, pa.schema([("a", pa.int32())]), CancelToken())
    assert caught.value.code == "PZ0361"


@pytest.mark.parametrize(("root", "ok"), [(".", True), ("missing", True), ("file", False)])
def test_probe_looks_at_the_root(tmp_path, root, ok):
    """A missing root will be created by a write; a file in its place is permanent."""
    (tmp_path / "file").touch()
    result = find_connector("localfiles").check_connection({"base_dir": str(tmp_path), "root": root}, CancelToken())
    assert result.ok is ok
    assert ok or result.message.startswith("permanent:")
