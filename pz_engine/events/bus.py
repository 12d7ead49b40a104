"""One queue with one reader between a run and everything that watches it.

Publishing never blocks and never raises; a consumer that fails is dropped, a consumer that hangs costs the closing
bound and nothing else.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence

from pz_engine.events.types import RunEvent

_GATHER_SECONDS = 0.005
"""No consumer hears of an event later than this because of gathering."""

Consumer = Callable[[RunEvent], None]
"""Receives every event in publication order, on the bus's thread."""


class EventBus:
    """Hands each event to every consumer, in the order given.

    Args:
        consumers: called one after the other for each event; put the ones that must not miss anything first.
        on_failure: receives one sentence when a consumer raised and was dropped.
    """

    def __init__(self, consumers: Sequence[Consumer], on_failure: Callable[[str], None]) -> None:
        self._consumers = list(consumers)
        self._on_failure = on_failure
        self._queue: queue.SimpleQueue[RunEvent | None] = queue.SimpleQueue()
        self._is_closed = False
        self._is_abandoned = False
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._deliver, name="pz-events", daemon=True)
        self._reader.start()

    def publish(self, event: RunEvent) -> None:
        """Queue an event; after `close` it is dropped."""
        if not self._is_closed:
            self._queue.put(event)

    def close(self, timeout: float) -> bool:
        """Wait until every queued event is delivered.

        Args:
            timeout: longest wait in seconds; what is undelivered then is dropped.

        Returns:
            False when events were dropped because a consumer did not come back in time; asking again costs no wait.
        """
        if self._is_abandoned:
            return False
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
            self._closing.set()
        self._reader.join(timeout)
        self._is_abandoned = self._reader.is_alive()
        return not self._is_abandoned

    def _deliver(self) -> None:
        while (event := self._next()) is not None:
            for consumer in tuple(self._consumers):
                if self._is_abandoned:
                    return
                try:
                    consumer(event)
                except Exception as error:
                    self._drop(consumer, error)

    def _next(self) -> RunEvent | None:
        """Return the next event, None at the end; woken from an empty queue, it lets a few events gather first.

        A wake-up for each event of a busy run would take the interpreter from its workers thousands of times.
        """
        with contextlib.suppress(queue.Empty):
            return self._queue.get_nowait()
        event = self._queue.get()
        self._closing.wait(_GATHER_SECONDS)
        return event

    def _drop(self, consumer: Consumer, error: Exception) -> None:
        self._consumers.remove(consumer)
        name = getattr(consumer, "__name__", type(consumer).__name__)
        with contextlib.suppress(Exception):
            self._on_failure(f"the event consumer '{name}' failed and was switched off ({type(error).__name__})")
