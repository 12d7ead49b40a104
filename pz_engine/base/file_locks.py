"""Locks that the operating system holds and drops when the holder dies.

The lock file's existence means nothing, only whether it can be locked. Who deletes a lock file holds it, and who gets
a lock looks whether the file is still there: otherwise a waiter and a newcomer could hold different files of one name. `flock` is used because two descriptors of one process exclude each
other under it, which they do not under record locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

_POLL_SECONDS = 0.015
_DIRECTORY_TRIES = 20


class LockHeldError(Exception):
    """The lock could not be taken within its wait."""


class FileLock:
    """An exclusive lock on a file, usable as a context manager."""

    def __init__(self, path: Path, *, wait_seconds: float = 0.0) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            LockHeldError: another holder kept it for the whole wait.
            OSError: the lock file cannot be created or opened.
        """
        descriptor = self._open()
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    os.close(descriptor)
                    raise
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    raise LockHeldError(str(self._path)) from None
                time.sleep(_POLL_SECONDS)
            else:
                if _is_file_of(descriptor, self._path):
                    self._descriptor = descriptor
                    return
                os.close(descriptor)
                descriptor = self._open()

    def _open(self) -> int:
        for _ in range(_DIRECTORY_TRIES):
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except (FileNotFoundError, FileExistsError) as error:  # perhaps the directory is just being deleted
                failure = error
        raise failure

    def release(self) -> None:
        """Drop the lock; the file stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _is_file_of(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def is_locked(path: Path) -> bool:
    """Tell whether somebody holds the lock, without creating the file; "permission denied" counts as held.

    The probe shares the lock for an instant, so that two probes never take each other for a holder. Who acquires a lock
    that others probe waits that instant out.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
