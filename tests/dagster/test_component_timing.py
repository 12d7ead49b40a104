"""Schedules and partitions of a component."""

from __future__ import annotations

import inspect

import dagster as dg
import pytest
from dagster.components.testing import DefsFolderSandbox

from pz_dagster import build_pz_definitions
from pz_dagster.component_models import PzPartitionsModel
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_component import place, pytestmark, sandbox  # noqa: F401 - a fixture and what loading needs


@pytest.mark.skipif(
    "schedules" not in inspect.signature(build_pz_definitions).parameters, reason="definitions have no schedules yet"
)
def test_schedules_and_partitions_come_from_yaml(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:  # noqa: F811
    """A cron expression, or one with a selection; the unit that reads the entity is cut, the others are not."""
    path = place(
        sandbox,
        shop,
        schedules={"hourly": "0 * * * *", "nightly": ["0 2 * * *", "orders_clean+"]},
        partitions={"by": ["erp.events"], "definition": {"type": "daily", "start_date": "2026-01-01"}},
    )
    with sandbox.load_component_and_build_defs(path) as (_, definitions):
        crons = {each.cron_schedule for each in definitions.schedules or [] if isinstance(each, dg.ScheduleDefinition)}
        assert crons >= {"0 2 * * *"}
        sink = definitions.get_assets_def(dg.AssetKey(["mart", "events"]))
        assert sink.partitions_def == dg.DailyPartitionsDefinition("2026-01-01")
        assert definitions.get_assets_def(dg.AssetKey(["lake", "orders"])).partitions_def is None


def test_partitions_of_an_unknown_type_are_refused(sandbox: DefsFolderSandbox, shop: ProjectFactory) -> None:  # noqa: F811
    """The known ones are named."""
    path = place(sandbox, shop, partitions={"by": ["erp.events"], "definition": {"type": "dayly"}})
    with (
        pytest.raises(Exception, match="definitions for shop") as caught,
        sandbox.load_component_and_build_defs(path),
    ):
        pass
    assert "'dayly' is none of hourly, daily, weekly, monthly" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("kind", "definition"),
    [
        ("hourly", dg.HourlyPartitionsDefinition("2026-01-01-00:00")),
        ("weekly", dg.WeeklyPartitionsDefinition("2026-01-01")),
        ("monthly", dg.MonthlyPartitionsDefinition("2026-01-01")),
    ],
)
def test_each_type_of_partitions_is_dagsters(kind: str, definition: dg.PartitionsDefinition[str]) -> None:
    """With what its class takes."""
    start = "2026-01-01-00:00" if kind == "hourly" else "2026-01-01"
    model = PzPartitionsModel(by=["erp.events"], definition={"type": kind, "start_date": start})
    assert model.build() == definition
