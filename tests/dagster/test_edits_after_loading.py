"""Files that change between loading definitions and launching a run."""

from __future__ import annotations

import dagster as dg
import pytest

from pz_dagster.engine_thread import EngineThread
from pz_engine import NodeCompleted, RunEvent, list_runs
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_failures import failure_of
from tests.dagster.test_materialize import materialized, metadata_of

ORDERS = dg.AssetSelection.groups("shop") & dg.AssetSelection.assets(["lake", "orders"]).upstream()
CHECK = "check_orders_clean_row_count"


def newer_lines(bench: Workbench, result: dg.ExecuteInProcessResult) -> list[str]:
    texts = (entry.user_message for entry in bench.instance.all_logs(result.run_id))
    return [text for text in texts if text and "newer than the loaded definitions" in text]


def test_a_changed_node_runs_as_it_is_now_and_is_named(bench: Workbench) -> None:
    """The run is of the files; one line names what is not what was loaded."""
    path = bench.factory.directory / "pipelines" / "orders_clean.sql"
    path.write_text(path.read_text().replace("amount >= 20", "amount >= 30"))
    result = bench.materialize(ORDERS)
    assert metadata_of(result, "lake", "orders")["pz/rows"] == 1
    (line,) = newer_lines(bench, result)
    assert "orders_clean" in line.partition("changed: ")[2].split(", ")


def test_an_edit_that_changes_no_selected_node_is_one_line(bench: Workbench) -> None:
    """Nothing is named then, and what was loaded is what runs."""
    bench.factory.write("pipelines/more.sql", "SELECT 1 AS a")
    result = bench.materialize(ORDERS)
    (line,) = newer_lines(bench, result)
    assert "changed" not in line
    assert materialized(result) == {"shop/src_erp__orders", "shop/orders_clean", "lake/orders"}


def test_without_an_edit_nothing_is_said(bench: Workbench) -> None:
    """The line means something."""
    assert newer_lines(bench, bench.materialize(ORDERS)) == []


def test_a_check_that_is_gone_asks_for_a_reload(bench: Workbench) -> None:
    """`PZ0701` names it, and nothing runs: a declared check is never left out in silence."""
    bench.factory.sidecar("orders_clean", "checks:\n  - not_null: [id]\n")
    result = bench.materialize(ORDERS, raise_on_error=False)
    text = failure_of(result, "shop__lake_orders")
    assert "PZ0701" in text
    assert CHECK in text
    assert materialized(result) == set()
    assert not (bench.factory.directory / "out").exists()


def test_a_check_without_a_result_never_ends_green(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """`PZ0708`, although everything else succeeded: Dagster would skip what is downstream in a green run."""
    receive = EngineThread._receive

    def lose(engine: EngineThread, event: RunEvent) -> None:
        if not (isinstance(event, NodeCompleted) and event.result.name == CHECK):
            receive(engine, event)

    monkeypatch.setattr(EngineThread, "_receive", lose)
    result = bench.materialize(ORDERS, raise_on_error=False)
    text = failure_of(result, "shop__lake_orders")
    assert text.startswith("error PZ0708")
    assert CHECK in text
    assert "lake/orders" in materialized(result)
    assert list_runs(bench.factory.directory)[0].status.value == "success"


def test_a_reload_after_a_refused_launch_runs_what_is_there(shop: ProjectFactory) -> None:
    """The next step that `PZ0701` names helps."""
    bench = Workbench(shop, dg.DagsterInstance.ephemeral())
    (shop.directory / "pipelines/configs/orders_clean.yml").unlink()
    with bench.instance:
        assert "PZ0701" in failure_of(bench.materialize(ORDERS, raise_on_error=False), "shop__lake_orders")
        again = Workbench(shop, bench.instance)
        assert again.materialize(ORDERS).success
    assert not [spec for each in again.assets for spec in each.check_specs]


def test_a_key_without_a_node_asks_for_a_reload(bench: Workbench) -> None:
    """Definitions of another time than the snapshot: nothing runs, and the node is named."""

    def rename(spec: dg.AssetSpec) -> dg.AssetSpec:
        return spec.merge_attributes(metadata={"pz/node": "long.gone"}) if spec.key.path[0] == "lake" else spec

    assets = [each.map_asset_specs(rename) for each in bench.assets]
    result = dg.materialize(
        assets, instance=bench.instance, resources=bench.definitions.resources, selection=ORDERS, raise_on_error=False
    )
    failure = failure_of(result, "shop__lake_orders")
    assert "PZ0701" in failure
    assert "long.gone" in failure
    assert list_runs(bench.factory.directory) == ()
