"""Inlines ephemeral pipelines into their consumers.

Each becomes a common table expression at the front of the consumer's own list. Nothing else of the consumer's text
changes, and where DuckDB can show the syntax trees, the result must be the tree with those expressions in front.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pz_engine.compile.sql_tree import Tree, is_same_query, top_node
from pz_engine.compile.template.calls import CTE_MARKER
from pz_engine.duck.introspect import SqlParser

_WITH = re.compile(rb"with(?![\w$])", re.IGNORECASE)
_RECURSIVE = re.compile(rb"recursive(?![\w$])", re.IGNORECASE)


def inline_ephemerals(sql: str, bodies: Mapping[str, str], parser: SqlParser) -> str | None:
    """Return the consumer's query with every ephemeral it reads in front; None when that would be another query.

    Args:
        sql: the consumer's normalised query.
        bodies: normalised queries of the ephemerals it reads, by pipeline name; empty leaves `sql` alone.
        parser: DuckDB's parser.
    """
    if not bodies:
        return sql
    ordered = {name: bodies[name] for name in sorted(bodies)}
    text = _spliced_text(sql, ordered, parser)
    tree = _spliced_tree(sql, ordered, parser)
    if tree is not None:
        found = parser.parse(text)
        return text if found is not None and is_same_query(found, tree) else None
    # Something has no tree. A mistake in it is shown by the dry compile, unless the other texts happen to complete it.
    is_sound = all(parser.is_one_query(part) for part in (sql, *ordered.values()))
    return text if is_sound or not parser.is_one_query(text) else None


def _spliced_text(sql: str, bodies: Mapping[str, str], parser: SqlParser) -> str:
    entries = ", ".join(f"{CTE_MARKER}{name} AS (\n{body}\n)" for name, body in bodies.items())
    data = sql.encode()
    words = parser.token_offsets(sql)[:2]
    if not words or not _WITH.match(data, words[0]):
        start = words[0] if words else 0
        return (data[:start] + f"WITH {entries}\n".encode() + data[start:]).decode()
    is_recursive = len(words) > 1 and _RECURSIVE.match(data, words[1]) is not None
    end = words[1] + len("recursive") if is_recursive else words[0] + len("with")
    return (data[:end] + f" {entries},".encode() + data[end:]).decode()


def _spliced_tree(sql: str, bodies: Mapping[str, str], parser: SqlParser) -> Tree | None:
    tree = parser.parse(sql)
    if tree is None:
        return None
    entries: list[Tree] = []
    for name, body in bodies.items():
        inner = parser.parse(body)
        if inner is None:
            return None
        value = {
            "aliases": [],
            "query": {"node": top_node(inner), "named_param_map": []},
            "materialized": "CTE_MATERIALIZE_DEFAULT",
            "key_targets": [],
        }
        entries.append({"key": f"{CTE_MARKER}{name}", "value": value})
    node = top_node(tree)
    node["cte_map"]["map"] = entries + node["cte_map"]["map"]
    return tree
