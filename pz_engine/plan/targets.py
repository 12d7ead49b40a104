"""What the nodes of a project write and open, to find two that would disturb each other.

Two outputs with one final name would silently replace each other, and one DuckDB file cannot be attached twice.
"""

from __future__ import annotations

import os

from msgspec import Struct, field

from pz_engine.compile.dag import CompiledProject, SinkWriteNode, SourceLoadNode
from pz_engine.connectors.fragments import AttachStep, NativeCopy, SetupStep
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.entity import ReadSide, WriteSide


class Targets(Struct):
    """Gathered while planning."""

    outputs: dict[str, list[SinkWriteNode]] = field(default_factory=dict)
    """All sinks of the project by the identity of what they write: the other one may have been written by another run."""

    databases: dict[str, dict[str, SourceLoadNode | SinkWriteNode]] = field(default_factory=dict)
    """Attached files by real path: connection to the first node that uses it."""

    def add_output(self, node: SinkWriteNode, copy: NativeCopy) -> None:
        """Remember what a sink writes."""
        if copy.identity is not None:
            self.outputs.setdefault(copy.identity, []).append(node)

    def add_setup(self, node: SourceLoadNode | SinkWriteNode, setup: tuple[SetupStep, ...]) -> None:
        """Remember the files a node attaches."""
        for step in setup:
            if isinstance(step, AttachStep):
                self.databases.setdefault(os.path.realpath(step.path), {}).setdefault(node.connection, node)


def find_clashes(
    compiled: CompiledProject, targets: Targets, effective: frozenset[str] | None, problems: ProblemCollector
) -> None:
    """Report `PZ0206` for outputs that are one thing, `PZ0301` for connections that open one file.

    Args:
        compiled: the project.
        targets: what its nodes write and open.
        effective: ids of the nodes about to run, None for all; outputs of which none is among them are let alone.
        problems: where to report.
    """
    for nodes in targets.outputs.values():
        names = sorted(node.name for node in nodes)
        if len(names) > 1 and (effective is None or any(node.id in effective for node in nodes)):
            for node in sorted(nodes, key=lambda each: each.name)[1:]:
                file, line = place_of(compiled, node)
                problems.add(
                    "PZ0206",
                    f"outputs {', '.join(names)} are one and the same file or table",
                    file=file,
                    line=line,
                    hint="write to another name, or keep one of the writers",
                )
    for users in targets.databases.values():
        if len(users) > 1:
            names = sorted(users)
            for name in names[1:]:
                problems.add(
                    "PZ0301",
                    f"connections {', '.join(names)} open the same database file; one run can open it once",
                    file="connections.yml",
                    line=compiled.connections[name].line,
                    hint=f"use connection '{names[0]}' for all of it",
                )


def place_of(compiled: CompiledProject, node: SourceLoadNode | SinkWriteNode) -> tuple[str, int | None]:
    """Return the file and line in which a node's side is declared."""
    entity = compiled.connections[node.connection].entities.get(node.entity)
    side: ReadSide | WriteSide | None = None
    if entity is not None:
        side = entity.read if isinstance(node, SourceLoadNode) else entity.write
    return (side.file, side.line) if side is not None else (node.file, node.line)
