"""SQL text for tables of the DuckDB family: reads with bounds, and the three strategies of writing.

All of it is text; nothing here runs it.
"""

from __future__ import annotations

from pz_engine.connectors.api import ReadSpec, WriteSpec
from pz_engine.connectors.fragments import SOURCE_PLACEHOLDER
from pz_engine.connectors.toolkit.cursor_literals import bound_literal
from pz_engine.duck.quoting import quote_identifier, quote_qualified
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy

_DEFAULT_SCHEMA = "main"


def table_name(alias: str, entity: str) -> tuple[str, str, str]:
    """Return database, schema and table of an entity spelled `table` or `schema.table`.

    Raises:
        PzConnectorError: permanent; the entity has more parts.
    """
    parts = entity.split(".")
    if len(parts) > 2 or not all(parts):
        raise PzConnectorError(
            f"entity '{entity}' must be spelled 'table' or 'schema.table'", is_transient=False, code="PZ0344"
        )
    schema, table = parts if len(parts) == 2 else (_DEFAULT_SCHEMA, parts[0])
    return alias, schema, table


def read_fragment(table: tuple[str, str, str], spec: ReadSpec) -> str:
    """Return the table, or a select over it with the bounds that are set."""
    name = quote_qualified(*table)
    conditions: list[str] = []
    if spec.cursor is not None:
        cursor = quote_identifier(spec.cursor)
        if spec.watermark is not None:
            comparison = ">=" if spec.lower_inclusive else ">"
            conditions.append(f"{cursor} {comparison} {bound_literal(spec.watermark)}")
        if spec.upper_bound is not None:
            conditions.append(f"{cursor} <= {bound_literal(spec.upper_bound)}")
        if conditions and spec.null_cursor:
            conditions = [f"(({' and '.join(conditions)}) or {cursor} is null)"]
    return f"(select * from {name} where {' and '.join(conditions)})" if conditions else name


def write_statements(table: tuple[str, str, str], spec: WriteSpec) -> tuple[str, ...]:
    """Return the statements of one write, to run in one transaction; the last one reports the rows."""
    target = quote_qualified(*table)
    if spec.strategy is Strategy.REPLACE:
        return (f"create or replace table {target} as select * from {SOURCE_PLACEHOLDER}",)
    create = f"create table if not exists {target} as select * from {SOURCE_PLACEHOLDER} limit 0"
    if spec.strategy is Strategy.APPEND:
        return (create, f"insert into {target} by name select * from {SOURCE_PLACEHOLDER}")
    return (create, _merge_statement(target, spec))


def _merge_statement(target: str, spec: WriteSpec) -> str:
    """Return a merge whose staged side has one row per key, the last one staged.

    `merge into` matches every staged row against the table as it was, so duplicates of a new key would all be inserted.
    """
    columns = [quote_identifier(key) for key in spec.keys]
    latest = f"max(rowid) over (partition by {', '.join(columns)})"
    which = "" if spec.has_unique_keys else f" qualify rowid = {latest}"
    survivors = f"select * from {SOURCE_PLACEHOLDER}{which}"
    match = " and ".join(f"t.{column} = s.{column}" for column in columns)
    return (
        f"merge into {target} as t using ({survivors}) as s on ({match}) "
        f"when matched then update by name when not matched then insert by name"
    )
