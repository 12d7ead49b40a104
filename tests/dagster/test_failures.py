"""Failing checks, failing sinks, broken projects."""

from __future__ import annotations

import dagster as dg
import pytest

from pz_dagster import PzProject, build_pz_definitions
from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_materialize import materialized


def failure_of(result: dg.ExecuteInProcessResult, op: str) -> str:
    for event in result.all_events:
        if event.is_step_failure and event.step_key == op:
            data = event.step_failure_data
            return (data.user_failure_data.description if data.user_failure_data else None) or str(data.error)
    raise AssertionError(f"{op} did not fail")


def fail_the_check(shop: ProjectFactory) -> None:
    shop.sidecar("orders_clean", "checks:\n  - row_count: { min: 100 }\n")


def test_a_failing_check_gates_its_sink(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The pipeline is materialized, its sink is not, the other flow lands, the step fails naming the check."""
    fail_the_check(shop)
    bench = Workbench(shop, instance)
    result = bench.materialize(raise_on_error=False)
    assert not result.success
    assert materialized(result) == {
        "shop/src_erp__orders",
        "shop/orders_clean",
        "shop/src_erp__events",
        "shop/events_merged",
        "mart/events",
    }
    (check,) = result.get_asset_check_evaluations()
    assert not check.passed
    assert check.metadata["pz/error_code"].value == "PZ0510"
    assert "check_orders_clean_row_count" in failure_of(result, "shop__lake_orders")
    assert not (shop.directory / "out").exists()


def test_an_observed_check_leaves_the_sink_alone(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """With `observe` the op succeeds, the sink lands and the check shows as failed."""
    fail_the_check(shop)
    bench = Workbench(shop, instance, checks="observe")
    result = bench.materialize(raise_on_error=False)
    assert result.success
    assert "lake/orders" in materialized(result)
    assert [each.passed for each in result.get_asset_check_evaluations()] == [False]


def test_a_failing_sink_reports_what_succeeded(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """The load and the pipeline with checks are materialized, the failure names node and code."""
    shop.write("out/orders", "a file where the output folder should be")
    bench = Workbench(shop, instance)
    result = bench.materialize(raise_on_error=False)
    assert not result.success
    assert {"shop/orders_clean", "mart/events"} <= materialized(result)
    assert "lake/orders" not in materialized(result)
    text = failure_of(result, "shop__lake_orders")
    assert "1 failed" in text
    assert "lake.orders: PZ0531" in text


def test_a_permanent_failure_is_not_repeated_by_a_policy(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """A missing file fails once, whatever the retry policy says."""
    (shop.directory / "in" / "orders.csv").unlink()
    bench = Workbench(shop, instance, retry_policy=dg.RetryPolicy(max_retries=3))
    result = bench.materialize(raise_on_error=False)
    assert not [event for event in result.all_events if event.is_step_restarted or event.is_step_up_for_retry]


def test_a_broken_project_loads_and_lists_every_problem(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Three mistakes in three files show on one asset, and nothing can be materialized."""
    shop.write("project.yml", 'name: shop\nversion: "1"\nengine: { threads: many }\n')
    shop.write("connections.yml", "erp: { root: in }\n")
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    definitions = build_pz_definitions(PzProject(shop.directory))
    (placeholder,) = [each for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)]
    (spec,) = placeholder.specs
    assert spec.key.path[-1] == "pz_errors"
    for file in ("project.yml", "connections.yml", "pipelines/configs/orders_clean.yml"):
        assert file in (spec.description or "")
    result = dg.materialize([placeholder], raise_on_error=False, instance=instance)
    assert not result.success
    assert "PZ0707" in failure_of(result, "shop__pz_errors")


def test_assets_of_the_last_good_compile_stay(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Breaking a project keeps its keys; materializing any of them fails before data moves."""
    PzProject(shop.directory).prepare()
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    bench = Workbench(shop, instance)
    keys = {key.to_user_string() for each in bench.assets for key in each.keys}
    assert {"lake/orders", "shop/pz_errors"} <= keys
    result = bench.materialize(dg.AssetSelection.assets(["lake", "orders"]), raise_on_error=False)
    assert "PZ0707" in failure_of(result, "shop__lake_orders")
    assert not (shop.directory / ".pz" / "runs").exists()


def test_strict_mode_raises_every_problem(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """`PZ_DAGSTER_STRICT=1` is for image builds."""
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    monkeypatch.setenv("PZ_DAGSTER_STRICT", "1")
    with pytest.raises(PzDefinitionError) as caught:
        build_pz_definitions(PzProject(shop.directory))
    assert [problem.code for problem in caught.value.problems] == ["PZ0113"]


def test_a_node_that_is_gone_asks_for_a_reload(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """`PZ0701`: the files changed after definitions were loaded; nothing else runs."""
    bench = Workbench(shop, instance)
    (shop.directory / "pipelines" / "orders_clean.sql").unlink()
    (shop.directory / "pipelines" / "configs" / "orders_clean.yml").unlink()
    result = bench.materialize(dg.AssetSelection.assets(["lake", "orders"]), raise_on_error=False)
    assert "PZ0701" in failure_of(result, "shop__lake_orders")
