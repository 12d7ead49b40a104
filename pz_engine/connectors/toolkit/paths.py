"""Local paths: resolving, globbing and `key=value` folders.

Matches come in ordinal order, and names the engine uses for temporary files never match.
"""

from __future__ import annotations

import glob
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pz_engine.base.state_folder import STATE_FOLDER

TEMPORARY_PREFIX = ".pz-"
"""Files and folders with this prefix are unfinished output."""

_ANY_FOLDERS = "**"


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


def engine_folders(config: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the engine's folders from a connection's configuration: the one in the project and the one in use."""
    base = Path(str(config.get("base_dir", "."))).absolute()
    return base / STATE_FOLDER, base / str(config.get("state_dir", STATE_FOLDER))


def is_engine_owned(path: Path, folders: Iterable[Path]) -> bool:
    """Tell whether a path lies in one of the engine's folders, links followed."""
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def is_pattern(text: str) -> bool:
    """Tell whether a path has wildcards."""
    return "*" in text or "?" in text


def matching_files(*patterns: Path) -> tuple[Path, ...]:
    """Return the files that paths and patterns stand for, in ordinal order.

    A file that links give several names comes once.
    """
    return _one_per_real_file(path for pattern in patterns for path in _matches(pattern))


def _matches(pattern: Path) -> Iterator[Path]:
    if not is_pattern(str(pattern)):
        found: Iterable[Path] = (pattern,)
    else:
        parts = pattern.parts[1:] if pattern.is_absolute() else pattern.parts
        found = (path for path in _expand(Path(pattern.anchor), parts) if not _is_temporary(path))
    yield from (path for path in found if path.is_file())


def _expand(base: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield what the parts of a pattern stand for below a folder."""
    if _ANY_FOLDERS not in parts:
        text = Path(glob.escape(str(base)), *(part.replace("[", "[[]") for part in parts))
        yield from map(Path, glob.glob(str(text)))  # noqa: PTH207 - Path.glob takes no absolute pattern
        return
    position = parts.index(_ANY_FOLDERS)
    tops = _expand(base, parts[:position]) if position else [base]
    for top in tops:
        for folder in _folders_below(top):
            yield from _expand(folder, parts[position + 1 :] or ["*"])


def _folders_below(top: Path) -> Iterator[Path]:
    """Yield a folder and all below it, each real folder once, so that a link to a parent ends."""
    seen: set[tuple[int, int]] = set()
    waiting = deque([top])
    while waiting:
        folder = waiting.popleft()
        try:
            status = folder.stat()
            names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        except OSError:
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        yield folder
        waiting.extend(folder / name for name in names if not name.startswith("."))


def _one_per_real_file(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Drop further names of a file; the one with the fewest folders stays, of those the first."""
    kept: dict[str, Path] = {}
    real_folder = cache(os.path.realpath)  # resolving every file anew takes longer than opening it
    for path in sorted(paths, key=lambda path: (len(path.parts), str(path))):
        folder, name = os.path.split(path)
        is_link = os.path.islink(path)  # noqa: PTH114 - paths by the thousand
        kept.setdefault(os.path.realpath(path) if is_link else os.path.join(real_folder(folder), name), path)  # noqa: PTH118
    return tuple(sorted(kept.values(), key=str))


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
