"""Every template that needs nothing runs as it comes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_calls import Call

from pz_engine.app.scaffold import CATALOGUE, scaffold

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


def test_definitions_of_the_dagster_template_load(tmp_path: Path) -> None:
    """The definitions module loads where it lies and holds an asset per load, pipeline and output."""
    project = scaffold(tmp_path / "rides", "dagster").directory
    code = (
        "import runpy; found = runpy.run_path('definitions.py')['defs'];"
        "names = {key.path[-1] for key in found.resolve_all_asset_keys()};"
        "assert 'trips_enriched' in names and 'weather_daily' in names, names"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
