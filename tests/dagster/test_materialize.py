"""Materializing a project: results, metadata, checks, selection."""

from __future__ import annotations

import dagster as dg

from tests.dagster.conftest import Workbench


def metadata_of(result: dg.ExecuteInProcessResult, *key: str) -> dict[str, object]:
    for event in result.get_asset_materialization_events():
        if event.asset_key == dg.AssetKey(list(key)):
            return {
                name: value.value for name, value in event.step_materialization_data.materialization.metadata.items()
            }
    raise AssertionError(f"{key} was not materialized")


def materialized(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.asset_key.to_user_string() for event in result.get_asset_materialization_events() if event.asset_key}


def test_every_node_becomes_a_materialized_asset(bench: Workbench) -> None:
    """Loads, pipelines and sinks of both flows are materialized, one op for each flow."""
    result = bench.materialize()
    assert materialized(result) == {
        "shop/src_erp__orders",
        "shop/orders_clean",
        "lake/orders",
        "shop/src_erp__events",
        "shop/events_merged",
        "mart/events",
    }
    assert {unit.op.name for unit in bench.assets} == {"shop__lake_orders", "shop__mart_events"}


def test_metadata_says_what_happened(bench: Workbench) -> None:
    """Rows, duration, schema, place and provenance are on the materialization."""
    result = bench.materialize()
    sink = metadata_of(result, "lake", "orders")
    assert sink["pz/rows"] == 2
    assert sink["dagster/row_count"] == 2
    assert sink["dagster/uri"] == "out/orders/orders.parquet"
    (spec,) = [spec for each in bench.assets for spec in each.specs if spec.key == dg.AssetKey(["lake", "orders"])]
    assert spec.metadata["dagster/table_name"] == "lake.orders"
    assert [c.name for c in sink["dagster/column_schema"].columns] == ["id", "amount"]  # type: ignore[attr-defined]
    assert str(sink["pz/journal"]) == f".pz/journal/{sink['pz/run_id']}.jsonl"
    load = metadata_of(result, "shop", "src_erp__events")
    assert "dagster/row_count" not in load
    assert load["pz/rows"] == 2
    assert "pz/watermark_from" not in load
    assert load["pz/watermark_to"] is not None


def test_checks_are_evaluated_with_their_violations(bench: Workbench) -> None:
    """Both checks pass with zero violations and are blocking."""
    result = bench.materialize()
    evaluations = {each.check_name: each for each in result.get_asset_check_evaluations()}
    assert set(evaluations) == {"check_orders_clean_not_null_id", "check_orders_clean_row_count"}
    assert all(each.passed and each.blocking for each in evaluations.values())
    assert all(each.metadata["pz/violations"].value == 0 for each in evaluations.values())


def test_the_second_run_of_the_feed_lands_nothing(bench: Workbench) -> None:
    """The watermark survives between Dagster runs; zero rows is a success."""
    bench.materialize()
    result = bench.materialize()
    load = metadata_of(result, "shop", "src_erp__events")
    assert load["pz/rows"] == 0
    assert load["pz/watermark_from"] is not None
    assert metadata_of(result, "mart", "events")["pz/rows"] == 0


def test_unselected_ancestors_run_and_are_not_reported(bench: Workbench) -> None:
    """Asking for the sink alone materializes the sink alone, with its data complete."""
    result = bench.materialize(dg.AssetSelection.assets(["lake", "orders"]).without_checks())
    assert materialized(result) == {"lake/orders"}
    assert not result.get_asset_check_evaluations()
    assert metadata_of(result, "lake", "orders")["pz/rows"] == 2


def test_checks_alone_write_no_sink(bench: Workbench) -> None:
    """Selecting only checks evaluates them and leaves the destination alone."""
    selection = dg.AssetSelection.checks_for_assets(dg.AssetKey(["shop", "orders_clean"]))
    result = bench.materialize(selection)
    assert materialized(result) == set()
    assert len(result.get_asset_check_evaluations()) == 2
    assert not (bench.factory.directory / "out").exists()


def test_a_partial_selection_holds_the_watermark(bench: Workbench) -> None:
    """Materializing the load without its sink does not move the watermark, and says so."""
    result = bench.materialize(dg.AssetSelection.assets(["shop", "src_erp__events"]))
    assert metadata_of(result, "shop", "src_erp__events")["pz/watermark_held"] is True
    again = bench.materialize(dg.AssetSelection.assets(["shop", "src_erp__events"]))
    assert metadata_of(again, "shop", "src_erp__events")["pz/rows"] == 2


def test_the_host_record_finds_the_dagster_run(bench: Workbench) -> None:
    """Every pz run of a Dagster run carries its id."""
    from pz_engine import list_runs

    result = bench.materialize()
    hosts = [record.host for record in list_runs(bench.factory.directory)]
    assert len(hosts) == 2
    assert {host["run_id"] for host in hosts if host} == {result.run_id}


def test_a_fused_load_claims_no_table_and_a_view_no_rows(bench: Workbench) -> None:
    """Numbers nobody measured are left out, and a fused scan's rows are no row count of a table."""
    bench.factory.write("in/seen.csv", "id\n1\n2\n")
    bench.factory.pipeline(
        "seen", "SELECT id FROM {{ source('erp', 'seen', path: 'seen.csv', columns: { id: 'int' }) }}"
    )
    bench.factory.sidecar("seen", "materialization: view\n")
    bench.factory.pipeline(
        "seen_more",
        "INSERT INTO {{ sink('lake', 'seen', format: 'csv', strategy: 'append') }}\nSELECT id FROM {{ ref('seen') }}",
    )
    result = Workbench(bench.factory, bench.instance).materialize(dg.AssetSelection.groups("shop"))
    load, view, sink = (
        metadata_of(result, *key) for key in (("shop", "src_erp__seen"), ("shop", "seen"), ("lake", "seen"))
    )
    assert load["pz/fused"] is True
    assert "dagster/row_count" not in load
    assert not {"pz/rows", "dagster/row_count"} & view.keys()
    assert sink["pz/rows"] == 2
    assert "dagster/row_count" not in sink
    assert (sink["dagster/table_name"], sink["dagster/storage_kind"]) == ("lake.seen", "localfiles")
    known = {
        "dagster/row_count", "dagster/column_schema", "dagster/table_name", "dagster/storage_kind", "dagster/uri",
        "pz/rows", "pz/run_id", "pz/duration_ms", "pz/strategy", "pz/attempts", "pz/fused", "pz/bound_by", "pz/stall_ms",
        "pz/watermark_from", "pz/watermark_to", "pz/watermark_held", "pz/caught_up", "pz/delivery", "pz/provenance",
        "pz/journal", "pz/results", "pz/rejected",
    }  # fmt: skip
    for event in result.get_asset_materialization_events():
        assert set(event.step_materialization_data.materialization.metadata) <= known
