"""A source that DuckDB reads itself: from connector to the query that lands it.

Used by the staged load and by the fused group; what differs is only whether the query becomes a table or a view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.connectors.api import NativeScan, SourceConnector
from pz_engine.duck.cast_diagnosis import csv_shape_error, locate
from pz_engine.duck.checked_scan import cast_failure, resolve_scan
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.execute.bounds import Bounds
from pz_engine.execute.context import RunContext
from pz_engine.plan.specs import connector_config, connector_of, read_spec


@dataclass(frozen=True, slots=True)
class PreparedScan:
    """A scan that is set up and ready to run."""

    query: str
    """A select that yields exactly the rows to land."""

    scan: NativeScan
    contract: Mapping[str, str] | None
    was_inferred: bool
    """Types came from a sniff; a value that does not fit asks for the whole file to be looked at."""


def prepare_scan(
    context: RunContext, cursor: DuckCursor, node: SourceLoadNode, bounds: Bounds, *, whole_file: bool = False
) -> PreparedScan:
    """Open the connector, run its setup and build the query.

    Raises:
        PzConnectorError: the connector or its setup failed.
        DuckStatementError: describing or sniffing the source failed.
    """
    connector = connector_of(context.compiled, node.connection)
    if not isinstance(connector, SourceConnector):
        raise PzConnectorError(f"connector '{connector.info.name}' cannot read", is_transient=False)
    source = connector.open_source(connector_config(context.compiled, node.connection))
    try:
        scan = source.native_scan(
            read_spec(
                node,
                watermark=bounds.lower,
                lower_inclusive=bounds.is_lower_inclusive,
                upper_bound=bounds.upper,
                null_cursor=bounds.wants_null_cursor,
            )
        )
    finally:
        source.close()
    if scan is None:
        raise PzConnectorError(
            f"connector '{connector.info.name}' offered a native scan when planning and none now", is_transient=False
        )
    context.setup.ensure(cursor, scan.setup, writes=node.connection in context.written_connections)
    resolved = resolve_scan(cursor, scan, node.columns, whole_file=whole_file)
    query = resolved.sql
    if bounds.is_bounded and not scan.bounds_pushed:
        query = f"select * from (\n{query}\n) where {bounds.condition()}"
    return PreparedScan(query, scan, node.columns, resolved.was_inferred)


def is_misfit(error: DuckStatementError) -> bool:
    """Tell whether a statement failed because a value does not fit its column's type."""
    return cast_failure(error) is not None


def explain_scan_failure(
    context: RunContext, cursor: DuckCursor, node: SourceLoadNode, prepared: PreparedScan, error: DuckStatementError
) -> Exception:
    """Turn a failed scan into an error that names file, line, column and type, and never the value."""
    misfit = cast_failure(error)
    if misfit is not None:
        cell = locate(cursor, prepared.scan, misfit.column, misfit.type)
        place = f"{context.location_of(cell.file)} line {cell.line}" if cell is not None else node.key
        return PzConnectorError(
            f"{place}: column '{misfit.column}' holds a value that does not fit {misfit.type} exactly",
            is_transient=False,
            hint=f"declare '{misfit.column}' as varchar or as a wider type in columns, or mend the file",
        )
    shape = csv_shape_error(error)
    if shape is not None:
        return PzConnectorError(
            f"{context.location_of(shape.file)} line {shape.line}: expected {shape.expected} fields, found {shape.found}",
            is_transient=False,
            hint="set ragged: pad or ragged: reject on the entity's read side, or mend the file",
        )
    return error
