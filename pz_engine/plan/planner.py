"""Chooses the data path of every node, offline.

A connector is opened only for cheap probes: nothing here touches the network or a staging database. Refusals are
collected and raised together; a refusal of a node outside the effective set only shows in that node's reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from msgspec.structs import replace

from pz_engine.compile.dag import CompiledProject, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.connectors.api import NaturalReadShape, SinkConnector, SourceConnector
from pz_engine.connectors.capabilities import Capability
from pz_engine.connectors.fragments import ExtensionStep, NativeCopy, NativeScan, SetupStep
from pz_engine.duck.extensions import is_available, missing_hint
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Materialization, SyncMode
from pz_engine.model.project import EngineSettings
from pz_engine.model.run import ExecutionStrategy, NodeKind, ReadShape
from pz_engine.plan.feed_pairs import check_feed_pairs
from pz_engine.plan.fusion import ScanIdentity, fuse
from pz_engine.plan.memory_budget import MemoryBudget
from pz_engine.plan.refusals import read_refusals, write_refusals
from pz_engine.plan.specs import connector_config, connector_of, read_hints, read_spec, write_spec
from pz_engine.plan.strategies import ExecutionPlan, NodePlan
from pz_engine.plan.targets import Targets, find_clashes, place_of

_MAX_PARTITIONS = 16
_NATIVE_SCAN, _NATIVE_COPY = ExecutionStrategy.NATIVE_SCAN, ExecutionStrategy.NATIVE_COPY
_ARROW_STREAM = ExecutionStrategy.ARROW_STREAM


def plan_project(compiled: CompiledProject, effective: frozenset[str] | None = None) -> ExecutionPlan:
    """Plan the whole project.

    Args:
        compiled: a project without problems, connectors known.
        effective: ids of the nodes about to run; None means all of them.

    Raises:
        PzValidationError: every refusal that concerns the effective set.
    """
    if compiled.project is None:
        raise ValueError("a project with problems cannot be planned")
    return _Planner(compiled, compiled.project.engine, effective).plan()


class _Planner:
    def __init__(self, compiled: CompiledProject, engine: EngineSettings, effective: frozenset[str] | None) -> None:
        self._compiled = compiled
        self._engine = engine
        self._effective = effective
        self._problems = ProblemCollector()
        self._scans: dict[str, ScanIdentity] = {}
        self._targets = Targets()

    def plan(self) -> ExecutionPlan:
        plans: list[NodePlan] = []
        for node in self._compiled.nodes:
            if isinstance(node, SourceLoadNode):
                plans.append(self._read(node))
            elif isinstance(node, PipelineNode):
                kind = "view" if node.materialization is Materialization.VIEW else "table"
                reason = f"duckdb sql: {kind} in staging"
                plans.append(NodePlan(node.id, NodeKind.PIPELINE, node.name, ExecutionStrategy.DUCK_SQL, reason))
            elif isinstance(node, SinkWriteNode):
                plans.append(self._write(node))
        check_feed_pairs(self._compiled, {plan.node_id: plan.read_shape for plan in plans}, self._problems)
        find_clashes(self._compiled, self._targets, self._effective, self._problems)
        self._problems.errors = list(dict.fromkeys(self._problems.errors))
        self._problems.raise_if_any()
        return fuse(self._compiled, ExecutionPlan(tuple(plans), MemoryBudget.of(self._engine)), self._scans)

    def _is_effective(self, node: SourceLoadNode | SinkWriteNode) -> bool:
        return self._effective is None or node.id in self._effective

    def _refuse(self, node: SourceLoadNode | SinkWriteNode, code: str, message: str, hint: str | None = None) -> None:
        """Record a refusal; of a node that is not about to run, the reason says it."""
        if self._is_effective(node):
            file, line = place_of(self._compiled, node)
            self._problems.add(code, message, file=file, line=line, hint=hint)

    def _read(self, node: SourceLoadNode) -> NodePlan:
        connector = connector_of(self._compiled, node.connection)
        name = connector.info.name
        if not isinstance(connector, SourceConnector):
            self._refuse(node, "PZ0301", f"connector '{name}' cannot read; '{node.key}' needs it to")
            return _read_plan(node, _ARROW_STREAM, f"arrow stream: {name} cannot read", ReadShape.FULL)
        source = connector.open_source(connector_config(self._compiled, node.connection))
        try:
            spec = read_spec(node)
            is_feed = isinstance(source, NaturalReadShape) and source.natural_read_shape(spec) == "feed"
            shape = _read_shape(node, is_feed=is_feed)
            is_native_only = connector.native_only_reads
            for refusal in read_refusals(
                self._compiled, node, connector, shape, is_native_only=is_native_only, is_feed=is_feed
            ):
                self._refuse(node, refusal.code, refusal.message, refusal.hint)
            if self._engine.force_universal or "files_per_partition" in node.options:
                why = "engine.force_universal" if self._engine.force_universal else "files_per_partition"
                return _streamed(node, connector.capabilities, f"arrow stream: {name}, {why} is set", shape)
            try:
                scan = source.native_scan(spec) if Capability.NATIVE_SCAN in connector.capabilities else None
            except PzConnectorError as error:
                if error.code is not None:
                    self._refuse(node, error.code, error.message, error.hint)
                return _read_plan(
                    node, _NATIVE_SCAN, f"native scan: {name}, not readable now ({error.code or 'see the run'})", shape
                )
        finally:
            with contextlib.suppress(Exception):  # nothing was asked, so nothing can be lost
                source.close()
        if scan is None:
            return _streamed(node, connector.capabilities, f"arrow stream: {name} record batches", shape)
        missing = self._missing_extension(node, scan.setup, is_native_only=is_native_only)
        if missing is not None:
            return _streamed(node, connector.capabilities, f"arrow stream: {name}, native after {missing}", shape)
        return self._native_read(node, scan, shape, name)

    def _native_read(self, node: SourceLoadNode, scan: NativeScan, shape: ReadShape, name: str) -> NodePlan:
        self._scans[node.id] = ScanIdentity.of(scan)
        if self._is_effective(node):
            self._targets.add_setup(node, scan.setup)
        return _read_plan(node, _NATIVE_SCAN, f"native scan: {name} {scan.mechanism}", shape)

    def _write(self, node: SinkWriteNode) -> NodePlan:
        connector = connector_of(self._compiled, node.connection)
        name = connector.info.name
        universal = NodePlan(node.id, NodeKind.SINK_WRITE, node.name, _ARROW_STREAM, f"arrow stream: {name}")
        if not isinstance(connector, SinkConnector):
            self._refuse(node, "PZ0301", f"connector '{name}' cannot write; '{node.name}' needs it to")
            return universal
        refusals = tuple(write_refusals(self._compiled, node, connector))
        for refusal in refusals:
            self._refuse(node, refusal.code, refusal.message, refusal.hint)
        copy: NativeCopy | None = None
        sink = connector.open_sink(connector_config(self._compiled, node.connection))
        try:
            if Capability.NATIVE_COPY in connector.capabilities:
                copy = sink.native_copy(write_spec(node))
        except PzConnectorError as error:
            if error.code not in {refusal.code for refusal in refusals}:
                self._refuse(node, error.code or "PZ0353", error.message, error.hint)
            return replace(universal, reason=f"arrow stream: {name}, native copy refused ({error.code or 'PZ0353'})")
        finally:
            with contextlib.suppress(Exception):
                sink.close()
        if copy is not None:
            self._targets.add_output(node, copy)
            if self._is_effective(node):
                self._targets.add_setup(node, copy.setup)
        if self._engine.force_universal:
            return replace(universal, reason=f"arrow stream: {name}, engine.force_universal is set")
        if copy is None:
            return replace(universal, reason=f"arrow stream: {name} record batches")
        missing = self._missing_extension(node, copy.setup, is_native_only=connector.native_only_writes)
        if missing is not None:
            return replace(universal, reason=f"arrow stream: {name}, native after {missing}")
        reason = f"native copy: {name} {copy.mechanism}, {node.strategy.value}"
        return replace(universal, strategy=_NATIVE_COPY, reason=reason)

    def _missing_extension(
        self, node: SourceLoadNode | SinkWriteNode, setup: Sequence[SetupStep], *, is_native_only: bool
    ) -> str | None:
        """Return what to type for the first extension that nobody installed; without another route it is a refusal."""
        if self._engine.duckdb.allow_extension_download:
            return None
        wanted = next((s.name for s in setup if isinstance(s, ExtensionStep) and not is_available(s.name)), None)
        if wanted is None:
            return None
        hint = missing_hint(wanted)
        if is_native_only:
            self._refuse(node, "PZ0311", f"'{node.name}' needs the DuckDB extension '{wanted}'", hint)
        return hint


def _read_shape(node: SourceLoadNode, *, is_feed: bool) -> ReadShape:
    if node.mode is SyncMode.CDC:
        return ReadShape.CDC
    if node.incremental is not None:
        return ReadShape.INCREMENTAL
    return ReadShape.FEED if is_feed else ReadShape.FULL


def _streamed(node: SourceLoadNode, capabilities: Capability, reason: str, shape: ReadShape) -> NodePlan:
    """Plan a read by the connector itself; only such a read is handed the hints."""
    hints = read_hints(node, capabilities)
    return replace(
        _read_plan(node, _ARROW_STREAM, reason, shape),
        columns_pushed=len(hints.columns) if hints.columns is not None else None,
        predicate_pushed=hints.predicate_sql is not None,
    )


def _read_plan(node: SourceLoadNode, strategy: ExecutionStrategy, reason: str, shape: ReadShape) -> NodePlan:
    partitions = 1
    if strategy is _ARROW_STREAM and node.options.get("partition_column") and node.options.get("partitions"):
        partitions = max(1, min(_MAX_PARTITIONS, int(node.options["partitions"])))
    parts = f", {partitions} partitions" if partitions > 1 else ""
    cursor = f" cursor={node.incremental.cursor}" if node.incremental is not None else ""
    text = f"{reason}{parts} (read={shape.value}{cursor})"
    return NodePlan(node.id, NodeKind.SOURCE_LOAD, node.name, strategy, text, partitions, read_shape=shape)
