"""Retention: staging databases of older runs, or whole runs, and work directories that nobody holds.

A live run is recognised by its lock and always kept; journals and state are never touched.
"""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from pz_engine.base.file_locks import FileLock, LockHeldError, is_locked
from pz_engine.base.state_folder import shown_in_state
from pz_engine.state.run_history import LOCK_FILE, is_live, run_directories, started_at

STAGING_DATABASE: Final = ("staging.duckdb", "staging.duckdb.wal")
STAGING_PARTS: Final = (*STAGING_DATABASE, "staging.duckdb.tmp", "spill")
"""Everything of a run that only its staging database needs."""

WORK_DIRECTORY: Final = "tmp"


class SweepRule(Struct, frozen=True):
    """Which runs a sweep takes, and how much of them."""

    keep_last: int = 1
    """How many of the newest runs stay whatever else is asked; 0 for none."""

    older_than: datetime | None = None
    """Only runs that started before this instant; a run whose name carries no date has no age and stays."""

    purge: bool = False
    """Take the whole directory instead of the staging database."""


class SweepReport(Struct, frozen=True):
    """What a sweep did, or would do."""

    swept: tuple[str, ...] = ()
    """Ids of the runs whose staging database, or whole directory, was deleted; newest first."""

    kept: int = 0
    """Runs left as they were, live ones aside."""

    live: tuple[str, ...] = ()
    """Ids of the runs that were passed over because a process holds them."""

    bytes_freed: int = 0
    """Work directories included."""

    failures: tuple[str, ...] = ()
    """One sentence per directory that could not be cleaned."""

    stale_work: int = 0
    """Work directories removed."""

    @property
    def did_anything(self) -> bool:
        """Tell whether there is something to report."""
        return bool(self.swept or self.stale_work or self.failures)


def sweep(state_dir: Path, rule: SweepRule, *, dry_run: bool = False) -> SweepReport:
    """Delete what older runs no longer need, and stale work directories.

    Args:
        state_dir: the project's `.pz`, wherever it is.
        rule: which runs, and how much of them.
        dry_run: only tell what would be deleted.
    """
    swept: list[str] = []
    live: list[str] = []
    failures: list[str] = []
    kept = stale = freed = 0
    for rank, directory in enumerate(run_directories(state_dir)):
        parts = _parts_to_delete(directory, rank, rule)
        if not parts and rank >= rule.keep_last:
            kept += 1  # nothing to take, as of most runs of a long history; whether it lives is not worth a lock
            continue
        if is_live(directory):
            live.append(directory.name)
            continue
        size, error = _delete(directory, parts, dry_run=dry_run)
        freed += size or 0
        failures.extend(_sentence(state_dir, directory, error))
        if size is not None and error is None and parts:
            swept.append(directory.name)
        elif error is None:
            kept += 1
    for directory in _work_directories(state_dir):
        size, error = _delete(directory, [directory], dry_run=dry_run)
        freed += size or 0
        stale += size is not None and error is None
        failures.extend(_sentence(state_dir, directory, error))
    return SweepReport(tuple(swept), kept, tuple(live), freed, tuple(failures), stale)


def _parts_to_delete(directory: Path, rank: int, rule: SweepRule) -> list[Path]:
    if rank < rule.keep_last:
        return []
    if rule.older_than is not None:
        started = started_at(directory.name)
        if started is None or started >= rule.older_than:
            return []
    if rule.purge:
        return [directory]
    try:
        with os.scandir(directory) as entries:
            has_database = any(entry.name in STAGING_DATABASE for entry in entries)
    except OSError:
        return []
    return [directory / part for part in STAGING_PARTS] if has_database else []


def _work_directories(state_dir: Path) -> list[Path]:
    try:
        entries = sorted((state_dir / WORK_DIRECTORY).iterdir())
    except OSError:
        return []
    return [entry for entry in entries if _is_stale(entry)]


def _is_stale(entry: Path) -> bool:
    return entry.is_dir() and not entry.is_symlink() and not is_locked(entry / LOCK_FILE)


def _delete(owner: Path, parts: list[Path], *, dry_run: bool) -> tuple[int | None, OSError | None]:
    """Return the bytes freed, None when there was nothing to delete, and what went wrong.

    The owner's lock is held meanwhile, because a run may just be starting there.
    """
    present = [part for part in parts if part.is_symlink() or part.exists()]
    if not present:
        return None, None
    freed = 0
    try:
        if dry_run:
            return sum(map(_size, present)), None
        with FileLock(owner / LOCK_FILE):
            for part in present:
                size = _size(part)
                if part.is_dir() and not part.is_symlink():
                    shutil.rmtree(part)
                else:
                    part.unlink()
                freed += size
    except LockHeldError:
        return None, None
    except OSError as error:
        return freed, error
    return freed, None


def _size(path: Path) -> int:
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(child.lstat().st_size for child in path.rglob("*") if not child.is_dir())


def _sentence(state_dir: Path, directory: Path, error: OSError | None) -> list[str]:
    if error is None:
        return []
    return [f"{shown_in_state(directory, state_dir)} cannot be cleaned: {error.strerror or 'unknown cause'}"]
