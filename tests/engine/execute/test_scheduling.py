"""Order, permits and what an event consumer may do to a run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pz_engine import CancelToken, NodeCompleted, NodeStarted, RunStatus
from pz_engine.app import run as run_module
from pz_engine.events.types import RunEvent
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector, rows

SLOW = "SELECT count(*) AS n FROM range(3000) a, range(3000) b WHERE (a.range * b.range) % 7 = {n}"


@pytest.fixture
def project(factory: ProjectFactory) -> ProjectFactory:
    """Four flows that read one connection and write two."""
    factory.write("in/a.csv", "id\n1\n2\n")
    factory.connections(
        """
        files: { connector: localfiles, root: in, max_concurrency: 1 }
        left: { connector: localfiles, root: left, max_concurrency: 1 }
        right: { connector: localfiles, root: right, max_concurrency: 1 }
        """
    )
    return factory


def test_ready_nodes_start_by_kind_and_name(project: ProjectFactory) -> None:
    """With one thread the order is fixed: loads, then pipelines, checks and sinks, each by name."""
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 1, fusion: off }\n')
    for name in ("beta", "alpha"):
        source = "{{ source('files', '" + name + "', path: 'a.csv', columns: { id: 'int' }) }}"
        sink = "{{ sink('left', '" + name + "', format: 'csv', strategy: 'replace') }}"
        project.pipeline(name, f"INSERT INTO {sink}\nSELECT * FROM {source}")
        project.sidecar(name, "checks:\n  - row_count: { min: 1 }\n  - not_null: [id]\n")
    events: list[RunEvent] = []
    assert project.run(events=events).exit_code == 0
    assert [event.node_name for event in events if isinstance(event, NodeStarted)] == [
        "src_files__alpha",
        "src_files__beta",
        "alpha",
        "beta",
        "check_alpha_not_null_id",
        "check_alpha_row_count",
        "check_beta_not_null_id",
        "check_beta_row_count",
        "left.alpha",
        "left.beta",
    ]


def test_queue_of_a_capped_connection_occupies_no_thread(project: ProjectFactory) -> None:
    """Two loads wait for one connection while the only other thread runs what needs no connection."""
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 2, fusion: off }\n')
    project.connections("api: { connector: scripted, max_concurrency: 1 }\n")
    for name in ("a", "b", "c"):
        project.pipeline(f"p_{name}", "SELECT * FROM {{ source('api', '" + name + "') }}")
    for name in ("x", "y"):
        project.pipeline(name, "SELECT 1 AS one")
    free = threading.Event()
    done: list[str] = []

    def watch(event: RunEvent) -> None:
        if isinstance(event, NodeCompleted):
            done.append(event.result.name)
            if {"x", "y"} <= set(done):
                free.set()

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        assert free.wait(20), "a thread was held by a load that waits for its connection"
        yield rows(1)

    with ScriptedConnector(on_read=read).installed():
        assert project.run(on_event=watch).exit_code == 0
    assert set(done[:2]) == {"x", "y"}


def test_a_capped_connection_runs_one_node_at_a_time(project: ProjectFactory) -> None:
    """Loads of one connection never overlap, whatever the number of threads."""
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 4, fusion: off }\n')
    for name in ("a", "b", "c"):
        project.pipeline(
            name, "SELECT * FROM {{ source('files', '" + name + "', path: 'a.csv', columns: { id: 'int' }) }}"
        )
    events: list[RunEvent] = []
    project.run(events=events)
    running = most = 0
    for event in events:
        if isinstance(event, NodeStarted) and event.node_name.startswith("src_"):
            running += 1
        elif isinstance(event, NodeCompleted) and event.result.name.startswith("src_"):
            running -= 1
        most = max(most, running)
    assert most == 1


def test_crossed_groups_on_capped_connections_do_not_wait_for_each_other(project: ProjectFactory) -> None:
    """left to right and right to left, both capped at one: the run ends."""
    project.write("left/a.csv", "id\n1\n")
    project.write("right/b.csv", "id\n2\n")
    contract = "columns: { id: 'int' }"
    for source, entity, sink in (("left", "a", "right"), ("right", "b", "left")):
        project.pipeline(
            f"{source}_to_{sink}",
            f"INSERT INTO {{{{ sink('{sink}', 'copy_of_{entity}', format: 'csv', strategy: 'replace') }}}}\n"
            f"SELECT * FROM {{{{ source('{source}', '{entity}', path: '{entity}.csv', {contract}) }}}}",
        )
    for _ in range(5):
        outcome = project.run()
        assert outcome.exit_code == 0
        assert {result.rows for result in outcome.results} == {1}


def test_independent_statements_overlap(project: ProjectFactory) -> None:
    """Two pipelines are running at the same time on their own cursors."""
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 2 }\n')
    for n in (1, 2):
        project.pipeline(f"p{n}", SLOW.format(n=n))
    events: list[RunEvent] = []
    project.run(events=events)
    kinds = [type(event) for event in events if isinstance(event, (NodeStarted, NodeCompleted))]
    assert kinds == [NodeStarted, NodeStarted, NodeCompleted, NodeCompleted]


def test_a_raising_consumer_does_not_disturb_the_run(project: ProjectFactory) -> None:
    """The consumer is dropped with a note, the run succeeds."""
    project.pipeline("one", "SELECT 1 AS one")

    def broken(event: RunEvent) -> None:
        raise RuntimeError(event.name)

    outcome = project.run(on_event=broken)
    assert outcome.status is RunStatus.SUCCESS


def test_a_hanging_consumer_costs_the_bound_and_nothing_else(
    project: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends with its journal, its results and a note, although the consumer never comes back."""
    monkeypatch.setattr(run_module, "_DRAIN_SECONDS", 0.3)
    project.pipeline("one", "SELECT 1 AS one")
    release = threading.Event()
    started = time.monotonic()
    outcome = project.run(on_event=lambda event: release.wait(60) and None)
    took = time.monotonic() - started
    release.set()
    assert took < 10
    assert outcome.status is RunStatus.SUCCESS
    assert any("did not drain" in note for note in outcome.notes)
    assert outcome.results_path is not None
    assert json.loads((project.directory / outcome.results_path).read_text())["status"] == "success"


def test_a_slow_consumer_does_not_delay_nodes(project: ProjectFactory) -> None:
    """Publishing never waits: node durations stay short while the consumer sleeps."""
    for n in range(4):
        project.pipeline(f"p{n}", "SELECT 1 AS one")
    outcome = project.run(on_event=lambda event: time.sleep(0.05))
    assert outcome.status is RunStatus.SUCCESS
    assert max(result.duration_ms for result in outcome.results) < 1000


def test_a_node_timeout_fails_the_node_and_only_it(project: ProjectFactory) -> None:
    """`PZ0525` names the limit; other branches finish."""
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 2, node_timeout: 300ms }\n')
    project.pipeline(
        "endless", "SELECT count(*) AS n FROM range(100000000) a, range(100000000) b WHERE a.range % 7 = b.range % 11"
    )
    project.pipeline("quick", "SELECT 1 AS one")
    outcome = project.run()
    by_name = {result.name: result for result in outcome.results}
    assert outcome.exit_code == 1
    assert by_name["endless"].error is not None
    assert by_name["endless"].error.code == "PZ0525"
    assert "300ms" in by_name["endless"].error.message
    assert "next step: raise node_timeout below engine in project.yml" in by_name["endless"].error.message
    assert by_name["quick"].rows == 1


@pytest.mark.parametrize("fail_fast", [True, False])
def test_executor_that_raises_anything_still_gives_every_node_one_result(
    project: ProjectFactory, monkeypatch: pytest.MonkeyPatch, fail_fast: bool
) -> None:
    """Even an exception nobody may catch becomes a failed node; what waits for it is skipped, the rest ends."""
    from pz_engine.execute import node_runner

    project.pipeline("bad", "SELECT 1 AS one")
    project.pipeline("after", "SELECT * FROM {{ ref('bad') }}")
    project.pipeline("other", "SELECT 2 AS two")
    project.sidecar("bad", "materialization: table\n")
    build = node_runner.build_pipeline

    def explode(attempt, node):  # type: ignore[no-untyped-def]
        if node.name == "bad":
            raise SystemExit("an executor must not do this")
        return build(attempt, node)

    monkeypatch.setattr(node_runner, "build_pipeline", explode)
    events: list[RunEvent] = []
    outcome = project.run(events=events, fail_fast=fail_fast)
    statuses = {result.name: result.status.value for result in outcome.results}
    assert len(outcome.results) == len(statuses) == 3
    assert statuses["bad"] == "failed"
    assert statuses["after"] == "skipped"
    assert outcome.exit_code == 1
    completed = [event.result.name for event in events if isinstance(event, NodeCompleted)]
    assert sorted(completed) == sorted(statuses)


@pytest.mark.parametrize(("fails_first", "exit_code"), [(True, 1), (False, 3)])
def test_cancelled_run_is_a_failure_only_when_a_node_had_failed(
    project: ProjectFactory, fails_first: bool, exit_code: int
) -> None:
    """Cancelled alone is fatal, 3; after a failed node it is 1. Every node has exactly one result."""
    project.write("project.yml", 'name: demo\nversion: "1"\nengine: { threads: 1 }\n')
    project.pipeline("a_first", "SELECT error('no') AS x" if fails_first else "SELECT 1 AS x")
    project.pipeline("b_slow", SLOW.format(n=3))
    project.pipeline("c_last", "SELECT 1 AS x")
    cancel = CancelToken()

    def stop(event: RunEvent) -> None:
        if isinstance(event, NodeStarted) and event.node_name == "b_slow":
            cancel.set()

    outcome = project.run(cancel=cancel, on_event=stop)
    assert outcome.exit_code == exit_code
    statuses = {result.name: result.status.value for result in outcome.results}
    assert statuses == {"a_first": "failed" if fails_first else "success", "b_slow": "skipped", "c_last": "skipped"}
