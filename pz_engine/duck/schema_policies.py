"""What happens to a target table whose columns differ from what is about to be written.

Alterations run in the caller's transaction; nothing is ever narrowed, dropped or renamed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pz_engine.duck.quoting import quote_identifier
from pz_engine.duck.session import DuckCursor
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import SchemaPolicy
from pz_engine.model.run import ColumnType

_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_DIGITS = {
    "TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19,
    "UTINYINT": 3, "USMALLINT": 5, "UINTEGER": 10, "UBIGINT": 20,
}  # fmt: skip
_EXACT_IN_DOUBLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_LARGEST_PRECISION = 38


def reconcile(cursor: DuckCursor, target_table: str, source_query: str, policy: SchemaPolicy) -> None:
    """Bring an existing target in line with the columns of a query, or refuse; a missing target is left to the writer.

    Args:
        cursor: inside the transaction of the write.
        target_table: quoted name, with catalog and schema where needed.
        source_query: a `select` whose columns will be written by name.
        policy: what may be altered.

    Raises:
        PzConnectorError: permanent; names the column, both types and the remedy.
    """
    existing = table_columns(cursor, target_table)
    if not existing:
        return
    by_name = {column.name.lower(): column for column in existing}
    for column in cursor.describe(source_query):
        target = by_name.get(column.name.lower())
        if target is None:
            if policy is SchemaPolicy.FAIL_ON_CHANGE:
                raise _refusal(
                    target_table,
                    f"has no column '{column.name}' ({column.type})",
                    f"set schema_policy: additive, or leave '{column.name}' out of the pipeline",
                )
            cursor.execute(f"alter table {target_table} add column {quote_identifier(column.name)} {column.type}")
        elif target.type != column.type:
            _retype(cursor, target_table, target, column, policy)


def refuse_collated_keys(cursor: DuckCursor, target_table: str, keys: Sequence[str]) -> None:
    """Refuse to merge by a key that the target compares otherwise than byte by byte, as staged rows are compared.

    Two keys that only the target takes for one would overwrite each other without a word.

    Raises:
        PzConnectorError: permanent; names the column and its collation.
    """
    where, values = _place(target_table)
    for (sql,) in cursor.rows(f"select sql from duckdb_tables() where {where}", values):
        for key in keys:
            name = rf"(?:{re.escape(key)}|{re.escape(quote_identifier(key))})"
            found = re.search(rf"[(,]\s*{name} VARCHAR COLLATE (\w+)", str(sql), re.IGNORECASE)
            if found is not None:
                raise _refusal(
                    target_table,
                    f"compares its key '{key}' by the collation {found[1]}, which takes different keys for one",
                    f"merge into a table whose column '{key}' has no collation",
                )


def table_columns(cursor: DuckCursor, table: str) -> tuple[ColumnType, ...]:
    """Return the columns of a table given by its quoted name, or nothing when it does not exist."""
    where, values = _place(table)
    rows = cursor.rows(
        f"select column_name, data_type from duckdb_columns() where {where} order by column_index", values
    )
    return tuple(ColumnType(str(row[0]), str(row[1])) for row in rows)


def _place(table: str) -> tuple[str, list[str]]:
    """Return the condition on DuckDB's catalog that finds a table, and its values."""
    parts = [part.replace('""', '"') for part in re.findall(r'"((?:[^"]|"")*)"', table)]
    places = dict(zip(("table_name", "schema_name", "database_name"), reversed(parts), strict=False))
    return " and ".join(f"lower({place}) = lower(?)" for place in places), list(places.values())


def widened_type(left: str, right: str) -> str | None:
    """Return the narrowest type that holds every value of both, or None.

    >>> widened_type("INTEGER", "BIGINT"), widened_type("DECIMAL(6,2)", "DECIMAL(5,4)"), widened_type("DATE", "BIGINT")
    ('BIGINT', 'DECIMAL(8,4)', None)
    """
    if left == right:
        return left
    for family in (_SIGNED, _UNSIGNED, ("FLOAT", "DOUBLE")):
        if left in family and right in family:
            return family[max(family.index(left), family.index(right))]
    if left in _UNSIGNED and right in _SIGNED:
        left, right = right, left
    if left in _SIGNED and right in _UNSIGNED:
        return _SIGNED[max(_SIGNED.index(left), _UNSIGNED.index(right) + 1)]
    kinds = {left, right}
    if "DOUBLE" in kinds and kinds - {"DOUBLE"} <= _EXACT_IN_DOUBLE:
        return "DOUBLE"
    parts = [_decimal_parts(left), _decimal_parts(right)]
    if any(_DECIMAL.fullmatch(kind) for kind in kinds) and parts[0] is not None and parts[1] is not None:
        whole = max(part[0] for part in parts if part is not None)
        scale = max(part[1] for part in parts if part is not None)
        return f"DECIMAL({whole + scale},{scale})" if whole + scale <= _LARGEST_PRECISION else None
    return None


def _retype(
    cursor: DuckCursor, target_table: str, target: ColumnType, column: ColumnType, policy: SchemaPolicy
) -> None:
    wider = widened_type(target.type, column.type)
    if policy is SchemaPolicy.EVOLVE and wider is not None:
        if wider != target.type:
            name = quote_identifier(target.name)
            cursor.execute(f"alter table {target_table} alter column {name} set data type {wider}")
        return
    cast = f"cast '{column.name}' to {target.type} in the pipeline"
    remedy = f"set schema_policy: evolve, or {cast}" if wider is not None else cast
    raise _refusal(
        target_table, f"has column '{target.name}' as {target.type}, the pipeline writes {column.type}", remedy
    )


def _decimal_parts(kind: str) -> tuple[int, int] | None:
    """Return the digits before and after the point."""
    match = _DECIMAL.fullmatch(kind)
    if match:
        return int(match[1]) - int(match[2]), int(match[2])
    return (_DIGITS[kind], 0) if kind in _DIGITS else None


def _refusal(target_table: str, problem: str, remedy: str) -> PzConnectorError:
    name = re.findall(r'"((?:[^"]|"")*)"', target_table)[-1]
    return PzConnectorError(f"table '{name}' {problem}", is_transient=False, hint=remedy)
