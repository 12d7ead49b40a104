"""Draws the live tree on a terminal, at most ten times a second, from a thread of its own.

Taking an event only stores it, so neither a slow nor a broken terminal can hold up a run.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, TextIO

from pz_engine.base.clock import Clock, SystemClock
from pz_engine.cli.render.live_tree import RunTree
from pz_engine.events.types import RunEvent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

REFRESH_SECONDS = 0.1


class LiveDisplay:
    """A consumer that keeps a tree up to date on an interactive terminal.

    Args:
        stream: the terminal.
        title: first line of the tree.
        has_colour: False draws without colour.
        clock: tells how long a running node has taken.
    """

    def __init__(self, stream: TextIO, title: str, *, has_colour: bool, clock: Clock | None = None) -> None:
        self._stream = stream
        self._has_colour = has_colour
        self._clock = clock or SystemClock()
        self._tree_guard = threading.Lock()
        self._tree = RunTree(title)
        self._above: deque[str] = deque()
        self._stop = threading.Event()
        self._painter = threading.Thread(target=self._paint, name="pz-live", daemon=True)
        self._painter.start()

    def __call__(self, event: RunEvent) -> None:
        """Take in one event."""
        with self._tree_guard:
            self._tree.apply(event)

    def say(self, line: str) -> None:
        """Print a line above the tree at the next refresh."""
        self._above.append(line)

    def close(self, timeout: float) -> bool:
        """Draw the last state and stop; False when the terminal did not take it in time."""
        self._stop.set()
        self._painter.join(timeout)
        return not self._painter.is_alive()

    def _paint(self) -> None:
        try:
            self._paint_until_stopped()
        except Exception:  # a terminal that breaks ends the drawing and nothing else
            return

    def _paint_until_stopped(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream, no_color=not self._has_colour, highlight=False, soft_wrap=False)
        with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
            is_last = False
            while not is_last:
                is_last = self._stop.wait(REFRESH_SECONDS)
                self._print_above(console)
                if is_last:
                    live.vertical_overflow = "visible"
                live.update(self._text(), refresh=True)

    def _print_above(self, console: Console) -> None:
        from rich.text import Text

        while self._above:
            console.print(Text(self._above.popleft()), soft_wrap=True)

    def _text(self) -> Text:
        from rich.text import Text

        with self._tree_guard:
            lines = self._tree.lines(self._clock.now())
        text = Text(no_wrap=True, overflow="ellipsis")
        for index, line in enumerate(lines):
            text.append(("\n" if index else "") + line.guides)
            text.append(line.text, style=line.style or None)
        return text
