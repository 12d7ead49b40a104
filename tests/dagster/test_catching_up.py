"""Op config: windows one after another in one op, variables with their types, checks for one launch."""

import json
from typing import Any

import dagster as dg
import duckdb
import pytest

from pz_dagster import PzRunConfig
from pz_engine import list_runs
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_materialize import materialized, metadata_of

LOAD = ("shop", "src_erp__events")


@pytest.fixture
def windowed(shop: ProjectFactory) -> ProjectFactory:
    """Five days of events, read a day at a time."""
    text = (shop.directory / "connections.yml").read_text()
    window = "cursor: seen_at, max_window: 1d, initial: 2025-12-31, until: 2026-01-05"
    shop.write("connections.yml", text.replace("cursor: seen_at", window))
    shop.write("in/events.csv", "id,seen_at\n" + "".join(f"{day},2026-01-0{day} 00:00:00\n" for day in range(1, 6)))
    return shop


def config(op: str, **values: Any) -> dict[str, Any]:
    return {"ops": {op: {"config": values}}}


def rows(shop: ProjectFactory) -> int:
    with duckdb.connect(str(shop.directory / "mart.duckdb"), read_only=True) as connection:
        found = connection.execute("select count(*) from events").fetchone()
    return int(found[0]) if found else -1


def events_of(bench: Workbench, **values: Any) -> dg.ExecuteInProcessResult:
    selection = dg.AssetSelection.assets(["mart", "events"]).upstream()
    return bench.materialize(selection, raise_on_error=False, run_config=config("shop__mart_events", **values))


def test_one_window_by_default(windowed: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Its ends and whether it was the last one are on the load, and nothing is said of passes."""
    load = metadata_of(events_of(Workbench(windowed, instance)), *LOAD)
    assert load["pz/window"] == {"after": "2025-12-31T00:00:00.000000", "to": "2026-01-01T00:00:00.000000"}
    assert load["pz/caught_up"] is False
    assert "pz/passes" not in load
    assert rows(windowed) == 1


def test_windows_are_read_until_caught_up(windowed: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Five windows are five pz runs in one op; each asset is materialized once, with what the last one did."""
    result = events_of(Workbench(windowed, instance), until_caught_up=10)
    assert result.success
    assert rows(windowed) == 5
    assert len(list_runs(windowed.directory)) == 5
    load = metadata_of(result, *LOAD)
    assert (load["pz/passes"], load["pz/caught_up"], load["pz/rows"]) == (5, True, 1)
    assert load["pz/run_id"] == list_runs(windowed.directory)[0].run_id
    assert "pz/passes" not in metadata_of(result, "mart", "events")
    assert len(result.get_asset_materialization_events()) == 3


def test_passes_are_limited(windowed: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The rest is read next time; a full refresh is one for the first pass only, or none would ever end."""
    bench = Workbench(windowed, instance)
    assert metadata_of(events_of(bench, until_caught_up=2), *LOAD)["pz/passes"] == 2
    assert rows(windowed) == 2
    again = metadata_of(events_of(bench, until_caught_up=10, full_refresh=True), *LOAD)
    assert (again["pz/passes"], again["pz/caught_up"]) == (5, True)
    with pytest.raises(dg.DagsterInvalidConfigError):
        bench.materialize(run_config=config("shop__mart_events", until_caught_up="often"))
    assert not events_of(bench, until_caught_up=0).success


def test_a_failing_pass_is_the_last_and_reported(windowed: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """What succeeded in it is materialized, what failed fails the op."""
    windowed.write("mart.duckdb", "this is no database")
    result = events_of(Workbench(windowed, instance), until_caught_up=10)
    assert not result.success
    assert materialized(result) == {"shop/src_erp__events", "shop/events_merged"}
    assert len(list_runs(windowed.directory)) == 1


def test_a_pass_that_moves_no_watermark_is_the_last(windowed: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The load alone holds its watermark, so every further pass would read the same window."""
    bench = Workbench(windowed, instance)
    selection = dg.AssetSelection.assets(list(LOAD))
    result = bench.materialize(selection, run_config=config("shop__mart_events", until_caught_up=10))
    assert metadata_of(result, *LOAD)["pz/passes"] == 1


def test_variables_keep_their_types(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Numbers, booleans, nothing and lists reach the templates as what they are in JSON."""
    values: dict[str, Any] = {"least": 20, "share": 0.5, "on": True, "none": None, "names": ["a", "b"], "text": "7"}
    shop.write(
        "project.yml",
        'name: shop\nversion: "1"\nvars: { least: 0, share: 0, on: false, none: 1, names: [], text: "" }\n',
    )
    shop.pipeline(
        "orders_clean",
        "INSERT INTO {{ sink('lake', 'orders', format: 'json', strategy: 'replace') }}\n"
        "SELECT {{ var('least') + 1 }} AS least, {{ var('share') * 2 }} AS share, "
        "{% if var('on') %}1{% else %}0{% endif %} AS on_, {% if var('none') == none %}1{% else %}0{% endif %} AS none_, "
        "{{ var('names') | length }} AS names, '{{ var('text') }}' AS txt FROM {{ source('erp', 'orders') }} LIMIT 1",
    )
    shop.sidecar("orders_clean", "materialization: table\n")
    bench = Workbench(shop, instance)
    bench.materialize(
        dg.AssetSelection.assets(["lake", "orders"]).upstream(), run_config=config("shop__lake_orders", vars=values)
    )
    (path,) = (shop.directory / "out" / "orders").iterdir()
    row = json.loads(path.read_text().splitlines()[0])
    assert row == {"least": 21, "share": 1.0, "on_": 1, "none_": 1, "names": 2, "txt": "7"}
    assert PzRunConfig(vars=values).vars == values
    assert PzRunConfig().vars == {}
    for wrong in (["least"], "least", None):
        refused = bench.materialize(raise_on_error=False, run_config=config("shop__lake_orders", vars=wrong))
        assert not refused.success


def test_checks_can_be_observed_for_one_launch(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The definitions gate; this launch reports only, and a word that is neither is refused."""
    shop.sidecar("orders_clean", "checks:\n  - row_count: { min: 100 }\n")
    bench = Workbench(shop, instance)
    result = bench.materialize(raise_on_error=False, run_config=config("shop__lake_orders", checks="observe"))
    assert result.success
    assert "lake/orders" in materialized(result)
    assert not bench.materialize(raise_on_error=False).success
    assert not bench.materialize(raise_on_error=False, run_config=config("shop__lake_orders", checks="maybe")).success
