"""A snapshot for the worker processes of one code location, when the one on disk is not what was loaded.

A deployed process never writes into the project, yet its workers must see the definitions a run was planned with. The
text goes to a temporary file of this process, named by an environment variable that its children inherit.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "PZ_DAGSTER_SNAPSHOT_"
_directories: list[str] = []


def offer(project: str, content: bytes) -> None:
    """Let child processes read this snapshot of a project; without a temporary directory they use what is on disk."""
    try:
        if not _directories:
            _directories.append(tempfile.mkdtemp(prefix="pz-dagster-"))
            atexit.register(shutil.rmtree, _directories[0], ignore_errors=True)
        path = Path(_directories[0]) / f"{hashlib.sha256(content).hexdigest()[:16]}.json"
        path.write_bytes(content)
    except OSError:
        withdraw(project)
        return
    os.environ[_variable(project)] = os.fspath(path)


def withdraw(project: str) -> None:
    """Let child processes read the snapshot on disk."""
    os.environ.pop(_variable(project), None)


def offered(project: str) -> bytes | None:
    """Return what the parent process offers."""
    path = os.environ.get(_variable(project))
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def _variable(project: str) -> str:
    return _PREFIX + hashlib.sha256(project.encode()).hexdigest()[:16].upper()
