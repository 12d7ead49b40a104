"""Chooses the data path of every node, offline.

A connector is opened only for cheap probes: nothing here touches the network or a staging database. Refusals are
collected and raised together; a refusal of a node outside the effective set only shows in that node's reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pz_engine.compile.dag import CompiledProject, PipelineNode, SinkWriteNode, SourceLoadNode
from pz_engine.connectors.api import (
    ExtensionStep,
    NaturalReadShape,
    ReadSpec,
    SetupStep,
    SinkConnector,
    Source,
    SourceConnector,
)
from pz_engine.connectors.capabilities import Capability
from pz_engine.duck.extensions import is_available, missing_hint
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Materialization, SyncMode
from pz_engine.model.project import EngineSettings
from pz_engine.model.run import ExecutionStrategy, NodeKind, ReadShape
from pz_engine.plan.fusion import ScanIdentity, fuse
from pz_engine.plan.memory_budget import MemoryBudget
from pz_engine.plan.refusals import read_refusals, write_refusals
from pz_engine.plan.specs import connector_config, connector_of, read_hints, read_spec, write_spec
from pz_engine.plan.strategies import ExecutionPlan, NodePlan

_MAX_PARTITIONS = 16


def plan_project(compiled: CompiledProject, effective: frozenset[str] | None = None) -> ExecutionPlan:
    """Plan the whole project.

    Args:
        compiled: a project without problems, connectors known.
        effective: ids of the nodes about to run; None means all of them.

    Raises:
        PzValidationError: every refusal that concerns the effective set.
    """
    problems = ProblemCollector()
    plans: list[NodePlan] = []
    scans: dict[str, ScanIdentity] = {}
    for node in compiled.nodes:
        is_effective = effective is None or node.id in effective
        if isinstance(node, SourceLoadNode):
            plans.append(_plan_read(compiled, node, problems if is_effective else ProblemCollector(), scans))
        elif isinstance(node, PipelineNode):
            kind = "view" if node.materialization is Materialization.VIEW else "table"
            plans.append(
                NodePlan(
                    node.id, NodeKind.PIPELINE, node.name, ExecutionStrategy.DUCK_SQL, f"duckdb sql: {kind} in staging"
                )
            )
        elif isinstance(node, SinkWriteNode):
            plans.append(_plan_write(compiled, node, problems if is_effective else ProblemCollector()))
    _deduplicate(problems)
    problems.raise_if_any()
    plan = ExecutionPlan(tuple(plans), MemoryBudget.of(_engine(compiled)))
    return fuse(compiled, plan, scans)


def _plan_read(
    compiled: CompiledProject, node: SourceLoadNode, problems: ProblemCollector, scans: dict[str, ScanIdentity]
) -> NodePlan:
    connector = connector_of(compiled, node.connection)
    name, engine = connector.info.name, _engine(compiled)
    if not isinstance(connector, SourceConnector):
        problems.add(
            "PZ0301", f"connector '{name}' cannot read; '{node.key}' needs it to", file=node.file, line=node.line
        )
        return _read_plan(node, ExecutionStrategy.ARROW_STREAM, f"arrow stream: {name} cannot read", ReadShape.FULL)
    source = connector.open_source(connector_config(compiled, node.connection))
    try:
        spec = read_spec(node)
        shape = _read_shape(node, source, spec)
        is_native_only = connector.native_only_reads
        for refusal in read_refusals(compiled, node, connector, shape, is_native_only=is_native_only):
            problems.add(refusal.code, refusal.message, file=node.file, line=node.line, hint=refusal.hint)
        if engine.force_universal or "files_per_partition" in node.options:
            why = "engine.force_universal" if engine.force_universal else "files_per_partition"
            return _read_plan(node, ExecutionStrategy.ARROW_STREAM, f"arrow stream: {name}, {why} is set", shape)
        try:
            scan = source.native_scan(spec) if Capability.NATIVE_SCAN in connector.capabilities else None
        except PzConnectorError as error:
            problems.add(error.code or "PZ0353", error.message, file=node.file, line=node.line, hint=error.hint)
            return _read_plan(
                node, ExecutionStrategy.NATIVE_SCAN, f"native scan: {name} refuses: {error.message}", shape
            )
        if scan is None:
            return _read_plan(node, ExecutionStrategy.ARROW_STREAM, f"arrow stream: {name} record batches", shape)
        missing = _missing_extension(scan.setup, engine)
        if missing is not None:
            if is_native_only:
                problems.add(
                    "PZ0311",
                    f"'{node.key}' needs the DuckDB extension '{missing}'",
                    file=node.file,
                    line=node.line,
                    hint=missing_hint(missing),
                )
            return _read_plan(
                node,
                ExecutionStrategy.ARROW_STREAM,
                f"arrow stream: {name}, {missing_hint(missing)} for the native path",
                shape,
            )
        scans[node.id] = ScanIdentity.of(scan)
        planned = _read_plan(node, ExecutionStrategy.NATIVE_SCAN, f"native scan: {name} {scan.mechanism}", shape)
        hints = read_hints(node, connector.capabilities)
        return replace(
            planned,
            columns_pushed=len(hints.columns) if hints.columns is not None else None,
            predicate_pushed=hints.predicate_sql is not None,
        )
    finally:
        source.close()


def _read_shape(node: SourceLoadNode, source: Source, spec: ReadSpec) -> ReadShape:
    if node.mode is SyncMode.CDC:
        return ReadShape.CDC
    if node.incremental is not None:
        return ReadShape.INCREMENTAL
    if isinstance(source, NaturalReadShape) and source.natural_read_shape(spec) == "feed":
        return ReadShape.FEED
    return ReadShape.FULL


def _read_plan(node: SourceLoadNode, strategy: ExecutionStrategy, reason: str, shape: ReadShape) -> NodePlan:
    partitions = 1
    if (
        strategy is ExecutionStrategy.ARROW_STREAM
        and node.options.get("partition_column")
        and node.options.get("partitions")
    ):
        partitions = max(1, min(_MAX_PARTITIONS, int(node.options["partitions"])))
    parts = f", {partitions} partitions" if partitions > 1 else ""
    cursor = f" cursor={node.incremental.cursor}" if node.incremental is not None else ""
    text = f"{reason}{parts} (read={shape.value}{cursor})"
    return NodePlan(node.id, NodeKind.SOURCE_LOAD, node.name, strategy, text, partitions, read_shape=shape)


def _plan_write(compiled: CompiledProject, node: SinkWriteNode, problems: ProblemCollector) -> NodePlan:
    connector = connector_of(compiled, node.connection)
    name, engine = connector.info.name, _engine(compiled)
    universal = NodePlan(
        node.id, NodeKind.SINK_WRITE, node.name, ExecutionStrategy.ARROW_STREAM, f"arrow stream: {name}"
    )
    if not isinstance(connector, SinkConnector):
        problems.add(
            "PZ0301", f"connector '{name}' cannot write; '{node.name}' needs it to", file=node.file, line=node.line
        )
        return universal
    for refusal in write_refusals(compiled, node, connector):
        problems.add(refusal.code, refusal.message, file=node.file, line=node.line, hint=refusal.hint)
    if engine.force_universal:
        return replace(universal, reason=f"arrow stream: {name}, engine.force_universal is set")
    sink = connector.open_sink(connector_config(compiled, node.connection))
    try:
        copy = sink.native_copy(write_spec(node)) if Capability.NATIVE_COPY in connector.capabilities else None
    except PzConnectorError as error:
        problems.add(error.code or "PZ0353", error.message, file=node.file, line=node.line, hint=error.hint)
        return replace(universal, reason=f"native copy: {name} refuses: {error.message}")
    finally:
        sink.close()
    missing = _missing_extension(copy.setup, engine) if copy is not None else None
    if missing is not None:
        if connector.native_only_writes:
            problems.add(
                "PZ0311",
                f"'{node.name}' needs the DuckDB extension '{missing}'",
                file=node.file,
                line=node.line,
                hint=missing_hint(missing),
            )
        return replace(universal, reason=f"arrow stream: {name}, {missing_hint(missing)} for the native path")
    if copy is None:
        return replace(universal, reason=f"arrow stream: {name} record batches")
    reason = f"native copy: {name} {copy.mechanism}, {node.strategy.value}"
    return replace(universal, strategy=ExecutionStrategy.NATIVE_COPY, reason=reason)


def _missing_extension(setup: Sequence[SetupStep], engine: EngineSettings) -> str | None:
    """Return the first extension that a native path needs and nobody installed."""
    if engine.duckdb.allow_extension_download:
        return None
    return next((s.name for s in setup if isinstance(s, ExtensionStep) and not is_available(s.name)), None)


def _deduplicate(problems: ProblemCollector) -> None:
    """Keep one finding per connection, code and message: two nodes of one connection share the cause."""
    problems.errors = list(dict.fromkeys(problems.errors))


def _engine(compiled: CompiledProject) -> EngineSettings:
    if compiled.project is None:
        raise ValueError("a project with problems cannot be planned")
    return compiled.project.engine
