"""What the tests of the connector suite share: data, fixtures and the choice of a tier."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import SinkConnector, SourceConnector, WriteSession
from pz_engine.connectors.capabilities import Capability
from pz_engine.duck.egress import stream_batches, write_schema
from pz_engine.duck.session import DuckCursor, DuckSession, DuckSettings
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy
from pz_engine.testing.connector_suite_driver import (
    OUTGOING,
    ConnectorHarness,
    land_batches,
    land_natively,
    write_batches,
    write_natively,
)

CONTRACT = {
    "i": "int",
    "b": "bigint",
    "x": "double",
    "d": "decimal(18,4)",
    "t": "varchar",
    "f": "boolean",
    "day": "date",
    "ts": "timestamp",
}
"""One column of each type that every connector carries."""

_EVERY_TYPE = """
select * from (values
  (1, 9007199254740993, 0.1::double, 12345678901.2345, 'Zürich, "the" 東京\nsecond line', true,
   date '2024-02-29', timestamp '2026-03-29 02:30:00.123456'),
  (-2147483648, -9223372036854775808, -1.5e300, -0.0001, ' blanks ', false,
   date '1969-12-31', timestamp '1969-12-31 23:59:59'),
  (null, null, null, null, null, null, null, null)
) v(i, b, x, d, t, f, day, ts)
"""
"""Values at the edges of those types, and a row of nulls."""

EVERY_TYPE_CAST = (
    "select i::integer i, b::bigint b, x::double x, d::decimal(18,4) d, t::varchar t, f::boolean f, day::date as day, "
    f"ts::timestamp as ts from ({_EVERY_TYPE})"
)
PAIRS = {"k": "int", "v": "varchar"}


def pairs(*rows: tuple[int, str]) -> str:
    """Return a query over (`k`, `v`) rows, in this order."""
    if not rows:
        return "select 0 as k, '' as v where false"
    return "select k::integer k, v::varchar v from (values " + ", ".join(f"({k}, '{v}')" for k, v in rows) + ") t(k, v)"


class SuiteParts:
    """Fixtures and steps; has no tests."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> ConnectorHarness:  # noqa: ARG002 - overriders take it
        """Describe the connector under test; override it."""
        pytest.fail("a subclass of the suite overrides the fixture `harness`")

    @pytest.fixture
    def cursor(self) -> Iterator[DuckCursor]:
        """A session of its own per test."""
        with DuckSession.open(None, DuckSettings(threads=2)) as session, session.cursor() as cursor:
            yield cursor

    @staticmethod
    def _plain(harness: ConnectorHarness) -> Strategy:
        replaces = Capability.REPLACE_WRITES in harness.connector.capabilities
        return Strategy.REPLACE if replaces else Strategy.APPEND

    @staticmethod
    def _is_json(harness: ConnectorHarness) -> bool:
        return harness.read_options("orders").get("format") == "json"

    @staticmethod
    def _require(harness: ConnectorHarness, capability: Capability) -> None:
        if capability not in harness.connector.capabilities:
            pytest.skip(f"the connector does not declare {capability.name}")

    def _write(
        self,
        cursor: DuckCursor,
        harness: ConnectorHarness,
        entity: str,
        query: str,
        strategy: Strategy | None = None,
        keys: tuple[str, ...] = (),
    ) -> int:
        if not harness.can_write:
            pytest.skip("the connector does not write")
        chosen = strategy or self._plain(harness)
        rows = write_natively(cursor, harness, entity, query, chosen, keys)
        return rows if rows is not None else write_batches(cursor, harness, entity, query, chosen)

    @staticmethod
    def _land(cursor: DuckCursor, harness: ConnectorHarness, entity: str, contract: dict[str, str] | None) -> None:
        if not harness.can_read:
            pytest.skip("the connector does not read")
        if not land_natively(cursor, harness, entity, contract):
            land_batches(cursor, harness, entity, contract)

    @staticmethod
    def _universal_source(harness: ConnectorHarness) -> Any:
        connector = harness.connector
        if not isinstance(connector, SourceConnector) or connector.native_only_reads:
            pytest.skip("the connector yields no batches")
        source = connector.open_source(harness.config)
        with contextlib.suppress(PzConnectorError):
            source.get_schema(harness.read_spec("types", CONTRACT), CancelToken())
            return source
        pytest.skip("this format yields no batches")

    @staticmethod
    def _universal_sink(harness: ConnectorHarness) -> Any:
        connector = harness.connector
        if not isinstance(connector, SinkConnector) or connector.native_only_writes:
            pytest.skip("the connector takes no batches")
        return connector.open_sink(harness.config)

    def _filled_session(self, cursor: DuckCursor, harness: ConnectorHarness, entity: str, query: str) -> WriteSession:
        sink = self._universal_sink(harness)
        cursor.execute(f"create or replace table {OUTGOING} as {query}")
        schema = write_schema(cursor, OUTGOING)
        session: WriteSession = sink.begin_write(
            harness.write_spec(entity, self._plain(harness)), schema, CancelToken()
        )
        for batch in stream_batches(cursor, OUTGOING, schema, batch_bytes=1 << 20):
            session.write_batch(batch, CancelToken())
        return session

    @staticmethod
    def _call(session: WriteSession, name: str, cursor: DuckCursor) -> None:
        if name == "commit":
            session.commit(CancelToken())
        elif name == "abort":
            session.abort()
        else:
            schema = write_schema(cursor, OUTGOING)
            for batch in stream_batches(cursor, OUTGOING, schema, batch_bytes=1 << 20):
                session.write_batch(batch, CancelToken())


def listing(directory: Path | None) -> list[str]:
    """Return everything below a folder with its size, temporary files included."""
    if directory is None or not directory.exists():
        return []
    return sorted(
        f"{path.relative_to(directory)} {path.stat().st_size}" for path in directory.rglob("*") if path.is_file()
    )
