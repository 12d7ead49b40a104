"""A compiled project on disk, so that definitions load without compiling.

`.pz/target/dagster.json` holds what definitions need and nothing secret: no connection configuration, no resolved
variable. Its fingerprint covers every file that compile reads.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Snapshot:
    """What definitions are built from."""

    fingerprint: str
    compiled: CompiledProject
    """Graph, flows, warnings and problems; connections carry their connector's name only."""

    project_name: str
    incremental: Mapping[str, str]
    """Cursor column of every incremental source load, by node id."""


def fingerprint(project_dir: Path, variables: Mapping[str, Any]) -> str:
    """Hash everything that decides what a project compiles to, environment excepted."""
    digest = hashlib.sha256()
    for path in _inputs(project_dir):
        digest.update(path.relative_to(project_dir).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update(json.dumps([dict(variables), __version__, SCHEMA_VERSION], sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _inputs(project_dir: Path) -> list[Path]:
    single = [project_dir / name for name in ("project.yml", "connections.yml", "pz.lock.json")]
    pipelines = project_dir / "pipelines"
    found = [path for path in single if path.is_file()]
    if pipelines.is_dir():
        found.extend(path for path in pipelines.rglob("*.sql") if path.is_file())
        found.extend((pipelines / "configs").glob("*.yml"))
    return sorted(found)


def take(compiled: CompiledProject, mark: str) -> Snapshot:
    """Reduce a compiled project to what definitions may know."""
    name = compiled.project.name if compiled.project is not None else compiled.project_dir.name
    bare = dataclasses.replace(
        compiled,
        connections={
            key: Connection(name=key, connector=connection.connector)
            for key, connection in compiled.connections.items()
        },
    )
    incremental = {
        node.id: node.incremental.cursor
        for node in compiled.nodes
        if isinstance(node, SourceLoadNode) and node.incremental is not None
    }
    return Snapshot(mark, bare, name, incremental)


def to_json(snapshot: Snapshot) -> bytes:
    """Serialize with stable bytes."""
    compiled = snapshot.compiled
    document = {
        "schema_version": SCHEMA_VERSION,
        "engine_version": __version__,
        "fingerprint": snapshot.fingerprint,
        "project": snapshot.project_name,
        "connections": {key: connection.connector for key, connection in sorted(compiled.connections.items())},
        "nodes": [_node_document(node, snapshot) for node in compiled.nodes],
        "flows": [list(flow.node_ids) for flow in compiled.flows],
        "warnings": [_diagnostic_document(each) for each in compiled.warnings],
        "problems": [_diagnostic_document(each) for each in compiled.problems],
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def from_json(content: bytes, project_dir: Path) -> Snapshot | None:
    """Read a snapshot; None when it is of another version or unreadable."""
    try:
        document = json.loads(content)
        if document["schema_version"] != SCHEMA_VERSION or document["engine_version"] != __version__:
            return None
        nodes = tuple(_read_node(each) for each in document["nodes"])
        compiled = CompiledProject(
            project_dir,
            Project(document["project"], ""),
            {key: Connection(name=key, connector=connector) for key, connector in document["connections"].items()},
            Graph(nodes),
            tuple(Flow("", tuple(ids)) for ids in document["flows"]),
            problems=tuple(Diagnostic(**each) for each in document["problems"]),
            warnings=tuple(Diagnostic(**each) for each in document["warnings"]),
        )
        incremental = {each["id"]: each["cursor"] for each in document["nodes"] if "cursor" in each}
        return Snapshot(document["fingerprint"], compiled, document["project"], incremental)
    except (ValueError, KeyError, TypeError):
        return None


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
            options={
                key: value for key, value in node.check.options.items() if key in ("min", "max", "max_age", "name")
            },
            sidecar=node.sidecar,
        )
    else:
        document.update(
            connection=node.connection,
            entity=node.entity,
            pipeline=node.pipeline,
            strategy=node.strategy.value,
            keys=list(node.keys),
        )
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
            check = Check(CheckType(document["type"]), tuple(document["columns"]), document["options"])
            return CheckNode(**common, pipeline=document["pipeline"], check=check, sidecar=document["sidecar"])
        case _:
            return SinkWriteNode(
                **common,
                connection=document["connection"],
                entity=document["entity"],
                pipeline=document["pipeline"],
                strategy=Strategy(document["strategy"]),
                keys=tuple(document["keys"]),
            )
