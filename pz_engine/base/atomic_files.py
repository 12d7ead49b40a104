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
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
