"""Walks over DuckDB's syntax trees.

Trees are plain JSON; a query's own clauses and those of its sub-queries are told apart by `SELECT_NODE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pz_engine.duck.introspect import SqlParser

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a tree that holds an expression and can be given another one."""

    container: Any
    key: Any

    @property
    def node(self) -> Tree:
        """Return the expression."""
        node: Tree = self.container[self.key]
        return node

    def replace(self, node: Tree) -> None:
        """Put another expression there."""
        self.container[self.key] = node


def top_node(tree: Tree) -> Tree:
    """Return the query node of a single statement."""
    node: Tree = tree["statements"][0]["node"]
    return node


def walk(node: Any) -> Iterator[Tree]:
    """Yield every object of a tree, parents first."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            yield current
            waiting.extend(reversed(list(current.values())))
        elif isinstance(current, list):
            waiting.extend(reversed(current))


def walk_own(node: Any, *, without: Sequence[str] = ()) -> Iterator[Tree]:
    """Yield every object of a query but not what is inside its sub-queries.

    Args:
        node: a `SELECT_NODE`, or a part of one.
        without: keys of `node` itself that are left out.
    """
    waiting: list[Any] = [value for key, value in node.items() if key not in without]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            if str(current.get("type", "")).endswith("_NODE"):
                continue
            yield current
            waiting.extend(reversed(list(current.values())))
        elif isinstance(current, list):
            waiting.extend(reversed(current))


def select_nodes(tree: Any) -> Iterator[Tree]:
    """Yield every SELECT of a tree, outer ones first."""
    return (node for node in walk(tree) if node.get("type") == "SELECT_NODE")


def relations(from_table: Any) -> Iterator[Tree]:
    """Yield the leaves of a FROM clause, joins taken apart."""
    if not isinstance(from_table, dict):
        return
    if from_table.get("type") == "JOIN":
        yield from relations(from_table["left"])
        yield from relations(from_table["right"])
    elif from_table.get("type") != "EMPTY":
        yield from_table


def joins(from_table: Any) -> Iterator[Tree]:
    """Yield the joins of a FROM clause, outer ones first."""
    if isinstance(from_table, dict) and from_table.get("type") == "JOIN":
        yield from_table
        yield from joins(from_table["left"])
        yield from joins(from_table["right"])


def relation_alias(relation: Tree) -> str:
    """Return the lower-case name by which a query refers to a relation."""
    return str(relation.get("alias") or relation.get("table_name") or "").lower()


def is_table(relation: Tree, schema: str, name: str) -> bool:
    """Tell whether a relation is the given table."""
    return (
        relation.get("type") == "BASE_TABLE"
        and str(relation.get("schema_name", "")).lower() == schema
        and str(relation.get("table_name", "")).lower() == name.lower()
    )


def conjuncts(slot: Slot) -> Iterator[Slot]:
    """Yield the conditions that all must hold for an expression to hold."""
    node = slot.node
    if not isinstance(node, dict):
        return
    if node.get("type") == "CONJUNCTION_AND":
        for index in range(len(node["children"])):
            yield from conjuncts(Slot(node["children"], index))
    else:
        yield slot


def text_constants(node: Any, prefix: str) -> Iterator[str]:
    """Yield the texts of constants that start with a prefix, sub-queries included."""
    for current in walk(node):
        if current.get("class") == "CONSTANT":
            for inner in walk(current):
                for value in inner.values():
                    if isinstance(value, str) and value.startswith(prefix):
                        yield value


def render_faithfully(parser: SqlParser, tree: Tree) -> str | None:
    """Render a tree, or return None when the text would not parse back to the same tree."""
    text = parser.render(tree)
    if text is None:
        return None
    again = parser.parse(text)
    if again is None:
        return None
    return text if _comparable(again) == _comparable(tree) else None


def _comparable(node: Any) -> Any:
    """Undo what parsing and rendering change without a change of meaning.

    Positions go, nested ANDs and ORs are flattened, and so is the sub-query that rendering puts around VALUES.
    """
    if isinstance(node, list):
        return [_comparable(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _comparable(value) for key, value in node.items() if key != "query_location"}
    if node.get("class") == "CONJUNCTION":
        parts = [child["children"] if child.get("type") == node["type"] else [child] for child in node["children"]]
        node["children"] = [child for part in parts for child in part]
    if node.get("type") == "SUBQUERY" and node.get("alias") == "valueslist" and "subquery" in node:
        inner = node["subquery"].get("node", {})
        source = inner.get("from_table") or {}
        if source.get("type") == "EXPRESSION_LIST" and _is_bare_star(inner):
            return source
    return node


def _is_bare_star(select: Tree) -> bool:
    items = select.get("select_list", [])
    return len(items) == 1 and items[0].get("type") == "STAR" and not items[0].get("relation_name")
