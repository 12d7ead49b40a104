"""Stamps events and puts them on the bus.

Stamping and queueing happen under one lock, so the instants of a stream never run backwards.
"""

from __future__ import annotations

import threading
from typing import Any

from pz_engine.base.clock import Clock
from pz_engine.events.bus import EventBus
from pz_engine.events.types import RunEvent


class Publisher:
    """What the engine publishes through; safe from any thread."""

    def __init__(self, bus: EventBus, clock: Clock, run_id: str) -> None:
        self._bus = bus
        self._clock = clock
        self._run_id = run_id
        self._stamp_lock = threading.Lock()

    def emit(self, event_type: type[RunEvent], **fields: Any) -> None:
        """Build an event of this run at the current instant and queue it."""
        with self._stamp_lock:
            self._bus.publish(event_type(at=self._clock.now(), run_id=self._run_id, **fields))
