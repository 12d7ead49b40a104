"""From partitions to watermarks: what a seed takes as complete, and what runs without partitions then read."""

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_materialize import metadata_of
from tests.dagster.test_partitions import DAYS, TIMES, landed, partitioned, run

ROOT = Path(__file__).parents[2]
FEED = """
feed:
  connector: localfiles
  root: data
  entities:
    flights:
      read:
        path: flights_2013_*.csv
        columns: { carrier: varchar, flight: int, tailnum: varchar, origin: varchar, dest: varchar,
          dep_delay: varchar, arr_delay: varchar, time_hour: timestamp }
        sync: { mode: incremental, cursor: time_hour }
warehouse:
  connector: duckdb
  path: warehouse.duckdb
"""
MERGE = (
    "INSERT INTO {{ sink('warehouse', 'flights', strategy: 'merge', keys: ['time_hour', 'carrier', 'flight', 'origin']) }}\n"
    "SELECT time_hour, carrier, flight, origin, dest, tailnum, dep_delay, arr_delay FROM {{ source('feed', 'flights') }}"
)


def stored(directory: Path) -> dict[str, dict[str, str]]:
    path = directory / ".pz" / "state" / "watermarks.json"
    return dict(json.loads(path.read_text())["watermarks"]) if path.exists() else {}


def unit_of(bench: Workbench) -> dg.AssetsDefinition:
    (unit,) = [each for each in bench.assets if each.partitions_def is not None]
    return unit


def test_the_unbroken_history_becomes_the_watermark(
    shop: ProjectFactory, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shown first, then stored; the row exactly on its end is still read, nothing below it is."""
    shop.write("in/events.csv", TIMES)
    bench = partitioned(shop, instance)
    run(bench, "2026-01-01", "2026-01-02")
    run(bench, "2026-01-05")  # behind a gap: does not count
    bench.project.seed_watermarks(unit_of(bench), instance)
    assert "would store 2026-01-02T23:59:59.999999 (nothing is stored)" in capsys.readouterr().out
    assert stored(shop.directory) == {}
    bench.project.seed_watermarks(unit_of(bench), instance, apply=True)
    entry = {"cursor": "seen_at", "type": "timestamp", "value": "2026-01-02T23:59:59.999999", "runId": "manual"}
    assert stored(shop.directory) == {"erp.events": entry}
    (line,) = (shop.directory / ".pz/state/audit.jsonl").read_text().splitlines()
    assert json.loads(line)["reason"] == "complete up to Dagster partition 2026-01-02"
    (shop.directory / "mart.duckdb").unlink()
    result = Workbench(shop, instance).materialize()
    assert metadata_of(result, "shop", "src_erp__events")["pz/rows"] == 2
    assert landed(shop) == [7, 8]


def test_dates_go_on_with_the_next_day(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The watermark is the last day itself."""
    text = (shop.directory / "connections.yml").read_text().replace("seen_at: timestamp", "seen_at: date")
    shop.write("connections.yml", text)
    shop.write("in/events.csv", "id,seen_at\n1,2026-01-01\n2,2026-01-02\n3,2026-01-03\n")
    bench = partitioned(shop, instance)
    run(bench, "2026-01-01", "2026-01-02")
    bench.project.seed_watermarks(unit_of(bench), instance, apply=True)
    assert stored(shop.directory)["erp.events"]["value"] == "2026-01-02"
    (shop.directory / "mart.duckdb").unlink()
    Workbench(shop, instance).materialize(dg.AssetSelection.assets(["mart", "events"]).upstream())
    assert landed(shop) == [3]


def test_a_newer_watermark_stays(
    shop: ProjectFactory, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading went on already; a seed never goes back."""
    Workbench(shop, instance).materialize()
    before = stored(shop.directory)
    bench = partitioned(shop, instance)
    run(bench, "2026-01-01")
    bench.project.seed_watermarks(unit_of(bench), instance, apply=True)
    assert "kept 2026-01-02T00:00:00.000000" in capsys.readouterr().out
    assert stored(shop.directory) == before


def test_a_partition_that_a_sink_lacks_does_not_count(
    shop: ProjectFactory, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither does one whose load alone was materialized, nor a history without its first partition."""
    bench = partitioned(shop, instance)
    run(bench, "2026-01-02")
    run(bench, "2026-01-01", selection=dg.AssetSelection.assets(["shop", "src_erp__events"]))
    bench.project.seed_watermarks(unit_of(bench), instance, apply=True)
    assert "the first partition is not materialized in every sink" in capsys.readouterr().out
    assert stored(shop.directory) == {}
    part = Workbench(shop, instance, select="+events_merged", partitions_def=DAYS, partition_by=["erp.events"])
    with pytest.raises(PzDefinitionError, match=r"PZ0703.*mart\.events"):
        part.project.seed_watermarks(unit_of(part), instance, apply=True)
    (plain, _) = Workbench(shop, instance).assets
    with pytest.raises(PzDefinitionError, match="PZ0703"):
        part.project.seed_watermarks(plain, instance)


def test_a_partition_that_was_read_before_its_end_does_not_count(
    shop: ProjectFactory, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    """Definitions with an end offset let a day be read while it lasts; its later rows are not lost."""
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    bench = partitioned(shop, instance, dg.DailyPartitionsDefinition(today, end_offset=1))
    run(bench, today)
    bench.project.seed_watermarks(unit_of(bench), instance, apply=True)
    assert "nothing to go on from" in capsys.readouterr().out
    assert stored(shop.directory) == {}


def test_a_january_by_days_equals_one_load_and_february_follows(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """Real flights: thirty-one days in one backfill hold what a full load of January holds; then only February is read."""
    factory = ProjectFactory(tmp_path / "flights", 'name: flights\nversion: "1"\nengine: { threads: 2 }\n')
    data = ROOT / "example_project" / "data"
    (factory.directory / "data").mkdir()
    for month in ("01", "02"):
        shutil.copy(data / f"flights_2013_{month}.csv", factory.directory / "data")
    factory.connections(FEED)
    factory.pipeline("flight_changes", MERGE)
    january = dg.DailyPartitionsDefinition("2013-01-01", end_date="2013-02-01")
    bench = Workbench(factory, instance, partitions_def=january, partition_by=["feed.flights"])
    result = run(bench, "2013-01-01", "2013-01-31")
    warehouse = str(factory.directory / "warehouse.duckdb")
    files = str(data / "flights_2013_*.csv")
    with duckdb.connect(warehouse) as connection:
        full = (
            "select time_hour, carrier, flight, origin, dest, tailnum, dep_delay, arr_delay from read_csv(?, types = "
            "{'time_hour': 'TIMESTAMP', 'dep_delay': 'VARCHAR', 'arr_delay': 'VARCHAR'}, nullstr = '') "
            "where time_hour < '2013-02-01'"
        )
        for one, other in (("from flights", f"from ({full})"), (f"from ({full})", "from flights")):
            differing = connection.execute(
                f"select count(*) from (select * {one} except all select * {other})", [files]
            )
            assert differing.fetchone() == (0,)
        per_day = dict(
            connection.execute("select strftime(time_hour, '%Y-%m-%d'), count(*) from flights group by 1").fetchall()
        )
    counted = {}
    for event in result.get_asset_materialization_events():
        if event.asset_key == dg.AssetKey(["flights", "src_feed__flights"]):
            metadata = event.step_materialization_data.materialization.metadata
            counted[event.partition] = metadata["dagster/partition_row_count"].value
    assert counted == per_day
    bench.project.seed_watermarks(unit_of(bench), instance, apply=True)
    with duckdb.connect(warehouse) as connection:
        total = connection.execute("select count(*) from read_csv(?)", [files]).fetchone()
        before = connection.execute("select count(*) from flights").fetchone()
    assert total is not None
    assert before is not None
    followed = Workbench(factory, instance).materialize()
    assert metadata_of(followed, "flights", "src_feed__flights")["pz/rows"] == total[0] - before[0]
    with duckdb.connect(warehouse, read_only=True) as connection:
        assert connection.execute("select count(*) from flights").fetchone() == total
