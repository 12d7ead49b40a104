"""The nodes of a project, as `pz ls` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.app.open_project import open_project
from pz_engine.app.selecting import select_nodes
from pz_engine.compile.dag import PipelineNode
from pz_engine.compile.manifest import build_manifest
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzValidationError


class ListedNode(Struct, frozen=True):
    """One row."""

    kind: str
    name: str
    tags: tuple[str, ...]


class ListReport(Struct, frozen=True):
    """What listing found."""

    problems: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    nodes: tuple[ListedNode, ...] = ()
    documents: tuple[Mapping[str, Any], ...] = ()
    """The same nodes as the manifest writes them."""


def list_nodes(
    project_dir: Path,
    *,
    vars: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    env: Mapping[str, str] | None = None,
    expression: str | None = None,
) -> ListReport:
    """List the selected nodes in topological order; problems are values."""
    try:
        compiled = open_project(project_dir, vars=vars, env=env)
        selected = select_nodes(compiled, expression)
    except PzValidationError as error:
        return ListReport(problems=error.errors)
    nodes = tuple(
        ListedNode(node.kind.snake_case, node.name, node.tags if isinstance(node, PipelineNode) else ())
        for node in compiled.nodes
        if node.id in selected
    )
    documents = tuple(build_manifest(compiled, selected)["nodes"])
    return ListReport(warnings=compiled.warnings, notes=compiled.notes, nodes=nodes, documents=documents)
