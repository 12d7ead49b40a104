"""Where continuing a run meets variables, the environment, partitions, windows, hidden pipelines and `pz retry`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from pz_dagster import PzProject, PzResource, PzTranslator, PzTranslatorSettings, build_pz_assets
from pz_engine import CancelToken, RunRequest, RunStatus, list_runs, run_project
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.far_side import Far, Job
from tests.dagster.test_resume import (  # noqa: F401 - fixtures
    ALL,
    CHECKS,
    FROM_ASSET_FAILURE,
    FROM_FAILURE,
    A,
    B,
    far,
    job,
    landed,
    provenance,
    two,
    watermark,
)

# ruff: noqa: F811 - fixtures
FILTERED = (
    "INSERT INTO {{ sink('far', 'a', strategy: 'append', duplicates: 'accept') }}\n"
    "SELECT id, name FROM {{ source('far', 'events') }} WHERE id >= "
)


@pytest.mark.parametrize("kind", ["var", "env", "resource"])
def test_what_a_launch_knows_is_part_of_what_was_done(
    kind: str, two: ProjectFactory, far: Far, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that the loaded definitions do not know make other nodes; a committed sink is still not repeated."""
    monkeypatch.setenv("LEAST", "0" if kind == "resource" else "1")
    two.write("project.yml", 'name: two\nversion: "1"\nengine: { threads: 1 }\nvars: { LEAST: 0 }\n')
    two.pipeline("p_a", f"{FILTERED}{{{{ {'var' if kind == 'var' else 'env'}('LEAST') }}}}")
    resource = PzResource(env={"LEAST": "1"} if kind == "resource" else {})
    job = Job(two, instance, resource=resource, retry_policy=dg.RetryPolicy(max_retries=2))
    far.failures = {"b": 1}
    config = {"ops": {"two": {"config": {"vars": {"LEAST": 1} if kind == "var" else {}}}}}
    assert job.run(config=config) == ALL
    assert far.counts() == (1, ["a", "b"])
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}


def test_other_variables_are_another_node(two: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """A re-execution whose launch changes a variable runs what it changes, and reuses the load."""
    two.write("project.yml", 'name: two\nversion: "1"\nengine: { threads: 1 }\nvars: { LEAST: 0 }\n')
    two.pipeline("p_a", f"{FILTERED}{{{{ var('LEAST') }}}}")
    job = Job(two, instance)
    far.failures = {"b": 1}
    job.run()
    far.counts()
    job.run(FROM_FAILURE, parent=job.last, config={"ops": {"two": {"config": {"vars": {"LEAST": 2}}}}})
    assert far.counts() == (0, ["a", "b"])
    assert landed(far)["a"] == [1, 2, 2]


@pytest.mark.parametrize("tag", [FROM_FAILURE, FROM_ASSET_FAILURE])
@pytest.mark.parametrize("is_full", [True, False])
def test_what_pz_retry_delivered_is_not_delivered_again(
    tag: str, is_full: bool, two: ProjectFactory, far: Far, instance: dg.DagsterInstance
) -> None:
    """A retry in a shell between two Dagster runs counts: the second one reports its sink and writes nothing."""
    if is_full:
        text = (two.directory / "connections.yml").read_text()
        two.write("connections.yml", text.replace(", sync: { mode: incremental, cursor: id }", ""))
    job = Job(two, instance)
    far.failures = {"b": 2}
    job.run()
    assert run_project(RunRequest(two.directory, retry_from="latest")).exit_code == 1
    assert run_project(RunRequest(two.directory, retry_from="latest")).exit_code == 0
    far.counts()
    assets = [B] if tag == FROM_ASSET_FAILURE else None
    assert "far/b" in job.run(tag, parent=job.last, assets=assets)
    assert (job.succeeded, far.counts()) == (True, (0, []))
    assert provenance(job)["far/b"] == "carried_forward"
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}


def test_a_fresh_run_in_a_shell_is_no_part_of_it(job: Job, two: ProjectFactory, far: Far) -> None:
    """It delivered rows of its own reading; what failed in Dagster still runs, with what is new by then."""
    from pz_engine import Selection

    far.failures = {"b": 1}
    job.run()
    assert run_project(RunRequest(two.directory, selection=Selection(everything=True))).exit_code == 0
    far.ids = [1, 2, 3]
    far.counts()
    job.run(FROM_FAILURE, parent=job.last)
    assert far.counts()[1] == ["b"]
    assert watermark(two) == "2"
    job.run()
    assert set(landed(far)["a"]) == set(landed(far)["b"]) == {1, 2, 3}


def test_a_retry_of_a_fresh_run_in_a_shell_is_no_part_of_it(job: Job, two: ProjectFactory, far: Far) -> None:
    """It continued rows of another reading, so what failed in Dagster still runs on its own rows."""
    from pz_engine import Selection

    far.failures = {"b": 2}
    job.run()
    assert run_project(RunRequest(two.directory, selection=Selection(everything=True))).exit_code == 1
    assert run_project(RunRequest(two.directory, retry_from="latest")).exit_code == 0
    far.counts()
    job.run(FROM_FAILURE, parent=job.last)
    assert (job.succeeded, far.counts()[1]) == (True, ["b"])


def test_a_cancelled_retry_in_a_shell_hides_nothing(job: Job, two: ProjectFactory, far: Far) -> None:
    """Of it nothing is assumed; what the Dagster run before it had done still counts."""
    far.failures = {"b": 1}
    job.run()
    token = CancelToken()
    token.set()
    run_project(RunRequest(two.directory, retry_from="latest", cancel=token))
    assert list_runs(two.directory)[0].status is RunStatus.FATAL
    far.counts()
    job.run(FROM_FAILURE, parent=job.last)
    assert (job.succeeded, far.counts()) == (True, (0, ["b"]))
    assert landed(far) == {"a": [1, 2], "b": [1, 2]}


def test_hidden_pipelines_are_continued_too(two: ProjectFactory, far: Far, instance: dg.DagsterInstance) -> None:
    """With loads and sinks only, the committed sink is carried and its moved checks are reported."""
    job = Job(two, instance, translator=PzTranslator(settings=PzTranslatorSettings(granularity="endpoints")))
    far.failures = {"b": 1}
    assert job.run() == ["far/a", "two/src_far__events"]
    far.counts()
    assert job.run(FROM_FAILURE, parent=job.last) == ["far/a", "far/b", "two/src_far__events"]
    assert (job.succeeded, job.checks, far.counts()) == (True, CHECKS, (0, ["b"]))
    assert watermark(two) == "2"


def test_a_project_that_broke_meanwhile_moves_nothing(job: Job, two: ProjectFactory, far: Far) -> None:
    """The problem of the files is what the step says, and the next attempt goes on where the first one stopped."""
    far.failures = {"b": 1}
    job.run()
    first = job.last
    far.counts()
    two.sidecar("p_a", "checks:\n  - not_nul: [id]\n")
    assert job.run(FROM_FAILURE, parent=first) == []
    assert "PZ0113" in str([event for event in job.events if event.is_step_failure])
    two.sidecar("p_a", "checks:\n  - not_null: [id]\n")
    job.run(FROM_FAILURE, parent=first)
    assert (job.succeeded, far.counts()) == (True, (0, ["b"]))


@pytest.fixture
def windows(shop: ProjectFactory) -> ProjectFactory:
    """Five days, read a day at a time, into two files that append."""
    text = (shop.directory / "connections.yml").read_text()
    window = "cursor: seen_at, max_window: 1d, initial: 2025-12-31, until: 2026-01-05"
    text = text.replace("cursor: seen_at", window)
    shop.write("connections.yml", f"{text}other:\n  connector: duckdb\n  path: other.duckdb\n")
    shop.write("in/events.csv", "id,seen_at\n" + "".join(f"{day},2026-01-0{day} 00:00:00\n" for day in range(1, 6)))
    for name, connection in (("events_merged", "mart"), ("events_again", "other")):
        sink = f"{{{{ sink('{connection}', 'events', strategy: 'append', duplicates: 'accept') }}}}"
        shop.pipeline(name, f"INSERT INTO {sink}\nSELECT id, seen_at FROM {{{{ source('erp', 'events') }}}}")
    return shop


def days(factory: ProjectFactory, name: str) -> list[int]:
    with duckdb.connect(str(factory.directory / f"{name}.duckdb"), read_only=True) as connection:
        return [row[0] for row in connection.execute("select id from events order by id").fetchall()]


def test_a_part_that_is_continued_reads_no_further_window(
    windows: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """The sink that had committed is not part of it and would miss the next window, which would then be read twice."""
    assets = [
        each for each in build_pz_assets(PzProject(windows.directory)) if dg.AssetKey(["mart", "events"]) in each.keys
    ]
    job, config = Job(windows, instance, assets), {"ops": {assets[0].op.name: {"config": {"until_caught_up": 10}}}}
    other = windows.directory / "other.duckdb"
    other.write_text("this is no database")
    job.run(config=config)
    other.unlink()
    missed = [dg.AssetKey(["other", "events"])]
    assert job.run(FROM_ASSET_FAILURE, parent=job.last, assets=missed, config=config) == ["other/events"]
    assert (days(windows, "mart"), days(windows, "other")) == ([1], [1])
    job.run(config=config)
    assert job.succeeded
    assert days(windows, "mart") == days(windows, "other") == [1, 2, 3, 4, 5]


def test_a_retried_attempt_goes_on_until_it_is_caught_up(windows: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The whole op continues the failed pass and then reads every window that is left, each once."""
    assets = [
        each for each in build_pz_assets(PzProject(windows.directory)) if dg.AssetKey(["mart", "events"]) in each.keys
    ]
    job, config = Job(windows, instance, assets), {"ops": {assets[0].op.name: {"config": {"until_caught_up": 10}}}}
    other = windows.directory / "other.duckdb"
    other.write_text("this is no database")
    job.run(config=config)
    other.unlink()
    job.run(FROM_FAILURE, parent=job.last, config=config)
    assert job.succeeded
    assert days(windows, "mart") == days(windows, "other") == [1, 2, 3, 4, 5]


def test_another_partition_continues_nothing(
    shop: ProjectFactory, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    """A re-execution of the same partition carries what had committed; one that was given another reads that one."""
    days_of = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-08")
    sink = "{{ sink('other', 'events', strategy: 'append', duplicates: 'accept') }}"
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", f"{text}other:\n  connector: duckdb\n  path: other.duckdb\n")
    shop.pipeline("again", f"INSERT INTO {sink}\nSELECT id, seen_at FROM {{{{ source('erp', 'events') }}}}")
    made = build_pz_assets(PzProject(shop.directory), partitions_def=days_of, partition_by=["erp.events"])
    assets: list[Any] = [each for each in made if each.partitions_def is not None]
    job, mart = Job(shop, instance, assets), shop.directory / "mart.duckdb"
    mart.write_text("this is no database")
    job.run(partition="2026-01-01")
    first = job.last
    mart.unlink()
    job.run(FROM_FAILURE, parent=first, partition="2026-01-02")
    assert (days(shop, "mart"), days(shop, "other")) == ([2], [1, 2])
    job.run(FROM_FAILURE, parent=first, partition="2026-01-01")
    assert (days(shop, "mart"), days(shop, "other")) == ([1, 2], [1, 2])
    assert job.instance.get_materialized_partitions(dg.AssetKey(["mart", "events"])) == {"2026-01-01", "2026-01-02"}
    assert not (shop.directory / ".pz" / "state" / "watermarks.json").exists()
    assert len(list_runs(shop.directory)) == 3


def test_two_flows_that_failed_are_each_continued(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Each op finds its own run of the failed Dagster run, not the newest one."""
    job, mart, lake = Job(shop, instance), shop.directory / "mart.duckdb", shop.directory / "out"
    mart.write_text("this is no database")
    lake.write_text("this is no folder")
    job.run()
    first = {(record.host or {})["op"]: record.run_id for record in list_runs(shop.directory)}
    assert set(first) == {"shop__lake_orders", "shop__mart_events"}
    mart.unlink()
    lake.unlink()
    job.run(FROM_FAILURE, parent=job.last)
    assert job.succeeded
    for run_id in first.values():
        assert [text for text in job.messages if text.startswith(f"continues pz run {run_id}")]
    assert days(shop, "mart") == [1, 2]
