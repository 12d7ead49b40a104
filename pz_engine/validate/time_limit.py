"""Bounds a call into a connector by time.

A call that does not stop when it is told to is left behind in a thread that no exit waits for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

from pz_engine.base.cancellation import Cancelled, CancelToken

_Result = TypeVar("_Result")


class TimeLimitError(Exception):
    """A call took longer than allowed."""


def within(limit: timedelta, work: Callable[[CancelToken], _Result], cancel: CancelToken) -> _Result:
    """Run a call with a token of its own, which is set when the time is over.

    Raises:
        TimeLimitError: it was not finished in time.
        Cancelled: `cancel` was set meanwhile.
    """
    call = _Call(work, CancelToken(cancel))
    call.start()
    return call.result(limit, cancel)


class _Call(threading.Thread, Generic[_Result]):
    def __init__(self, work: Callable[[CancelToken], _Result], token: CancelToken) -> None:
        super().__init__(name="pz-connect", daemon=True)
        self._work = work
        self._token = token
        self._settled = threading.Event()
        self._values: list[_Result] = []
        self._errors: list[BaseException] = []

    def run(self) -> None:
        try:
            self._values.append(self._work(self._token))
        except BaseException as error:
            self._errors.append(error)
        finally:
            self._settled.set()

    def result(self, limit: timedelta, cancel: CancelToken) -> _Result:
        forget = cancel.on_cancel(self._settled.set)
        try:
            is_settled = self._settled.wait(limit.total_seconds())
        finally:
            forget()
            self._token.detach()
        cancel.raise_if_set()
        if not is_settled:
            self._token.set()
            raise TimeLimitError
        if self._values:
            return self._values[0]
        error = self._errors[0]
        if isinstance(error, Cancelled):
            raise TimeLimitError from None  # nobody cancelled, so the connector's own limit ended it
        raise error
