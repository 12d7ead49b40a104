"""One engine run inside an op.

The engine runs in one thread and publishes into a queue; every Dagster call happens on the op's own thread. Whatever
ends the generator, the engine is cancelled, joined and left without an open handle.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import dagster as dg

from pz_dagster.bindings import BINDING_TAG, find
from pz_dagster.errors import PzDagsterError
from pz_dagster.event_mapping import DagsterResult, EventMapper
from pz_dagster.failures import broken_project_error, refused_run_error, run_error, unreported_checks_error
from pz_dagster.ordering import ResultBuffer
from pz_dagster.run_config import PzRunConfig
from pz_dagster.selection import OpSelection, read_selection
from pz_engine import (
    CancelToken,
    EngineOverrides,
    ErrorSummary,
    NodeProgress,
    PzError,
    RunEvent,
    RunOutcome,
    RunRequest,
    Selection,
    event_lines,
    journal_record,
    run_project,
)

if TYPE_CHECKING:
    from pz_dagster.resource import PzResource

_JOIN_SECONDS = 20.0
_POLL_SECONDS = 0.1


class PzInvocation:
    """A running engine; iterate `stream()` or `stream_events()` once, to the end."""

    def __init__(self, *, resource: PzResource, context: dg.AssetExecutionContext, config: PzRunConfig) -> None:
        self._resource = resource
        self._context = context
        self._config = config
        self._binding = find(context.op_execution_context.op_def.tags[BINDING_TAG])
        self._snapshot = self._binding.snapshot
        self._selection = read_selection(context, self._snapshot)
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
        """Run the engine and yield each event as its JSON object, without any Dagster result."""
        for item in self._drive():
            if isinstance(item, RunEvent):
                yield item.to_json()
        self._raise_engine_error()

    def stream(self) -> Iterator[DagsterResult]:
        """Run the engine and yield Dagster results as nodes finish.

        Raises:
            PzDagsterError: a node failed, the run was refused, or a selected check was not reported.
        """
        problems = self._snapshot.compiled.problems
        if problems:
            raise broken_project_error(self._snapshot.project_name, problems)
        mapper = self._mapper()
        buffer = ResultBuffer(self._snapshot.compiled.graph, self._selection)
        for item in self._drive():
            if isinstance(item, str):
                level = self._context.log.warning if "PZ0527" in item or "PZ0520" in item else self._context.log.info
                level(f"note: {item}")
                continue
            _write_compute_log(item)
            mapper.run_id = item.run_id
            for name, result in mapper.map(item):
                yield from buffer.add(name, result)
            yield from buffer.settle(mapper.completed)
        yield from buffer.flush()
        self._raise_engine_error()
        self._finish(mapper)

    def _mapper(self) -> EventMapper:
        translator = self._binding.translator
        return EventMapper(
            self._snapshot,
            self._selection,
            translator.settings,
            lambda node: translator.get_check_severity(node, self._snapshot),
            self._error_text,
            self._context.log,
            progress_seconds=float(self._resource.log_progress_seconds),
        )

    def _error_text(self, message: str) -> str:
        detail = self._resource.error_detail
        if detail == "full" or (detail == "auto" and os.environ.get("DAGSTER_IS_DEV_CLI")):
            return message
        summary = ErrorSummary.from_message(message)
        return f"{summary.kind}: {summary.message}" if summary.kind else summary.message

    def _drive(self) -> Iterator[RunEvent | str]:
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
            self.outcome = run_project(self._request())
        except BaseException as error:
            self._error = error
        finally:
            self._queue.put(None)

    def _receive(self, event: RunEvent) -> None:
        """Take an event on the engine's side; progress overwrites a slot instead of queueing."""
        if isinstance(event, NodeProgress):
            is_new = event.node_id not in self._progress
            self._progress[event.node_id] = event
            if is_new:
                self._queue.put(_ProgressMark(event.node_id))
            return
        self._queue.put(event)

    def _request(self) -> RunRequest:
        project, config, resource = self._binding.project, self._config, self._resource
        checks = config.checks or self._binding.checks
        return RunRequest(
            project_dir=project.root,
            vars={**project.vars, **config.vars},
            env=dict(resource.env),
            selection=Selection(node_names=frozenset(self._selection.names.values())),
            fail_fast=config.fail_fast,
            full_refresh=config.full_refresh,
            overrides=EngineOverrides(resource.threads, resource.memory_limit, resource.duckdb_threads),
            gate_checks=checks == "gate",
            host=self._host_record(),
            on_run_id=self._take_run_id,
            event_sink=self._receive,
            note_sink=self._queue.put,
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
            "selection": sorted(self._selection.names.values()),
        }

    def _raise_engine_error(self) -> None:
        error = self._error
        if error is None:
            return
        if isinstance(error, PzError):
            raise refused_run_error(error) from None
        raise PzDagsterError(
            f"PZ0500: the engine failed unexpectedly ({type(error).__name__}); please report it"
        ) from None

    def _finish(self, mapper: EventMapper) -> None:
        outcome = self.outcome
        if outcome is None:
            raise PzDagsterError("PZ0500: the engine ended without an outcome; please report it")
        if mapper.unselected:
            self._context.log.info(
                f"{mapper.unselected} unselected ancestor(s) ran and are not reported as materialized"
            )
        for key, reason in outcome.watermarks_held.items():
            self._context.log.info(f"the watermark of {key} was not advanced: {reason}")
        gate = (self._config.checks or self._binding.checks) == "gate"
        error = run_error(outcome, mapper, self._error_text, is_gate=gate)
        if error is not None:
            raise error
        missing = self._missing_checks(mapper, self._selection)
        if missing:
            raise unreported_checks_error(missing)

    @staticmethod
    def _missing_checks(mapper: EventMapper, selection: OpSelection) -> list[str]:
        return sorted(name for name in selection.checks if name not in mapper.completed)


class _ProgressMark:
    """Stands in the queue for the newest progress of one node."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id


def _write_compute_log(event: RunEvent) -> None:
    """Put the event into the step's captured output: journal form on stdout, text on stderr."""
    print(json.dumps(journal_record(event), separators=(",", ":"), ensure_ascii=False), flush=True)  # noqa: T201
    for line in event_lines(event):
        print(line, file=sys.stderr, flush=True)  # noqa: T201
