"""Locks belong to the operating system: they vanish with their holder, and looking at one makes nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
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


def test_probes_are_no_holders(tmp_path: Path) -> None:
    """However many look at a free lock at once, none sees another one, and who acquires it waits the looks out."""
    path = tmp_path / "x.lock"
    path.touch()
    seen: list[bool] = []
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.append(is_locked(path))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    over.set()
    for thread in threads:
        thread.join()
    assert len(seen) > 100
    assert not any(seen)
    over.clear()
    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            with FileLock(path, wait_seconds=5):
                pass
    finally:
        over.set()
    for thread in threads:
        thread.join()


def test_lock_on_a_file_that_was_deleted_is_taken_again(tmp_path: Path) -> None:
    """Who waits while the holder deletes the directory gets the lock of the new file, which excludes others."""
    directory = tmp_path / "run"
    path = directory / ".lock"
    holder = FileLock(path)
    holder.acquire()
    waiter = FileLock(path, wait_seconds=5)
    thread = threading.Thread(target=waiter.acquire)
    thread.start()
    time.sleep(0.1)
    shutil.rmtree(directory)
    holder.release()
    thread.join()
    assert is_locked(path)
    waiter.release()
