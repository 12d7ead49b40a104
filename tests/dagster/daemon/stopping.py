"""Runs that are stopped in the middle of a write: by the button, and by a signal that nobody can catch."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from pz_engine import list_runs
from tests.dagster.daemon.projects import Shown
from tests.dagster.daemon.scene import APART, IN_PROCESS, Scene, wait_until


def a_terminated_run_is_canceled_and_lets_go(scene: Scene) -> None:
    """No process, open file or lock of the step is left, no position has moved, and the next run lands each row once."""
    shown = scene.shown["halt"]
    assert scene.land(shown) == "SUCCESS"
    assert shown.landed() == [1, 2]
    before = shown.state()
    with (shown.factory.directory / "in" / "items.csv").open("a") as file:
        file.write("3,2026-01-03 00:00:00\n")
    run_id, writers = write_for_ever(scene, shown)
    asked = time.monotonic()
    scene.server.terminate(run_id)
    assert scene.server.follow(run_id) == "CANCELED"
    assert time.monotonic() - asked < 30
    wait_until(lambda: not any(is_alive(pid) for pid in writers), "end of the step's process", 10)
    assert shown.holders() == set()
    assert shown.landed() == [1, 2]
    assert shown.state() == before
    assert list_runs(shown.factory.directory)[0].status.value == "fatal"
    assert scene.land(shown) == "SUCCESS"
    assert shown.landed() == [1, 2, 3]


def a_killed_worker_frees_its_pool(scene: Scene) -> None:
    """The run fails without help; its slot is free again, where the executor was killed too; the next run lands."""
    shown = scene.shown["killed"]
    for executor in ({}, IN_PROCESS):
        run_id, writers = write_for_ever(scene, shown, executor)
        for pid in writers:
            os.kill(pid, signal.SIGKILL)
        assert scene.server.follow(run_id) == "FAILURE"
        wait_until(lambda: slots(scene, "pz_killed") == 0, "free slot", 30)
        assert list_runs(shown.factory.directory)[0].status.value == "running"
    assert scene.land(shown) == "SUCCESS"
    assert shown.landed() == [1, 2]


def a_killed_run_of_a_job_is_repeated(scene: Scene) -> None:
    """The daemon launches it once more, as the job's tags say; what had been read is read again, and lands once."""
    shown = scene.shown["again"]
    run_id = scene.server.launch_job("again_job", location=APART)
    wait_until(lambda: scene.requests("/again"), "request")
    for pid in shown.holders():
        os.kill(pid, signal.SIGKILL)
    assert scene.server.follow(run_id) == "FAILURE"
    (again,) = wait_until(lambda: scene.runs(dagster__parent_run_id=run_id), "second run")
    assert scene.server.follow(again.run_id) == "SUCCESS"
    assert scene.requests("/again") == 2
    assert shown.landed() == [1, 2, 3]
    assert any("was interrupted, so everything is extracted again" in text for text in scene.messages(again.run_id))


def write_for_ever(scene: Scene, shown: Shown, executor: dict[str, Any] | None = None) -> tuple[str, set[int]]:
    """Launch a run that does not end, and return its id and the processes that are writing the destination."""
    slow = {"ops": {shown.op: {"config": {"vars": {"slow": True}}}}, **(executor or {})}
    run_id = scene.server.launch(shown.assets, slow, location=APART)
    return run_id, wait_until(lambda: shown.holders(shown.mart), "process that writes")


def is_alive(pid: int) -> bool:
    """Tell whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def slots(scene: Scene, pool: str) -> int:
    """Return how many slots of a pool are taken."""
    return scene.instance.event_log_storage.get_concurrency_info(pool).active_slot_count
