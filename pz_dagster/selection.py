"""What Dagster asked an op for, as nodes.

Node identity travels as text in spec metadata, so it survives key prefixes that are added after the specs were built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from msgspec import Struct, field

from pz_dagster.builtin_checks import BUILTIN_KEY
from pz_dagster.snapshot import Snapshot
from pz_engine import CheckNode, SinkWriteNode, SourceLoadNode


class OpSelection(Struct, frozen=True):
    """The selected part of an op."""

    assets: Mapping[str, dg.AssetKey]
    """Asset key of every selected load, pipeline and sink, by node name."""

    checks: Mapping[str, tuple[CheckNode, dg.AssetCheckKey, bool]]
    """Selected checks by node name: the node, its key, whether Dagster blocks on it."""

    builtin: Mapping[tuple[str, str], dg.AssetCheckKey] = field(default_factory=dict)
    """Selected built-in checks by switch and node name."""

    keys: Mapping[str, dg.AssetKey] = field(default_factory=dict)
    """Asset key of every node of the op, by name."""

    held_loads: frozenset[str] = frozenset()
    """Names of incremental loads whose watermark cannot advance, because a sink it waits for is not part of this run."""

    unknown: frozenset[str] = frozenset()
    """Names that the snapshot does not know: definitions and snapshot are of different times."""

    @property
    def names(self) -> frozenset[str]:
        """Names of everything selected; the engine adds their ancestors."""
        return frozenset(self.assets) | frozenset(self.checks) | self._watched

    @property
    def unwritten(self) -> frozenset[str]:
        """Keys of selected checks that only a sink that was not selected could evaluate."""
        return frozenset(
            key.to_user_string()
            for (switch, name), key in self.builtin.items()
            if switch == "merge_keys" and name not in self.assets
        )

    @property
    def _watched(self) -> frozenset[str]:
        return frozenset(name for _, name in self.builtin)

    def key_of(self, name: str) -> dg.AssetKey | None:
        """Return the asset key of a selected node."""
        return self.assets.get(name)


def read_selection(context: Any, snapshot: Snapshot) -> OpSelection:
    """Map Dagster's selection of the running op to nodes."""
    definition, graph = context.assets_def, snapshot.compiled.graph
    wanted_assets, wanted_checks = set(context.selected_asset_keys), set(context.selected_asset_check_keys)
    assets: dict[str, dg.AssetKey] = {}
    checks: dict[str, tuple[CheckNode, dg.AssetCheckKey, bool]] = {}
    builtin: dict[tuple[str, str], dg.AssetCheckKey] = {}
    unknown: set[str] = set()
    for spec in definition.specs:
        if spec.key in wanted_assets and "pz/node" in spec.metadata:
            name = spec.metadata["pz/node"]
            assets[name] = spec.key
            if name not in graph.by_name:
                unknown.add(name)
    for check_spec in definition.check_specs:
        name = (check_spec.metadata or {}).get("pz/node")
        switch = (check_spec.metadata or {}).get(BUILTIN_KEY)
        if check_spec.key in wanted_checks and name is not None and switch is not None:
            builtin[switch, name] = check_spec.key
            if name not in graph.by_name:
                unknown.add(name)
        elif check_spec.key in wanted_checks and name is not None:
            node = graph.by_name.get(name)
            if isinstance(node, CheckNode):
                checks[name] = (node, check_spec.key, check_spec.blocking)
            else:
                unknown.add(name)
    keys = {spec.metadata["pz/node"]: spec.key for spec in definition.specs if "pz/node" in spec.metadata}
    held = _held(snapshot, {*assets, *checks, *(name for _, name in builtin)})
    return OpSelection(assets, checks, builtin, keys, held, frozenset(unknown))


def _held(snapshot: Snapshot, selected: set[str]) -> frozenset[str]:
    graph = snapshot.compiled.graph
    chosen = {graph.by_name[name].id for name in selected if name in graph.by_name}
    running = chosen | graph.ancestors(chosen)
    held = set()
    for node in snapshot.compiled.nodes:
        if isinstance(node, SourceLoadNode) and node.id in snapshot.incremental and node.id in running:
            sinks = [n for n in graph.descendants([node.id]) if isinstance(graph.by_id[n], SinkWriteNode)]
            if any(sink not in running for sink in sinks):
                held.add(node.name)
    return frozenset(held)
