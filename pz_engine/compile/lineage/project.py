"""Column lineage of every pipeline of a project.

Where the columns of everything a pipeline reads are known, DuckDB itself says what the pipeline's columns are called;
a query whose traced columns are others has unknown sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pz_engine.compile.dag import CompiledProject, PipelineNode, SourceLoadNode
from pz_engine.compile.lineage.agreement import agreed_bare_values
from pz_engine.compile.lineage.bindings import Column, Relation, Sources, fold_case
from pz_engine.compile.lineage.names import matched_names, written_names
from pz_engine.compile.lineage.parsing import parse_query
from pz_engine.compile.lineage.queries import QueryTracer
from pz_engine.compile.lineage.values import UNKNOWN_COLUMNS, ColumnLineage, ColumnSource, PipelineLineage
from pz_engine.compile.sql_tree import Tree, render_faithfully, walk
from pz_engine.compile.watermark_sql import null_watermarks
from pz_engine.duck.introspect import EmptyTables, SqlParser
from pz_engine.duck.quoting import STAGING_SCHEMA
from pz_engine.model.contract_types import duck_type_of
from pz_engine.model.run import ColumnType

_HARMLESS_FUNCTIONS = frozenset({"unnest", "range", "generate_series"})


def trace_project(
    compiled: CompiledProject, schemas: Mapping[str, Sequence[ColumnType]] | None = None
) -> tuple[PipelineLineage, ...]:
    """Trace every pipeline that is no ephemeral, in topological order; nothing is read or written.

    Args:
        compiled: a project without problems.
        schemas: columns of entities without a contract, by `<connection>.<entity>`.
    """
    trace = _ProjectTrace(compiled, schemas or {})
    try:
        return tuple(trace.run())
    finally:
        trace.close()


class _ProjectTrace:
    def __init__(self, compiled: CompiledProject, schemas: Mapping[str, Sequence[ColumnType]]) -> None:
        self._compiled = compiled
        self._schemas = schemas
        self._parser = SqlParser()
        self._tables = EmptyTables()
        self._relations: dict[str, Relation] = {}
        """By node id."""

        self._typed: set[str] = set()
        """Ids of the nodes that stand in the empty database."""

    def close(self) -> None:
        self._parser.close()
        self._tables.close()

    def run(self) -> Iterable[PipelineLineage]:
        for node in self._compiled.nodes:
            if isinstance(node, SourceLoadNode):
                self._source(node)
            elif isinstance(node, PipelineNode):
                yield self._pipeline(node)

    def _source(self, node: SourceLoadNode) -> None:
        if node.columns:
            known: Sequence[ColumnType] = [
                ColumnType(name, duck_type_of(kind) or kind) for name, kind in node.columns.items()
            ]
        else:
            known = self._schemas.get(node.key, ())
        self._relations[node.id] = _relation(node.name, [column.name for column in known] or None)
        if known and self._tables.create(node.name, known):
            self._typed.add(node.id)

    def _pipeline(self, node: PipelineNode) -> PipelineLineage:
        tree = self._parser.parse(node.sql)
        traced = self._traced(node, tree) if tree is not None else None
        described = self._described(node, tree) if tree is not None else None
        if described is not None:
            self._typed.add(node.id)
            columns = matched_names(traced, described)
        elif tree is None or traced is None or self._is_typed(node, tree):
            columns = None
        else:
            columns = written_names(traced, tree, self._parser)
        self._relations[node.id] = _relation(node.name, None if columns is None else [name for name, _ in columns])
        if columns is None:
            return PipelineLineage(node.name, (ColumnLineage(UNKNOWN_COLUMNS, None),))
        spelling: dict[ColumnSource, ColumnSource] = {}
        return PipelineLineage(
            node.name, tuple(ColumnLineage(name, _ordered(sources, spelling)) for name, sources in columns)
        )

    def _traced(self, node: PipelineNode, tree: Tree) -> tuple[Column, ...] | None:
        parents = (self._compiled.graph.by_id[identity] for identity in node.depends_on)
        nodes = {fold_case(parent.name): self._relations[parent.id] for parent in parents}
        try:
            for text in self._spellings(node.sql, tree):
                query = parse_query(text)
                bare_values = None if query is None else agreed_bare_values(tree, query)
                if query is not None and bare_values is not None:
                    return QueryTracer(nodes, bare_values).outputs(query, {})
        except RecursionError:
            return None
        return None

    def _spellings(self, sql: str, tree: Tree) -> Iterator[str]:
        """Yield the query as it is, and then in DuckDB's plainer words, which sqlglot reads more often."""
        yield sql
        plainer = render_faithfully(self._parser, tree)
        if plainer is not None:
            yield plainer

    def _described(self, node: PipelineNode, tree: Tree) -> Sequence[ColumnType] | None:
        """Let DuckDB tell the columns; None when it cannot know them or refuses the query."""
        if not self._is_typed(node, tree):
            return None
        return self._tables.define(node.name, null_watermarks(node, self._compiled.graph))

    def _is_typed(self, node: PipelineNode, tree: Tree) -> bool:
        """Tell whether the columns of everything it reads stand in the empty database."""
        return self._typed.issuperset(node.depends_on) and not _reads_elsewhere(tree)


def _relation(name: str, columns: Sequence[str] | None) -> Relation:
    if columns is None:
        return Relation(node=name)
    return Relation(tuple(Column(column, frozenset({ColumnSource(name, column)})) for column in columns))


def _ordered(sources: Sources | None, spelling: dict[ColumnSource, ColumnSource]) -> tuple[ColumnSource, ...] | None:
    """Sort; a column of unknown spelling is called as the pipeline first wrote it."""
    if sources is None:
        return None
    found = {spelling.setdefault(ColumnSource(s.node, fold_case(s.column)), s) for s in sorted(sources)}
    return tuple(sorted(found))


def _reads_elsewhere(tree: Tree) -> bool:
    """Tell whether a query reads anything but staging, such as a file."""
    common: set[str] = set()
    tables: set[str] = set()
    for node in walk(tree):
        kind = node.get("type")
        if kind == "TABLE_FUNCTION":
            if str(node.get("function", {}).get("function_name", "")).lower() not in _HARMLESS_FUNCTIONS:
                return True
        elif kind == "BASE_TABLE":
            if node.get("catalog_name"):
                return True
            if str(node.get("schema_name", "")).lower() != STAGING_SCHEMA:
                if node.get("schema_name"):
                    return True
                tables.add(fold_case(str(node.get("table_name", ""))))
        elif "cte_map" in node:
            common.update(fold_case(str(entry["key"])) for entry in node["cte_map"]["map"])
    return not tables <= common
