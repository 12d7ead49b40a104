"""JSON values as typed columns; a value that is not exactly one of the type is refused, never changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pz_engine.connectors.builtin.http.json_text import NumberText

_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?")
_TIMESTAMP = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:[.,](?P<fraction>[0-9]+))?"
    r" ?(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_RANGES: Final = {
    "tinyint": (-(2**7), 2**7 - 1),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
    "ubigint": (0, 2**64 - 1),
    "hugeint": (-(2**127), 2**127 - 1),
}
_LARGEST_FLOAT: Final = 3.4028235677973366e38
_MICROSECOND_DIGITS: Final = 6
_LONGEST_NUMBER: Final = 400
"""Characters; a longer number fits no type."""


class MisfitValueError(Exception):
    """A value that is not exactly one of the column's type."""


Converter = Callable[[Any], Any]
"""Takes a decoded value that is not null."""


def converter_of(kind: str) -> Converter:
    """Return the converter of a contract type; text columns take strings only, see `is_text`."""
    if kind in _RANGES:
        low, high = _RANGES[kind]
        return lambda value: _integer(value, low, high)
    if kind == "decimal":
        return lambda value: _decimal(value, 38, 9)
    match = _DECIMAL.fullmatch(kind)
    if match is not None:
        precision, scale = int(match[1]), int(match[2])
        return lambda value: _decimal(value, precision, scale)
    return {
        "double": lambda value: _float(value, None),
        "float": lambda value: _float(value, _LARGEST_FLOAT),
        "boolean": _boolean,
        "date": _date,
        "timestamp": _timestamp,
        "timestamptz": _timestamp,
        "time": lambda value: _matching(value, _TIME),
    }.get(kind, _string)


def is_text(kind: str) -> bool:
    """Tell whether a column takes any value as its JSON text."""
    return kind == "varchar"


def _integer(value: Any, low: int, high: int) -> int:
    if not isinstance(value, NumberText) or len(value) > _LONGEST_NUMBER or _INTEGER.fullmatch(value) is None:
        raise MisfitValueError
    number = int(value)
    if not low <= number <= high:
        raise MisfitValueError
    return number


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    if not isinstance(value, NumberText) or len(value) > _LONGEST_NUMBER:
        raise MisfitValueError
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise MisfitValueError from None
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise MisfitValueError
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text) if text else 0
    whole = len(text.lstrip("0")) + exponent
    if text and (-exponent > scale or whole > precision - scale):
        raise MisfitValueError
    return Decimal((sign, tuple(map(int, text)) or (0,), exponent if text else 0))


def _float(value: Any, largest: float | None) -> float:
    if not isinstance(value, NumberText):
        raise MisfitValueError
    number = float(value)
    is_zero_text = not any(digit in value.lower().partition("e")[0] for digit in "123456789")
    if number in (float("inf"), float("-inf")) or (number == 0 and not is_zero_text):
        raise MisfitValueError
    if largest is not None and abs(number) >= largest:
        raise MisfitValueError
    return number


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise MisfitValueError
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str) or isinstance(value, NumberText) or not _is_unicode(value):
        raise MisfitValueError
    return value


def _matching(value: Any, pattern: re.Pattern[str]) -> str:
    text = _string(value)
    if pattern.fullmatch(text) is None:
        raise MisfitValueError
    return text


def _date(value: Any) -> date:
    match = _DATE.fullmatch(_string(value))
    try:
        if match is not None:
            return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        pass
    raise MisfitValueError


def _timestamp(value: Any) -> datetime:
    """Read an ISO 8601 instant; without an offset it is UTC."""
    match = _TIMESTAMP.fullmatch(_string(value))
    if match is None:
        raise MisfitValueError
    fraction = (match["fraction"] or "").rstrip("0")
    if len(fraction) > _MICROSECOND_DIGITS:
        raise MisfitValueError
    clock = match["clock"] or "00:00:00"
    spelled = f"{match['day']}T{clock if clock.count(':') > 1 else f'{clock}:00'}"
    try:
        moment = datetime.fromisoformat(spelled) + timedelta(microseconds=int(fraction.ljust(6, "0") or 0))
        return moment.replace(tzinfo=timezone.utc) - _offset(match["zone"])
    except (ValueError, OverflowError):
        raise MisfitValueError from None


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in "Zz":
        return timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    length = timedelta(hours=hours, minutes=minutes)
    return -length if zone[0] == "-" else length


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
