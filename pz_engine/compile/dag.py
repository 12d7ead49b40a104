"""The compiled graph: nodes, edges and what can be asked of them.

Nodes are in topological order; a dependency list is sorted by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from pz_engine.base.hidden_values import HiddenValues
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.model.checks import Check
from pz_engine.model.connection import Connection
from pz_engine.model.policies import Materialization, OnDelete, RetryDeclaration, SchemaPolicy, Strategy, SyncMode
from pz_engine.model.project import Project
from pz_engine.model.run import NodeKind


class Window(Struct, frozen=True):
    """A bounded window, canonical texts (`until` may be the word `now`)."""

    max_window: str
    initial: str
    until: str | None = None


class Floor(Struct, frozen=True):
    """One recognised `watermark()` comparison."""

    pipeline: str
    is_inclusive: bool
    value_sql: str
    """The value side as DuckDB SQL, with the sentinel literal still in it."""

    keeps_null_cursor: bool = False
    """The author wrote `… OR <cursor> IS NULL`; then no floor is pushed into extraction."""


class IncrementalRead(Struct, frozen=True):
    """How an entity is read incrementally."""

    cursor: str
    cursor_type: str | None
    """`int`, `bigint`, `decimal`, `date` or `timestamp` when declared, else None until the first run."""

    is_declared_in_sql: bool = False
    floors: tuple[Floor, ...] = ()
    """Empty for an entity declared in YAML."""

    window: Window | None = None


class PushedHints(Struct, frozen=True):
    """What is hashed into the id and handed to a connector that can prune."""

    columns: tuple[str, ...] | None = None
    predicate_sql: str | None = None

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is pushed."""
        return self.columns is None and self.predicate_sql is None


class _NodeBase(Struct, frozen=True, kw_only=True):
    """What every node has."""

    id: str
    name: str
    depends_on: tuple[str, ...]
    file: str
    line: int | None = None


class SourceLoadNode(_NodeBase, frozen=True, kw_only=True):
    """Lands one entity as `staging.<name>`."""

    connection: str
    entity: str
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    columns: Mapping[str, str] | None = None
    mode: SyncMode = SyncMode.AUTO
    is_mode_explicit: bool = False
    incremental: IncrementalRead | None = None
    hints: PushedHints = PushedHints()
    retry: RetryDeclaration | None = None
    kind: NodeKind = NodeKind.SOURCE_LOAD

    @property
    def key(self) -> str:
        """Identity of the entity in every state file."""
        return f"{self.connection}.{self.entity}"


class WatermarkUse(Struct, frozen=True, kw_only=True):
    """One `watermark()` sentinel in a pipeline's compiled SQL."""

    sentinel: str
    """The text inside the quoted literal."""

    connection: str
    entity: str

    @property
    def key(self) -> str:
        """Identity of the entity in every state file."""
        return f"{self.connection}.{self.entity}"


class PipelineNode(_NodeBase, frozen=True, kw_only=True):
    """Materializes one query as `staging.<name>`."""

    sql: str
    """Compiled SQL: ephemerals inlined, null guards added, sentinels still in it."""

    source_text: str
    """The file as written."""

    materialization: Materialization = Materialization.TABLE
    is_materialization_explicit: bool = False
    tags: tuple[str, ...] = ()
    sidecar: str | None = None
    watermarks: tuple[WatermarkUse, ...] = ()
    kind: NodeKind = NodeKind.PIPELINE


class CheckNode(_NodeBase, frozen=True, kw_only=True):
    """Tests one pipeline's relation."""

    pipeline: str
    check: Check
    sidecar: str | None = None
    kind: NodeKind = NodeKind.CHECK


class SinkWriteNode(_NodeBase, frozen=True, kw_only=True):
    """Writes one pipeline's relation to one entity."""

    connection: str
    entity: str
    pipeline: str
    strategy: Strategy = Strategy.APPEND
    schema_policy: SchemaPolicy = SchemaPolicy.FAIL_ON_CHANGE
    keys: tuple[str, ...] = ()
    accepts_duplicates: bool = False
    on_delete: OnDelete | None = None
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    retry: RetryDeclaration | None = None
    kind: NodeKind = NodeKind.SINK_WRITE


Node = SourceLoadNode | PipelineNode | CheckNode | SinkWriteNode


class Graph(Struct, frozen=True, dict=True):
    """Nodes in topological order."""

    nodes: tuple[Node, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[str, Node]:
        """Nodes by id."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Ids of the nodes that depend on an id directly, in topological order."""
        found: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for parent in node.depends_on:
                found[parent].append(node.id)
        return {key: tuple(value) for key, value in found.items()}

    def ancestors(self, ids: Iterable[str]) -> frozenset[str]:
        """Return every node reachable upstream, the given ones excluded unless reachable."""
        return self._reach(ids, lambda current: self.by_id[current].depends_on)

    def descendants(self, ids: Iterable[str]) -> frozenset[str]:
        """Return every node reachable downstream, the given ones excluded unless reachable."""
        return self._reach(ids, lambda current: self.children[current])

    @staticmethod
    def _reach(ids: Iterable[str], step: Any) -> frozenset[str]:
        found: set[str] = set()
        waiting = list(ids)
        while waiting:
            for following in step(waiting.pop()):
                if following not in found:
                    found.add(following)
                    waiting.append(following)
        return frozenset(found)


class Flow(Struct, frozen=True):
    """One connected component."""

    label: str
    """For display only."""

    node_ids: tuple[str, ...]
    """Topological order."""


@dataclass(frozen=True)
class CompiledProject:
    """Everything compile knows; with problems, the graph is empty."""

    project_dir: Path
    state_dir: Path
    """Where its runs and state live: `.pz`, wherever that is."""

    project: Project | None
    connections: Mapping[str, Connection] = field(default_factory=dict)
    """Effective connections: entities declared at call sites included."""

    graph: Graph = field(default_factory=Graph)
    flows: tuple[Flow, ...] = ()
    ephemerals: tuple[str, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    hidden: HiddenValues = field(default_factory=HiddenValues, repr=False, compare=False)
    """What no text about this project may show."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Nodes in topological order."""
        return self.graph.nodes

    @property
    def pipeline_count(self) -> int:
        """Number of pipelines, ephemerals included."""
        return len(self.ephemerals) + sum(isinstance(node, PipelineNode) for node in self.nodes)
