"""Follows a journal while its run lives.

A line is shown when it is complete. The end of the run ends the following, after a short wait for what may still come;
so do a journal that is replaced or cut, and a run that died without saying so.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from pz_engine.events.journal_reader import LONGEST_LINE, parse_line

POLL_SECONDS: Final = 0.3
TRAILING_SECONDS: Final = 2.0
"""How long to wait, after the run's end, for the one event that may follow it."""

SILENT_SECONDS: Final = 600.0
"""A journal that has not grown for this long has lost its run."""

_LAST_EVENT = "retention_swept"

TailEnd = Literal["finished", "stopped", "replaced"]


class JournalTail:
    """One journal being followed.

    Args:
        path: the journal file.
        stop: sleeps for the given seconds; True ends the following.
        is_running: tells whether the run's process lives; None when that cannot be known.
    """

    def __init__(
        self, path: Path, *, stop: Callable[[float], bool], is_running: Callable[[], bool | None] = lambda: None
    ) -> None:
        self._path = path
        self._stop = stop
        self._is_running = is_running
        self.end: TailEnd | None = None
        """Why the following ended: the run said that it was over, it seems to have died, or the file is another one."""

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield records from the start of the journal and then as they are appended.

        Raises:
            OSError: the file cannot be opened, or is no regular file.
        """
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileNotFoundError(self._path)
            yield from self._follow(descriptor)
        finally:
            os.close(descriptor)

    def _follow(self, descriptor: int) -> Iterator[dict[str, Any]]:
        pending, position = b"", 0
        over_at: float | None = None
        grown_at = time.monotonic()
        was_dead = False
        while True:
            chunk = os.read(descriptor, LONGEST_LINE)
            position += len(chunk)
            *lines, pending = (pending + chunk).split(b"\n")
            pending = pending[: LONGEST_LINE + 1]  # whatever comes after makes it no more readable
            for line in lines:
                record = parse_line(line)
                if record is None or record["runId"] != self._path.stem:
                    continue
                yield record
                if record["event"] == _LAST_EVENT:
                    self.end = "finished"
                    return
                if record["event"] == "run_completed":
                    over_at = time.monotonic()
            now = time.monotonic()
            if chunk:
                grown_at = now
                continue
            if over_at is not None and now - over_at >= TRAILING_SECONDS:
                self.end = "finished"
            elif _was_replaced(self._path, descriptor, position):
                self.end = "replaced"
            elif over_at is None and (was_dead or now - grown_at >= SILENT_SECONDS):
                self.end = "stopped"
            if self.end is not None:
                return
            # What a process wrote before it died is read first: only a second look in vain counts.
            was_dead = self._is_running() is False
            if self._stop(0.0 if was_dead else POLL_SECONDS):
                return


def _was_replaced(path: Path, descriptor: int, position: int) -> bool:
    """Tell whether the path names another file now, or the file shrank."""
    opened = os.fstat(descriptor)
    try:
        present = path.lstat()
    except OSError:
        return True
    return (present.st_dev, present.st_ino) != (opened.st_dev, opened.st_ino) or opened.st_size < position
