"""Types a column contract may name, and the DuckDB types they stand for.

Names are lowercase and exact; `decimal(p,s)` is the only one with parameters.
"""

from __future__ import annotations

import re

from pz_engine.model.cursor_values import CURSOR_TYPES

_DUCK_TYPES = {
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "decimal": "DECIMAL(38,9)",
    "varchar": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "ubigint": "UBIGINT",
    "hugeint": "HUGEINT",
    "smallint": "SMALLINT",
    "tinyint": "TINYINT",
    "float": "FLOAT",
    "time": "TIME",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "blob": "BLOB",
    "uuid": "UUID",
}
DECIMAL_TYPE = r"decimal\(\s*(0?[1-9]|[12][0-9]|3[0-8])\s*,\s*(0?[0-9]|[12][0-9]|3[0-8])\s*\)"
"""Regular expression of the one type with parameters; its scale may not be above its precision."""

CONTRACT_TYPE_NAMES = (*_DUCK_TYPES, "decimal(p,s)")
"""Accepted names, in the order a message lists them."""


def duck_type_of(contract_type: str) -> str | None:
    """Return the DuckDB type, or None for a name that is not accepted.

    >>> duck_type_of("int"), duck_type_of("decimal(18,2)"), duck_type_of("INT")
    ('INTEGER', 'DECIMAL(18,2)', None)
    """
    known = _DUCK_TYPES.get(contract_type)
    if known is not None:
        return known
    match = re.fullmatch(DECIMAL_TYPE, contract_type)
    if match is None:
        return None
    precision, scale = int(match[1]), int(match[2])
    return f"DECIMAL({precision},{scale})" if scale <= precision else None


def cursor_type_of_contract(contract_type: str) -> str | None:
    """Return the cursor type a contract type gives a column, or None when it cannot be a cursor.

    >>> cursor_type_of_contract("bigint"), cursor_type_of_contract("decimal(18,2)"), cursor_type_of_contract("varchar")
    ('bigint', 'decimal', None)
    """
    if (duck_type_of(contract_type) or "").startswith("DECIMAL("):
        return "decimal"
    return contract_type if contract_type in CURSOR_TYPES else None
