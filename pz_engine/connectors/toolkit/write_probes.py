"""Whether a file or a folder may be written, found out without leaving a trace."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

from pz_engine.connectors.api import ProbeResult
from pz_engine.connectors.toolkit.os_errors import TRANSIENT_ERRORS
from pz_engine.connectors.toolkit.paths import TEMPORARY_PREFIX


def probe_folder(folder: Path, shown_as: str) -> ProbeResult:
    """Make a nameless file in a folder, or in the nearest folder above that exists and would have to take it."""
    try:
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        if not nearest.is_dir():
            return ProbeResult(False, f"permanent: '{shown_as}' cannot be a folder, because a file is in its place")
        with tempfile.TemporaryFile(prefix=TEMPORARY_PREFIX, dir=nearest):
            return ProbeResult(True, "")
    except OSError as error:
        return _refused(error, f"folder '{shown_as}' cannot be written")


def probe_locked_file(path: Path, shown_as: str) -> ProbeResult:
    """Open an existing file for writing and take its lock for a moment, as a database does.

    Not while this process has the database open: closing any handle of a file gives up all its locks.
    """
    try:
        with path.open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return ProbeResult(False, f"transient: '{shown_as}' is in use by another process")
            return ProbeResult(True, "")
    except OSError as error:
        return _refused(error, f"'{shown_as}' cannot be written")


def _refused(error: OSError, what: str) -> ProbeResult:
    kind = "transient" if error.errno in TRANSIENT_ERRORS else "permanent"
    return ProbeResult(False, f"{kind}: {what}: {error.strerror or type(error).__name__}")
