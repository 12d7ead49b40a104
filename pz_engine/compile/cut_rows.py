"""Warns where a LIMIT or a sample cuts off rows of an incremental read.

The run advances to the highest cursor value that was read, so what is cut off is below it and never read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pz_engine.compile.assembly import AssembledPipeline, EntityKey
from pz_engine.compile.dag import IncrementalRead
from pz_engine.compile.sql_tree import Tree, is_table, walk
from pz_engine.duck.introspect import SqlParser
from pz_engine.duck.quoting import STAGING_SCHEMA
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.entity import staging_name

_LIMITS = frozenset({"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"})


def warn_about_cut_rows(
    pipelines: Mapping[str, AssembledPipeline],
    incremental: Mapping[EntityKey, IncrementalRead],
    parser: SqlParser,
    problems: ProblemCollector,
) -> None:
    """Warn once for each pipeline and entity (`PZ0233`)."""
    for name in sorted(pipelines):
        pipeline = pipelines[name]
        for key in sorted(key for key in pipeline.reads if key in incremental):
            tree = parser.parse(pipeline.sql)
            if tree is not None and cuts_rows(tree, staging_name(*key)):
                problems.warn(
                    "PZ0233", f"pipeline '{name}' cuts off rows of the incremental read of '{key[0]}.{key[1]}' with LIMIT, "
                    "OFFSET or a sample; the run advances past them, so they are never read again", file=pipeline.file,
                    line=pipeline.read_lines[key],
                    hint="remove it; max_window below sync: in YAML reads in slices and leaves nothing out",
                )  # fmt: skip


def cuts_rows(tree: Tree, table: str) -> bool:
    """Tell whether a LIMIT, an OFFSET or a sample stands at or above a mention of a table of staging."""
    carriers = _common_tables_over(tree, table)
    waiting: list[tuple[Any, bool]] = [(tree, False)]
    while waiting:
        node, is_cut = waiting.pop()
        if isinstance(node, list):
            waiting.extend((item, is_cut) for item in node)
        elif isinstance(node, dict):
            is_cut = is_cut or _cuts(node)
            if is_cut and _mentions(node, table, carriers):
                return True
            waiting.extend((value, is_cut) for value in node.values() if isinstance(value, (dict, list)))
    return False


def _cuts(node: Tree) -> bool:
    modifiers = node.get("modifiers") or ()
    return bool(node.get("sample")) or any(modifier.get("type") in _LIMITS for modifier in modifiers)


def _mentions(node: Tree, table: str, carriers: set[str]) -> bool:
    is_common = not node.get("schema_name") and str(node.get("table_name", "")).lower() in carriers
    return is_table(node, STAGING_SCHEMA, table) or (node.get("type") == "BASE_TABLE" and is_common)


def _common_tables_over(tree: Tree, table: str) -> set[str]:
    """Return the lower-case names of the common tables that hold rows of a table."""
    bodies = {
        str(entry["key"]).lower(): entry["value"]
        for node in walk(tree)
        for entry in node.get("cte_map", {}).get("map", ())
    }
    found: set[str] = set()
    while True:
        more = {
            name for name, body in bodies.items() if any(_mentions(node, table, found) for node in walk(body))
        } - found  # fmt: skip
        if not more:
            return found
        found |= more
