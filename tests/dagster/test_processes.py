"""Real Dagster processes: the documented commands, the step's captured output, termination."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_running import stalled

ROOT = Path(__file__).parents[2]
DAGSTER = [sys.executable, "-m", "dagster"]
DEFINITIONS = """
from pathlib import Path
from pz_dagster import PzProject, build_pz_definitions
defs = build_pz_definitions(PzProject(Path(__file__).parent))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "home"
    found.mkdir()
    (found / "dagster.yaml").write_text("telemetry: { enabled: false }\n")
    monkeypatch.setenv("DAGSTER_HOME", str(found))
    return found


def newest_run(instance: dg.DagsterInstance) -> dg.DagsterRun:
    return instance.get_runs(limit=1)[0]


def test_the_example_materializes_twice_and_the_feed_lands_nothing_new(home: Path, tmp_path: Path) -> None:
    """Three flows run in processes of their own; captured output holds the journal's lines and the text lines."""
    example = tmp_path / "example"
    leftovers = shutil.ignore_patterns(".pz", "output", "*.duckdb", "__pycache__")
    shutil.copytree(ROOT / "example_project", example, ignore=leftovers)
    command = [*DAGSTER, "asset", "materialize", "-f", str(example / "definitions.py"), "--select"]
    feed = dg.AssetKey(["flights", "src_feed__flights"])
    for selection, rows in (("*", 51955), ("*warehouse/flights", 0)):
        subprocess.run([*command, selection], check=True, capture_output=True, timeout=120)
        with dg.DagsterInstance.get() as instance:
            event = instance.get_latest_materialization_event(feed)
            run = newest_run(instance)
        assert event is not None
        assert event.asset_materialization is not None
        assert event.asset_materialization.metadata["pz/rows"].value == rows
        assert run.status is dg.DagsterRunStatus.SUCCESS
    journals = {path.stem: path.read_text() for path in (example / ".pz" / "journal").iterdir()}
    assert len(journals) == 4
    captured = ["".join(p.read_text() for p in home.rglob(f"*.{end}")) for end in ("out", "err")]
    lines = [line for line in captured[0].splitlines() if line.startswith('{"event"')]
    by_run: dict[str, list[str]] = {}
    for line in lines:
        by_run.setdefault(json.loads(line)["runId"], []).append(line)
    assert {run: "\n".join(found) + "\n" for run, found in by_run.items()} == journals
    assert "\nok warehouse.flights 51955 rows " in captured[1]
    assert not (example / ".pz" / "target" / "dagster.json").exists()


def test_a_terminated_run_leaves_nothing_running(home: Path, shop: ProjectFactory) -> None:
    """What the terminate button does ends the run CANCELED within seconds; the engine lets go of the destination."""
    stalled(shop)
    shop.write("definitions.py", DEFINITIONS)
    command = [
        *DAGSTER,
        "asset",
        "materialize",
        "-f",
        str(shop.directory / "definitions.py"),
        "--select",
        "+mart/events",
    ]

    def reset() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=reset,  # noqa: PLW1509
    ) as process:
        journal = shop.directory / ".pz" / "journal"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and '"node_started"' not in "".join(
            path.read_text().rpartition("events_merged")[0] for path in journal.glob("*")
        ):
            time.sleep(0.2)
        time.sleep(0.5)
        asked = time.monotonic()
        with dg.DagsterInstance.get() as instance:
            instance.report_run_canceling(newest_run(instance))
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    assert time.monotonic() - asked < 20
    with dg.DagsterInstance.get() as instance:
        status = newest_run(instance).status
    # The parent of the step may be interrupted so early that only a monitoring daemon would end the run.
    assert status in (dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.CANCELING)
    (results,) = (shop.directory / ".pz" / "runs").glob("*/run_results.json")
    assert json.loads(results.read_text())["status"] == "fatal"
    duckdb.connect(str(shop.directory / "mart.duckdb")).close()


def test_a_broken_project_keeps_its_code_location(home: Path, shop: ProjectFactory) -> None:
    """`dagster definitions validate` passes on the placeholder and fails in strict mode, with all problems in both."""
    shop.write("definitions.py", DEFINITIONS)
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    shop.pipeline("events_merged", "SELECT * FROM {{ ref('nothing') }}")
    command = [*DAGSTER, "definitions", "validate", "-f", str(shop.directory / "definitions.py")]
    relaxed = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert relaxed.returncode == 0
    assert "PZ0113" in relaxed.stdout + relaxed.stderr
    environment = {**os.environ, "PZ_DAGSTER_STRICT": "1"}
    strict = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environment)
    assert strict.returncode != 0
    assert "PZ0113" in strict.stdout + strict.stderr


def test_a_prepared_project_validates_about_as_fast_as_an_empty_one(home: Path, shop: ProjectFactory) -> None:
    """The extra time of a process that loads definitions stays within half a second of CPU."""
    code = "import resource, runpy, sys; runpy.run_path(sys.argv[1]); print(resource.getrusage(resource.RUSAGE_SELF).ru_utime)"
    empty = shop.write("empty.py", "import dagster as dg\ndefs = dg.Definitions()\ndefs.resolve_asset_graph()\n")
    full = shop.write("definitions.py", DEFINITIONS + "defs.resolve_asset_graph()\n")
    from pz_dagster import PzProject

    PzProject(shop.directory).prepare()
    times = []
    for path in (empty, full):
        runs = [
            float(subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True).stdout)
            for _ in range(3)
        ]
        times.append(min(runs))
    assert times[1] - times[0] < 0.5
