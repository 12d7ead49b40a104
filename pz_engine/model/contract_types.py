"""Types a column contract may name, and the DuckDB types they stand for.

Names are lowercase and exact; `decimal(p,s)` is the only one with parameters.
"""

from __future__ import annotations

import re
from decimal import Decimal

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

_INTEGERS = {"int": 2**31, "bigint": 2**63}
_MOST_DIGITS = 38


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


def cursor_limits(cursor_type: str, contract_type: str | None = None) -> str | None:
    """Return in words which canonical values a number's column can hold, or None when every one fits.

    >>> cursor_limits("int"), cursor_limits("decimal", "decimal(18,2)"), cursor_limits("date")
    ('from -2147483648 to 2147483647', 'of at most 16 digits before the point and 2 behind it', None)
    """
    if cursor_type in _INTEGERS:
        return f"from {-_INTEGERS[cursor_type]} to {_INTEGERS[cursor_type] - 1}"
    if cursor_type != "decimal":
        return None
    size = _decimal_size(contract_type)
    if size is None:
        return f"of at most {_MOST_DIGITS} digits"
    precision, scale = size
    return f"of at most {precision - scale} digits before the point and {scale} behind it"


def can_hold_cursor(cursor_type: str, value: str, contract_type: str | None = None) -> bool:
    """Tell whether a canonical value is one that a column of the type can hold; zeros at the end do not count.

    >>> can_hold_cursor("int", "2147483648"), can_hold_cursor("bigint", "2147483648")
    (False, True)
    >>> can_hold_cursor("decimal", "12.500", "decimal(3,1)"), can_hold_cursor("decimal", "12.55", "decimal(3,1)")
    (True, False)
    """
    if cursor_type in _INTEGERS:
        return -_INTEGERS[cursor_type] <= Decimal(value) < _INTEGERS[cursor_type]
    if cursor_type != "decimal":
        return True
    whole, _, fraction = value.lstrip("-").partition(".")
    before, behind = len(whole.lstrip("0")), len(fraction.rstrip("0"))
    size = _decimal_size(contract_type)
    if size is None:
        return before + behind <= _MOST_DIGITS
    return before <= size[0] - size[1] and behind <= size[1]


def _decimal_size(contract_type: str | None) -> tuple[int, int] | None:
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", duck_type_of(contract_type or "") or "")
    return (int(found[1]), int(found[2])) if found else None


def cursor_type_of_contract(contract_type: str) -> str | None:
    """Return the cursor type a contract type gives a column, or None when it cannot be a cursor.

    >>> cursor_type_of_contract("bigint"), cursor_type_of_contract("decimal(18,2)"), cursor_type_of_contract("varchar")
    ('bigint', 'decimal', None)
    """
    if (duck_type_of(contract_type) or "").startswith("DECIMAL("):
        return "decimal"
    return contract_type if contract_type in CURSOR_TYPES else None
