"""From Arrow batches to a landing table.

Batches bind by position, so a batch of another shape is refused before anything of it lands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pz_engine.base.csv_headers import match_column
from pz_engine.duck.arrow_types import duck_type_for
from pz_engine.duck.checked_casts import failed_cast, narrowed_float, recast
from pz_engine.duck.quoting import quote_identifier
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.contract_types import duck_type_of
from pz_engine.model.run import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP = 122_880
"""Rows that DuckDB stores together."""

MOST_WAITING_BYTES = 32 * 1024**2
"""Size from which rows are landed without waiting for more."""

_BATCH = "pz_incoming_batch"
_ZONED = "TIMESTAMP WITH TIME ZONE"


def create_landing_table(
    cursor: DuckCursor, relation: str, schema: pa.Schema, contract: Mapping[str, str] | None
) -> tuple[ColumnType, ...]:
    """Create the table that batches of a schema land in, replacing one that exists.

    A column of the contract gets its declared type; zoned timestamps become plain ones in UTC otherwise.

    Raises:
        PzConnectorError: permanent; a column has a type that cannot land.
    """
    declared = {name: duck_type_of(kind) for name, kind in (contract or {}).items()}
    columns: list[ColumnType] = []
    for field in schema:
        wanted = match_column(declared, field.name)
        kind = declared[wanted] if wanted is not None else None
        columns.append(ColumnType(field.name, kind or duck_type_for(field)))
    body = ", ".join(f"{quote_identifier(column.name)} {column.type}" for column in columns)
    cursor.execute(f"create or replace table {relation} ({body})")
    return tuple(columns)


class BatchInsert:
    """Appends batches of one schema to a landing table, in row groups as DuckDB stores them.

    A full row group is written where it stays; the rest of one goes through the log first and is written twice. So rows
    wait for enough others, up to a size, and `flush` lands what still waits.
    """

    def __init__(
        self, cursor: DuckCursor, relation: str, schema: pa.Schema, *, most_waiting_bytes: int = MOST_WAITING_BYTES
    ) -> None:
        self._cursor = cursor
        self._schema = schema
        self._most_bytes = most_waiting_bytes
        targets = cursor.describe(f"select * from {relation}")
        self._is_shown_in_utc = [
            _is_moment(field.type) and target.type != _ZONED for field, target in zip(schema, targets, strict=True)
        ]
        self._names = [f"c{position}" for position in range(len(schema))]
        values = (
            recast(name, "TIMESTAMP", target.type, target.name) if in_utc else _value(name, field, target)
            for name, field, target, in_utc in zip(self._names, schema, targets, self._is_shown_in_utc, strict=True)
        )
        self._statement = f"insert into {relation} select {', '.join(values)} from {_BATCH}"
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> int:
        """Take a batch and return how many rows landed by that, earlier ones included.

        Raises:
            PzConnectorError: permanent; the batch has another shape than the schema, or a value does not fit its column.
        """
        import pyarrow as pa

        if not _has_shape(batch.schema, self._schema):
            raise PzConnectorError(
                f"a batch has the columns ({_shape(batch.schema)}) where ({_shape(self._schema)}) was announced",
                is_transient=False,
                hint="this is a fault of the connector; report it to its author",
            )
        # The time in UTC is what Arrow keeps of a moment; DuckDB would compute each one by the calendar.
        columns = [
            column.view(pa.timestamp("us")) if in_utc else column
            for column, in_utc in zip(batch.columns, self._is_shown_in_utc, strict=True)
        ]
        self._waiting.append(pa.RecordBatch.from_arrays(columns, names=self._names))
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._bytes >= self._most_bytes:
            return self.flush()
        full = self._rows - self._rows % ROW_GROUP
        return self._insert(full) if full else 0

    def flush(self) -> int:
        """Land every row that waits and return how many these were.

        Raises:
            PzConnectorError: permanent; a value does not fit its column.
        """
        return self._insert(self._rows) if self._rows else 0

    def _insert(self, rows: int) -> int:
        import pyarrow as pa

        table = pa.Table.from_batches(self._waiting)
        rest = table.slice(rows)
        self._waiting = rest.to_batches()
        self._rows, self._bytes = rest.num_rows, rest.nbytes
        # One batch in one thread: DuckDB gives every thread a task, but one of them gets all rows, and the client asks
        # without a pause whether it is done. A limit makes it a single task, which the client does itself.
        self._cursor.raw.register(_BATCH, table.slice(0, rows).combine_chunks())
        try:
            self._cursor.execute(f"{self._statement} limit {rows}")
        except DuckStatementError as error:
            failure = failed_cast(error.raw)
            if failure is None:
                raise
            raise PzConnectorError(
                f"column '{failure.column}' holds a value that {failure.type} cannot take unchanged",
                is_transient=False,
                hint=f"declare '{failure.column}' with a wider type",
            ) from None
        finally:
            self._cursor.raw.unregister(_BATCH)
        return rows


def _is_moment(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit == "us"


def _value(column: str, field: pa.Field, target: ColumnType) -> str:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_dictionary(kind):
        kind, column = kind.value_type, f"cast({column} as {duck_type_for(field)})"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        if target.type == _ZONED:
            return column
        return recast(f"timezone('UTC', {column})", "TIMESTAMP", target.type, target.name)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return recast(column, "TIMESTAMP_NS", target.type, target.name)
    if target.type == "FLOAT" and pa.types.is_floating(kind):
        return narrowed_float(column, target.name)
    return recast(column, duck_type_for(field), target.type, target.name)


def _has_shape(found: pa.Schema, announced: pa.Schema) -> bool:
    return len(found) == len(announced) and all(
        left.type == right.type for left, right in zip(found, announced, strict=True)
    )


def _shape(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
