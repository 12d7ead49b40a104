"""Compressed files are read whole or not at all, whatever DuckDB would take of them."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

from pz_engine.connectors.api import ReadSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.errors.exceptions import PzConnectorError

BODY = ("a,b\n" + "".join(f"{number},{number * 7919 % 100_000}\n" for number in range(60_000))).encode()
RECORDS = b"".join(b'{"a": %d}\n' % (number * 7919 % 100_000) for number in range(60_000))
CONTRACT = {"a": "int", "b": "int"}


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def _flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position:][1:]


DAMAGES = {
    "ends early": lambda packed: packed[:-2000],
    "lacks its last byte": lambda packed: packed[:-1],
    "was never compressed": lambda packed: BODY,
}
GZIP_DAMAGES = {
    **DAMAGES,
    "lacks its trailer": lambda packed: packed[:-8],
    "has another checksum": lambda packed: _flipped(packed, len(packed) - 6),
    "has a damaged block": lambda packed: _flipped(packed, len(packed) // 2),
    "has a damaged first block": lambda packed: _flipped(packed, 12),
}


def _lay(root, name, data):
    (root / name).write_bytes(data)
    return name


@pytest.mark.parametrize("damage", GZIP_DAMAGES)
@pytest.mark.parametrize("tier", ["native", "universal"])
def test_damaged_gzip_fails_naming_the_file(land, tmp_path, damage, tier):
    """On both tiers, as a permanent failure with a next step."""
    name = _lay(tmp_path, "o.csv.gz", GZIP_DAMAGES[damage](_gzip(BODY)))
    with pytest.raises(PzConnectorError, match=r"file 'o\.csv\.gz' failed: it is cut off or damaged") as caught:
        land(name, tier=tier, columns=CONTRACT)
    assert not caught.value.is_transient
    assert "compression: none" in caught.value.hint


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("tier", ["native", "universal"])
def test_damaged_zstd_fails_naming_the_file(land, tmp_path, damage, tier):
    """DuckDB lands what a cut-off stream still gives."""
    name = _lay(tmp_path, "o.csv.zst", DAMAGES[damage](_zstd(BODY)))
    with pytest.raises(PzConnectorError, match=r"file 'o\.csv\.zst' failed: it is cut off or damaged"):
        land(name, tier=tier, columns=CONTRACT)


@pytest.mark.parametrize("contract", [None, {"a": "int"}])
@pytest.mark.parametrize(("suffix", "pack"), [("gz", _gzip), ("zst", _zstd)])
def test_damaged_json_fails_naming_the_file(land, tmp_path, contract, suffix, pack):
    """With and without a contract."""
    name = _lay(tmp_path, f"o.json.{suffix}", pack(RECORDS)[:-1])
    options = {"columns": contract} if contract else {}
    with pytest.raises(PzConnectorError, match=rf"file 'o\.json\.{suffix}' failed: it is cut off or damaged"):
        land(name, format="json", **options)


@pytest.mark.parametrize("options", [{}, {"columns": CONTRACT}])
def test_second_of_two_files_is_checked_too(land, tmp_path, options):
    """The message names the one that is damaged."""
    _lay(tmp_path, "o1.csv.gz", _gzip(BODY))
    _lay(tmp_path, "o2.csv.gz", _gzip(BODY)[:-8])
    with pytest.raises(PzConnectorError, match=r"file 'o2\.csv\.gz' failed"):
        land("o*.csv.gz", **options)


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize(("suffix", "pack"), [("gz", _gzip), ("zst", _zstd)])
def test_whole_files_land(land, tmp_path, tier, suffix, pack):
    """Several members in one file included."""
    name = _lay(tmp_path, f"o.csv.{suffix}", pack(BODY) + pack(b"7,8\n"))
    assert len(land(name, tier=tier, columns=CONTRACT)) == 60_001


def test_only_compressed_files_are_read_twice(put, tmp_path):
    """Nothing has to be verified about plain text and parquet."""
    put("o.csv", "a\n1\n")
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    assert source.native_scan(ReadSpec("files", "o", {"path": "o.csv"})).verify is None


@pytest.mark.parametrize("options", [{}, {"columns": CONTRACT}, {"columns": CONTRACT, "ragged": "pad"}])
def test_unreadable_file_does_not_hinder_planning(tmp_path, options):
    """Its header is not checked; the node that reads it fails."""
    _lay(tmp_path, "o.csv.gz", b"a,b\n1,2\n")
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    scan = source.native_scan(ReadSpec("files", "o", {"path": "o.csv.gz", **options}))
    assert "it is cut off or damaged" in scan.nothing_to_read.message
