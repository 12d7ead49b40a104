"""What happened in a run, from its journal, else from its results; needs nothing of the project but `state:`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from pz_engine.app.state_owner import open_state
from pz_engine.base.state_folder import shown_in_state
from pz_engine.config.state_only import load_state_settings
from pz_engine.errors.exceptions import PzStateError
from pz_engine.events.journal_reader import JournalEnds, JournalReader, read_ends
from pz_engine.events.journal_tail import JournalTail
from pz_engine.events.run_journal import SUFFIX, is_legal_run_id
from pz_engine.events.run_stats import RunSummary, fold, rebuild
from pz_engine.state.run_history import LOCK_FILE, RUNS_DIRECTORY, is_live, newest_first
from pz_engine.state.run_results import FILE_NAME, read_results

JOURNAL_DIRECTORY: Final = "journal"


class RunHistory(Struct, frozen=True):
    """One run's summary and how good its source is."""

    summary: RunSummary
    unreadable: int = 0
    """Journal lines that could not be used."""

    journal_problem: str | None = None
    """Why the journal is of no use, as `is gone`; then this is rebuilt from the results: no start times, no attempts."""


def list_journals(project_dir: Path, *, env: Mapping[str, str] | None = None) -> tuple[JournalEnds, ...]:
    """Return what the first and last lines of each journal say, newest run first.

    Raises:
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
    """
    load_state_settings(project_dir, env=os.environ if env is None else env)
    directory = open_state(project_dir, env=env) / JOURNAL_DIRECTORY
    try:
        names = [path.stem for path in directory.iterdir() if path.suffix == SUFFIX and _is_plain_file(path)]
    except OSError:
        return ()
    return tuple(read_ends(directory / f"{name}{SUFFIX}") for name in newest_first(names))


def show_run(project_dir: Path, run_id: str, *, env: Mapping[str, str] | None = None) -> RunHistory:
    """Return one run's summary.

    Raises:
        PzStateError: `PZ0502`, the run left neither a journal nor results, or none that can be read.
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
    """
    load_state_settings(project_dir, env=os.environ if env is None else env)
    state_dir = open_state(project_dir, env=env)
    path = _journal_path(state_dir, run_id)
    found = _read_journal(path) if path is not None else "is gone"
    if isinstance(found, RunHistory):
        return found
    results = read_results(state_dir / RUNS_DIRECTORY / run_id / FILE_NAME) if is_legal_run_id(run_id) else None
    if results is not None:
        return RunHistory(rebuild(run_id, results.status, results.results), journal_problem=found)
    if path is None:
        raise _no_such_run(run_id)
    raise PzStateError(
        "PZ0502",
        f"the journal of run '{run_id}' {found}, and the run left no results",
        hint=f"delete {shown_in_state(path, state_dir)} if nobody needs it, or use the pz that wrote it",
    )


def follow_run(
    project_dir: Path, run_id: str, *, stop: Callable[[float], bool], env: Mapping[str, str] | None = None
) -> JournalTail:
    """Follow a run's journal from the start until the run ends.

    Args:
        project_dir: the project's directory.
        run_id: the run.
        stop: sleeps for the given seconds; True ends the following.
        env: in place of the process environment.

    Raises:
        PzStateError: `PZ0502`, the run has no journal.
        PzValidationError: there is no `project.yml`, or its `state:` is wrong.
    """
    load_state_settings(project_dir, env=os.environ if env is None else env)
    state_dir = open_state(project_dir, env=env)
    path = _journal_path(state_dir, run_id)
    if path is None:
        raise _no_such_run(run_id)
    directory = state_dir / RUNS_DIRECTORY / run_id
    return JournalTail(path, stop=stop, is_running=lambda: _is_running(directory))


def _read_journal(path: Path) -> RunHistory | str:
    """Return a journal's summary, or in words what is wrong with it."""
    reader = JournalReader(path)
    try:
        summary = fold(reader.records())
        is_empty = path.stat().st_size == 0
    except OSError as error:
        return f"cannot be read ({error.strerror or type(error).__name__})"
    if summary.run_id is not None:
        return RunHistory(summary, reader.unreadable)
    if reader.other_version is not None:
        return f"has version {reader.other_version}, which this pz does not read"
    return "is empty" if is_empty else "holds no line of the run that can be read"


def _is_running(directory: Path) -> bool | None:
    """Tell whether a process may be writing about the run: it holds the lock in the run's folder all the while."""
    try:
        directory.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    return is_live(directory) if (directory / LOCK_FILE).exists() else None


def _journal_path(state_dir: Path, run_id: str) -> Path | None:
    """Return a run's journal; a name that could lead elsewhere, a link or anything but a file is none."""
    if not is_legal_run_id(run_id):
        return None
    path = state_dir / JOURNAL_DIRECTORY / f"{run_id}{SUFFIX}"
    return path if _is_plain_file(path) else None


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _no_such_run(run_id: str) -> PzStateError:
    shown = run_id if is_legal_run_id(run_id) else "that name"
    return PzStateError("PZ0502", f"there is no run '{shown}' here", hint="see the runs with 'pz history' or 'pz runs'")
