"""The conformance suite over every format of `localfiles`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pz_engine.connectors.registry import find_connector
from pz_engine.testing.connector_suite import ConnectorHarness, ConnectorSuite

FORMATS = {
    "csv": {"format": "csv"},
    "semicolon": {"format": "csv", "delimiter": ";"},
    "tsv": {"format": "tsv"},
    "gzip": {"format": "csv", "compression": "gzip"},
    "zstd": {"format": "json", "compression": "zstd"},
    "ndjson": {"format": "json"},
    "parquet": {"format": "parquet"},
}


def make_harness(directory: Path, name: str = "csv") -> ConnectorHarness:
    """Describe one format below a folder."""
    connector = find_connector("localfiles")
    assert connector is not None
    written = dict(FORMATS[name])
    suffix = {"gzip": ".gz", "zstd": ".zst"}.get(written.get("compression", ""), "")
    kept = {key: value for key, value in written.items() if key != "compression"}
    return ConnectorHarness(
        connector,
        {"base_dir": str(directory)},
        write_options=written,
        read_options=lambda entity: {**kept, "path": f"{entity}/{entity}*.{written['format']}{suffix}"},
        needs_contract=written["format"] != "parquet",
        keeps_empty_text=written["format"] not in ("csv", "tsv"),
        keeps_long_decimals=written["format"] != "json",
        directory=directory,
        origin=f"{__name__}:make_harness" if name == "csv" else None,
    )


class TestLocalFiles(ConnectorSuite):
    """Every format, both tiers."""

    @pytest.fixture(params=FORMATS)
    def harness(self, request: pytest.FixtureRequest, tmp_path: Path) -> ConnectorHarness:
        """One harness per format."""
        return make_harness(tmp_path, request.param)
