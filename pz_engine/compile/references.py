"""Checks of what pipelines refer to: connections, pipelines, outputs, and what an ephemeral may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pz_engine.base.near_miss import did_you_mean
from pz_engine.compile.template.calls import RenderedPipeline, SinkCall
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.connection import Connection
from pz_engine.model.pipeline import Sidecar


def check_sink_calls(
    pipelines: Sequence[RenderedPipeline], ephemerals: frozenset[str], problems: ProblemCollector
) -> None:
    """Refuse sinks of ephemerals, and one output twice in one pipeline (`PZ0208`)."""
    for pipeline in pipelines:
        sinks = pipeline.calls.sinks
        if sinks and pipeline.name in ephemerals:
            problems.add(
                "PZ0208", f"pipeline '{pipeline.name}' is ephemeral and cannot have a sink()", file=pipeline.file.file,
                line=sinks[0].line, hint="write materialization: table or view, or remove the sink",
            )  # fmt: skip
        seen: set[tuple[str, str]] = set()
        for sink in sinks:
            if (sink.connection, sink.entity) in seen:
                problems.add(
                    "PZ0208", f"pipeline '{pipeline.name}' writes '{sink.connection}.{sink.entity}' twice",
                    file=pipeline.file.file, line=sink.line, hint="remove one of the two calls",
                )  # fmt: skip
            seen.add((sink.connection, sink.entity))


def check_references(
    pipelines: Sequence[RenderedPipeline],
    connections: Mapping[str, Connection],
    ephemerals: frozenset[str],
    sidecars: Mapping[str, Sidecar],
    problems: ProblemCollector,
) -> None:
    """Report unknown connections and pipelines, checks on ephemerals, and chains of ephemerals."""
    names = {pipeline.name for pipeline in pipelines}
    for pipeline in pipelines:
        for source in pipeline.calls.sources:
            if source.connection not in connections:
                _unknown_connection(pipeline, "source", source.connection, source.line, connections, problems)
        for ref in pipeline.calls.refs:
            if ref.pipeline not in names:
                problems.add(
                    "PZ0201", f"pipeline '{pipeline.name}' reads ref('{ref.pipeline}'), which does not exist",
                    file=pipeline.file.file, line=ref.line,
                    hint=did_you_mean(ref.pipeline, names - {pipeline.name}) or f"create pipelines/{ref.pipeline}.sql",
                )  # fmt: skip
            elif pipeline.name in ephemerals and ref.pipeline in ephemerals:
                problems.add(
                    "PZ0204", f"ephemeral pipeline '{pipeline.name}' refers to ephemeral pipeline '{ref.pipeline}'",
                    file=pipeline.file.file, line=ref.line, hint=f"write materialization: view for {ref.pipeline}",
                )  # fmt: skip
    for name in sorted(ephemerals):
        sidecar = sidecars[name]
        if sidecar.checks:
            problems.add(
                "PZ0205", f"ephemeral pipeline '{name}' has checks, but no rows of its own", file=sidecar.file,
                line=sidecar.checks[0].line, hint="write materialization: view, or remove the checks",
            )  # fmt: skip


def check_bindings(
    pipelines: Sequence[RenderedPipeline], connections: Mapping[str, Connection], problems: ProblemCollector
) -> None:
    """Report sinks into unknown connections, and outputs that several pipelines write."""
    claims: dict[tuple[str, str], list[tuple[RenderedPipeline, SinkCall]]] = {}
    for pipeline in pipelines:
        for sink in pipeline.calls.sinks:
            if sink.connection not in connections:
                _unknown_connection(pipeline, "sink", sink.connection, sink.line, connections, problems)
            claims.setdefault((sink.connection, sink.entity), []).append((pipeline, sink))
    for (connection, entity), claimants in sorted(claims.items()):
        if len(claimants) > 1:
            names = ", ".join(sorted(f"'{pipeline.name}'" for pipeline, _ in claimants))
            pipeline, sink = max(claimants, key=lambda claim: claim[0].name)
            problems.add(
                "PZ0206", f"output '{connection}.{entity}' is written by several pipelines: {names}",
                file=pipeline.file.file, line=sink.line, hint="keep one writer, and join the others into it with ref()",
            )  # fmt: skip


def _unknown_connection(
    pipeline: RenderedPipeline,
    function: str,
    name: str,
    line: int,
    connections: Mapping[str, Connection],
    problems: ProblemCollector,
) -> None:
    problems.add(
        "PZ0201", f"pipeline '{pipeline.name}': {function}() names connection '{name}', which does not exist",
        file=pipeline.file.file, line=line, hint=did_you_mean(name, connections) or f"declare {name} in connections.yml",
    )  # fmt: skip
