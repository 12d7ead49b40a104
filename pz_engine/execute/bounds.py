"""Which slice of an incremental entity this run reads.

Windows are `(lower, upper]`; an unwindowed read has only a lower bound, exclusive unless every author wrote `>=`. Any
doubt about a floor means no bound: the pipeline's own filter is applied again anyway.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from msgspec import Struct

from pz_engine.compile.dag import Floor, PipelineNode, SourceLoadNode, Window
from pz_engine.compile.watermark_sql import substitute_watermarks
from pz_engine.compile.windows import UNTIL_NOW
from pz_engine.duck.quoting import quote_identifier
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.execute.context import RunContext
from pz_engine.execute.outcome import NodeFailure
from pz_engine.model.cursor_values import add_window, canonicalize, compare, duck_literal
from pz_engine.state.store import WatermarkEntry

_TIMESTAMP_TEXT = "%Y-%m-%dT%H:%M:%S.%f"
_INTEGERS = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}
)
_INSTANTS = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP WITH TIME ZONE"})
_EXACT_DOUBLES = 2**53
"""Below it every whole number is a double."""


class Bounds(Struct, frozen=True):
    """The slice of one read; texts are canonical values of `type`."""

    cursor: str | None = None
    type: str | None = None
    lower: str | None = None
    is_lower_inclusive: bool = False
    upper: str | None = None
    wants_null_cursor: bool = False
    """Rows without a cursor value belong to this read (a first load)."""

    is_caught_up: bool = False
    reaches_stop: bool | None = None
    """For a windowed read with a stop: does this window end there."""

    stored_value: str | None = None
    is_given: bool = False
    """The request named this slice."""

    @property
    def is_bounded(self) -> bool:
        """Tell whether any bound applies."""
        return self.lower is not None or self.upper is not None

    @property
    def window(self) -> tuple[str, str] | None:
        """Return both ends, an open one as ''; None for a read of everything."""
        return (self.lower or "", self.upper or "") if self.is_bounded else None

    @property
    def slice(self) -> tuple[str, str] | None:
        """Return both ends of a bounded slice; None for a read that is open at an end."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    def condition(self) -> str:
        """Return the SQL condition of the slice."""
        if self.cursor is None or self.type is None or not self.is_bounded:
            return "true"
        column, parts = quote_identifier(self.cursor), []
        if self.lower is not None:
            parts.append(f"{column} {'>=' if self.is_lower_inclusive else '>'} {duck_literal(self.type, self.lower)}")
        if self.upper is not None:
            parts.append(f"{column} <= {duck_literal(self.type, self.upper)}")
        inside = " and ".join(parts)
        return f"({inside} or {column} is null)" if self.wants_null_cursor else inside


def plan_bounds(context: RunContext, cursor: DuckCursor, node: SourceLoadNode) -> Bounds:
    """Compute the slice of a node's read from declaration and stored watermark.

    Raises:
        NodeFailure: `PZ0505`, the stored entry belongs to another column or type.
    """
    declared = node.incremental
    if declared is None:
        return Bounds()
    given = context.windows.by_key.get(node.key)
    if given is not None:
        return Bounds(
            declared.cursor, declared.cursor_type, given.lower, upper=given.upper, wants_null_cursor=True, is_given=True
        )
    stored = context.stored(node.key)
    if stored is not None:
        _refuse_mismatch(node, stored)
    if declared.window is not None and declared.cursor_type is not None:
        return _windowed(declared.cursor, declared.cursor_type, declared.window, stored, context.started_at)
    if stored is None:
        return Bounds(declared.cursor, declared.cursor_type)
    if not declared.is_declared_in_sql:
        return Bounds(declared.cursor, stored.type, stored.value, stored_value=stored.value)
    floor = _loosest(context, cursor, node, declared.floors, stored)
    if floor is None:
        return Bounds(declared.cursor, stored.type, stored_value=stored.value)
    value, is_inclusive = floor
    return Bounds(declared.cursor, stored.type, value, is_inclusive, stored_value=stored.value)


def _refuse_mismatch(node: SourceLoadNode, stored: WatermarkEntry) -> None:
    declared = node.incremental
    if declared is None:
        return
    remedy = "run with --full-refresh, or restore the former declaration"
    if stored.cursor != declared.cursor:
        raise NodeFailure(
            "PZ0505",
            f"the stored watermark of '{node.key}' belongs to column '{stored.cursor}', the project now declares "
            f"'{declared.cursor}'; {remedy}",
        )
    if declared.cursor_type is not None and stored.type != declared.cursor_type:
        raise NodeFailure(
            "PZ0505",
            f"the stored watermark of '{node.key}' has type {stored.type}, column '{declared.cursor}' is declared as "
            f"{declared.cursor_type}; {remedy}",
        )
    if canonicalize(stored.type, stored.value) is None:
        raise NodeFailure("PZ0505", f"the stored watermark of '{node.key}' is not a usable {stored.type}; {remedy}")


def _windowed(cursor: str, kind: str, window: Window, stored: WatermarkEntry | None, started_at: datetime) -> Bounds:
    lower = stored.value if stored is not None else window.initial
    upper = add_window(kind, lower, window.max_window)
    stop = _stop(kind, window.until, started_at)
    if stop is not None and compare(kind, upper, stop) > 0:
        upper = stop
    return Bounds(
        cursor,
        kind,
        lower,
        upper=upper,
        wants_null_cursor=stored is None,
        is_caught_up=compare(kind, upper, lower) <= 0,
        reaches_stop=None if stop is None else compare(kind, upper, stop) >= 0,
        stored_value=stored.value if stored is not None else None,
    )


def _stop(kind: str, until: str | None, started_at: datetime) -> str | None:
    if until != UNTIL_NOW:
        return until
    start = started_at.astimezone(timezone.utc).replace(tzinfo=None)
    if kind == "date":
        return (start.date() - timedelta(days=1)).isoformat()
    return (start - timedelta(microseconds=1)).strftime(_TIMESTAMP_TEXT)


def _loosest(
    context: RunContext, cursor: DuckCursor, node: SourceLoadNode, floors: tuple[Floor, ...], stored: WatermarkEntry
) -> tuple[str, bool] | None:
    """Return the lowest of the authors' floors, inclusive on a tie; None when one of them is no bound."""
    best: tuple[str, bool] | None = None
    for floor in floors:
        value = None if floor.keeps_null_cursor else _evaluate(context, cursor, node, floor, stored)
        if value is None:
            return None
        order = -1 if best is None else compare(stored.type, value, best[0])
        if order < 0:
            best = (value, floor.is_inclusive)
        elif order == 0 and best is not None:
            best = (value, best[1] or floor.is_inclusive)
    return best


def _evaluate(
    context: RunContext, cursor: DuckCursor, node: SourceLoadNode, floor: Floor, stored: WatermarkEntry
) -> str | None:
    pipeline = context.compiled.graph.by_name.get(floor.pipeline)
    uses = pipeline.watermarks if isinstance(pipeline, PipelineNode) else ()
    literals = {use.sentinel: duck_literal(stored.type, stored.value) for use in uses if use.key == node.key}
    value = substitute_watermarks(floor.value_sql, literals)
    try:
        text = _floor_text(stored.type, str(cursor.scalar(f"select typeof({value})")), value)
        found = cursor.scalar(f"select {text}") if text is not None else None
    except DuckStatementError as error:
        raise NodeFailure(
            "PZ0501", f"the watermark bound of pipeline '{floor.pipeline}' cannot be evaluated: {error.summary}"
        ) from None
    return canonicalize(stored.type, found) if isinstance(found, str) else None


def _floor_text(cursor_type: str, value_type: str, value: str) -> str | None:
    """Return the SQL of the canonical text of the highest cursor value that is not above a bound.

    None where the bound's own type may compare otherwise than by exact values, as a double does beside long numbers.
    """
    is_decimal = value_type.startswith("DECIMAL")
    if cursor_type in ("int", "bigint"):
        if value_type in _INTEGERS:
            return f"cast(({value}) as varchar)"
        if is_decimal:
            return f"cast(floor({value}) as varchar)"
        if value_type == "DOUBLE":
            return f"case when abs({value}) < {_EXACT_DOUBLES} then cast(cast(floor({value}) as bigint) as varchar) end"
    if cursor_type == "decimal" and (is_decimal or value_type in _INTEGERS):
        return f"cast(({value}) as varchar)"
    if cursor_type == "date" and value_type in _INSTANTS:
        return f"strftime(cast(({value}) as date), '%Y-%m-%d')"
    if cursor_type == "timestamp" and value_type in _INSTANTS:
        return f"strftime(cast(({value}) as timestamp), '{_TIMESTAMP_TEXT}')"
    return None
