"""A limit on what one op adds to Dagster's event log beside results and checks.

An entry costs milliseconds in a database that people page through; past the limit the rest is in the journal only.
"""

from __future__ import annotations

from typing import Any

MOST_EVENTS = 2000


class EventBudget:
    """Passes log lines on until the limit is reached; errors always pass."""

    def __init__(self, log: Any, limit: int = MOST_EVENTS) -> None:
        self._log = log
        self._left = limit
        self.dropped = 0
        """How many entries were left out."""

    def take(self) -> bool:
        """Use up one entry; False when none is left."""
        if self._left <= 0:
            self.dropped += 1
            return False
        self._left -= 1
        return True

    def write(self, level: str, text: str) -> None:
        """Log a line at a level Dagster knows."""
        if level in ("error", "critical") or self.take():
            getattr(self._log, level)(text)

    def close(self) -> None:
        """Say how many entries were left out, if any."""
        if self.dropped:
            self._log.info(f"{self.dropped} more event(s) are only in the run's journal")
