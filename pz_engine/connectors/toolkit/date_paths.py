"""Paths with date tokens: which folders a window needs, and which folder a moment belongs to.

A row's cursor is expected to lie in its folder's period; the row predicate makes the exact cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from pz_engine.base.date_tokens import DIRECTIVES, finest_level, replace_date_tokens

_LAST_YEAR = 9999
_RUN_OF_STARS = re.compile(r"\*{2,}")
_CANONICAL = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2}):(\d{2})(?:\.\d{1,6})?)?")


def any_date(template: str) -> str:
    """Return the pattern that every date's path matches.

    >>> any_date("{yyyy}/{MM}/*.csv")
    '????/??/*.csv'
    """
    return replace_date_tokens(template, lambda token, _: "?" * len(token))


def strftime_format(template: str) -> str:
    """Return a template as a `strftime` format.

    >>> strftime_format("100%/{yyyy}-{MM}")
    '100%%/%Y-%m'
    """
    return replace_date_tokens(template.replace("%", "%%"), lambda token, _: DIRECTIVES[token])


def moment_of(canonical: str) -> datetime | None:
    """Read a canonical date or timestamp; None for another kind of cursor value.

    >>> moment_of("2026-07-11"), moment_of("17")
    (datetime.datetime(2026, 7, 11, 0, 0), None)
    """
    match = _CANONICAL.fullmatch(canonical)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - wall-clock time, as paths are


def cover(template: str, lower: datetime, upper: datetime) -> tuple[str, ...]:
    """Return the fewest patterns that name every bucket from `lower` to `upper`, both ends included.

    >>> cover("{yyyy}/{MM}/{dd}.csv", datetime(2026, 1, 31), datetime(2026, 3, 1))
    ('2026/01/31.csv', '2026/02/*.csv', '2026/03/01.csv')
    """
    if upper.year == _LAST_YEAR:
        return (any_date(template),)
    depth = finest_level(template)
    current, last = _floor(lower, depth), _floor(upper, depth)
    patterns: list[str] = []
    while current <= last:
        unit = next(
            level
            for level in range(depth + 1)
            if _floor(current, level) == current and _floor(_next(current, level) - timedelta(seconds=1), depth) <= last
        )
        pattern = _render(template, current, unit)
        if pattern not in patterns:
            patterns.append(pattern)
        current = _next(current, unit)
    return tuple(patterns)


def _render(template: str, moment: datetime, unit: int) -> str:
    """Fill in the tokens down to a unit and put `*` for finer ones."""

    def value(name: str, level: int) -> str:
        if level > unit:
            return "*"
        return f"{moment.year:04d}" if name == "yyyy" else moment.strftime(DIRECTIVES[name])

    return _RUN_OF_STARS.sub("*", replace_date_tokens(template, value))


def _floor(moment: datetime, unit: int) -> datetime:
    starts: Sequence[int] = (moment.year, moment.month, moment.day, moment.hour, moment.minute)
    kept = [*starts[: unit + 1], *(1, 1, 1, 0, 0)[unit + 1 :]]
    return datetime(kept[0], kept[1], kept[2], kept[3], kept[4])  # noqa: DTZ001 - wall-clock time, as paths are


def _next(moment: datetime, unit: int) -> datetime:
    """Return the start of the following bucket; `moment` starts one."""
    if unit == 0:
        return moment.replace(year=moment.year + 1)
    if unit == 1:
        return moment.replace(year=moment.year + moment.month // 12, month=moment.month % 12 + 1)
    return moment + (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1))[unit - 2]
