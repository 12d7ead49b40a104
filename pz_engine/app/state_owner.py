"""Whose runs a folder outside the project holds: one project's, or rows would be left out for the positions of another.

A folder that was moved away says so in a file of its own; `.pz` inside a project needs none. Whatever reads or changes
what is kept there opens the folder here first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.file_locks import FileLock, LockHeldError
from pz_engine.base.stable_json import pretty_json
from pz_engine.base.state_folder import STATE_DIR_VARIABLE, STATE_FOLDER, locate_state
from pz_engine.compile.dag import CompiledProject
from pz_engine.config.project_file import PROJECT_FILE, read_project_name
from pz_engine.errors.exceptions import PzStateError

OWNER_FILE: Final = "project.json"
_LOCK_SECONDS: Final = 30.0


def open_state(project_dir: Path, state_dir: Path | None = None, env: Mapping[str, str] | None = None) -> Path:
    """Return the folder for a project's runs and state, for those who read or change it without compiling.

    Args:
        project_dir: the project's directory.
        state_dir: where it was moved to.
        env: in place of the process environment.

    Raises:
        PzStateError: `PZ0518`, another project uses it.
    """
    found = locate_state(project_dir, state_dir, env)
    _require_own(project_dir, found)
    return found


def refuse_other_owner(compiled: CompiledProject) -> None:
    """Refuse a folder that another project uses.

    Raises:
        PzStateError: `PZ0518`.
    """
    _require_own(compiled.project_dir, compiled.state_dir)


def mark_owner(compiled: CompiledProject) -> None:
    """Say whose a moved folder is, before the first file is written there.

    Raises:
        PzStateError: `PZ0518`, another project has it.
        OSError: it cannot be written, or stays locked.
    """
    if _require_own(compiled.project_dir, compiled.state_dir) or compiled.project is None:
        return
    path = compiled.state_dir / OWNER_FILE
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), wait_seconds=_LOCK_SECONDS):
            if not _require_own(compiled.project_dir, compiled.state_dir):
                write_atomically(path, pretty_json({"name": compiled.project.name}))
    except LockHeldError:
        raise OSError(None, "it stayed locked by another process", f"{STATE_FOLDER}/{OWNER_FILE}") from None


def _require_own(project_dir: Path, state_dir: Path) -> bool:
    """Tell whether the folder is known as the project's; False when nobody has it yet."""
    own = project_dir.absolute() / STATE_FOLDER
    if state_dir.resolve() == own.resolve():
        return True
    name = read_project_name(project_dir)
    if state_dir.name == STATE_FOLDER and (state_dir.parent / PROJECT_FILE).exists():
        raise _refused(name, f"is that of project '{read_project_name(state_dir.parent)}'")
    try:
        owner = json.loads((state_dir / OWNER_FILE).read_bytes())["name"]
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError, KeyError, TypeError):
        owner = None
    if not isinstance(owner, str):
        raise _refused(name, f"has an {OWNER_FILE} that says nothing")
    if name is not None and owner != name:
        raise _refused(name, f"holds the runs and positions of project '{owner}'")
    return True


def _refused(name: str | None, why: str) -> PzStateError:
    return PzStateError(
        "PZ0518",
        f"the folder that stands in for {STATE_FOLDER} of project '{name}' {why}",
        hint=f"give each project a folder of its own: {STATE_DIR_VARIABLE}=<folder> or PzProject(state_dir=...); after a "
        f"rename delete {OWNER_FILE} in it",
    )
