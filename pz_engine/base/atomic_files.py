"""Files that are replaced, never edited.

A reader sees the old or the new content, never a torn one.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write to a uniquely named sibling, flush it to disk, then rename it over `path`.

    Args:
        path: final name; its directory is created when missing.
        content: the whole new content.
        durable: fsync before the rename; switched off only for files that are rewritten many times a second and
            whose last version is written durably.

    Raises:
        OSError: the directory or the file cannot be written; `path` then keeps its old content.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    descriptor = _create(temporary)
    try:
        try:
            written = 0
            while written < len(content):
                written += os.write(descriptor, content[written:] if written else content)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _create(path: Path) -> int:
    """Open a new file; its directory is made only when it turns out to be missing."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o666)
