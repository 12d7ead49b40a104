"""Result metadata of a materialization; a number nobody measured is left out."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from msgspec import structs

from pz_dagster.snapshot import Snapshot
from pz_engine import NodeKind, NodeResult, SinkWriteNode, SourceLoadNode, Strategy, bottleneck

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}")
"""How the engine spells a stored timestamp."""


def result_metadata(
    result: NodeResult, snapshot: Snapshot, run_id: str, *, is_held: bool, shows_positions: bool = True
) -> dict[str, Any]:
    """Build the metadata of one successful node.

    Args:
        result: what the engine reported.
        snapshot: the project.
        run_id: the pz run.
        is_held: this run leaves out a sink the watermark waits for.
        shows_positions: show the values of watermarks.
    """
    stats = result.stats
    metadata: dict[str, Any] = {
        "pz/run_id": run_id,
        "pz/duration_ms": result.duration_ms,
        "pz/results": dg.MetadataValue.path(f".pz/runs/{run_id}/run_results.json"),
        "pz/journal": dg.MetadataValue.path(f".pz/journal/{run_id}.jsonl"),
    }
    if result.provenance is None and result.rows is not None:
        metadata["pz/rows"] = result.rows
    row_count = _table_rows(result, snapshot)
    if row_count is not None:
        metadata["dagster/row_count"] = row_count
    if stats.columns is not None:
        metadata["dagster/column_schema"] = dg.TableSchema(
            [dg.TableColumn(column.name, column.type) for column in stats.columns]
        )
    if stats.strategy is not None:
        metadata["pz/strategy"] = stats.strategy.value
    if stats.is_fused:
        metadata["pz/fused"] = True
    if stats.attempts is not None:
        metadata["pz/attempts"] = stats.attempts
    node = snapshot.compiled.graph.by_name.get(result.name)
    if isinstance(node, SinkWriteNode):
        metadata["dagster/table_name"] = f"{node.connection}.{node.entity}"
        metadata["dagster/storage_kind"] = snapshot.compiled.connections[node.connection].connector
        if stats.location is not None:
            metadata["dagster/uri"] = stats.location
    if result.provenance is not None:
        metadata["pz/provenance"] = result.provenance
    if result.timings is not None:
        metadata["pz/stall_ms"] = dg.MetadataValue.json(
            {"producer": result.timings.producer_stall_ms, "consumer": result.timings.consumer_stall_ms}
        )
        hint = bottleneck(result)
        if hint is not None:
            metadata["pz/bound_by"] = hint
    if result.delivery is not None:
        metadata["pz/delivery"] = dg.MetadataValue.json(
            {
                "abort_semantics": result.delivery.abort_semantics,
                "rows_visible": result.delivery.rows_visible,
                "resumed_rows": result.delivery.resumed_rows,
            }
        )
    if result.ops is not None:
        metadata["pz/ops"] = dg.MetadataValue.json(structs.asdict(result.ops))
    if result.partitions is not None:
        metadata["pz/extract_partitions"] = dg.MetadataValue.json(structs.asdict(result.partitions))
    if result.rejected is not None:
        metadata["pz/rejected"] = result.rejected
    if stats.window is not None and shows_positions:
        metadata["pz/window"] = dg.MetadataValue.json({"after": stats.window[0], "to": stats.window[1]})
    if result.caught_up is not None:
        metadata["pz/caught_up"] = result.caught_up
    metadata.update(_watermark(result, is_held=is_held, shows_positions=shows_positions))
    return metadata


def _table_rows(result: NodeResult, snapshot: Snapshot) -> int | None:
    """Return the rows of the table itself, so that its history plots what the table held."""
    node = snapshot.compiled.graph.by_name.get(result.name)
    if result.provenance == "carried_forward":
        return None
    if isinstance(node, SinkWriteNode):
        return result.stats.row_count if node.strategy is Strategy.REPLACE else None
    if isinstance(node, SourceLoadNode) and (node.id in snapshot.incremental or result.stats.is_fused):
        return None
    return result.stats.row_count


def _watermark(result: NodeResult, *, is_held: bool, shows_positions: bool) -> dict[str, Any]:
    if result.kind is not NodeKind.SOURCE_LOAD:
        return {}
    stats, metadata = result.stats, dict[str, Any]()
    if stats.watermark_from is not None and shows_positions:
        metadata["pz/watermark_from"] = _position(stats.watermark_from)
    if stats.watermark_to is not None:
        if shows_positions:
            metadata["pz/watermark_to"] = _position(stats.watermark_to)
        if is_held:
            metadata["pz/watermark_held"] = True
    return metadata


def _position(value: str) -> Any:
    """Give timestamps as timestamp metadata, so that they plot; every other cursor type stays text."""
    if _TIMESTAMP.fullmatch(value) is None:
        return value
    return dg.MetadataValue.timestamp(datetime.fromisoformat(value).replace(tzinfo=timezone.utc))


def data_version(result: NodeResult) -> dg.DataVersion | None:
    """Return a version that stays the same while an incremental load finds nothing new."""
    captured = result.watermark.value if result.watermark is not None else None
    position = result.stats.watermark_to or captured or result.stats.watermark_from
    if result.kind is not NodeKind.SOURCE_LOAD or position is None:
        return None
    return dg.DataVersion(hashlib.sha256(f"{result.id}\n{position}".encode()).hexdigest()[:16])
