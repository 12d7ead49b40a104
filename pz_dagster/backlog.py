"""Whether a flow has windows left to read, as Dagster's own records tell it.

A load is recorded before its sinks commit, so only sinks that were written after it say that its window was delivered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import dagster as dg
from msgspec import Struct

BACKLOG_TAG = "pz/backlog"
"""Tag of a run that was asked for: what the newest loads had read by then."""

_UNFINISHED = frozenset(
    {
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.CANCELING,
    }
)


class NextWindow(Struct, frozen=True):
    """A run to ask for."""

    run_key: str
    """Where it begins, and the pz run that got there: Dagster launches one key once."""

    mark: str
    """What the newest loads have read; a run that was asked for and left the same behind has not moved on."""


def find_backlog(
    instance: dg.DagsterInstance,
    loads: Mapping[dg.AssetKey, Sequence[dg.AssetKey]],
    assets: Sequence[dg.AssetKey],
) -> NextWindow | dg.SkipReason:
    """Return the next run of a flow, or why there is none.

    Args:
        instance: where runs and materializations are recorded.
        loads: windowed loads of the flow, each with the sinks that its watermark waits for.
        assets: everything of the flow; a run of any of them counts.
    """
    keys, marks, run_ids = list[str](), list[str](), set[str]()
    for load, sinks in loads.items():
        event = instance.get_latest_materialization_event(load)
        metadata = _metadata(event)
        caught_up = metadata.get("pz/caught_up")
        if event is None or caught_up is None or caught_up.value is not False:
            continue
        written = [instance.get_latest_materialization_event(sink) for sink in sinks]
        is_delivered = all(each is not None and each.timestamp >= event.timestamp for each in written)
        start = _position(metadata, "pz/watermark_to" if is_delivered else "pz/watermark_from")
        by = min((_text(_metadata(each).get("pz/run_id")) for each in written), default="")
        keys.append(f"{load.path[-1]}={start}@{by}")
        marks.append(f"{load.path[-1]}={_position(metadata, 'pz/watermark_to') or _version(event)}")
        run_ids.add(event.run_id)
    if not keys:
        return dg.SkipReason("every window that is known of has been read")
    if _is_busy(instance, assets):
        return dg.SkipReason("a run of the flow is queued or started")
    mark = hashlib.sha256(",".join(marks).encode()).hexdigest()[:16]
    newest = [instance.get_run_by_id(run_id) for run_id in run_ids if run_id]
    if any(run is not None and run.tags.get(BACKLOG_TAG) == mark for run in newest):
        return dg.SkipReason("the run that was asked for last read the same window again: its watermark does not move")
    return NextWindow(",".join(keys), mark)


def _is_busy(instance: dg.DagsterInstance, assets: Sequence[dg.AssetKey]) -> bool:
    """A run is the last one of an asset from the moment it plans to materialize it."""
    records = instance.get_asset_records(list(assets))
    for run_id in {record.asset_entry.last_run_id for record in records}:
        run = instance.get_run_by_id(run_id) if run_id is not None else None
        if run is not None and run.status in _UNFINISHED:
            return True
    return False


def _metadata(event: dg.EventLogEntry | None) -> Mapping[str, dg.MetadataValue]:
    found = event.asset_materialization if event is not None else None
    return found.metadata if found is not None else {}


def _position(metadata: Mapping[str, dg.MetadataValue], name: str) -> str:
    """Spell a position; empty where none is known, or where positions are kept out of the instance."""
    return _text(metadata.get(name))


def _text(found: dg.MetadataValue | None) -> str:
    """Spell a value; Dagster keeps timestamps as seconds."""
    value = found.value if found is not None else ""
    if isinstance(value, float):
        return datetime.fromtimestamp(value, timezone.utc).isoformat(timespec="microseconds")
    return str(value)


def _version(event: dg.EventLogEntry) -> str:
    """Return the version of what was loaded, which stands for the position where that is not shown.

    Dagster makes one up where there is none of ours; it says nothing about the position.
    """
    tags = (event.asset_materialization.tags if event.asset_materialization is not None else None) or {}
    if tags.get("dagster/data_version_is_user_provided") != "true":
        return event.run_id
    return tags.get("dagster/data_version", event.run_id)
