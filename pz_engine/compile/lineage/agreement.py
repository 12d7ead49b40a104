"""Whether two parsers read the same column references out of a query.

DuckDB's own parser decides what a query mentions; where sqlglot reads anything more or less, its tree is not used.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from pz_engine.compile.lineage.bindings import VALUE_NAMES, fold_case
from pz_engine.compile.lineage.expressions import fields_behind, reference_parts
from pz_engine.compile.sql_tree import Tree, walk

References = Counter[tuple[str, ...]]


def agreed_bare_values(tree: Tree, query: exp.Expr) -> frozenset[str] | None:
    """Compare the references of DuckDB's tree with those of sqlglot's.

    Returns:
        None when they differ; else the names such as `current_date` that are written without parentheses.
    """
    theirs: References = Counter(
        tuple(fold_case(str(part)) for part in node["column_names"])
        for node in walk(tree)
        if node.get("class") == "COLUMN_REF"
    )
    ours: References = Counter()
    bare: set[str] = set()
    repeats_windows = False
    for node in query.walk():
        if isinstance(node, exp.Column):
            if not isinstance(node.this, exp.Star) and not _names_columns_of_a_star(node):
                ours[tuple(fold_case(part) for part in (*reference_parts(node), *fields_behind(node)))] += 1
        elif isinstance(node, exp.Order):
            ours.subtract(_dropped_by_duckdb(node))
        elif isinstance(node, exp.Lambda):
            ours.update((fold_case(parameter.name),) for parameter in node.expressions)
        elif isinstance(node, exp.Select):
            repeats_windows = repeats_windows or bool(node.args.get("windows"))
        elif isinstance(node, exp.Func) and node.sql_name().lower() in VALUE_NAMES:
            bare.add(node.sql_name().lower())
    bare = {name for name in bare if (name,) in theirs}
    mine = {reference: count for reference, count in ours.items() if count and reference[0] not in bare}
    other = {reference: count for reference, count in theirs.items() if reference[0] not in bare}
    agree = set(mine) == set(other) if repeats_windows else mine == other
    return frozenset(bare) if agree else None


def _dropped_by_duckdb(order: exp.Order) -> list[tuple[str, ...]]:
    """Return the references of a list's only order when it is the list's own value, which DuckDB reads as a sort."""
    if not isinstance(order.parent, exp.ArrayAgg) or len(order.expressions) != 1:
        return []
    key = order.expressions[0].this
    value = order.this.expressions[0] if isinstance(order.this, exp.Distinct) else order.this
    if key != value:
        return []
    return [
        tuple(fold_case(part) for part in (*reference_parts(c), *fields_behind(c))) for c in key.find_all(exp.Column)
    ]


def _names_columns_of_a_star(column: exp.Column) -> bool:
    """Tell whether a reference is no value but a name in EXCLUDE or RENAME."""
    holder: exp.Expr | None = column.parent
    if isinstance(holder, exp.Alias):
        star = holder.parent
        return isinstance(star, exp.Star) and holder in (star.args.get("rename") or [])
    return isinstance(holder, exp.Star)
