"""Compiled declarations to nodes.

Every name in staging is unique in whatever case; edges run through ephemerals.
"""

from __future__ import annotations

from collections.abc import Mapping

from pz_engine.compile.assembly import AssembledPipeline, EntityKey
from pz_engine.compile.dag import (
    CheckNode,
    IncrementalRead,
    PipelineNode,
    PushedHints,
    SinkWriteNode,
    SourceLoadNode,
    WatermarkUse,
)
from pz_engine.compile.node_ids import check_id, pipeline_id, sink_write_id, source_load_id
from pz_engine.compile.pushdown import analyse_reader, combine_hints
from pz_engine.compile.template.calls import RenderedPipeline, SinkCall
from pz_engine.config.connections_file import CONNECTIONS_FILE
from pz_engine.duck.introspect import SqlParser
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.checks import Check, CheckType
from pz_engine.model.connection import Connection
from pz_engine.model.entity import Entity, ReadSide, staging_name
from pz_engine.model.pipeline import Sidecar
from pz_engine.model.policies import Materialization, SyncMode


def build_source_loads(
    pipelines: Mapping[str, AssembledPipeline],
    connections: Mapping[str, Connection],
    incremental: Mapping[EntityKey, IncrementalRead],
    parser: SqlParser,
    problems: ProblemCollector,
) -> dict[EntityKey, SourceLoadNode]:
    """Build a node for every entity that a pipeline reads."""
    readers: dict[EntityKey, list[AssembledPipeline]] = {}
    for pipeline in pipelines.values():
        for key in pipeline.reads:
            readers.setdefault(key, []).append(pipeline)
    nodes: dict[EntityKey, SourceLoadNode] = {}
    taken: dict[str, EntityKey] = {}
    for key in sorted(readers):
        read = _entity(connections, key).read or ReadSide()
        for name in _staging_names(key, read):
            other = taken.setdefault(name.lower(), key)
            if other != key:
                problems.add(
                    "PZ0110", f"entities '{'.'.join(other)}' and '{'.'.join(key)}' both become {name} in staging",
                    file=read.file, line=read.line, hint="rename one of the connections, or read only one of the two",
                )  # fmt: skip
        nodes[key] = _source_load(key, read, incremental.get(key), readers[key], parser)
    for name in sorted(pipelines):
        if name.lower() in taken:
            entity = ".".join(taken[name.lower()])
            problems.add(
                "PZ0230", f"pipeline '{name}' is called like a staging relation of '{entity}'", file=pipelines[name].file,
                hint="rename the pipeline's file",
            )  # fmt: skip
    return nodes


def refuse_equal_names(pipelines: Mapping[str, RenderedPipeline], problems: ProblemCollector) -> None:
    """Refuse pipelines, ephemerals included, whose names differ only in case (`PZ0110`)."""
    seen: dict[str, str] = {}
    for name in sorted(pipelines):
        other = seen.setdefault(name.lower(), name)
        if other != name:
            problems.add(
                "PZ0110", f"pipelines '{other}' and '{name}' differ only in case", file=pipelines[name].file.file,
                hint="rename one of the files",
            )  # fmt: skip


def build_pipeline_nodes(
    pipelines: Mapping[str, AssembledPipeline],
    sidecars: Mapping[str, Sidecar],
    sources: Mapping[EntityKey, SourceLoadNode],
) -> dict[str, PipelineNode]:
    """Build a node for every pipeline that is not ephemeral."""
    ids = {
        name: pipeline_id(name, _materialization(sidecars, name), pipeline.sql) for name, pipeline in pipelines.items()
    }
    nodes: dict[str, PipelineNode] = {}
    for name, pipeline in pipelines.items():
        sidecar = sidecars.get(name)
        depends_on = {sources[key].id for key in pipeline.reads} | {ids[ref] for ref in pipeline.refs}
        nodes[name] = PipelineNode(
            id=ids[name],
            name=name,
            depends_on=tuple(sorted(depends_on)),
            file=pipeline.file,
            line=1,
            sql=pipeline.sql,
            source_text=pipeline.rendered.file.text,
            materialization=_materialization(sidecars, name),
            is_materialization_explicit=sidecar is not None and sidecar.is_materialization_explicit,
            tags=sidecar.tags if sidecar is not None else (),
            sidecar=sidecar.file if sidecar is not None else None,
            watermarks=tuple(_watermark_use(pipeline, sentinel) for sentinel in pipeline.used_sentinels),
        )
    return nodes


def build_check_nodes(sidecars: Mapping[str, Sidecar], pipelines: Mapping[str, PipelineNode]) -> list[CheckNode]:
    """Build a node for every check; a repeated name gets a number."""
    nodes: list[CheckNode] = []
    taken: set[str] = set()
    for pipeline in pipelines.values():
        sidecar = sidecars.get(pipeline.name)
        for check in sidecar.checks if sidecar is not None else ():
            name = _free_name(_check_name(pipeline.name, check), taken)
            taken.add(name)
            nodes.append(
                CheckNode(
                    id=check_id(pipeline.name, check),
                    name=name,
                    depends_on=(pipeline.id,),
                    file=pipeline.file,
                    pipeline=pipeline.name,
                    check=check,
                    sidecar=pipeline.sidecar,
                )
            )
    return nodes


def build_sink_nodes(
    pipelines: Mapping[str, AssembledPipeline],
    nodes: Mapping[str, PipelineNode],
    connections: Mapping[str, Connection],
) -> list[tuple[SinkWriteNode, SinkCall]]:
    """Build a node for every output, with the call that binds it."""
    found: list[tuple[SinkWriteNode, SinkCall]] = []
    for pipeline in pipelines.values():
        for call in pipeline.rendered.calls.sinks:
            write = _entity(connections, (call.connection, call.entity)).write
            assert write is not None
            node = SinkWriteNode(
                id=sink_write_id(call.connection, call.entity, pipeline.name, write),
                name=f"{call.connection}.{call.entity}",
                depends_on=(nodes[pipeline.name].id,),
                file=CONNECTIONS_FILE,
                line=write.line if write.file == CONNECTIONS_FILE else None,
                connection=call.connection,
                entity=call.entity,
                pipeline=pipeline.name,
                strategy=write.strategy,
                schema_policy=write.schema_policy,
                keys=write.keys,
                accepts_duplicates=write.accepts_duplicates,
                on_delete=write.on_delete,
                options=write.options,
                retry=write.retry,
            )
            found.append((node, call))
    return found


def _source_load(
    key: EntityKey,
    read: ReadSide,
    incremental: IncrementalRead | None,
    readers: list[AssembledPipeline],
    parser: SqlParser,
) -> SourceLoadNode:
    name = staging_name(*key)
    mode = read.sync.mode if read.sync is not None else SyncMode.AUTO
    cursor = incremental.cursor if incremental is not None else None
    hints = PushedHints()
    if mode is not SyncMode.CDC:
        columns = tuple(read.columns or ())
        found = [analyse_reader(parser.parse(reader.sql), name, cursor, columns, parser) for reader in readers]
        hints = combine_hints(found, cursor)
    return SourceLoadNode(
        id=source_load_id(*key, read.options, read.columns, hints),
        name=name,
        depends_on=(),
        file=CONNECTIONS_FILE,
        line=read.line if read.file == CONNECTIONS_FILE else None,
        connection=key[0],
        entity=key[1],
        options=read.options,
        columns=read.columns,
        mode=SyncMode.INCREMENTAL if incremental is not None else mode,
        is_mode_explicit=read.sync is not None,
        incremental=incremental,
        hints=hints,
        retry=read.retry,
    )


def _staging_names(key: EntityKey, read: ReadSide) -> list[str]:
    """Return the relations that loading an entity makes in staging."""
    name = staging_name(*key)
    is_captured = read.sync is not None and read.sync.mode is SyncMode.CDC
    return [name, f"{name}__changes", f"{name}__deletes"] if is_captured else [name]


def _entity(connections: Mapping[str, Connection], key: EntityKey) -> Entity:
    return connections[key[0]].entities.get(key[1], Entity(key[1]))


def _materialization(sidecars: Mapping[str, Sidecar], name: str) -> Materialization:
    sidecar = sidecars.get(name)
    return sidecar.materialization if sidecar is not None else Materialization.TABLE


def _watermark_use(pipeline: AssembledPipeline, sentinel: str) -> WatermarkUse:
    call, _ = pipeline.watermarks[sentinel]
    return WatermarkUse(sentinel=sentinel, connection=call.connection, entity=call.entity)


def _check_name(pipeline: str, check: Check) -> str:
    if check.type is CheckType.CUSTOM_SQL:
        return f"check_{pipeline}_{check.options['name']}"
    return "_".join(["check", pipeline, check.type.value, *check.columns])


def _free_name(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
