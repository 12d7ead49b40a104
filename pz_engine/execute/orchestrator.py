"""The scheduler: dispatches units as their inputs succeed.

One thread decides, workers run. A unit takes the permits of all its connections and one global permit together or not
at all, so a capped connection never occupies a global slot and two groups cannot wait for each other. Every node of
the effective set ends with exactly one result.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, field

from pz_engine.base.cancellation import CancelToken
from pz_engine.base.redact import sanitize
from pz_engine.compile.dag import Node
from pz_engine.events.types import NodeCompleted, NodeQueued
from pz_engine.execute.context import RunContext
from pz_engine.execute.node_runner import NodeRunner, UnitOutcome
from pz_engine.execute.outcome import UNRESPONSIVE
from pz_engine.execute.units import Unit
from pz_engine.model.run import NodeError, NodeResult, NodeStats, NodeStatus, RunStatus

_POLL_SECONDS = 0.2


class DispatchOutcome(Struct, frozen=True):
    """What dispatch produced."""

    status: RunStatus
    results: tuple[NodeResult, ...]
    """Completion order."""


class _Board(Struct):
    """Where every unit stands."""

    waiting: dict[int, set[int]]
    ready: list[int] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    queued: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)


class Orchestrator:
    """Runs the units of one run."""

    def __init__(
        self,
        context: RunContext,
        runner: NodeRunner,
        units: Sequence[Unit],
        *,
        cancel: CancelToken,
        fail_fast: bool,
        carried: Sequence[NodeResult] = (),
        on_results: Callable[[Sequence[NodeResult]], None],
    ) -> None:
        self._context = context
        self._runner = runner
        self._units = units
        self._cancel = cancel
        self._stop = CancelToken(cancel)
        self._fail_fast = fail_fast
        self._on_results = on_results
        self._carried = carried
        self._results: list[NodeResult] = []
        self._stored = 0
        self._finished: queue.Queue[tuple[int, UnitOutcome]] = queue.Queue()
        self._board = _Board({index: set(unit.waits_for) for index, unit in enumerate(units)})
        self._permits = {
            name: connection.max_concurrency
            for name, connection in context.compiled.connections.items()
            if connection.max_concurrency is not None
        }

    def run(self) -> DispatchOutcome:
        """Record what is carried forward, then dispatch until nothing is outstanding.

        The status follows from results and cancellation.

        Raises:
            ValueError: a node is both carried forward and about to run; nothing was published.
        """
        about_to_run = {member.id for unit in self._units for member in unit.members}
        if any(result.id in about_to_run for result in self._carried):
            raise ValueError("a node that runs cannot be carried forward")
        try:
            self._record(self._carried)
            self._schedule()
        except Exception as error:
            self._context.note(f"PZ0500: the scheduler failed: {sanitize(f'{type(error).__name__}: {error}')}")
            self._sweep()
            return DispatchOutcome(RunStatus.FATAL, tuple(self._results))
        failed = any(result.status is NodeStatus.FAILED for result in self._results)
        if failed:
            status = RunStatus.COMPLETED_WITH_FAILURES
        else:
            status = RunStatus.FATAL if self._cancel.is_set() else RunStatus.SUCCESS
        return DispatchOutcome(status, tuple(self._results))

    def _schedule(self) -> None:
        threads = self._context.engine.threads
        wake = self._cancel.on_cancel(lambda: self._finished.put((-1, UnitOutcome(()))))
        self._promote()
        with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="pz-node") as pool:
            while True:
                if not self._stop.is_set():
                    self._dispatch(pool, threads)
                self._store()  # while the workers are busy with what was just dispatched
                if not self._board.running:
                    break
                self._collect()
        wake()
        self._stop.detach()
        self._sweep()

    def _promote(self) -> None:
        """Move units whose inputs have all succeeded to the ready list, in dispatch order."""
        board = self._board
        fresh = [index for index, needed in board.waiting.items() if not needed]
        for index in fresh:
            del board.waiting[index]
        board.ready = sorted([*board.ready, *fresh], key=lambda index: self._units[index].order)

    def _dispatch(self, pool: ThreadPoolExecutor, threads: int) -> None:
        board = self._board
        for index in list(board.ready):
            unit = self._units[index]
            if len(board.running) < threads and all(self._permits.get(name, 1) > 0 for name in unit.connections):
                board.ready.remove(index)
                board.running.add(index)
                for name in unit.connections:
                    if name in self._permits:
                        self._permits[name] -= 1
                pool.submit(self._work, index)
            elif index not in board.queued:
                board.queued.add(index)
                for member in unit.members:
                    self._context.publisher.emit(NodeQueued, node_id=member.id)

    def _work(self, index: int) -> None:
        unit = self._units[index]
        if self._stop.is_set():
            self._finished.put((index, UnitOutcome(tuple(_skipped(member) for member in unit.members))))
            return
        try:
            outcome = self._runner.run(unit, self._stop)
        except BaseException as error:
            message = sanitize(f"{type(error).__name__}: {error}")
            outcome = UnitOutcome(
                tuple(
                    NodeResult(m.id, m.kind, m.name, NodeStatus.FAILED, 0, 0, NodeError("PZ0501", message))
                    if m.id == unit.root.id
                    else _skipped(m)
                    for m in unit.members
                )
            )
        self._finished.put((index, outcome))

    def _collect(self) -> None:
        """Wait for a finished unit and take it, with every other one that has finished meanwhile."""
        with contextlib.suppress(queue.Empty):
            self._take(*self._finished.get(timeout=_POLL_SECONDS))
            while True:
                self._take(*self._finished.get_nowait())

    def _take(self, index: int, outcome: UnitOutcome) -> None:
        """Release what a finished unit held and record what came of it."""
        if index < 0:
            return
        board, unit = self._board, self._units[index]
        board.running.discard(index)
        board.done.add(index)
        for name in unit.connections:
            if name in self._permits:
                self._permits[name] += 1
        for draft in outcome.warnings:
            self._context.publisher.emit(draft.type, **draft.fields)
        self._record(outcome.results)
        if all(result.status is NodeStatus.SUCCESS for result in outcome.results):
            for needed in board.waiting.values():
                needed.discard(index)
            self._promote()
            return
        if any(result.status is NodeStatus.FAILED for result in outcome.results):
            self._skip_dependents(index)
            if self._fail_fast or any(_is_stuck(result) for result in outcome.results):
                self._stop.set()

    def _skip_dependents(self, failed: int) -> None:
        """Record every unit that can no longer run, in dispatch order of the graph."""
        board, lost = self._board, {failed}
        for index, unit in enumerate(self._units):
            if index in board.waiting and unit.waits_for & lost:
                lost.add(index)
        # Gates may point backwards in the list, so repeat until nothing new is lost.
        while True:
            more = {index for index in board.waiting if index not in lost and self._units[index].waits_for & lost}
            if not more:
                break
            lost |= more
        for index in sorted(lost - {failed}):
            del board.waiting[index]
            board.done.add(index)
            self._record(tuple(_skipped(member) for member in self._units[index].members))

    def _sweep(self) -> None:
        """Record what never ran: after a cancellation, everything still waiting or ready."""
        board = self._board
        for index in range(len(self._units)):
            if index not in board.done:
                board.done.add(index)
                self._record(tuple(_skipped(member) for member in self._units[index].members))
        self._store()

    def _record(self, results: Sequence[NodeResult]) -> None:
        self._results.extend(results)
        for result in results:
            self._context.publisher.emit(NodeCompleted, result=result, blocked_by=self._blockers(result))

    def _store(self) -> None:
        """Hand over the results when there are more than last time."""
        if len(self._results) > self._stored:
            self._on_results(tuple(self._results))
            self._stored = len(self._results)

    def _blockers(self, result: NodeResult) -> tuple[str, ...]:
        if result.status is not NodeStatus.SKIPPED:
            return ()
        failed = {other.id: other.name for other in self._results if other.status is NodeStatus.FAILED}
        unit = next(unit for unit in self._units if any(member.id == result.id for member in unit.members))
        reach = self._upstream(unit)
        return tuple(sorted(name for node_id, name in failed.items() if node_id in reach))

    def _upstream(self, unit: Unit) -> set[str]:
        found = {member.id for member in unit.members}
        waiting, seen = list(unit.waits_for), set(unit.waits_for)
        while waiting:
            current = self._units[waiting.pop()]
            found.update(member.id for member in current.members)
            fresh = current.waits_for - seen
            seen |= fresh
            waiting.extend(fresh)
        return found


def _is_stuck(result: NodeResult) -> bool:
    return result.error is not None and result.error.code == UNRESPONSIVE


def _skipped(node: Node) -> NodeResult:
    return NodeResult(node.id, node.kind, node.name, NodeStatus.SKIPPED, 0, 0, stats=NodeStats())
