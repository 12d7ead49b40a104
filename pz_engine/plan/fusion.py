"""Which relations become views inside the statement of their one consumer.

A relation is fused when exactly one consumer names it once and nothing needs its rows staged. A pipeline with
`materialization: view` is looked through: its consumers and checks count as those of the relations it reads. Any doubt
means staged, which is always right and only slower.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pz_engine.compile.dag import CheckNode, CompiledProject, Node, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.connectors.capabilities import Capability
from pz_engine.connectors.fragments import NativeScan
from pz_engine.model.policies import DriftPolicy, Materialization, Strategy, SyncMode
from pz_engine.model.run import ExecutionStrategy, ReadShape
from pz_engine.plan.specs import connector_of
from pz_engine.plan.strategies import ExecutionPlan, NodePlan


@dataclass(frozen=True, slots=True)
class ScanIdentity:
    """What a statement's profile shows of a scan; two equal ones in one statement cannot be told apart."""

    files: tuple[str, ...]
    fragment: str
    is_inferred: bool
    readers: int = 1

    @classmethod
    def of(cls, scan: NativeScan) -> ScanIdentity:
        """Take the identity of a scan."""
        return cls(tuple(str(file) for file in scan.files), scan.fragment, scan.schema_inferred, scan.readers)

    @property
    def key(self) -> object:
        """Equal keys cannot be told apart."""
        return frozenset(self.files) if self.files else self.fragment


def fuse(compiled: CompiledProject, plan: ExecutionPlan, scans: Mapping[str, ScanIdentity]) -> ExecutionPlan:
    """Return the plan with its fused relations marked."""
    if compiled.project is None or not compiled.project.engine.fusion:
        return plan
    written = {node.connection for node in compiled.nodes if isinstance(node, SinkWriteNode)}
    into: dict[str, str] = {}
    for node in compiled.nodes:
        consumer = _only_consumer(compiled, node)
        if consumer is None or not _may_stream_into(plan, consumer):
            continue
        if (
            isinstance(node, SourceLoadNode) and _source_may_fuse(compiled, plan.by_id[node.id], node, scans, written)
        ) or (isinstance(node, PipelineNode) and _pipeline_may_fuse(node)):
            into[node.id] = consumer.id
    for node_id in _indistinguishable(compiled, into, scans):
        del into[node_id]
    return replace(plan, nodes=tuple(_mark(compiled, entry, into) for entry in plan.nodes), fused_into=into)


def _only_consumer(compiled: CompiledProject, node: Node) -> Node | None:
    """Return the one consumer that names the relation once, views looked through; None when there is none or more."""
    consumers: list[Node] = []
    waiting: list[tuple[str, str]] = [(node.name, child) for child in compiled.graph.children[node.id]]
    while waiting:
        name, child_id = waiting.pop()
        child = compiled.graph.by_id[child_id]
        if isinstance(child, CheckNode):
            return None
        if isinstance(child, PipelineNode) and times_named(child.sql, name) > 1:
            return None
        if isinstance(child, PipelineNode) and child.materialization is Materialization.VIEW:
            waiting.extend((child.name, grandchild) for grandchild in compiled.graph.children[child.id])
        else:
            consumers.append(child)
    return consumers[0] if len(consumers) == 1 else None


def times_named(sql: str, relation: str) -> int:
    """Count how often a text names `staging.<relation>`; a mention in a literal counts too, on the safe side.

    >>> times_named("select * from staging.a join staging.a_b using (x) join staging.a t on true", "a")
    2
    """
    return len(re.findall(rf'staging"?\."?{re.escape(relation)}(?![A-Za-z0-9_])', sql, re.IGNORECASE))


def _may_stream_into(plan: ExecutionPlan, consumer: Node) -> bool:
    if isinstance(consumer, PipelineNode):
        return True
    return (
        isinstance(consumer, SinkWriteNode)
        and plan.by_id[consumer.id].strategy is ExecutionStrategy.NATIVE_COPY
        and consumer.strategy is not Strategy.MERGE
        and consumer.on_delete is None
    )


def _source_may_fuse(
    compiled: CompiledProject,
    entry: NodePlan,
    node: SourceLoadNode,
    scans: Mapping[str, ScanIdentity],
    written: set[str],
) -> bool:
    scan = scans.get(node.id)
    capabilities = connector_of(compiled, node.connection).capabilities
    return (
        scan is not None
        and entry.strategy is ExecutionStrategy.NATIVE_SCAN
        and entry.read_shape is ReadShape.FULL
        and node.mode is SyncMode.AUTO
        and node.incremental is None
        and not scan.is_inferred
        and scan.readers == 1
        and Capability.REPEATABLE_SCAN in capabilities
        and (Capability.TRANSACTIONAL not in capabilities or node.connection not in written)
        and node.options.get("ragged", "fail") != "reject"
        and (compiled.project is None or compiled.project.on_source_drift is DriftPolicy.IGNORE)
    )


def _pipeline_may_fuse(node: PipelineNode) -> bool:
    return node.materialization is Materialization.TABLE and not node.is_materialization_explicit


def _indistinguishable(
    compiled: CompiledProject, into: Mapping[str, str], scans: Mapping[str, ScanIdentity]
) -> set[str]:
    """Return fused sources that share a statement with a scan the profile cannot tell from theirs."""
    seen: dict[tuple[str, object], list[str]] = {}
    for node_id in into:
        if isinstance(compiled.graph.by_id[node_id], SourceLoadNode):
            seen.setdefault((root_of(node_id, into), scans[node_id].key), []).append(node_id)
    return {node_id for twins in seen.values() if len(twins) > 1 for node_id in twins}


def root_of(node_id: str, into: Mapping[str, str]) -> str:
    """Follow fused relations to the sink or staged pipeline whose statement they are part of."""
    while node_id in into:
        node_id = into[node_id]
    return node_id


def _mark(compiled: CompiledProject, entry: NodePlan, into: Mapping[str, str]) -> NodePlan:
    node = compiled.graph.by_id[entry.node_id]
    if entry.node_id in into:
        consumer = compiled.graph.by_id[into[entry.node_id]].name
        return replace(entry, fused_into=consumer, reason=_insert(entry.reason, f"fused into {consumer}"))
    if isinstance(node, SinkWriteNode):
        fused = [parent for parent in node.depends_on if into.get(parent) == node.id]
        if fused:
            pipeline = compiled.graph.by_id[fused[0]].name
            return replace(entry, streams=pipeline, reason=_insert(entry.reason, f"fused, streams {pipeline}"))
    return entry


def _insert(reason: str, text: str) -> str:
    """Add to a reason, before the read shape that a source's reason must end with."""
    head, separator, tail = reason.partition(" (read=")
    return f"{head}, {text}{separator}{tail}"
