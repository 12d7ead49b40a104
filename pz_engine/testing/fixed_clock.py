"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


class FixedClock:
    """Wall clock and monotonic clock under the test's control."""

    def __init__(self, moment: datetime = datetime(2026, 11, 4, 6, 15, 0, 250_000, tzinfo=timezone.utc)) -> None:
        self._moment = moment
        self._seconds = 0.0

    def now(self) -> datetime:
        """Return the fixed instant."""
        return self._moment

    def monotonic(self) -> float:
        """Return the seconds the test has let pass."""
        return self._seconds

    def advance(self, duration: timedelta) -> None:
        """Let time pass on both clocks."""
        self._moment += duration
        self._seconds += duration.total_seconds()
