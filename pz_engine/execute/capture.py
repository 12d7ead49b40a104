"""The value a load may leave behind as watermark.

Captured from what really landed, on either tier; a caught-up window and an empty unwindowed slice give none.
"""

from __future__ import annotations

from collections.abc import Callable

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.duck.quoting import quote_identifier, quote_literal
from pz_engine.duck.session import DuckCursor
from pz_engine.execute.bounds import Bounds
from pz_engine.execute.ledgers.partition_ledger import Reach
from pz_engine.execute.outcome import NodeFailure
from pz_engine.model.cursor_values import CURSOR_TYPES, canonicalize, compare, cursor_type_of, duck_literal
from pz_engine.model.run import ColumnType, WatermarkCandidate


def capture_candidate(
    cursor: DuckCursor,
    node: SourceLoadNode,
    relation: str,
    columns: tuple[ColumnType, ...],
    bounds: Bounds,
    note: Callable[[str], None],
    reach: Reach | None = None,
) -> WatermarkCandidate | None:
    """Return the highest cursor value that landed, capped by the window and, without one, by the oldest rows' reach.

    A value that no watermark can hold, such as an infinite timestamp, gives none, and `note` says so.

    Raises:
        NodeFailure: `PZ0505`, the column is missing or has a type that cannot be a cursor.
    """
    if node.incremental is None:
        return None
    name = node.incremental.cursor
    kind = landed_cursor_type(node, columns)
    if bounds.upper is not None and bounds.type is not None and kind != bounds.type:
        raise NodeFailure(
            "PZ0505", f"cursor column '{name}' of '{node.key}' landed as {kind}, declared as {bounds.type}"
        )
    if bounds.is_caught_up:
        return None
    column = quote_identifier(name)
    inside = ""
    if bounds.upper is not None and bounds.type is not None and bounds.lower is not None:
        lower, upper = duck_literal(bounds.type, bounds.lower), duck_literal(bounds.type, bounds.upper)
        inside = f" where {column} > {lower} and {column} <= {upper}"
    text = {
        "date": f"strftime(max({column}), '%Y-%m-%d')",
        "timestamp": f"strftime(cast(max({column}) as timestamp), '%Y-%m-%dT%H:%M:%S.%f')",
    }.get(kind, f"cast(max({column}) as varchar)")
    if reach is not None and bounds.upper is None:
        if reach.value is None:
            return None
        inside = f" where {column} <= cast({quote_literal(reach.value)} as {_landed_type(columns, name)})"
    found = cursor.scalar(f"select {text} from {relation}{inside}")
    value = canonicalize(kind, str(found)) if found is not None else None
    if bounds.upper is not None and (value is None or compare(kind, value, bounds.upper) > 0):
        value = bounds.upper
    if value is None and found is not None:
        note(
            f"{node.key}: the highest value of cursor column '{name}' cannot be stored as a {kind} watermark, so the "
            "watermark stays and the next run reads these rows again"
        )
    return None if value is None else WatermarkCandidate(name, kind, value)


def landed_cursor_type(node: SourceLoadNode, columns: tuple[ColumnType, ...]) -> str:
    """Return the cursor type of the landed column.

    Raises:
        NodeFailure: `PZ0505`.
    """
    name = node.incremental.cursor if node.incremental else ""
    landed = _landed_type(columns, name)
    kind = cursor_type_of(landed) if landed is not None else None
    if kind is None:
        what = "is missing" if landed is None else f"landed as {landed}"
        allowed = ", ".join(sorted(CURSOR_TYPES))
        raise NodeFailure("PZ0505", f"cursor column '{name}' of '{node.key}' {what}; a cursor is one of {allowed}")
    return kind


def _landed_type(columns: tuple[ColumnType, ...], name: str) -> str | None:
    return next((column.type for column in columns if column.name.lower() == name.lower()), None)


def note_null_cursors(cursor: DuckCursor, node: SourceLoadNode, relation: str, note: Callable[[str], None]) -> None:
    """Say how many landed rows have no cursor value, when any."""
    if node.incremental is None:
        return
    column = quote_identifier(node.incremental.cursor)
    count = int(cursor.scalar(f"select count(*) from {relation} where {column} is null"))
    if count:
        note(f"{node.key}: {count} row(s) without a value in cursor column '{node.incremental.cursor}' were read")
