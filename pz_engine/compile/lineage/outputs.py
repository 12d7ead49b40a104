"""Lists of output columns: renamed, merged by set operations, and seen as a relation.

A gap stands for any number of columns, so a list with one can be matched with no other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from pz_engine.compile.lineage.bindings import GAP, Column, fold_case
from pz_engine.compile.lineage.joins import united

Outputs = tuple[Column, ...]


def has_gap(columns: Outputs) -> bool:
    """Tell whether the number of columns is not known."""
    return any(column.is_gap for column in columns)


def renamed(columns: Outputs, names: Sequence[str]) -> Outputs:
    """Give the first columns other names, as `AS t(a, b)` does."""
    if not names:
        return columns
    if has_gap(columns) or len(names) > len(columns):
        return (GAP,)
    first = tuple(replace(column, name=name) for column, name in zip(columns, names, strict=False))
    return first + columns[len(names) :]


def merged_by_position(left: Outputs, right: Outputs) -> Outputs:
    """Unite two lists as UNION does."""
    if has_gap(left) or has_gap(right) or len(left) != len(right):
        return (GAP,)
    return tuple(
        replace(mine, sources=united((mine.sources, theirs.sources))) for mine, theirs in zip(left, right, strict=True)
    )


def merged_by_name(left: Outputs, right: Outputs) -> Outputs:
    """Unite two lists as UNION BY NAME does: the left one's columns, then those only the right one has."""
    by_name: list[dict[str, Column]] = []
    for side in (left, right):
        names = {fold_case(column.name): column for column in side if column.name is not None}
        if has_gap(side) or len(names) != len(side):
            return (GAP,)
        by_name.append(names)
    mine, theirs = by_name
    shared = tuple(
        replace(column, sources=united((column.sources, theirs[name].sources))) if name in theirs else column
        for name, column in mine.items()
    )
    return shared + tuple(column for name, column in theirs.items() if name not in mine)


def as_columns(columns: Outputs) -> Outputs:
    """Return the columns under which a list can be referred to.

    DuckDB numbers repeated names, so names that could be such numbers are not certain.
    """
    counts = Counter(fold_case(column.name) for column in columns if column.name is not None)
    repeated = {name for name, count in counts.items() if count > 1}
    if not repeated:
        return columns
    numbered = re.compile(rf"(?:{'|'.join(re.escape(name) for name in sorted(repeated))})_\d+")
    seen: set[str] = set()
    found: list[Column] = []
    for column in columns:
        name = fold_case(column.name or "")
        is_unsure = (name in repeated and name in seen) or numbered.fullmatch(name) is not None
        found.append(replace(column, name=None) if is_unsure else column)
        seen.add(name)
    return tuple(found)
