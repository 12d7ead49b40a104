"""Walks over DuckDB's syntax trees.

Trees are plain JSON; a query's own clauses and those of its sub-queries are told apart by `SELECT_NODE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from pz_engine.duck.introspect import SqlParser

Tree = dict[str, Any]


class Slot(Struct, frozen=True):
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
            waiting.extend([value for value in reversed(current.values()) if isinstance(value, (dict, list))])
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
    waiting = [from_table]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict) and current.get("type") == "JOIN":
            waiting += [current["right"], current["left"]]
        elif isinstance(current, dict) and current.get("type") != "EMPTY":
            yield current


def joins(from_table: Any) -> Iterator[Tree]:
    """Yield the joins of a FROM clause, outer ones first."""
    waiting = [from_table]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict) and current.get("type") == "JOIN":
            yield current
            waiting += [current["right"], current["left"]]


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
    waiting = [slot]
    while waiting:
        current = waiting.pop()
        node = current.node
        if isinstance(node, dict) and node.get("type") == "CONJUNCTION_AND":
            waiting += [Slot(node["children"], index) for index in reversed(range(len(node["children"])))]
        elif isinstance(node, dict):
            yield current


def text_constants(node: Any, prefix: str) -> Iterator[str]:
    """Yield the texts of constants that start with a prefix, sub-queries included."""
    for current in walk(node):
        if current.get("class") == "CONSTANT":
            for inner in walk(current):
                for value in inner.values():
                    if isinstance(value, str) and value.startswith(prefix):
                        yield value


def render_faithfully(parser: SqlParser, tree: Tree) -> str | None:
    """Return a tree as SQL, or None when the text would not parse back to the same tree.

    What DuckDB's trees do not keep, such as `MATERIALIZED`, is lost; so the text is to be looked at, not to be run.
    """
    text = parser.render(tree)
    again = None if text is None else parser.parse(text)
    return text if again is not None and is_same_query(again, tree) else None


def expression_text(parser: SqlParser, expression: Tree) -> str | None:
    """Return an expression as SQL, or None when the text would not parse back to the same expression."""
    text = parser.render_expression(expression)
    tree = None if text is None else parser.parse(f"SELECT {text}")
    if tree is None:
        return None
    items = top_node(tree).get("select_list", [])
    return text if len(items) == 1 and is_same_query(items[0], expression) else None


def is_same_query(left: Any, right: Any) -> bool:
    """Tell whether two trees are one query.

    Positions do not count, nor does the nesting of ANDs and ORs, nor the sub-query that rendering puts around VALUES.
    """
    waiting = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            a, b = _comparable(a), _comparable(b)
            if a.keys() != b.keys():
                return False
            waiting.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            waiting.extend(zip(a, b, strict=True))
        elif a != b or type(a) is not type(b):
            return False
    return True


def _comparable(node: Tree) -> Tree:
    if node.get("type") == "SUBQUERY" and node.get("alias") == "valueslist" and "subquery" in node:
        inner = node["subquery"].get("node", {})
        source = inner.get("from_table") or {}
        items = inner.get("select_list", [])
        if source.get("type") == "EXPRESSION_LIST" and len(items) == 1 and items[0].get("type") == "STAR":
            node = source
    bare = {key: value for key, value in node.items() if key != "query_location"}
    if node.get("class") == "CONJUNCTION":
        flat: list[Any] = []
        children = list(reversed(node["children"]))
        while children:
            child = children.pop()
            if child.get("type") == node["type"]:
                children.extend(reversed(child["children"]))
            else:
                flat.append(child)
        bare["children"] = flat
    return bare
