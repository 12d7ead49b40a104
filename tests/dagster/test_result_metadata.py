"""Each key of a materialization's metadata: where it stands, and where it is left out."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest
from msgspec.structs import replace

from pz_dagster.checks import check_result
from pz_dagster.discretion import Discretion
from pz_dagster.metadata import data_version, result_metadata
from pz_dagster.ordering import ResultBuffer
from pz_dagster.partitions import PartitionRun
from pz_dagster.selection import OpSelection
from pz_dagster.snapshot import Snapshot
from pz_engine import NodeResult, Strategy
from pz_engine.events.types import NodeCompleted
from pz_engine.model.run import ChannelTimings, ColumnType, ExecutionStrategy, NodeStats
from tests.dagster.conftest import Workbench
from tests.dagster.test_catching_up import config
from tests.dagster.test_event_mapping import RUN, completed, log, mapper, snapshot  # noqa: F401 - fixtures
from tests.dagster.test_materialize import metadata_of

# ruff: noqa: F811 - fixtures
STATS = NodeStats(row_count=9)


def result_of(snapshot: Snapshot, name: str, **fields: Any) -> NodeResult:
    event = completed(snapshot, name, **fields)
    assert isinstance(event, NodeCompleted)
    return event.result


def shown(snapshot: Snapshot, name: str, *, is_held: bool = False, **fields: Any) -> dict[str, Any]:
    return result_metadata(result_of(snapshot, name, **fields), snapshot, RUN, is_held=is_held)


@pytest.mark.parametrize(
    ("name", "fields", "count"),
    [
        ("orders_clean", {}, 9),
        ("src_erp__orders", {}, 9),
        ("src_erp__orders", {"stats": replace(STATS, is_fused=True)}, None),
        ("src_erp__events", {}, None),
        ("lake.orders", {}, 9),
        ("mart.events", {}, None),
        ("orders_clean", {"provenance": "carried_forward"}, None),
        ("src_erp__orders", {"provenance": "reused"}, 9),
    ],
)
def test_a_row_count_is_of_a_whole_table(
    name: str, fields: dict[str, Any], count: int | None, snapshot: Snapshot
) -> None:
    """Not of a scan, an increment, a merge, or of rows that were landed by another run's statement."""
    assert shown(snapshot, name, **{"stats": STATS, **fields}).get("dagster/row_count") == count


@pytest.mark.parametrize("strategy", [each for each in Strategy if each is not Strategy.REPLACE])
def test_only_a_replaced_destination_has_a_row_count(strategy: Strategy, snapshot: Snapshot) -> None:
    """What is appended or merged is a part of its table."""
    graph = snapshot.compiled.graph
    node = graph.by_name["lake.orders"]
    changed = replace(node, strategy=strategy)  # type: ignore[type-var]
    graph.by_name["lake.orders"] = changed  # type: ignore[index]
    assert "dagster/row_count" not in shown(snapshot, "lake.orders", stats=STATS)


@pytest.mark.parametrize(("provenance", "rows"), [(None, 3), ("reused", None), ("carried_forward", None)])
def test_rows_are_those_that_were_moved_now(provenance: str | None, rows: int | None, snapshot: Snapshot) -> None:
    """A node that is taken from an earlier run moved none; it says where it comes from."""
    found = shown(snapshot, "orders_clean", provenance=provenance)
    assert (found.get("pz/rows"), found.get("pz/provenance")) == (rows, provenance)


def test_every_node_says_how_it_went(snapshot: Snapshot) -> None:
    """Data path, tries, duration, the run's files, and which side of a channel waited."""
    stats = NodeStats(strategy=ExecutionStrategy.ARROW_STREAM, attempts=2, columns=(ColumnType("id", "BIGINT"),))
    found = shown(snapshot, "src_erp__orders", stats=stats, duration_ms=1000, timings=ChannelTimings(900, 1))
    assert found["dagster/column_schema"] == dg.TableSchema([dg.TableColumn("id", "BIGINT")])
    plain = {key: value.value if isinstance(value, dg.MetadataValue) else value for key, value in found.items()}
    assert plain.pop("pz/bound_by")
    del plain["dagster/column_schema"]
    assert plain == {
        "pz/run_id": RUN,
        "pz/duration_ms": 1000,
        "pz/results": f".pz/runs/{RUN}/run_results.json",
        "pz/journal": f".pz/journal/{RUN}.jsonl",
        "pz/rows": 3,
        "pz/strategy": "arrow_stream",
        "pz/attempts": 2,
        "pz/stall_ms": {"producer": 900, "consumer": 1},
    }
    assert isinstance(found["pz/results"], dg.PathMetadataValue)


def test_timestamps_plot_and_other_positions_are_text(snapshot: Snapshot) -> None:
    """A held watermark is marked, and only then."""
    moved = NodeStats(watermark_from="2026-01-01T00:00:00.000000", watermark_to="2026-01-02T00:00:00.000000")
    found = shown(snapshot, "src_erp__events", stats=moved)
    for key in ("pz/watermark_from", "pz/watermark_to"):
        assert isinstance(found[key], dg.TimestampMetadataValue)
    assert "pz/watermark_held" not in found
    assert shown(snapshot, "src_erp__events", stats=moved, is_held=True)["pz/watermark_held"] is True
    assert shown(snapshot, "src_erp__events", stats=replace(moved, watermark_to="17"))["pz/watermark_to"] == "17"
    assert "pz/watermark_held" not in shown(snapshot, "src_erp__events", is_held=True)


def test_versions_of_two_loads_at_one_position_differ(snapshot: Snapshot) -> None:
    """A version is of the node and its position; other kinds leave it to Dagster."""
    stats = NodeStats(watermark_to="17")
    versions = {
        name: data_version(result_of(snapshot, name, stats=stats))
        for name in ("src_erp__events", "src_erp__orders", "orders_clean")
    }
    assert versions["orders_clean"] is None
    assert versions["src_erp__events"] != versions["src_erp__orders"]


@pytest.mark.parametrize(
    ("provenance", "metadata"),
    [
        (None, {"pz/duration_ms": 7, "pz/violations": 0}),
        ("carried_forward", {"pz/provenance": "carried_forward", "pz/violations": 0}),
    ],
)
def test_a_check_says_how_long_it_took_or_where_it_is_from(
    provenance: str | None, metadata: dict[str, Any], snapshot: Snapshot, shop: Any
) -> None:
    """One that was not evaluated again took no time now."""
    result = result_of(snapshot, "check_orders_clean_row_count", provenance=provenance)
    key = dg.AssetCheckKey(dg.AssetKey("a"), "b")
    found = check_result(result, key, dg.AssetCheckSeverity.WARN, Discretion(shop.directory))
    assert found.passed
    assert {name: value.value for name, value in (found.metadata or {}).items()} == metadata  # type: ignore[union-attr]


def test_results_wait_for_no_ancestor_that_was_not_selected(snapshot: Snapshot) -> None:
    """Its result never comes; and what was flushed is not yielded again."""
    buffer = ResultBuffer(snapshot.compiled.graph, OpSelection({"lake.orders": dg.AssetKey("a")}, {}))
    result = result_of(snapshot, "lake.orders")
    assert list(buffer.add("lake.orders", dg.MaterializeResult(asset_key="a"))) == []
    assert len(list(buffer.settle({"lake.orders": result}))) == 1
    list(buffer.add("lake.orders", dg.MaterializeResult(asset_key="a")))
    assert [len(list(buffer.flush())), len(list(buffer.flush()))] == [1, 0]


def test_a_watermark_that_is_not_advanced_is_said_with_its_reason(bench: Workbench) -> None:
    """The op succeeds when a sink was left out, and the line names the entity; a whole op says nothing of it."""
    for selection, count in ((dg.AssetSelection.assets(["shop", "src_erp__events"]), 1), (None, 0)):
        result = bench.materialize(selection)
        texts = [entry.user_message for entry in bench.instance.all_logs(result.run_id)]
        held = [text for text in texts if text.startswith("the watermark of erp.events was not advanced: ")]
        assert len(held) == count
        assert len([text for text in texts if "leaves out a sink that src_erp__events feeds" in text]) == count
        assert ("pz/watermark_held" in metadata_of(result, "shop", "src_erp__events")) == bool(count)


def test_failing_fast_skips_the_rest_of_the_op(bench: Workbench) -> None:
    """The config key reaches the engine: the other flow does not land once the first node has failed."""
    (bench.factory.directory / "in" / "orders.csv").unlink()
    bench.factory.write("project.yml", 'name: shop\nversion: "1"\nengine: { threads: 1 }\n')
    for is_fast in (False, True):
        whole = Workbench(bench.factory, bench.instance, op_per="project")
        result = whole.materialize(raise_on_error=False, run_config=config("shop", fail_fast=is_fast))
        landed = {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}
        assert not result.success
        assert ("mart/events" in landed) is not is_fast


class _Noted:
    """Stands for an op's context, of which only the notes on partitions are looked at."""

    def __init__(self) -> None:
        self.noted: dict[str, object] = {}

    def add_asset_metadata(self, metadata: dict[str, object], *, asset_key: dg.AssetKey, partition_key: str) -> None:
        self.noted[partition_key] = metadata["dagster/partition_row_count"]


@pytest.mark.parametrize(("provenance", "noted"), [(None, {"2026-01-02": 4}), ("carried_forward", {})])
def test_a_partition_counts_what_was_written_for_it(
    provenance: str | None, noted: dict[str, int], snapshot: Snapshot
) -> None:
    """Rows of a delivery that an earlier attempt made are not counted again."""
    context: Any = _Noted()
    done = result_of(snapshot, "mart.events", rows=4, provenance=provenance)
    PartitionRun(("2026-01-02",)).describe(context, dg.MaterializeResult(asset_key="x"), done)
    assert context.noted == noted
