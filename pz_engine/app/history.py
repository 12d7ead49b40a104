"""Past runs of a project, newest first."""

from __future__ import annotations

from pathlib import Path

from pz_engine.app.host import RunRecord
from pz_engine.state import run_history


def list_runs(project_dir: Path) -> tuple[RunRecord, ...]:
    """Return every run that left results, with its host's record if there is one."""
    return tuple(
        RunRecord(record.run_id, record.results.status, record.host)
        for record in run_history.list_runs(project_dir.absolute())
    )
