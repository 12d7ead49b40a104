"""What definitions may know of a compiled project.

A snapshot holds no connection configuration, no option and no resolved `${NAME}`. Whether it was compiled or read from a
file makes no difference: the one is always taken through the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field

from pz_dagster.keys import fold, op_name
from pz_engine import CompiledProject, Flow, PipelineNode, SinkWriteNode

ColumnSources = tuple[tuple[str, str], ...]
"""Pairs of a node's name and a column of it."""


class Snapshot(Struct, frozen=True, dict=True):
    """What definitions are built from."""

    fingerprint: str
    compiled: CompiledProject
    """Graph, flows, warnings and problems; connections carry their connector's name only."""

    project_name: str
    incremental: Mapping[str, str]
    """Cursor column of every incremental source load, by node id."""

    cursor_types: Mapping[str, str] = field(default_factory=dict)
    """Cursor type of every incremental source load that declares one, by node id."""

    stopping: frozenset[str] = frozenset()
    """Ids of the source loads that are read in windows up to a stop."""

    sliced: frozenset[str] = frozenset()
    """Ids of the sinks that overwrite only the slices they are given."""
    drift_policy: str = "ignore"
    """What a source's changed schema does to a run: `ignore`, `warn` or `fail`."""

    inferring: frozenset[str] = frozenset()
    """Ids of the loads whose column types are inferred from text."""

    lineage: Mapping[str, Mapping[str, ColumnSources | None]] = field(default_factory=dict)
    """The columns behind each column of each pipeline, by pipeline and column; None where they are not known. A pipeline
    whose columns cannot be listed has no entry."""

    @cached_property
    def flow_names(self) -> tuple[str, ...]:
        """Name of each flow: the project's when there is one, else with its smallest sink, or pipeline, behind it."""
        flows = self.compiled.flows
        if len(flows) == 1:
            return (op_name(self.project_name),)
        labels = [self._label(flow) for flow in flows]
        folded = [f"{fold(self.project_name)}__{fold(label)}" for label in labels]
        return tuple(
            name if folded.count(name) == 1 else f"{name}_{hashlib.sha256(label.encode()).hexdigest()[:6]}"
            for name, label in zip(folded, labels, strict=True)
        )

    @cached_property
    def flow_of(self) -> Mapping[str, str]:
        """Name of a node's flow, by node id."""
        return {
            node_id: name
            for name, flow in zip(self.flow_names, self.compiled.flows, strict=True)
            for node_id in flow.node_ids
        }

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Place of each node in topological order, by node id."""
        return {node.id: index for index, node in enumerate(self.compiled.nodes)}

    @cached_property
    def sink_of(self) -> Mapping[tuple[str, str], str]:
        """Id of the sink that writes an entity, by connection and entity."""
        return {
            (node.connection, node.entity): node.id for node in self.compiled.nodes if isinstance(node, SinkWriteNode)
        }

    def _label(self, flow: Flow) -> str:
        nodes = [self.compiled.graph.by_id[node_id] for node_id in flow.node_ids]
        sinks = [node.name for node in nodes if isinstance(node, SinkWriteNode)]
        pipelines = [node.name for node in nodes if isinstance(node, PipelineNode)]
        return min(sinks or pipelines or [node.name for node in nodes])
