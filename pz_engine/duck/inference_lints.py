"""Doubts about inferred types, looked for in what was staged.

A finding names columns and formats, never values, and never fails a load.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pz_engine.duck.quoting import quote_identifier
from pz_engine.duck.session import DuckCursor

_EXACT_BELOW = 2**53
_INTEGER_LIMIT = 2**127


class AmbiguousFormat(Struct, frozen=True):
    """A day-first or month-first format under which every staged value could be read the other way round."""

    format: str
    columns: tuple[str, ...]


def lossy_integer_columns(cursor: DuckCursor, relation: str) -> tuple[str, ...]:
    """Return the DOUBLE columns that hold only whole numbers, some too large for a double to be exact."""
    doubles = [column.name for column in cursor.describe(f"select * from {relation}") if column.type == "DOUBLE"]
    if not doubles:
        return ()
    tests: list[str] = []
    for name in doubles:
        column = quote_identifier(name)
        whole = f"bool_and(isfinite({column}) and {column} = trunc({column})) filter ({column} is not null)"
        largest = f"max(abs({column})) filter (isfinite({column}))"
        tests.append(
            f"coalesce({whole} and {largest} > {_EXACT_BELOW} and {largest} < {_INTEGER_LIMIT}::DOUBLE, false)"
        )
    answers = cursor.rows(f"select {', '.join(tests)} from {relation}")[0]
    return tuple(name for name, is_lossy in zip(doubles, answers, strict=True) if is_lossy)


def ambiguous_dates(cursor: DuckCursor, relation: str, date_formats: Mapping[str, str]) -> tuple[AmbiguousFormat, ...]:
    """Return the formats, one entry each, whose columns hold values but no day above 12.

    Args:
        cursor: any idle cursor.
        relation: quoted name of the staged relation.
        date_formats: column to format, as `ResolvedScan.date_formats` has them.
    """
    doubtful = {name: text for name, text in date_formats.items() if text.startswith(("%d", "%m"))}
    if not doubtful:
        return ()
    tests = [f"coalesce(max(day({quote_identifier(name)})) <= 12, false)" for name in doubtful]
    answers = cursor.rows(f"select {', '.join(tests)} from {relation}")[0]
    families: dict[str, list[str]] = {}
    for (name, text), is_ambiguous in zip(doubtful.items(), answers, strict=True):
        if is_ambiguous:
            families.setdefault(text, []).append(name)
    return tuple(AmbiguousFormat(text, tuple(names)) for text, names in families.items())
