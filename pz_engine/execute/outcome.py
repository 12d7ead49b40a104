"""What one attempt of a node gives back, and how it fails.

Data warnings are collected as drafts and published by the runner right before the node's end, on failure too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from pz_engine.events.types import (
    AmbiguousDateInferenceDetected,
    LossyIntegerInferenceDetected,
    MergeKeyDuplicatesDetected,
    RunEvent,
    SourceDriftDetected,
)
from pz_engine.execute.ledgers.partition_ledger import Reach
from pz_engine.model.run import (
    ChannelTimings,
    ColumnType,
    DeliveryReport,
    ObservedSchema,
    OperationCounts,
    PartitionCounts,
    WatermarkCandidate,
)

_WARNING_ORDER: tuple[type[RunEvent], ...] = (
    LossyIntegerInferenceDetected,
    AmbiguousDateInferenceDetected,
    SourceDriftDetected,
    MergeKeyDuplicatesDetected,
)


class EventDraft(Struct, frozen=True):
    """An event waiting for its envelope."""

    type: type[RunEvent]
    fields: Mapping[str, Any]


def in_contract_order(drafts: list[EventDraft]) -> list[EventDraft]:
    """Sort data warnings as the event contract orders them."""
    return sorted(drafts, key=lambda draft: _WARNING_ORDER.index(draft.type))


@dataclass(frozen=True, slots=True)
class Execution:
    """A successful attempt of one node."""

    rows: int | None
    columns: tuple[ColumnType, ...] | None = None
    row_count: int | None = None
    watermark: WatermarkCandidate | None = None
    watermark_from: str | None = None
    window: tuple[str, str] | None = None
    part_rows: tuple[int, ...] | None = None
    caught_up: bool | None = None
    rejected: int | None = None
    timings: ChannelTimings | None = None
    ops: OperationCounts | None = None
    delivery: DeliveryReport | None = None
    observed_schema: ObservedSchema | None = None
    sync_token: str | None = field(default=None, repr=False)
    partitions: PartitionCounts | None = None
    reach: Reach | None = None
    provenance: str | None = None
    location: str | None = None
    bytes: int | None = None


UNRESPONSIVE = "PZ0526"
"""Code of a node that could not be stopped; it ends the run."""


class NodeFailure(Exception):  # noqa: N818 - a node's verdict, named after it
    """A node failed with a specific code; final, never retried."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        rows: int = 0,
        timings: ChannelTimings | None = None,
        observed_schema: ObservedSchema | None = None,
    ) -> None:
        self.code = code
        self.message = message
        self.rows = rows
        self.timings = timings
        self.observed_schema = observed_schema
        super().__init__(message)


class BreakerRefusal(Exception):  # noqa: N818 - a breaker's verdict, named after it
    """A connection's circuit breaker did not let an attempt run."""

    def __init__(self, connection: str, message: str) -> None:
        self.connection = connection
        self.message = message
        super().__init__(message)


class WriteFailure(Exception):  # noqa: N818 - wraps the failure it reports on
    """A universal write failed; carries what may be visible beside the cause."""

    def __init__(self, cause: Exception, delivery: DeliveryReport | None, timings: ChannelTimings | None) -> None:
        self.cause = cause
        self.delivery = delivery
        self.timings = timings
        super().__init__(str(cause))


class MemberFailure(Exception):  # noqa: N818 - wraps the failure it attributes
    """A group's statement failed and the failure belongs to one member."""

    def __init__(self, node_id: str, cause: Exception) -> None:
        self.node_id = node_id
        self.cause = cause
        super().__init__(str(cause))


class WarningSlot(Struct):
    """Data warnings of one attempt."""

    drafts: list[EventDraft] = msgspec.field(default_factory=list)
    examinations: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Node ids with the names of the warnings they were examined for."""

    def add(self, event_type: type[RunEvent], **fields: Any) -> None:
        """Record a data warning."""
        self.drafts.append(EventDraft(event_type, fields))

    def examine(self, node_id: str, *event_types: type[RunEvent]) -> None:
        """Record that a node was examined, whatever was found: only then does silence mean that nothing is wrong."""
        self.examinations.extend((node_id, each.name) for each in event_types)

    def examined(self, node_id: str) -> frozenset[str]:
        """Return the names of the warnings a node was examined for."""
        return frozenset(name for each, name in self.examinations if each == node_id)
