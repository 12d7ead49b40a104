"""Cursor values as texts: one canonical spelling per value, compared by value and never as text.

Instants have microsecond precision and no zone: they are UTC.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Context, Decimal

from pz_engine.base.durations import parse_duration

CURSOR_TYPES = ("int", "bigint", "decimal", "date", "timestamp")
"""Types a cursor column may have."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?(Z?)")
_LANDED = {"INTEGER": "int", "BIGINT": "bigint", "DATE": "date"}
_NULL_TYPES = {
    "int": "INTEGER",
    "bigint": "BIGINT",
    "decimal": "DECIMAL(38,9)",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def canonicalize(cursor_type: str, text: str) -> str | None:
    """Return the one spelling of a value, or None when the text is no value of the type.

    >>> canonicalize("bigint", "+042"), canonicalize("decimal", "+12.50"), canonicalize("timestamp", "2026-01-02")
    ('42', '12.50', '2026-01-02T00:00:00.000000')
    >>> canonicalize("timestamp", "2026-01-02T03:04:05+01:00") is None
    True
    """
    if not text.isascii():
        return None
    if cursor_type in {"int", "bigint"}:
        return _canonical_integer(text)
    if cursor_type == "decimal":
        return _canonical_decimal(text)
    if cursor_type == "date":
        return text if _DATE.fullmatch(text) and _parse_date(text) else None
    if cursor_type == "timestamp":
        return _canonical_timestamp(text)
    return None


def compare(cursor_type: str, left: str, right: str) -> int:
    """Return -1, 0 or 1 for two canonical values of one type.

    >>> compare("bigint", "9", "10"), compare("decimal", "1.50", "1.5")
    (-1, 0)
    """
    a, b = _comparable(cursor_type, left), _comparable(cursor_type, right)
    return (a > b) - (a < b)  # type: ignore[operator]  # both sides come from one branch of _comparable


def duck_literal(cursor_type: str, value: str) -> str:
    """Return a canonical value as a DuckDB literal of its type, safe behind any operator.

    >>> duck_literal("timestamp", "2026-01-02T03:04:05.000000")
    "TIMESTAMP '2026-01-02 03:04:05.000000'"
    """
    if cursor_type == "date":
        return f"DATE '{value}'"
    if cursor_type == "timestamp":
        return f"TIMESTAMP '{value.replace('T', ' ')}'"
    return f"({value})" if value.startswith("-") else value


def typed_null(cursor_type: str) -> str:
    """Return a NULL that binds like a value of the type.

    >>> typed_null("date")
    'CAST(NULL AS DATE)'
    """
    return f"CAST(NULL AS {_NULL_TYPES[cursor_type]})"


def cursor_type_of(duckdb_type: str) -> str | None:
    """Return the cursor type of a landed column, or None when the column cannot be a cursor.

    >>> cursor_type_of("DECIMAL(18,2)"), cursor_type_of("TIMESTAMP WITH TIME ZONE"), cursor_type_of("HUGEINT")
    ('decimal', 'timestamp', None)
    """
    if duckdb_type.startswith("DECIMAL("):
        return "decimal"
    if duckdb_type.startswith("TIMESTAMP"):
        return "timestamp"
    return _LANDED.get(duckdb_type)


def add_window(cursor_type: str, value: str, window: str) -> str:
    """Return the canonical value one window above another.

    Args:
        cursor_type: one of `CURSOR_TYPES`.
        value: canonical.
        window: a positive integer for numbers, a duration for dates and timestamps.

    >>> add_window("date", "2026-01-30", "2d"), add_window("decimal", "1.50", "2")
    ('2026-02-01', '3.50')
    """
    if cursor_type in {"int", "bigint", "decimal"}:
        return format(_exact_sum(Decimal(value), Decimal(window)), "f")
    step = _duration(window)
    if cursor_type == "date":
        try:
            return (date.fromisoformat(value) + step).isoformat()
        except OverflowError:
            return date.max.isoformat()
    try:
        moment = datetime.fromisoformat(value) + step
    except OverflowError:
        moment = datetime.max  # noqa: DTZ901 - cursor instants carry no zone
    return moment.isoformat(timespec="microseconds")


def window_is_valid(cursor_type: str, window: str) -> bool:
    """Tell whether a `max_window` fits the cursor's type.

    >>> window_is_valid("date", "36h"), window_is_valid("date", "48h"), window_is_valid("bigint", "1000")
    (False, True, True)
    """
    if cursor_type in {"int", "bigint", "decimal"}:
        return window.isascii() and window.isdigit() and window.strip("0") != ""
    step = parse_duration(window)
    if step is None or step <= timedelta(0):
        return False
    return cursor_type != "date" or step % timedelta(days=1) == timedelta(0)


def _canonical_integer(text: str) -> str | None:
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-").lstrip("0") or "0"
    return f"-{digits}" if text.startswith("-") and digits != "0" else digits


def _canonical_decimal(text: str) -> str | None:
    if not _DECIMAL.fullmatch(text):
        return None
    whole, _, fraction = text.lstrip("+-").partition(".")
    body = (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")
    return f"-{body}" if text.startswith("-") and body.strip("0.") else body


def _canonical_timestamp(text: str) -> str | None:
    if _DATE.fullmatch(text):
        return f"{text}T00:00:00.000000" if _parse_date(text) else None
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    fraction = (match[3] or "").ljust(6, "0")
    canonical = f"{match[1]}T{match[2]}.{fraction}"
    try:
        datetime.fromisoformat(canonical)
    except ValueError:
        return None
    return canonical


def _parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _comparable(cursor_type: str, value: str) -> Decimal | str:
    if cursor_type in {"int", "bigint", "decimal"}:
        return Decimal(value)  # unlike int(), it reads any number of digits
    return value  # fixed-width ISO texts sort as the instants they name


def _exact_sum(left: Decimal, right: Decimal) -> Decimal:
    digits = len(left.as_tuple().digits) + len(right.as_tuple().digits) + 2
    return Context(prec=max(digits, 50)).add(left, right)


def _duration(text: str) -> timedelta:
    step = parse_duration(text)
    if step is None:
        raise ValueError(text)
    return step
