"""Inlines ephemeral pipelines into their consumers.

Each becomes a common table expression at the front of the consumer's own list; DuckDB's parser does the splicing, and
text does where that would not give back the same query.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pz_engine.compile.sql_tree import Tree, render_faithfully, top_node
from pz_engine.compile.template.calls import CTE_MARKER
from pz_engine.duck.introspect import SqlParser

_BLANK = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_WITH = re.compile(r"with(?:(\s+recursive)(?=[\s\"(]))?(?=[\s\"])", re.IGNORECASE)


def inline_ephemerals(sql: str, bodies: Mapping[str, str], parser: SqlParser) -> str:
    """Return the consumer's query with every ephemeral it reads in front.

    Args:
        sql: the consumer's normalised query.
        bodies: normalised queries of the ephemerals it reads, by pipeline name; empty leaves `sql` alone.
        parser: DuckDB's parser.
    """
    if not bodies:
        return sql
    ordered = sorted(bodies)
    return _splice_trees(sql, {name: bodies[name] for name in ordered}, parser) or _splice_text(sql, bodies, ordered)


def _splice_trees(sql: str, bodies: Mapping[str, str], parser: SqlParser) -> str | None:
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
    return render_faithfully(parser, tree)


def _splice_text(sql: str, bodies: Mapping[str, str], ordered: list[str]) -> str:
    blank = _BLANK.match(sql)
    start = blank.end() if blank is not None else 0
    entries = ", ".join(f"{CTE_MARKER}{name} AS (\n{bodies[name]}\n)" for name in ordered)
    match = _WITH.match(sql, start)
    if match is None:
        return f"{sql[:start]}WITH {entries}\n{sql[start:]}"
    recursive = " RECURSIVE" if match[1] else ""
    return f"{sql[:start]}WITH{recursive} {entries},{sql[match.end() :]}"
