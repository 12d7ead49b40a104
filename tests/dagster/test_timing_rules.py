"""What schedules and sensors refuse, leave alone and hand on."""

from __future__ import annotations

import dagster as dg
import pytest

from pz_dagster import build_pz_sensors
from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_automation import requests_of
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
