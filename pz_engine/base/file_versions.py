"""What tells one content of a path from the next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct


class FileVersion(Struct, frozen=True):
    """Identity, size and time of a file's last change."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, stream: BinaryIO) -> FileVersion:
        """Look at an open file."""
        return cls._taken(os.fstat(stream.fileno()))

    @classmethod
    def at(cls, path: Path) -> FileVersion | None:
        """Look at a path; None when nothing can be seen there, for the reader to say why."""
        try:
            return cls._taken(path.stat())
        except OSError:
            return None

    @classmethod
    def _taken(cls, found: os.stat_result) -> FileVersion:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
