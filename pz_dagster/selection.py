"""What Dagster asked an op for, as node ids.

Node identity travels as text in spec metadata, so it survives key prefixes that are added after the specs were built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from pz_dagster.snapshot import Snapshot
from pz_engine import CheckNode, Node, SinkWriteNode, SourceLoadNode


@dataclass(frozen=True)
class OpSelection:
    """The selected part of an op."""

    node_ids: frozenset[str]
    """Ids of the snapshot's nodes that were asked for; the engine adds their ancestors."""

    names: Mapping[str, str]
    """Node name by id, to find the node again in a newer compile."""

    assets: Mapping[str, dg.AssetKey]
    """Asset key of every selected load, pipeline and sink, by node name."""

    checks: Mapping[str, tuple[CheckNode, dg.AssetCheckKey]]
    """Selected checks by node name."""

    held_loads: frozenset[str]
    """Names of incremental loads whose watermark cannot advance, because a sink it waits for is not part of this run."""

    has_assets: bool

    def key_of(self, name: str) -> dg.AssetKey | None:
        """Return the asset key of a selected node."""
        return self.assets.get(name)


def read_selection(context: Any, snapshot: Snapshot) -> OpSelection:
    """Map Dagster's selection of the running op to nodes."""
    definition = context.assets_def
    graph = snapshot.compiled.graph
    wanted_assets, wanted_checks = set(context.selected_asset_keys), set(context.selected_asset_check_keys)
    assets: dict[str, dg.AssetKey] = {}
    nodes: list[Node] = []
    for spec in definition.specs:
        if spec.key in wanted_assets and "pz/node" in spec.metadata:
            assets[spec.metadata["pz/node"]] = spec.key
            nodes.extend(_found(graph.by_name.get(spec.metadata["pz/node"])))
    checks: dict[str, tuple[CheckNode, dg.AssetCheckKey]] = {}
    for check_spec in definition.check_specs:
        if check_spec.key in wanted_checks:
            node = graph.by_name.get((check_spec.metadata or {}).get("pz/node", ""))
            if isinstance(node, CheckNode):
                checks[node.name] = (node, check_spec.key)
                nodes.append(node)
    ids = frozenset(node.id for node in nodes)
    return OpSelection(
        ids, {node.id: node.name for node in nodes}, assets, checks, _held(snapshot, ids), has_assets=bool(assets)
    )


def _found(node: Node | None) -> list[Node]:
    return [node] if node is not None else []


def _held(snapshot: Snapshot, selected: frozenset[str]) -> frozenset[str]:
    graph = snapshot.compiled.graph
    running = selected | graph.ancestors(selected)
    held = set()
    for node in snapshot.compiled.nodes:
        if isinstance(node, SourceLoadNode) and node.id in snapshot.incremental and node.id in running:
            sinks = [n for n in graph.descendants([node.id]) if isinstance(graph.by_id[n], SinkWriteNode)]
            if any(sink not in running for sink in sinks):
                held.add(node.name)
    return frozenset(held)
