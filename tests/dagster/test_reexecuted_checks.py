"""What Dagster chooses after a blocking check failed, and what then runs."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.instance.runs.run_domain import RunDomain

from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.far_side import Far, Job
from tests.dagster.test_resume import FROM_ASSET_FAILURE, far, two, watermark  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures


def chosen(job: Job) -> tuple[set[str], set[str]]:
    """Assets and checks that Dagster re-executes from asset failure."""
    run = job.instance.get_run_by_id(job.last)
    assert run is not None
    assert run.execution_plan_snapshot_id is not None
    plan = job.instance.get_execution_plan_snapshot(run.execution_plan_snapshot_id)
    assets, checks = RunDomain(job.instance).get_keys_to_reexecute(job.last, plan)
    return {key.to_user_string() for key in assets}, {key.name for key in checks}


def test_a_pipeline_whose_check_failed_runs_again_with_its_checks_and_consumers(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """The load is reused, the other sink stays, and the watermark waits for the sink that was skipped."""
    two.sidecar("p_a", "checks:\n  - not_null: [id]\n  - row_count: { min: 3 }\n")
    job = Job(two, instance)
    assert job.run() == ["far/b", "two/p_a", "two/p_b", "two/src_far__events"]
    assert (job.succeeded, far.counts(), watermark(two)) == (False, (1, ["b"]), None)
    assets, checks = chosen(job)
    assert assets == {"far/a", "two/p_a"}
    assert checks == {"check_p_a_not_null_id", "check_p_a_row_count"}
    two.sidecar("p_a", "checks:\n  - not_null: [id]\n  - row_count: { min: 1 }\n")
    job.run(
        FROM_ASSET_FAILURE,
        parent=job.last,
        assets=[dg.AssetKey(["far", "a"]), dg.AssetKey(["two", "p_a"])],
        checks=[dg.AssetCheckKey(dg.AssetKey(["two", "p_a"]), name) for name in checks],
    )
    assert (job.succeeded, far.counts(), watermark(two)) == (True, (0, ["a"]), "2")
    assert set(job.checks) == checks


@pytest.mark.parametrize("mode", ["gate", "observe"])
def test_downstream_assets_of_somebody_else_wait_for_a_blocking_check(
    mode: str, two: ProjectFactory, far: Far, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    """A failed gate keeps a Python asset below the pipeline from running; observed, it runs."""
    from pz_dagster import PzProject, build_pz_assets

    ran: list[str] = []

    @dg.asset(deps=[["two", "p_a"]])
    def report() -> None:
        ran.append("report")

    two.sidecar("p_a", "checks:\n  - row_count: { min: 3 }\n")
    job = Job(two, instance, [*build_pz_assets(PzProject(two.directory), checks=mode), report])  # type: ignore[arg-type]
    job.run()
    assert job.succeeded is (mode == "observe")
    assert ran == ([] if mode == "gate" else ["report"])
