"""Runs that overlap: one key keeps one value and says so, different keys both move; and what else holds a watermark."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pz_engine import NodeStatus, RunOutcome, Selection
from pz_engine.connectors import Capability
from pz_engine.testing.project_factory import ProjectFactory
from pz_engine.testing.scripted_connector import ReadCall, ScriptedConnector, rows
from pz_engine.testing.state_server import StateServer


@pytest.fixture
def scripted() -> Iterator[ScriptedConnector]:
    """An installed connector that can be asked for windows."""
    connector = ScriptedConnector()
    connector.capabilities |= Capability.BOUNDED_WINDOW
    with connector.installed():
        yield connector


@pytest.fixture
def project(factory: ProjectFactory, scripted: ScriptedConnector) -> ProjectFactory:
    """Two increments, each into a sink of its own."""
    sync = "columns: { id: bigint, name: varchar }, sync: { mode: incremental, cursor: id }"
    factory.connections(
        f"api: {{ connector: scripted, entities: {{ a: {{ read: {{ {sync} }} }}, b: {{ read: {{ {sync} }} }} }} }}\n"
        "store: { connector: scripted }\n"
    )
    for name in ("a", "b"):
        factory.pipeline(
            f"copy_{name}",
            f"INSERT INTO {{{{ sink('store', '{name}', strategy: 'merge', keys: ['id']) }}}}\n"
            f"SELECT * FROM {{{{ source('api', '{name}') }}}}",
        )
    return factory


def stored(project: ProjectFactory, server: StateServer, backend: str, key: str) -> str | None:
    if backend == "http":
        payload = server.payload("watermarks", key)
        return None if payload is None else str(json.loads(payload)["value"])
    found = json.loads((project.directory / ".pz/state/watermarks.json").read_text())["watermarks"].get(key)
    return None if found is None else str(found["value"])


def run_at_once(
    project: ProjectFactory, scripted: ScriptedConnector, names: tuple[str, str], url: str | None
) -> list[RunOutcome]:
    """Run two flows at once; neither goes on before both have read what is stored."""
    both, outcomes = threading.Barrier(2, timeout=30), list[RunOutcome]()

    def read(call: ReadCall) -> Iterator[pa.RecordBatch]:
        both.wait()
        yield rows(call.ordinal * 10)

    scripted.on_read = read

    def run(name: str) -> None:
        outcomes.append(project.run(selection=Selection(names=(name,)), state_url=url))

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


@pytest.mark.parametrize("backend", ["local", "http"])
def test_overlapping_runs_of_one_key_store_one_value(
    project: ProjectFactory, scripted: ScriptedConnector, backend: str
) -> None:
    """The later writer's value is not stored and a note says so with both codes; the data of both is delivered, exit 0."""
    with StateServer() as server:
        outcomes = run_at_once(project, scripted, ("copy_a", "copy_a"), server.url if backend == "http" else None)
        kept = stored(project, server, backend, "api.a")
    assert [outcome.exit_code for outcome in outcomes] == [0, 0]
    (loser,) = [outcome for outcome in outcomes if outcome.watermarks_held]
    (winner,) = [outcome for outcome in outcomes if outcome is not loser]
    (note,) = [note for note in loser.notes if "PZ0520" in note]
    assert "PZ0527" in note
    assert "api.a" in note
    candidates = [result.watermark for result in winner.results if result.watermark is not None]
    assert [candidate.value for candidate in candidates] == [kept]
    assert {row["id"] for row in scripted.written["a"]} == {10, 20}


@pytest.mark.parametrize("backend", ["local", "http"])
def test_overlapping_runs_of_different_keys_both_store(
    project: ProjectFactory, scripted: ScriptedConnector, backend: str
) -> None:
    """Neither loses the other's entry."""
    with StateServer() as server:
        outcomes = run_at_once(project, scripted, ("copy_a", "copy_b"), server.url if backend == "http" else None)
        assert [outcome.watermarks_held for outcome in outcomes] == [{}, {}]
        assert {stored(project, server, backend, key) for key in ("api.a", "api.b")} == {"10"}


def test_failed_check_holds_nothing_and_an_entity_without_a_sink_moves_alone(
    project: ProjectFactory, scripted: ScriptedConnector
) -> None:
    """The sink committed, so the watermark moves although the run failed; what nobody writes out moves on its own."""
    project.sidecar("copy_a", "checks:\n  - row_count: { min: 100 }\n")
    project.pipeline("copy_b", "SELECT * FROM {{ source('api', 'b') }}")
    outcome = project.run()
    assert (outcome.exit_code, outcome.watermarks_held) == (1, {})
    found = json.loads((project.directory / ".pz/state/watermarks.json").read_text())["watermarks"]
    assert {key: entry["value"] for key, entry in found.items()} == {"api.a": "2", "api.b": "2"}


@pytest.mark.parametrize("contract", ["bigint", "date"])
def test_window_never_calculates_with_a_value_of_another_type(
    project: ProjectFactory, scripted: ScriptedConnector, contract: str
) -> None:
    """A stored value of another type ends the load before its source is asked; a full refresh repairs it."""
    first, window = ("0", "10") if contract == "bigint" else ('"2026-01-01"', "10d")
    sync = f"sync: {{ mode: incremental, cursor: id, max_window: {window}, initial: {first} }}"
    project.connections(
        f"api: {{ connector: scripted, entities: {{ a: {{ read: {{ columns: {{ id: {contract} }}, {sync} }} }} }} }}\n"
        "store: { connector: scripted }\n"
    )
    (project.directory / "pipelines/copy_b.sql").unlink()
    kind = {"bigint": pa.int64(), "date": pa.date32()}[contract]
    scripted.schema = pa.schema([("id", kind)])
    scripted.on_read = lambda call: [pa.RecordBatch.from_pylist([], schema=scripted.schema)]
    entry = {"cursor": "id", "type": "timestamp", "value": "2026-01-01T00:00:00.000000", "runId": "r"}
    project.write(".pz/state/watermarks.json", json.dumps({"version": 1, "watermarks": {"api.a": entry}}))
    outcome = project.run()
    failed = next(result for result in outcome.results if result.status is NodeStatus.FAILED)
    assert failed.error is not None
    assert failed.error.code == "PZ0505"
    assert "--full-refresh" in failed.error.message
    assert scripted.reads == []
    assert project.run(full_refresh=True).exit_code == 0
    found = json.loads((project.directory / ".pz/state/watermarks.json").read_text())["watermarks"]
    assert found["api.a"]["type"] == contract
