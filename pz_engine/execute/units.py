"""What is dispatched: single nodes, and groups that are one statement."""

from __future__ import annotations

from msgspec import Struct, field

from pz_engine.compile.dag import CheckNode, Graph, Node, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.model.policies import Materialization
from pz_engine.plan.fusion import root_of
from pz_engine.plan.strategies import ExecutionPlan


class Unit(Struct):
    """Nodes that run together."""

    members: tuple[Node, ...]
    """Topological order, the root last."""

    waits_for: set[int] = field(default_factory=set)
    """Indexes of units that must succeed first."""

    @property
    def root(self) -> Node:
        """The node whose statement the unit is."""
        return self.members[-1]

    @property
    def order(self) -> tuple[int, str]:
        """Order among simultaneously ready units: kind, then name."""
        first = self.members[0]
        return (first.kind.rank, first.name)

    @property
    def connections(self) -> tuple[str, ...]:
        """Connections whose permits the unit takes, in ordinal order."""
        found = {node.connection for node in self.members if isinstance(node, (SourceLoadNode, SinkWriteNode))}
        return tuple(sorted(found))


def build_units(
    graph: Graph,
    plan: ExecutionPlan,
    effective: frozenset[str],
    *,
    gate_checks: bool,
    ungated: frozenset[str] = frozenset(),
) -> list[Unit]:
    """Group the effective set, in topological order of the roots.

    A relation is fused only when its consumer runs too; otherwise it is staged as if the plan had said so. With
    `gate_checks`, consumers wait for the checks of what they read, those named in `ungated` excepted.
    """
    fused = {node: into for node, into in plan.fused_into.items() if node in effective and into in effective}
    group_of: dict[str, str] = {}
    passing: set[str] = set()
    for node in graph.nodes:
        if node.id not in effective:
            continue
        group_of[node.id] = root_of(node.id, fused) if node.id in fused else node.id
        if isinstance(node, PipelineNode) and node.materialization is Materialization.VIEW:
            through = [group_of[parent] for parent in node.depends_on if parent in fused or parent in passing]
            if through:
                group_of[node.id] = through[0]
                passing.add(node.id)
    roots = [node.id for node in graph.nodes if node.id in effective and group_of[node.id] == node.id]
    units = [
        Unit((*(n for n in graph.nodes if group_of.get(n.id) == root and n.id != root), graph.by_id[root]))
        for root in roots
    ]
    unit_of = {member.id: index for index, unit in enumerate(units) for member in unit.members}
    for index, unit in enumerate(units):
        for member in unit.members:
            unit.waits_for.update(unit_of[parent] for parent in member.depends_on if parent in unit_of)
            if gate_checks and not isinstance(member, CheckNode):
                unit.waits_for.update(_gates(graph, member, unit_of, ungated))
        unit.waits_for.discard(index)
    return units


def _gates(graph: Graph, member: Node, unit_of: dict[str, int], ungated: frozenset[str]) -> set[int]:
    """Return the units of the checks on the pipelines that a node consumes."""
    return {
        unit_of[child]
        for parent in member.depends_on
        for child in graph.children[parent]
        if isinstance(check := graph.by_id[child], CheckNode) and child in unit_of and check.name not in ungated
    }
