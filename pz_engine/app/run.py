"""Run a project: load, compile, validate, plan, dispatch, finalize.

Nothing refused before data moves leaves a run directory. The terminal results are written last, after state has
advanced, so a process killed in between leaves `running`, which is honest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from pz_engine.app.host import RunOutcome, RunRequest, overlay_environment
from pz_engine.app.run_notes import RunNotes
from pz_engine.app.run_preparation import PreparedRun, prepare_run
from pz_engine.app.run_staging import open_staging
from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.base.fault_points import fault_point
from pz_engine.base.state_folder import locate_state, shown_in_state
from pz_engine.base.stop_signals import stop_signals
from pz_engine.compile.builder import RunIdentity
from pz_engine.compile.dag import SinkWriteNode, SourceLoadNode
from pz_engine.duck.instance import DuckInstance
from pz_engine.duck.session import DuckSession
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.events.bus import EventBus
from pz_engine.events.publisher import Publisher
from pz_engine.events.run_journal import RunJournal
from pz_engine.events.types import NodeReference, RetentionSwept, RunCompleted, RunEvent, RunStarted
from pz_engine.execute.context import RunContext
from pz_engine.execute.instances import Instances
from pz_engine.execute.node_runner import NodeRunner
from pz_engine.execute.orchestrator import DispatchOutcome, Orchestrator
from pz_engine.execute.prior_database import PriorDatabase
from pz_engine.execute.run_dir import RunDirectory, claim_run
from pz_engine.execute.setup_ledger import SetupLedger
from pz_engine.execute.staging_copy import TakenOver
from pz_engine.execute.units import build_units
from pz_engine.model.run import NodeResult, NodeStatus, ReadShape, RunStatus
from pz_engine.state.advancement import advance_state
from pz_engine.state.factory import open_state_stores
from pz_engine.state.retention import SweepRule, sweep
from pz_engine.state.run_history import RUNS_DIRECTORY, mint_run_id, run_directories
from pz_engine.state.run_history import started_at as start_of
from pz_engine.state.run_results import RunResultsFile
from pz_engine.state.store import StateStores, SyncTokenEntry, WatermarkEntry

_DRAIN_SECONDS = 5.0
_EXIT_CODES = {RunStatus.SUCCESS: 0, RunStatus.COMPLETED_WITH_FAILURES: 1, RunStatus.FATAL: 3}


def run_project(request: RunRequest) -> RunOutcome:
    """Run a project to its end and return what happened, after state has advanced.

    Raises:
        PzValidationError: the project, the selection or the plan was refused; no run directory exists.
        PzStateError: the state store is not usable; no node started.
        OSError: the run directory cannot be written.
        PzInternalError: the staging database cannot be opened.
    """
    started_at = request.clock.now().astimezone(timezone.utc)
    run_id = _free_run_id(request, started_at)
    if request.on_run_id is not None:
        request.on_run_id(run_id)
    with stop_signals(request.cancel, install=request.install_signal_handlers), DuckInstance() as instance:
        prepared = prepare_run(request, RunIdentity(run_id, started_at), instance)
        if request.warning_sink is not None:
            for warning in prepared.warnings:
                request.warning_sink(warning)
        notes = RunNotes(request, prepared.compiled.hidden)
        if prepared.project.state.origin != "default":
            notes(f"state backend: {prepared.project.state.backend} (from {prepared.project.state.origin})")
        for text in prepared.notes:
            notes(text)
        if prepared.nothing_to_retry:
            return RunOutcome(run_id, RunStatus.SUCCESS, 0, (), tuple(notes.texts), prepared.warnings)
        if request.mode == "run" and not prepared.effective:
            notes("the selection is empty, so there is nothing to run")
        if request.mode == "test" and not prepared.effective:
            return RunOutcome(run_id, RunStatus.SUCCESS, 0, (), tuple(notes.texts), prepared.warnings)
        return _Run(request, prepared, run_id, started_at, notes, instance).execute()


def _free_run_id(request: RunRequest, started_at: datetime) -> str:
    """Make an id that no run of the project has; two runs may start in the same millisecond."""
    state_dir = locate_state(request.project_dir, request.state_dir, overlay_environment(request.env))
    while True:
        run_id = mint_run_id(started_at, request.random)
        if not (state_dir / RUNS_DIRECTORY / run_id).exists():
            return run_id


class _Observed(Struct, frozen=True):
    """State as the run saw it before dispatch, by key."""

    watermarks: dict[str, WatermarkEntry] = field(default_factory=dict)
    tokens: dict[str, SyncTokenEntry] = field(default_factory=dict)


class _Run:
    """One started run."""

    def __init__(
        self,
        request: RunRequest,
        prepared: PreparedRun,
        run_id: str,
        started_at: datetime,
        notes: RunNotes,
        instance: DuckInstance,
    ) -> None:
        self._request = request
        self._instance = instance
        self._prepared = prepared
        self._run_id = run_id
        self._started_at = started_at
        self._note = notes
        self._state_dir = prepared.compiled.state_dir
        self._directory = RunDirectory(self._state_dir, run_id)
        self._closing = contextlib.ExitStack()

    def execute(self) -> RunOutcome:
        with self._closing:
            if self._prepared.resume is not None and not self._prepared.resume.is_shared:
                self._closing.callback(claim_run(self._prepared.resume.database.parent))
            return self._execute()

    def _execute(self) -> RunOutcome:
        newest = next(iter(run_directories(self._state_dir)), None)
        start = start_of(newest.name) if newest is not None else None
        # Compared with now: a run that started while this one prepared is newer than this one's id, but never than now.
        is_behind = start is not None and start > self._request.clock.now()
        self._directory.create(self._request.host)
        if newest is not None and is_behind:
            self._note(
                f"the clock is behind run {newest.name}, which stays the latest one for 'pz retry' until it is passed"
            )
        try:
            with self._open_state() as stores:
                observed = _Observed()
                with contextlib.suppress(Cancelled):  # then nothing is dispatched and nothing stored
                    self._observe(stores, observed)
                session, taken_over = open_staging(self._prepared, self._directory, self._instance, self._note)
                with session:
                    fault_point("after_staging_opened")
                    outcome = self._dispatch(session, stores, observed, taken_over)
                stores.settle()
                return self._finish(stores, outcome, observed)
        finally:
            self._directory.release()

    def _open_state(self) -> AbstractContextManager[StateStores]:
        return open_state_stores(
            self._prepared.project.state,
            self._state_dir,
            note=self._note,
            wrap=self._request.wrap_state_store,
            cancel=self._request.cancel,
        )

    def _observe(self, stores: StateStores, found: _Observed) -> None:
        """Read the entry of every entity of the run that resumes, so that its version is known when it is stored."""
        for node in self._prepared.compiled.nodes:
            if not isinstance(node, SourceLoadNode) or node.id not in self._prepared.effective:
                continue
            if self._prepared.windows.bypasses(node.key):
                continue
            if node.incremental is not None and (entry := stores.watermarks.get(node.key)) is not None:
                found.watermarks[node.key] = entry
            shape = self._prepared.plan.by_id[node.id].read_shape
            if shape in (ReadShape.FEED, ReadShape.CDC) and (token := stores.sync_tokens.get(node.key)) is not None:
                found.tokens[node.key] = token

    def _dispatch(
        self, session: DuckSession, stores: StateStores, observed: _Observed, taken_over: TakenOver | None
    ) -> _Dispatched:
        request, prepared, resume = self._request, self._prepared, self._prepared.resume
        self._journal_path = self._state_dir / "journal" / f"{self._run_id}.jsonl"
        journal = RunJournal(self._journal_path.parent, self._run_id, on_warning=self._note.alert)
        consumers: list[Callable[[RunEvent], None]] = [journal]
        if request.event_sink is not None:
            consumers.append(request.event_sink)
        bus = EventBus(consumers, self._note)
        self._closing.callback(journal.close)
        self._closing.callback(bus.close, _DRAIN_SECONDS)
        publisher = Publisher(bus, request.clock, self._run_id)
        results_file = RunResultsFile(
            self._directory.results, self._run_id, self._started_at, prepared.continues, on_warning=self._note.alert
        )
        by_id = prepared.compiled.graph.by_id
        context = RunContext(
            run_id=self._run_id,
            started_at=self._started_at,
            compiled=prepared.compiled,
            plan=prepared.plan,
            engine=prepared.project.engine,
            session=session,
            publisher=publisher,
            note=self._note,
            clock=request.clock,
            setup=SetupLedger(allow_extension_download=prepared.project.engine.duckdb.allow_extension_download),
            instances=Instances(prepared.compiled, request.clock, publisher),
            schemas=stores.schemas,
            jitter=request.random.random,
            full_refresh=request.full_refresh,
            stored_watermarks=observed.watermarks,
            windows=prepared.windows,
            stored_tokens=observed.tokens,
            resume=resume,
            prior=PriorDatabase(resume.database, resume.run_id, self._note)
            if resume is not None and taken_over is not None
            else None,
            taken_over=taken_over or TakenOver(),
            written_connections=frozenset(
                node.connection for node_id in prepared.effective if isinstance(node := by_id[node_id], SinkWriteNode)
            ),
        )
        begun = request.clock.monotonic()
        publisher.emit(
            RunStarted,
            project_name=prepared.project.name,
            node_count=len(prepared.effective),
            mode="retry" if resume is not None else request.mode,
            nodes=tuple(
                NodeReference(node.id, node.kind, node.name)
                for node in prepared.compiled.nodes
                if node.id in prepared.effective
            ),
        )
        results_file.write(RunStatus.RUNNING, ())

        def record(results: Sequence[NodeResult]) -> None:
            results_file.write(RunStatus.RUNNING, results)
            fault_point("after_node_results")

        units = build_units(
            prepared.compiled.graph,
            prepared.plan,
            prepared.effective,
            gate_checks=request.gate_checks,
            ungated=request.ungated_checks,
        )
        outcome = Orchestrator(
            context,
            NodeRunner(context),
            units,
            cancel=request.cancel,
            fail_fast=request.fail_fast,
            carried=resume.carried if resume is not None else (),
            on_results=record,
        ).run()
        if request.cancel.is_set() and all(result.stats.attempts is None for result in outcome.results):
            self._note("the run was cancelled before any node started")
        publisher.emit(
            RunCompleted,
            status=outcome.status,
            **_counts(outcome.results),
            duration_ms=int((request.clock.monotonic() - begun) * 1000),
        )
        return _Dispatched(outcome, results_file, bus, publisher)

    def _finish(self, stores: StateStores, dispatched: _Dispatched, observed: _Observed) -> RunOutcome:
        outcome, results_file = dispatched.outcome, dispatched.results_file
        results_file.write(RunStatus.RUNNING, outcome.results)
        self._sweep(dispatched.publisher)
        if not dispatched.bus.close(_DRAIN_SECONDS):
            self._note.alert("an event consumer did not drain within 5 seconds; its remaining events were dropped")
        finished = self._outcome(outcome)
        if self._request.on_finished is not None:
            self._request.on_finished(finished)
        fault_point("before_state_write")
        held = advance_state(
            self._prepared.compiled.graph,
            outcome.results,
            stores,
            run_id=self._run_id,
            full_refresh=self._request.full_refresh,
            note=self._note,
            observed=observed.watermarks,
            says_held=self._request.mode == "run",
        )
        fault_point("before_terminal_results")
        results_file.write(outcome.status, outcome.results, finished_at=self._request.clock.now())
        return replace(
            finished,
            notes=tuple(self._note.texts),
            watermarks_held=held,
            is_stalled=self._is_stalled(outcome.results, held),
        )

    def _is_stalled(self, results: Sequence[NodeResult], held: Mapping[str, str]) -> bool:
        """Tell whether windows are left to read and every one of their watermarks stayed."""
        behind = [result.id for result in results if result.caught_up is False]
        by_id = self._prepared.compiled.graph.by_id
        loads = [node for node_id in behind if isinstance(node := by_id.get(node_id), SourceLoadNode)]
        return bool(loads) and all(node.key in held for node in loads)

    def _outcome(self, outcome: DispatchOutcome) -> RunOutcome:
        return RunOutcome(
            run_id=self._run_id,
            status=outcome.status,
            exit_code=_EXIT_CODES[outcome.status],
            results=outcome.results,
            notes=tuple(self._note.texts),
            warnings=self._prepared.warnings,
            problem=_fatal_problem(outcome.status, self._request.cancel),
            results_path=self._existing(self._directory.results),
            journal_path=self._existing(self._journal_path),
        )

    def _sweep(self, publisher: Publisher) -> None:
        keep = self._prepared.project.retention_keep_last
        if keep is None:
            return
        report = sweep(self._state_dir, SweepRule(keep_last=keep))
        for failure in report.failures:
            self._note(failure)
        if report.did_anything:
            publisher.emit(
                RetentionSwept,
                runs_swept=len(report.swept),
                bytes_freed=report.bytes_freed,
                failures=len(report.failures),
            )

    def _existing(self, path: Path) -> str | None:
        return self._relative(path) if path.exists() else None

    def _relative(self, path: Path) -> str:
        return shown_in_state(path, self._state_dir)


class _Dispatched(Struct, frozen=True):
    """What dispatch leaves for finalization."""

    outcome: DispatchOutcome
    results_file: RunResultsFile
    bus: EventBus
    publisher: Publisher


def _counts(results: Sequence[NodeResult]) -> dict[str, int]:
    return {
        "succeeded": sum(result.status is NodeStatus.SUCCESS for result in results),
        "failed": sum(result.status is NodeStatus.FAILED for result in results),
        "skipped": sum(result.status is NodeStatus.SKIPPED for result in results),
    }


def _fatal_problem(status: RunStatus, cancel: CancelToken) -> Diagnostic | None:
    if status is not RunStatus.FATAL or not cancel.is_set():
        return None
    return Diagnostic("PZ0500", "the run was cancelled")
