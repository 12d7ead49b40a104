"""What a run that continues an earlier one may take from it.

Nothing here is trusted: each part is checked against the earlier run's database before it is used, and whatever does not
hold is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from pz_engine.compile.dag import Graph, SinkWriteNode, SourceLoadNode
from pz_engine.model.run import NodeResult, NodeStats, NodeStatus
from pz_engine.plan.strategies import ExecutionPlan

REUSED: Final = "reused"
CARRIED_FORWARD: Final = "carried_forward"


class ResumePlan(Struct, frozen=True):
    """What may be taken from a prior run."""

    run_id: str
    database: Path
    reuse: Mapping[str, NodeResult] = field(default_factory=dict)
    """Loads whose staged rows may be copied, with their prior results, by node id."""

    partial: frozenset[str] = frozenset()
    """Loads that failed and may have landed some partitions."""

    deliveries: frozenset[str] = frozenset()
    """Sinks that failed or were cancelled and may have been acknowledged some rows."""

    carried: tuple[NodeResult, ...] = ()
    """Sinks that committed and are not run again."""

    lost: int = 0
    """Parts that could have been taken if the database was still there."""

    is_shared: bool = False
    """The prior run has nothing left to deliver, so any number of runs may take from it at once."""

    def notes(self, taken_over: int) -> tuple[str, ...]:
        """Say what is taken, and from which run.

        Args:
            taken_over: loads whose rows are in the database of this run.
        """
        found = []
        if self.lost:
            found.append(f"run {self.run_id} has no staging database any more, so everything is extracted again")
        if taken_over:
            found.append(f"{taken_over} source load(s) are reused from run {self.run_id}")
        if self.carried:
            found.append(f"{len(self.carried)} committed sink(s) are carried forward from run {self.run_id}")
        return tuple(found)


def plan_resume(
    graph: Graph,
    plan: ExecutionPlan,
    effective: frozenset[str],
    prior: Sequence[NodeResult],
    *,
    run_id: str,
    database: Path,
) -> ResumePlan:
    """Decide what may be taken from a prior run; without its database, nothing.

    Args:
        graph: the whole project as it is now.
        plan: how its nodes run now; a fused source is simply read again.
        effective: the nodes about to run.
        prior: the prior run's results.
        run_id: the prior run.
        database: its staging database.
    """
    results = {result.id: result for result in reversed(prior)}
    fused = {node for node, into in plan.fused_into.items() if into in effective}

    def succeeded(node_id: str) -> bool:
        found = results.get(node_id)
        return found is not None and found.status is NodeStatus.SUCCESS

    loads = [node for node in graph.nodes if isinstance(node, SourceLoadNode) and node.id in effective]
    reuse = {node.id: results[node.id] for node in loads if succeeded(node.id) and node.id not in fused}
    undone = {node_id for node_id in effective if node_id in results and not succeeded(node_id)}
    found = ResumePlan(
        run_id,
        database,
        reuse,
        frozenset(node.id for node in loads if node.id in undone and results[node.id].status is NodeStatus.FAILED),
        frozenset(node.id for node in graph.nodes if isinstance(node, SinkWriteNode) and node.id in undone),
        tuple(
            _carried(results[node.id])
            for node in graph.nodes
            if isinstance(node, SinkWriteNode)
            and node.id not in effective
            and succeeded(node.id)
            and _rests_on(graph, node, reuse, succeeded)
        ),
    )
    if database.is_file():
        return found
    return ResumePlan(run_id, database, lost=len(found.reuse) + len(found.partial) + len(found.deliveries))


def _rests_on(
    graph: Graph, sink: SinkWriteNode, reuse: Mapping[str, NodeResult], succeeded: Callable[[str], bool]
) -> bool:
    """Tell whether everything above a committed sink is what it was, and its loads are reused."""
    above = graph.ancestors([sink.id])
    loads = [node_id for node_id in above if isinstance(graph.by_id[node_id], SourceLoadNode)]
    return bool(loads) and all(map(succeeded, above)) and all(node_id in reuse for node_id in loads)


def _carried(result: NodeResult) -> NodeResult:
    return replace(
        result,
        provenance=CARRIED_FORWARD,
        duration_ms=0,
        timings=None,
        ops=None,
        delivery=None,
        stats=NodeStats(),
    )
