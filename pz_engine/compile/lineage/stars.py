"""Stars: the columns of `*` and `t.*` with EXCLUDE, REPLACE and RENAME.

Anything that cannot be listed for certain is None.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from sqlglot import exp

from pz_engine.compile.lineage.bindings import GAP, Column, fold_case
from pz_engine.compile.lineage.expressions import ExpressionTracer, ManyColumnsError, reference_parts
from pz_engine.compile.lineage.scope import Scope

_MODIFIERS = {"except_", "replace", "rename"}
Placed = list[tuple[int, Column]]


def expand_star(item: exp.Expr, scope: Scope, expressions: ExpressionTracer) -> tuple[Column, ...] | None:
    """Return the columns of a star in a SELECT list."""
    qualifier = None
    star = item
    if isinstance(item, exp.Column):
        parts = reference_parts(item)
        if len(parts) != 2:
            return None
        qualifier, star = parts[0], item.this
    if any(value for key, value in star.args.items() if key not in _MODIFIERS):
        return None
    listed = scope.bindings.expand(qualifier)
    if listed is None:
        return None
    columns: Placed | None = list(listed)
    has_modifier = any(star.args.get(key) for key in _MODIFIERS)
    if has_modifier and any(column.is_gap for _, column in listed):
        return None
    columns = _without(columns or [], star.args.get("except_") or (), scope)
    columns = _replaced(columns, star.args.get("replace") or (), scope, expressions)
    columns = _renamed(columns, star.args.get("rename") or ())
    return None if columns is None else tuple(column for _, column in columns)


def fields_of_star(item: exp.Expr, scope: Scope) -> Column:
    """Return the gap that a star leaves: `s.*` has the fields of a struct, which all come from it."""
    if not isinstance(item, exp.Column) or len(item.parts) != 2 or any(item.this.args.values()):
        return GAP
    return replace(GAP, sources=scope.resolve(reference_parts(item)[:1]).sources)


def _without(columns: Placed, excluded: Sequence[exp.Expr], scope: Scope) -> Placed | None:
    for entry in excluded:
        parts = reference_parts(entry) if isinstance(entry, exp.Column) else (entry.name,)
        position = None
        if len(parts) == 2 and not scope.bindings.merged:
            aliases = [relation.alias for relation in scope.bindings.relations]
            if aliases.count(fold_case(parts[0])) != 1:
                return None
            position = aliases.index(fold_case(parts[0]))
        elif len(parts) != 1:
            return None
        name = fold_case(parts[-1])
        kept = [
            (index, column)
            for index, column in columns
            if fold_case(column.name or "") != name or position not in (None, index)
        ]
        if len(kept) == len(columns):
            return None
        columns = kept
    return columns


def _replaced(
    columns: Placed | None, entries: Sequence[exp.Expr], scope: Scope, expressions: ExpressionTracer
) -> Placed | None:
    for entry in entries:
        place = _only_place(columns, entry.alias)
        if columns is None or place is None:
            return None
        try:
            sources = expressions.trace(entry, scope)
        except ManyColumnsError:
            return None
        columns[place] = (columns[place][0], Column(entry.alias, sources))
    return columns


def _renamed(columns: Placed | None, entries: Sequence[exp.Expr]) -> Placed | None:
    for entry in entries:
        place = _only_place(columns, entry.this.name)
        if columns is None or place is None:
            return None
        index, column = columns[place]
        columns[place] = (index, replace(column, name=entry.alias))
    return columns


def _only_place(columns: Placed | None, name: str) -> int | None:
    places = [i for i, (_, column) in enumerate(columns or ()) if fold_case(column.name or "") == fold_case(name)]
    return places[0] if len(places) == 1 else None
