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

_BATCH = "pz_incoming_batch"


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


def insert_batch(cursor: DuckCursor, relation: str, batch: pa.RecordBatch, schema: pa.Schema) -> int:
    """Append a batch and return its number of rows.

    Raises:
        PzConnectorError: permanent; the batch has another shape than the schema, or a value does not fit its column.
    """
    import pyarrow as pa

    if not _has_shape(batch.schema, schema):
        raise PzConnectorError(
            f"a batch has the columns ({_shape(batch.schema)}) where ({_shape(schema)}) was announced",
            is_transient=False,
            hint="this is a fault of the connector; report it to its author",
        )
    targets = cursor.describe(f"select * from {relation}")
    names = [f"c{position}" for position in range(batch.num_columns)]
    values = [
        _value(quote_identifier(name), field, target)
        for name, field, target in zip(names, schema, targets, strict=True)
    ]
    cursor.raw.register(_BATCH, pa.table(batch.columns, names=names))
    try:
        cursor.execute(f"insert into {relation} select {', '.join(values)} from {_BATCH}")
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
        cursor.raw.unregister(_BATCH)
    return int(batch.num_rows)


def _value(column: str, field: pa.Field, target: ColumnType) -> str:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_dictionary(kind):
        kind, column = kind.value_type, f"cast({column} as {duck_type_for(field)})"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        if target.type == "TIMESTAMP WITH TIME ZONE":
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
