"""Every template that needs nothing runs as it comes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_calls import Call

from pz_engine.app.scaffold import CATALOGUE, scaffold, template_files

OFFLINE = [template.id for template in CATALOGUE if template.needs == "runs offline"]


@pytest.mark.parametrize("template_id", OFFLINE)
def test_offline_template_validates_and_runs_twice(pz: Call, tmp_path: Path, template_id: str) -> None:
    """A fresh copy validates without a warning, runs, and runs again."""
    project = scaffold(tmp_path / "copy", template_id).directory
    assert pz("validate", "--project", project).err == ""
    for _ in range(2):
        called = pz("run", "--all", "--project", project)
        assert (called.code, called.err) == (0, "")
    assert sorted(path.suffix for path in (project / "output").rglob("*") if path.is_file()) == [
        ".csv",
        ".csv",
        ".parquet",
    ]
    assert pz("test", "--project", project).code == 0


def test_the_dagster_template_validates_and_materializes_where_it_lies(tmp_path: Path) -> None:
    """The workspace loads, the folder is its own DAGSTER_HOME, and every asset lands."""
    project = scaffold(tmp_path / "rides", "dagster").directory
    environment = {**os.environ, "DAGSTER_HOME": str(project)}
    for arguments in (
        ("definitions", "validate"),
        ("asset", "materialize", "-f", "definitions.py", "--select", "*"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "dagster", *arguments],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    landed = {path.name for path in (project / "output").rglob("*") if path.is_file()}
    assert landed == {"district_totals.parquet", "trips.csv", "weather_daily.csv"}
    ignored = (project / ".gitignore").read_text().split()
    left = {path.name for path in project.iterdir()} - {path.partition("/")[0] for path in template_files("dagster")}
    assert left <= {line.rstrip("/") for line in ignored} | {".gitignore"}
