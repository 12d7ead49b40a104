"""A folder that nobody may write, whoever runs the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(directory: Path) -> Iterator[Path]:
    """Make a folder read-only: by its modes, or for the superuser, whom they do not bind, by a mount."""
    if os.geteuid() != 0:
        folders = [directory, *(path for path in directory.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        yield directory
        for folder in folders:
            folder.chmod(0o755)
        return
    mount = ["mount", "--bind", str(directory), str(directory)]
    again = ["mount", "-o", "remount,bind,ro", str(directory)]
    if any(subprocess.run(each, check=False, capture_output=True).returncode for each in (mount, again)):
        pytest.skip("mounting a file system is not allowed here")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)
