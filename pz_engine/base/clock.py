"""Time, injected.

Nothing outside this module asks the operating system what time it is, so tests can fix it.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    """Source of wall-clock and monotonic time."""

    def now(self) -> datetime:
        """Return the current instant, aware and in UTC."""

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes backwards."""


class SystemClock:
    """The operating system's clocks."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Return seconds on the monotonic clock."""
        return time.monotonic()


def format_instant(moment: datetime) -> str:
    """Render an instant as `yyyy-MM-ddTHH:mm:ss.fffZ`, milliseconds truncated.

    >>> format_instant(datetime(2026, 11, 4, 6, 15, 0, 251999, tzinfo=timezone.utc))
    '2026-11-04T06:15:00.251Z'
    """
    utc = moment.astimezone(timezone.utc)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"
