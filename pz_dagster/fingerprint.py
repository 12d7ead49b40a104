"""What a project compiles to, told from its files without compiling them.

The fingerprint covers every file that compile reads and nothing else; a file whose size and time are unchanged is not
read again in the same process.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pz_engine import __version__

_SETTLED_NS = 2_000_000_000
"""A file changed more recently than this may change again within one tick of its clock, so its hash is not kept."""

_hashes: dict[str, tuple[int, int, bytes]] = {}
"""Size, time and content hash by path."""


def fingerprint(project_dir: Path, variables: Mapping[str, Any], schema_version: int) -> str:
    """Hash the inputs of compile: project files, lock file, variables and versions; the environment is not one."""
    digest = hashlib.sha256()
    for name, path in sorted(_inputs(project_dir)):
        content = _content_hash(path)
        if content is not None:
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + content)
    digest.update(json.dumps([dict(variables), __version__, schema_version], sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _inputs(project_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield the project-relative name and the path of every input."""
    root = os.fspath(project_dir)
    for name in ("project.yml", "connections.yml", "pz.lock.json"):
        yield name, os.path.join(root, name)  # noqa: PTH118 - strings keep thousands of files cheap
    yield from _walk(os.path.join(root, "pipelines"), "pipelines")  # noqa: PTH118


def _walk(folder: str, name: str) -> Iterator[tuple[str, str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    suffix = ".yml" if name == "pipelines/configs" else ".sql"
    for entry in entries:
        inner = f"{name}/{entry.name}"
        if entry.name.endswith(suffix):
            yield inner, entry.path
        elif entry.is_dir() and name != "pipelines/configs":
            yield from _walk(entry.path, inner)


def _content_hash(path: str) -> bytes | None:
    try:
        found = os.stat(path)  # noqa: PTH116
        known = _hashes.get(path)
        if known is not None and known[:2] == (found.st_size, found.st_mtime_ns):
            return known[2]
        with open(path, "rb") as file:  # noqa: PTH123
            content = hashlib.sha256(file.read()).digest()
    except OSError:
        return None
    if time.time_ns() - found.st_mtime_ns > _SETTLED_NS:
        _hashes[path] = (found.st_size, found.st_mtime_ns, content)
    else:
        _hashes.pop(path, None)
    return content
