"""Artifacts of a compile: the manifest and each pipeline's SQL.

They hold no clock, no environment and no configuration of a connection.
"""

from __future__ import annotations

from typing import Any

from pz_engine.compile.dag import CompiledProject, Node, PipelineNode, SinkWriteNode, SourceLoadNode


def build_manifest(compiled: CompiledProject, selected: frozenset[str] | None = None) -> dict[str, Any]:
    """Return the manifest; with a selection only its nodes, whose dependencies may name others."""
    assert compiled.project is not None
    return {
        "project": compiled.project.name,
        "version": compiled.project.version,
        "generatedBy": "pz",
        "nodes": [manifest_node(node) for node in compiled.nodes if selected is None or node.id in selected],
    }


def manifest_node(node: Node) -> dict[str, Any]:
    """Return a node's entry."""
    return {
        "id": node.id,
        "kind": node.kind.snake_case,
        "name": node.name,
        "dependsOn": list(node.depends_on),
        "tags": list(node.tags) if isinstance(node, PipelineNode) else [],
        "file": node.file,
    }


def compiled_sql_text(compiled: CompiledProject, node: PipelineNode) -> str:
    """Return the file of a pipeline's compiled SQL: header lines that say what surrounds it, then the SQL."""
    incremental = []
    for parent in node.depends_on:
        source = compiled.graph.by_id[parent]
        if isinstance(source, SourceLoadNode) and source.incremental and source.incremental.is_declared_in_sql:
            incremental.append(f"-- incremental: {source.key} (cursor {source.incremental.cursor}, declared in SQL)")
    outputs = []
    for child in compiled.graph.children[node.id]:
        sink = compiled.graph.by_id[child]
        if isinstance(sink, SinkWriteNode):
            file_format = sink.options.get("format")
            prefix = f"{file_format}, " if isinstance(file_format, str) else ""
            outputs.append(f"-- output: {sink.connection}.{sink.entity} ({prefix}{sink.strategy.value})")
    return "\n".join([*sorted(incremental), *sorted(outputs), node.sql]) + "\n"
