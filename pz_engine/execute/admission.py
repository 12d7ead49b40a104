"""Passes a unit's attempts through the circuit breakers of its connections.

A refused entry is waited out and costs no attempt; the third refusal of one unit is its end, so waiting is bounded by
two cool-downs. A cool-down that the far side made longer than a try may take is not waited out at all. A failure is told to the connection it belongs to, a success to all.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.base.durations import format_duration
from pz_engine.execute.instances import Instances, instance_key
from pz_engine.execute.outcome import BreakerRefusal
from pz_engine.resilience.breaker import CircuitBreaker

_LAST_DENIAL = 3


class Admission:
    """The breakers of one unit, in ordinal order of their connections; used by one thread."""

    def __init__(self, instances: Instances, connections: Sequence[str], limit: timedelta | None = None) -> None:
        """Prepare to enter.

        Args:
            instances: the run's breakers.
            connections: names, in ordinal order.
            limit: longest time of one try; None when it is not limited.
        """
        self._limit = limit
        found = ((name, instances.breaker(name)) for name in connections)
        self._breakers = {name: breaker for name, breaker in found if breaker is not None}
        self._tickets: dict[str, int] = {}
        self._denials = 0

    def enter(self, cancel: CancelToken) -> None:
        """Wait until every breaker admits an attempt.

        Raises:
            BreakerRefusal: a breaker refused for the third time.
            Cancelled: the token was set while waiting.
        """
        self._tickets.clear()
        for name, breaker in self._breakers.items():
            while not (entry := breaker.try_enter()).is_admitted:
                self._denials += 1
                if self._denials >= _LAST_DENIAL or self._is_too_long(breaker, entry.wait_seconds):
                    self.abandon()
                    raise BreakerRefusal(
                        name,
                        f"the circuit breaker of {instance_key(name)} stayed open "
                        f"(cool-down {format_duration(breaker.cool_down)})\nnext step: pz retry, once it answers again",
                    )
                if cancel.wait(entry.wait_seconds):
                    self.abandon()
                    raise Cancelled
            self._tickets[name] = entry.ticket

    def _is_too_long(self, breaker: CircuitBreaker, wait: float) -> bool:
        """Tell whether the far side asks for more patience than the project has; a declared cool-down is its own will."""
        return self._limit is not None and wait > max(self._limit, breaker.configured).total_seconds()

    def succeed(self) -> None:
        """Tell every breaker that the attempt succeeded."""
        for name, ticket in self._tickets.items():
            self._breakers[name].report_success(ticket)

    def fail(self, connection: str | None, *, is_transient: bool, retry_after: timedelta | None) -> None:
        """Tell the breaker of the connection that failed; the others learn nothing from the attempt."""
        ticket = self._tickets.pop(connection, None) if connection is not None else None
        if connection is not None and ticket is not None:
            if is_transient:
                self._breakers[connection].report_transient(ticket, retry_after)
            else:
                self._breakers[connection].report_permanent(ticket)
        self.abandon()

    def abandon(self) -> None:
        """Tell every breaker that nothing will be reported for the attempt."""
        for name, ticket in self._tickets.items():
            self._breakers[name].report_abandoned(ticket)
        self._tickets.clear()
