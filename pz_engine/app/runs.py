"""Past runs of a project, newest first; needs nothing of it but `state:`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from pz_engine.app.host import RunRecord
from pz_engine.app.state_owner import open_state
from pz_engine.config.state_only import load_state_settings
from pz_engine.errors.exceptions import PzConfigError
from pz_engine.model.run import NodeStatus, RunStatus
from pz_engine.state.run_history import stored_runs
from pz_engine.state.run_results import RunResults


class RunRow(Struct, frozen=True):
    """One run as `pz runs` shows it; None stands for what is not known."""

    run_id: str
    status: RunStatus
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    """None while the run lives, for ever when it died, and when the clock went back meanwhile."""

    succeeded: int
    failed: int
    skipped: int
    reused: int
    carried_forward: int


def list_runs(
    project_dir: Path, *, state_dir: Path | None = None, host: Callable[[Mapping[str, Any]], bool] | None = None
) -> tuple[RunRecord, ...]:
    """Return every run that left results, newest first.

    Args:
        project_dir: the project's directory.
        state_dir: what stands in for the project's `.pz`; `PZ_STATE_DIR` says it otherwise.
        host: keeps the runs whose host's record it accepts; the others' results are not even read.
    """
    return tuple(
        RunRecord(run.run_id, run.results.status, run.host, run.results.results, run.results.continues)
        for run in stored_runs(open_state(project_dir, state_dir), host=host)
    )


def show_runs(
    project_dir: Path, *, limit: int | None = None, env: Mapping[str, str] | None = None
) -> tuple[RunRow, ...]:
    """Return the newest runs.

    Args:
        project_dir: the project's directory.
        limit: how many; None for all.
        env: in place of the process environment.

    Raises:
        PzConfigError: `PZ0534`, the limit is below 1.
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
    """
    if limit is not None and limit < 1:
        raise PzConfigError("PZ0534", f"--limit must be at least 1, not {limit}", hint="pz runs --limit 20")
    load_state_settings(project_dir, env=os.environ if env is None else env)
    return tuple(islice(_rows(open_state(project_dir, env=env)), limit))


def _rows(state_dir: Path) -> Iterator[RunRow]:
    for run in stored_runs(state_dir):
        yield _row(run.run_id, run.results)


def _row(run_id: str, results: RunResults) -> RunRow:
    finished = results.finished_at
    statuses = [result.status for result in results.results]
    provenance = [result.provenance for result in results.results]
    return RunRow(
        run_id,
        results.status,
        results.started_at,
        finished,
        _duration_ms(results.started_at, finished),
        statuses.count(NodeStatus.SUCCESS),
        statuses.count(NodeStatus.FAILED),
        statuses.count(NodeStatus.SKIPPED),
        provenance.count("reused"),
        provenance.count("carried_forward"),
    )


def _duration_ms(started: datetime, finished: datetime | None) -> int | None:
    if finished is None or finished < started:
        return None
    return int((finished - started).total_seconds() * 1000)
