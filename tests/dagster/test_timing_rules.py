"""What schedules and sensors refuse, leave alone and hand on."""

from __future__ import annotations

import dagster as dg
import pytest

from pz_dagster import backlog, build_pz_sensors
from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_automation import requests_of, sqlite  # noqa: F401 - a fixture
from tests.dagster.test_catching_up import windowed  # noqa: F401 - a fixture


def test_a_schedule_of_what_is_not_defined_is_refused(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The project has the node, these definitions leave it out; a job of everything was nobody's wish."""
    with pytest.raises(PzDefinitionError, match=r"PZ0210.*'nightly' selects no asset"):
        Workbench(shop, instance, select="+mart.events", schedules={"nightly": ("0 3 * * *", "lake.orders")})


def test_a_schedule_of_a_check_runs_its_asset(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A job has assets, and they bring their checks."""
    bench = Workbench(shop, instance, schedules={"checked": ("0 3 * * *", "check_orders_clean_row_count")})
    job = bench.definitions.resolve_job_def("shop__checked_job")
    assert job.asset_layer.executable_asset_keys == {dg.AssetKey(["shop", "orders_clean"])}


def test_a_backlog_is_asked_for_by_name(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """Windows alone make no sensor; one that is wanted is stopped, and its runs have the tags that are asked for."""
    bench = Workbench(windowed, instance)
    assert build_pz_sensors(bench.project) == []
    (sensor,) = build_pz_sensors(bench.project, backlog=True, job_tags={"dagster/priority": "3"})
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    bench.materialize(dg.AssetSelection.assets(["mart", "events"]).upstream())
    ((request, *_), _) = requests_of(sensor, bench)
    assert request.tags["dagster/priority"] == "3"
    assert request.tags["pz/backlog"]


def test_windows_without_a_stop_have_no_backlog(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """They are never caught up for good."""
    text = (windowed.directory / "connections.yml").read_text()
    windowed.write("connections.yml", text.replace(", until: 2026-01-05", ""))
    assert build_pz_sensors(Workbench(windowed, instance).project, backlog=True) == []


def test_only_the_flow_with_a_stop_has_a_sensor(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """Another one that is read incrementally, without windows, has nothing to catch up with."""
    read = (
        "{ path: events.csv, columns: { id: int, seen_at: timestamp }, sync: { mode: incremental, cursor: seen_at } }"
    )
    text = (windowed.directory / "connections.yml").read_text()
    windowed.write("connections.yml", text.replace("lake:\n", f"    others:\n      read: {read}\nlake:\n", 1))
    windowed.pipeline(
        "others",
        "INSERT INTO {{ sink('mart', 'others', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT id, seen_at FROM {{ source('erp', 'others') }}",
    )
    bench = Workbench(windowed, instance)
    assert len(bench.assets) == 3
    assert [each.name for each in build_pz_sensors(bench.project, backlog=True)] == ["shop__mart_events_backlog"]


def test_a_backlog_waits_for_a_started_run(
    windowed: ProjectFactory,  # noqa: F811
    sqlite: dg.DagsterInstance,  # noqa: F811
) -> None:
    """Two runs at once would read one window twice."""
    bench = Workbench(windowed, sqlite)
    (sensor,) = build_pz_sensors(bench.project, backlog=True)
    position = {"pz/caught_up": False, "pz/watermark_from": "4", "pz/watermark_to": "5"}
    load = dg.AssetKey(["shop", "src_erp__events"])
    sqlite.report_runless_asset_event(dg.AssetMaterialization(load, metadata=position))
    job = bench.definitions.get_repository_def().get_job("shop__mart_events_job")
    assert len(requests_of(sensor, bench)[0]) == 1
    launched = sqlite.create_run_for_job(job)
    sqlite.report_dagster_event(dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, job.name), launched.run_id)
    assert requests_of(sensor, bench) == ([], "a run of the flow is queued or started")


def test_a_run_is_waited_for_until_it_is_over() -> None:
    """In the queue, too, where only a server can put one."""
    over = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
    never_used = {dg.DagsterRunStatus.MANAGED, dg.DagsterRunStatus.SUSPENDED}
    assert set(dg.DagsterRunStatus) - over - never_used == backlog._UNFINISHED
