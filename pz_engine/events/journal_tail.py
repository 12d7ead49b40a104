"""Follows a journal while its run lives.

A line is shown when it is complete. The end of the run ends the following, after a short wait for what may still come;
a journal that is replaced or cut ends it too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pz_engine.events.journal_reader import LONGEST_LINE, parse_line

POLL_SECONDS: Final = 0.3
TRAILING_SECONDS: Final = 2.0
"""How long to wait, after the run's end, for the one event that may follow it."""

_LAST_EVENT = "retention_swept"


def follow_journal(path: Path, *, stop: Callable[[float], bool]) -> Iterator[dict[str, Any]]:
    """Yield records from the start of a journal and then as they are appended.

    Args:
        path: the journal file.
        stop: sleeps for the given seconds; True ends the following.

    Raises:
        OSError: the file cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield from _follow(path, descriptor, stop)
    finally:
        os.close(descriptor)


def _follow(path: Path, descriptor: int, stop: Callable[[float], bool]) -> Iterator[dict[str, Any]]:
    pending, position = b"", 0
    trailing: float | None = None
    while True:
        chunk = os.read(descriptor, LONGEST_LINE)
        position += len(chunk)
        *lines, pending = (pending + chunk).split(b"\n")
        pending = pending[: LONGEST_LINE + 1]  # whatever comes after makes it no more readable
        for line in lines:
            record = parse_line(line)
            if record is None or record["runId"] != path.stem:
                continue
            yield record
            if record["event"] == _LAST_EVENT:
                return
            if record["event"] == "run_completed":
                trailing = TRAILING_SECONDS
        if chunk:
            continue
        if (trailing is not None and trailing <= 0) or _was_replaced(path, descriptor, position):
            return
        if trailing is not None:
            trailing -= POLL_SECONDS
        if stop(POLL_SECONDS):
            return


def _was_replaced(path: Path, descriptor: int, position: int) -> bool:
    """Tell whether the path names another file now, or the file shrank."""
    opened = os.fstat(descriptor)
    try:
        present = path.lstat()
    except OSError:
        return True
    return (present.st_dev, present.st_ino) != (opened.st_dev, opened.st_ino) or opened.st_size < position
