"""A snapshot as a file: `.pz/target/dagster.json`.

Its bytes follow from the project alone, it is written aside and renamed, and a file of another version is no snapshot.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pz_dagster.lineage import trace_columns
from pz_dagster.snapshot import Snapshot
from pz_engine import (
    Check,
    CheckNode,
    CheckType,
    CompiledProject,
    Connection,
    Diagnostic,
    Flow,
    Graph,
    Materialization,
    Node,
    PipelineNode,
    Project,
    SinkWriteNode,
    SourceLoadNode,
    Strategy,
    __version__,
)

SCHEMA_VERSION = 3
_TEXT_FORMATS = frozenset({"csv", "tsv", "json", "jsonl", "ndjson"})
_COMPRESSIONS = (".gz", ".zst", ".bz2")
_HAVE_OWN_TYPES = frozenset({"http", "duckdb"})
"""Connectors whose reads have types whatever their paths end in."""

_SHOWN_CHECK_OPTIONS = ("min", "max", "max_age", "name")
"""Options of a check that hold a bound or a name; accepted values and SQL stay out."""


def take(compiled: CompiledProject, mark: str) -> bytes:
    """Write down what definitions may know of a compiled project."""
    loads = [node for node in compiled.nodes if isinstance(node, SourceLoadNode)]
    reads = {node.id: node.incremental for node in loads if node.incremental is not None}
    project = compiled.project
    return to_json(
        Snapshot(
            mark,
            compiled,
            project.name if project is not None else compiled.project_dir.name,
            {key: read.cursor for key, read in reads.items()},
            cursor_types={key: read.cursor_type for key, read in reads.items() if read.cursor_type is not None},
            stopping=frozenset(key for key, read in reads.items() if read.window is not None and read.window.until),
            sliced=frozenset(
                node.id for node in compiled.nodes if isinstance(node, SinkWriteNode) and "partition_by" in node.options
            ),
            drift_policy=project.on_source_drift.value if project is not None else "ignore",
            inferring=frozenset(node.id for node in loads if _is_inferred(node, compiled)),
            lineage=trace_columns(compiled),
        )
    )


def write(path: Path, content: bytes) -> None:
    """Replace the file in one step.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def to_json(snapshot: Snapshot) -> bytes:
    """Serialize with stable bytes."""
    compiled = snapshot.compiled
    document = {
        "schema_version": SCHEMA_VERSION,
        "engine_version": __version__,
        "fingerprint": snapshot.fingerprint,
        "project": snapshot.project_name,
        "connections": {
            key: {"connector": connection.connector, "line": connection.line}
            for key, connection in sorted(compiled.connections.items())
        },
        "drift": snapshot.drift_policy,
        "nodes": [_node_document(node, snapshot) for node in compiled.nodes],
        "flows": [list(flow.node_ids) for flow in compiled.flows],
        "lineage": {
            pipeline: {
                column: None if found is None else [list(pair) for pair in found] for column, found in columns.items()
            }
            for pipeline, columns in snapshot.lineage.items()
        },
        "warnings": [_diagnostic_document(each) for each in compiled.warnings],
        "problems": [_diagnostic_document(each) for each in compiled.problems],
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def from_json(content: bytes, project_dir: Path, state_dir: Path) -> Snapshot | None:
    """Read a snapshot; None when it is of another version or unreadable."""
    try:
        document = json.loads(content)
        if document["schema_version"] != SCHEMA_VERSION or document["engine_version"] != __version__:
            return None
        nodes = tuple(_read_node(each) for each in document["nodes"])
        compiled = CompiledProject(
            project_dir,
            state_dir,
            Project(document["project"], ""),
            {key: Connection(name=key, **each) for key, each in document["connections"].items()},
            Graph(nodes),
            tuple(Flow("", tuple(ids)) for ids in document["flows"]),
            problems=tuple(Diagnostic(**each) for each in document["problems"]),
            warnings=tuple(Diagnostic(**each) for each in document["warnings"]),
        )
        listed = document["nodes"]
        return Snapshot(
            document["fingerprint"],
            compiled,
            document["project"],
            {each["id"]: each["cursor"] for each in listed if "cursor" in each},
            cursor_types={each["id"]: each["cursor_type"] for each in listed if "cursor_type" in each},
            stopping=frozenset(each["id"] for each in listed if each.get("stops")),
            sliced=frozenset(each["id"] for each in listed if each.get("sliced")),
            drift_policy=document["drift"],
            inferring=frozenset(each["id"] for each in listed if each.get("is_inferred")),
            lineage={
                pipeline: {
                    column: None if found is None else tuple((node, name) for node, name in found)
                    for column, found in columns.items()
                }
                for pipeline, columns in document["lineage"].items()
            },
        )
    except (ValueError, KeyError, TypeError):
        return None


def _is_inferred(node: SourceLoadNode, compiled: CompiledProject) -> bool:
    """Tell whether a load reads text files without a contract."""
    if node.columns or compiled.connections[node.connection].connector in _HAVE_OWN_TYPES:
        return False
    if (
        compiled.project is not None and compiled.project.engine.force_universal
    ) or "files_per_partition" in node.options:
        return False  # read in batches, whose types nobody doubts afterwards
    path = str(node.options.get("path", node.entity)).lower()
    for ending in _COMPRESSIONS:
        path = path.removesuffix(ending)
    return str(node.options.get("format", path.rpartition(".")[2])) in _TEXT_FORMATS


def _diagnostic_document(problem: Diagnostic) -> dict[str, Any]:
    return {
        "code": problem.code,
        "message": problem.message,
        "file": problem.file,
        "line": problem.line,
        "hint": problem.hint,
    }


def _node_document(node: Node, snapshot: Snapshot) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": node.kind.value,
        "id": node.id,
        "name": node.name,
        "depends_on": list(node.depends_on),
        "file": node.file,
        "line": node.line,
    }
    if isinstance(node, SourceLoadNode):
        document.update(
            connection=node.connection, entity=node.entity, columns=dict(node.columns) if node.columns else None
        )
        if node.id in snapshot.incremental:
            document["cursor"] = snapshot.incremental[node.id]
        if node.id in snapshot.cursor_types:
            document["cursor_type"] = snapshot.cursor_types[node.id]
        if node.id in snapshot.stopping:
            document["stops"] = True
        if node.id in snapshot.inferring:
            document["is_inferred"] = True
    elif isinstance(node, PipelineNode):
        document.update(
            source_text=node.source_text,
            materialization=node.materialization.value,
            tags=list(node.tags),
            sidecar=node.sidecar,
        )
    elif isinstance(node, CheckNode):
        document.update(
            pipeline=node.pipeline,
            type=node.check.type.value,
            columns=list(node.check.columns),
            options={key: value for key, value in node.check.options.items() if key in _SHOWN_CHECK_OPTIONS},
            sidecar=node.sidecar,
            check_line=node.check.line,
        )
    else:
        document.update(
            connection=node.connection,
            entity=node.entity,
            pipeline=node.pipeline,
            strategy=node.strategy.value,
            keys=list(node.keys),
            accepts_duplicates=node.accepts_duplicates,
        )
        if node.id in snapshot.sliced:
            document["sliced"] = True
    return document


def _read_node(document: Mapping[str, Any]) -> Node:
    common: dict[str, Any] = {
        "id": document["id"],
        "name": document["name"],
        "depends_on": tuple(document["depends_on"]),
        "file": document["file"],
        "line": document["line"],
    }
    match document["kind"]:
        case "SourceLoad":
            return SourceLoadNode(
                **common, connection=document["connection"], entity=document["entity"], columns=document["columns"]
            )
        case "Pipeline":
            return PipelineNode(
                **common,
                sql="",
                source_text=document["source_text"],
                materialization=Materialization(document["materialization"]),
                tags=tuple(document["tags"]),
                sidecar=document["sidecar"],
            )
        case "Check":
            check = Check(
                CheckType(document["type"]),
                tuple(document["columns"]),
                document["options"],
                line=document["check_line"],
            )
            return CheckNode(**common, pipeline=document["pipeline"], check=check, sidecar=document["sidecar"])
        case _:
            return SinkWriteNode(
                **common,
                connection=document["connection"],
                entity=document["entity"],
                pipeline=document["pipeline"],
                strategy=Strategy(document["strategy"]),
                keys=tuple(document["keys"]),
                accepts_duplicates=document["accepts_duplicates"],
            )
