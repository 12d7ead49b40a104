"""A project whose runs and state live in another folder: `PzProject(state_dir=...)`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from click.testing import CliRunner

from pz_dagster import PzProject, build_pz_definitions
from pz_dagster.commands import group
from pz_engine import list_runs
from pz_engine.testing.project_factory import ProjectFactory


@pytest.fixture
def volume(tmp_path: Path, shop: ProjectFactory) -> Path:
    """The other folder, and a project below whose `.pz` nobody can write anything."""
    shop.write(".pz", "in the way")
    return tmp_path / "volume"


def materialize(
    project: PzProject, instance: dg.DagsterInstance, *, raise_on_error: bool = True, **options: Any
) -> dg.ExecuteInProcessResult:
    """Materialize everything of a project."""
    defs = build_pz_definitions(project, **options)
    assets = [each for each in defs.assets or [] if isinstance(each, dg.AssetsDefinition)]
    return dg.materialize(assets, instance=instance, resources=defs.resources, raise_on_error=raise_on_error)


def events(shop: ProjectFactory) -> list[int]:
    """Return what was merged."""
    with duckdb.connect(str(shop.directory / "mart.duckdb"), read_only=True) as mart:
        return [row[0] for row in mart.execute("select id from events order by id").fetchall()]


def pz(shop: ProjectFactory, volume: Path, *arguments: str) -> str:
    """Run the command over the same folder."""
    done = subprocess.run(
        [sys.executable, "-m", "pz_engine", *arguments, "--project", str(shop.directory)],
        env={**os.environ, "PZ_STATE_DIR": str(volume)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_runs_and_state_are_there_and_go_on_from_there(
    shop: ProjectFactory, instance: dg.DagsterInstance, volume: Path
) -> None:
    """The second run reads what is new, and no path of the machine shows."""
    project = PzProject(shop.directory, state_dir=volume)
    first = materialize(project, instance)
    shop.write("in/events.csv", "id,seen_at\n1,2026-01-01 00:00:00\n3,2026-01-03 00:00:00\n")
    materialize(PzProject(shop.directory, state_dir=volume), instance)
    assert events(shop) == [1, 2, 3]
    runs = list_runs(shop.directory, state_dir=volume)
    assert [run.status.value for run in runs] == ["success"] * 4  # two flows, twice
    rows = {node.name: node.rows for run in runs[:2] for node in run.results}
    assert rows["src_erp__events"] == 1
    journals = {
        str(event.materialization.metadata["pz/journal"].value) for event in first.get_asset_materialization_events()
    }
    assert journals == {f".pz/journal/{run.run_id}.jsonl" for run in runs[2:]}
    assert (shop.directory / ".pz").read_text() == "in the way"


def test_the_shell_continues_what_an_op_left_there(
    shop: ProjectFactory, instance: dg.DagsterInstance, volume: Path
) -> None:
    """A failed check is mended, and the sink that it kept back is written by hand."""
    shop.sidecar("orders_clean", "checks:\n  - row_count: { min: 3 }\n")
    project = PzProject(shop.directory, state_dir=volume)
    failed = materialize(project, instance, raise_on_error=False, op_per="project")
    assert not failed.success
    assert "events" in pz(shop, volume, "state", "show")
    shop.sidecar("orders_clean", "checks:\n  - row_count: { min: 2 }\n")
    pz(shop, volume, "retry")
    assert list((shop.directory / "out").rglob("*.parquet"))
    assert "success" in pz(shop, volume, "runs", "--limit", "1")


def test_a_copy_in_the_instance_restores_a_lost_volume(
    shop: ProjectFactory, instance: dg.DagsterInstance, volume: Path
) -> None:
    """The position comes back; the log of the change is on the volume too."""
    project = PzProject(shop.directory, state_dir=volume)
    materialize(project, instance)
    shutil.rmtree(volume)
    materialize(PzProject(shop.directory, state_dir=volume), instance)
    newest = {node.name: node.rows for run in list_runs(shop.directory, state_dir=volume) for node in run.results}
    assert newest["src_erp__events"] == 0
    assert "restored from the copy" in (volume / "state" / "audit.jsonl").read_text()


def test_the_command_for_deployments_looks_there(
    shop: ProjectFactory, tmp_path: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pz-dagster state` compares the moved positions; the snapshot stays with the files it describes."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("PZ_STATE_DIR", str(volume))
    with dg.DagsterInstance.get() as instance:
        materialize(PzProject(shop.directory), instance)
    told = CliRunner().invoke(group, ["state", "--project", str(shop.directory)])
    assert (told.exit_code, "erp.events" in told.output) == (0, True), told.output
    (shop.directory / ".pz").unlink()
    assert CliRunner().invoke(group, ["prepare", "--project", str(shop.directory)]).exit_code == 0
    assert [path.name for path in (shop.directory / ".pz" / "target").iterdir()] == ["dagster.json"]


def test_moving_it_changes_no_definition(shop: ProjectFactory, tmp_path: Path) -> None:
    """Fingerprint, keys and versions are those of the files."""
    here, away = PzProject(shop.directory), PzProject(shop.directory, state_dir=Path("../volume"))
    assert away.state_path == tmp_path / "volume"
    assert here.fingerprint == away.fingerprint
    assert {node.id for node in here.snapshot.compiled.nodes} == {node.id for node in away.snapshot.compiled.nodes}


def test_another_projects_folder_fails_the_op_with_a_next_step(
    shop: ProjectFactory, instance: dg.DagsterInstance, volume: Path
) -> None:
    """Nothing is read or written, and the text names no path."""
    volume.mkdir()
    (volume / "project.json").write_text('{"name": "stranger"}')
    result = materialize(PzProject(shop.directory, state_dir=volume), instance, raise_on_error=False)
    assert not result.success
    texts = [str(event.event_specific_data) for event in result.all_events if event.is_step_failure]
    assert texts
    assert all("PZ0518" in text and "PzProject(state_dir=...)" in text for text in texts)
    assert not any(str(volume) in text for text in texts)
    assert not (shop.directory / "mart.duckdb").exists()


def test_positions_of_another_project_are_left_alone(
    shop: ProjectFactory, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    """A copy of this project's position is not stored where the other one would skip rows for it."""
    materialize(PzProject(shop.directory), instance)
    other = ProjectFactory(tmp_path / "other", 'name: stranger\nversion: "1"\n')
    other.connections("lake: { connector: localfiles, root: out }\n").pipeline("one", "SELECT 1 AS a")
    assert other.run(state_dir=tmp_path / "theirs").exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "theirs").rglob("*") if path.is_file()}
    result = materialize(PzProject(shop.directory, state_dir=tmp_path / "theirs"), instance, raise_on_error=False)
    assert not result.success
    assert {path: path.read_bytes() for path in (tmp_path / "theirs").rglob("*") if path.is_file()} == before
