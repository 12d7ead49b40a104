"""Keeps the events of a run for assertions."""

from __future__ import annotations

from typing import TypeVar

from pz_engine.events.types import NodeCompleted, RunEvent
from pz_engine.model.run import NodeResult

E = TypeVar("E", bound=RunEvent)


class EventRecorder:
    """An event sink that remembers."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def __call__(self, event: RunEvent) -> None:
        """Take an event."""
        self.events.append(event)

    def of(self, event_type: type[E]) -> list[E]:
        """Return the events of one type, in order."""
        return [event for event in self.events if isinstance(event, event_type)]

    def results(self) -> dict[str, NodeResult]:
        """Return the result of every node by name."""
        return {event.result.name: event.result for event in self.of(NodeCompleted)}
