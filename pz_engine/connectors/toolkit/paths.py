"""Local paths: resolving, globbing and `key=value` folders.

Matches come in ordinal order, and names the engine uses for temporary files never match.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

TEMPORARY_PREFIX = ".pz-"
"""Files and folders with this prefix are unfinished output."""


def resolve(root: Path, text: str) -> Path:
    """Resolve a path or pattern against a root; an absolute one ignores it."""
    return Path(os.path.normpath(root / text))


def leaves_root(root: Path, text: str) -> bool:
    """Tell whether a relative path climbs out of its root.

    >>> leaves_root(Path("/data"), "a/../../b"), leaves_root(Path("/data"), "a/../b"), leaves_root(Path("/data"), "/b")
    (True, False, False)
    """
    if Path(text).is_absolute():
        return False
    return not resolve(root, text).is_relative_to(os.path.normpath(root))


def is_pattern(text: str) -> bool:
    """Tell whether a path has wildcards."""
    return "*" in text or "?" in text


def matching_files(pattern: Path) -> tuple[Path, ...]:
    """Return the files a path or pattern stands for, in ordinal order."""
    text = str(pattern)
    if not is_pattern(text):
        return (pattern,) if pattern.is_file() else ()
    found = glob.glob(text.replace("[", "[[]"), recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
    paths = (Path(name) for name in sorted(found))
    return tuple(path for path in paths if path.is_file() and not _is_temporary(path))


def folder_keys(files: Sequence[Path], pattern: Path) -> tuple[str, ...] | None:
    """Return the keys of `key=value` folders, in path order; None when the files do not agree.

    Folders above the first wildcard count only when the pattern itself spells them so.
    """
    keys = {tuple(part.partition("=")[0] for part in path.parts[:-1] if "=" in part) for path in files}
    if not keys:
        return tuple(part.partition("=")[0] for part in pattern.parts[:-1] if "=" in part)
    return keys.pop() if len(keys) == 1 else None


def _is_temporary(path: Path) -> bool:
    return any(part.startswith(TEMPORARY_PREFIX) for part in path.parts)
