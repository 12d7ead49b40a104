"""The wire form of the event stream: one compact JSON object per line."""

from __future__ import annotations

from pz_engine.base.stable_json import compact_json
from pz_engine.events.types import EVENT_TYPES, RunEvent


def is_on_the_wire(event: RunEvent) -> bool:
    """Tell whether an event belongs to the public stream; journal-only events do not."""
    return isinstance(event, EVENT_TYPES)


def render_event(event: RunEvent) -> str:
    """Render one event without a line end."""
    return compact_json(event.to_json())
