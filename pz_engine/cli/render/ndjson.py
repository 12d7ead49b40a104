"""Writes the event stream to standard output, one JSON object per line."""

from __future__ import annotations

from pz_engine.cli.render.terminal import Terminal
from pz_engine.events.ndjson import is_on_the_wire, render_event
from pz_engine.events.types import RunEvent


class NdjsonWriter:
    """A consumer that writes each public event and nothing else."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def __call__(self, event: RunEvent) -> None:
        """Write one event."""
        if is_on_the_wire(event):
            self._terminal.out(render_event(event))
