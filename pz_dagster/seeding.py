"""Hands a backfilled history over to runs without partitions: the end of it becomes the stored watermark.

Only what every sink of an entity holds without a gap from the first partition on counts, because whatever lies below a
watermark is never read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from msgspec import Struct

from pz_dagster.bindings import BINDING_TAG, Binding, find
from pz_dagster.errors import PzDefinitionError
from pz_dagster.partitions import last_value
from pz_dagster.snapshot import Snapshot
from pz_engine import Diagnostic, SinkWriteNode, SourceLoadNode, WatermarkSeed

_RUN_ID_START = "%Y%m%dT%H%M%S"
_START_LENGTH = 15


class SeedReport(Struct, frozen=True):
    """What became of one entity."""

    key: str
    """`<connection>.<entity>`."""

    last_partition: str | None
    """The last one of the unbroken history; None when not even the first one is there."""

    seed: WatermarkSeed | None
    """What was stored or would be; None when there is nothing to store."""

    def __str__(self) -> str:
        if self.seed is None:
            return (
                f"{self.key}: the first partition is not materialized in every sink, so there is nothing to go on from"
            )
        seed = self.seed
        stored = "nothing is stored" if seed.before is None else f"stored was {seed.before}"
        ending = {
            "would store": f"would store {seed.value} ({stored})",
            "stored": f"stored {seed.value} ({stored})",
            "kept": f"kept {seed.before}, which is not older than {seed.value}",
        }[seed.action]
        unlogged = seed.unwritten_audit_line
        lost = f"\nthe change could not be logged; keep this line: {unlogged}" if unlogged is not None else ""
        return f"{self.key}: complete up to partition {self.last_partition}; {ending}{lost}"


def seed_watermarks(
    definition: dg.AssetsDefinition, instance: dg.DagsterInstance, *, apply: bool
) -> tuple[SeedReport, ...]:
    """Work out the watermark of each partitioned entity of an op, and store it on request.

    Raises:
        PzDefinitionError: `PZ0703`, the definition has no pz partitions, or leaves out a sink of an entity.
        PzStateError: as for `pz_engine.seed_watermark`.
    """
    binding = find(definition.op.tags[BINDING_TAG]) if BINDING_TAG in definition.op.tags else None
    partitions = definition.partitions_def
    if binding is None or not isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        raise _refused("these assets are not partitioned by pz", "pass the definition of a partitioned unit")
    keys = {spec.metadata["pz/node"]: spec.key for spec in definition.specs if "pz/node" in spec.metadata}
    loads = [
        node
        for node in binding.snapshot.compiled.nodes
        if isinstance(node, SourceLoadNode) and node.key in binding.partition_by and node.name in keys
    ]
    places = [(load, _proofs(load, binding.snapshot, keys)) for load in loads]
    return tuple(_seed(binding, load, partitions, proofs, instance, apply=apply) for load, proofs in places)


def _proofs(load: SourceLoadNode, snapshot: Snapshot, keys: dict[str, dg.AssetKey]) -> list[dg.AssetKey]:
    """Return the assets that must hold a partition: every sink below the load, or the load itself when there is none."""
    graph = snapshot.compiled.graph
    sinks = [node for each in graph.descendants([load.id]) if isinstance(node := graph.by_id[each], SinkWriteNode)]
    missing = sorted(sink.name for sink in sinks if sink.name not in keys)
    if missing:
        raise _refused(
            f"'{load.key}' also feeds {', '.join(missing)}, which these assets leave out",
            "pass a definition of the whole unit",
        )
    return [keys[sink.name] for sink in sinks] or [keys[load.name]]


def _seed(
    binding: Binding,
    load: SourceLoadNode,
    partitions: dg.TimeWindowPartitionsDefinition,
    proofs: Sequence[dg.AssetKey],
    instance: dg.DagsterInstance,
    *,
    apply: bool,
) -> SeedReport:
    from pz_engine import seed_watermark

    last = _last_unbroken(partitions, proofs, instance)
    if last is None:
        return SeedReport(load.key, None, None)
    kind = binding.snapshot.cursor_types[load.id]
    seed = seed_watermark(
        binding.project.root,
        load.key,
        cursor=binding.snapshot.incremental[load.id],
        cursor_type=kind,
        value=last_value(kind, partitions.time_window_for_partition_key(last).end),
        apply=apply,
        state_dir=binding.project.state_path,
        reason=f"complete up to Dagster partition {last}",
    )
    return SeedReport(load.key, last, seed)


def _last_unbroken(
    partitions: dg.TimeWindowPartitionsDefinition, proofs: Sequence[dg.AssetKey], instance: dg.DagsterInstance
) -> str | None:
    held = set.intersection(*(instance.get_materialized_partitions(key) for key in proofs))
    last: str | None = None
    end: datetime | None = None
    for key in partitions.get_partition_keys():
        window = partitions.time_window_for_partition_key(key)
        if key not in held or (end is not None and window.start != end):
            break
        if partitions.end_offset > 0 and not all(_is_complete(instance, asset, key, window.end) for asset in proofs):
            break
        last, end = key, window.end
    return last


def _is_complete(instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str, end: datetime) -> bool:
    """Tell whether a partition was read after it had ended: one that began early may have missed later rows."""
    records: Any = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[partition]), limit=1
    ).records
    found = records[0].asset_materialization if records else None
    run_id = found.metadata.get("pz/run_id") if found is not None else None
    if run_id is None:
        return False
    try:
        begun = datetime.strptime(str(run_id.value)[:_START_LENGTH], _RUN_ID_START).replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return begun >= end


def _refused(message: str, hint: str) -> PzDefinitionError:
    return PzDefinitionError([Diagnostic("PZ0703", message, hint=hint)])
