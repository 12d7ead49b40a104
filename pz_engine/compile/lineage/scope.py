"""What a name means at a place in a query: the FROM clause first, then earlier aliases, then the query around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from pz_engine.compile.lineage.bindings import UNKNOWN, Bindings, Certainty, Column, fold_case

CommonTables = Mapping[str, tuple[Column, ...]]
"""Columns of the common table expressions that can be named here, by folded name."""


class Scope(Struct):
    """A SELECT whose list is being read from left to right."""

    bindings: Bindings = field(default_factory=Bindings)
    tables: CommonTables = field(default_factory=dict)
    outer: Scope | None = None
    all_aliases: frozenset[str] = frozenset()
    """Folded aliases of the whole list, also of items not read yet."""

    aliases: dict[str, Column] = field(default_factory=dict)
    """Outputs so far that have an alias; the first of a name counts."""

    _proven: set[str] = field(default_factory=set)
    """Names that were used where no alias could be meant, so they are columns."""

    def resolve(self, parts: Sequence[str]) -> Column:
        """Return the column a reference means, without sources when that is not certain."""
        hit = self.bindings.find(parts)
        if hit.certainty is Certainty.FOUND:
            return hit.column
        if hit.certainty is Certainty.DOUBT:
            return UNKNOWN
        name = fold_case(parts[0])
        alias = self.aliases.get(name)
        if hit.certainty is Certainty.POSSIBLE:
            if name not in self._proven:
                if alias is not None or (self.outer is not None and self.outer.may_hold(parts)):
                    return UNKNOWN
                self._proven.add(name)
            return hit.column
        if alias is not None:
            return replace(alias, name=parts[-1])
        return self.outer.resolve(parts) if self.outer is not None else UNKNOWN

    def may_hold(self, parts: Sequence[str]) -> bool:
        """Tell whether a reference could mean something here or further out."""
        if self.bindings.find(parts).certainty is not Certainty.ABSENT or fold_case(parts[0]) in self.all_aliases:
            return True
        return self.outer is not None and self.outer.may_hold(parts)
