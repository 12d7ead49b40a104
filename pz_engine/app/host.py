"""The interface that hosts use: what the command line, Dagster and tests have in common.

`run_project` lives in `app/run.py` and `compile_project` in `app/compile.py`; this module holds their values.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.clock import Clock, SystemClock
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.events.types import RunEvent
from pz_engine.model.run import NodeResult, RunStatus
from pz_engine.state.store import KeyedStore, ScopedStore

LATEST = "latest"
"""In place of a run id: the newest run that left results."""


class Selection(Struct, frozen=True):
    """What a run was asked for; at most one of the fields is set, none means a bare call."""

    names: tuple[str, ...] = ()
    """Exact node names; each stands for itself, its ancestors and its descendants."""

    expression: str | None = None
    """A `--select` expression."""

    everything: bool = False
    node_ids: frozenset[str] | None = None
    """Exactly these nodes; hosts select this way."""

    node_names: frozenset[str] | None = None
    """Exactly these nodes, by name; for hosts whose definitions may be older than the files."""


class EngineOverrides(Struct, frozen=True):
    """Engine settings in place of the project's."""

    threads: int | None = None
    memory_limit: str | None = None
    duckdb_threads: int | None = None


@dataclass(frozen=True)
class RunRequest:
    """One run."""

    project_dir: Path
    vars: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Laid over the process environment for `${NAME}` and `env()` of this run only."""

    state_dir: Path | None = None
    """What stands in for the project's `.pz`, relative to the project; `PZ_STATE_DIR` says it otherwise."""

    mode: Literal["run", "test"] = "run"
    selection: Selection = field(default_factory=Selection)
    fail_fast: bool = False
    full_refresh: bool = False
    check_lock: bool = True
    state_url: str | None = field(default=None, repr=False)
    """Endpoint for the state of this run; stronger than the environment, refused when the project pins a backend."""

    overrides: EngineOverrides = field(default_factory=EngineOverrides)
    gate_checks: bool = False
    """A failed check skips every consumer of its pipeline."""

    ungated_checks: frozenset[str] = frozenset()
    """Names of checks that never skip anything, whatever `gate_checks` says; for hosts that only warn about them."""

    windows: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Slices to read in place of what state and declaration say: lower end, exclusive, and upper end, inclusive, as texts
    of the cursor's type, by `<connection>.<entity>`. Rows without a cursor value belong to no slice."""

    window_cuts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ascending inclusive ends of the parts of a slice, the last one its upper end; `NodeStats.part_rows` counts them."""

    state_mode: Literal["use", "bypass"] = "use"
    """With `bypass` the stored positions of the entities in `windows` are neither read nor advanced. With `use` the end
    of a slice is stored only where the slice joins the stored position, because anything else would skip rows."""

    retry_from: str | None = None
    """Continue this run, or `LATEST`: what it has proven is taken from it. Without a selection its failed and skipped
    nodes run again, with one exactly the selected nodes."""

    wrap_state_store: Callable[[ScopedStore[Any]], KeyedStore[Any]] | None = None
    """Applied to each scope's store when it is built."""

    host: Mapping[str, Any] | None = None
    """Written as `host.json` in the run directory and never read by the engine; no secrets."""

    on_run_id: Callable[[str], None] | None = None
    """Called with the run id before anything after it can fail."""

    event_sink: Callable[[RunEvent], None] | None = None
    """Receives every event, in order, on the bus's thread."""

    note_sink: Callable[[str], None] | None = None
    alert_sink: Callable[[str], None] | None = None
    """Receives what must be seen even where notes are silenced; by default it goes to `note_sink`."""

    on_finished: Callable[[RunOutcome], None] | None = None
    """Called once every node has ended and its events were delivered, before state advances; must not raise. Whoever
    hears of the end here hears of it even when the state store then hangs."""

    warning_sink: Callable[[Diagnostic], None] | None = None
    """Receives compile warnings before the run starts."""

    cancel: CancelToken = field(default_factory=CancelToken)
    install_signal_handlers: bool = False
    clock: Clock = field(default_factory=SystemClock)
    random: random.Random = field(default_factory=random.Random)


class RunOutcome(Struct, frozen=True):
    """A finished run; returned after state has advanced and every handle is closed."""

    run_id: str
    status: RunStatus
    exit_code: int
    results: tuple[NodeResult, ...]
    """Completion order; statistics are in `NodeResult.stats`."""

    notes: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    problem: Diagnostic | None = None
    """Why the run ended fatally, when it did."""

    results_path: str | None = None
    """Project-relative path of `run_results.json`; None when it could not be written."""

    journal_path: str | None = None
    """Project-relative path of the journal; None when there is none."""

    watermarks_held: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Keys whose candidate was not stored, with the reason."""

    is_stalled: bool = False
    """There are windows left to read and none of their watermarks moved: the same run again would read the same."""


class RunRecord(Struct, frozen=True):
    """A past run, as `list_runs` gives it."""

    run_id: str
    status: RunStatus
    host: Mapping[str, Any] | None = None
    results: tuple[NodeResult, ...] = ()
    """As far as the run got."""

    continues: str | None = None
    """The run it went on from (`retry_from`), whether or not there was anything to take from it."""


def overlay_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Snapshot the process environment with `env` laid over it."""
    return {**os.environ, **env}
