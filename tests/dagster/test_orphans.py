"""A step whose run was killed above it, in real processes: what it would deliver belongs to no run any more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from pz_engine.testing.project_factory import ProjectFactory

ABOVE = """
import json, multiprocessing, os, sys, time
from pathlib import Path

directory, told = Path(sys.argv[1]), Path(sys.argv[2])

def step():
    import dagster as dg
    from pz_dagster import PzProject, build_pz_definitions
    defs = build_pz_definitions(PzProject(directory))
    assets = [each for each in defs.assets if isinstance(each, dg.AssetsDefinition)]
    with dg.DagsterInstance.get() as instance:
        dg.materialize(assets, instance=instance, resources=defs.resources, raise_on_error=False)
    told.with_name("ended").write_text("ended")

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=step)
    child.start()
    told.write_text(json.dumps({"child": child.pid}))
    time.sleep(120)
"""

SLOW = (
    "insert into {{ sink('lake', 'orders', format: 'csv', strategy: 'append', duplicates: 'accept') }}\n"
    "select a.id from {{ source('erp', 'orders') }} a, range(200000) r(x), range(200000) s(y) where x + y = -1\n"
    "union all select id from {{ source('erp', 'orders') }}\n"
)


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_step_stops_when_its_run_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_closed: bool) -> None:
    """Dagster fails the run of a killed process; a run that it goes on with, as after a lost code server, is left alone."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: { enabled: false }\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    factory = ProjectFactory(tmp_path / "shop", 'name: shop\nversion: "1"\nengine: { threads: 2 }\n')
    factory.write("in/orders.csv", "id\n1\n2\n")
    factory.connections(
        "erp: { connector: localfiles, root: in, entities: { orders: { read: { path: orders.csv, columns: { id: bigint } } } } }\n"
        "lake: { connector: localfiles, root: out }\n"
    )
    factory.pipeline("orders", SLOW)
    script, told = tmp_path / "above.py", tmp_path / "told.json"
    script.write_text(ABOVE)
    above = subprocess.Popen(
        [sys.executable, str(script), str(factory.directory), str(told)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    child: int | None = None
    try:
        journal = _journal(factory.directory, "node_started", "orders")
        child = json.loads(told.read_text())["child"]
        above.kill()
        above.wait()
        with dg.DagsterInstance.get() as instance:
            (run,) = instance.get_runs()
            if not is_closed:
                time.sleep(4)
                assert _lives(child)
            instance.report_run_failed(run)
            _until(lambda: not _lives(child), 30)
            texts = [entry.user_message or "" for entry in instance.all_logs(run.run_id)]
        assert not list((factory.directory / "out").rglob("*.csv"))
        assert any("is gone and the run has ended" in text for text in texts)
        ends = [json.loads(line) for line in journal.read_text().splitlines()]
        assert ends[-1]["event"] == "run_completed"
        assert ends[-1]["status"] == "fatal"
    finally:
        above.kill()
        if child is not None and _lives(child):
            os.kill(child, signal.SIGKILL)


def _journal(directory: Path, event: str, name: str) -> Path:
    """Wait until a node of the run has begun and return the run's journal."""

    def begun() -> Path | None:
        for path in (directory / ".pz" / "journal").glob("*.jsonl"):
            for line in path.read_text().splitlines():
                record = json.loads(line)
                if record["event"] == event and record.get("name") == name:
                    return path
        return None

    return _until(begun, 60)


def _until(look, seconds):  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen")


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
