"""From a staged relation to Arrow batches, or to the text that a native copy reads.

The cursor of a drain executes nothing else until the drain ends: DuckDB would end the stream early without an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pz_engine.base.cancellation import Cancelled
from pz_engine.duck.arrow_types import DUCK_TYPE_KEY, arrow_type_for, outgoing
from pz_engine.duck.checked_casts import failed_cast
from pz_engine.duck.quoting import quote_identifier
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError, PzExecutionError
from pz_engine.model.run import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa

_VECTOR_ROWS = 2048
_MOST_ROWS = 122_880
_FIXED_WIDTH = 8
_TEXT_WIDTH = 32
_WIDE_INTEGERS = frozenset({"HUGEINT", "UHUGEINT"})


def write_schema(cursor: DuckCursor, relation: str) -> pa.Schema:
    """Return the schema of the batches that `stream_batches` yields.

    Timestamps are instants in UTC; the field's metadata holds the type the column has in DuckDB.

    Raises:
        PzConnectorError: permanent; a column cannot leave.
    """
    import pyarrow as pa

    fields = []
    for column in cursor.describe(f"select * from {relation}"):
        _, kind = outgoing(column)
        fields.append(pa.field(column.name, arrow_type_for(kind), metadata={DUCK_TYPE_KEY: column.type.encode()}))
    return pa.schema(fields)


def stream_batches(
    cursor: DuckCursor,
    relation: str,
    schema: pa.Schema,
    *,
    batch_bytes: int,
    is_ordered: bool = False,
    skip_rows: int = 0,
    expected_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield a relation's rows in batches of about `batch_bytes`.

    Args:
        cursor: owned by the stream until it ends.
        relation: quoted name.
        schema: what `write_schema` returned.
        batch_bytes: target size.
        is_ordered: a repeatable order, as resumable sinks need it.
        skip_rows: leading rows left out; only with `is_ordered`.
        expected_rows: when given, another number of rows is a failure instead of a short delivery.

    Raises:
        Cancelled: the cursor was interrupted.
        DuckStatementError: DuckDB failed.
        PzExecutionError: the stream ended early.
    """
    import duckdb
    import pyarrow as pa

    columns = cursor.describe(f"select * from {relation}")
    items = [f"{outgoing(column)[0]} as {quote_identifier(column.name)}" for column in columns]
    order = f" order by all offset {skip_rows}" if is_ordered else ""
    try:
        cursor.execute(f"select {', '.join(items)} from (select * from {relation}{order})")
    except DuckStatementError as error:
        raise _too_fine(error.raw) or error from None
    delivered = 0
    try:
        for chunk in cursor.raw.to_arrow_reader(_chunk_rows(columns, batch_bytes)):
            batch = pa.RecordBatch.from_arrays(
                [column.cast(field.type) for column, field in zip(chunk.columns, schema, strict=True)], schema=schema
            )
            delivered += batch.num_rows
            yield from _slices(batch, batch_bytes)
    except duckdb.InterruptException:
        raise Cancelled from None
    except (duckdb.Error, pa.ArrowException) as error:
        raise _failure(error) from None
    if expected_rows is not None and delivered != expected_rows:
        raise PzExecutionError("PZ0501", f"{delivered} of {expected_rows} rows left staging before the stream ended")


def copy_source(cursor: DuckCursor, relation: str, *, decimal_hugeint: bool) -> str:
    """Return what stands for a relation after `from` in a native copy.

    Args:
        cursor: any idle cursor.
        relation: quoted name.
        decimal_hugeint: cast wide integers to `DECIMAL(38,0)`, because DuckDB would write them to parquet as doubles.
    """
    if not decimal_hugeint:
        return relation
    wide = [column.name for column in cursor.describe(f"select * from {relation}") if column.type in _WIDE_INTEGERS]
    if not wide:
        return relation
    casts = ", ".join(f"cast({name} as DECIMAL(38,0)) as {name}" for name in map(quote_identifier, wide))
    return f"(select * replace ({casts}) from {relation})"


def _chunk_rows(columns: tuple[ColumnType, ...], batch_bytes: int) -> int:
    width = sum(_TEXT_WIDTH if outgoing(column)[1] == "VARCHAR" else _FIXED_WIDTH for column in columns) or 1
    rows = min(max(batch_bytes // width, _VECTOR_ROWS), _MOST_ROWS)
    return rows // _VECTOR_ROWS * _VECTOR_ROWS


def _slices(batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch that turned out much wider than estimated."""
    parts = max(1, batch.nbytes // max(batch_bytes, 1))
    if parts == 1:
        yield batch
        return
    rows = max(1, batch.num_rows // parts)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _failure(error: Exception) -> Exception:
    import pyarrow as pa

    kind = type(error).__name__
    text = f"{kind}: {error}" if isinstance(error, pa.ArrowException) else str(error)
    return _too_fine(str(error)) or DuckStatementError(text, kind, is_transient=False)


def _too_fine(message: str) -> PzConnectorError | None:
    failure = failed_cast(message)
    if failure is None:
        return None
    return PzConnectorError(
        f"column '{failure.column}' holds a value finer than microseconds",
        is_transient=False,
        hint=f"truncate '{failure.column}' to microseconds in the pipeline",
    )
