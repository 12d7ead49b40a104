"""One engine run inside an op.

The engine runs in one thread and publishes into a queue; every Dagster call happens on the op's own thread. Whatever
ends the generator, the engine is cancelled, joined and left without an open handle.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import dagster as dg

from pz_dagster.bindings import BINDING_TAG, find
from pz_dagster.compute_log import ComputeLog
from pz_dagster.discretion import Discretion
from pz_dagster.errors import PzDagsterError
from pz_dagster.event_budget import EventBudget
from pz_dagster.event_mapping import DagsterResult, EventMapper
from pz_dagster.failures import (
    broken_project_error,
    refused_run_error,
    run_error,
    stale_definitions_error,
    unreported_checks_error,
)
from pz_dagster.ordering import ResultBuffer
from pz_dagster.run_config import PzRunConfig
from pz_dagster.selection import read_selection
from pz_engine import (
    CancelToken,
    CheckNode,
    EngineOverrides,
    NodeProgress,
    RunEvent,
    RunOutcome,
    RunRequest,
    Selection,
)

if TYPE_CHECKING:
    from pz_dagster.resource import PzResource

_JOIN_SECONDS = 20.0
_POLL_SECONDS = 0.1
_WARNING_NOTES = ("PZ0520", "PZ0527")
"""Codes of notes that say a state was not advanced."""


class PzInvocation:
    """A running engine; iterate `stream()` or `stream_events()` once, to the end."""

    def __init__(self, *, resource: PzResource, context: dg.AssetExecutionContext, config: PzRunConfig) -> None:
        self._resource = resource
        self._context = context
        self._config = config
        self._binding = find(context.op_execution_context.op_def.tags[BINDING_TAG])
        self._snapshot = self._binding.snapshot
        self._selection = read_selection(context, self._snapshot)
        self._is_gate = _is_gate(config.checks or self._binding.checks)
        self._discretion = Discretion.of(
            self._snapshot,
            self._binding.project.root,
            is_full=resource.shows_full_errors,
            shows_samples=self._binding.translator.settings.expose_check_samples,
        )
        self._compute_log = ComputeLog(self._discretion)
        self._cancel = CancelToken()
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._progress: dict[str, NodeProgress] = {}
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.run_id: str | None = None
        """Id of the pz run, known as soon as the engine has one."""

        self.outcome: RunOutcome | None = None
        """How the run ended; None until `stream` has."""

    def cancel(self) -> None:
        """Ask the engine to stop."""
        self._cancel.set()

    def stream_events(self) -> Iterator[dict[str, Any]]:
        """Run the engine and yield each event as its JSON object, without any Dagster result.

        Raises:
            PzDagsterError: the run was refused; failing nodes are among the events.
        """
        self._refuse()
        with closing(self._drive()) as items:
            for item in items:
                if isinstance(item, RunEvent):
                    yield self._discretion.event(item).to_json()
        self._raise_engine_error()

    def stream(self) -> Iterator[DagsterResult]:
        """Run the engine and yield Dagster results as nodes finish.

        Raises:
            PzDagsterError: a node failed, the run was refused, or a selected check was not reported.
        """
        self._refuse()
        mapper = self._mapper()
        buffer = ResultBuffer(self._snapshot.compiled.graph, self._selection)
        with closing(self._drive()) as items:
            for item in items:
                if isinstance(item, str):
                    level = "warning" if any(code in item for code in _WARNING_NOTES) else "info"
                    mapper.budget.write(level, f"note: {item}")
                    continue
                for name, result in mapper.map(item):
                    yield from buffer.add(name, result)
                yield from buffer.settle(mapper.completed)
        yield from buffer.flush()
        self._raise_engine_error()
        self._finish(mapper)

    def _refuse(self) -> None:
        """Fail before data moves when the loaded definitions cannot be run."""
        problems = self._snapshot.compiled.problems
        if problems:
            raise broken_project_error(self._snapshot.project_name, problems)
        if self._selection.unknown:
            raise stale_definitions_error(self._selection.unknown)

    def _mapper(self) -> EventMapper:
        return EventMapper(
            self._snapshot,
            self._selection,
            self._binding.translator.settings,
            self._severity,
            self._discretion,
            EventBudget(self._context.log),
            progress_seconds=float(self._resource.log_progress_seconds),
        )

    def _severity(self, node: CheckNode, is_blocking: bool) -> dg.AssetCheckSeverity:
        """Warn only where Dagster would fail the step although this launch merely observes."""
        if is_blocking and not self._is_gate:
            return dg.AssetCheckSeverity.WARN
        return self._binding.translator.get_check_severity(node, self._snapshot)

    def _gating_checks(self) -> frozenset[str]:
        if not self._is_gate:
            return frozenset()
        return frozenset(self._selection.checks) - self._ungated_checks()

    def _ungated_checks(self) -> frozenset[str]:
        """Checks that only warn never skip anything."""
        translator = self._binding.translator
        return frozenset(
            node.name
            for node in self._snapshot.compiled.nodes
            if isinstance(node, CheckNode)
            and translator.get_check_severity(node, self._snapshot) is not dg.AssetCheckSeverity.ERROR
        )

    def _drive(self) -> Generator[RunEvent | str, None, None]:
        """Run the engine in a thread and yield events and notes until its call returns."""
        self._thread = threading.Thread(target=self._run_engine, name="pz-engine", daemon=True)
        self._thread.start()
        try:
            while True:
                try:
                    item = self._queue.get(timeout=_POLL_SECONDS)
                except queue.Empty:
                    if not self._thread.is_alive() and self._queue.empty():
                        return
                    continue
                if item is None:
                    return
                if isinstance(item, _ProgressMark):
                    item = self._progress.pop(item.node_id, None)
                    if item is None:
                        continue
                yield item
        finally:
            if self._thread.is_alive():
                if self.outcome is None and self._error is None:
                    self._cancel.set()
                self._thread.join(_JOIN_SECONDS)

    def _run_engine(self) -> None:
        try:
            from pz_engine import run_project

            self.outcome = run_project(self._request())
        except BaseException as error:
            self._error = error
        finally:
            self._queue.put(None)

    def _receive(self, event: RunEvent) -> None:
        """Take an event on the engine's side; progress overwrites a slot instead of queueing."""
        self._compute_log.event(event)
        if isinstance(event, NodeProgress):
            is_new = event.node_id not in self._progress
            self._progress[event.node_id] = event
            if is_new:
                self._queue.put(_ProgressMark(event.node_id))
            return
        self._queue.put(event)

    def _request(self) -> RunRequest:
        project, config, resource = self._binding.project, self._config, self._resource
        return RunRequest(
            project_dir=project.root,
            vars={**project.vars, **config.vars},
            env=dict(resource.env),
            selection=Selection(node_names=self._selection.names),
            fail_fast=config.fail_fast,
            full_refresh=config.full_refresh,
            overrides=EngineOverrides(resource.threads, resource.memory_limit, resource.duckdb_threads),
            gate_checks=self._is_gate,
            ungated_checks=self._ungated_checks(),
            host=self._host_record(),
            on_run_id=self._take_run_id,
            event_sink=self._receive,
            note_sink=self._take_note,
            cancel=self._cancel,
        )

    def _take_run_id(self, run_id: str) -> None:
        self.run_id = run_id

    def _host_record(self) -> dict[str, Any]:
        context = self._context.op_execution_context
        return {
            "host": "dagster",
            "run_id": context.run_id,
            "root_run_id": context.run.root_run_id,
            "parent_run_id": context.run.parent_run_id,
            "step": context.op.name,
            "attempt": context.retry_number,
            "fingerprint": self._snapshot.fingerprint,
            "selection": sorted(self._selection.names),
        }

    def _take_note(self, text: str) -> None:
        shown = self._discretion.relative(text)
        self._compute_log.note(shown)
        self._queue.put(shown)

    def _raise_engine_error(self) -> None:
        if self._error is not None:
            raise refused_run_error(self._error, self._discretion) from None
        if self.outcome is None:
            raise PzDagsterError("PZ0500: the engine ended without an outcome; please report it")

    def _finish(self, mapper: EventMapper) -> None:
        outcome = self.outcome
        if outcome is None:
            return
        log = self._context.log
        mapper.budget.close()
        if mapper.unselected:
            log.info(f"{mapper.unselected} unselected ancestor(s) ran and are not reported as materialized")
        for key, reason in outcome.watermarks_held.items():
            log.info(f"the watermark of {key} was not advanced: {self._discretion.relative(reason)}")
        if self._binding.project.fingerprint != self._snapshot.fingerprint:
            changed = f"; changed: {', '.join(sorted(mapper.changed))}" if mapper.changed else ""
            log.info(f"the project's files are newer than the loaded definitions{changed}")
        error = run_error(outcome, mapper, self._discretion, gating=self._gating_checks())
        if error is not None:
            raise error
        missing = sorted(name for name in self._selection.checks if name not in mapper.completed)
        if missing:
            raise unreported_checks_error(missing)


class _ProgressMark:
    """Stands in the queue for the newest progress of one node."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id


def _is_gate(checks: str) -> bool:
    if checks not in ("gate", "observe"):
        raise PzDagsterError("the config key 'checks' is neither 'gate' nor 'observe'; correct it and launch again")
    return checks == "gate"
