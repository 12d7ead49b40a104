"""A circuit breaker for one connection.

Only transient failures of whole attempts count. A report is honoured only while its ticket equals the breaker's
epoch, so a call admitted before a trip can neither close nor reopen the breaker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from enum import Enum

from msgspec import Struct

from pz_engine.base.durations import milliseconds

LONGEST_ASKED_WAIT = timedelta(days=1)
"""Longest cool-down that a far side can ask for; a declared one may be longer."""

DENIED = 0
"""Ticket of a refused entry; it must not be reported."""


class BreakerState(str, Enum):
    """Where a breaker stands, as events spell it."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerChange(Struct, frozen=True):
    """One move between states."""

    old: BreakerState
    new: BreakerState
    trigger: str
    cool_down_ms: int
    """Length of the coming wait for a move into open, else 0."""


class Entry(Struct, frozen=True):
    """Answer to a request to enter."""

    ticket: int
    wait_seconds: float = 0.0
    """How long to wait before asking again; only for a denial."""

    @property
    def is_admitted(self) -> bool:
        """Tell whether the attempt may run."""
        return self.ticket != DENIED


class CircuitBreaker:
    """Counts transient failures in a row and refuses entry for a while once there are too many; thread-safe."""

    def __init__(
        self,
        *,
        failure_threshold: int,
        cool_down: timedelta,
        monotonic: Callable[[], float],
        on_change: Callable[[BreakerChange], None],
    ) -> None:
        """Create a closed breaker.

        Args:
            failure_threshold: transient failures in a row that open it; at least 1.
            cool_down: shortest time spent open; a longer wait asked for by the far side wins, up to a day.
            monotonic: seconds on a clock that never goes backwards.
            on_change: told of every move, outside the lock.
        """
        self._threshold = failure_threshold
        self._configured = cool_down.total_seconds()
        self._monotonic = monotonic
        self._on_change = on_change
        self._guard = threading.Lock()
        self._state = BreakerState.CLOSED
        self._failures = 0
        self._epoch = 1
        self._opened_at = 0.0
        self._cool_down = self._configured

    @property
    def state(self) -> BreakerState:
        """Where the breaker stands now."""
        with self._guard:
            return self._state

    @property
    def configured(self) -> timedelta:
        """The declared shortest wait in the open state."""
        return timedelta(seconds=self._configured)

    @property
    def cool_down(self) -> timedelta:
        """The current wait in the open state."""
        with self._guard:
            return timedelta(seconds=self._cool_down)

    def try_enter(self) -> Entry:
        """Ask to run an attempt; the first entry after a cool-down is the probe."""
        with self._guard:
            if self._state is BreakerState.CLOSED:
                return Entry(self._epoch)
            if self._state is BreakerState.HALF_OPEN:
                return Entry(DENIED, self._cool_down)
            remaining = self._opened_at + self._cool_down - self._monotonic()
            if remaining > 0:
                return Entry(DENIED, remaining)
            change = self._move(BreakerState.HALF_OPEN, "cool-down elapsed")
            entry = Entry(self._epoch)
        self._on_change(change)
        return entry

    def report_success(self, ticket: int) -> None:
        """The attempt succeeded."""
        change = None
        with self._guard:
            if ticket != self._epoch:
                return
            if self._state is BreakerState.CLOSED:
                self._failures = 0
            elif self._state is BreakerState.HALF_OPEN:
                change = self._close()
        self._tell(change)

    def report_transient(self, ticket: int, retry_after: timedelta | None = None) -> None:
        """The attempt failed in a way that may pass; `retry_after` is what the far side asked for."""
        change = None
        with self._guard:
            if ticket != self._epoch:
                return
            asked = min(retry_after, LONGEST_ASKED_WAIT).total_seconds() if retry_after is not None else 0.0
            if self._state is BreakerState.HALF_OPEN:
                change = self._open("probe failed", asked)
            elif self._state is BreakerState.CLOSED:
                self._failures += 1
                if self._failures >= self._threshold:
                    change = self._open(f"{self._failures} consecutive transient failures", asked)
        self._tell(change)

    def report_permanent(self, ticket: int) -> None:
        """The attempt failed for good: the far side answered, so a probe closes the breaker."""
        change = None
        with self._guard:
            if ticket == self._epoch and self._state is BreakerState.HALF_OPEN:
                change = self._close()
        self._tell(change)

    def report_abandoned(self, ticket: int) -> None:
        """The attempt ended without telling anything about the connection; a probe reopens the breaker."""
        change = None
        with self._guard:
            if ticket == self._epoch and self._state is BreakerState.HALF_OPEN:
                change = self._open("probe failed", 0.0)
        self._tell(change)

    def _tell(self, change: BreakerChange | None) -> None:
        if change is not None:
            self._on_change(change)

    def _close(self) -> BreakerChange:
        self._failures = 0
        return self._move(BreakerState.CLOSED, "probe succeeded")

    def _open(self, trigger: str, asked: float) -> BreakerChange:
        self._cool_down = max(self._configured, asked)
        self._opened_at = self._monotonic()
        self._failures = 0
        self._epoch += 1
        return self._move(BreakerState.OPEN, trigger, milliseconds(timedelta(seconds=self._cool_down)))

    def _move(self, new: BreakerState, trigger: str, cool_down_ms: int = 0) -> BreakerChange:
        old, self._state = self._state, new
        return BreakerChange(old, new, trigger, cool_down_ms)
