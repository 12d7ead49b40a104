"""What a host asks of a run beside its results: gates, chosen nodes, a run to continue, its own store and record."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pz_engine import CancelToken, NodeStatus, PzStateError, RunOutcome, RunStatus, Selection, list_runs
from pz_engine.app.plan import plan_project
from pz_engine.base.fault_points import InjectedFault
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.events.types import NodeStarted, RunCompleted, RunEvent
from pz_engine.state.retention import SweepRule, sweep
from pz_engine.state.store import KeyedStore
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector, WriteCall, rows
from pz_engine.testing.state_server import StateServer


@pytest.fixture
def scripted() -> Iterator[ScriptedConnector]:
    """An installed scripted connector."""
    with ScriptedConnector().installed() as connector:
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, scripted: ScriptedConnector) -> ProjectFactory:
    """An increment with a check, a downstream pipeline, and a sink below each."""
    factory.connections(
        """
        api:
          connector: scripted
          retry: { max_attempts: 1 }
          entities: { things: { read: { columns: { id: bigint, name: varchar }, sync: { mode: incremental, cursor: id } } } }
        store: { connector: scripted, retry: { max_attempts: 1 } }
        """
    )
    factory.pipeline(
        "copy",
        "INSERT INTO {{ sink('store', 'copy', strategy: 'merge', keys: ['id']) }}\nSELECT * FROM {{ source('api', 'things') }}",
    )
    factory.pipeline(
        "totals",
        "INSERT INTO {{ sink('store', 'totals', strategy: 'merge', keys: ['n']) }}\nSELECT count(*) AS n FROM {{ ref('copy') }}",
    )
    return factory


def ids_of(project: ProjectFactory, *names: str) -> frozenset[str]:
    report = plan_project(project.directory)
    assert report.plan is not None
    found = {str(node["name"]): str(node["id"]) for node in report.plan["nodes"]}
    return frozenset(found[name] for name in names)


def statuses(outcome: RunOutcome) -> dict[str, str]:
    return {result.name: result.status.value for result in outcome.results}


def results_on_disk(project: ProjectFactory) -> dict[str, Any]:
    newest = max((project.directory / ".pz" / "runs").iterdir())
    return dict(json.loads((newest / "run_results.json").read_text()))


@pytest.mark.parametrize("materialization", ["table", "view"])
def test_gate_holds_every_consumer_and_changes_no_artifact(
    project: ProjectFactory, scripted: ScriptedConnector, materialization: str
) -> None:
    """A failed check skips sinks, downstream pipelines and what follows; ids and plan are those of a run without gates."""
    project.sidecar("copy", f"materialization: {materialization}\nchecks:\n  - row_count: {{ min: 5 }}\n")
    observed = project.run()
    plan = (project.directory / ".pz/target/plan.json").read_bytes()
    assert statuses(observed)["store.totals"] == "success"
    scripted.written.clear()
    gated = project.run(gate_checks=True, full_refresh=True)
    assert statuses(gated) == {
        "src_api__things": "success",
        "copy": "success",
        "check_copy_row_count": "failed",
        "store.copy": "skipped",
        "totals": "skipped",
        "store.totals": "skipped",
    }
    assert scripted.written == {}
    assert (project.directory / ".pz/target/plan.json").read_bytes() == plan
    assert {result.id for result in gated.results} == {result.id for result in observed.results}
    spared = project.run(gate_checks=True, ungated_checks=frozenset({"check_copy_row_count"}))
    assert statuses(spared)["store.totals"] == "success"


def test_gate_that_passes_lets_everything_run(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """The order is load, pipeline, check, and only then the consumers."""
    project.sidecar("copy", "checks:\n  - row_count: { min: 2 }\n")
    events: list[RunEvent] = []
    assert project.run(gate_checks=True, events=events).exit_code == 0
    started = [event.node_name for event in events if isinstance(event, NodeStarted)]
    assert started[:3] == ["src_api__things", "copy", "check_copy_row_count"]
    assert set(scripted.written) == {"copy", "totals"}


def test_chosen_node_ids_run_with_their_ancestors_and_nothing_else(
    project: ProjectFactory, scripted: ScriptedConnector
) -> None:
    """Neither descendants nor siblings; the watermark of what was only partly delivered stays."""
    outcome = project.run(selection=Selection(node_ids=ids_of(project, "store.copy")))
    assert statuses(outcome) == {"src_api__things": "success", "copy": "success", "store.copy": "success"}
    assert outcome.watermarks_held == {"api.things": "sink 'store.totals' was not part of this run"}


def test_retry_names_its_run_and_may_choose_its_nodes(project: ProjectFactory, scripted: ScriptedConnector) -> None:
    """Not the newest run but the named one; with chosen nodes these alone, its staged load reused."""

    def refuse(call: WriteCall) -> None:
        raise PzConnectorError("refused", is_transient=False)

    scripted.on_write = refuse
    first = project.run()
    scripted.on_write = lambda call: None
    assert project.run(mode="test", selection=Selection(everything=True)).exit_code == 0
    project.run(selection=Selection(node_ids=ids_of(project, "totals")))
    scripted.reads.clear()
    chosen = project.run(retry_from=first.run_id, selection=Selection(node_ids=ids_of(project, "store.totals")))
    assert scripted.reads == []
    assert set(statuses(chosen)) == {"src_api__things", "copy", "totals", "store.totals"}
    rest = project.run(retry_from=first.run_id, selection=Selection())
    assert scripted.reads == []
    assert {"store.copy", "store.totals"} <= set(statuses(rest))
    assert rest.exit_code == 0
    with pytest.raises(PzStateError) as caught:
        project.run(retry_from="20200101T000000000Z-0000", selection=Selection())
    assert caught.value.code == "PZ0502"


class Watched:
    """A host's store around the engine's."""

    def __init__(self, inner: KeyedStore[Any], told: list[str], look: Any) -> None:
        self._inner, self._told, self._look = inner, told, look
        self.get, self.list_all, self.remove = inner.get, inner.list_all, inner.remove

    def set(self, key: str, value: Any) -> None:
        self._told.append(f"set {key} while results say {self._look()['status']}")
        self._inner.set(key, value)


@pytest.mark.parametrize("backend", ["local", "http"])
def test_state_moves_through_the_hosts_store_between_the_last_event_and_the_outcome(
    project: ProjectFactory, backend: str
) -> None:
    """`run_completed`, then state while results still say running, then terminal results, then the outcome."""
    told: list[str] = []

    def hear(event: RunEvent) -> None:
        if isinstance(event, RunCompleted):
            told.append("run_completed")

    with StateServer() as server:
        outcome = project.run(
            on_event=hear,
            wrap_state_store=lambda store: Watched(store, told, lambda: results_on_disk(project)),
            state_url=server.url if backend == "http" else None,
        )
        told.append(f"outcome while results say {results_on_disk(project)['status']}")
        if backend == "http":
            assert json.loads(server.payload("watermarks", "api.things") or "{}")["value"] == "2"
    assert outcome.exit_code == 0
    assert told == [
        "run_completed",
        "set api.things while results say running",
        "outcome while results say success",
    ]


def test_hosts_record_is_there_before_any_node_and_survives_retention(
    project: ProjectFactory, scripted: ScriptedConnector
) -> None:
    """It is written with the directory, listed with its run, and left alone when the staging database goes."""
    seen: list[dict[str, Any]] = []
    ids: list[str] = []

    def read(call: ReadCall) -> list[pa.RecordBatch]:
        seen.append(json.loads((project.directory / ".pz/runs" / ids[-1] / "host.json").read_text()))
        return [rows(1)]

    scripted.on_read = read
    record = {"name": "scheduler", "job": {"id": 7}}
    first = project.run(host=record, on_run_id=ids.append)
    assert (seen, ids) == ([record], [first.run_id])
    second = project.run()
    sweep(project.directory / ".pz", SweepRule(keep_last=1))
    kept = project.directory / ".pz/runs" / first.run_id
    assert sorted(path.name for path in kept.iterdir()) == [".lock", "host.json", "run_results.json"]
    assert [(run.run_id, run.host) for run in list_runs(project.directory)] == [
        (second.run_id, None),
        (first.run_id, record),
    ]


def open_handles() -> set[str]:
    """Return what this process has open: paths and sockets."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(str(entry.readlink()))
    return found


@pytest.mark.parametrize("end", ["success", "failure", "cancelled", "refused by the store", "results"])
def test_nothing_stays_open(
    project: ProjectFactory, scripted: ScriptedConnector, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the end, no file of the project, no connection and no thread is left in the process."""
    cancel = CancelToken()
    if end == "results":
        monkeypatch.setenv("PZ_FAULT", "after_node_results=raise")

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        yield rows(1)
        if end == "failure":
            raise PzConnectorError("down", is_transient=False)
        if end == "cancelled":
            cancel.set()
            call.cancel.wait(10)
            call.cancel.raise_if_set()
        yield rows(2)

    scripted.on_read = read
    with StateServer(token=None if end != "refused by the store" else "other") as server:
        before, threads = open_handles(), set(threading.enumerate())
        try:
            outcome = project.run(cancel=cancel, state_url=server.url)
        except PzStateError:
            assert end == "refused by the store"
        except InjectedFault:
            assert end == "results"
        else:
            wanted = {"success": RunStatus.SUCCESS, "failure": RunStatus.COMPLETED_WITH_FAILURES}
            assert outcome.status is wanted.get(end, RunStatus.FATAL)
            assert any(result.status is NodeStatus.SUCCESS for result in outcome.results) == (end == "success")
        inside = [path for path in open_handles() if path.startswith(str(project.directory))]
        assert inside == []
        connected = {each for each in open_handles() - before if each.startswith("socket:")}
        assert len(connected) <= 1, connected  # the server's own end may close a moment later
        assert [each.name for each in set(threading.enumerate()) - threads if each.name.startswith("pz-")] == []
