"""One engine run inside an op.

The engine runs in one thread and publishes into a queue; every Dagster call happens on the op's own thread. Whatever
ends the generator, the engine is cancelled, joined and left without an open handle.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import dagster as dg
from msgspec.structs import replace

from pz_dagster.bindings import BINDING_TAG, find
from pz_dagster.discretion import Discretion
from pz_dagster.engine_thread import EngineThread
from pz_dagster.errors import PzDagsterError
from pz_dagster.event_budget import EventBudget
from pz_dagster.event_mapping import DagsterResult, EventMapper
from pz_dagster.failures import (
    broken_project_error,
    refused_run_error,
    run_error,
    stale_definitions_error,
    unreported_checks_error,
    unwritten_checks_error,
)
from pz_dagster.findings import EarlierFindings
from pz_dagster.lifeline import Lifeline
from pz_dagster.ordering import ResultBuffer
from pz_dagster.partitions import PartitionRun, watermark_warnings
from pz_dagster.resume import Launch, Resumption, plan_resumption
from pz_dagster.run_config import PzRunConfig
from pz_dagster.selection import read_selection
from pz_dagster.state_copy import DagsterStateCopy
from pz_dagster.translation import translate
from pz_dagster.watch import Watch
from pz_engine import (
    CheckNode,
    EngineOverrides,
    RunEvent,
    RunOutcome,
    RunRequest,
    Selection,
    SourceLoadNode,
    next_step,
)

if TYPE_CHECKING:
    from pz_dagster.resource import PzResource


class PzInvocation:
    """A running engine; iterate `stream()` or `stream_events()` once, to the end."""

    def __init__(self, *, resource: PzResource, context: dg.AssetExecutionContext, config: PzRunConfig) -> None:
        self._resource = resource
        self._context = context
        self._config = config
        self._binding = find(context.op_execution_context.op_def.tags[BINDING_TAG])
        self._snapshot = self._binding.snapshot
        self._selection = read_selection(context, self._snapshot)
        self._partitions = PartitionRun.of(context, self._snapshot, self._binding.partition_by)
        self._budget = EventBudget(context.log)
        self._is_cancelled = False
        self._leaves_out_sinks = False
        self._is_gate = _is_gate(config.checks or self._binding.checks)
        self._discretion = Discretion.of(
            self._snapshot,
            self._binding.project.root,
            self._binding.project.state_path,
            env={**os.environ, **resource.variables},
            is_full=resource.shows_full_errors,
            shows_samples=self._binding.translator.settings.expose_check_samples,
            shows_positions=resource.state_copy != "off",
        )
        self._state_copy = self._open_state_copy()
        self._resumption = Resumption()
        self._watch = Watch()
        self._engine = EngineThread(self._discretion)

    @property
    def run_id(self) -> str | None:
        """Id of the pz run, known as soon as the engine has one."""
        return self._engine.run_id

    @property
    def outcome(self) -> RunOutcome | None:
        """How the run ended; None until `stream` has."""
        return self._engine.outcome

    def cancel(self) -> None:
        """Ask the engine to stop."""
        self._is_cancelled = True
        self._engine.cancel()

    def stream_events(self) -> Iterator[dict[str, Any]]:
        """Run the engine and yield each event as its JSON object, without any Dagster result.

        Raises:
            PzDagsterError: the run was refused; failing nodes are among the events.
        """
        self._refuse()
        self._resume()
        with closing(self._items(is_first=True)) as items:
            for item in items:
                if isinstance(item, RunEvent):
                    yield self._discretion.event(item).to_json()
        self._raise_engine_error()

    def stream(self) -> Iterator[DagsterResult]:
        """Run the engine and yield Dagster results as nodes finish.

        With `until_caught_up` the engine runs again while windows are left; the results of the last run are yielded.

        Raises:
            PzDagsterError: a node failed, the run was refused, or a selected check was not reported.
        """
        self._refuse()
        self._resume()
        self._warn_of_watermarks()
        most = 1 if self._partitions.keys else self._config.until_caught_up
        self._watch.counts_passes = most > 1
        opened = 0
        for number in count(1):
            mapper = self._mapper(number if most > 1 else None)
            mapper.breaker_opened = opened
            self._watch.begin(number)
            results = self._results(mapper, is_first=number == 1)
            if most == 1:
                yield from results
                break
            kept: list[DagsterResult] = []
            with closing(results):
                for result in results:
                    if isinstance(result, dg.AssetObservation):
                        yield result
                    else:
                        kept.append(result)
            if self._resumption.is_complete or self._is_last(number, most):
                yield from kept
                break
            self._resumption = self._resumption.finished()
            self._engine = EngineThread(self._discretion)
            opened = mapper.breaker_opened
        yield from self._watch.rest(self._selection.builtin)
        if self._resumption.is_complete:
            return
        self._raise_engine_error()
        self._finish(mapper)

    def _results(self, mapper: EventMapper, *, is_first: bool) -> Generator[DagsterResult, None, None]:
        """Run the engine once, unless earlier runs have left nothing to do."""
        buffer = ResultBuffer(self._snapshot.compiled.graph, self._selection)
        yield from self._settle_proven(mapper, buffer)
        if self._resumption.is_complete:
            return
        with closing(self._items(is_first=is_first)) as items:
            for item in items:
                if item is None:
                    mapper.pause()
                    continue
                if isinstance(item, str):
                    mapper.note(item)
                    continue
                for name, result in mapper.map(item):
                    self._count_parts(mapper, name, result)
                    yield from buffer.add(name, result)
                yield from buffer.settle(mapper.completed)
        yield from buffer.flush()

    def _is_last(self, number: int, most: int) -> bool:
        """Tell whether no further run follows, and say why."""
        if self.outcome is None or self._is_cancelled:
            return True
        reason: str | None = next_step(self.outcome, number, most)
        if reason is None and self._leaves_out_sinks:
            reason = "it continues a part of a run, and the sinks of the rest would miss the next window"
        if reason is not None:
            self._context.log.info(f"{number} passes, stopped because: {reason}")
        return reason is not None

    def _count_parts(self, mapper: EventMapper, name: str, result: DagsterResult) -> None:
        """Add what is known of each partition before the result that it belongs to is yielded."""
        done = mapper.completed.get(name)
        if self._partitions.keys and isinstance(result, dg.MaterializeResult) and done is not None:
            self._partitions.describe(self._context, result, done)

    def _warn_of_watermarks(self) -> None:
        env = {**os.environ, **self._resource.variables}
        for text in watermark_warnings(self._binding.project, self._partitions.windows, env):
            self._context.log.warning(text)

    def _items(self, *, is_first: bool) -> Generator[RunEvent | str | None, None, None]:
        """Run the engine between the reading and the writing of the state copy."""
        copy = self._state_copy
        if copy is not None:
            self._warn(copy.reconcile(self._running()))
        try:
            with closing(self._engine.items(self._request(is_first=is_first))) as items:
                yield from Lifeline(self._context.op_execution_context).watch(items, self.cancel)
        finally:
            if copy is not None:
                self._warn(copy.write(self.run_id))

    def _resume(self) -> None:
        """Decide what earlier runs have done already."""
        launch = Launch(
            {**self._binding.project.vars, **self._config.vars},
            bool(self._config.vars),
            self._resource.variables,
            self._partitions.keys,
        )
        found = plan_resumption(self._context, self._binding, self._selection, launch)
        notes = list(found.notes)
        if found.ignores_full_refresh and self._config.full_refresh:
            notes.append("full_refresh is ignored, because this attempt continues a run")
        for note in notes:
            self._context.log.info(note)
        if found.retry_from is not None:  # what this step leaves out may be carried forward; the outcome tells
            self._leaves_out_sinks = bool(self._selection.held_loads)
            self._selection = replace(self._selection, held_loads=frozenset())
        self._resumption = found

    def _settle_proven(self, mapper: EventMapper, buffer: ResultBuffer) -> Iterator[DagsterResult]:
        """Report what succeeded before and does not run, unless Dagster has it from an earlier attempt."""
        found = self._resumption
        mapper.selection = self._selection
        mapper.yielded = found.yielded
        watched = {name for _, name in self._selection.builtin}
        if watched and found.earlier:
            self._watch.earlier = EarlierFindings.read(self._binding.project.state_path, found.earlier, watched)
        for name, result in found.proven.items():
            for each in mapper.carried(name, result, found.retry_from or ""):
                yield from buffer.add(name, each)
        mapper.yielded |= frozenset(found.proven)
        mapper.completed.update(found.proven)
        if found.is_complete:
            yield from buffer.flush()
        else:
            yield from buffer.settle(mapper.completed)

    def _open_state_copy(self) -> DagsterStateCopy | None:
        if self._resource.state_copy == "off":
            return None
        return DagsterStateCopy(
            self._context.instance,
            self._binding.project,
            self._snapshot,
            prefix=self._binding.translator.settings.key_prefix,
            env=self._resource.variables,
            dagster_run_id=self._context.op_execution_context.run_id,
        )

    def _running(self) -> frozenset[str]:
        """Ids of what runs and uses stored state, as the loaded definitions know it."""
        graph = self._snapshot.compiled.graph
        selected = frozenset(graph.by_name[name].id for name in self._selection.names)
        sliced = self._partitions.windows
        return frozenset(
            node_id
            for node_id in selected | graph.ancestors(selected)
            if not (isinstance(node := graph.by_id[node_id], SourceLoadNode) and node.key in sliced)
        )

    def _warn(self, texts: Sequence[str]) -> None:
        """Log warnings; where even that cannot be written, the step fails by its own results if it must."""
        for text in texts:
            with suppress(Exception):
                self._budget.write("warning", self._discretion.relative(text))

    def _refuse(self) -> None:
        """Fail before data moves when the loaded definitions cannot be run."""
        problems = self._snapshot.compiled.problems
        if problems:
            raise broken_project_error(self._snapshot.project_name, problems)
        if self._selection.unknown:
            raise stale_definitions_error(self._selection.unknown)
        if self._selection.unwritten:
            raise unwritten_checks_error(self._selection.unwritten)

    def _mapper(self, passes: int | None) -> EventMapper:
        return EventMapper(
            self._snapshot,
            self._selection,
            self._binding.translator.settings,
            self._severity,
            self._discretion,
            self._budget,
            progress_seconds=float(self._resource.log_progress_seconds),
            is_partitioned=bool(self._partitions.keys),
            passes=passes,
            shows_positions=self._discretion.shows_positions,
            watch=self._watch,
        )

    def _severity(self, node: CheckNode, is_blocking: bool) -> dg.AssetCheckSeverity:
        """Warn only where Dagster would fail the step although this launch merely observes."""
        if is_blocking and not self._is_gate:
            return dg.AssetCheckSeverity.WARN
        return translate(self._binding.translator, self._snapshot).severity(node)

    def _gating_checks(self) -> frozenset[str]:
        if not self._is_gate:
            return frozenset()
        return frozenset(self._selection.checks) - self._ungated_checks()

    def _ungated_checks(self) -> frozenset[str]:
        """Checks that only warn never skip anything."""
        view = translate(self._binding.translator, self._snapshot)
        return frozenset(
            node.name
            for node in self._snapshot.compiled.nodes
            if isinstance(node, CheckNode) and view.severity(node) is not dg.AssetCheckSeverity.ERROR
        )

    def _request(self, *, is_first: bool = True) -> RunRequest:
        project, config, resource = self._binding.project, self._config, self._resource
        return RunRequest(
            project_dir=project.root,
            state_dir=project.state_path,
            vars={**project.vars, **config.vars},
            env=resource.variables,
            selection=Selection(
                node_names=self._selection.names if self._resumption.names is None else self._resumption.names
            ),
            fail_fast=config.fail_fast,
            full_refresh=config.full_refresh and is_first and not self._resumption.ignores_full_refresh,
            retry_from=self._resumption.retry_from,
            windows=self._partitions.windows,
            window_cuts=self._partitions.cuts,
            state_mode="bypass" if self._partitions.keys else "use",
            overrides=EngineOverrides(resource.threads, resource.memory_limit, resource.duckdb_threads),
            gate_checks=self._is_gate,
            ungated_checks=self._ungated_checks(),
            host=self._host_record(),
            wrap_state_store=self._state_copy.wrap if self._state_copy is not None else None,
        )

    def _host_record(self) -> dict[str, Any]:
        context = self._context.op_execution_context
        return {
            "host": "dagster",
            "run_id": context.run_id,
            "root_run_id": context.run.root_run_id,
            "parent_run_id": context.run.parent_run_id,
            "step": context.op.name,
            "op": context.op_def.name,
            "attempt": context.retry_number,
            "fingerprint": self._snapshot.fingerprint,
            "selection": sorted(self._selection.names),
            "partitions": list(self._partitions.keys),
        }

    def _raise_engine_error(self) -> None:
        if self._engine.error is not None:
            raise refused_run_error(self._engine.error, self._discretion) from None
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
        if mapper.breaker_opened:
            log.info(f"circuit breakers opened {mapper.breaker_opened} time(s)")
        for key, reason in outcome.watermarks_held.items():
            log.info(f"the watermark of {key} was not advanced: {self._discretion.relative(reason)}")
        if self._selection.held_loads:
            loads = ", ".join(sorted(self._selection.held_loads))
            log.warning(
                f"this step leaves out a sink that {loads} feeds, so the watermark is held: the same rows are read "
                "again next time, and outputs that append get them twice"
            )
        if self._binding.project.fingerprint != self._snapshot.fingerprint:
            changed = f"; changed: {', '.join(sorted(mapper.changed))}" if mapper.changed else ""
            log.info(f"the project's files are newer than the loaded definitions{changed}")
        error = run_error(outcome, mapper, self._discretion, gating=self._gating_checks())
        if error is not None:
            raise error
        awaited = {*self._selection.checks, *(name for _, name in self._selection.builtin)}
        missing = sorted(name for name in awaited if name not in mapper.completed)
        missing += self._watch.silent(self._selection.builtin)
        if missing:
            raise unreported_checks_error(missing)


def _is_gate(checks: str) -> bool:
    if checks not in ("gate", "observe"):
        raise PzDagsterError("the config key 'checks' is neither 'gate' nor 'observe'; correct it and launch again")
    return checks == "gate"
