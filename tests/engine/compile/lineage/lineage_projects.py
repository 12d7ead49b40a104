"""Compiled projects of one query, without files."""

from __future__ import annotations

from pathlib import Path

from pz_engine.compile.dag import CompiledProject, Graph, Node, PipelineNode, SourceLoadNode
from pz_engine.compile.lineage.project import trace_project
from pz_engine.compile.lineage.values import PipelineLineage
from pz_engine.model.run import ColumnType

Types = dict[str, str]


def source(name: str, contract: Types | None = None) -> SourceLoadNode:
    return SourceLoadNode(
        id=f"id_{name}", name=name, depends_on=(), file="connections.yml", connection="c", entity=name, columns=contract
    )


def pipeline(name: str, sql: str, *parents: Node) -> PipelineNode:
    depends_on = tuple(sorted(parent.id for parent in parents))
    return PipelineNode(
        id=f"id_{name}", name=name, depends_on=depends_on, file=f"pipelines/{name}.sql", sql=sql, source_text=sql
    )


def trace(sql: str, tables: dict[str, Types | None]) -> PipelineLineage:
    """Trace one query over sources; a source without types has unknown columns."""
    sources = [source(name) for name in tables if f"staging.{name}" in sql]
    schemas = {
        f"c.{name}": tuple(ColumnType(column, kind) for column, kind in types.items())
        for name, types in tables.items()
        if types is not None
    }
    nodes = (*sources, pipeline("p", sql, *sources))
    (found,) = trace_project(CompiledProject(Path(), Path(".pz"), None, graph=Graph(nodes)), schemas)
    return found


def written(lineage: PipelineLineage) -> list[str]:
    """Spell lineage as the fixtures do."""
    return [
        f"{column.name}: "
        + ("?" if column.sources is None else " ".join(f"{source.node}.{source.column}" for source in column.sources))
        for column in lineage.columns
    ]
