"""A range of partitions through Dagster's own command and its step process."""

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_partitions import TIMES, landed

DEFINITIONS = """
from pathlib import Path
import dagster as dg
from pz_dagster import PzProject, build_pz_definitions
days = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-08")
defs = build_pz_definitions(PzProject(Path(__file__).parent), partitions_def=days, partition_by=["erp.events"])
"""


def test_the_documented_command_materializes_a_range(
    shop: ProjectFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step process cuts as the definitions say; every partition of the range is recorded, no watermark is."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: { enabled: false }\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    shop.write("in/events.csv", TIMES)
    shop.write("definitions.py", DEFINITIONS)
    file = str(shop.directory / "definitions.py")
    command = [sys.executable, "-m", "dagster", "asset", "materialize", "-f", file, "--select", "+mart/events"]
    subprocess.run(
        [*command, "--partition-range", "2026-01-02...2026-01-03"], check=True, capture_output=True, timeout=120
    )
    assert landed(shop) == [4, 5, 6, 7]
    with dg.DagsterInstance.get() as instance:
        held = instance.get_materialized_partitions(dg.AssetKey(["mart", "events"]))
    assert held == {"2026-01-02", "2026-01-03"}
    assert not (shop.directory / ".pz" / "state" / "watermarks.json").exists()
