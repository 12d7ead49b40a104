"""Dagster stops listening while the engine works, in a process of its own: the engine is cancelled and lets go.

The op's body learns nothing but that its generator is dropped, or not even that.
"""

from __future__ import annotations

import subprocess
import sys

import duckdb
import pytest

from pz_engine import list_runs
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_running import stalled

DRIVER = """
import sqlite3, sys, threading
from pathlib import Path
import dagster as dg
from pz_dagster import PzProject, PzResource, pz_assets

project, home, how = sys.argv[1:]

def break_event_log():
    for path in Path(home).rglob("*.db"):
        with sqlite3.connect(path) as connection:
            connection.execute("drop table if exists event_logs")

@pz_assets(project=PzProject(project), select="+mart.events")
def forever(context, pz: PzResource):
    for result in pz.run(context=context).stream():
        print("STARTED", flush=True)
        if how == "order":
            yield dg.MaterializeResult(asset_key=dg.AssetKey(["shop", "events_merged"]))
        if how == "log":
            break_event_log()
        yield result

with dg.DagsterInstance.local_temp(home) as instance:
    try:
        result = dg.materialize([forever], instance=instance, resources={"pz": PzResource()}, raise_on_error=False)
        print("ENDED", result.success)
        print(*(str(e.step_failure_data.error) for e in result.all_events if e.is_step_failure))
    except Exception as error:
        print("ENDED", type(error).__name__)
"""


@pytest.mark.parametrize(
    ("how", "ended", "why"),
    [
        ("order", "False", "was yielded before its dependency"),
        ("log", "OperationalError", ""),
    ],
    ids=["an output before what it depends on", "an event that cannot be stored"],
)
def test_the_engine_is_cancelled(shop: ProjectFactory, how: str, ended: str, why: str) -> None:
    """The process ends although the write would have gone on for ever; the run is fatal, the destination free."""
    stalled(shop)
    home = shop.directory.parent / "home"
    home.mkdir()
    command = [sys.executable, "-c", DRIVER, str(shop.directory), str(home), how]
    done = subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr[-2000:]
    assert "STARTED" in lines
    assert f"ENDED {ended}" in lines
    assert why in done.stdout
    assert list_runs(shop.directory)[0].status.value == "fatal"
    duckdb.connect(str(shop.directory / "mart.duckdb")).close()
