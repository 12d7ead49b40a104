"""Frees what past runs left on disk; needs nothing of the project but `state:`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from pz_engine.app.state_owner import open_state
from pz_engine.base.clock import Clock, SystemClock
from pz_engine.base.durations import parse_duration
from pz_engine.config.state_only import load_state_settings
from pz_engine.errors.exceptions import PzConfigError
from pz_engine.state.retention import SweepReport, SweepRule, sweep

_LONGEST_COUNT: Final = 9
"""Digits of a number of runs."""


def clean_runs(
    project_dir: Path,
    *,
    keep_last: str | None = None,
    older_than: str | None = None,
    purge: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
    env: Mapping[str, str] | None = None,
) -> SweepReport:
    """Delete the staging databases, or whole directories, of past runs.

    Args:
        project_dir: the project's directory.
        keep_last: how many of the newest runs to leave alone, as typed; 1 when neither selector is given.
        older_than: a duration, as typed; the newest run stays whatever its age.
        purge: whole directories.
        dry_run: only tell what would be deleted.
        clock: now.
        env: in place of the process environment.

    Raises:
        PzConfigError: `PZ0511`, both selectors were given; `PZ0512`, one cannot be used.
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
    """
    if keep_last is not None and older_than is not None:
        raise PzConfigError("PZ0511", "--keep-last and --older-than exclude each other", hint="give one of them")
    rule = SweepRule(_count(keep_last), _instant(older_than, clock or SystemClock()), purge)
    load_state_settings(project_dir, env=os.environ if env is None else env)
    return sweep(open_state(project_dir, env=env), rule, dry_run=dry_run)


def _count(text: str | None) -> int:
    if text is None:
        return 1
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_COUNT):
        raise PzConfigError("PZ0512", "--keep-last must be a whole number of at least 0", hint="pz clean --keep-last 3")
    return int(text)


def _instant(text: str | None, clock: Clock) -> datetime | None:
    if text is None:
        return None
    age = parse_duration(text)
    if age is None or not age:
        raise PzConfigError(
            "PZ0512",
            "--older-than must be a duration above zero (units ms, s, m, h, d)",
            hint="pz clean --older-than 7d",
        )
    try:
        return clock.now() - age
    except OverflowError:
        raise PzConfigError(
            "PZ0512", "--older-than reaches back before any date", hint="pz clean --older-than 7d"
        ) from None
