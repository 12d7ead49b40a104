"""What the readers of an entity need of it: columns, and a predicate.

Hints let a connector read less; DuckDB applies the whole query again. A wrong hint loses rows, so every doubt means
that nothing is pushed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from pz_engine.compile.dag import PushedHints
from pz_engine.compile.sql_tree import (
    Slot,
    Tree,
    conjuncts,
    expression_text,
    is_table,
    joins,
    relation_alias,
    relations,
    text_constants,
    top_node,
    walk,
    walk_own,
)
from pz_engine.compile.template.calls import WATERMARK_MARKER
from pz_engine.duck.introspect import SqlParser
from pz_engine.duck.quoting import STAGING_SCHEMA

_UNCLEAR_CLASSES = frozenset({"SUBQUERY", "LAMBDA", "POSITIONAL_REFERENCE", "PARAMETER"})
_VALUE_FUNCTIONS = frozenset(
    {
        "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user", "user",
        "session_user", "current_role", "current_catalog", "current_database", "current_schema", "rowid",
    }
)  # fmt: skip
_CONDITION_CLASSES = frozenset(
    {"COLUMN_REF", "CONSTANT", "COMPARISON", "CONJUNCTION", "FUNCTION", "CAST", "OPERATOR", "CASE", "BETWEEN"}
)
_PLAIN_JOINS = frozenset({"REGULAR", "NATURAL", "CROSS"})
_KEPT_SIDES = {"INNER": ("left", "right"), "LEFT": ("left",), "SEMI": ("left",), "ANTI": ("left",), "RIGHT": ("right",)}


class ReaderHints(Struct, frozen=True):
    """What one reader needs; None for all columns, and for no predicate."""

    columns: frozenset[str] | None = None
    predicate_sql: str | None = None


def analyse_reader(
    tree: Tree | None, table: str, cursor: str | None, contract: Sequence[str], parser: SqlParser
) -> ReaderHints:
    """Find out what one reader needs of a staging table.

    Args:
        tree: the reader's compiled query; None when it does not parse.
        table: unqualified name of the staging table.
        cursor: cursor column, whose conditions are never pushed.
        contract: columns of the entity's contract; empty without one.
        parser: renders conditions and knows which functions are deterministic.
    """
    if tree is None:
        return ReaderHints()
    node = top_node(tree)
    if node.get("type") != "SELECT_NODE":
        return ReaderHints()
    targets = [relation for relation in relations(node.get("from_table")) if is_table(relation, STAGING_SCHEMA, table)]
    mentions = sum(is_table(inner, STAGING_SCHEMA, table) for inner in walk(tree))
    if not targets or mentions > len(targets):
        return ReaderHints()
    reader = _Reader(node, targets, table, tuple(contract))
    try:
        return ReaderHints(reader.columns(), _Predicate(reader, cursor, parser).render())
    except RecursionError:  # an expression of very many levels
        return ReaderHints()


def combine_hints(readers: Sequence[ReaderHints], cursor: str | None) -> PushedHints:
    """Unite what all readers need; a predicate survives only a single reader."""
    columns: set[str] | None = set()
    for reader in readers:
        columns = None if columns is None or reader.columns is None else columns | reader.columns
    if columns is not None and cursor is not None and cursor.lower() not in {name.lower() for name in columns}:
        columns.add(cursor)
    if not columns or len({name.lower() for name in columns}) != len(columns):
        columns = None
    predicate = readers[0].predicate_sql if len(readers) == 1 else None
    return PushedHints(tuple(sorted(columns)) if columns is not None else None, predicate)


class _UnclearError(Exception):
    """A reference cannot be attributed to a table for certain."""


class _Reader:
    """The outer SELECT of one reader, and which column references mean the target table."""

    def __init__(self, node: Tree, targets: list[Tree], table: str, contract: tuple[str, ...]) -> None:
        self.node = node
        self.targets = targets
        self.aliases = {relation_alias(target) for target in targets}
        self._table = table.lower()
        self._is_single = len(list(relations(node.get("from_table")))) == 1
        self._contract = {column.lower(): column for column in contract}
        self.select_aliases = {str(item["alias"]).lower() for item in node["select_list"] if item.get("alias")}

    def columns(self) -> frozenset[str] | None:
        """Return the target's columns that the SELECT mentions; None when it may need all."""
        if any(target.get("column_name_alias") for target in self.targets):
            return None
        if any(
            join.get("using_columns") or join.get("ref_type") == "NATURAL" for join in joins(self.node["from_table"])
        ):
            return None
        found: set[str] = set()
        try:
            for part in _own_parts(self.node):
                kind = part.get("class")
                if kind in _UNCLEAR_CLASSES or part.get("type") == "SUBQUERY":
                    return None
                if kind == "STAR" and self._covers_target(part):
                    return None
                if kind == "COLUMN_REF":
                    name = self.target_column(part)
                    if name is not None:
                        found.add(name)
        except _UnclearError:
            return None
        return frozenset(found) if len({name.lower() for name in found}) == len(found) else None

    def target_column(self, reference: Tree) -> str | None:
        """Return the target's column a reference means, or None when it means another table.

        Raises:
            _UnclearError: it cannot be told.
        """
        parts = [str(part) for part in reference["column_names"]]
        first = parts[0].lower()
        if len(parts) > 1 and not self._contract and not (self._is_single and self._is_a_field(first)):
            raise _UnclearError  # any qualifier may be a struct of the table's, whose columns nobody declared
        if len(parts) > 1 and first in self.aliases:
            return self._declared(parts[1])
        if len(parts) > 2 and first == STAGING_SCHEMA and parts[1].lower() in self.aliases:
            return self._declared(parts[2])
        if self._is_single:
            if first == STAGING_SCHEMA or (len(parts) == 1 and first in self.aliases):
                raise _UnclearError  # a struct called like the schema, or the whole row
            return self._unqualified(parts[0])
        if len(parts) > 1 and first in self._other_aliases() and first not in self._contract:
            return None
        raise _UnclearError

    def _unqualified(self, name: str) -> str:
        lowered = name.lower()
        if lowered in self._contract:
            return self._contract[lowered]
        if lowered in _VALUE_FUNCTIONS:
            raise _UnclearError
        if lowered in self.select_aliases and not self._is_behind_its_alias(lowered):
            raise _UnclearError
        return name

    def _declared(self, name: str) -> str:
        if name.lower() not in self._contract:
            raise _UnclearError  # a field of a struct that is called like the table, or no column at all
        return self._contract[name.lower()]

    def _is_a_field(self, qualifier: str) -> bool:
        """Tell whether a qualifier can be nothing but a column, of which a field is taken."""
        return qualifier not in self.aliases and qualifier != STAGING_SCHEMA

    def _is_behind_its_alias(self, name: str) -> bool:
        """Tell whether an output of that name is computed from a column of that name."""
        for item in self.node["select_list"]:
            if str(item.get("alias", "")).lower() == name:
                for part in walk(item):
                    if part.get("class") == "COLUMN_REF" and str(part["column_names"][0]).lower() == name:
                        return True
        return False

    def _other_aliases(self) -> set[str]:
        return {relation_alias(relation) for relation in relations(self.node["from_table"])} - self.aliases

    def _covers_target(self, star: Tree) -> bool:
        if star.get("columns") or star.get("expr"):
            return True
        relation = str(star.get("relation_name") or "").lower()
        return not relation or relation in self.aliases or relation == self._table


class _Predicate:
    """The conditions of one reader that concern only the target table."""

    def __init__(self, reader: _Reader, cursor: str | None, parser: SqlParser) -> None:
        self._reader = reader
        self._cursor = cursor.lower() if cursor is not None else None
        self._parser = parser

    def render(self) -> str | None:
        """Return the conditions joined by AND, without qualifiers; None when there are none."""
        node = self._reader.node
        if len(self._reader.targets) != 1 or not node.get("where_clause") or node.get("sample"):
            return None
        target = self._reader.targets[0]
        if target.get("sample") or target.get("column_name_alias") or not _is_kept(node["from_table"], target):
            return None
        rendered: list[str] = []
        for slot in conjuncts(Slot(node, "where_clause")):
            if self._is_pushable(slot.node):
                text = expression_text(self._parser, self._without_qualifiers(slot.node))
                if text is not None:
                    rendered.append(text)
        return " AND ".join(rendered) or None

    def _is_pushable(self, condition: Tree) -> bool:
        if next(text_constants(condition, WATERMARK_MARKER), None) is not None:
            return False
        mentions_target = False
        for part in walk(condition):
            kind = part.get("class")
            if kind is not None and kind not in _CONDITION_CLASSES:
                return False
            if kind == "FUNCTION" and not self._is_plain_function(part):
                return False
            if kind == "COLUMN_REF":
                if not self._is_target_column(part):
                    return False
                mentions_target = True
        return mentions_target

    def _is_plain_function(self, part: Tree) -> bool:
        name = str(part["function_name"])
        if name.lower() == "age" and len(part["children"]) == 1:
            return False
        return self._parser.is_deterministic(name)

    def _is_target_column(self, reference: Tree) -> bool:
        try:
            name = self._reader.target_column(reference)
        except _UnclearError:
            return False
        if name is None or name.lower() == self._cursor:
            return False
        if str(reference["column_names"][-1]).lower() != name.lower():
            return False  # a field of a struct, which no other engine spells the same
        return len(reference["column_names"]) > 1 or name.lower() not in self._reader.select_aliases

    def _without_qualifiers(self, condition: Any) -> Any:
        if isinstance(condition, list):
            return [self._without_qualifiers(item) for item in condition]
        if not isinstance(condition, dict):
            return condition
        copy = {key: self._without_qualifiers(value) for key, value in condition.items()}
        if copy.get("class") == "COLUMN_REF":
            parts = list(copy["column_names"])
            if len(parts) > 2 and parts[0].lower() == STAGING_SCHEMA and parts[1].lower() in self._reader.aliases:
                copy["column_names"] = parts[2:]
            elif len(parts) > 1 and parts[0].lower() in self._reader.aliases:
                copy["column_names"] = parts[1:]
        return copy


def _own_parts(node: Tree) -> Iterator[Tree]:
    """Yield the parts of the outer SELECT, its common table expressions left out; sub-queries show as `SUBQUERY`."""
    return walk_own(node, without=("cte_map",))


def _is_kept(from_table: Tree, target: Tree) -> bool:
    """Tell whether no join can fill the target's columns with NULL, or match by anything but its condition."""
    if from_table is target:
        return True
    if from_table.get("type") != "JOIN":
        return False
    side = next((s for s in ("left", "right") if any(r is target for r in relations(from_table[s]))), None)
    if side is None or from_table.get("ref_type") not in _PLAIN_JOINS:
        return False
    if side not in _KEPT_SIDES.get(str(from_table.get("join_type")), ()):
        return False
    return _is_kept(from_table[side], target)
