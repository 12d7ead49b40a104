"""Which columns an expression mentions.

Everything inside counts: arguments, conditions of CASE, keys of windows, and sub-queries with their conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlglot import exp

from pz_engine.compile.lineage.bindings import Sources, fold_case
from pz_engine.compile.lineage.joins import united
from pz_engine.compile.lineage.scope import Scope
from pz_engine.duck.quoting import STAGING_SCHEMA

TraceSubquery = Callable[[exp.Expr, Scope, bool], Sources | None]
"""Traces a query inside an expression; the flag tells whether what it selects counts, or only which rows it has."""

_NO_COLUMNS = (exp.Identifier, exp.Var, exp.DataType, exp.Literal)
_UNCLEAR = (exp.PositionalColumn, exp.Placeholder, exp.Parameter, exp.Comprehension, exp.Command, exp.Pivot)
_LAMBDA_TAKERS = (exp.Transform, exp.ArrayFilter, exp.Reduce)
_LAMBDA_FUNCTIONS = frozenset(
    f"{prefix}{name}" for prefix in ("list_", "array_", "") for name in ("transform", "apply", "filter", "reduce")
)
_ROW_MAKERS = (exp.Explode, exp.Unnest, exp.Posexplode, exp.Inline)
_ROW_MAKING_FUNCTIONS = frozenset({"unnest", "unlist"})


class ManyColumnsError(Exception):
    """An expression stands for a number of columns that is not known."""


class ExpressionTracer:
    """Traces the expressions of one pipeline."""

    def __init__(self, trace_subquery: TraceSubquery, bare_values: frozenset[str]) -> None:
        self._trace_subquery = trace_subquery
        self._bare_values = bare_values
        """Names such as `current_date` that the text writes without parentheses, so that a column may be meant."""

    def trace(
        self,
        node: exp.Expr,
        scope: Scope,
        windows: Mapping[str, exp.Window] | None = None,
        parameters: frozenset[str] = frozenset(),
    ) -> Sources | None:
        """Return the columns, or None when they are not certain.

        Args:
            node: the expression.
            scope: where it stands.
            windows: definitions of the WINDOW clause, by lower-case name.
            parameters: names of parameters of the lambdas around it, as they are written there.

        Raises:
            ManyColumnsError: it expands to several columns.
        """
        found: list[Sources | None] = []
        waiting = [node]
        while waiting:
            current = waiting.pop()
            if isinstance(current, exp.Column):
                found.append(self._column(current, scope, parameters))
            elif isinstance(current, _NO_COLUMNS):
                continue
            elif isinstance(current, exp.Dot):
                waiting.extend(_parts_of_dot(current, found))
            elif isinstance(current, (exp.Star, exp.Columns, exp.Aliases)) or _is_columns_function(current):
                raise ManyColumnsError
            elif isinstance(current, _UNCLEAR):
                found.append(None)
            elif isinstance(current, exp.Exists) and isinstance(current.this, exp.Query):
                found.append(self._trace_subquery(current.this, scope, False))
            elif isinstance(current, exp.Query):
                found.append(None if parameters else self._trace_subquery(current, scope, True))
            elif isinstance(current, exp.Count) and isinstance(current.this, exp.Star) and not _parts(current.this):
                continue
            elif isinstance(current, (exp.Lambda, exp.JSONExtract)) and _is_taken_as_lambda(current):
                names, body = _taken_apart(current)
                found.append(None if names is None else self.trace(body, scope, windows, parameters | names))
            elif isinstance(current, exp.Lambda):
                found.append(None)  # an arrow that takes a value out of JSON is read as a lambda in any function
            elif isinstance(current, exp.Func) and self._is_bare_value(current):
                found.append(None if scope.may_hold((current.sql_name(),)) else frozenset())
            else:
                if isinstance(current, exp.Window):
                    waiting.extend(self._named_window(current, windows, found))
                waiting.extend(_parts(current))
        return united(found)

    def trace_all(self, nodes: Iterable[exp.Expr], scope: Scope) -> Sources | None:
        """Return the columns of several expressions together."""
        return united([self.trace(node, scope) for node in nodes])

    @staticmethod
    def _column(column: exp.Column, scope: Scope, parameters: frozenset[str]) -> Sources | None:
        if isinstance(column.this, exp.Star):
            raise ManyColumnsError
        parts = reference_parts(column)
        if fold_case(parts[0]) not in {fold_case(name) for name in parameters}:
            return scope.resolve(parts).sources
        written = (*parts, *fields_behind(column))
        if len(written) == 1 and written[0] in parameters:
            return frozenset()
        # A table, a column or an alias of the parameter's name comes first, and so does any in another case.
        names_a_schema = len(written) > 2 and fold_case(written[1]) == STAGING_SCHEMA
        return None if names_a_schema or scope.may_hold(written) else frozenset()

    def _is_bare_value(self, function: exp.Func) -> bool:
        return function.sql_name().lower() in self._bare_values and not any(True for _ in function.iter_expressions())

    @staticmethod
    def _named_window(
        window: exp.Window, windows: Mapping[str, exp.Window] | None, found: list[Sources | None]
    ) -> Sequence[exp.Expr]:
        name = window.args.get("alias")
        if name is None:
            return ()
        definition = (windows or {}).get(name.name.lower())
        if definition is None or definition.args.get("alias") is not None:
            found.append(None)
            return ()
        return (definition,)


def reference_parts(column: exp.Column) -> tuple[str, ...]:
    """Return the parts of a reference, outermost first."""
    return tuple(part.name for part in column.parts)


def fields_behind(column: exp.Column) -> list[str]:
    """Return the names of the fields that follow a reference, as in `a.b.c.d.field`."""
    found: list[str] = []
    node: exp.Expr | None = column
    while node is not None and isinstance(node.parent, exp.Dot) and node.parent.this is node:
        node = node.parent
        if not isinstance(node.expression, exp.Identifier):
            break
        found.append(node.expression.name)
    return found


def makes_rows(item: exp.Expr) -> bool:
    """Tell whether an item of a SELECT list is an `unnest`, which gives several columns for a struct."""
    inner = item.unalias()
    return isinstance(inner, _ROW_MAKERS) or (
        isinstance(inner, exp.Anonymous) and inner.name.lower() in _ROW_MAKING_FUNCTIONS
    )


def _parts(node: exp.Expr) -> list[exp.Expr]:
    """Return the parts that are values; names of arguments and of struct fields are none."""
    if isinstance(node, (exp.PropertyEQ, exp.Kwarg)) and not _is_map_entry(node):
        return [node.expression]
    if isinstance(node, exp.Dot):
        return [node.this]
    return list(node.iter_expressions())


def _is_map_entry(node: exp.Expr) -> bool:
    """Tell whether a key is a value of its own, as in `map {key: value}`, and no name."""
    return node.parent is not None and isinstance(node.parent.parent, exp.ToMap)


def _parts_of_dot(dot: exp.Dot, found: list[Sources | None]) -> list[exp.Expr]:
    """Return what a dot takes a field of, or the arguments of a function of schema `main`."""
    if isinstance(dot.expression, exp.Identifier):
        if not isinstance(dot.this, exp.Identifier):
            return [dot.this]
    elif _is_columns_function(dot.expression):
        raise ManyColumnsError
    elif isinstance(dot.this, exp.Identifier) and fold_case(dot.this.name) == "main":
        return [dot.expression]
    found.append(None)
    return []


def _is_columns_function(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "columns"


def _is_taken_as_lambda(node: exp.Expr) -> bool:
    """Tell a lambda from an arrow that takes a value out of JSON, which is written the same way.

    A function that takes a lambda never takes it first.
    """
    argument = node
    while isinstance(argument.parent, exp.Paren):
        argument = argument.parent
    taker = argument.parent
    if isinstance(taker, exp.Anonymous):
        return taker.name.lower() in _LAMBDA_FUNCTIONS and argument.index != 0
    return isinstance(taker, _LAMBDA_TAKERS) and argument.arg_key != "this"


def _taken_apart(node: exp.Lambda | exp.JSONExtract) -> tuple[frozenset[str] | None, exp.Expr]:
    """Return the names of a lambda's parameters, None when they are no plain names, and its body."""
    if isinstance(node, exp.Lambda):
        return frozenset(parameter.name for parameter in node.expressions), node.this
    head = node.this.unnest()
    names = head.expressions if isinstance(head, exp.Tuple) else [head]
    if not all(isinstance(name, exp.Column) and len(name.parts) == 1 for name in names):
        return None, node.expression
    return frozenset(name.name for name in names), node.expression
