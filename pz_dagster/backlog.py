"""Whether a flow has windows left to read, as Dagster's own records tell it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

import dagster as dg

_UNFINISHED = frozenset(
    {
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.CANCELING,
    }
)


def find_backlog(
    instance: dg.DagsterInstance, loads: Sequence[dg.AssetKey], assets: Sequence[dg.AssetKey]
) -> str | dg.SkipReason:
    """Return the key of the next run, made of the watermarks it starts from, or why there is none.

    Args:
        instance: where runs and materializations are recorded.
        loads: windowed loads of a flow.
        assets: everything of the flow; a run of any of them counts.
    """
    positions = []
    for load in loads:
        event = instance.get_latest_materialization_event(load)
        found = event.asset_materialization if event is not None else None
        metadata = found.metadata if found is not None else {}
        caught_up, reached = metadata.get("pz/caught_up"), metadata.get("pz/watermark_to")
        if caught_up is not None and caught_up.value is False and reached is not None:
            positions.append(f"{load.path[-1]}={_text(reached.value)}")
    if not positions:
        return dg.SkipReason("every window that is known of has been read")
    if _is_busy(instance, assets):
        return dg.SkipReason("a run of the flow is queued or started")
    return ",".join(positions)


def _is_busy(instance: dg.DagsterInstance, assets: Sequence[dg.AssetKey]) -> bool:
    """A run is the last one of an asset from the moment it plans to materialize it."""
    records = instance.get_asset_records(list(assets))
    for run_id in {record.asset_entry.last_run_id for record in records}:
        run = instance.get_run_by_id(run_id) if run_id is not None else None
        if run is not None and run.status in _UNFINISHED:
            return True
    return False


def _text(position: object) -> str:
    """Spell a position; Dagster keeps timestamps as seconds."""
    if isinstance(position, float):
        return datetime.fromtimestamp(position, timezone.utc).isoformat(timespec="microseconds")
    return str(position)
