"""The component in a fresh `dg` project, driven by real `dg` commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dagster_dg_cli")

LOADER = """
from pathlib import Path
from dagster import definitions, load_from_defs_folder

@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
"""


@pytest.mark.slow
def test_scaffold_check_list_and_launch(tmp_path: Path) -> None:
    """A project made by `dg scaffold defs` checks, lists its assets and lands its files; a refresh leaves a state."""
    root = tmp_path / "rides"
    package = root / "src" / "acme"
    (package / "defs").mkdir(parents=True)
    (root / "dg.toml").write_text('directory_type = "project"\n\n[project]\nroot_module = "acme"\n')
    for path in (package, package / "defs"):
        (path / "__init__.py").touch()
    (package / "definitions.py").write_text(LOADER)
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: { enabled: false }\n")
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), str(root / "src")]),
        "HOME": str(home),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }

    def dg_command(*arguments: str) -> str:
        command = [str(Path(sys.executable).parent / "dg"), *arguments]
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    dg_command("scaffold", "defs", "pz_dagster.PzProjectComponent", "city", "--template", "sample")
    assert "loaded successfully" in dg_command("check", "defs")
    dg_command("utils", "refresh-defs-state")
    (state,) = (package / "defs").glob(".local_defs_state/*/state")
    assert "trips_clean" in state.read_text()
    listed = {asset["asset_key"] for asset in json.loads(dg_command("list", "defs", "--json"))["assets"]}
    assert {"city/trips_clean", "out/district_totals"} <= listed
    dg_command("launch", "--assets", "+out/district_totals")
    assert list((package / "defs/city/city/output").rglob("district_totals.parquet"))
