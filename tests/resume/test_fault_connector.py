"""The faulty connectors do exactly what they are told, once, and from any process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pz_engine import CancelToken, RunOutcome
from pz_engine.app.host import LATEST
from pz_engine.testing import fault_connector
from pz_engine.testing.fault_world import POINTS, Fault, Row, World
from pz_engine.testing.project_factory import ProjectFactory

ROWS: list[Row] = [{"id": f"r{n}", "seq": n, "v": n} for n in range(1, 8)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world with one source of seven rows, and the connectors installed."""
    made = World(tmp_path / "world").create()
    made.happen("things", ROWS)
    with fault_connector.installed():
        yield made


@pytest.fixture
def project(factory: ProjectFactory, world: World) -> ProjectFactory:
    """Checkpointed partitions into a confirming sink and a transactional one; one try each."""
    factory.connections(
        f"""
        src:
          connector: faulty_parts
          world: {world.directory}
          retry: {{ max_attempts: 1 }}
          entities: {{ things: {{ read: {{ partitions: 2, checkpoints: true }} }} }}
        slow: {{ connector: faulty, world: {world.directory}, sink: confirming, retry: {{ max_attempts: 1 }} }}
        whole: {{ connector: faulty, world: {world.directory}, retry: {{ max_attempts: 1 }} }}
        """
    )
    factory.pipeline(
        "copy",
        "INSERT INTO [{{ sink('slow', 'a', strategy: 'append') }}, {{ sink('whole', 'b', strategy: 'replace') }}]\n"
        "SELECT * FROM {{ source('src', 'things') }}",
    )
    return factory


def statuses(outcome: RunOutcome) -> dict[str, str]:
    return {result.name: result.status.value for result in outcome.results}


def ids(world: World, entity: str) -> list[str]:
    return sorted(row["id"] for row in world.visible(entity))


EVERYTHING = sorted(row["id"] for row in ROWS)


def test_without_faults_everything_arrives(project: ProjectFactory, world: World) -> None:
    """Both kinds of sink show every row once."""
    assert project.run().exit_code == 0
    assert ids(world, "a") == ids(world, "b") == EVERYTHING


@pytest.mark.parametrize(("action", "shown", "confirmed"), [("half", 3, 3), ("landed", 4, 2), ("fail", 2, 2)])
def test_second_request_goes_wrong(
    project: ProjectFactory, world: World, action: str, shown: int, confirmed: int
) -> None:
    """What is visible and what is confirmed differ by fault; the retry sends what was not confirmed, and only that."""
    world.plan_faults([Fault("batch", action, "a", skip=1)])
    outcome = project.run()
    assert statuses(outcome) == {
        "src_src__things": "success",
        "copy": "success",
        "slow.a": "failed",
        "whole.b": "success",
    }
    assert len(world.visible("a")) == shown
    failed = next(result for result in outcome.results if result.name == "slow.a")
    assert failed.delivery is not None
    assert failed.delivery.rows_visible == confirmed
    assert world.remaining() == []
    again = project.run(retry_from=LATEST)
    assert again.exit_code == 0
    assert [entry["rows"] for entry in world.log() if entry["op"] == "resume"] == [confirmed]
    assert len(world.visible("a")) == 7 + shown - confirmed
    assert sorted(set(ids(world, "a"))) == EVERYTHING


@pytest.mark.parametrize(
    ("action", "status", "shown"), [("unknown", "failed", 7), ("wrong_count", "success", 7), ("fail", "failed", 0)]
)
def test_commit_goes_wrong(project: ProjectFactory, world: World, action: str, status: str, shown: int) -> None:
    """A commit that landed may still be reported as failed."""
    world.plan_faults([Fault("commit", action, "b")])
    assert statuses(project.run())["whole.b"] == status
    assert len(world.visible("b")) == shown


def test_read_that_breaks_goes_on_at_its_checkpoint(project: ProjectFactory, world: World) -> None:
    """Each partition reads on after the last page it had."""
    world.plan_faults([Fault("page", "fail", "things", skip=3)])
    assert statuses(project.run())["src_src__things"] == "failed"
    assert project.run(retry_from=LATEST).exit_code == 0
    assert any(entry["op"] == "read" and entry["after"] is not None for entry in world.log())
    assert ids(world, "a") == EVERYTHING


def test_hanging_write_ends_when_cancelled(project: ProjectFactory, world: World) -> None:
    """It waits for the token, not for ever."""
    world.plan_faults([Fault("batch", "hang", "b")])
    cancel = CancelToken()

    def stop() -> None:
        while world.remaining():
            time.sleep(0.01)
        cancel.set()

    watcher = threading.Thread(target=stop)
    watcher.start()
    outcome = project.run(cancel=cancel)
    watcher.join()
    assert statuses(outcome)["whole.b"] == "skipped"
    assert world.visible("b") == []


def test_seed_draws_the_same_faults(world: World) -> None:
    """Every operation is asked, and a repeated run of the same operations sees the same."""

    def drawn() -> list[str | None]:
        world.plan_faults(seed=7, rate=0.3)
        return [world.next_fault("commit", "b") for _ in range(40)]

    first = drawn()
    assert first == drawn()
    assert {"fail", "landed"} <= set(first)
    assert not {"hang", "kill", "kill_landed"} & set(first)
    assert 4 < sum(action is not None for action in first) < 24


def test_impossible_fault_is_refused() -> None:
    """A script that would never act is an error of the test."""
    with pytest.raises(ValueError, match="half"):
        Fault("commit", "half")
    assert all(Fault(point, action) for point, actions in POINTS.items() for action in actions)


def test_kill_in_a_real_process_leaves_what_was_visible(project: ProjectFactory, world: World, tmp_path: Path) -> None:
    """The connectors work as an installed package; the fault is struck off before the process dies."""
    fault_connector.announce(tmp_path / "packages")
    world.plan_faults([Fault("batch", "kill_landed", "a", skip=1)])
    path = os.pathsep.join([str(tmp_path / "packages"), *sys.path])
    command = [sys.executable, "-c", "from pz_engine.cli.main import main; raise SystemExit(main())"]
    environment = {**os.environ, "PYTHONPATH": path}
    died = subprocess.run(
        [*command, "run", "--all"], cwd=project.directory, env=environment, capture_output=True, text=True, check=False
    )
    assert died.returncode == -9, died.stderr
    assert len(world.visible("a")) == 4
    assert world.remaining() == []
    refused = subprocess.run(
        [*command, "retry"], cwd=project.directory, env=environment, capture_output=True, text=True, check=False
    )
    assert (refused.returncode, "PZ0503" in refused.stderr) == (2, True)
