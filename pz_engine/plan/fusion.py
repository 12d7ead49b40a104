"""Which relations become views inside the statement of their one consumer.

A relation is fused when exactly one consumer names it once and nothing needs its rows staged. A pipeline with
`materialization: view` is looked through: its consumers and checks count as those of the relations it reads. Any doubt
means staged, which is always right and only slower.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.compile.dag import CheckNode, CompiledProject, Node, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.connectors.capabilities import Capability
from pz_engine.connectors.fragments import NativeScan
from pz_engine.model.policies import DriftPolicy, Materialization, Strategy, SyncMode
from pz_engine.model.run import ExecutionStrategy, ReadShape
from pz_engine.plan.specs import connector_of
from pz_engine.plan.strategies import ExecutionPlan, NodePlan


class ScanIdentity(Struct, frozen=True):
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
    """Return the plan with its fused relations marked and the reason why each other one is staged."""
    into: dict[str, str] = {}
    staged: dict[str, str] = {}
    written = {node.connection for node in compiled.nodes if isinstance(node, SinkWriteNode)}
    for node in compiled.nodes:
        if isinstance(node, (SourceLoadNode, PipelineNode)) and not is_view(node):
            consumer, why = _consumer_of(compiled, node)
            why = why or _why_rows_are_needed(compiled, plan.by_id[node.id], node, scans, written)
            if consumer is not None:
                why = why or _why_not_streamed(plan, consumer)
            if why is None and consumer is not None:
                into[node.id] = consumer.id
            else:
                staged[node.id] = why or ""
    for node_id in _indistinguishable(compiled, into, scans):
        staged[node_id] = "two scans of the same files in one statement"
        del into[node_id]
    nodes = tuple(_mark(compiled, entry, into, staged) for entry in plan.nodes)
    return replace(plan, nodes=nodes, fused_into=into)


def is_view(node: Node) -> bool:
    """Tell whether a node is looked through: it has no rows of its own."""
    return isinstance(node, PipelineNode) and node.materialization is Materialization.VIEW


def _consumer_of(compiled: CompiledProject, node: Node) -> tuple[Node | None, str | None]:
    """Return the one consumer that names the relation once, views looked through, or why there is none."""
    consumers: list[Node] = []
    waiting: list[tuple[str, str]] = [(node.name, child) for child in compiled.graph.children[node.id]]
    while waiting:
        name, child_id = waiting.pop()
        child = compiled.graph.by_id[child_id]
        if isinstance(child, CheckNode):
            return None, "a check reads it"
        if isinstance(child, PipelineNode) and times_named(child.sql, name) > 1:
            return None, f"{child.name} names it more than once"
        if is_view(child):
            waiting.extend((child.name, grandchild) for grandchild in compiled.graph.children[child.id])
        else:
            consumers.append(child)
    if len(consumers) > 1:
        return None, f"{len(consumers)} consumers"
    return (consumers[0], None) if consumers else (None, "no consumer")


def times_named(sql: str, relation: str) -> int:
    """Count how often a text names `staging.<relation>`; a mention in a literal counts too, on the safe side.

    >>> times_named("select * from staging.a join staging.a_b using (x) join staging.a t on true", "a")
    2
    """
    return len(re.findall(rf'staging"?\."?{re.escape(relation)}(?![A-Za-z0-9_])', sql, re.IGNORECASE))


def _why_not_streamed(plan: ExecutionPlan, consumer: Node) -> str | None:
    if not isinstance(consumer, SinkWriteNode):
        return None
    if consumer.strategy is Strategy.MERGE or consumer.on_delete is not None:
        return "a merge looks at its rows first"
    if plan.by_id[consumer.id].strategy is not ExecutionStrategy.NATIVE_COPY:
        return f"{consumer.name} is written in batches"
    return None


def _why_rows_are_needed(
    compiled: CompiledProject,
    entry: NodePlan,
    node: SourceLoadNode | PipelineNode,
    scans: Mapping[str, ScanIdentity],
    written: set[str],
) -> str | None:
    if compiled.project is None or not compiled.project.engine.fusion:
        return "engine.fusion is off"
    if isinstance(node, PipelineNode):
        return "materialization: table" if node.is_materialization_explicit else None
    if entry.strategy is not ExecutionStrategy.NATIVE_SCAN:
        return "read in batches"
    if node.mode is not SyncMode.AUTO or node.incremental is not None or entry.read_shape is not ReadShape.FULL:
        return "its watermark is taken from its rows" if node.incremental is not None else "it is not read in full"
    if compiled.project.on_source_drift is not DriftPolicy.IGNORE:
        return "drift detection"
    return _why_not_scanned_in_place(compiled, node, scans.get(node.id), written)


def _why_not_scanned_in_place(
    compiled: CompiledProject, node: SourceLoadNode, scan: ScanIdentity | None, written: set[str]
) -> str | None:
    capabilities = connector_of(compiled, node.connection).capabilities
    if scan is None or Capability.REPEATABLE_SCAN not in capabilities:
        return "its source may change between two reads"
    if scan.is_inferred:
        return "its types are inferred"
    if scan.readers != 1:
        return "it is read by several readers"
    if Capability.TRANSACTIONAL in capabilities and node.connection in written:
        return f"connection '{node.connection}' is written by the same project"
    return "ragged rows are collected" if node.options.get("ragged", "fail") == "reject" else None


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


def _mark(compiled: CompiledProject, entry: NodePlan, into: Mapping[str, str], staged: Mapping[str, str]) -> NodePlan:
    node = compiled.graph.by_id[entry.node_id]
    if entry.node_id in staged:
        return replace(entry, reason=_insert(entry.reason, f"staged: {staged[entry.node_id]}"))
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
