"""What a retry takes of a load or a write that did not end: only what is proven, and never twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from pz_engine import CancelToken, NodeResult, RunOutcome, RunStatus, Selection
from pz_engine.app.host import LATEST
from pz_engine.connectors import Capability
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.events.types import NodeCompleted, RunEvent
from pz_engine.model.run import PartitionCounts
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector, WriteCall, rows

SYNC = "sync: { mode: incremental, cursor: id, max_window: %s, initial: 0 }"
CONNECTIONS = """
api: {{ connector: scripted, retry: {{ max_attempts: {attempts}, base_delay: 1ms, max_delay: 1ms }},
  entities: {{ things: {{ read: {{ columns: {{ id: bigint, name: varchar{more} }}, {sync} }} }} }} }}
store: {{ connector: scripted, retry: {{ max_attempts: 1 }} }}
"""


@pytest.fixture
def scripted() -> Iterator[ScriptedConnector]:
    """A connector whose source comes in three parts with identities."""
    connector = ScriptedConnector(partitions=("a", "b", "c"))
    connector.capabilities |= Capability.STABLE_PARTITION_IDS | Capability.BOUNDED_WINDOW
    with connector.installed():
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, scripted: ScriptedConnector) -> ProjectFactory:
    """A windowed increment into one sink."""
    declare(factory)
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'out', strategy: 'append', duplicates: 'accept') }}\nSELECT id FROM {{ source('api', 'things') }}",
    )
    return factory


def declare(project: ProjectFactory, *, attempts: int = 1, window: int = 100, more: str = "") -> None:
    project.connections(CONNECTIONS.format(attempts=attempts, sync=SYNC % window, more=more))


class Parts:
    """Reads three parts of two rows each; the broken ones fail after their first row."""

    NUMBERS = {"a": 1, "b": 2, "c": 3, "d": 4}  # noqa: RUF012 - never changed

    def __init__(self, scripted: ScriptedConnector, *broken: str, is_transient: bool = False) -> None:
        self.broken = set(broken)
        self.seen: list[str] = []
        self._schema = scripted
        self._is_transient = is_transient
        scripted.on_read = self.read

    def read(self, call: ReadCall) -> Iterator[pa.RecordBatch]:
        self.seen.append(call.partition)
        number = self.NUMBERS[call.partition]
        yield self.batch(number * 10)
        if call.partition in self.broken:
            raise PzConnectorError("gone", is_transient=self._is_transient)
        yield self.batch(number)

    def batch(self, number: int) -> pa.RecordBatch:
        found = {"id": number, "name": f"n{number}", "more": None}
        wanted = {name: found[name] for name in self._schema.schema.names}
        return pa.RecordBatch.from_pylist([wanted], schema=self._schema.schema)


def retry(project: ProjectFactory, **options: Any) -> RunOutcome:
    return project.run(retry_from=LATEST, selection=Selection(), **options)


def load_of(outcome: RunOutcome) -> NodeResult:
    return next(result for result in outcome.results if result.name == "src_api__things")


def landed(scripted: ScriptedConnector) -> list[int]:
    return sorted(row["id"] for row in scripted.written.get("out", []))


def delete_a_row(project: ProjectFactory, scripted: ScriptedConnector, database: Path) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"attach '{database}' as prior")
        connection.execute("delete from prior.staging.src_api__things where id = 1")


def divide_anew(project: ProjectFactory, scripted: ScriptedConnector, database: Path) -> None:
    scripted.partitions = ("b", "c", "d")


def widen_the_window(project: ProjectFactory, scripted: ScriptedConnector, database: Path) -> None:
    path = project.directory / ".pz" / "state" / "watermarks.json"
    path.parent.mkdir()
    path.write_text(
        '{"version": 1, "watermarks": {"api.things": {"cursor": "id", "type": "bigint", "value": "0", "runId": "manual"}}}'
    )
    declare(project, window=101)


def drop_the_rows(project: ProjectFactory, scripted: ScriptedConnector, database: Path) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"attach '{database}' as prior")
        connection.execute("drop table prior.staging.src_api__things")


GUARDS: dict[str, tuple[Callable[[ProjectFactory, ScriptedConnector, Path], None], str]] = {
    "rows": (delete_a_row, "not those that were counted"),
    "plan": (divide_anew, "divided in another way"),
    "window": (widen_the_window, "another slice"),
    "table": (drop_the_rows, "not there any more"),
}
"""What happens between the runs, and what the note says."""


@pytest.mark.parametrize("guard", GUARDS)
def test_parts_that_may_not_stand_for_a_new_read_are_read_again(
    project: ProjectFactory, scripted: ScriptedConnector, guard: str
) -> None:
    """Everything is read, a note says why, nothing arrives twice and nothing is missing."""
    parts = Parts(scripted, "b")
    first = project.run()
    assert first.exit_code == 1
    change, said = GUARDS[guard]
    change(project, scripted, project.directory / ".pz/runs" / first.run_id / "staging.duckdb")
    parts.broken.clear()
    parts.seen.clear()
    outcome = retry(project)
    assert outcome.exit_code == 0
    assert sorted(parts.seen) == sorted(scripted.partitions)
    assert load_of(outcome).partitions == PartitionCounts(3, 3, 0, 0)
    assert any(said in note and first.run_id in note for note in outcome.notes), outcome.notes
    numbers = [Parts.NUMBERS[each] for each in scripted.partitions]
    assert landed(scripted) == sorted([*numbers, *(number * 10 for number in numbers)])


def test_second_attempt_keeps_what_the_first_one_landed(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Within a run only the missing part is read again."""
    declare(project, attempts=2)
    parts = Parts(scripted, "b", is_transient=True)

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        if call.ordinal == 2:
            parts.broken.clear()
        yield from parts.read(call)

    scripted.on_read = read
    outcome = project.run()
    assert outcome.exit_code == 0
    assert sorted(parts.seen) == ["a", "b", "b", "c"]
    assert load_of(outcome).partitions == PartitionCounts(3, 3, 0, 0)
    assert landed(scripted) == [1, 2, 3, 10, 20, 30]


def test_second_attempt_of_a_retry_does_not_take_the_earlier_run_again(
    project: ProjectFactory, scripted: ScriptedConnector
) -> None:
    """Part one comes from the earlier run, part two from the first attempt, part three from the second; each once."""
    parts = Parts(scripted, "b", "c")
    assert project.run().exit_code == 1
    declare(project, attempts=2)
    parts = Parts(scripted, "c", is_transient=True)
    before = len(scripted.reads)

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        if call.ordinal == before + 2:
            parts.broken.clear()
        yield from parts.read(call)

    scripted.on_read = read
    outcome = retry(project)
    assert outcome.exit_code == 0
    assert sorted(parts.seen) == ["b", "c", "c"]
    assert landed(scripted) == [1, 2, 3, 10, 20, 30]


def test_two_loads_are_reused_at_once(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Their copies do not get into each other's way, and neither source is asked."""
    scripted.partitions = ("0",)
    scripted.on_read = lambda call: [rows(1, 2) if call.spec.entity == "left" else rows(2, 3)]
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 4 }\n')
    project.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'out', strategy: 'replace') }}\n"
        "SELECT l.id FROM {{ source('api', 'left') }} l JOIN {{ source('api', 'right') }} r USING (id)",
    )

    def refuse(call: WriteCall) -> None:
        raise PzConnectorError("refused", is_transient=False)

    scripted.on_write = refuse
    assert project.run().exit_code == 1
    scripted.on_write = lambda call: None
    scripted.reads.clear()
    outcome = retry(project)
    assert outcome.exit_code == 0
    reused = {result.name for result in outcome.results if result.provenance == "reused"}
    assert reused == {"src_api__left", "src_api__right"}
    assert scripted.reads == []
    assert landed(scripted) == [2]


@pytest.fixture
def delivery(project: ProjectFactory, scripted: ScriptedConnector) -> ProjectFactory:
    """Many rows into a destination that confirms each batch, beside a flow that fails when it is told."""
    scripted.partitions = ("0",)
    scripted.capabilities |= Capability.CHECKPOINTABLE_WRITES
    scripted.abort_semantics = "none"
    scripted.on_read = lambda call: [rows(*range(start, start + 30_000)) for start in range(1, 150_001, 30_000)]
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { batch_bytes: 1048576, threads: 2 }\n')
    project.connections(
        "api: { connector: scripted, retry: { max_attempts: 1 } }\nstore: { connector: scripted, retry: { max_attempts: 1 } }\n"
    )
    return project


@pytest.mark.parametrize("stop", ["cancelled", "fail fast"])
def test_cancelled_delivery_goes_on_after_what_was_confirmed(
    delivery: ProjectFactory, scripted: ScriptedConnector, stop: str
) -> None:
    """The node ends skipped and the run failed by another node; the retry sends exactly the rest."""
    delivery.pipeline("other", "INSERT INTO {{ sink('store', 'other', strategy: 'replace') }}\nSELECT 1 AS id")
    cancel, midway, failed = CancelToken(), threading.Event(), threading.Event()

    def watch(event: RunEvent) -> None:
        if isinstance(event, NodeCompleted) and event.result.name == "store.other":
            failed.set()

    def write(call: WriteCall) -> None:
        if call.spec.entity == "other":
            assert midway.wait(30)
            raise PzConnectorError("refused", is_transient=False)
        if call.batches == 1:
            midway.set()
            assert failed.wait(30)
            if stop == "cancelled":
                cancel.set()
            assert call.cancel.wait(30)
            call.cancel.raise_if_set()

    scripted.on_write = write
    first = delivery.run(cancel=cancel, fail_fast=stop == "fail fast", on_event=watch)
    assert first.status is RunStatus.COMPLETED_WITH_FAILURES
    assert {result.name: result.status.value for result in first.results}["store.out"] == "skipped"
    confirmed = len(scripted.written["out"])
    assert 0 < confirmed < 150_000
    scripted.on_write = lambda call: None
    outcome = retry(delivery)
    assert outcome.exit_code == 0
    assert landed(scripted) == list(range(1, 150_001))
    done = next(result for result in outcome.results if result.name == "store.out")
    assert done.delivery is not None
    assert done.delivery.resumed_rows == confirmed


def test_delivery_of_other_rows_begins_at_the_beginning(delivery: ProjectFactory, scripted: ScriptedConnector) -> None:
    """What was confirmed of an earlier relation says nothing about this one, although it has as many rows."""

    def write(call: WriteCall) -> None:
        if call.batches == 1:
            raise PzConnectorError("reset", is_transient=False)

    scripted.on_write = write
    assert delivery.run().exit_code == 1
    confirmed = len(scripted.written["out"])
    assert 0 < confirmed < 150_000
    scripted.on_write = lambda call: None
    text = (delivery.directory / "pipelines/copy.sql").read_text()
    delivery.pipeline("copy", text.replace("SELECT id", "SELECT id + 1000000 AS id"))
    outcome = retry(delivery)
    assert outcome.exit_code == 0
    done = next(result for result in outcome.results if result.name == "store.out")
    assert done.delivery is None
    assert len(scripted.written["out"]) == confirmed + 150_000
    assert [number for number in landed(scripted) if number > 1_000_000] == list(range(1_000_001, 1_150_001))


def test_delivery_of_a_load_that_was_read_again_begins_at_the_beginning(
    delivery: ProjectFactory, scripted: ScriptedConnector
) -> None:
    """The pipeline is the same and so is the number of rows, but the source has changed."""

    def write(call: WriteCall) -> None:
        if call.batches == 1:
            raise PzConnectorError("reset", is_transient=False)

    scripted.on_write = write
    first = delivery.run()
    assert first.exit_code == 1
    delete_a_row(delivery, scripted, delivery.directory / ".pz/runs" / first.run_id / "staging.duckdb")
    scripted.on_write = lambda call: None
    scripted.on_read = lambda call: [rows(*range(start, start + 30_000)) for start in range(2, 150_002, 30_000)]
    scripted.written.clear()
    outcome = retry(delivery)
    assert outcome.exit_code == 0
    assert next(result for result in outcome.results if result.name == "store.out").delivery is None
    assert landed(scripted) == list(range(2, 150_002))
