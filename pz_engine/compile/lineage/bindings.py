"""What a FROM clause offers: relations, their columns, and what joins make of columns of the same name.

A lookup says how certain it is; a relation with unknown columns may hold any name, and that doubt is kept.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.compile.lineage.values import ColumnSource
from pz_engine.duck.quoting import STAGING_SCHEMA

Sources = frozenset[ColumnSource]

VALUE_NAMES = frozenset(
    {
        "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user", "user",
        "session_user", "current_role", "current_catalog", "current_database", "current_schema", "rowid",
    }
)  # fmt: skip
"""Names that DuckDB gives a meaning of their own when no column has them."""

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold_case(name: str) -> str:
    """Return a name as DuckDB compares it: only ASCII letters have no case.

    >>> fold_case("ÄBc")
    'Äbc'
    """
    return name.translate(_ASCII_LOWER)


class Certainty(Enum):
    """How certain it is what a name means here."""

    FOUND = "found"
    POSSIBLE = "possible"
    """It is the column given, unless something further out has the name."""

    ABSENT = "absent"
    DOUBT = "doubt"


class Column(Struct, frozen=True):
    """A column of a relation or of a query's output."""

    name: str | None
    """None when only DuckDB knows how it spells the expression."""

    sources: Sources | None
    is_gap: bool = False
    """Stands for any number of columns of unknown names, each with these sources; it may be one of this name."""


UNKNOWN = Column(None, None)
GAP = Column(None, None, is_gap=True)


class Hit(Struct, frozen=True):
    """Result of a lookup."""

    certainty: Certainty
    column: Column = UNKNOWN


_ABSENT = Hit(Certainty.ABSENT)
_DOUBT = Hit(Certainty.DOUBT)
_FOUND_UNKNOWN = Hit(Certainty.FOUND)


class Relation(Struct, frozen=True):
    """One relation of a FROM clause."""

    columns: tuple[Column, ...] = (GAP,)
    alias: str | None = None
    """Folded."""

    node: str | None = None
    """The node it stands for, when its columns are not known: then any name may be a column of that node."""

    is_staging: bool = False
    """May also be called `staging.<alias>`."""

    def matches(self, name: str) -> list[Column]:
        """Return the columns of a folded name; a gap before one may hold the name too, and then its sources are unsure."""
        found: list[Column] = []
        is_shadowed = False
        for column in self.columns:
            is_shadowed = is_shadowed or column.is_gap
            if not column.is_gap and column.name is not None and fold_case(column.name) == name:
                found.append(replace(column, sources=None) if is_shadowed else column)
        return found

    @property
    def may_hold_more(self) -> bool:
        """Tell whether it may have columns of names that are not known."""
        return any(column.is_gap or column.name is None for column in self.columns)

    def lookup(self, written: str) -> Hit:
        """Find a column by the name a query wrote."""
        name = fold_case(written)
        found = self.matches(name)
        if found:
            return Hit(Certainty.FOUND, found[0]) if len(found) == 1 else _FOUND_UNKNOWN
        if not self.may_hold_more:
            return _ABSENT
        if self.node is not None:
            source = ColumnSource(self.node, written)
            return _DOUBT if name in VALUE_NAMES else Hit(Certainty.POSSIBLE, Column(written, frozenset({source})))
        gaps = [column for column in self.columns if column.is_gap and column.name is not None]
        if len(gaps) == 1 and fold_case(gaps[0].name or "") == name:
            return Hit(Certainty.POSSIBLE, replace(gaps[0], is_gap=False))
        return _DOUBT


class Merged(Struct, frozen=True):
    """A column that a join made of columns of the same name."""

    name: str
    """Folded."""

    column: Column
    members: frozenset[int]
    """Positions of the relations whose column is part of it."""

    takes_written_name: bool = False
    """A reference is called as it is written (full joins)."""


class Bindings(Struct, frozen=True):
    """A FROM clause."""

    relations: tuple[Relation, ...] = ()
    merged: tuple[Merged, ...] = ()
    is_unclear: bool = False
    """A join merged columns that cannot be listed; only qualified names are certain."""

    def find(self, parts: Sequence[str]) -> Hit:
        """Find what a reference of one or more parts means; further parts may be fields of a struct."""
        if len(parts) > 1:
            hit = self._find_qualified(parts)
            if hit is not None:
                return hit
        hit = self._find_name(parts[0])
        if len(parts) > 1 and hit.certainty in (Certainty.FOUND, Certainty.POSSIBLE):
            return replace(hit, column=replace(hit.column, name=parts[-1]))
        return hit

    def _find_qualified(self, parts: Sequence[str]) -> Hit | None:
        first = fold_case(parts[0])
        if first == STAGING_SCHEMA and len(parts) > 2:
            named = [r for r in self.relations if r.is_staging and r.alias == fold_case(parts[1])]
            if named:
                return _in_relation(named, parts[2:])
        named = [relation for relation in self.relations if relation.alias == first]
        return _in_relation(named, parts[1:]) if named else None

    def _find_name(self, written: str) -> Hit:
        """Find an unqualified name; a merged column comes before a relation's own."""
        name = fold_case(written)
        if self.is_unclear:
            return _DOUBT
        merged = [m for m in self.merged if m.name == name]
        if merged:
            column = replace(merged[0].column, name=written) if merged[0].takes_written_name else merged[0].column
            return Hit(Certainty.FOUND, column) if len(merged) == 1 else _FOUND_UNKNOWN
        hits = [column for relation in self.relations for column in relation.matches(name)]
        if hits:
            return Hit(Certainty.FOUND, hits[0]) if len(hits) == 1 else _FOUND_UNKNOWN
        if any(relation.alias == name for relation in self.relations):
            return _DOUBT  # the whole row as a struct
        unclear = [relation for relation in self.relations if relation.may_hold_more]
        if not unclear:
            return _ABSENT
        return unclear[0].lookup(written) if len(unclear) == 1 else _DOUBT

    def expand(self, qualifier: str | None = None) -> tuple[tuple[int, Column], ...] | None:
        """List the columns of a star, each with the position of its relation; None when their order is not known."""
        if qualifier is not None:
            named = [(i, r) for i, r in enumerate(self.relations) if r.alias == fold_case(qualifier)]
            if len(named) != 1:
                return None
            return tuple((named[0][0], column) for column in named[0][1].columns)
        if self.is_unclear or not self.relations:
            return None
        found: list[tuple[int, Column]] = []
        for index, relation in enumerate(self.relations):
            for column in relation.columns:
                merge = self._merge_of(index, column)
                if merge is None:
                    found.append((index, column))
                elif index == min(merge.members):
                    found.append((index, merge.column))
        return tuple(found)

    def _merge_of(self, index: int, column: Column) -> Merged | None:
        if column.name is None:
            return None
        name = fold_case(column.name)
        return next((entry for entry in self.merged if entry.name == name and index in entry.members), None)


def _in_relation(named: Sequence[Relation], rest: Sequence[str]) -> Hit | None:
    """Find a column in the one relation of an alias; None when the alias may be the name of a struct instead."""
    if len(named) != 1:
        return _FOUND_UNKNOWN
    hit = named[0].lookup(rest[0])
    if hit.certainty is Certainty.ABSENT:
        return None
    if hit.certainty is Certainty.DOUBT:
        return _FOUND_UNKNOWN
    if hit.certainty is Certainty.POSSIBLE:
        return _FOUND_UNKNOWN  # or a field of a struct that is called like the alias
    column = hit.column if len(rest) == 1 else replace(hit.column, name=rest[-1])
    return Hit(Certainty.FOUND, column)
