"""How wide the types of a query's columns become: structs of structs double without the text growing.

Only what builds a value out of several counts; every other function is as wide as its widest argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pz_engine.compile.lineage.bindings import fold_case
from pz_engine.compile.sql_tree import Tree, relation_alias, relations, top_node
from pz_engine.duck.introspect import SqlParser

MAX_FIELDS = 5_000
"""Most fields of one column, all levels together; DuckDB needs a second for three times as many."""

Widths = Mapping[str, int]
"""Number of fields of each column, by folded name."""

_BUILDERS = frozenset(
    {"struct_pack", "row", "struct_insert", "struct_concat", "struct_update", "map", "map_from_entries", "union_value"}
)


class TooManyFieldsError(Exception):
    """A column would have more than `MAX_FIELDS` fields."""


def column_widths(sql: str, tables: Mapping[str, Widths], parser: SqlParser) -> Widths:
    """Return the columns of a query that have several fields, as far as that can be told.

    Args:
        sql: the query.
        tables: columns of other pipelines, by folded name.
        parser: DuckDB's parser.

    Raises:
        TooManyFieldsError: one of them has too many.
    """
    folded = fold_case(sql)
    is_plain = "{" not in folded and not any(name in folded for name in _BUILDERS)
    if is_plain and not any(name in folded for name, widths in tables.items() if widths):
        return {}
    tree = parser.parse(sql)
    try:
        return {} if tree is None else _outputs(top_node(tree), tables)
    except RecursionError:
        return {}


def _outputs(node: Tree, tables: Mapping[str, Widths]) -> dict[str, int]:
    tables = dict(tables)
    for entry in node.get("cte_map", {}).get("map", ()):
        tables[fold_case(str(entry["key"]))] = _outputs(entry["value"]["query"]["node"], tables)
    if node.get("type") != "SELECT_NODE":
        sides = [node[side] for side in ("left", "right") if isinstance(node.get(side), dict)]
        return _widest([_outputs(side, tables) for side in sides])
    known: dict[str, int] = {}
    for relation in relations(node.get("from_table")):
        if relation.get("type") == "SUBQUERY":
            columns: Widths = _outputs(relation["subquery"]["node"], tables)
        else:
            columns = tables.get(fold_case(str(relation.get("table_name", ""))), {})
        whole = {relation_alias(relation): sum(columns.values())} if columns else {}
        known = _widest([known, columns, whole])
    found: dict[str, int] = {}
    for item in node.get("select_list", ()):
        if item.get("class") == "STAR":
            found = _widest([found, known])
            continue
        width = _width(item, known, tables)
        names = [item["alias"]] if item.get("alias") else item.get("column_names", [""])[-1:]
        if width > 1 and names[0]:
            name = fold_case(str(names[0]))
            found[name] = max(width, found.get(name, 1))
            known.setdefault(name, width)
    return found


def _width(node: Any, known: Widths, tables: Mapping[str, Widths]) -> int:
    if isinstance(node, list):
        return max((_width(item, known, tables) for item in node), default=1)
    if not isinstance(node, dict):
        return 1
    kind = node.get("class")
    if kind == "COLUMN_REF":
        return max(known.get(fold_case(str(part)), 1) for part in node["column_names"])
    if kind == "SUBQUERY":
        return max(_outputs(node["subquery"]["node"], tables).values(), default=1)
    if kind == "FUNCTION":
        widths = [_width(child, known, tables) for child in node.get("children", ())]
        builds = str(node.get("function_name", "")).lower() in _BUILDERS
        width = sum(widths) if builds else max(widths, default=1)
        if width > MAX_FIELDS:
            raise TooManyFieldsError
        return max(width, 1)
    return max((_width(v, known, tables) for v in node.values() if isinstance(v, (dict, list))), default=1)


def _widest(parts: list[Widths]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for name, width in part.items():
            found[name] = max(width, found.get(name, 1))
    return found
