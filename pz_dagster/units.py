"""Flows as ops: one op for each connected component of the project.

Independent flows fail, retry and run in parallel separately; a failed op skips every Dagster asset downstream of any of
its assets, so the smaller the unit the smaller the damage.
"""

from __future__ import annotations

from msgspec import Struct

from pz_dagster.keys import op_name
from pz_dagster.snapshot import Snapshot


class Unit(Struct, frozen=True):
    """What one op runs."""

    name: str
    """Name of the op."""

    flow: str
    """Name of the flow; the project's when the op runs several."""

    node_ids: frozenset[str]

    pool: str | None = None
    """What its default pool is named after, where that is not its own name."""


def build_units(
    snapshot: Snapshot, selected: frozenset[str] | None = None, *, per_project: bool = False
) -> tuple[Unit, ...]:
    """Cut a project into units.

    Args:
        snapshot: the project.
        selected: ids to define; None means all. A selection that cuts a flow is legal, the op runs what it needs.
        per_project: put every flow into one op.
    """
    everything = frozenset(node.id for node in snapshot.compiled.nodes)
    if per_project:
        flows = {op_name(snapshot.project_name): everything}
    else:
        flows = {
            name: frozenset(flow.node_ids)
            for name, flow in zip(snapshot.flow_names, snapshot.compiled.flows, strict=True)
        }
    units = []
    for name, ids in flows.items():
        kept = ids if selected is None else ids & selected
        if kept:
            units.append(Unit(name, name, kept))
    return tuple(units)
