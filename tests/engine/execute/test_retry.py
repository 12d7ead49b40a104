"""`pz retry`: what is proven is taken, what is not is done again, and nothing is sent twice that was confirmed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from pz_engine import NodeStatus, PzStateError, RunOutcome, Selection
from pz_engine.app.host import LATEST
from pz_engine.connectors import Capability
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.events.types import NodeCompleted, RunEvent, RunStarted
from pz_engine.model.run import PartitionCounts
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector, WriteCall, rows


@pytest.fixture
def scripted() -> Iterator[ScriptedConnector]:
    """An installed scripted connector."""
    with ScriptedConnector().installed() as connector:
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, scripted: ScriptedConnector) -> ProjectFactory:
    """One source, a pipeline with a check, two sinks; nothing is tried twice inside a run."""
    factory.connections(
        """
        api: { connector: scripted, retry: { max_attempts: 1 } }
        good: { connector: scripted, retry: { max_attempts: 1 } }
        bad: { connector: scripted, retry: { max_attempts: 1 } }
        """
    )
    factory.pipeline(
        "copy",
        "INSERT INTO [{{ sink('good', 'a', strategy: 'merge', keys: ['id']) }}, {{ sink('bad', 'b', strategy: 'merge', keys: ['id']) }}]\n"
        "SELECT * FROM {{ source('api', 'things') }}",
    )
    factory.sidecar("copy", "checks:\n  - not_null: [id]\n")
    return factory


def retry(project: ProjectFactory, **options: Any) -> RunOutcome:
    return project.run(retry_from=LATEST, selection=options.pop("selection", Selection()), **options)


def fail_sink(entity: str) -> Callable[[WriteCall], None]:
    def script(call: WriteCall) -> None:
        if call.spec.entity == entity:
            raise PzConnectorError("refused", is_transient=False)

    return script


def fine(call: WriteCall) -> None:
    del call


def status(outcome: RunOutcome) -> dict[str, tuple[str, str | None]]:
    return {result.name: (result.status.value, result.provenance) for result in outcome.results}


def test_committed_sink_is_carried_and_the_load_is_reused(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The source is not asked again, the committed sink is not written again, and everything says so."""
    scripted.on_write = fail_sink("b")
    assert project.run().exit_code == 1
    scripted.on_write = fine
    scripted.reads.clear()
    events: list[RunEvent] = []
    outcome = retry(project, events=events)
    assert outcome.exit_code == 0
    assert status(outcome) == {
        "good.a": ("success", "carried_forward"),
        "src_api__things": ("success", "reused"),
        "copy": ("success", None),
        "bad.b": ("success", None),
    }
    assert scripted.reads == []
    assert [row["id"] for row in scripted.written["a"]] == [1, 2]
    assert [row["id"] for row in scripted.written["b"]] == [1, 2]
    assert [type(event) for event in events[:2]] == [RunStarted, NodeCompleted]
    started, carried = events[0], events[1]
    assert isinstance(started, RunStarted)
    assert (started.mode, started.node_count) == ("retry", 3)
    assert isinstance(carried, NodeCompleted)
    assert (carried.result.name, carried.result.duration_ms, carried.result.rows) == ("good.a", 0, 2)
    assert any("1 source load(s) are reused" in note for note in outcome.notes)
    assert any("1 committed sink(s) are carried forward" in note for note in outcome.notes)
    stored = json.loads((project.directory / ".pz/runs" / outcome.run_id / "run_results.json").read_text())
    assert [node.get("provenance") for node in stored["nodes"]] == ["carried_forward", "reused", None, None]


def test_watermark_moves_only_with_the_retry(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The reused load keeps its recorded candidate, and it is stored once every sink has it."""
    project.connections(
        """
        api:
          connector: scripted
          retry: { max_attempts: 1 }
          entities: { things: { read: { columns: { id: bigint, name: varchar }, sync: { mode: incremental, cursor: id } } } }
        good: { connector: scripted, retry: { max_attempts: 1 } }
        bad: { connector: scripted, retry: { max_attempts: 1 } }
        """
    )
    state = project.directory / ".pz/state/watermarks.json"
    scripted.on_write = fail_sink("b")
    project.run()
    assert not state.exists()
    scripted.on_write = fine
    outcome = retry(project)
    entry = json.loads(state.read_text())["watermarks"]["api.things"]
    assert (entry["value"], entry["runId"]) == ("2", outcome.run_id)


@pytest.mark.parametrize("damage", ["missing", "corrupt", "locked", "rows", "table"])
def test_prior_database_that_does_not_hold_costs_an_extraction(
    project: ProjectFactory, scripted: ScriptedConnector, damage: str
) -> None:
    """Never a failure of its own; a note says why, and carried sinks then hold nothing back that is not true."""
    scripted.on_write = fail_sink("b")
    first = project.run()
    database = project.directory / ".pz/runs" / first.run_id / "staging.duckdb"
    holder = None
    if damage == "missing":
        database.unlink()
    elif damage == "corrupt":
        database.write_bytes(b"no database" * 1000)
    elif damage == "locked":
        import subprocess
        import sys

        script = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print('held', flush=True); time.sleep(60)"
        holder = subprocess.Popen([sys.executable, "-c", script, str(database)], stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
    else:
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"attach '{database}' as prior")
            statement = (
                "delete from prior.staging.src_api__things where id = 1"
                if damage == "rows"
                else "drop table prior.staging.src_api__things"
            )
            connection.execute(statement)
    scripted.on_write = fine
    scripted.reads.clear()
    try:
        outcome = retry(project)
    finally:
        if holder is not None:
            holder.kill()
            holder.wait()
            assert holder.stdout is not None
            holder.stdout.close()
    assert outcome.exit_code == 0
    assert len(scripted.reads) == 1
    assert status(outcome)["src_api__things"] == ("success", None)
    assert [row["id"] for row in scripted.written["b"]] == [1, 2]
    if damage != "missing":
        assert any((first.run_id in note and "again" in note) or "cannot be opened" in note for note in outcome.notes)
    else:
        assert "good.a" not in status(outcome)


def test_retry_refuses_what_it_cannot_continue(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """No run, an interrupted one, a fatal one, each with its code; a success says so and does nothing."""
    with pytest.raises(PzStateError) as caught:
        retry(project)
    assert caught.value.code == "PZ0502"
    first = project.run()
    assert first.exit_code == 0
    done = retry(project)
    assert (done.exit_code, done.results) == (0, ())
    assert any(f"nothing to retry: run {first.run_id} succeeded" in note for note in done.notes)
    path = project.directory / ".pz/runs" / first.run_id / "run_results.json"
    document = json.loads(path.read_text())
    for word, code in (("running", "PZ0503"), ("fatal", "PZ0504")):
        path.write_text(json.dumps({**document, "status": word}))
        with pytest.raises(PzStateError) as caught:
            retry(project)
        assert caught.value.code == code
    assert len(list((project.directory / ".pz/runs").iterdir())) == 1


def test_changed_nodes_are_named_and_left_out(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A pipeline edited since the run is another node; its failed sink depends on it and keeps its own identity."""
    scripted.on_read = lambda call: (_ for _ in ()).throw(PzConnectorError("down", is_transient=False))
    project.run()
    scripted.on_read = lambda call: [rows(1, 2)]
    project.pipeline("copy", (project.directory / "pipelines/copy.sql").read_text().replace("SELECT *", "SELECT id"))
    outcome = retry(project)
    assert any("'copy' has changed" in note for note in outcome.notes)
    assert outcome.exit_code == 0
    assert [row["id"] for row in scripted.written["a"]] == [1, 2]


def test_retry_of_a_retry_and_of_a_test(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Each continues the newest run, whatever made it; what was reused can be reused again."""
    scripted.on_write = fail_sink("b")
    project.run()
    assert retry(project).exit_code == 1
    scripted.on_write = fine
    scripted.reads.clear()
    outcome = retry(project)
    assert scripted.reads == []
    assert status(outcome)["good.a"] == ("success", "carried_forward")
    assert outcome.exit_code == 0

    project.sidecar("copy", "checks:\n  - row_count: { min: 5 }\n")
    assert project.run(mode="test").exit_code == 1
    project.sidecar("copy", "checks:\n  - row_count: { min: 5 }\n    \n")
    again = retry(project)
    assert {result.kind.value for result in again.results} == {"SourceLoad", "Pipeline", "Check"}
    assert again.exit_code == 1


def test_full_refresh_takes_nothing(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Everything of the retry is read and nothing is carried."""
    scripted.on_write = fail_sink("b")
    project.run()
    scripted.on_write = fine
    scripted.reads.clear()
    outcome = retry(project, full_refresh=True)
    assert len(scripted.reads) == 1
    assert "good.a" not in status(outcome)


def test_failed_partitions_alone_are_read_again(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Inside a run by the node's own tries, across runs by retry; counts tell planned, landed, reused."""
    scripted.capabilities |= Capability.STABLE_PARTITION_IDS
    scripted.partitions = ("a", "b", "c")
    numbers = {"a": 1, "b": 2, "c": 3}
    seen: list[str] = []
    broken = {"b"}

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        seen.append(call.partition)
        yield rows(numbers[call.partition] * 10)
        if call.partition in broken:
            raise PzConnectorError("gone", is_transient=False)
        yield rows(numbers[call.partition])

    scripted.on_read = read
    first = project.run()
    failed = next(result for result in first.results if result.status is NodeStatus.FAILED)
    assert failed.error is not None
    assert "1 of 3 partitions" in failed.error.message
    assert sorted(seen) == ["a", "b", "c"]
    broken.clear()
    seen.clear()
    outcome = retry(project)
    assert seen == ["b"]
    load = next(result for result in outcome.results if result.name == "src_api__things")
    assert load.partitions == PartitionCounts(3, 3, 2, 0)
    assert (load.rows, load.provenance, load.timings) == (6, None, None)
    assert sorted(row["id"] for row in scripted.written["a"]) == [1, 2, 3, 10, 20, 30]


def test_checkpointed_partition_goes_on_in_the_middle(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Rows up to the checkpoint are kept, inside a run and across runs; nothing twice, nothing lost."""
    scripted.capabilities |= Capability.STABLE_PARTITION_IDS | Capability.CHECKPOINTABLE_READS
    stop_after = [2]

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        for number in range(5):
            if number >= stop_after[0]:
                raise PzConnectorError("reset", is_transient=False)
            yield rows(number)

    scripted.on_read = read
    assert project.run().exit_code == 1
    stop_after[0] = 4
    assert retry(project).exit_code == 1
    stop_after[0] = 9
    outcome = retry(project)
    load = next(result for result in outcome.results if result.name == "src_api__things")
    assert load.partitions == PartitionCounts(1, 1, 0, 1)
    assert sorted(row["id"] for row in scripted.written["a"]) == [0, 1, 2, 3, 4]


def test_confirmed_rows_are_not_sent_again(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """A destination that confirms batches gets exactly the rest, from attempt to attempt and from run to run."""
    scripted.capabilities |= Capability.CHECKPOINTABLE_WRITES
    scripted.abort_semantics = "none"
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { batch_bytes: 1048576 }\n')
    scripted.on_read = lambda call: [rows(*range(start, start + 30_000)) for start in range(0, 150_000, 30_000)]
    failures = [2]

    def write(call: WriteCall) -> None:
        if call.spec.entity == "b" and call.batches == failures[0]:
            failures[0] = -1
            raise PzConnectorError("reset", is_transient=False)

    scripted.on_write = write
    first = project.run()
    failed = next(result for result in first.results if result.name == "bad.b")
    assert failed.delivery is not None
    visible = len(scripted.written["b"])
    assert (failed.delivery.rows_visible, failed.delivery.abort_semantics) == (visible, "none")
    assert 0 < visible < 150_000
    outcome = retry(project)
    done = next(result for result in outcome.results if result.name == "bad.b")
    assert done.delivery is not None
    assert (done.delivery.resumed_rows, done.delivery.rows_visible, done.rows) == (visible, 150_000, 150_000)
    assert sorted(row["id"] for row in scripted.written["b"]) == list(range(150_000))


@pytest.mark.parametrize("identities", [("", "b"), ("a", "a")])
def test_partitions_without_identity_are_refused(
    project: ProjectFactory, scripted: ScriptedConnector, identities: tuple[str, ...]
) -> None:
    """Named by their place, never by their identity."""
    scripted.capabilities |= Capability.STABLE_PARTITION_IDS
    scripted.partitions = identities
    failed = next(result for result in project.run().results if result.status is NodeStatus.FAILED)
    assert failed.error is not None
    assert failed.error.code == "PZ0319"
