"""The plan as values: one strategy per node, and why."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field

from pz_engine.model.run import ExecutionStrategy, NodeKind, ReadShape
from pz_engine.plan.memory_budget import MemoryBudget


class NodePlan(Struct, frozen=True):
    """How one node will move its rows."""

    node_id: str
    kind: NodeKind
    name: str
    strategy: ExecutionStrategy
    reason: str
    """Free text that starts with the tier in words; never SQL, never configuration."""

    partitions: int = 1
    columns_pushed: int | None = None
    predicate_pushed: bool = False
    fused_into: str | None = None
    """Name of the node whose statement this relation is part of; None when staged."""

    streams: str | None = None
    """For a sink: the fused pipeline it streams from."""

    read_shape: ReadShape | None = None

    @property
    def is_fused(self) -> bool:
        """Tell whether the plan marks the node as fused."""
        return self.fused_into is not None or self.streams is not None


class ExecutionPlan(Struct, frozen=True, dict=True):
    """Plans of every node but checks, in topological order."""

    nodes: tuple[NodePlan, ...]
    memory_budget: MemoryBudget
    fused_into: Mapping[str, str] = field(default_factory=dict)
    """Fused relation to the id of its one consumer, views looked through."""

    @cached_property
    def by_id(self) -> Mapping[str, NodePlan]:
        """Plans by node id."""
        return {plan.node_id: plan for plan in self.nodes}
