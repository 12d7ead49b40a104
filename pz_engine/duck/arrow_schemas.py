"""What the columns of an Arrow schema are in DuckDB, without any rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from pz_engine.duck.arrow_types import duck_type_for
from pz_engine.duck.session import DuckCursor
from pz_engine.duck.statement_error import DuckStatementError
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.run import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMA = "pz_described_schema"


def landed_columns(schema: pa.Schema) -> tuple[ColumnType, ...]:
    """Return the columns that batches of a schema land as when there is no contract.

    Raises:
        PzConnectorError: permanent; a column has a type that cannot land.
    """
    return tuple(ColumnType(field.name, duck_type_for(field)) for field in schema)


def type_names(cursor: DuckCursor, schema: pa.Schema) -> dict[str, frozenset[str]]:
    """Return, for each column, the DuckDB types that name its type: the one it lands as, and the one it has itself."""
    own = _own_types(cursor, schema)
    return {
        field.name: frozenset({*_landed(field), *own.get(field.name, ())}) or frozenset({str(field.type)})
        for field in schema
    }


def _own_types(cursor: DuckCursor, schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """Let DuckDB name the types; nothing when one of them is none that it can read."""
    try:
        cursor.raw.register(_SCHEMA, schema.empty_table())
        described = cursor.describe(f"select * from {_SCHEMA}")
        cursor.raw.unregister(_SCHEMA)
    except (duckdb.Error, DuckStatementError):
        return {}
    return {column.name: (column.type,) for column in described}


def _landed(field: pa.Field) -> tuple[str, ...]:
    try:
        return (duck_type_for(field),)
    except PzConnectorError:
        return ()
