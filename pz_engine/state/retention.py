"""Automatic retention: staging databases of older runs and work directories that nobody holds.

A live run is recognised by its lock and always kept; results, journals and state are never touched.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pz_engine.base.file_locks import is_locked
from pz_engine.state.run_history import LOCK_FILE, is_live, run_directories

STAGING_DATABASE: Final = ("staging.duckdb", "staging.duckdb.wal")
STAGING_PARTS: Final = (*STAGING_DATABASE, "staging.duckdb.tmp", "spill")
"""Everything of a run that only its staging database needs."""

WORK_DIRECTORY: Final = Path(".pz") / "tmp"


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did."""

    runs_swept: int = 0
    """Runs whose staging database was deleted."""

    bytes_freed: int = 0
    """Work directories included."""

    failures: tuple[str, ...] = ()
    """One sentence per directory that could not be cleaned."""

    stale_work: int = 0
    """Work directories removed."""

    @property
    def did_anything(self) -> bool:
        """Tell whether there is something to report."""
        return bool(self.runs_swept or self.stale_work or self.failures)


def sweep(project_dir: Path, keep_last: int | None) -> SweepReport:
    """Delete the staging databases of all but the newest runs, and stale work directories.

    Args:
        project_dir: the project.
        keep_last: how many of the newest runs keep theirs; None switches retention off.
    """
    if keep_last is None:
        return SweepReport()
    swept = stale = freed = 0
    failures: list[str] = []
    for rank, directory in enumerate(run_directories(project_dir)):
        if rank < keep_last or is_live(directory):
            continue
        had_database = any((directory / part).exists() for part in STAGING_DATABASE)
        size, error = _delete(directory, [directory / part for part in STAGING_PARTS])
        freed += size or 0
        swept += had_database and size is not None and error is None
        failures.extend(_sentence(project_dir, directory, error))
    for directory in _work_directories(project_dir):
        size, error = _delete(directory, [directory])
        freed += size or 0
        stale += size is not None and error is None
        failures.extend(_sentence(project_dir, directory, error))
    return SweepReport(swept, freed, tuple(failures), stale)


def _work_directories(project_dir: Path) -> list[Path]:
    try:
        entries = sorted((project_dir / WORK_DIRECTORY).iterdir())
    except OSError:
        return []
    return [entry for entry in entries if _is_stale(entry)]


def _is_stale(entry: Path) -> bool:
    return entry.is_dir() and not entry.is_symlink() and not is_locked(entry / LOCK_FILE)


def _delete(owner: Path, parts: list[Path]) -> tuple[int | None, OSError | None]:
    """Return the bytes freed, None when there was nothing to delete, and what went wrong.

    The owner is probed again right before, because a run may have taken its lock since.
    """
    present = [part for part in parts if part.is_symlink() or part.exists()]
    if not present:
        return None, None
    freed = 0
    if is_locked(owner / LOCK_FILE):
        return None, None
    for part in present:
        try:
            size = _size(part)
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part)
            else:
                part.unlink()
            freed += size
        except OSError as error:
            return freed, error
    return freed, None


def _size(path: Path) -> int:
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(child.lstat().st_size for child in path.rglob("*") if not child.is_dir())


def _sentence(project_dir: Path, directory: Path, error: OSError | None) -> list[str]:
    if error is None:
        return []
    return [f"{directory.relative_to(project_dir).as_posix()} cannot be cleaned: {error.strerror or 'unknown cause'}"]
