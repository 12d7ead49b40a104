"""A translator that partitions the assets of one flow in several ways."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from pz_dagster import PzProject, PzTranslator, build_pz_assets, pz_assets
from pz_dagster.errors import PzDefinitionError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_materialize import materialized

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-01-08")
KINDS = {"orders_clean": DAYS, "lake.orders": dg.StaticPartitionsDefinition(["eu", "us"])}


class Mixed(PzTranslator):
    """The load has no partitions, the pipeline days, the sink regions."""

    def get_partitions_def(self, node: Any, snapshot: Any) -> Any:
        return KINDS.get(node.name)


def test_assets_that_are_cut_otherwise_are_other_ops(shop: ProjectFactory, instance: dg.DagsterInstance) -> None:
    """Each op has one kind of partitions, checks go with their pipeline, edges and the pool stay, and each op runs."""
    bench = Workbench(shop, instance, translator=Mixed())
    ops = {each.op.name: each for each in bench.assets}
    assert {name: (each.partitions_def, each.op.pool) for name, each in ops.items()} == {
        "shop__lake_orders": (None, "pz_shop__lake_orders"),
        "shop__lake_orders__orders_clean": (DAYS, "pz_shop__lake_orders"),
        "shop__lake_orders__lake_orders": (KINDS["lake.orders"], "pz_shop__lake_orders"),
        "shop__mart_events": (None, "pz_shop__mart_events"),
    }
    assert [len(list(each.check_specs)) for each in ops.values()].count(2) == 1
    assert len(list(ops["shop__lake_orders__orders_clean"].check_specs)) == 2
    sink = ops["shop__lake_orders__lake_orders"].specs_by_key[dg.AssetKey(["lake", "orders"])]
    assert [dep.asset_key for dep in sink.deps] == [dg.AssetKey(["shop", "orders_clean"])]
    for name in ("lake_orders", "lake_orders__orders_clean", "lake_orders__lake_orders", "mart_events"):
        assert bench.definitions.resolve_job_def(f"shop__{name}_job")
    found = dg.materialize(
        [ops["shop__lake_orders__orders_clean"]],
        instance=instance,
        resources=bench.definitions.resources,
        partition_key="2026-01-02",
    )
    assert materialized(found) == {"shop/orders_clean"}
    assert [each.passed for each in found.get_asset_check_evaluations()] == [True, True]
    assert materialized(bench.materialize(dg.AssetSelection.assets(["shop", "src_erp__orders"]))) == {
        "shop/src_erp__orders"
    }


def test_one_kind_for_all_is_one_op(shop: ProjectFactory) -> None:
    """Nothing is split without a reason."""

    class Same(PzTranslator):
        def get_partitions_def(self, node: Any, snapshot: Any) -> Any:
            return dg.DailyPartitionsDefinition("2026-01-01")

    found = build_pz_assets(PzProject(shop.directory), translator=Same())
    assert {each.op.name for each in found} == {"shop__lake_orders", "shop__mart_events"}


def test_a_body_of_your_own_is_one_op(shop: ProjectFactory) -> None:
    """So it is refused with what to do."""
    with pytest.raises(PzDefinitionError, match=r"PZ0703.*several ways"):
        pz_assets(project=PzProject(shop.directory), translator=Mixed())(lambda context: None)
