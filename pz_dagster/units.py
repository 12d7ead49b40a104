"""Flows as ops: one op for each connected component of the project.

Independent flows fail, retry and run in parallel separately; a failed op skips every Dagster asset downstream of any of
its assets, so the smaller the unit the smaller the damage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pz_dagster.keys import fold
from pz_dagster.snapshot import Snapshot
from pz_engine import PipelineNode, SinkWriteNode


@dataclass(frozen=True)
class Unit:
    """What one op runs."""

    name: str
    flow: str
    node_ids: frozenset[str]


def build_units(
    snapshot: Snapshot, selected: frozenset[str] | None = None, *, per_project: bool = False
) -> tuple[Unit, ...]:
    """Cut a project into units.

    Args:
        snapshot: the project.
        selected: ids to define; None means all. A selection that cuts a flow is legal, the op runs what it needs.
        per_project: put every flow into one op.
    """
    base = fold(snapshot.project_name)
    flows = [frozenset(flow.node_ids) for flow in snapshot.compiled.flows]
    names = [base] if len(flows) == 1 else [f"{base}__{_label(snapshot, flow)}" for flow in flows]
    if per_project:
        flows, names = [frozenset[str]().union(*flows)], [base]
    units = []
    for name, flow in zip(names, flows, strict=True):
        kept = flow if selected is None else flow & selected
        if kept:
            units.append(Unit(name, name, kept))
    return tuple(units)


def _label(snapshot: Snapshot, flow: Iterable[str]) -> str:
    """Name a flow after its smallest sink, or its smallest pipeline when it has none."""
    nodes = [snapshot.compiled.graph.by_id[node_id] for node_id in flow]
    sinks = sorted(node.name for node in nodes if isinstance(node, SinkWriteNode))
    pipelines = sorted(node.name for node in nodes if isinstance(node, PipelineNode))
    return fold((sinks or pipelines or sorted(node.name for node in nodes))[0])
