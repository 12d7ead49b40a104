"""What nodes of one connection share for a whole run: its circuit breaker and its pacer.

Both are made on first use, and both directions of a connection use the same ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pz_engine.base.clock import Clock
from pz_engine.compile.dag import CompiledProject
from pz_engine.events.publisher import Publisher
from pz_engine.events.types import BreakerStateChanged
from pz_engine.resilience.breaker import BreakerChange, CircuitBreaker
from pz_engine.resilience.rate_limit import Pacer


def instance_key(connection: str) -> str:
    """Return how events and messages name a connection's shared state."""
    return f"conn:{connection}"


class Instances:
    """Breakers and pacers by connection; thread-safe."""

    def __init__(self, compiled: CompiledProject, clock: Clock, publisher: Publisher) -> None:
        self._compiled = compiled
        self._clock = clock
        self._publisher = publisher
        self._guard = threading.Lock()
        self._breakers: dict[str, CircuitBreaker] = {}
        self._pacers: dict[str, Pacer] = {}

    def breaker(self, connection: str) -> CircuitBreaker | None:
        """Return a connection's breaker; None when the project declares none."""
        settings = self._compiled.project.engine.breaker if self._compiled.project is not None else None
        if settings is None:
            return None
        with self._guard:
            if connection not in self._breakers:
                self._breakers[connection] = CircuitBreaker(
                    failure_threshold=settings.failure_threshold,
                    cool_down=settings.cool_down,
                    monotonic=self._clock.monotonic,
                    on_change=self._announce(connection),
                )
            return self._breakers[connection]

    def pacer(self, connection: str) -> Pacer:
        """Return a connection's pacer."""
        with self._guard:
            if connection not in self._pacers:
                limit = self._compiled.connections[connection].rate_limit
                self._pacers[connection] = Pacer(limit, monotonic=self._clock.monotonic, now=self._clock.now)
            return self._pacers[connection]

    def _announce(self, connection: str) -> Callable[[BreakerChange], None]:
        def announce(change: BreakerChange) -> None:
            self._publisher.emit(
                BreakerStateChanged,
                instance=instance_key(connection),
                old_state=change.old.value,
                new_state=change.new.value,
                trigger=change.trigger,
                cool_down_ms=change.cool_down_ms,
            )

        return announce
