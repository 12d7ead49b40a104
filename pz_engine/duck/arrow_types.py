"""How types cross the boundary between DuckDB and Arrow.

Types outside the eight that connectors see are widened when nothing is lost and refused by name otherwise.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pz_engine.duck.quoting import quote_identifier
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.run import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa

DUCK_TYPE_KEY = b"duckdb_type"
"""Field metadata: the column's type in DuckDB, for sinks that tell a plain timestamp from a zoned one."""

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_WIDENED = {
    "TINYINT": "INTEGER", "SMALLINT": "INTEGER", "UTINYINT": "INTEGER", "USMALLINT": "INTEGER", "INTEGER": "INTEGER",
    "UINTEGER": "BIGINT", "BIGINT": "BIGINT",
    "UBIGINT": "DECIMAL(38,0)", "HUGEINT": "DECIMAL(38,0)", "UHUGEINT": "DECIMAL(38,0)",
    "FLOAT": "DOUBLE", "DOUBLE": "DOUBLE",
    "VARCHAR": "VARCHAR", "UUID": "VARCHAR", "JSON": "VARCHAR",
    "BOOLEAN": "BOOLEAN", "DATE": "DATE", '"NULL"': "VARCHAR",
}  # fmt: skip
_PLAIN_TIMESTAMPS = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})
_ZONED = "TIMESTAMP WITH TIME ZONE"


def duck_type_for(field: pa.Field) -> str:
    """Return the type a column of a batch lands as when no contract says otherwise.

    Raises:
        PzConnectorError: permanent; the type cannot cross.
    """
    import pyarrow as pa

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    tests = (
        (pa.types.is_boolean, "BOOLEAN"),
        (lambda t: t in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.int32()), "INTEGER"),
        (lambda t: t in (pa.uint32(), pa.int64()), "BIGINT"),
        (lambda t: t == pa.uint64(), "DECIMAL(38,0)"),
        (pa.types.is_float32, "DOUBLE"),
        (pa.types.is_float64, "DOUBLE"),
        (pa.types.is_string, "VARCHAR"),
        (pa.types.is_large_string, "VARCHAR"),
        (pa.types.is_string_view, "VARCHAR"),
        (pa.types.is_null, "VARCHAR"),
        (pa.types.is_date, "DATE"),
        (pa.types.is_timestamp, "TIMESTAMP"),
    )
    for matches, name in tests:
        if matches(kind):
            return name
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    raise PzConnectorError(
        f"column '{field.name}' has the type {kind}, which cannot be landed",
        is_transient=False,
        hint="have the connector or its query deliver it as text",
    )


def arrow_type_for(duck_type: str) -> pa.DataType:
    """Return the Arrow type of one of the types `outgoing` produces."""
    import pyarrow as pa

    decimal = _DECIMAL.fullmatch(duck_type)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return {
        "INTEGER": pa.int32(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "VARCHAR": pa.string(),
        "BOOLEAN": pa.bool_(), "DATE": pa.date32(), _ZONED: pa.timestamp("us", "UTC"),
    }[duck_type]  # fmt: skip


def outgoing(column: ColumnType) -> tuple[str, str]:
    """Return the expression and the type with which a staged column leaves for a sink.

    Raises:
        PzConnectorError: permanent; names the column and suggests a cast.
    """
    name = quote_identifier(column.name)
    if column.type == _ZONED:
        return name, _ZONED
    if column.type == "TIMESTAMP_NS":
        whole = f"epoch_ns({name}) % 1000 = 0"
        refusal = f"cast(error('pz-cast|TIMESTAMP|{_escaped(column.name)}|pz-cast') as {_ZONED})"
        exact = f"timezone('UTC', cast({name} as TIMESTAMP))"
        return f"case when {name} is null or {whole} then {exact} else {refusal} end", _ZONED
    if column.type in _PLAIN_TIMESTAMPS:
        return f"timezone('UTC', cast({name} as TIMESTAMP))", _ZONED
    if column.type.startswith("ENUM("):
        return f"cast({name} as VARCHAR)", "VARCHAR"
    if _DECIMAL.fullmatch(column.type):
        return name, column.type
    wider = _WIDENED.get(column.type)
    if wider is None:
        raise PzConnectorError(
            f"column '{column.name}' has the type {column.type}, which this sink cannot take",
            is_transient=False,
            hint=f"cast '{column.name}' to varchar in the pipeline",
        )
    return (name if wider == column.type else f"cast({name} as {wider})"), wider


def _escaped(name: str) -> str:
    return name.replace("'", "''")
