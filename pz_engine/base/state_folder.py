"""The folder in which a project's runs, journals, state and artifacts live: `.pz` beside its files, unless it is moved.

Files of a project may be part of a read-only image while what its runs leave behind belongs on a volume.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

STATE_FOLDER: Final = ".pz"
"""Name of the folder in a project, and what messages call it wherever it is."""

STATE_DIR_VARIABLE: Final = "PZ_STATE_DIR"


def locate_state(project_dir: Path, state_dir: Path | None = None, env: Mapping[str, str] | None = None) -> Path:
    """Return the folder as an absolute path; nothing has to exist.

    Args:
        project_dir: the project's directory; a relative place is relative to it.
        state_dir: where it was moved to by whoever runs the project.
        env: where `PZ_STATE_DIR` is looked up when `state_dir` is not given; the process environment without it.

    >>> locate_state(Path("/shop"), env={}).as_posix(), locate_state(Path("/shop"), Path("../var")).as_posix()
    ('/shop/.pz', '/var')
    """
    moved = (os.environ if env is None else env).get(STATE_DIR_VARIABLE, "")
    place = state_dir if state_dir is not None else Path(moved.strip() or STATE_FOLDER)
    return Path(os.path.normpath(project_dir.absolute() / place))


def shown_in_state(path: Path, state_dir: Path) -> str:
    """Name a file below the folder as if it were in the project, so that no path of the machine shows."""
    return (STATE_FOLDER / path.relative_to(state_dir)).as_posix()
