"""Tells which side of a channel a node waited for; presentation only, never part of an event."""

from __future__ import annotations

from typing import Final

from pz_engine.model.run import NodeKind, NodeResult

THRESHOLD_PERCENT: Final = 60


def bottleneck(result: NodeResult) -> str | None:
    """Return a sentence when one side stalled for most of the node's time, else None."""
    timings = result.timings
    if timings is None or result.duration_ms <= 0:
        return None
    producer = _percent(timings.producer_stall_ms, result.duration_ms)
    consumer = _percent(timings.consumer_stall_ms, result.duration_ms)
    if result.kind is NodeKind.SOURCE_LOAD:
        if consumer >= THRESHOLD_PERCENT:
            return f"source-bound — ingest idle {consumer}% of the node's time"
        if producer >= THRESHOLD_PERCENT:
            return f"ingest-bound — the reader waited {producer}% of the node's time"
    if result.kind is NodeKind.SINK_WRITE:
        if producer >= THRESHOLD_PERCENT:
            return f"staging-bound — the writer waited {producer}% of the node's time for rows"
        if consumer >= THRESHOLD_PERCENT:
            return f"sink-bound — the destination took {consumer}% of the node's time"
    return None


def _percent(part: int, whole: int) -> int:
    return min(part * 100 // whole, 100)
