"""The part of the connector suite that moves Arrow batches: partitions and write sessions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import weakref
from typing import Any

import pytest

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.connectors.api import BatchOptions, ReadHints
from pz_engine.duck.egress import stream_batches, write_schema
from pz_engine.duck.session import DuckCursor
from pz_engine.testing.connector_suite_driver import (
    OUTGOING,
    ConnectorHarness,
    land_batches,
    landed_rows,
    write_batches,
)
from pz_engine.testing.connector_suite_parts import CONTRACT, EVERY_TYPE_CAST, PAIRS, SuiteParts, listing, pairs


class BatchSuite(SuiteParts):
    """Tests of the universal tier; skipped for connectors that DuckDB serves alone."""

    def test_schema_is_that_of_the_batches(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """Every batch has exactly the announced schema, and the partitions together hold every row."""
        source = self._universal_source(harness)
        self._write(cursor, harness, "types", EVERY_TYPE_CAST)
        spec, cancel = harness.read_spec("types", CONTRACT), CancelToken()
        schema = source.get_schema(spec, cancel)
        batches = [
            batch
            for partition in source.plan_read(spec, ReadHints(), cancel)
            for batch in partition.read(BatchOptions(), cancel)
        ]
        source.close()
        source.close()
        assert all(batch.schema.equals(schema) for batch in batches)
        land_batches(cursor, harness, "types", CONTRACT)
        assert landed_rows(cursor) == cursor.rows(f"select * from ({EVERY_TYPE_CAST}) order by all")

    def test_read_stops_when_cancelled(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A set token ends a partition before its next batch."""
        source = self._universal_source(harness)
        self._write(cursor, harness, "many", pairs(*((number, "x") for number in range(50))))
        cancel = CancelToken()
        partition = source.plan_read(harness.read_spec("many", PAIRS), ReadHints(), cancel)[0]
        batches = partition.read(BatchOptions(max_rows=10), cancel)
        next(batches)
        cancel.set()
        with pytest.raises(Cancelled):
            next(batches)

    def test_session_writes_what_the_copy_writes(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """Both tiers leave the same rows behind."""
        self._universal_sink(harness)
        write_batches(cursor, harness, "types", EVERY_TYPE_CAST, self._plain(harness))
        self._land(cursor, harness, "types", CONTRACT)
        assert landed_rows(cursor) == cursor.rows(f"select * from ({EVERY_TYPE_CAST}) order by all")

    def test_session_without_rows_is_a_success(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """Zero batches still make an entity with its columns."""
        self._universal_sink(harness)
        assert write_batches(cursor, harness, "nothing", pairs(), self._plain(harness)) == 0
        self._land(cursor, harness, "nothing", PAIRS)
        assert landed_rows(cursor) == []

    @pytest.mark.parametrize("ending", ["abort", "close"])
    def test_unfinished_session_leaves_nothing(
        self, harness: ConnectorHarness, cursor: DuckCursor, ending: str
    ) -> None:
        """Abort, or close without a commit, gives the target back as it was."""
        sink = self._universal_sink(harness)
        if sink.abort_semantics != "discards_all":
            pytest.skip("the connector does not promise it")
        write_batches(cursor, harness, "orders", pairs((1, "before")), self._plain(harness))
        before = listing(harness.directory)
        session = self._filled_session(cursor, harness, "orders", pairs((2, "lost")))
        getattr(session, ending)()
        session.close()
        assert listing(harness.directory) == before
        self._land(cursor, harness, "orders", PAIRS)
        assert landed_rows(cursor) == [(1, "before")]

    def test_target_is_untouched_until_commit(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A reader never sees part of a write."""
        self._universal_sink(harness)
        write_batches(cursor, harness, "orders", pairs((1, "before")), self._plain(harness))
        session = self._filled_session(cursor, harness, "orders", pairs((2, "after")))
        self._land(cursor, harness, "orders", PAIRS)
        assert landed_rows(cursor) == [(1, "before")]
        session.commit(CancelToken())
        session.close()
        self._land(cursor, harness, "orders", PAIRS)
        assert (2, "after") in landed_rows(cursor)

    @pytest.mark.parametrize("first", ["commit", "abort"])
    @pytest.mark.parametrize("second", ["commit", "abort", "write_batch"])
    def test_finished_session_takes_no_more_calls(
        self, harness: ConnectorHarness, cursor: DuckCursor, first: str, second: str
    ) -> None:
        """Commit and abort happen once and exclude each other."""
        self._universal_sink(harness)
        session = self._filled_session(cursor, harness, "orders", pairs((1, "a")))
        self._call(session, first, cursor)
        with pytest.raises(RuntimeError):
            self._call(session, second, cursor)
        session.close()
        session.close()

    def test_cancelled_write_raises(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A set token stops the session at its next batch, and the target keeps what it had."""
        self._universal_sink(harness)
        before = listing(harness.directory)
        session = self._filled_session(cursor, harness, "orders", pairs((1, "a")))
        cancel = CancelToken()
        cancel.set()
        schema = write_schema(cursor, OUTGOING)
        batch = next(iter(stream_batches(cursor, OUTGOING, schema, batch_bytes=1 << 20)))
        with pytest.raises(Cancelled):
            session.write_batch(batch, cancel)
        session.close()
        assert listing(harness.directory) == before

    def test_batches_are_not_kept(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A batch belongs to the engine again when the call returns."""
        sink = self._universal_sink(harness)
        cursor.execute(f"create or replace table {OUTGOING} as {pairs((1, 'a'))}")
        schema = write_schema(cursor, OUTGOING)
        session = sink.begin_write(harness.write_spec("orders", self._plain(harness)), schema, CancelToken())
        batch: Any = next(iter(stream_batches(cursor, OUTGOING, schema, batch_bytes=1 << 20)))
        watched = weakref.ref(batch)
        session.write_batch(batch, CancelToken())
        del batch
        assert watched() is None
        session.close()

    def test_killed_before_rename_leaves_the_old_rows(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A process that dies between writing and publishing changes nothing a reader sees."""
        self._universal_sink(harness)
        if harness.origin is None or harness.directory is None:
            pytest.skip("the harness cannot be built in another process")
        write_batches(cursor, harness, "orders", pairs((1, "before")), self._plain(harness))
        child = subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-m", "pz_engine.testing.connector_suite_child", harness.origin, str(harness.directory)],
            env={**os.environ, "PZ_FAULT": "before_rename=kill", "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
            timeout=60,
        )
        assert child.returncode == -signal.SIGKILL
        self._land(cursor, harness, "orders", PAIRS)
        assert landed_rows(cursor) == [(1, "before")]
