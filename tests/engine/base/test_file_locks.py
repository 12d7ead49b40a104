"""Locks belong to the operating system: they vanish with their holder, and looking at one makes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pz_engine.base.file_locks import FileLock, LockHeldError, is_locked

HOLD = "import sys, time; from pathlib import Path; from pz_engine.base.file_locks import FileLock\nFileLock(Path(sys.argv[1])).acquire(); print('held', flush=True); time.sleep(60)"


def test_lock_vanishes_with_a_killed_holder(tmp_path: Path) -> None:
    """SIGKILL leaves the file and not the lock."""
    path = tmp_path / "x.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert is_locked(path)
    with pytest.raises(LockHeldError):
        FileLock(path, wait_seconds=0.05).acquire()
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert path.exists()
    assert not is_locked(path)
    with FileLock(path):
        assert is_locked(path)


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    """Two stores of one process never write at once."""
    path = tmp_path / "x.lock"
    refused: list[bool] = []

    def try_it() -> None:
        try:
            FileLock(path).acquire()
        except LockHeldError:
            refused.append(True)

    with FileLock(path):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert refused == [True]


def test_looking_at_a_lock_makes_no_file(tmp_path: Path) -> None:
    """A missing file or folder is free, and stays missing."""
    assert not is_locked(tmp_path / "x.lock")
    assert not is_locked(tmp_path / "missing" / "x.lock")
    assert list(tmp_path.iterdir()) == []
