"""Paces the operations of one connection: a token bucket, and what the far side says is left.

Every connection has a pacer, so that budget hints count without any `rate_limit`. The unit is operations.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from pz_engine.model.policies import RateLimit

LONGEST_BUDGET_WAIT = timedelta(minutes=15)
"""A reset further away than this is taken for this."""


class Pacer:
    """Tells how long to wait before the next operation; shared by all threads of a run."""

    def __init__(self, limit: RateLimit | None, *, monotonic: Callable[[], float], now: Callable[[], datetime]) -> None:
        """Create a pacer with a full bucket.

        Args:
            limit: the connection's declaration; None means that only budget hints pace.
            monotonic: seconds on a clock that never goes backwards.
            now: the current instant, to place a reset given as a time of day.
        """
        self._monotonic = monotonic
        self._now = now
        self._guard = threading.Lock()
        self._rate = limit.requests_per_minute / 60 if limit is not None else None
        self._burst = float(_burst(limit)) if limit is not None else 0.0
        self._tokens = self._burst
        self._refilled_at = monotonic()
        self._resumes_at: float | None = None

    def acquire(self) -> float:
        """Take the right to run one operation; 0 when taken, else seconds to wait before asking again."""
        with self._guard:
            now = self._monotonic()
            if self._resumes_at is not None:
                if self._resumes_at > now:
                    return self._resumes_at - now
                self._resumes_at = None
            if self._rate is None:
                return 0.0
            self._tokens = min(self._burst, self._tokens + (now - self._refilled_at) * self._rate)
            self._refilled_at = now
            # Rounding while refilling must not cost a second wait of a few nanoseconds.
            if self._tokens >= 1 - 1e-9:
                self._tokens = max(0.0, self._tokens - 1)
                return 0.0
            return (1 - self._tokens) / self._rate

    def report_budget(self, remaining: int, reset_at: datetime) -> None:
        """Take what the far side said is left; only nothing left has an effect, and the last word counts."""
        with self._guard:
            if remaining > 0:
                self._resumes_at = None
                return
            wait = min(reset_at - self._now(), LONGEST_BUDGET_WAIT).total_seconds()
            self._resumes_at = self._monotonic() + wait if wait > 0 else None


def _burst(limit: RateLimit) -> int:
    return limit.burst if limit.burst is not None else max(1, limit.requests_per_minute // 60)
