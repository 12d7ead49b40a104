"""Notices that the process above an op died and its Dagster run was closed: what is delivered then belongs to no run.

A step's own process outlives the process that runs its Dagster run. Dagster fails the run, frees the pool and may launch the
next one, while the step goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import dagster as dg

_LOOK_SECONDS = 1.0

Item = TypeVar("Item")


class Lifeline:
    """What ties an op to its Dagster run.

    Args:
        context: of the op; its instance is asked only once the process above is gone.
    """

    def __init__(self, context: dg.OpExecutionContext) -> None:
        self._context = context
        self._above = multiprocessing.parent_process()
        self._above_id = os.getppid()
        self._looked = time.monotonic()

    def watch(self, items: Iterator[Item], cut: Callable[[], None]) -> Iterator[Item]:
        """Yield what the engine tells, and call `cut` when the run has ended without its op; `items` goes on to its end."""
        is_cut = False
        for item in items:
            if not is_cut and time.monotonic() - self._looked >= _LOOK_SECONDS:
                self._looked = time.monotonic()
                is_cut = self._is_alone() and self._is_over()
                if is_cut:
                    with suppress(Exception):  # a run that has ended may take no more entries
                        self._context.log.warning(
                            "the process of this Dagster run is gone and the run has ended: stopping"
                        )
                    cut()
            yield item

    def _is_alone(self) -> bool:
        if self._above is not None:
            return not self._above.is_alive()
        return os.getppid() != self._above_id

    def _is_over(self) -> bool:
        """Tell whether Dagster has closed the run; a run whose code server died goes on."""
        run = self._context.instance.get_run_by_id(self._context.run_id)
        return run is None or run.is_finished
