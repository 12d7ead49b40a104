"""Bounds one attempt of a unit by `engine.node_timeout`.

An attempt that stops when it is cancelled has only timed out. One that does not stop within a grace period is left
behind in its thread, and the run must end, because it may still hold the database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.base.durations import format_duration
from pz_engine.execute.outcome import UNRESPONSIVE, NodeFailure

GRACE = timedelta(seconds=30)
"""How long a cancelled attempt may take to stop."""

_Result = TypeVar("_Result")


def run_within(
    limit: timedelta | None,
    attempt: Callable[[CancelToken], _Result],
    *,
    cancel: CancelToken,
    subject: str,
    grace: timedelta | None = None,
) -> _Result:
    """Run an attempt with a token of its own, for at most `limit`.

    Raises:
        NodeFailure: `PZ0525` when the attempt was stopped, `PZ0526` when it did not stop.
        Cancelled: the run's token was set.
    """
    token = CancelToken(cancel)
    try:
        if limit is None:
            return attempt(token)
        return _Watched(attempt, token).result(limit, cancel, subject, grace if grace is not None else GRACE)
    finally:
        token.detach()


class _Watched(Generic[_Result]):
    """An attempt in a thread of its own, so that its watcher can walk away."""

    def __init__(self, attempt: Callable[[CancelToken], _Result], token: CancelToken) -> None:
        self._token = token
        self._ended = threading.Event()
        self._values: list[_Result] = []
        self._errors: list[BaseException] = []

        def work() -> None:
            try:
                self._values.append(attempt(token))
            except BaseException as error:
                self._errors.append(error)
            finally:
                self._ended.set()

        threading.Thread(target=work, name="pz-attempt", daemon=True).start()

    def result(self, limit: timedelta, cancel: CancelToken, subject: str, grace: timedelta) -> _Result:
        has_expired = not self._ended.wait(min(limit.total_seconds(), threading.TIMEOUT_MAX))
        if has_expired:
            self._token.set()
            if not self._ended.wait(grace.total_seconds()):
                raise NodeFailure(
                    UNRESPONSIVE,
                    f"'{subject}' was cancelled after engine.node_timeout ({format_duration(limit)}) and did not stop "
                    f"within {format_duration(grace)}, so the run ends\nnext step: look at what its connector waits for",
                )
        if self._values:
            return self._values[0]
        error = self._errors[0]
        if isinstance(error, Cancelled) and has_expired and not cancel.is_set():
            raise NodeFailure(
                "PZ0525",
                f"'{subject}' did not finish within engine.node_timeout ({format_duration(limit)})\n"
                f"next step: raise node_timeout below engine in project.yml, for example to {format_duration(2 * limit)}",
            ) from None
        raise error
