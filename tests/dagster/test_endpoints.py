"""`granularity="endpoints"`: pipelines are no assets, and nothing of what they do is lost."""

from __future__ import annotations

import logging

import dagster as dg
import pytest

from pz_dagster import PzProject, PzTranslator, PzTranslatorSettings, build_pz_assets, pz_assets
from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_failures import failure_of
from tests.dagster.test_translation import deps_of, specs_of

LOAD = dg.AssetKey(["shop", "src_erp__orders"])


def endpoints(**settings: object) -> PzTranslator:
    return PzTranslator(PzTranslatorSettings(granularity="endpoints", **settings))  # type: ignore[arg-type]


@pytest.fixture
def chained(shop: ProjectFactory) -> ProjectFactory:
    """A second pipeline on the first, with a check and a sink of its own."""
    shop.pipeline(
        "orders_big",
        "INSERT INTO {{ sink('lake', 'big', format: 'csv', strategy: 'replace') }}\nSELECT * FROM {{ ref('orders_clean') }} WHERE amount > 25",
    )
    shop.sidecar("orders_big", "checks:\n  - unique: [id]\n")
    return shop


def test_sinks_depend_on_the_loads_behind_them(chained: ProjectFactory) -> None:
    """No pipeline is left, and no edge leads into nothing."""
    specs = specs_of(chained, translator=endpoints())
    assert set(specs) == {"shop/src_erp__orders", "lake/orders", "lake/big", "shop/src_erp__events", "mart/events"}
    assert deps_of(specs["lake/big"]) == deps_of(specs["lake/orders"]) == ["shop/src_erp__orders"]


def test_checks_hang_on_the_nearest_load(chained: ProjectFactory) -> None:
    """Whatever lies between is looked through; all of them still block."""
    assets = build_pz_assets(PzProject(chained.directory), translator=endpoints())
    checks = {spec.name: spec for each in assets for spec in each.check_specs}
    assert {spec.asset_key for spec in checks.values()} == {LOAD}
    assert len(checks) == 3
    assert all(spec.blocking for spec in checks.values())


def test_a_check_without_a_load_above_is_left_out_with_a_note(
    shop: ProjectFactory, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    """A pipeline over constants has nothing above it; its sink still lands."""
    shop.pipeline("ones", "INSERT INTO {{ sink('lake', 'ones', format: 'csv', strategy: 'replace') }}\nSELECT 1 AS id")
    shop.sidecar("ones", "checks:\n  - not_null: [id]\n")
    shop.pipeline("nobody", "SELECT 1 AS id")
    bench = Workbench(shop, instance, translator=endpoints())
    assert "'check_ones_not_null" in caplog.text
    assert {each.op.name for each in bench.assets} == {"shop__lake_ones", "shop__lake_orders", "shop__mart_events"}
    result = bench.materialize()
    assert result.success
    assert (shop.directory / "out" / "ones" / "ones.csv").exists()


def test_everything_runs_and_only_endpoints_are_reported(chained: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Hidden pipelines run, are no unselected ancestors, and their checks are evaluated."""
    result = Workbench(chained, instance, translator=endpoints()).materialize()
    keys = {event.asset_key.to_user_string() for event in result.all_events if event.is_step_materialization}
    assert keys == {"shop/src_erp__orders", "lake/orders", "lake/big", "shop/src_erp__events", "mart/events"}
    assert [each.passed for each in result.get_asset_check_evaluations()] == [True] * 3
    logged = "\n".join(each.user_message for each in instance.all_logs(result.run_id))
    assert "not selected" not in logged
    assert "unselected" not in logged


def test_a_failing_check_still_gates(chained: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The sinks behind its pipeline do not land, the load and the other flow do."""
    chained.sidecar("orders_clean", "checks:\n  - row_count: { min: 5 }\n")
    result = Workbench(chained, instance, translator=endpoints()).materialize(raise_on_error=False)
    assert "PZ0510" in failure_of(result, "shop__lake_big")
    assert not (chained.directory / "out" / "orders" / "orders.parquet").exists()
    assert (chained.directory / "mart.duckdb").exists()


def test_one_sink_without_its_checks(chained: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Selecting a sink runs its pipelines and load, and reports the sink."""
    selection = dg.AssetSelection.assets("lake/big").without_checks()
    result = Workbench(chained, instance, translator=endpoints()).materialize(selection)
    assert [each.asset_key.to_user_string() for each in result.asset_materializations_for_node("shop__lake_big")] == [
        "lake/big"
    ]
    assert (chained.directory / "out" / "big" / "big.csv").read_text() == "id,amount\n3,30\n"
    assert not (chained.directory / "out" / "orders" / "orders.parquet").exists()


def test_a_selection_of_hidden_pipelines_is_refused(chained: ProjectFactory) -> None:
    """An op without an asset could never be launched; definitions of whole projects leave such flows out."""
    chained.pipeline("alone", "SELECT 1 AS id")
    project = PzProject(chained.directory)
    with pytest.raises(PzDefinitionError, match="PZ0210"):
        pz_assets(project=project, select="alone", translator=endpoints())(lambda context: None)
    assert build_pz_assets(project, select="alone", translator=endpoints()) == []


def test_lineage_leads_through_hidden_pipelines(chained: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A sink's column points to the load's column."""
    bench = Workbench(chained, instance, translator=endpoints(column_lineage=True))
    result = bench.materialize()
    (found,) = [
        each.metadata["dagster/column_lineage"].value
        for each in result.asset_materializations_for_node("shop__lake_big")
        if each.asset_key == dg.AssetKey(["lake", "big"])
    ]
    assert found.deps_by_column == {
        "id": [dg.TableColumnDep(LOAD, "id")],
        "amount": [dg.TableColumnDep(LOAD, "amount")],
    }


def test_what_is_hidden_is_a_debug_line(chained: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Pipelines that are no assets are no unselected ancestors either: nothing of them at the levels that people read."""
    result = Workbench(chained, instance, translator=endpoints()).materialize()
    lines = [(entry.level, entry.user_message) for entry in instance.all_logs(result.run_id) if entry.user_message]
    assert {level for level, text in lines if text.startswith("ok orders_")} == {logging.DEBUG}
    assert not [text for _, text in lines if "not selected" in text or "unselected" in text]
