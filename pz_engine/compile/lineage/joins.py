"""Joins: what two sides of a FROM clause offer together.

`USING` and `NATURAL` make one column of two; its value is that of the side whose rows are all kept, or of both sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from pz_engine.compile.lineage.bindings import Bindings, Certainty, Column, Hit, Merged, Sources, fold_case


class JoinShape(Struct, frozen=True):
    """What of a join decides about its columns."""

    side: str = ""
    """`LEFT`, `RIGHT`, `FULL` or empty."""

    kind: str = ""
    """`SEMI` and `ANTI` show the left side alone."""

    using: tuple[str, ...] = ()
    is_natural: bool = False
    is_asof: bool = False


def join_bindings(left: Bindings, right: Bindings, shape: JoinShape) -> Bindings:
    """Return what both sides offer after the join."""
    if shape.kind in ("SEMI", "ANTI"):
        return left
    using = shape.using
    if shape.is_natural:
        common = _common_names(left, right)
        if common is None:
            return replace(_side_by_side(left, right), is_unclear=True)
        using = common
    joined = _side_by_side(left, right)
    for name in using:
        joined = _merge(joined, left, right, name, shape)
    return joined


def _side_by_side(left: Bindings, right: Bindings) -> Bindings:
    offset = len(left.relations)
    moved = tuple(
        replace(entry, members=frozenset(index + offset for index in entry.members)) for entry in right.merged
    )
    return Bindings(
        left.relations + right.relations, left.merged + moved, is_unclear=left.is_unclear or right.is_unclear
    )


def _common_names(left: Bindings, right: Bindings) -> tuple[str, ...] | None:
    """Return the names both sides have; None when either side may have more columns than are known."""
    if any(relation.may_hold_more for relation in left.relations + right.relations):
        return None
    columns_of_left, columns_of_right = left.expand(), right.expand()
    if columns_of_left is None or columns_of_right is None:
        return None
    names_of_right = {fold_case(column.name or "") for _, column in columns_of_right}
    names = [column.name or "" for _, column in columns_of_left]
    found = [name for name in names if fold_case(name) in names_of_right]
    return tuple(found) if len({fold_case(name) for name in found}) == len(found) else None


def _merge(joined: Bindings, left: Bindings, right: Bindings, written: str, shape: JoinShape) -> Bindings:
    name = fold_case(written)
    left_hit, right_hit = left.find((written,)), right.find((written,))
    offset = len(left.relations)
    members = _holders(left, name, 0) | _holders(right, name, offset)
    others = tuple(entry for entry in joined.merged if not (entry.name == name and entry.members & members))
    column = Column((right_hit if shape.side == "RIGHT" else left_hit).column.name, _value(left_hit, right_hit, shape))
    entry = Merged(name, column, members, takes_written_name=shape.side == "FULL")
    return replace(joined, merged=(*others, entry))


def _value(left: Hit, right: Hit, shape: JoinShape) -> Sources | None:
    certain = (Certainty.FOUND, Certainty.POSSIBLE)
    if left.certainty not in certain or right.certainty not in certain or shape.is_asof:
        return None
    if shape.side == "RIGHT":
        return right.column.sources
    if shape.side == "FULL":
        return united((left.column.sources, right.column.sources))
    return left.column.sources


def _holders(side: Bindings, name: str, offset: int) -> frozenset[int]:
    """Return the positions of the relations whose column of that name takes part."""
    merged = [entry.members for entry in side.merged if entry.name == name]
    found = frozenset[int]().union(*merged) | {
        index for index, relation in enumerate(side.relations) if relation.matches(name)
    }
    found = found or frozenset(index for index, relation in enumerate(side.relations) if relation.may_hold_more)
    return frozenset(index + offset for index in found)


def united(parts: Sequence[Sources | None]) -> Sources | None:
    """Unite sources; one that is not known makes all of them unknown."""
    found: set[Sources] = set()
    for part in parts:
        if part is None:
            return None
        found.add(part)
    return frozenset().union(*found)
