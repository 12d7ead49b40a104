"""How much larger a query becomes while DuckDB binds it.

An alias of the same SELECT, some macros and BETWEEN are bound once for each mention, and so are views and common tables
that are not materialized. Twenty doublings in a row are a million copies, which nothing interrupts; so they are counted
first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pz_engine.compile.dag import Graph, PipelineNode
from pz_engine.compile.lineage.bindings import fold_case
from pz_engine.compile.sql_tree import Tree
from pz_engine.compile.type_growth import MAX_FIELDS, TooManyFieldsError, Widths, column_widths
from pz_engine.duck.introspect import SqlParser
from pz_engine.duck.quoting import STAGING_SCHEMA
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.policies import Materialization

MAX_GROWTH = 50_000
"""Most parts of a query that are copies; about a second of DuckDB's time."""

_FEWEST_REPEATED_WORDS = 10
"""With fewer repeated words a query cannot grow beyond the limit, however they are nested."""

_WORD = re.compile(r"[^\W\d]\w*")
_NOT_MATERIALIZED = re.compile(r"\bnot\s+materialized\b", re.IGNORECASE)
_COPIED_ARGUMENTS = {
    "fmod": 2, "nullif": 2, "round_even": 3, "roundbankers": 3, "split_part": 2, "weighted_avg": 2, "wavg": 2,
    "array_to_string": 2, "array_to_string_comma_default": 2, "array_pop_back": 2, "array_pop_front": 2,
    "map_contains_entry": 2, "json_group_array": 2, "json_group_object": 2, "format_type": 3, "format_pg_type": 15,
    "map_to_pg_oid": 19, "pg_get_constraintdef": 2,
}  # fmt: skip
"""Macros of DuckDB that mention an argument more than once, with the most mentions."""


class TooMuchGrowthError(Exception):
    """Binding a query would copy more than `MAX_GROWTH` parts."""


def bound_size(sql: str, views: Mapping[str, int], parser: SqlParser) -> int:
    """Return how many parts a query has once it is bound; 1 where that does not matter or cannot be told.

    Args:
        sql: the query.
        views: sizes of pipelines that stay views, by folded name.
        parser: DuckDB's parser.

    Raises:
        TooMuchGrowthError: it has too many.
    """
    words = [fold_case(word) for word in _WORD.findall(sql)]
    distinct = set(words)
    if len(words) - len(distinct) < _FEWEST_REPEATED_WORDS and distinct.isdisjoint(views):
        return 1
    tree = parser.parse(sql)
    if tree is None:
        return 1
    try:
        return _Count(views, has_inlined_tables=_NOT_MATERIALIZED.search(sql) is not None).of(tree, {})
    except RecursionError:
        return 1


def refuse_growth(graph: Graph, parser: SqlParser, problems: ProblemCollector) -> None:
    """Refuse every pipeline that grows too much while it is bound (`PZ0401`)."""
    views: dict[str, int] = {}
    columns: dict[str, Widths] = {}
    for node in graph.nodes:
        if isinstance(node, PipelineNode):
            try:
                size = bound_size(node.sql, views, parser)
            except TooMuchGrowthError:
                size = 1
                problems.add(
                    "PZ0401", f"pipeline '{node.name}' repeats its own parts so often, one inside the other, that DuckDB "
                    f"would work on more than {MAX_GROWTH:,} copies", file=node.file,
                    hint="compute what is repeated in a sub-query, a common table or a pipeline of its own that is a table",
                )  # fmt: skip
            try:
                columns[fold_case(node.name)] = column_widths(node.sql, columns, parser)
            except TooManyFieldsError:
                problems.add(
                    "PZ0401", f"pipeline '{node.name}' puts structs into structs until a column has more than "
                    f"{MAX_FIELDS:,} fields", file=node.file, hint="keep fields as columns, or hold repeated ones once",
                )  # fmt: skip
            if node.materialization is Materialization.VIEW:
                views[fold_case(node.name)] = size


class _Count:
    """Counts one query."""

    def __init__(self, views: Mapping[str, int], *, has_inlined_tables: bool) -> None:
        self._views = views
        self._has_inlined_tables = has_inlined_tables
        self._common: dict[str, int] = {}
        self._written = 0

    def of(self, root: Any, aliases: dict[str, int]) -> int:
        """Count what a part becomes; `aliases` are the sizes of outputs that it may mention."""
        total = 0
        waiting: list[tuple[Any, int, dict[str, int]]] = [(root, 1, aliases)]
        while waiting:
            node, times, known = waiting.pop()
            if isinstance(node, list):
                waiting.extend((item, times, known) for item in node)
                continue
            if not isinstance(node, dict):
                continue
            kind = node.get("type")
            if kind == "SELECT_NODE":
                total += times * self._common_tables(node)
                own: dict[str, int] = {}
                total += times * self._outputs(node, own)
                waiting.append((node.get("from_table"), times, {}))
                rest = (value for key, value in node.items() if key not in {"select_list", "from_table", "cte_map"})
                waiting.extend((value, times, own) for value in rest)
                continue
            if "cte_map" in node:
                total += times * self._common_tables(node)
            if "class" in node or "query_location" in node:
                total += times * self._own_size(node, known)
                self._written += 1
            waiting.extend(_parts(node, times, known))
            self._check(total)
        return total

    def _outputs(self, select: Tree, own: dict[str, int]) -> int:
        total = 0
        for item in select.get("select_list", ()):
            size = self.of(item, own)
            total += size
            if item.get("alias"):
                own.setdefault(fold_case(str(item["alias"])), size)
            self._check(total)
        return total

    def _common_tables(self, node: Tree) -> int:
        total = 0
        for entry in node["cte_map"]["map"]:
            size = self.of(entry["value"], {})
            if self._has_inlined_tables:
                self._common[fold_case(str(entry["key"]))] = size
            total += size
            self._check(total)
        return total

    def _own_size(self, node: Tree, aliases: Mapping[str, int]) -> int:
        """Return the size of a part without what is inside it."""
        if node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
            return 1 + aliases.get(fold_case(str(node["column_names"][0])), 0)
        if node.get("type") == "BASE_TABLE":
            name = fold_case(str(node.get("table_name", "")))
            is_staging = str(node.get("schema_name", "")).lower() == STAGING_SCHEMA
            return 1 + (self._views.get(name, 0) if is_staging else self._common.get(name, 0))
        return 1

    def _check(self, total: int) -> None:
        if total - self._written > MAX_GROWTH:
            raise TooMuchGrowthError


def _parts(node: Tree, times: int, aliases: dict[str, int]) -> list[tuple[Any, int, dict[str, int]]]:
    copies = 1
    if node.get("class") == "FUNCTION":
        copies = _COPIED_ARGUMENTS.get(str(node.get("function_name", "")).lower(), 1)
    elif node.get("class") == "LAMBDA":
        copies = 2
    found = []
    for key, value in node.items():
        if isinstance(value, (dict, list)) and key != "cte_map":
            is_copied = key == "input" and node.get("class") == "BETWEEN"
            found.append((value, times * (2 if is_copied else copies), aliases))
    return found
