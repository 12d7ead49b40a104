"""From what Dagster asks an op for to what the engine runs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzResource, PzRunConfig, PzTranslator, build_pz_assets, pz_assets
from pz_dagster.snapshot import Snapshot
from pz_engine import Node, list_runs
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_materialize import materialized, metadata_of


def effective_sets(directory: Path) -> list[set[str]]:
    """Names of the nodes that each run had, newest first."""
    found = []
    for record in list_runs(directory):
        first = (directory / ".pz" / "journal" / f"{record.run_id}.jsonl").read_text().splitlines()[0]
        found.append({node["name"] for node in json.loads(first)["nodes"]})
    return found


CHECKS = {"check_orders_clean_not_null_id", "check_orders_clean_row_count"}
FLOW = {"src_erp__orders", "orders_clean", "lake.orders"}


def run_of(bench: Workbench, selection: Any) -> set[str]:
    bench.materialize(selection)
    (found,) = effective_sets(bench.factory.directory)
    return found


def test_everything_of_an_op(bench: Workbench) -> None:
    """All assets and checks of an op are its nodes."""
    keys = [
        dg.AssetKey(["shop", "src_erp__orders"]),
        dg.AssetKey(["shop", "orders_clean"]),
        dg.AssetKey(["lake", "orders"]),
    ]
    assert run_of(bench, dg.AssetSelection.assets(*keys)) == FLOW | CHECKS


def test_some_assets_run_with_their_ancestors_and_checks(bench: Workbench) -> None:
    """A pipeline brings its load and its own checks, and nothing below it."""
    assert run_of(bench, dg.AssetSelection.assets(["shop", "orders_clean"])) == FLOW - {"lake.orders"} | CHECKS


def test_assets_without_checks_run_no_check(bench: Workbench) -> None:
    """Then nothing gates either."""
    assert run_of(bench, dg.AssetSelection.assets(["lake", "orders"]).without_checks()) == FLOW


def test_one_check_runs_alone(bench: Workbench) -> None:
    """Its pipeline is computed, nothing is written and no other check runs."""
    key = dg.AssetCheckKey(dg.AssetKey(["shop", "orders_clean"]), "check_orders_clean_row_count")
    found = run_of(bench, dg.AssetSelection.checks(key))
    assert found == FLOW - {"lake.orders"} | {"check_orders_clean_row_count"}


def test_a_python_asset_between_two_assets_splits_the_op_and_nothing_is_lost(
    shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """Dagster runs the op twice; the second half adds the ancestors it needs, and the watermark moves with the sink."""

    class Between(PzTranslator):
        def get_deps(self, node: Node, snapshot: Snapshot, keys: Mapping[str, dg.AssetKey]) -> Sequence[dg.AssetKey]:
            found = super().get_deps(node, snapshot, keys)
            return [*found, dg.AssetKey("between")] if node.name == "mart.events" else found

    assets = build_pz_assets(PzProject(shop.directory), translator=Between())

    @dg.asset(deps=[["shop", "events_merged"]])
    def between() -> None: ...

    result = dg.materialize([*assets, between], instance=instance, resources={"pz": PzResource()})
    steps = {event.step_key for event in result.all_events if event.is_step_success}
    assert {"shop__mart_events", "shop__mart_events_2"} <= steps
    assert {"shop/src_erp__events", "mart/events", "between"} <= materialized(result)
    assert metadata_of(result, "mart", "events")["pz/rows"] == 2
    assert metadata_of(result, "shop", "src_erp__events")["pz/watermark_held"] is True
    assert "2026-01-02" in (shop.directory / ".pz" / "state" / "watermarks.json").read_text()
    steps = {record.host["step"] for record in list_runs(shop.directory) if record.host}
    assert {"shop__mart_events", "shop__mart_events_2"} <= steps


def test_one_of_two_sinks_holds_the_watermark(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The other one still needs the rows; both together move it."""
    shop.pipeline(
        "events_copied",
        "INSERT INTO {{ sink('mart', 'copies', strategy: 'merge', keys: ['id']) }}\n"
        "SELECT id, seen_at FROM {{ source('erp', 'events') }}",
    )
    bench, load = Workbench(shop, instance), dg.AssetKey(["shop", "src_erp__events"])
    part = bench.materialize(dg.AssetSelection.assets(load, ["shop", "events_merged"], ["mart", "events"]))
    assert metadata_of(part, *load.path)["pz/watermark_held"] is True
    text = "\n".join(each.user_message for each in instance.all_logs(part.run_id))
    assert "the watermark of erp.events was not advanced: " in text
    whole = bench.materialize(dg.AssetSelection.assets(["mart", "events"], ["mart", "copies"]).upstream())
    assert metadata_of(whole, *load.path)["pz/rows"] == 2
    assert "pz/watermark_held" not in metadata_of(whole, *load.path)


def test_a_key_prefix_added_later_keeps_working(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Nodes are found by their identity, not by their key."""
    assets = [
        each.with_attributes(asset_key_replacements={key: key.with_prefix("eu") for key in each.keys})
        for each in build_pz_assets(PzProject(shop.directory))
    ]
    result = dg.materialize(assets, instance=instance, resources={"pz": PzResource()}, selection=["eu/lake/orders"])
    assert materialized(result) == {"eu/lake/orders"}


def test_a_body_of_your_own_runs_a_selection(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The decorated function gets the resource and config, and may act before and after."""
    seen: list[object] = []

    @pz_assets(project=PzProject(shop.directory), select="tag:daily+", op_tags={"team": "a"})
    def daily(context: dg.AssetExecutionContext, pz: PzResource, config: PzRunConfig) -> Iterator[Any]:
        invocation = pz.run(context=context, config=config)
        yield from invocation.stream()
        assert invocation.outcome is not None
        seen.extend([invocation.run_id, invocation.outcome.status.value, config.fail_fast])

    assert daily.op.name == "daily"
    result = dg.materialize(
        [daily],
        instance=instance,
        resources={"pz": PzResource()},
        run_config={"ops": {"daily": {"config": {"fail_fast": True}}}},
    )
    assert materialized(result) == {"shop/orders_clean", "lake/orders"}
    assert seen == [list_runs(shop.directory)[0].run_id, "success", True]


def test_raw_events_can_be_streamed(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`stream_events` gives the run's events as dicts and no Dagster result."""
    names: list[str] = []

    @pz_assets(project=PzProject(shop.directory), select="orders_clean")
    def raw(context: dg.AssetExecutionContext, pz: PzResource) -> Iterator[Any]:
        names.extend(event["event"] for event in pz.run(context=context).stream_events())
        yield from ()

    dg.materialize([raw], instance=instance, resources={"pz": PzResource()})
    assert (names[0], names[-1]) == ("run_started", "run_completed")


def test_one_op_for_the_whole_project(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`op_per="project"` merges the flows."""
    bench = Workbench(shop, instance, op_per="project")
    result = bench.materialize()
    assert len(materialized(result)) == 6
    assert len(list_runs(shop.directory)) == 1


def test_config_of_one_launch(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`full_refresh` reads everything again, `vars` override the project's."""
    shop.write("project.yml", 'name: shop\nversion: "1"\nvars: { least: 20 }\n')
    shop.pipeline(
        "orders_clean",
        "INSERT INTO {{ sink('lake', 'orders', format: 'parquet', strategy: 'replace') }}\n"
        "SELECT id, amount FROM {{ source('erp', 'orders') }} WHERE amount >= {{ var('least') }}",
    )
    bench = Workbench(shop, instance)
    bench.materialize()
    config = {"config": {"full_refresh": True, "vars": {"least": 30}}}
    again = bench.materialize(run_config={"ops": {"shop__mart_events": config, "shop__lake_orders": config}})
    assert metadata_of(again, "shop", "src_erp__events")["pz/rows"] == 2
    assert metadata_of(again, "lake", "orders")["pz/rows"] == 1


@pytest.mark.filterwarnings("ignore:Parameter `include_sources`")
def test_unselected_ancestors_wake_no_automation(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Eager siblings of an unselected ancestor ask for nothing, however often they are evaluated."""
    assets = [
        each.map_asset_specs(lambda spec: spec.replace_attributes(automation_condition=dg.AutomationCondition.eager()))
        for each in build_pz_assets(PzProject(shop.directory))
    ]
    definitions = dg.Definitions(assets=assets, resources={"pz": PzResource()})
    dg.materialize(assets, instance=instance, resources={"pz": PzResource()})
    cursor = dg.evaluate_automation_conditions(definitions, instance).cursor
    dg.materialize(assets, instance=instance, resources={"pz": PzResource()}, selection=["lake/orders"])
    for _ in range(5):
        found = dg.evaluate_automation_conditions(definitions, instance, cursor=cursor)
        cursor = found.cursor
        assert found.total_requested == 0
