"""What an attempt continues: counted by the reads of the sources and the commits of the sinks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzTranslator, build_pz_assets
from pz_dagster.snapshot import Snapshot
from pz_engine import Node, RunRequest, list_runs, run_project
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.far_side import Far, Job, two_sinks

A, B = dg.AssetKey(["far", "a"]), dg.AssetKey(["far", "b"])
ALL = ["far/a", "far/b", "two/p_a", "two/p_b", "two/src_far__events"]
CHECKS = ["check_p_a_not_null_id", "check_p_b_not_null_id"]
FROM_FAILURE, FROM_ASSET_FAILURE = "dagster/is_resume_retry", "dagster/is_asset_resume_retry"


@pytest.fixture
def far() -> Iterator[Far]:
    found = Far()
    with found.installed():
        yield found


@pytest.fixture
def two(tmp_path: Path, far: Far) -> ProjectFactory:
    return two_sinks(tmp_path / "two")


@pytest.fixture
def job(two: ProjectFactory, instance: dg.DagsterInstance) -> Job:
    return Job(two, instance)


def landed(far: Far) -> dict[str, list[int]]:
    return {entity: [row["id"] for row in found] for entity, found in sorted(far.written.items())}


def watermark(two: ProjectFactory) -> str | None:
    path = two.directory / ".pz" / "state" / "watermarks.json"
    return json.loads(path.read_text())["watermarks"]["far.events"]["value"] if path.exists() else None


def provenance(job: Job) -> dict[str, str]:
    """Where a materialization of the newest run came from, if from an earlier run."""
    return {
        event.asset_key.to_user_string(): str(event.materialization.metadata["pz/provenance"].value)
        for event in job.events
        if event.is_step_materialization and event.asset_key and "pz/provenance" in event.materialization.metadata
    }


def test_a_retry_policy_repeats_only_what_is_left(two: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """The second attempt reads nothing, commits one sink, and tells Dagster nothing twice."""
    job = Job(two, instance, retry_policy=dg.RetryPolicy(max_retries=2))
    far.failures = {"b": 2}
    assert job.run() == ALL
    assert job.succeeded
    assert job.checks == CHECKS
    assert far.counts() == (1, ["a", "b"])
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}
    assert watermark(two) == "2"
    attempts = [record.host["attempt"] for record in list_runs(two.directory) if record.host]
    assert attempts == [2, 1, 0]


def test_what_an_earlier_dagster_run_reported_is_reported_again(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """Only attempts of the same step have told this Dagster run something; older materializations are another run's."""
    job = Job(two, instance, retry_policy=dg.RetryPolicy(max_retries=1))
    job.run()
    far.failures = {"b": 1}
    assert job.run() == ALL
    assert (job.succeeded, job.checks) == (True, CHECKS)


def test_from_failure_repeats_what_is_left_and_reports_the_rest(job: Job, two: ProjectFactory, far: Far) -> None:
    """Committed sinks and passed checks are carried into the new Dagster run, so that what is downstream can start."""
    far.failures = {"b": 1}
    assert job.run() == [key for key in ALL if key != "far/b"]
    assert not job.succeeded
    assert far.counts() == (1, ["a"])
    assert job.run(FROM_FAILURE, parent=job.last) == ALL
    assert job.succeeded
    assert job.checks == CHECKS
    assert far.counts() == (0, ["b"])
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}
    assert watermark(two) == "2"
    assert provenance(job) == {
        "far/a": "carried_forward",
        "two/p_a": "carried_forward",
        "two/src_far__events": "reused",
    }


def test_from_asset_failure_repeats_the_chosen_assets(job: Job, two: ProjectFactory, far: Far) -> None:
    """Dagster chooses what was not materialized; the load is reused and the other sink counts as committed."""
    far.failures = {"b": 1}
    job.run()
    far.counts()
    assert job.run(FROM_ASSET_FAILURE, parent=job.last, assets=[B]) == ["far/b"]
    assert job.succeeded
    assert far.counts() == (0, ["b"])
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}
    assert watermark(two) == "2"
    assert not [text for text in job.messages if "read again" in text]
    assert [text for text in job.messages if text.startswith("ok far.a") and text.endswith("an earlier run)")]
    assert [text for text in job.messages if "unselected" in text] == [
        "2 unselected ancestor(s) ran and are not reported as materialized"
    ]


def test_a_retry_of_a_retry(job: Job, two: ProjectFactory, far: Far) -> None:
    """The sink that committed first is carried through both, and the watermark moves with the last one."""
    far.failures = {"b": 2}
    job.run()
    far.counts()
    for is_last in (False, True):
        job.run(FROM_FAILURE, parent=job.last)
        assert job.succeeded is is_last
        assert far.counts() == (0, ["b"] if is_last else [])
        assert watermark(two) == ("2" if is_last else None)
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}


def test_a_retry_finds_the_run_of_an_earlier_ancestor(job: Job, two: ProjectFactory, far: Far) -> None:
    """A Dagster run in which the op never started is passed over; one that repeated everything is not."""
    far.failures = {"b": 1}
    job.run()
    parent = job.last
    far.counts()
    for tags, counts in (({FROM_FAILURE: "true"}, (0, ["b"])), ({}, (1, ["a", "b"]))):
        empty = job.instance.create_run_for_job(job.job, parent_run_id=parent, root_run_id=parent, tags=tags)
        job.run(FROM_FAILURE, parent=empty.run_id)
        assert far.counts() == counts


def test_re_executing_everything_is_a_fresh_run(job: Job, two: ProjectFactory, far: Far) -> None:
    """Without a tag, and with the inherited one: the selection then holds a sink that was committed."""
    far.failures = {"b": 1}
    job.run()
    first = job.last
    far.counts()
    job.run(parent=first)
    assert far.counts() == (1, ["a", "b"])
    job.run(FROM_ASSET_FAILURE, parent=first)
    assert far.counts() == (1, ["a", "b"])
    assert not [text for text in job.messages if "continues" in text]


def test_re_executing_everything_reads_again_where_nothing_was_committed(
    job: Job, two: ProjectFactory, far: Far
) -> None:
    """Without a resume tag a parent alone proves nothing: the staged load of the failed run is left alone."""
    far.failures = {"a": 1, "b": 1}
    job.run()
    assert far.counts() == (1, [])
    job.run(parent=job.last)
    assert far.counts() == (1, ["a", "b"])


@pytest.mark.parametrize("tag", [FROM_FAILURE, FROM_ASSET_FAILURE])
def test_full_refresh_is_ignored_where_a_run_is_continued(tag: str, job: Job, two: ProjectFactory, far: Far) -> None:
    """Re-executions inherit config; what was read is not read again for it."""
    config = {"ops": {"two": {"config": {"full_refresh": True}}}}
    far.failures = {"b": 1}
    job.run(config=config)
    assert far.counts()[0] == 1
    job.run(tag, parent=job.last, config=config, assets=[B] if tag == FROM_ASSET_FAILURE else None)
    assert far.counts() == (0, ["b"])
    assert [text for text in job.messages if "full_refresh is ignored" in text]


def test_pz_retry_continues_a_dagster_run(job: Job, two: ProjectFactory, far: Far) -> None:
    """The newest run is the one Dagster made; nothing new shows in Dagster."""
    far.failures = {"b": 1}
    job.run()
    far.counts()
    outcome = run_project(RunRequest(two.directory, retry_from="latest"))
    assert outcome.exit_code == 0
    assert far.counts() == (0, ["b"])
    assert watermark(two) == "2"
    assert job.instance.get_latest_materialization_event(B) is None


@pytest.mark.parametrize("loss", ["staging", "results", "fatal"])
def test_what_is_lost_is_extracted_again(loss: str, job: Job, two: ProjectFactory, far: Far) -> None:
    """Swept staging, another machine, a run that ended fatally: never a failure, one line says so."""
    far.failures = {"b": 1}
    job.run()
    (directory,) = (two.directory / ".pz" / "runs").iterdir()
    if loss == "staging":
        (directory / "staging.duckdb").unlink()
    elif loss == "results":
        (directory / "host.json").unlink()
    else:
        text = (directory / "run_results.json").read_text()
        (directory / "run_results.json").write_text(text.replace("completed_with_failures", "fatal"))
    far.counts()
    job.run(FROM_FAILURE, parent=job.last)
    assert job.succeeded
    assert far.counts() == (1, ["b"] if loss == "staging" else ["a", "b"])
    lines = [text for text in job.messages if "extracted again" in text]
    assert len([text for text in lines if "note:" in text or "earlier attempt" in text]) == (loss != "results")


def test_a_node_that_changed_runs_again(job: Job, two: ProjectFactory, far: Far) -> None:
    """What it was is proof of nothing; the load is still the same."""
    far.failures = {"b": 1}
    job.run()
    far.counts()
    path = two.directory / "pipelines" / "p_a.sql"
    path.write_text(path.read_text().replace("SELECT id, name", "SELECT id, upper(name) AS name"))
    job.run(FROM_FAILURE, parent=job.last)
    assert job.succeeded
    assert far.counts() == (0, ["a", "b"])


def test_nothing_is_repeated_when_nothing_is_left(job: Job, two: ProjectFactory, far: Far) -> None:
    """A step that failed after its pz run had succeeded reports it again and moves no row."""
    job.run()
    far.counts()
    assert job.run(FROM_FAILURE, parent=job.last) == ALL
    assert (job.succeeded, job.checks) == (True, CHECKS)
    assert far.counts() == (0, [])
    assert len(list_runs(two.directory)) == 1


class Between(PzTranslator):
    """Lets one sink wait for an asset of somebody else."""

    def get_deps(self, node: Node, snapshot: Snapshot, keys: Mapping[str, dg.AssetKey]) -> Sequence[dg.AssetKey]:
        found = super().get_deps(node, snapshot, keys)
        return [*found, dg.AssetKey("between")] if node.name == "far.b" else found


def test_the_parts_of_a_split_op_see_the_same_slice(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """Rows that arrive between them are left to the next run; each part's sink counts for the watermark."""

    @dg.asset(deps=[["far", "a"]])
    def between() -> None:
        far.ids = [1, 2, 3]

    assets: list[Any] = [*build_pz_assets(PzProject(two.directory), translator=Between()), between]
    job = Job(two, instance, assets)
    job.run()
    assert job.succeeded
    assert {event.step_key for event in job.events if event.is_step_success} == {"two", "between", "two_2"}
    assert far.counts() == (1, ["a", "b"])
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}
    assert watermark(two) == "2"
    job.run()
    assert landed(far) == {"a": [1, 2, 3], "b": [1, 2, 3]}


def test_a_failed_part_is_continued_by_its_own_kind(
    two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """After the second part failed, a re-execution finds its run although Dagster names the step otherwise."""

    @dg.asset(deps=[["far", "a"]])
    def between() -> None: ...

    assets: list[Any] = [*build_pz_assets(PzProject(two.directory), translator=Between()), between]
    job = Job(two, instance, assets)
    far.failures = {"b": 1}
    job.run()
    assert not job.succeeded
    assert far.counts() == (1, ["a"])
    assert job.run(FROM_ASSET_FAILURE, parent=job.last, assets=[B]) == ["far/b"]
    assert far.counts() == (0, ["b"])
    assert watermark(two) == "2"
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}


def test_a_retried_part_continues_its_own_run(two: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """Both parts have one op, and each attempt belongs to the step that Dagster made of a part."""

    @dg.asset(deps=[["far", "a"]])
    def between() -> None: ...

    policy = dg.RetryPolicy(max_retries=1)
    made = build_pz_assets(PzProject(two.directory), translator=Between(), retry_policy=policy)
    assets: list[Any] = [*made, between]
    job = Job(two, instance, assets)
    far.failures = {"b": 1}
    job.run()
    assert job.succeeded
    assert far.counts() == (1, ["a", "b"])
    steps = [(record.host["step"], record.host["attempt"]) for record in list_runs(two.directory) if record.host]
    assert steps == [("two_2", 1), ("two_2", 0), ("two", 0)]
