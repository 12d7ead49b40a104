"""Fixtures that land files the way a run does."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pz_engine.connectors.registry import find_connector
from pz_engine.duck.session import DuckCursor, DuckSession, DuckSettings
from pz_engine.testing.connector_suite_driver import LANDED, ConnectorHarness, land_batches, land_natively


@pytest.fixture
def cursor() -> Iterator[DuckCursor]:
    """A session of its own."""
    with DuckSession.open(None, DuckSettings(threads=2)) as session, session.cursor() as cursor:
        yield cursor


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a file below the connection's root."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        return path

    return write


class Landing:
    """Lands files with read options and tells what arrived."""

    def __init__(self, root: Path, cursor: DuckCursor) -> None:
        self._root, self._cursor = root, cursor

    def __call__(self, path: str, *, tier: str = "native", **options: Any) -> list[tuple[Any, ...]]:
        """Land and return the rows, sorted."""
        connector = find_connector("localfiles")
        assert connector is not None
        contract = options.pop("columns", None)
        harness = ConnectorHarness(
            connector, {"base_dir": str(self._root)}, "files", read_options=lambda _: {"path": path, **options}
        )
        if tier == "native":
            land_natively(self._cursor, harness, "entity", contract)
        else:
            land_batches(self._cursor, harness, "entity", contract)
        return self._cursor.rows(f"select * from {LANDED} order by all")

    @property
    def types(self) -> dict[str, str]:
        """Columns and types of what landed."""
        return {column.name: column.type for column in self._cursor.describe(f"select * from {LANDED}")}


@pytest.fixture
def land(tmp_path: Path, cursor: DuckCursor) -> Landing:
    """Land files below the temporary folder."""
    return Landing(tmp_path, cursor)
