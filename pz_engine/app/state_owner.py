"""Whose runs a folder outside the project holds: one project's, or rows would be left out for the positions of another.

A folder that was moved away says so in a file of its own; `.pz` inside a project needs none.
"""

from __future__ import annotations

import json
from typing import Final

from pz_engine.base.atomic_files import write_atomically
from pz_engine.base.stable_json import pretty_json
from pz_engine.base.state_folder import STATE_DIR_VARIABLE, STATE_FOLDER
from pz_engine.compile.dag import CompiledProject
from pz_engine.errors.exceptions import PzStateError

OWNER_FILE: Final = "project.json"


def refuse_other_owner(compiled: CompiledProject) -> None:
    """Refuse a folder that another project uses.

    Raises:
        PzStateError: `PZ0518`.
    """
    path = compiled.state_dir / OWNER_FILE
    try:
        owner = json.loads(path.read_bytes())["name"]
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError):
        owner = None
    name = compiled.project.name if compiled.project is not None else None
    if owner != name:
        whose = (
            f"holds the runs and positions of project '{owner}'" if owner else f"has an {OWNER_FILE} that says nothing"
        )
        raise PzStateError(
            "PZ0518",
            f"the folder that stands in for {STATE_FOLDER} of project '{name}' {whose}",
            hint=f"give each project a folder of its own: {STATE_DIR_VARIABLE}=<folder> or PzProject(state_dir=...)",
        )


def mark_owner(compiled: CompiledProject) -> None:
    """Say whose a moved folder is, when its first run begins.

    Raises:
        OSError: it cannot be written.
    """
    path = compiled.state_dir / OWNER_FILE
    if compiled.project is None or compiled.state_dir == compiled.project_dir / STATE_FOLDER or path.exists():
        return
    write_atomically(path, pretty_json({"name": compiled.project.name}))
