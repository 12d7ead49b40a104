"""The output columns of a query, each with the columns it comes from.

Conditions decide which rows exist and are no part of a column, except inside a sub-query that is itself a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from sqlglot import exp

from pz_engine.compile.lineage.bindings import GAP, UNKNOWN, Column, Relation, Sources, fold_case
from pz_engine.compile.lineage.expressions import ExpressionTracer, ManyColumnsError, makes_rows, reference_parts
from pz_engine.compile.lineage.joins import united
from pz_engine.compile.lineage.outputs import merged_by_name, merged_by_position, renamed
from pz_engine.compile.lineage.relations import RelationTracer, has_only
from pz_engine.compile.lineage.scope import CommonTables, Scope
from pz_engine.compile.lineage.stars import expand_star, fields_of_star

Outputs = tuple[Column, ...]

_CONDITION_CLAUSES = ("where", "group", "having", "qualify", "order", "limit", "offset", "distinct")
_PAGING = {"with_", "order", "limit", "offset", "sample"}
_READ_IN_SELECT = _PAGING | {
    "expressions", "distinct", "from_", "joins", "where", "group", "having", "qualify", "windows",
}  # fmt: skip
_READ_IN_SET_OPERATION = _PAGING | {"this", "expression", "distinct", "by_name"}
_READ_IN_SUBQUERY = _PAGING | {"this", "alias"}
_MAX_ROUNDS = 50
_MANY = (GAP,)


class QueryTracer:
    """Traces the query of one pipeline."""

    def __init__(self, nodes: Mapping[str, Relation], bare_values: frozenset[str]) -> None:
        """Take the relations a query may read from staging, by folded name."""
        self._relations = RelationTracer(nodes, self)
        self.expressions = ExpressionTracer(self._subquery, bare_values)
        self._conditions: list[Sources | None] | None = None
        """Where conditions are collected while a query is read that is a value."""

    def outputs(self, query: exp.Expr, tables: CommonTables, outer: Scope | None = None) -> Outputs:
        """Return the output columns of a query, a gap where their number is not known."""
        tables = self._with(query, tables, outer)
        if isinstance(query, exp.Select) and has_only(query, _READ_IN_SELECT):
            return self._select(query, tables, outer)
        if isinstance(query, exp.SetOperation) and has_only(query, _READ_IN_SET_OPERATION):
            return self._set_operation(query, tables, outer)
        if isinstance(query, exp.Subquery) and has_only(query, _READ_IN_SUBQUERY):
            self._collect(query, Scope(tables=tables, outer=outer))
            return self.outputs(query.this, tables, outer)
        if isinstance(query, exp.Values):
            return self.values(query, Scope(tables=tables, outer=outer))
        return _MANY

    def values(self, values: exp.Values, scope: Scope) -> Outputs:
        """Return the columns of a VALUES list."""
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
        if len({len(row) for row in rows}) != 1:
            return _MANY
        try:
            return tuple(
                Column(f"col{index}", self.expressions.trace_all(cells, scope))
                for index, cells in enumerate(zip(*rows, strict=True))
            )
        except ManyColumnsError:
            return _MANY

    def collect(self, sources: Sources | None) -> None:
        """Note what decides about the rows of the query being read."""
        if self._conditions is not None:
            self._conditions.append(sources)

    def condition(self, node: exp.Expr | None, scope: Scope) -> None:
        """Note the columns of a condition."""
        if self._conditions is not None and node is not None:
            self.collect(self._certain(node, scope))

    def _with(self, query: exp.Expr, tables: CommonTables, outer: Scope | None) -> CommonTables:
        clause = query.args.get("with_")
        if clause is None:
            return tables
        known = dict(tables)
        for entry in clause.expressions:
            names = [column.name for column in entry.args["alias"].args.get("columns") or ()]
            body = entry.this
            if entry.args.get("key_expressions"):
                found: Outputs = _MANY
            elif clause.args.get("recursive") and isinstance(body, exp.Union):
                found = self._recursive(body, entry.alias, names, known, outer)
            else:
                found = renamed(self.outputs(body, known, outer), names)
            known[fold_case(entry.alias)] = found
        return known

    def _recursive(
        self, union: exp.Union, name: str, names: Sequence[str], tables: CommonTables, outer: Scope | None
    ) -> Outputs:
        """Read the repeated part again until nothing is added."""
        tables = self._with(union, tables, outer)
        base = found = renamed(self.outputs(union.this, tables, outer), names)
        for _ in range(_MAX_ROUNDS):
            step = self.outputs(union.expression, {**tables, fold_case(name): found}, outer)
            following = _MANY if union.args.get("by_name") else merged_by_position(base, step)
            following = merged_by_position(found, following)
            if following == found:
                return found
            found = following
        return _MANY

    def _set_operation(self, query: exp.SetOperation, tables: CommonTables, outer: Scope | None) -> Outputs:
        left = self.outputs(query.this, tables, outer)
        right = self.outputs(query.expression, tables, outer)
        self._collect(query, Scope(tables=tables, outer=outer))
        if isinstance(query, exp.Union):
            return merged_by_name(left, right) if query.args.get("by_name") else merged_by_position(left, right)
        if self._conditions is not None:
            self.collect(united([column.sources for column in right]))
        return _MANY if query.args.get("by_name") else left

    def _select(self, query: exp.Select, tables: CommonTables, outer: Scope | None) -> Outputs:
        scope = Scope(self._relations.bindings(query, tables, outer), tables, outer, _aliases(query))
        windows = {window.name.lower(): window for window in query.args.get("windows") or ()}
        found: list[Column] = []
        for item in query.expressions:
            columns = self._item(item, scope, windows)
            if isinstance(item, exp.Alias):
                name = fold_case(item.alias)
                repeated = name in scope.aliases
                is_sure = len(columns) == 1 and not columns[0].is_gap and not repeated
                scope.aliases[name] = columns[0] if is_sure else UNKNOWN
            found.extend(columns)
        self._collect(query, scope)
        return tuple(found)

    def _item(self, item: exp.Expr, scope: Scope, windows: Mapping[str, exp.Window]) -> Outputs:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            return expand_star(item, scope, self.expressions) or (fields_of_star(item, scope),)
        if isinstance(item, exp.Column):
            column = scope.resolve(reference_parts(item))
            return (column if column.name is not None else replace(column, name=item.name),)
        try:
            sources = self.expressions.trace(item, scope, windows)
        except ManyColumnsError:
            return _MANY
        if makes_rows(item):
            return (Column(item.alias or None, sources, is_gap=True),)
        if isinstance(item, exp.Dot) and isinstance(item.parts[0].parent, exp.Column):
            return (Column(item.expression.name, sources),)
        return (Column(item.alias if isinstance(item, exp.Alias) else None, sources),)

    def _subquery(self, query: exp.Expr, scope: Scope, counts_outputs: bool) -> Sources | None:
        saved, self._conditions = self._conditions, []
        outputs = self.outputs(query, scope.tables, scope)
        conditions, self._conditions = self._conditions, saved
        if any(column.is_gap for column in outputs) and counts_outputs:
            return None
        if not counts_outputs and not isinstance(query, exp.Select):
            return None
        selected = [column.sources for column in outputs] if counts_outputs else []
        return united([*conditions, *selected])

    def _collect(self, query: exp.Expr, scope: Scope) -> None:
        if self._conditions is None:
            return
        for clause in _clauses(query):
            self.collect(self._certain(clause, scope))

    def _certain(self, node: exp.Expr, scope: Scope) -> Sources | None:
        try:
            return self.expressions.trace(node, scope)
        except ManyColumnsError:
            return None


def _clauses(query: exp.Expr) -> Iterator[exp.Expr]:
    for name in _CONDITION_CLAUSES:
        clause = query.args.get(name)
        if isinstance(clause, exp.Expr):
            yield clause


def _aliases(query: exp.Select) -> frozenset[str]:
    return frozenset(fold_case(item.alias) for item in query.expressions if isinstance(item, exp.Alias))
