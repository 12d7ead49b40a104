"""What the columns of a pipeline are called.

DuckDB's names win; without them, names are those written in the query, and an expression is spelled by DuckDB's parser.
"""

from __future__ import annotations

from collections.abc import Sequence

from pz_engine.compile.lineage.bindings import Column, Sources, fold_case
from pz_engine.compile.lineage.outputs import has_gap
from pz_engine.compile.sql_tree import Tree, top_node
from pz_engine.duck.introspect import SqlParser
from pz_engine.model.run import ColumnType

NamedSources = list[tuple[str, Sources | None]]


def matched_names(traced: Sequence[Column] | None, described: Sequence[ColumnType]) -> NamedSources:
    """Put DuckDB's names on traced columns; where they do not fit, no source is certain."""
    columns = _without_gap(traced or (), len(described))
    if columns is not None and all(
        _fits(columns[:index], column, described[index].name) for index, column in enumerate(columns)
    ):
        return [(named.name, column.sources) for named, column in zip(described, columns, strict=True)]
    return [(named.name, None) for named in described]


def written_names(traced: Sequence[Column], tree: Tree, parser: SqlParser) -> NamedSources | None:
    """Name traced columns as the query writes them; None when a name is not certain."""
    if has_gap(tuple(traced)):
        return None
    names = [column.name for column in traced]
    if None in names:
        items = _select_list(tree)
        if len(items) != len(names):
            return None
        names = [name if name is not None else _spelled(item, parser) for name, item in zip(names, items, strict=True)]
    known = [name for name in names if name]
    if len(known) != len(names) or len({fold_case(name) for name in known}) != len(known):
        return None
    return [(name, column.sources) for name, column in zip(known, traced, strict=True)]


def _without_gap(traced: Sequence[Column], count: int) -> list[Column] | None:
    """Fill the only gap with unknown columns, so that there are as many as told."""
    gaps = [index for index, column in enumerate(traced) if column.is_gap]
    if len(gaps) > 1:
        return None
    if not gaps:
        return list(traced) if len(traced) == count else None
    missing = count - len(traced) + 1
    if missing < 0:
        return None
    filler = [Column(None, traced[gaps[0]].sources)] * missing
    return [*traced[: gaps[0]], *filler, *traced[gaps[0] + 1 :]]


def _fits(before: Sequence[Column], column: Column, name: str) -> bool:
    """Tell whether a column can be called so; DuckDB numbers a name that it had before."""
    if column.name is None or fold_case(column.name) == fold_case(name):
        return True
    stem, _, number = name.rpartition("_")
    is_repeated = any(fold_case(other.name or "") == fold_case(column.name) for other in before)
    return is_repeated and number.isdigit() and fold_case(stem) == fold_case(column.name)


def _select_list(tree: Tree) -> list[Tree]:
    node = top_node(tree)
    while node.get("type") == "SET_OPERATION_NODE":
        node = node["left"]
    found: list[Tree] = node.get("select_list", [])
    return found


def _spelled(item: Tree, parser: SqlParser) -> str | None:
    if item.get("class") in ("STAR", "SUBQUERY"):
        return None
    return parser.render_expression(item)
