"""The FROM clause: tables of staging, common tables, sub-queries, and joins between them.

Anything that is neither a node nor a query, such as a table function, has unknown columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace
from sqlglot import exp

from pz_engine.compile.lineage.bindings import Bindings, Column, Relation, fold_case
from pz_engine.compile.lineage.expressions import ManyColumnsError
from pz_engine.compile.lineage.joins import JoinShape, join_bindings
from pz_engine.compile.lineage.outputs import as_columns, renamed
from pz_engine.compile.lineage.scope import CommonTables, Scope
from pz_engine.duck.quoting import STAGING_SCHEMA

if TYPE_CHECKING:
    from pz_engine.compile.lineage.queries import QueryTracer

_READ_IN_TABLE = {"this", "alias", "db", "catalog", "joins", "sample"}
_READ_IN_SUBQUERY = {"this", "alias", "joins", "sample"}
_READ_IN_JOIN = {"this", "on", "side", "kind", "using", "method"}
_KNOWN_JOINS = {"", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL", "ASOF", "POSITIONAL"}


class RelationTracer:
    """Reads FROM clauses of one pipeline."""

    def __init__(self, nodes: Mapping[str, Relation], queries: QueryTracer) -> None:
        self._nodes = nodes
        self._queries = queries

    def bindings(self, query: exp.Select, tables: CommonTables, outer: Scope | None) -> Bindings:
        """Return what the FROM clause and the joins of a SELECT offer."""
        clause = query.args.get("from_")
        if clause is None:
            return Bindings()
        start = self._relation(clause.this, Scope(tables=tables, outer=outer))
        return self._joined(start, query.args.get("joins") or (), tables, outer)

    def _joined(self, left: Bindings, joins: Sequence[exp.Join], tables: CommonTables, outer: Scope | None) -> Bindings:
        for join in joins:
            right = self._relation(join.this, Scope(left, tables, outer))
            shape = JoinShape(
                side=join.side,
                kind=join.kind,
                using=tuple(name.name for name in join.args.get("using") or ()),
                is_natural=join.method == "NATURAL",
                is_asof=join.method == "ASOF",
            )
            self._note_condition(join, shape, left, right, Scope(tables=tables, outer=outer))
            left = join_bindings(left, right, shape)
            if not has_only(join, _READ_IN_JOIN) or not {join.side, join.kind, join.method} <= _KNOWN_JOINS:
                left = Bindings((Relation(),), is_unclear=True)
        return left

    def _note_condition(self, join: exp.Join, shape: JoinShape, left: Bindings, right: Bindings, scope: Scope) -> None:
        both = join_bindings(left, right, JoinShape())
        self._queries.condition(join.args.get("on"), replace(scope, bindings=both))
        for side in (left, right):
            for name in shape.using:
                self._queries.collect(side.find((name,)).column.sources)
        if shape.is_natural:
            self._queries.collect(None)

    def _relation(self, node: exp.Expr, scope: Scope) -> Bindings:
        """Read one item of a FROM clause; `scope` holds what stands to its left."""
        found = self._without_joins(node, scope)
        joins = node.args.get("joins")
        return self._joined(found, joins, scope.tables, scope) if joins else found

    def _without_joins(self, node: exp.Expr, scope: Scope) -> Bindings:
        if isinstance(node, exp.Table):
            return _single(self._table(node, scope))
        if isinstance(node, exp.Lateral):
            inner = node.this
            if isinstance(inner, exp.Subquery) and not node.args.get("view"):
                return _single(self._from_outputs(node, self._queries.outputs(inner, scope.tables, scope)))
        elif isinstance(node, exp.Subquery) and has_only(node, _READ_IN_SUBQUERY):
            inner = node.this
            if isinstance(inner, exp.Table) or (isinstance(inner, exp.Subquery) and inner.args.get("joins")):
                return self._parenthesized(node, self._relation(inner, scope))
            if isinstance(inner, exp.Query):
                return _single(self._from_outputs(node, self._queries.outputs(inner, scope.tables, scope)))
            if isinstance(inner, exp.Values):
                return _single(self._from_outputs(node, self._queries.values(inner, scope)))
        elif isinstance(node, exp.Values):
            return _single(self._from_outputs(node, self._queries.values(node, scope)))
        elif isinstance(node, exp.Unnest):
            return _single(self._unnest(node, scope))
        return _single(Relation(alias=_alias(node)))

    def _parenthesized(self, node: exp.Subquery, inner: Bindings) -> Bindings:
        """Read `(t) x`, which is also what becomes of `(from t) x`, and joins in parentheses, which have no alias."""
        if not node.alias:
            return inner
        if len(inner.relations) != 1:
            return _single(Relation(alias=_alias(node)))
        only = inner.relations[0]
        renamed_columns = self._from_outputs(node, only.columns)
        return _single(replace(renamed_columns, node=None if _alias_columns(node) else only.node))

    def _table(self, node: exp.Table, scope: Scope) -> Relation:
        alias = _alias(node)
        if not isinstance(node.this, exp.Identifier):
            return Relation(alias=alias)
        is_clear = has_only(node, _READ_IN_TABLE)
        if not node.db:
            columns = scope.tables.get(fold_case(node.name))
            if columns is not None:
                return self._from_outputs(node, columns) if is_clear else Relation(alias=alias)
        elif not node.catalog and fold_case(node.db) == STAGING_SCHEMA:
            found = self._nodes.get(fold_case(node.name))
            if found is not None:
                return self._node(node, found) if is_clear else Relation(alias=alias)
        return Relation(alias=alias)

    @staticmethod
    def _node(node: exp.Table, found: Relation) -> Relation:
        names = _alias_columns(node)
        is_aliased = bool(node.alias)
        alias = fold_case(node.alias_or_name)
        if names:
            return Relation(as_columns(renamed(found.columns, names)), alias)
        return replace(found, alias=alias, is_staging=not is_aliased)

    @staticmethod
    def _from_outputs(node: exp.Expr, columns: tuple[Column, ...]) -> Relation:
        return Relation(as_columns(renamed(columns, _alias_columns(node))), _alias(node))

    def _unnest(self, node: exp.Unnest, scope: Scope) -> Relation:
        names = _alias_columns(node)
        if len(node.expressions) != 1 or node.args.get("offset") or len(names) > 1:
            return Relation(alias=_alias(node))
        try:
            sources = self._queries.expressions.trace(node.expressions[0], scope)
        except ManyColumnsError:
            return Relation(alias=_alias(node))
        return Relation((Column(names[0] if names else "unnest", sources),), _alias(node))


def has_only(node: exp.Expr, read: set[str]) -> bool:
    """Tell whether a part of a query holds nothing but what is read here."""
    return all(key in read for key, value in node.args.items() if value)


def _single(relation: Relation) -> Bindings:
    return Bindings((relation,))


def _alias(node: exp.Expr) -> str | None:
    name = node.alias_or_name if isinstance(node, exp.Table) else node.alias
    return fold_case(name) if name else None


def _alias_columns(node: exp.Expr) -> list[str]:
    alias = node.args.get("alias")
    return [column.name for column in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
