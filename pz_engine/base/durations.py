"""Durations as people write them: one number and one unit."""

from __future__ import annotations

import re
from datetime import timedelta

_PATTERN = re.compile(r"([0-9]+)(ms|s|m|h|d)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: str) -> timedelta | None:
    """Read `<digits><unit>` with unit `ms`, `s`, `m`, `h` or `d`; None when it is anything else or overflows.

    >>> parse_duration("90s")
    datetime.timedelta(seconds=90)
    >>> parse_duration("1.5m") is None
    True
    """
    match = _PATTERN.fullmatch(text)
    if match is None or len(match[1]) > 18:
        return None
    try:
        return timedelta(milliseconds=int(match[1]) * _MILLISECONDS[match[2]])
    except OverflowError:
        return None


def format_duration(duration: timedelta) -> str:
    """Render a duration in the largest unit that divides it exactly.

    >>> format_duration(timedelta(seconds=90))
    '90s'
    >>> format_duration(timedelta(minutes=2))
    '2m'
    """
    total = milliseconds(duration)
    for unit in ("d", "h", "m", "s"):
        if total and total % _MILLISECONDS[unit] == 0:
            return f"{total // _MILLISECONDS[unit]}{unit}"
    return f"{total}ms"


def milliseconds(duration: timedelta) -> int:
    """Return whole milliseconds, truncated."""
    return duration // timedelta(milliseconds=1)
