"""A run's own directory: its lock, staging database, results and the host's record."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.file_locks import FileLock, LockHeldError
from pz_engine.base.stable_json import pretty_json
from pz_engine.errors.exceptions import PzStateError

_PROBE_SECONDS: Final = 5.0
"""Longest wait for the lock of a directory this run has just made: only probes of other processes touch it."""

_CLAIM_SECONDS: Final = 1.0
"""Longest wait for the lock of a run to continue, which probes touch and another retry keeps."""


class RunDirectory:
    """`.pz/runs/<run-id>/`, locked for as long as the run lives."""

    def __init__(self, state_dir: Path, run_id: str) -> None:
        self.path = state_dir / "runs" / run_id
        self._lock = FileLock(self.path / ".lock", wait_seconds=_PROBE_SECONDS)

    @property
    def staging_database(self) -> Path:
        """The run's DuckDB file."""
        return self.path / "staging.duckdb"

    @property
    def results(self) -> Path:
        """The run's results."""
        return self.path / "run_results.json"

    @property
    def spill(self) -> Path:
        """Where DuckDB spills; removed when the run ends."""
        return self.path / "spill"

    def create(self, host: Mapping[str, Any] | None) -> None:
        """Create the directory, take its lock and write the host's record.

        Raises:
            FileExistsError: another run has the id.
            OSError: the directory cannot be created, locked or written.
        """
        self.path.mkdir(parents=True)
        try:
            self._lock.acquire()
        except LockHeldError:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(self.path)) from None
        if host is not None:
            write_atomically(self.path / "host.json", pretty_json(dict(host)))

    def release(self) -> None:
        """Remove the spill directory and drop the lock."""
        shutil.rmtree(self.spill, ignore_errors=True)
        self._lock.release()


def claim_run(directory: Path) -> Callable[[], None]:
    """Take the lock of a run that is to be continued, so that nobody else continues or cleans it meanwhile.

    Returns:
        What gives it back.

    Raises:
        PzStateError: `PZ0503`, somebody else has it.
    """
    lock = FileLock(directory / ".lock", wait_seconds=_CLAIM_SECONDS)
    try:
        lock.acquire()
    except LockHeldError:
        raise PzStateError(
            "PZ0503", f"run {directory.name} is continued by another process", hint="wait for its end, then: pz retry"
        ) from None
    except OSError:  # what cannot be locked cannot be cleaned either
        return lambda: None
    return lock.release
