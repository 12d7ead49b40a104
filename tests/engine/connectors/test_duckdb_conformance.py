"""The conformance suite over DuckDB database files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pz_engine.connectors.registry import find_connector
from pz_engine.testing.connector_suite import ConnectorHarness, ConnectorSuite


class TestDuckDb(ConnectorSuite):
    """Tables of one file."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> ConnectorHarness:
        """A file that does not exist yet."""
        connector = find_connector("duckdb")
        assert connector is not None
        return ConnectorHarness(connector, {"path": "out.duckdb", "base_dir": str(tmp_path)}, directory=tmp_path)
