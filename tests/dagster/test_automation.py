"""Schedules, jobs and their tags, pools, the backlog sensor, eager chains, asset sensors, freshness, alerts."""

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzTranslator, build_pz_schedules, build_pz_sensors
from pz_dagster.errors import FailedNode, PzDefinitionError, failed_nodes
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_catching_up import windowed  # noqa: F401 - a fixture
from tests.dagster.test_failures import fail_the_check
from tests.dagster.test_materialize import materialized
from tests.dagster.test_partitions import DAYS

RUN_TAGS = {
    "dagster/max_retries": "1",
    "dagster/retry_strategy": "FROM_ASSET_FAILURE",
    "dagster/retry_on_asset_or_op_failure": "false",
}
NOON = datetime(2026, 1, 4, 12, tzinfo=timezone.utc)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A real instance on disk."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: { enabled: false }\n")
    with dg.DagsterInstance.from_config(str(home)) as found:
        yield found


def tick(
    bench: Workbench, name: str, at: datetime = NOON
) -> tuple[dg.RunRequest | None, dg.ScheduleDefinition, dg.RepositoryDefinition]:
    """Evaluate a schedule as the daemon does."""
    repository = bench.definitions.get_repository_def()
    schedule = repository.get_schedule_def(name)
    with dg.build_schedule_context(
        instance=bench.instance, scheduled_execution_time=at, repository_def=repository
    ) as context:
        found = schedule.evaluate_tick(context)
    return next(iter(found.run_requests or []), None), schedule, repository


def test_a_schedule_ticks_and_its_job_lands_the_project(shop: ProjectFactory, sqlite: dg.DagsterInstance) -> None:
    """Stopped until somebody starts it, in UTC, with tags that find its runs and repeat crashed ones only."""
    bench = Workbench(shop, sqlite, schedules={"hourly": "0 * * * *"})
    request, schedule, repository = tick(bench, "hourly")
    assert request is not None
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 * * * *", "UTC")
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    result = repository.get_job("shop__hourly_job").execute_in_process(instance=sqlite, tags=dict(request.tags))
    assert result.success
    assert len(materialized(result)) == 6
    assert len(result.get_asset_check_evaluations()) == 2
    run = sqlite.get_run_by_id(result.run_id)
    assert run is not None
    assert {**RUN_TAGS, "pz/project": "shop"}.items() <= run.tags.items()


def test_a_schedule_of_a_selection_runs_that(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Its job is tagged with the one flow it is about; what it selects is what a translator called it."""

    class Renaming(PzTranslator):
        def get_asset_key(self, node: Any, snapshot: Any) -> dg.AssetKey:
            return super().get_asset_key(node, snapshot).with_prefix("renamed")

    bench = Workbench(
        shop,
        instance,
        translator=Renaming(),
        schedules={"nightly": ("0 3 * * *", "+mart.events")},
        job_tags={"team": "x"},
    )
    request, _, repository = tick(bench, "nightly")
    assert request is not None
    job = repository.get_job("shop__nightly_job")
    wanted = {"pz/flow": "shop__mart_events", "pz/project": "shop", "team": "x", **RUN_TAGS}
    assert wanted.items() <= job.tags.items()
    result = job.execute_in_process(instance=instance)
    assert materialized(result) == {
        "renamed/shop/src_erp__events",
        "renamed/shop/events_merged",
        "renamed/mart/events",
    }
    (own,) = build_pz_schedules(
        bench.project,
        {"nightly": ("0 3 * * *", "+mart.events")},
        timezone="Europe/Berlin",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        translator=Renaming(),
    )
    assert (own.execution_timezone, own.default_status) == ("Europe/Berlin", dg.DefaultScheduleStatus.RUNNING)
    assert dg.Definitions(assets=bench.assets, schedules=[own], resources=bench.definitions.resources).resolve_job_def(
        "shop__nightly_job"
    ).asset_layer.executable_asset_keys == {
        key for each in bench.assets for key in each.keys if "events" in key.path[-1]
    }


def test_a_schedule_may_be_named_after_a_sink(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The unit has a job of that name already, so the schedule's gets another one."""
    bench = Workbench(shop, instance, schedules={"mart_events": ("0 * * * *", "+mart.events")})
    request, schedule, repository = tick(bench, "mart_events")
    assert request is not None
    assert schedule.job_name == "shop__mart_events_schedule_job"
    assert repository.has_job("shop__mart_events_job")


@pytest.mark.parametrize("expression", ["nowhere", "tag:none"])
def test_a_schedule_of_nothing_is_refused(shop: ProjectFactory, expression: str) -> None:
    """A job that would never do anything is a mistake in the definitions."""
    with pytest.raises(PzDefinitionError) as caught:
        Workbench(shop, dg.DagsterInstance.ephemeral(), schedules={"x": ("0 * * * *", expression)})
    assert [problem.code for problem in caught.value.problems] == ["PZ0210"]


def test_a_schedule_of_a_partitioned_unit_takes_the_newest_partition(
    shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """The last one that has ended by the tick; none before the first has."""
    bench = Workbench(
        shop,
        instance,
        partitions_def=DAYS,
        partition_by=["erp.events"],
        schedules={"daily": ("0 1 * * *", "+mart.events")},
    )
    request, _, repository = tick(bench, "daily")
    assert request is not None
    assert request.partition_key == "2026-01-03"
    result = repository.get_job("shop__daily_job").execute_in_process(
        instance=instance, partition_key=request.partition_key
    )
    assert result.success
    early, _, _ = tick(bench, "daily", datetime(2026, 1, 1, 12, tzinfo=timezone.utc))
    assert early is None


def test_jobs_and_ops_have_the_recommended_tags_and_pools(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """One job for each unit; runs of one unit wait for each other, those of others do not."""
    bench = Workbench(shop, instance, job_tags={"dagster/max_retries": "3"})
    repository = bench.definitions.get_repository_def()
    for unit in ("shop__lake_orders", "shop__mart_events"):
        tags = repository.get_job(f"{unit}_job").tags
        assert {**RUN_TAGS, "dagster/max_retries": "3", "pz/project": "shop", "pz/flow": unit}.items() <= tags.items()
    assert {each.op.name: each.op.pool for each in bench.assets} == {
        "shop__lake_orders": "pz_shop__lake_orders",
        "shop__mart_events": "pz_shop__mart_events",
    }
    assert {each.op.pool for each in Workbench(shop, instance, pool="warehouse").assets} == {"warehouse"}


def backlog(bench: Workbench) -> dg.SensorDefinition:
    (sensor,) = build_pz_sensors(bench.project, backlog=True)
    return sensor


def requests_of(sensor: dg.SensorDefinition, bench: Workbench) -> tuple[list[dg.RunRequest], str]:
    repository = dg.Definitions(
        assets=bench.assets, sensors=[sensor], resources=bench.definitions.resources
    ).get_repository_def()
    with dg.build_sensor_context(instance=bench.instance, repository_def=repository) as context:
        found = repository.get_sensor_def(sensor.name).evaluate_tick(context)
    return list(found.run_requests or []), found.skip_message or ""


def test_the_backlog_is_worked_off_and_then_nothing_is_asked(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """Each window is asked for once, however often the sensor looks; the last one ends it."""
    bench = Workbench(windowed, instance)
    sensor = backlog(bench)
    assert sensor.name == "shop__mart_events_backlog"
    assert requests_of(sensor, bench)[0] == []  # never run: nobody has started it
    seen: list[str | None] = []
    selection = dg.AssetSelection.assets(["mart", "events"]).upstream()
    bench.materialize(selection)
    while (found := requests_of(sensor, bench)[0]) and len(seen) < 10:
        assert requests_of(sensor, bench)[0][0].run_key == found[0].run_key
        assert found[0].run_key is not None
        seen.append(found[0].run_key.partition("@")[0])
        assert {"pz/flow": "shop__mart_events", **RUN_TAGS}.items() <= found[0].tags.items()
        assert found[0].asset_selection is not None
        bench.materialize(dg.AssetSelection.assets(*found[0].asset_selection))
    assert seen == [f"src_erp__events=2026-01-0{day}T00:00:00.000000+00:00" for day in (1, 2, 3, 4)]
    assert "has been read" in requests_of(sensor, bench)[1]


def test_a_window_that_keeps_failing_has_one_key_for_ever(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """Dagster launches a key once, so nobody hammers a destination that is down."""
    bench = Workbench(windowed, instance)
    windowed.write("mart.duckdb", "this is no database")
    for _ in range(2):
        bench.materialize(dg.AssetSelection.assets(["mart", "events"]).upstream(), raise_on_error=False)
        (request,), _ = requests_of(backlog(bench), bench)
        assert request.run_key == "src_erp__events=@"


def test_the_backlog_waits_for_runs_of_the_flow(
    windowed: ProjectFactory,  # noqa: F811
    sqlite: dg.DagsterInstance,
) -> None:
    """A run that has not even started is enough, whichever job it is of; what a person reported by hand says nothing."""
    bench = Workbench(windowed, sqlite)
    load = dg.AssetKey(["shop", "src_erp__events"])
    position = {"pz/caught_up": False, "pz/watermark_from": "4", "pz/watermark_to": "5"}
    sqlite.report_runless_asset_event(dg.AssetMaterialization(load, metadata=position))
    (request,), _ = requests_of(backlog(bench), bench)
    assert request.run_key == "src_erp__events=4@"
    job = bench.definitions.get_repository_def().get_job("shop__mart_events_job")
    waiting = sqlite.create_run_for_job(job, status=dg.DagsterRunStatus.NOT_STARTED)
    assert requests_of(backlog(bench), bench) == ([], "a run of the flow is queued or started")
    sqlite.report_run_canceled(waiting)
    assert len(requests_of(backlog(bench), bench)[0]) == 1
    sqlite.report_runless_asset_event(dg.AssetMaterialization(load))
    assert requests_of(backlog(bench), bench)[0] == []


def test_only_flows_with_a_stop_have_a_backlog(bench: Workbench) -> None:
    """Without `until` there is nothing to reach, and nothing is asked for unless it is switched on."""
    assert build_pz_sensors(bench.project, backlog=True) == []
    assert build_pz_sensors(bench.project) == []


def test_a_backlog_is_looked_at_as_often_as_wanted(
    windowed: ProjectFactory,  # noqa: F811
    instance: dg.DagsterInstance,
) -> None:
    """Every half minute at most, unless said otherwise."""
    bench = Workbench(windowed, instance)
    (often,) = build_pz_sensors(bench.project, backlog=True, minimum_interval_seconds=5)
    assert (backlog(bench).minimum_interval_seconds, often.minimum_interval_seconds) == (30, 5)


class Eager(PzTranslator):
    """Loads and what follows run when something above them has changed."""

    def get_automation_condition(self, node: Any, snapshot: Any) -> Any:
        return dg.AutomationCondition.eager()


def look(definitions: dg.Definitions, instance: dg.DagsterInstance, cursor: Any = None) -> Any:
    """Evaluate every condition once, as the daemon does in a tick."""
    return dg.evaluate_automation_conditions(
        definitions, instance, asset_selection=dg.AssetSelection.all(), cursor=cursor
    )


def test_an_eager_chain_is_asked_for_once(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A change above asks for load, pipeline and sink in one tick; afterwards five ticks ask for nothing."""

    @dg.asset(key=["erp", "events"])
    def upstream() -> None:
        return None

    bench = Workbench(shop, instance, translator=Eager())
    definitions = dg.Definitions(assets=[*bench.assets, upstream], resources=bench.definitions.resources)
    selection = dg.AssetSelection.assets(["mart", "events"]).upstream() - dg.AssetSelection.assets(["erp", "events"])
    dg.materialize([upstream], instance=instance)
    bench.materialize()
    evaluated = look(definitions, instance)
    for _ in range(2):
        dg.materialize([upstream], instance=instance)
        evaluated = look(definitions, instance, cursor=evaluated.cursor)
        asked = {key for each in bench.assets for key in each.keys if evaluated.get_num_requested(key)}
        assert {key.to_user_string() for key in asked} == {
            "shop/src_erp__events",
            "shop/events_merged",
            "mart/events",
        }
        bench.materialize(selection)
        for _ in range(5):
            evaluated = look(definitions, instance, cursor=evaluated.cursor)
            assert evaluated.total_requested == 0


def test_unselected_ancestors_wake_nobody(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Materializing one sink runs its load too; five ticks later nothing was asked for because of that."""
    bench = Workbench(shop, instance, translator=Eager())
    bench.materialize()
    evaluated = look(bench.definitions, instance)
    bench.materialize(dg.AssetSelection.assets(["mart", "events"]))
    for _ in range(5):
        evaluated = look(bench.definitions, instance, cursor=evaluated.cursor)
        assert evaluated.total_requested == 0


def test_an_asset_sensor_follows_a_sink(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """It fires once for each time the sink was written, and never for a failed write."""
    bench = Workbench(shop, instance)

    @dg.op
    def use() -> None:
        return None

    @dg.job
    def follower() -> None:
        use()

    @dg.asset_sensor(asset_key=dg.AssetKey(["mart", "events"]), job=follower)
    def on_events(context: dg.SensorEvaluationContext, asset_event: dg.EventLogEntry) -> dg.RunRequest:
        return dg.RunRequest(run_key=context.cursor)

    repository = dg.Definitions(
        assets=bench.assets, sensors=[on_events], jobs=[follower], resources=bench.definitions.resources
    ).get_repository_def()
    cursor: str | None = None

    def asked() -> int:
        nonlocal cursor
        with dg.build_sensor_context(instance=instance, repository_def=repository, cursor=cursor) as context:
            found = on_events.evaluate_tick(context)
        cursor = found.cursor
        return len(found.run_requests or [])

    assert asked() == 0
    bench.materialize()
    assert [asked(), asked()] == [1, 0]
    shop.write("mart.duckdb", "this is no database")
    bench.materialize(raise_on_error=False)
    assert asked() == 0


def test_sinks_are_expected_to_be_fresh_by_pattern(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The first pattern that matches counts; nothing but sinks has a policy; the unit still runs."""
    hours = {"mart.ev*": timedelta(hours=6), "*": timedelta(hours=24)}
    bench = Workbench(shop, instance, freshness=hours)
    found = {spec.key.to_user_string(): spec.freshness_policy for each in bench.assets for spec in each.specs}
    assert found["mart/events"] == dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=6))
    assert found["lake/orders"] == dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=24))
    assert {key for key, policy in found.items() if policy is not None} == {"lake/orders", "mart/events"}
    assert bench.materialize().success
    with pytest.raises(PzDefinitionError, match=r"PZ0210.*warehouse"):
        Workbench(shop, instance, freshness={"warehouse.*": timedelta(hours=1)})


def test_alerts_can_read_what_failed(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A run-failure sensor gets names, codes and summaries out of the failure event."""
    fail_the_check(shop)
    bench = Workbench(shop, instance)
    result = bench.materialize(raise_on_error=False)
    (failure,) = [event for event in result.all_events if event.is_job_failure]
    (step,) = [event for event in result.all_events if event.is_step_failure]
    for event in (step, failure):
        (node,) = failed_nodes(event)
        assert (node.node, node.code, node.attempts) == ("check_orders_clean_row_count", "PZ0510", 1)
        assert isinstance(node, FailedNode)
    assert failed_nodes(None) == failed_nodes(result.all_events[0]) == ()
