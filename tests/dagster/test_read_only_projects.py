"""A project that nobody may write, with runs and state in another folder: Dagster and the shell work on the same ones."""

from __future__ import annotations

import io
import os
from pathlib import Path

import dagster as dg
import pytest

from pz_dagster import PzProject, build_pz_assets, build_pz_definitions
from pz_engine import RunRequest, list_runs, run_project
from pz_engine.cli.main import run as run_pz
from pz_engine.cli.render.terminal import Terminal
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.far_side import Far, Job
from tests.dagster.read_only import read_only
from tests.dagster.test_commands import call, home  # noqa: F401 - a fixture
from tests.dagster.test_resume import FROM_FAILURE, far, landed, two  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures


def pz(directory: Path, *arguments: str) -> str:
    """Call `pz` and return everything it said."""
    said = io.StringIO()
    terminal = Terminal(said, said, os.environ)
    code = run_pz([*arguments, "--project", str(directory)], terminal)
    terminal.close()
    assert code == 0, said.getvalue()
    return said.getvalue()


def test_both_hosts_share_runs_over_a_read_only_project(
    shop: ProjectFactory,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dagster fails half of it, `pz retry` does the rest, and every command sees both; the project is never written."""
    text = (shop.directory / "connections.yml").read_text()
    text = text.replace("root: out", f"root: {tmp_path / 'out'}").replace("mart.duckdb", f"{tmp_path / 'mart.duckdb'}")
    shop.write("connections.yml", text)
    (tmp_path / "out").write_text("in the way")
    kept = tmp_path / "kept"
    monkeypatch.setenv("PZ_STATE_DIR", str(kept))
    with read_only(shop.directory) as directory:
        with pytest.raises(OSError, match=r"Read-only|Permission"):
            (directory / "x").mkdir()
        with dg.DagsterInstance.get() as instance:
            definitions = build_pz_definitions(PzProject(directory))
            assets = [each for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)]
            for sink, is_fine in (("mart/events", True), ("lake/orders", False)):
                done = dg.materialize(
                    assets,
                    instance=instance,
                    resources=definitions.resources,
                    selection=f"+key:{sink}",
                    raise_on_error=False,
                )
                assert done.success is is_fine
        (tmp_path / "out").unlink()
        assert "lake.orders 2 rows" in pz(directory, "retry")
        assert "2026-01-02" in pz(directory, "state", "show")
        assert pz(directory, "runs").count("Z-") == 3
        for verb in (["history"], ["compile"], ["clean"], ["run", "--all"]):
            pz(directory, *verb)
        assert "state copy: in step, 1 position(s)" in call("doctor", "--project", directory).output
    assert not (shop.directory / ".pz").exists()
    assert len(list_runs(shop.directory)) >= 3


def test_a_re_execution_finds_the_runs_that_were_kept_elsewhere(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    """The run of its parent, and the retry in a shell between the two: nothing is read or written again."""
    kept = tmp_path / "kept"
    job = Job(two, instance, assets=build_pz_assets(PzProject(two.directory, state_dir=kept)))
    far.failures = {"b": 2}
    job.run()
    assert run_project(RunRequest(two.directory, retry_from="latest", state_dir=kept)).exit_code == 1
    far.counts()
    assert "far/b" in job.run(FROM_FAILURE, parent=job.last)
    assert (job.succeeded, far.counts()) == (True, (0, ["b"]))
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}
