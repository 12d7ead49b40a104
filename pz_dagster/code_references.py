"""Links from an asset to the files that a person would edit.

Paths are absolute in a development process, where an editor opens them, and start at the project anywhere else, since a
deployed location shows nothing of its machine. Code references are beta in Dagster.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from pz_dagster.snapshot import Snapshot
from pz_engine import CheckNode, Diagnostic, Node, PipelineNode, SinkWriteNode

METADATA_KEY = "dagster/code_references"


def code_references(node: Node, snapshot: Snapshot) -> dict[str, Any]:
    """Return the references as metadata: SQL file and sidecar of a pipeline, line in `connections.yml` of an entity."""
    places: list[tuple[str, int | None, str]] = []
    if isinstance(node, CheckNode):
        if node.sidecar is not None:
            places.append((node.sidecar, node.check.line, "sidecar"))
    elif isinstance(node, PipelineNode):
        places.append((node.file, node.line, "SQL"))
        if node.sidecar is not None:
            places.append((node.sidecar, None, "sidecar"))
    else:
        line = node.line if node.line is not None else snapshot.compiled.connections[node.connection].line
        places.append((node.file, line, "connection"))
        if isinstance(node, SinkWriteNode):
            pipeline = snapshot.compiled.graph.by_name[node.pipeline]
            places.append((pipeline.file, pipeline.line, "SQL"))
    return _metadata(places, snapshot.compiled.project_dir)


def problem_references(problems: Sequence[Diagnostic], project_dir: Path) -> dict[str, Any]:
    """Return references to the places of problems as metadata."""
    places = {(problem.file, problem.line): problem.code for problem in problems if problem.file is not None}
    return _metadata([(file, line, code) for (file, line), code in places.items()], project_dir)


def _metadata(places: Sequence[tuple[str, int | None, str]], project_dir: Path) -> dict[str, Any]:
    if not places:
        return {}
    is_dev = bool(os.environ.get("DAGSTER_IS_DEV_CLI"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        references: list[Any] = [
            dg.LocalFileCodeReference(
                file_path=str(project_dir / file) if is_dev else file, line_number=line, label=label
            )
            for file, line, label in places
        ]
        return {METADATA_KEY: dg.CodeReferencesMetadataValue(code_references=references)}
