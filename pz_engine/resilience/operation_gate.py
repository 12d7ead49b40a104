"""Runs single operations of a connector: paced, counted and, where that is safe, tried again.

One gate belongs to one attempt of one node. Operation retries publish nothing; the counters are their only trace.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import RetryPolicy
from pz_engine.model.run import OperationCounts
from pz_engine.resilience.backoff import retry_delay
from pz_engine.resilience.rate_limit import Pacer

LONG_PAUSE: Final = 60.0
"""Seconds; no declared rate makes an operation wait longer than this."""

_Result = TypeVar("_Result")


class OperationGate:
    """What a connector calls for every remote operation; thread-safe."""

    def __init__(
        self,
        pacer: Pacer,
        policy: RetryPolicy,
        jitter: Callable[[], float],
        on_long_pause: Callable[[], None] = lambda: None,
    ) -> None:
        """Create a gate.

        Args:
            pacer: the connection's pacer.
            policy: the node's own retry policy, applied to single operations as well.
            jitter: uniform numbers in [0, 1).
            on_long_pause: told before a wait of more than `LONG_PAUSE`, which only a used-up quota asks for.
        """
        self._pacer = pacer
        self._policy = policy
        self._jitter = jitter
        self._on_long_pause = on_long_pause
        self._guard = threading.Lock()
        self._executed = 0
        self._retried = 0
        self._throttled = 0.0

    def execute(self, label: str, idempotent: bool, operation: Callable[[], _Result], cancel: CancelToken) -> _Result:  # noqa: ARG002 - names the operation for gates that record
        """Run one operation.

        Args:
            label: a constant such as `http.get_page`, never built from data.
            idempotent: repeating the operation cannot change anything, so a transient failure is tried again.
            operation: does the work and classifies its own failure as `PzConnectorError`.
            cancel: ends every wait.

        Raises:
            PzConnectorError: the operation failed for good, or too often.
            Cancelled: the token was set.
        """
        failures = 0
        while True:
            self._pace(cancel)
            with self._guard:
                self._executed += 1
            try:
                return operation()
            except PzConnectorError as error:
                failures += 1
                if not error.is_transient or not idempotent or failures >= self._policy.max_attempts:
                    raise
                delay = retry_delay(self._policy, failures, self._jitter(), error.retry_after)
            with self._guard:
                self._retried += 1
            if cancel.wait(delay.total_seconds()):
                raise Cancelled

    def report_budget(self, remaining: int, reset_at: datetime) -> None:
        """Pass on what the far side said is left of its quota, and when it starts anew."""
        self._pacer.report_budget(remaining, reset_at)

    @property
    def counts(self) -> OperationCounts:
        """What happened so far."""
        with self._guard:
            return OperationCounts(self._executed, self._retried, int(self._throttled * 1000))

    def _pace(self, cancel: CancelToken) -> None:
        while True:
            cancel.raise_if_set()
            wait = self._pacer.acquire()
            if wait <= 0:
                return
            if wait > LONG_PAUSE:
                self._on_long_pause()
            with self._guard:
                self._throttled += wait
            if cancel.wait(wait):
                raise Cancelled
