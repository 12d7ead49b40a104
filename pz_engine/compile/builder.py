"""Project files to a compiled graph, stage by stage.

Each stage looks at everything before it raises, and the next one runs only when it found nothing wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from pz_engine.base.state_folder import STATE_FOLDER
from pz_engine.compile.assembly import AssembledPipeline, assemble
from pz_engine.compile.bind_growth import refuse_growth
from pz_engine.compile.bindings import effective_connections
from pz_engine.compile.cut_rows import warn_about_cut_rows
from pz_engine.compile.dag import CompiledProject, Graph, Node, PipelineNode
from pz_engine.compile.entity_rules import check_entities
from pz_engine.compile.flows import find_flows
from pz_engine.compile.incremental import infer_incremental_reads
from pz_engine.compile.insert_prefix import cut_insert_prefix
from pz_engine.compile.node_builder import (
    build_check_nodes,
    build_pipeline_nodes,
    build_sink_nodes,
    build_source_loads,
    refuse_equal_names,
)
from pz_engine.compile.pairing import check_pairs, is_unused
from pz_engine.compile.references import check_bindings, check_references, check_sink_calls
from pz_engine.compile.template.calls import RenderedPipeline
from pz_engine.compile.template.renderer import render_pipelines
from pz_engine.compile.topological_order import order_nodes
from pz_engine.config.loader import ProjectFiles
from pz_engine.duck.introspect import SqlParser
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.connection import Connection
from pz_engine.model.policies import Materialization


class RunIdentity(Struct, frozen=True):
    """What `run_id` and `run_started_at` say; one value for a whole invocation."""

    run_id: str
    started_at: datetime


def compile_files(
    files: ProjectFiles, *, env: Mapping[str, str], identity: RunIdentity, parser: SqlParser | None = None
) -> CompiledProject:
    """Compile a loaded project; touches no data and no network.

    Args:
        files: the project as loaded.
        env: snapshot of the environment, for `env()`.
        identity: id and time of this invocation.
        parser: what to parse with; a new one without it.

    Raises:
        PzValidationError: every problem of the first stage that found one.
    """
    own = parser or SqlParser()
    try:
        return _Compiler(files, env, identity, own).compile()
    finally:
        own.close()


class _Compiler:
    def __init__(self, files: ProjectFiles, env: Mapping[str, str], identity: RunIdentity, parser: SqlParser) -> None:
        self._files = files
        self._env = env
        self._identity = identity
        self._parser = parser
        self._problems = ProblemCollector()
        self._notes: list[str] = []
        self._ephemerals = frozenset(
            name
            for name, sidecar in files.sidecars.items()
            if sidecar.materialization is Materialization.EPHEMERAL
        )  # fmt: skip

    def compile(self) -> CompiledProject:
        rendered = self._render()
        queries = self._queries(rendered)
        connections = self._declarations(rendered)
        pipelines = assemble(
            {pipeline.name: pipeline for pipeline in rendered}, queries, self._ephemerals, self._parser, self._problems
        )
        incremental = infer_incremental_reads(pipelines, connections, self._parser, self._problems)
        self._problems.raise_if_any()
        self._notes += incremental.notes
        sources = build_source_loads(pipelines, connections, incremental.by_entity, self._parser, self._problems)
        refuse_equal_names({pipeline.name: pipeline for pipeline in rendered}, self._problems)
        self._problems.raise_if_any()
        nodes = build_pipeline_nodes(pipelines, self._files.sidecars, sources)
        checks = build_check_nodes(self._files.sidecars, nodes)
        sinks = build_sink_nodes(pipelines, nodes, connections)
        every: list[Node] = [*sources.values(), *nodes.values(), *checks, *(node for node, _ in sinks)]
        places: dict[str, tuple[str, int | None]] = {
            node.id: (pipelines[node.pipeline].file, call.line) for node, call in sinks
        }  # fmt: skip
        check_pairs(Graph(tuple(every)), places, self._problems, self._notes)
        self._problems.raise_if_any()
        graph = Graph(order_nodes(every, self._problems))
        self._problems.raise_if_any()
        refuse_growth(graph, self._parser, self._problems)
        self._problems.raise_if_any()
        self._warn(graph, pipelines)
        warn_about_cut_rows(pipelines, incremental.by_entity, self._parser, self._problems)
        return CompiledProject(
            project_dir=self._files.project_dir,
            state_dir=self._files.project_dir / STATE_FOLDER,
            project=self._files.project,
            connections=connections,
            graph=graph,
            flows=find_flows(graph),
            ephemerals=tuple(sorted(self._ephemerals)),
            warnings=(*self._files.warnings, *self._problems.warnings),
            notes=tuple(self._notes),
        )

    def _render(self) -> tuple[RenderedPipeline, ...]:
        rendered = render_pipelines(
            self._files.pipelines,
            ephemerals=self._ephemerals,
            variables=self._files.project.vars,
            env=self._env,
            run_id=self._identity.run_id,
            started_at=self._identity.started_at,
            problems=self._problems,
        )
        self._problems.raise_if_any()
        return rendered

    def _queries(self, rendered: tuple[RenderedPipeline, ...]) -> dict[str, str]:
        check_sink_calls(rendered, self._ephemerals, self._problems)
        queries = {pipeline.name: cut_insert_prefix(pipeline, self._problems) for pipeline in rendered}
        self._problems.raise_if_any()
        return queries

    def _declarations(self, rendered: tuple[RenderedPipeline, ...]) -> dict[str, Connection]:
        connections = effective_connections(self._files.connections, rendered, self._problems)
        self._problems.raise_if_any()
        connections = check_entities(connections, self._problems, self._notes)
        check_references(rendered, connections, self._ephemerals, self._files.sidecars, self._problems)
        self._problems.raise_if_any()
        check_bindings(rendered, connections, self._problems)
        self._problems.raise_if_any()
        return connections

    def _warn(self, graph: Graph, pipelines: Mapping[str, AssembledPipeline]) -> None:
        for node in graph.nodes:
            if isinstance(node, PipelineNode) and is_unused(graph, node):
                self._problems.warn(
                    "PZ0223", f"pipeline '{node.name}' has no sink and no consumer", file=node.file,
                    hint="add a sink() or a ref(), or leave it while you explore",
                )  # fmt: skip
        for name in sorted(pipelines):
            if pipelines[name].uses_run_identity:
                self._problems.warn(
                    "PZ0232", f"pipeline '{name}' holds the run's id or time in its SQL, so its id changes every time",
                    file=pipelines[name].file, hint="expect it to be built anew in every run",
                )  # fmt: skip
