"""Dagster partitions as slices: exact ends, one run for a range, refusals, counts, state left alone."""

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from pz_dagster import PzProject, PzResource, build_pz_assets, build_pz_definitions, pz_assets
from pz_dagster.errors import PzDefinitionError
from pz_engine import list_runs
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_failures import failure_of
from tests.dagster.test_materialize import materialized

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-08")
TIMES = """id,seen_at
1,2025-12-31 23:59:59.999999
2,2026-01-01 00:00:00
3,2026-01-01 23:59:59.999999
4,2026-01-02 00:00:00
5,2026-01-02 12:00:00
6,2026-01-02 23:59:59.999999
7,2026-01-03 00:00:00
8,2026-01-05 08:00:00
9,
"""
LOAD = ("shop", "src_erp__events")


def partitioned(
    shop: ProjectFactory, instance: dg.DagsterInstance, definition: Any = DAYS, **options: Any
) -> Workbench:
    return Workbench(shop, instance, partitions_def=definition, partition_by=["erp.events"], **options)


def run(bench: Workbench, first: str, last: str | None = None, **options: Any) -> dg.ExecuteInProcessResult:
    """Materialize the partitioned unit, for one partition or an unbroken range."""
    (unit,) = [each for each in bench.assets if each.partitions_def is not None]
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last or first}
    return dg.materialize(
        [unit],
        instance=bench.instance,
        resources=bench.definitions.resources,
        **({"partition_key": first} if last is None else {"tags": tags}),
        **options,
    )


def landed(shop: ProjectFactory) -> list[int]:
    with duckdb.connect(str(shop.directory / "mart.duckdb"), read_only=True) as connection:
        return [row[0] for row in connection.execute("select id from events order by id").fetchall()]


def counts(result: dg.ExecuteInProcessResult, *key: str) -> dict[str | None, Any]:
    """Return the partition row count of each partition's event of one asset; missing ones are None."""
    found = {}
    for event in result.get_asset_materialization_events():
        if event.asset_key == dg.AssetKey(list(key)):
            entry = event.step_materialization_data.materialization.metadata.get("dagster/partition_row_count")
            found[event.partition] = entry.value if entry is not None else None
    return found


def state_files(shop: ProjectFactory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (shop.directory / ".pz" / "state").glob("*.json")}


def test_a_day_is_exact_and_leaves_the_watermark_alone(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The first moment of the day is in, the first of the next is not; no byte of state changes; rows are counted."""
    shop.write("in/events.csv", TIMES.partition("5,")[0])  # the watermark is then inside the day
    Workbench(shop, instance).materialize()
    (shop.directory / "mart.duckdb").unlink()
    shop.write("in/events.csv", TIMES)
    before = state_files(shop)
    result = run(partitioned(shop, instance), "2026-01-02")
    assert result.success
    assert landed(shop) == [4, 5, 6]
    assert state_files(shop) == before
    assert before
    assert counts(result, *LOAD) == {"2026-01-02": 3}
    assert counts(result, "shop", "events_merged") == counts(result, "mart", "events") == {"2026-01-02": 3}
    for event in result.get_asset_materialization_events():
        assert "dagster/row_count" not in event.step_materialization_data.materialization.metadata
    assert len(materialized(result)) == 3


def test_a_range_is_one_run_with_a_count_for_each_partition(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Three days are one pz run and one event per partition and asset; only the load's rows are known per day."""
    shop.write("in/events.csv", TIMES)
    bench = partitioned(shop, instance)
    result = run(bench, "2026-01-02", "2026-01-04")
    assert result.success
    assert landed(shop) == [4, 5, 6, 7]
    assert counts(result, *LOAD) == {"2026-01-02": 3, "2026-01-03": 1, "2026-01-04": 0}
    assert counts(result, "mart", "events") == dict.fromkeys(("2026-01-02", "2026-01-03", "2026-01-04"))
    assert len(list_runs(shop.directory)) == 1
    days = instance.get_materialized_partitions(dg.AssetKey(["mart", "events"]))
    assert days == {"2026-01-02", "2026-01-03", "2026-01-04"}
    (unit,) = [each for each in bench.assets if each.partitions_def is not None]
    assert unit.backfill_policy == dg.BackfillPolicy.single_run()


def test_dates_are_cut_by_whole_days(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A date cursor: the day itself and nothing else, in a zone whose midnight is not that of UTC."""
    text = (shop.directory / "connections.yml").read_text().replace("seen_at: timestamp", "seen_at: date")
    shop.write("connections.yml", text)
    shop.write("in/events.csv", "id,seen_at\n1,2026-01-01\n2,2026-01-02\n3,2026-01-03\n4,\n")
    zone = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-08", timezone="Asia/Tokyo")
    assert run(partitioned(shop, instance, zone), "2026-01-02").success
    assert landed(shop) == [2]


def test_timestamps_are_cut_in_the_zone_of_the_partitions(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A day of Berlin in summer begins at ten in the evening UTC, and the day of the change has 23 hours."""
    shop.write(
        "in/events.csv",
        "id,seen_at\n1,2026-03-28 22:59:59.999999\n2,2026-03-28 23:00:00\n3,2026-03-29 21:59:59.999999\n"
        "4,2026-03-29 22:00:00\n",
    )
    zone = dg.DailyPartitionsDefinition("2026-03-01", end_date="2026-04-08", timezone="Europe/Berlin")
    assert run(partitioned(shop, instance, zone), "2026-03-29").success
    assert landed(shop) == [2, 3]


def test_the_hour_that_comes_twice_is_two_partitions(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """When clocks go back, each of both hours is cut by itself, a range over them has no hole, and counts are exact."""
    times = ("23:59:59.999999", "00:00:00", "00:59:59.999999", "01:00:00", "01:30:00", "02:00:00")
    days = ("24", "25", "25", "25", "25", "25")
    lines = (f"{i},2026-10-{day} {at}" for i, (day, at) in enumerate(zip(days, times, strict=True), start=1))
    shop.write("in/events.csv", "\n".join(["id,seen_at", *lines, ""]))
    zone = dg.HourlyPartitionsDefinition("2026-10-24-00:00", end_date="2026-10-26-00:00", timezone="Europe/Berlin")
    bench, twice = partitioned(shop, instance, zone), ("2026-10-25-02:00", "2026-10-25-02:00+0100")
    for key, wanted in zip(twice, ([2, 3], [4, 5]), strict=True):
        run(bench, key)
        assert landed(shop) == wanted
        (shop.directory / "mart.duckdb").unlink()
    result = run(bench, "2026-10-25-01:00", "2026-10-25-03:00")
    assert landed(shop) == [1, 2, 3, 4, 5, 6]
    assert counts(result, *LOAD) == {"2026-10-25-01:00": 1, twice[0]: 2, twice[1]: 2, "2026-10-25-03:00": 1}


def test_units_that_do_not_read_the_entity_stay_unpartitioned(
    shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """They keep their watermarks and their jobs."""
    bench = partitioned(shop, instance)
    assert {each.op.name: each.partitions_def for each in bench.assets} == {
        "shop__lake_orders": None,
        "shop__mart_events": DAYS,
    }
    assert bench.materialize(dg.AssetSelection.assets(["lake", "orders"])).success


def test_a_stored_watermark_is_mentioned_once(
    shop: ProjectFactory, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    """`PZ0704`, in the first run of a process only."""
    Workbench(shop, instance).materialize()
    capsys.readouterr()
    bench = partitioned(shop, instance)
    for _ in range(2):
        run(bench, "2026-01-02")
    assert capsys.readouterr().err.count("PZ0704 erp.events is partitioned and also has a stored watermark") == 1


def test_a_failed_slice_fails_its_partitions(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The load of the range stays materialized, the sink has none of its partitions."""
    shop.write("mart.duckdb", "this is no database")
    result = run(partitioned(shop, instance), "2026-01-01", "2026-01-02", raise_on_error=False)
    assert not result.success
    assert instance.get_materialized_partitions(dg.AssetKey(list(LOAD))) == {"2026-01-01", "2026-01-02"}
    assert instance.get_materialized_partitions(dg.AssetKey(["mart", "events"])) == set()


def test_partitions_that_do_not_join_are_refused(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A definition that leaves out a day makes no run that would silently read it."""
    holes = dg.TimeWindowPartitionsDefinition(
        start="2026-01-01",
        fmt="%Y-%m-%d",
        cron_schedule="0 0 * * *",
        exclusions=[datetime(2026, 1, 3, tzinfo=timezone.utc)],
        end="2026-01-08",
    )
    result = run(partitioned(shop, instance, holes), "2026-01-02", "2026-01-04", raise_on_error=False)
    assert "leave out time between them" in str([event for event in result.all_events if event.is_step_failure])
    assert not (shop.directory / ".pz" / "runs").exists()


def test_a_decorated_body_takes_partitions_too(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The same three arguments, for one op."""
    shop.write("in/events.csv", TIMES)

    @pz_assets(
        project=PzProject(shop.directory), select="+mart.events", partitions_def=DAYS, partition_by=("erp.events",)
    )
    def events(context: dg.AssetExecutionContext, pz: PzResource) -> Any:
        yield from pz.run(context=context).stream()

    dg.materialize([events], instance=instance, resources={"pz": PzResource()}, partition_key="2026-01-05")
    assert landed(shop) == [8]


def codes(project: Path, **options: Any) -> list[str]:
    with pytest.raises(PzDefinitionError) as caught:
        build_pz_assets(PzProject(project), **options)
    assert all(problem.hint for problem in caught.value.problems)
    return [problem.code for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("definition", "by", "wanted"),
    [
        (DAYS, (), ["PZ0703"]),
        (None, ("erp.events",), ["PZ0703"]),
        (dg.StaticPartitionsDefinition(["a"]), ("erp.events",), ["PZ0703"]),
        (DAYS, ("erp.event",), ["PZ0210"]),
        (DAYS, ("erp.orders",), ["PZ0703", "PZ0703"]),  # read in full, and its sink is replaced
    ],
)
def test_what_cannot_be_partitioned_is_refused_when_definitions_load(
    shop: ProjectFactory, definition: Any, by: Sequence[str], wanted: list[str]
) -> None:
    """Missing arguments, other partitions, unknown entities, full reads and plain replaces."""
    assert codes(shop.directory, partitions_def=definition, partition_by=by) == wanted


@pytest.mark.parametrize(
    ("kind", "definition"), [("bigint", DAYS), ("date", dg.HourlyPartitionsDefinition("2026-01-01-00:00"))]
)
def test_cursors_that_cannot_be_cut_are_refused(shop: ProjectFactory, kind: str, definition: Any) -> None:
    """Numbers are no time, and an hour is no whole day."""
    text = (shop.directory / "connections.yml").read_text().replace("seen_at: timestamp", f"seen_at: {kind}")
    shop.write("connections.yml", text)
    assert codes(shop.directory, partitions_def=definition, partition_by=["erp.events"]) == ["PZ0703"]


def test_neighbours_in_a_partitioned_unit_are_checked(shop: ProjectFactory) -> None:
    """An increment beside it would follow whichever partition runs first, an append would repeat itself."""
    others = (
        "    others:\n      read: { path: events.csv, columns: { id: int, seen_at: timestamp }, "
        "sync: { mode: incremental, cursor: seen_at } }\n"
    )
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("lake:\n", f"{others}lake:\n", 1))
    shop.pipeline(
        "both",
        "INSERT INTO {{ sink('mart', 'both', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT e.id FROM {{ source('erp', 'events') }} AS e JOIN {{ source('erp', 'others') }} AS o USING (id)",
    )
    shop.pipeline(
        "counted",
        "INSERT INTO {{ sink('lake', 'counted', format: 'csv', strategy: 'append') }}\n"
        "SELECT id FROM {{ source('erp', 'names', path: 'events.csv', columns: { id: 'int' }) }} "
        "WHERE id NOT IN (SELECT id FROM {{ ref('wide') }})",
    )
    shop.pipeline("wide", "SELECT id FROM {{ source('erp', 'names', path: 'events.csv', columns: { id: 'int' }) }}")
    by = {"partitions_def": DAYS, "partition_by": ["erp.events"], "op_per": "project"}
    assert codes(shop.directory, **by) == ["PZ0703", "PZ0703", "PZ0703"]  # the increment, the append, lake.orders
    shop.pipeline("counted", "SELECT 1 AS id")
    build_pz_definitions(PzProject(shop.directory), partitions_def=DAYS, partition_by=["erp.events", "erp.others"])


def test_a_partitioned_op_without_a_partition_runs_nothing(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """It would read by the watermark instead, and be reported as nothing in particular."""
    bench = partitioned(shop, instance)
    (unit,) = [each for each in bench.assets if each.partitions_def is not None]
    result = dg.materialize([unit], instance=instance, resources=bench.definitions.resources, raise_on_error=False)
    assert "PZ0703: the op is partitioned" in failure_of(result, "shop__mart_events").replace("error ", "")
    assert not (shop.directory / ".pz" / "runs").exists()
