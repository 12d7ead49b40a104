"""Run ids and the runs of a project, newest first.

"Newest" is ordinal order of the ids that carry a date, never a file time; a directory whose name carries none ranks
behind every one that does.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pz_engine.base.file_locks import is_locked
from pz_engine.base.stable_json import parse_json
from pz_engine.state.run_results import FILE_NAME, RunResults, read_results

RUNS_DIRECTORY: Final = "runs"
HOST_FILE: Final = "host.json"
LOCK_FILE: Final = ".lock"

_DATED = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{3})Z")


class StoredRun(Struct, frozen=True):
    """A run directory with readable results."""

    directory: Path
    results: RunResults
    host: Mapping[str, Any] | None = None
    """The host's record, when one was given and can be read."""

    @property
    def run_id(self) -> str:
        """Return the run's id: the directory's name."""
        return self.directory.name


def mint_run_id(now: datetime, random: random.Random) -> str:
    """Make an id that sorts by start time: the instant to the millisecond and a random 16-bit suffix.

    Args:
        now: the run's start, aware.
        random: source of the suffix.
    """
    utc = now.astimezone(timezone.utc)
    stamp = f"{utc.year:04}{utc.month:02}{utc.day:02}T{utc.hour:02}{utc.minute:02}{utc.second:02}"
    return f"{stamp}{utc.microsecond // 1000:03}Z-{random.getrandbits(16):04x}"


def started_at(name: str) -> datetime | None:
    """Return the instant a run's directory name begins with, or None when it begins with none.

    >>> started_at("20260704T100000250Z-ab12")
    datetime.datetime(2026, 7, 4, 10, 0, 0, 250000, tzinfo=datetime.timezone.utc)
    >>> started_at("20261304T100000000Z-ab12") is None, started_at("backup") is None
    (True, True)
    """
    match = _DATED.match(name)
    if match is None:
        return None
    year, month, day, hour, minute, second, millisecond = map(int, match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, millisecond * 1000, timezone.utc)
    except ValueError:
        return None


def newest_first(names: Iterable[str]) -> list[str]:
    """Order run directory names: the dated ones first, each part descending."""
    return sorted(names, key=lambda name: (started_at(name) is not None, name), reverse=True)


def run_directories(state_dir: Path) -> tuple[Path, ...]:
    """Return every run directory, newest first; links and files are no run directories."""
    root = state_dir / RUNS_DIRECTORY
    try:
        with os.scandir(root) as entries:  # tells kinds without asking for each, and there may be thousands
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return ()
    return tuple(root / name for name in newest_first(names))


def is_live(run_directory: Path) -> bool:
    """Tell whether a process holds the run's lock."""
    return is_locked(run_directory / LOCK_FILE)


def stored_runs(state_dir: Path, *, host: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[StoredRun]:
    """Yield the runs whose results can be read, newest first, one file at a time.

    Args:
        state_dir: the project's `.pz`, wherever it is.
        host: keeps the runs whose host's record it accepts.
    """
    for directory in run_directories(state_dir):
        record = _read_host(directory / HOST_FILE)
        if host is not None and (record is None or not host(record)):
            continue
        results = read_results(directory / FILE_NAME)
        if results is not None:
            yield StoredRun(directory, results, record)


def _read_host(path: Path) -> Mapping[str, Any] | None:
    try:
        record = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
