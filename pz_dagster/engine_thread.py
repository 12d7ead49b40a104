"""The thread in which the engine runs, and the queue between it and the op.

Nothing here refers to Dagster's context: a context keeps the error of its step, the error a traceback, and the traceback
the generator that would have to be dropped for the engine to be stopped.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # registers its hook  # noqa: F401
import queue
import threading
import weakref
from collections.abc import Callable, Generator
from dataclasses import replace

from pz_dagster.compute_log import ComputeLog
from pz_dagster.discretion import Discretion
from pz_engine import CancelToken, NodeProgress, RunEvent, RunOutcome, RunRequest

_JOIN_SECONDS = 20.0
_POLL_SECONDS = 0.1


class _ProgressMark:
    """Stands in the queue for the newest progress of one node."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id


class EngineThread:
    """Runs one request; iterate `items()` once."""

    def __init__(self, discretion: Discretion) -> None:
        self._discretion = discretion
        self._compute_log = ComputeLog(discretion)
        self._cancel = CancelToken()
        self._queue: queue.SimpleQueue[RunEvent | str | _ProgressMark | None] = queue.SimpleQueue()
        self._progress: dict[str, NodeProgress] = {}
        self._progress_guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self.run_id: str | None = None
        self.outcome: RunOutcome | None = None
        self.error: BaseException | None = None

    def cancel(self) -> None:
        """Ask the engine to stop."""
        self._cancel.set()

    def items(self, request: RunRequest) -> Generator[RunEvent | str | None, None, None]:
        """Run a request and yield its events and notes until the engine's call has returned; None when none has come lately.

        However the generator ends, the engine is cancelled if it still runs, and joined within a bound.
        """
        request = replace(
            request, on_run_id=self._take_run_id, event_sink=self._receive, note_sink=self._note, cancel=self._cancel
        )
        self._thread = threading.Thread(target=self._run, args=(request,), name="pz-engine", daemon=True)
        _RUNNING.add(self)
        self._thread.start()
        try:
            while True:
                try:
                    item = self._queue.get(timeout=_POLL_SECONDS)
                except queue.Empty:
                    yield None
                    continue
                if item is None:
                    return
                if isinstance(item, _ProgressMark):
                    with self._progress_guard:
                        newest = self._progress.pop(item.node_id)
                    yield newest
                else:
                    yield item
        finally:
            self.stop()

    def stop(self) -> None:
        """Cancel a run that has not ended and wait for its thread, within a bound."""
        if self._thread is not None and self._thread.is_alive():
            if self.outcome is None and self.error is None:
                self._cancel.set()
            self._thread.join(_JOIN_SECONDS)

    def _run(self, request: RunRequest) -> None:
        try:
            from pz_engine import run_project

            self.outcome = run_project(request)
        except BaseException as error:
            self.error = error
        finally:
            self._queue.put(None)

    def _take_run_id(self, run_id: str) -> None:
        self.run_id = run_id

    def _receive(self, event: RunEvent) -> None:
        """Take an event on the engine's side; progress overwrites a slot instead of queueing."""
        self._compute_log.event(event)
        if isinstance(event, NodeProgress):
            with self._progress_guard:
                is_new = event.node_id not in self._progress
                self._progress[event.node_id] = event
            if is_new:
                self._queue.put(_ProgressMark(event.node_id))
            return
        self._queue.put(event)

    def _note(self, text: str) -> None:
        shown = self._discretion.relative(text)
        self._compute_log.note(shown)
        self._queue.put(shown)


_RUNNING: weakref.WeakSet[EngineThread] = weakref.WeakSet()


def _stop_all() -> None:
    """Stop what still runs when the process ends, or the interpreter would wait for the engine's workers for ever."""
    for engine in list(_RUNNING):
        engine.stop()


_register: Callable[..., object] = getattr(threading, "_register_atexit", atexit.register)
_register(_stop_all)  # later than the thread pool's hook, which waits for workers; the last one registered runs first
