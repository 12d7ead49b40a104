"""Recognises `watermark()` comparisons in a query.

A comparison counts only where it filters the rows of its own table for certain: a condition of WHERE, or of a join that
drops what does not match. Anything else could lose rows once the bound is pushed into the read, so it is refused.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from msgspec import Struct

from pz_engine.compile.dag import Graph, PipelineNode, SourceLoadNode
from pz_engine.compile.sql_tree import (
    Slot,
    Tree,
    conjuncts,
    expression_text,
    is_table,
    joins,
    relation_alias,
    relations,
    select_nodes,
    text_constants,
    walk,
)
from pz_engine.compile.template.calls import WATERMARK_MARKER
from pz_engine.duck.introspect import SqlParser
from pz_engine.duck.quoting import STAGING_SCHEMA, quote_literal
from pz_engine.model.cursor_values import typed_null

_FLOORS = {"COMPARE_GREATERTHAN": False, "COMPARE_GREATERTHANOREQUALTO": True}
_CEILINGS = {"COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO"}
_FLIPPED = {
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHAN",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHAN",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHANOREQUALTO",
}
_VALUE_CLASSES = {"CONSTANT", "FUNCTION", "CAST", "OPERATOR", "CASE", "COMPARISON", "CONJUNCTION", "BETWEEN"}
_WHOLE_TABLE_JOINS = frozenset({"ASOF", "POSITIONAL"})
"""Joins in which a row's partner depends on the table's other rows."""

_BOTH_SIDES = frozenset({"left", "right"})
_FILTERED_SIDES = {"INNER": _BOTH_SIDES, "SEMI": _BOTH_SIDES, "LEFT": frozenset({"right"}), "RIGHT": frozenset({"left"}),
                   "ANTI": frozenset({"right"})}  # fmt: skip


class Comparison(Struct, frozen=True):
    """One recognised floor."""

    sentinel: str
    cursor: str
    is_inclusive: bool
    keeps_null_cursor: bool
    value_sql: str
    """The value side, sentinel included."""

    expression: Tree
    """The comparison itself, without its guard."""

    is_flipped: bool
    """The cursor stands on the right."""

    @property
    def location(self) -> int:
        """Return where the operator stands, in bytes."""
        return int(self.expression.get("query_location", -1))


class Violation(Struct, frozen=True):
    """One use of a sentinel that bounds nothing."""

    sentinel: str
    cause: str
    location: int
    """Where the sentinel stands, in bytes."""


class WatermarkAnalysis(Struct, frozen=True):
    """What a query does with its sentinels; recognised comparisons are guarded against NULL in the tree."""

    comparisons: tuple[Comparison, ...]
    violations: tuple[Violation, ...]


def analyse_watermarks(tree: Tree, tables: Mapping[str, str], parser: SqlParser) -> WatermarkAnalysis:
    """Recognise every comparison and add `<value> IS NULL OR` to it in the tree.

    Args:
        tree: the query; changed in place.
        tables: staging table of each sentinel's entity.
        parser: renders value sides and knows which functions are deterministic.
    """
    return _Analysis(tree, tables, parser).run()


def substitute_watermarks(sql: str, literals: Mapping[str, str]) -> str:
    """Put SQL literals in place of quoted sentinels.

    >>> substitute_watermarks("u > '__pz_watermark__erp.orders'", {"__pz_watermark__erp.orders": "DATE '2026-01-02'"})
    "u > DATE '2026-01-02'"
    """
    for sentinel, literal in literals.items():
        sql = sql.replace(quote_literal(sentinel), literal)
    return sql


def null_watermarks(node: PipelineNode, graph: Graph) -> str:
    """Return a pipeline's query with a NULL of the cursor's type for every sentinel, so that it binds."""
    sources = [graph.by_id[identity] for identity in node.depends_on]
    cursor_types = {
        source.key: source.incremental.cursor_type
        for source in sources
        if isinstance(source, SourceLoadNode) and source.incremental is not None
    }
    nulls: dict[str, str] = {}
    for use in node.watermarks:
        cursor_type = cursor_types.get(use.key)
        nulls[use.sentinel] = typed_null(cursor_type) if cursor_type is not None else "NULL"
    return substitute_watermarks(node.sql, nulls)


class _NotRecognisedError(Exception):
    """Why a comparison is no floor."""


class _Analysis:
    def __init__(self, tree: Tree, tables: Mapping[str, str], parser: SqlParser) -> None:
        self._tree = tree
        self._tables = tables
        self._parser = parser
        self._comparisons: list[Comparison] = []
        self._violations: list[Violation] = []
        self._explained: set[int] = set()
        """Identities of the constants already accounted for, well or badly."""

    def run(self) -> WatermarkAnalysis:
        for select in list(select_nodes(self._tree)):
            for slot, sides in _filter_slots(select):
                if _has_sentinel(slot.node):
                    self._condition(select, slot, sides)
        for sentinel, constant in _sentinels(self._tree):
            if id(constant) not in self._explained:
                self._explained.add(id(constant))
                cause = "it stands outside a condition of WHERE or of an inner join's ON"
                self._violations.append(Violation(sentinel, cause, int(constant["query_location"])))
        for node in walk(self._tree):
            hidden = next((sentinel for sentinel in self._tables if _hides(node, sentinel, self._tables)), None)
            if hidden is not None:
                cause = "it stands inside another text or name"
                self._violations.append(Violation(hidden, cause, int(node.get("query_location", -1))))
        return WatermarkAnalysis(tuple(self._comparisons), tuple(self._violations))

    def _condition(self, select: Tree, slot: Slot, visible: frozenset[int] | None) -> None:
        node, null_test = slot.node, None
        target = slot
        if node.get("type") == "CONJUNCTION_OR" and len(node["children"]) == 2:
            tests = [index for index, child in enumerate(node["children"]) if child.get("type") == "OPERATOR_IS_NULL"]
            if len(tests) == 1:
                null_test = node["children"][tests[0]]["children"][0]
                target = Slot(node["children"], 1 - tests[0])
        if any(inner.get("type") == "SELECT_NODE" and _has_sentinel(inner) for inner in walk(node)):
            return  # a sub-query's own conditions are looked at in its own turn
        try:
            comparison = self._recognise(select, target.node, visible, null_test)
        except _NotRecognisedError as error:
            first: dict[str, Tree] = {}
            for sentinel, constant in _sentinels(node):
                first.setdefault(sentinel, constant)
            for sentinel, constant in first.items():
                self._violations.append(Violation(sentinel, str(error), int(constant["query_location"])))
            self._explain(node)
            return
        self._comparisons.append(comparison)
        self._explain(node)
        self._guard(target)

    def _explain(self, node: Tree) -> None:
        self._explained.update(id(constant) for _, constant in _sentinels(node))

    def _recognise(
        self, select: Tree, node: Tree, visible: frozenset[int] | None, null_test: Tree | None
    ) -> Comparison:
        if node.get("class") != "COMPARISON":
            raise _NotRecognisedError(_describe_misuse(node))
        left, right, kind = node["left"], node["right"], node["type"]
        if _has_sentinel(left) and _has_sentinel(right):
            raise _NotRecognisedError("both sides of the comparison hold a watermark()")
        cursor, value = (right, left) if _has_sentinel(left) else (left, right)
        if cursor is right:
            kind = _FLIPPED.get(kind, kind)
        if kind not in _FLOORS and kind not in _CEILINGS:
            raise _NotRecognisedError("it is compared with an operator other than > and >=")
        if cursor.get("class") != "COLUMN_REF":
            raise _NotRecognisedError("the other side is no bare column, but an expression")
        self._check_value(value)
        sentinel = next(text_constants(value, WATERMARK_MARKER))
        name = self._resolve(select, cursor, sentinel, visible)
        if kind in _CEILINGS:
            raise _NotRecognisedError("it is an upper bound; only lower bounds can be declared")
        if null_test is not None and null_test.get("column_names") != cursor["column_names"]:
            raise _NotRecognisedError("it is one arm of an OR")
        value_sql = expression_text(self._parser, value)
        if value_sql is None:
            raise _NotRecognisedError("DuckDB cannot write the value side back unchanged")
        return Comparison(
            sentinel, name, _FLOORS[kind], null_test is not None, value_sql, node, is_flipped=cursor is right
        )  # fmt: skip

    def _check_value(self, value: Tree) -> None:
        sentinels = set(text_constants(value, WATERMARK_MARKER))
        if len(sentinels) > 1:
            raise _NotRecognisedError("the value side uses the watermarks of several entities")
        for node in walk(value):
            kind = node.get("class")
            if kind == "COLUMN_REF":
                raise _NotRecognisedError("the value side holds a column")
            if kind is not None and kind not in _VALUE_CLASSES:
                raise _NotRecognisedError("the value side holds more than constants and functions of them")
            if kind == "FUNCTION":
                name = str(node["function_name"])
                is_age_of_now = name.lower() == "age" and len(node["children"]) == 1
                if is_age_of_now or not self._parser.is_deterministic(name):
                    raise _NotRecognisedError(f"the value side calls {name}(), which is unknown or not deterministic")

    def _resolve(self, select: Tree, cursor: Tree, sentinel: str, visible: frozenset[int] | None) -> str:
        parts = [str(part) for part in cursor["column_names"]]
        found = list(relations(select.get("from_table")))
        if len(parts) == 1:
            if len(found) != 1:
                raise _NotRecognisedError(f"column {parts[0]} has no table name in front, and several tables are read")
            table = found[0]
        elif len(parts) == 2 or self._starts_with_schema(parts, found):
            named = [relation for relation in found if relation_alias(relation) == parts[-2].lower()]
            if len(named) != 1:
                raise _NotRecognisedError(f"'{parts[0]}' names no table of this SELECT")
            table = named[0]
        else:
            raise _NotRecognisedError("the other side is no bare column, but a field of one")
        if not is_table(table, STAGING_SCHEMA, self._tables[sentinel]) or table.get("column_name_alias"):
            raise _NotRecognisedError(f"column {parts[-1]} does not come from the source() of this entity")
        if any(join.get("ref_type") in _WHOLE_TABLE_JOINS for join in joins(select.get("from_table"))):
            raise _NotRecognisedError(
                "an ASOF or POSITIONAL join stands beside it, which would pair other rows if fewer were read"
            )
        if visible is not None and id(table) not in visible:
            raise _NotRecognisedError("the join keeps rows that do not meet its condition")
        return parts[-1]

    @staticmethod
    def _starts_with_schema(parts: list[str], found: list[Tree]) -> bool:
        """Tell whether a name is `staging.<table>.<column>`, which a `source()` in front of a column renders to."""
        if len(parts) != 3 or parts[0].lower() != STAGING_SCHEMA:
            return False
        is_schema = all(relation_alias(relation) != STAGING_SCHEMA for relation in found)
        return is_schema and any(
            not table.get("alias") and relation_alias(table) == parts[1].lower() for table in found
        )

    def _guard(self, slot: Slot) -> None:
        comparison = slot.node
        value = comparison["right"] if _has_sentinel(comparison["right"]) else comparison["left"]
        location = comparison.get("query_location", 0)
        is_null = {"class": "OPERATOR", "type": "OPERATOR_IS_NULL", "alias": "", "query_location": location,
                   "children": [value]}  # fmt: skip
        slot.replace(
            {"class": "CONJUNCTION", "type": "CONJUNCTION_OR", "alias": "", "query_location": location,
             "children": [is_null, comparison]}
        )  # fmt: skip


def _filter_slots(select: Tree) -> Iterator[tuple[Slot, frozenset[int] | None]]:
    """Yield the conditions of a SELECT; with each the tables it filters, None for all of them."""
    if select.get("where_clause"):
        for slot in conjuncts(Slot(select, "where_clause")):
            yield slot, None
    for join in joins(select.get("from_table")):
        if not join.get("condition") or join.get("ref_type") != "REGULAR":
            continue
        sides = _FILTERED_SIDES.get(str(join.get("join_type")), frozenset())
        visible = frozenset(id(table) for side in sides for table in relations(join[side]))
        for slot in conjuncts(Slot(join, "condition")):
            yield slot, visible


def _sentinels(node: Tree) -> Iterator[tuple[str, Tree]]:
    for current in walk(node):
        if current.get("class") == "CONSTANT":
            for text in text_constants(current, WATERMARK_MARKER):
                yield text, current


def _hides(node: Tree, sentinel: str, sentinels: Container[str]) -> bool:
    """Tell whether a sentinel is only a part of a text or of a name."""
    texts = [item for value in node.values() for item in (value if isinstance(value, list) else [value])]
    return any(isinstance(text, str) and sentinel in text and text not in sentinels for text in texts)


def _has_sentinel(node: Tree) -> bool:
    return next(text_constants(node, WATERMARK_MARKER), None) is not None


def _describe_misuse(node: Tree) -> str:
    kind = str(node.get("type", ""))
    if kind == "CONJUNCTION_OR":
        return "it is one arm of an OR"
    if kind == "OPERATOR_NOT":
        return "it stands below NOT"
    if "BETWEEN" in kind:
        return "it is used in BETWEEN"
    if kind in {"COMPARE_IN", "COMPARE_NOT_IN"}:
        return "it is used in IN"
    return "it is not compared with > or >="
